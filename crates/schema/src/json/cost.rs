//! What validating costs, before it is done: schemas that look at a value from many places, or that
//! recurse from more than one, multiply with the nesting of the value.
//!
//! Law: [`affordable`] itself costs no more than the limit it is given.

use super::JsonSchema;
use super::node::{Form, Node, NodeBody};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How many places of the schema there are when every reference is written out; `None` when that
/// has no end.
pub(crate) fn weight(root: &Node) -> Option<u64> {
    fn of(node: &Node, known: &mut BTreeMap<*const NodeBody, Option<u64>>) -> Option<u64> {
        let at = Arc::as_ptr(node);
        if let Some(weight) = known.get(&at) {
            return *weight;
        }
        let mut sum = Some(1_u64);
        let mut add = |inner: &Node| {
            sum = sum.and_then(|sum| sum.checked_add(of(inner, known)?));
        };
        match &node.form {
            Form::All(parts) => parts.iter().for_each(|(_, part)| add(part)),
            Form::Any(nodes) | Form::One(nodes) | Form::Opaque { inner: nodes, .. } => {
                nodes.iter().for_each(add);
            }
            Form::Not(inner) | Form::Names(inner) | Form::Contains { of: inner, .. } => add(inner),
            Form::Items { prefix, rest } => prefix.iter().chain([rest]).for_each(add),
            Form::Props(props) => {
                props.named.iter().for_each(|(_, inner)| add(inner));
                props.patterns.iter().for_each(|(_, inner)| add(inner));
                add(&props.rest);
            }
            Form::Ref(_) => sum = None,
            Form::Values(values) => sum = sum.and_then(|sum| sum.checked_add(values.len() as u64)),
            _ => {}
        }
        known.insert(at, sum);
        sum
    }
    of(root, &mut BTreeMap::new())
}

/// Whether validating `value` stays within `work_max` steps, found by walking as a validator would
/// and counting instead of judging.
pub(crate) fn affordable(schema: &JsonSchema, value: &Value, work_max: u64) -> bool {
    let mut count = Count { targets: &schema.targets, left: work_max };
    count.node(&schema.root, value).is_some()
}

struct Count<'a> {
    targets: &'a BTreeMap<u128, Node>,
    left: u64,
}

impl Count<'_> {
    fn node(&mut self, node: &Node, value: &Value) -> Option<()> {
        self.left = self.left.checked_sub(1)?;
        match (&node.form, value) {
            (Form::All(parts), _) => parts.iter().try_for_each(|(_, part)| self.node(part, value)),
            (Form::Any(nodes) | Form::One(nodes), _) => {
                nodes.iter().try_for_each(|inner| self.node(inner, value))
            }
            (Form::Not(inner), _) => self.node(inner, value),
            (Form::Ref(key), _) => {
                let target = self.targets.get(key)?;
                self.node(target, value)
            }
            (Form::Values(values), _) => {
                self.left = self.left.checked_sub(values.len() as u64)?;
                Some(())
            }
            (Form::Items { prefix, rest }, Value::Array(items)) => prefix
                .iter()
                .chain(std::iter::repeat(rest))
                .zip(items)
                .try_for_each(|(inner, item)| self.node(inner, item)),
            (Form::Contains { of, .. }, Value::Array(items)) => {
                items.iter().try_for_each(|item| self.node(of, item))
            }
            (Form::Unique, Value::Array(items)) => {
                self.left = self.left.checked_sub(items.len() as u64)?;
                Some(())
            }
            (Form::Pattern(_), Value::String(text)) => {
                self.left = self.left.checked_sub(text.len() as u64 / 16)?;
                Some(())
            }
            (Form::Props(props), Value::Object(entries)) => {
                entries.iter().try_for_each(|(name, value)| {
                    self.left = self.left.checked_sub(props.patterns.len() as u64)?;
                    props.of_name(name).iter().try_for_each(|inner| self.node(inner, value))
                })
            }
            (Form::Names(_), Value::Object(entries)) => {
                self.left = self.left.checked_sub(entries.len() as u64)?;
                Some(())
            }
            (Form::Opaque { inner, children: true, .. }, Value::Object(entries)) => entries
                .values()
                .try_for_each(|value| inner.iter().try_for_each(|inner| self.node(inner, value))),
            (Form::Opaque { inner, children: true, .. }, Value::Array(items)) => items
                .iter()
                .try_for_each(|value| inner.iter().try_for_each(|inner| self.node(inner, value))),
            _ => Some(()),
        }
    }
}
