//! Objects: schemas for names, names that must or must not be there, and things that some property
//! has to have.
//!
//! Names that the schemas spell out are tried one by one. All other names fall into classes by the
//! patterns they match; for each class a name is looked for, and a class that fails whatever its
//! name is does not need one.

use super::{Declared, Found, Goal, Side, Solver, TOO_MUCH, better};
use crate::json::node::{Form, Node, Pattern, Props, TypeSet, node};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Things that some property has to have.
const NEEDS_MAX: usize = 5;
/// Patterns that names are told apart by.
const PATTERNS_MAX: usize = 6;
/// Properties that can be seen to be the same in the time of one step.
const GLANCES_PER_STEP: u64 = 32;
/// Properties that are added to reach a minimum.
const FILL_MAX: u64 = 100;

struct Shape<'n> {
    boxes: Vec<(&'n Props, Side)>,
    name_boxes: Vec<Goal>,
    required: BTreeSet<&'n str>,
    forbidden: BTreeSet<&'n str>,
    min: u64,
    max: Option<u64>,
    needs: Vec<Need<'n>>,
    /// Every name that is spelled out somewhere.
    spelled: BTreeSet<&'n str>,
    patterns: Vec<&'n Pattern>,
    writer_declares: Vec<Arc<Declared>>,
    reader_declares: Vec<Arc<Declared>>,
}

#[derive(Clone, Copy)]
enum Need<'n> {
    /// A property that breaks this.
    Breaks(&'n Props, Side),
    /// A name that is not in this.
    BadName(&'n Node, Side),
}

/// What has been decided of the object: a name and what its value has to meet besides the boxes.
type Placed = BTreeMap<String, Vec<Goal>>;

/// A name, or the patterns that a name without a spelling matches.
enum Kind<'s> {
    Spelled(&'s str),
    Class(&'s [bool]),
}

impl Solver<'_> {
    pub(super) fn object(&mut self, literals: &[Goal], location: &[Goal]) -> Found {
        let Some(mut shape) = Shape::gather(literals) else { return Found::No };
        if self.lenient {
            shape.writer_declares = self.declared(location, Side::Writer);
            shape.reader_declares = self.declared(location, Side::Reader);
        }
        if shape.required.iter().any(|name| shape.forbidden.contains(name) || shape.is_unused(name))
        {
            return Found::No;
        }
        if shape.max.is_some_and(|max| shape.min.max(shape.required.len() as u64) > max) {
            return Found::No;
        }
        if shape.needs.len() > NEEDS_MAX {
            return Found::Unsure("the objects are too complex to compare", None);
        }
        let mut placed = Placed::new();
        self.place_property(&shape, 0, &mut placed, literals)
    }

    /// Gives need number `at` a property, in every way, then fills the object.
    fn place_property(
        &mut self,
        shape: &Shape<'_>,
        at: usize,
        placed: &mut Placed,
        literals: &[Goal],
    ) -> Found {
        let Some(need) = shape.needs.get(at) else {
            return self.fill_properties(shape, placed, literals);
        };
        let mut answer = Found::No;
        // Between two versions most properties are the same; those are passed over in a glance.
        if let Need::Breaks(props, _) = need
            && !self.spend(props.named.len() as u64 / GLANCES_PER_STEP)
        {
            return TOO_MUCH;
        }
        let mut names: BTreeSet<String> = match need {
            // Only names that the literal spells out can break its named part; any can break the rest.
            Need::Breaks(props, _)
                if props.patterns.is_empty() && matches!(props.rest.form, Form::True) =>
            {
                let named = props.named.iter().map(|(name, _)| name);
                named.filter(|name| !shape.keeps(props, name)).cloned().collect()
            }
            _ => shape
                .spelled
                .iter()
                .map(|name| (*name).to_owned())
                .chain(placed.keys().cloned())
                .collect(),
        };
        names.retain(|name| !shape.forbidden.contains(name.as_str()) && !shape.is_unused(name));
        for name in names {
            if !self.spend(1) {
                return TOO_MUCH;
            }
            let found = match self.need_at(shape, need, &name) {
                Some(alternatives) => {
                    self.try_name(shape, at, placed, &name, alternatives, literals)
                }
                None => continue,
            };
            match found {
                Found::Yes(value) => return Found::Yes(value),
                Found::Unsure(why, value) => answer = better(answer, why, value),
                Found::No => {}
            }
        }
        if let Need::Breaks(props, _) = need
            && props.patterns.is_empty()
            && matches!(props.rest.form, Form::True)
        {
            return answer;
        }
        match self.unspelled(shape, need, at, placed, literals) {
            Found::Yes(value) => Found::Yes(value),
            Found::Unsure(why, value) => better(answer, why, value),
            Found::No => answer,
        }
    }

    /// What the property `name` may do for the need: alternatives, each one goal for its value.
    fn need_at(&mut self, shape: &Shape<'_>, need: &Need<'_>, name: &str) -> Option<Vec<Goal>> {
        match need {
            Need::Breaks(props, side) => Some(
                props.of_name(name).iter().map(|inner| Goal::new(inner, false, *side)).collect(),
            ),
            Need::BadName(inner, side) => {
                let value = Value::String(name.to_owned());
                let bad = self.meets(&value, &[Goal::new(inner, false, *side)]) != Some(false);
                let _ = shape;
                bad.then(|| vec![Goal { node: node(Form::True), positive: true, side: *side }])
            }
        }
    }

    fn try_name(
        &mut self,
        shape: &Shape<'_>,
        at: usize,
        placed: &mut Placed,
        name: &str,
        alternatives: Vec<Goal>,
        literals: &[Goal],
    ) -> Found {
        let mut answer = Found::No;
        for goal in alternatives {
            let before = placed.get(name).cloned();
            let goals = placed.entry(name.to_owned()).or_default();
            goals.push(goal);
            let mut wanted = goals.clone();
            wanted.extend(shape.goals_of(&Kind::Spelled(name)));
            // The property alone first: most fail here, whatever the rest is.
            let alone = self.solve(wanted);
            let found = if alone.is_no() {
                Found::No
            } else {
                self.place_property(shape, at + 1, placed, literals)
            };
            match before {
                Some(before) => placed.insert(name.to_owned(), before),
                None => placed.remove(name),
            };
            match found {
                Found::Yes(value) => return Found::Yes(value),
                Found::Unsure(why, value) => answer = better(answer, why, value),
                Found::No => {}
            }
        }
        answer
    }

    /// Names that no schema spells out.
    fn unspelled(
        &mut self,
        shape: &Shape<'_>,
        need: &Need<'_>,
        at: usize,
        placed: &mut Placed,
        literals: &[Goal],
    ) -> Found {
        if shape.patterns.len() > PATTERNS_MAX {
            return Found::Unsure("too many patterns of property names to compare", None);
        }
        let mut answer = Found::No;
        for bits in 0..1_usize << shape.patterns.len() {
            if !self.spend(1) {
                return TOO_MUCH;
            }
            let class: Vec<bool> =
                (0..shape.patterns.len()).map(|at| bits >> at & 1 == 1).collect();
            if shape.is_class_unused(&class) {
                continue;
            }
            let alternatives: Vec<Goal> = match need {
                Need::Breaks(props, side) => shape
                    .of_class(props, &class)
                    .into_iter()
                    .map(|inner| Goal::new(inner, false, *side))
                    .collect(),
                Need::BadName(_, side) => {
                    vec![Goal { node: node(Form::True), positive: true, side: *side }]
                }
            };
            // Does any alternative have a value in this class at all?
            let mut alive = Vec::new();
            for goal in alternatives {
                let mut wanted = shape.goals_of(&Kind::Class(&class));
                wanted.push(goal.clone());
                if !self.solve(wanted).is_no() {
                    alive.push(goal);
                }
            }
            if alive.is_empty() {
                continue;
            }
            let bad_name = match need {
                Need::BadName(inner, side) => Some(Goal::new(inner, false, *side)),
                Need::Breaks(..) => None,
            };
            let found = match self.fresh_name(shape, &class, bad_name, placed) {
                Found::Yes(Value::String(name)) => {
                    self.try_name(shape, at, placed, &name, alive, literals)
                }
                Found::No => Found::No,
                Found::Unsure(why, _) => Found::Unsure(why, None),
                Found::Yes(_) => Found::Unsure("a property name could not be found", None),
            };
            match found {
                Found::Yes(value) => return Found::Yes(value),
                Found::Unsure(why, value) => answer = better(answer, why, value),
                Found::No => {}
            }
        }
        answer
    }

    /// A name of a class that is neither spelled out nor taken.
    fn fresh_name(
        &mut self,
        shape: &Shape<'_>,
        class: &[bool],
        extra: Option<Goal>,
        placed: &Placed,
    ) -> Found {
        let mut goals: Vec<Goal> = shape.name_boxes.clone();
        goals.extend(extra);
        let mut add = |form: Form, positive: bool| {
            goals.push(Goal { node: node(form), positive, side: Side::Writer });
        };
        add(Form::Types(TypeSet::STRING), true);
        for (pattern, matches) in shape.patterns.iter().zip(class) {
            add(Form::Pattern((*pattern).clone()), *matches);
        }
        let taken: BTreeSet<&str> =
            shape.spelled.iter().copied().chain(placed.keys().map(String::as_str)).collect();
        let mut taken: Vec<Value> = taken.into_iter().map(Value::from).collect();
        // "z" reads better in a witness than "a".
        if class.iter().all(|matches| !matches) && goals.len() == shape.patterns.len() + 1 {
            for name in ["z", "y", "x", "w", "v", "u"] {
                let value = Value::from(name);
                if !taken.contains(&value) && self.meets(&value, &goals) == Some(true) {
                    return Found::Yes(value);
                }
            }
        }
        let last = Form::Values(std::mem::take(&mut taken));
        goals.push(Goal { node: node(last), positive: false, side: Side::Writer });
        self.solve(goals)
    }

    /// Values for everything placed and required, and more properties where a minimum asks.
    fn fill_properties(&mut self, shape: &Shape<'_>, placed: &Placed, literals: &[Goal]) -> Found {
        let mut wanted = placed.clone();
        for name in &shape.required {
            wanted.entry((*name).to_owned()).or_default();
        }
        if shape.max.is_some_and(|max| wanted.len() as u64 > max) {
            return Found::No;
        }
        let mut unsure = None;
        let mut entries = Map::new();
        for (name, mut goals) in wanted {
            match self.name_allowed(shape, &name) {
                Some(true) => {}
                Some(false) => return Found::No,
                None => unsure = Some("a property name could not be judged"),
            }
            goals.extend(shape.goals_of(&Kind::Spelled(&name)));
            match self.solve(goals) {
                Found::No => return Found::No,
                Found::Yes(value) => {
                    entries.insert(name, value);
                }
                Found::Unsure(why, value) => {
                    unsure = Some(why);
                    entries.insert(name, value.unwrap_or(Value::Null));
                }
            }
        }
        if (entries.len() as u64) < shape.min {
            match self.add_more(shape, &mut entries) {
                Found::Yes(_) => {}
                other => return other,
            }
        }
        let value = Value::Object(entries);
        match (unsure, self.meets(&value, literals)) {
            (None, Some(true)) => Found::Yes(value),
            (Some(why), _) => Found::Unsure(why, Some(value)),
            (None, _) => self.another(shape, value, literals),
        }
    }

    /// The value is one of those that are excluded as a whole: try it with one more property.
    fn another(&mut self, shape: &Shape<'_>, value: Value, literals: &[Goal]) -> Found {
        let Value::Object(mut entries) = value else { return Found::No };
        let more =
            Shape { min: entries.len() as u64 + 1, ..shape.clone_for(entries.len() as u64 + 1) };
        if let Found::Yes(_) = self.add_more(&more, &mut entries) {
            let value = Value::Object(entries);
            if self.meets(&value, literals) == Some(true) {
                return Found::Yes(value);
            }
        }
        Found::Unsure("whole objects are excluded by value", None)
    }

    fn add_more(&mut self, shape: &Shape<'_>, entries: &mut Map<String, Value>) -> Found {
        if shape.min > FILL_MAX {
            return Found::Unsure("the witness would have too many properties", None);
        }
        if shape.max.is_some_and(|max| shape.min > max) {
            return Found::No;
        }
        let mut unsure = false;
        for name in shape.spelled.clone() {
            if entries.len() as u64 >= shape.min {
                return Found::Yes(Value::Null);
            }
            if entries.contains_key(name) || shape.forbidden.contains(name) || shape.is_unused(name)
            {
                continue;
            }
            if self.name_allowed(shape, name) != Some(true) {
                continue;
            }
            match self.solve(shape.goals_of(&Kind::Spelled(name))) {
                Found::Yes(value) => {
                    entries.insert(name.to_owned(), value);
                }
                Found::Unsure(..) => unsure = true,
                Found::No => {}
            }
        }
        for bits in 0..1_usize << shape.patterns.len().min(PATTERNS_MAX) {
            let class: Vec<bool> =
                (0..shape.patterns.len()).map(|at| bits >> at & 1 == 1).collect();
            let value = match self.solve(shape.goals_of(&Kind::Class(&class))) {
                Found::Yes(value) => value,
                Found::No => continue,
                Found::Unsure(..) => {
                    unsure = true;
                    continue;
                }
            };
            while (entries.len() as u64) < shape.min {
                let taken: Placed = entries.keys().map(|name| (name.clone(), Vec::new())).collect();
                match self.fresh_name(shape, &class, None, &taken) {
                    Found::Yes(Value::String(name)) => {
                        entries.insert(name, value.clone());
                    }
                    Found::No => break,
                    _ => {
                        unsure = true;
                        break;
                    }
                }
            }
        }
        match (entries.len() as u64 >= shape.min, unsure || shape.patterns.len() > PATTERNS_MAX) {
            (true, _) => Found::Yes(Value::Null),
            (false, true) => Found::Unsure("the number of properties could not be compared", None),
            (false, false) => Found::No,
        }
    }

    fn name_allowed(&mut self, shape: &Shape<'_>, name: &str) -> Option<bool> {
        self.meets(&Value::String(name.to_owned()), &shape.name_boxes)
    }
}

impl<'n> Shape<'n> {
    /// `None` when no object will do.
    fn gather(literals: &'n [Goal]) -> Option<Shape<'n>> {
        let mut shape = Shape {
            boxes: Vec::new(),
            name_boxes: Vec::new(),
            required: BTreeSet::new(),
            forbidden: BTreeSet::new(),
            min: 0,
            max: None,
            needs: Vec::new(),
            spelled: BTreeSet::new(),
            patterns: Vec::new(),
            writer_declares: Vec::new(),
            reader_declares: Vec::new(),
        };
        for goal in literals {
            match (&goal.node.form, goal.positive) {
                (Form::MinProps(len), true) => shape.min = shape.min.max(*len),
                (Form::MinProps(len), false) => shape.lower(len.checked_sub(1)?),
                (Form::MaxProps(len), true) => shape.lower(*len),
                (Form::MaxProps(len), false) => shape.min = shape.min.max(len.saturating_add(1)),
                (Form::Required(name), positive) => {
                    shape.spelled.insert(name);
                    let set = if positive { &mut shape.required } else { &mut shape.forbidden };
                    set.insert(name.as_str());
                }
                (Form::Props(props), true) => {
                    shape.mention(props);
                    shape.boxes.push((props, goal.side));
                }
                (Form::Props(props), false) => {
                    shape.mention(props);
                    shape.needs.push(Need::Breaks(props, goal.side));
                }
                (Form::Names(inner), true) => {
                    shape.name_boxes.push(Goal::new(inner, true, goal.side))
                }
                (Form::Names(inner), false) => shape.needs.push(Need::BadName(inner, goal.side)),
                _ => {}
            }
        }
        Some(shape)
    }

    fn lower(&mut self, len: u64) {
        self.max = Some(self.max.map_or(len, |known| known.min(len)));
    }

    fn mention(&mut self, props: &'n Props) {
        self.spelled.extend(props.named.iter().map(|(name, _)| name.as_str()));
        for (pattern, _) in &props.patterns {
            if !self.patterns.iter().any(|known| known.text == pattern.text) {
                self.patterns.push(pattern);
            }
        }
    }

    fn clone_for(&self, min: u64) -> Shape<'n> {
        Shape {
            boxes: self.boxes.clone(),
            name_boxes: self.name_boxes.clone(),
            required: self.required.clone(),
            forbidden: self.forbidden.clone(),
            min,
            max: self.max,
            needs: Vec::new(),
            spelled: self.spelled.clone(),
            patterns: self.patterns.clone(),
            writer_declares: self.writer_declares.clone(),
            reader_declares: self.reader_declares.clone(),
        }
    }

    /// What the boxes ask of the value of a property.
    fn goals_of(&self, kind: &Kind<'_>) -> Vec<Goal> {
        let mut goals = Vec::new();
        for (props, side) in &self.boxes {
            match kind {
                Kind::Spelled(name) => {
                    goals.extend(
                        props.of_name(name).iter().map(|inner| Goal::new(inner, true, *side)),
                    );
                }
                Kind::Class(class) => {
                    goals.extend(
                        self.of_class(props, class)
                            .into_iter()
                            .map(|inner| Goal::new(inner, true, *side)),
                    );
                }
            }
        }
        goals
    }

    /// Whether some box has for this name the very node that is to be broken.
    fn keeps(&self, props: &Props, name: &str) -> bool {
        let Some(wanted) = props.named(name) else { return false };
        self.boxes.iter().any(|(known, _)| match known.named(name) {
            Some(inner) => inner.id == wanted.id,
            None => known.patterns.is_empty() && known.rest.id == wanted.id,
        })
    }

    fn of_class<'p>(&self, props: &'p Props, class: &[bool]) -> Vec<&'p Node> {
        let mut nodes: Vec<&Node> = Vec::new();
        for (pattern, inner) in &props.patterns {
            let at = self.patterns.iter().position(|known| known.text == pattern.text);
            if at.is_some_and(|at| class[at]) {
                nodes.push(inner);
            }
        }
        if nodes.is_empty() {
            nodes.push(&props.rest);
        }
        nodes
    }

    /// The lenient level: only the reader declares it, and the writer leaves its objects open.
    fn is_unused(&self, name: &str) -> bool {
        self.reader_declares.iter().any(|declared| declared.has(name))
            && !self.writer_declares.iter().any(|declared| declared.has(name))
            && self.writer_is_open()
    }

    fn is_class_unused(&self, class: &[bool]) -> bool {
        let declared_by = |by: &[Arc<Declared>]| {
            self.patterns.iter().zip(class).any(|(pattern, matches)| {
                *matches
                    && by.iter().any(|declared| {
                        declared.patterns.iter().any(|known| known.text == pattern.text)
                    })
            })
        };
        declared_by(&self.reader_declares)
            && !declared_by(&self.writer_declares)
            && self.writer_is_open()
    }

    /// Whether the writer says nothing of the names that it does not declare.
    fn writer_is_open(&self) -> bool {
        self.boxes
            .iter()
            .filter(|(_, side)| *side == Side::Writer)
            .all(|(props, _)| matches!(props.rest.form, Form::True))
            && self.name_boxes.iter().all(|goal| goal.side != Side::Writer)
    }
}
