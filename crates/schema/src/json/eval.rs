//! Whether one value belongs to a node: the solver's own check of its candidates.
//!
//! Three answers: yes, no, or unknown where a keyword is not modelled. The judge of a witness is
//! the validator, not this.

use super::node::{Form, Node, Props, TypeSet};
use super::ratio::Ratio;
use super::text;
use serde_json::Value;
use std::collections::BTreeMap;

/// Evaluates with a bound on the work; running out is "unknown".
pub(crate) struct Eval<'a> {
    pub(crate) targets: &'a [&'a BTreeMap<u128, Node>],
    pub(crate) work_left: u64,
}

impl Eval<'_> {
    pub(crate) fn holds(&mut self, node: &Node, value: &Value) -> Option<bool> {
        self.work_left = self.work_left.checked_sub(1)?;
        let own_type = TypeSet::of(value);
        if node.form.speaks_of().and(own_type).is_empty() {
            return Some(true);
        }
        match (&node.form, value) {
            (Form::True, _) => Some(true),
            (Form::False, _) => Some(false),
            (Form::All(parts), _) => self.every(parts.iter().map(|(_, part)| (part, value))),
            (Form::Any(nodes), _) => {
                let mut unknown = false;
                for node in nodes {
                    match self.holds(node, value) {
                        Some(true) => return Some(true),
                        Some(false) => {}
                        None => unknown = true,
                    }
                }
                if unknown { None } else { Some(false) }
            }
            (Form::One(nodes), _) => {
                let mut count = 0;
                for node in nodes {
                    count += u32::from(self.holds(node, value)?);
                }
                Some(count == 1)
            }
            (Form::Not(inner), _) => self.holds(inner, value).map(|holds| !holds),
            (Form::Ref(key), _) => {
                let target = self.targets.iter().find_map(|table| table.get(key))?.clone();
                self.holds(&target, value)
            }
            (Form::Types(types), _) => Some(!types.and(own_type).is_empty()),
            (Form::Values(values), _) => {
                let wanted = text::sorted(value);
                Some(values.binary_search_by(|known| text::sorted(known).cmp(&wanted)).is_ok())
            }
            (Form::Min { at, exclusive }, _) => {
                let order = Ratio::of_value(value)?.compare(*at)?;
                Some(order.is_gt() || (order.is_eq() && !exclusive))
            }
            (Form::Max { at, exclusive }, _) => {
                let order = Ratio::of_value(value)?.compare(*at)?;
                Some(order.is_lt() || (order.is_eq() && !exclusive))
            }
            (Form::MultipleOf(step), _) => Ratio::of_value(value)?.is_multiple_of(*step),
            (Form::MinLength(len), Value::String(text)) => {
                Some(text.chars().count() as u64 >= *len)
            }
            (Form::MaxLength(len), Value::String(text)) => {
                Some(text.chars().count() as u64 <= *len)
            }
            (Form::Pattern(pattern), Value::String(text)) => Some(pattern.regex.is_match(text)),
            (Form::MinItems(len), Value::Array(items)) => Some(items.len() as u64 >= *len),
            (Form::MaxItems(len), Value::Array(items)) => Some(items.len() as u64 <= *len),
            (Form::Unique, Value::Array(items)) => {
                let mut texts: Vec<String> = items.iter().map(text::sorted).collect();
                texts.sort_unstable();
                Some(texts.windows(2).all(|pair| pair[0] != pair[1]))
            }
            (Form::Items { prefix, rest }, Value::Array(items)) => {
                let schemas = prefix.iter().chain(std::iter::repeat(rest));
                self.every(schemas.zip(items))
            }
            (Form::Contains { of, min, max }, Value::Array(items)) => {
                let mut count = 0_u64;
                for item in items {
                    count += u64::from(self.holds(of, item)?);
                }
                Some(count >= *min && max.is_none_or(|max| count <= max))
            }
            (Form::MinProps(len), Value::Object(entries)) => Some(entries.len() as u64 >= *len),
            (Form::MaxProps(len), Value::Object(entries)) => Some(entries.len() as u64 <= *len),
            (Form::Required(name), Value::Object(entries)) => Some(entries.contains_key(name)),
            (Form::Props(props), Value::Object(entries)) => {
                let mut unknown = false;
                for (name, value) in entries {
                    for node in props.of_name(name) {
                        match self.holds(&node, value) {
                            Some(true) => {}
                            Some(false) => return Some(false),
                            None => unknown = true,
                        }
                    }
                }
                if unknown { None } else { Some(true) }
            }
            (Form::Names(inner), Value::Object(entries)) => {
                let mut unknown = false;
                for name in entries.keys() {
                    match self.holds(inner, &Value::String(name.clone())) {
                        Some(true) => {}
                        Some(false) => return Some(false),
                        None => unknown = true,
                    }
                }
                if unknown { None } else { Some(true) }
            }
            _ => None,
        }
    }

    fn every<'n>(&mut self, pairs: impl Iterator<Item = (&'n Node, &'n Value)>) -> Option<bool> {
        let mut unknown = false;
        for (node, value) in pairs {
            match self.holds(node, value) {
                Some(true) => {}
                Some(false) => return Some(false),
                None => unknown = true,
            }
        }
        if unknown { None } else { Some(true) }
    }
}

impl Props {
    /// The schemas that the value of property `name` has to meet.
    pub(crate) fn of_name(&self, name: &str) -> Vec<Node> {
        let mut nodes: Vec<Node> = self.named(name).cloned().into_iter().collect();
        nodes.extend(
            self.patterns
                .iter()
                .filter(|(pattern, _)| pattern.regex.is_match(name))
                .map(|(_, node)| node.clone()),
        );
        if nodes.is_empty() {
            nodes.push(self.rest.clone());
        }
        nodes
    }
}
