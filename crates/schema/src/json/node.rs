//! The small algebra that every JSON Schema is brought into.
//!
//! A node is a set of JSON values. Every keyword becomes a literal that speaks of one type only and
//! lets every other type through, so that a schema is the intersection of its literals and the
//! negation of a literal says which type the value has. Nodes are named by their content: equal
//! parts of two versions are the same node, and comparing them costs nothing.

use super::ratio::Ratio;
use super::text;
use crate::fingerprint::short;
use regex::Regex;
use serde_json::Value;
use std::fmt::Write;
use std::sync::Arc;

/// Cheap to clone; equal content has an equal id.
pub(crate) type Node = Arc<NodeBody>;

pub(crate) struct NodeBody {
    pub(crate) id: u128,
    pub(crate) form: Form,
}

pub(crate) enum Form {
    True,
    False,
    /// Each part with the step of the keyword location that leads to it.
    All(Vec<(String, Node)>),
    Any(Vec<Node>),
    One(Vec<Node>),
    Not(Node),
    /// A recursive `$ref`: the key of a target of the same schema.
    Ref(u128),
    Types(TypeSet),
    /// Sorted by their text.
    Values(Vec<Value>),
    Min {
        at: Ratio,
        exclusive: bool,
    },
    Max {
        at: Ratio,
        exclusive: bool,
    },
    MultipleOf(Ratio),
    MinLength(u64),
    MaxLength(u64),
    Pattern(Pattern),
    MinItems(u64),
    MaxItems(u64),
    Unique,
    Items {
        prefix: Vec<Node>,
        rest: Node,
    },
    Contains {
        of: Node,
        min: u64,
        max: Option<u64>,
    },
    MinProps(u64),
    MaxProps(u64),
    Required(String),
    Props(Props),
    Names(Node),
    /// A keyword that the algebra does not model; equal ones are equal, others are undecided.
    Opaque {
        keyword: String,
        inner: Vec<Node>,
        children: bool,
    },
}

/// `properties`, `patternProperties` and `additionalProperties`, which belong together.
pub(crate) struct Props {
    /// Sorted by name.
    pub(crate) named: Vec<(String, Node)>,
    pub(crate) patterns: Vec<(Pattern, Node)>,
    pub(crate) rest: Node,
}

impl Props {
    pub(crate) fn named(&self, name: &str) -> Option<&Node> {
        self.named
            .binary_search_by(|(known, _)| known.as_str().cmp(name))
            .ok()
            .map(|at| &self.named[at].1)
    }
}

#[derive(Clone)]
pub(crate) struct Pattern {
    pub(crate) text: Arc<str>,
    pub(crate) regex: Regex,
    /// The pattern in the syntax of our own engine.
    pub(crate) rust: Arc<str>,
}

/// The types of JSON, with numbers split in whole and other ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TypeSet(pub(crate) u8);

impl TypeSet {
    pub(crate) const NULL: TypeSet = TypeSet(1);
    pub(crate) const BOOLEAN: TypeSet = TypeSet(2);
    pub(crate) const INTEGER: TypeSet = TypeSet(4);
    pub(crate) const FRACTION: TypeSet = TypeSet(8);
    pub(crate) const NUMBER: TypeSet = TypeSet(12);
    pub(crate) const STRING: TypeSet = TypeSet(16);
    pub(crate) const ARRAY: TypeSet = TypeSet(32);
    pub(crate) const OBJECT: TypeSet = TypeSet(64);
    pub(crate) const ALL: TypeSet = TypeSet(127);
    /// The order in which witnesses are looked for.
    pub(crate) const EACH: [TypeSet; 7] = [
        TypeSet::OBJECT,
        TypeSet::STRING,
        TypeSet::INTEGER,
        TypeSet::FRACTION,
        TypeSet::BOOLEAN,
        TypeSet::ARRAY,
        TypeSet::NULL,
    ];

    pub(crate) fn parse(word: &str) -> Option<TypeSet> {
        Some(match word {
            "null" => TypeSet::NULL,
            "boolean" => TypeSet::BOOLEAN,
            "integer" => TypeSet::INTEGER,
            "number" => TypeSet::NUMBER,
            "string" => TypeSet::STRING,
            "array" => TypeSet::ARRAY,
            "object" => TypeSet::OBJECT,
            _ => return None,
        })
    }

    pub(crate) fn of(value: &Value) -> TypeSet {
        match value {
            Value::Null => TypeSet::NULL,
            Value::Bool(_) => TypeSet::BOOLEAN,
            Value::Number(number) if number.as_f64().is_none_or(|float| float.fract() == 0.0) => {
                TypeSet::INTEGER
            }
            Value::Number(_) => TypeSet::FRACTION,
            Value::String(_) => TypeSet::STRING,
            Value::Array(_) => TypeSet::ARRAY,
            Value::Object(_) => TypeSet::OBJECT,
        }
    }

    pub(crate) fn and(self, other: TypeSet) -> TypeSet {
        TypeSet(self.0 & other.0)
    }

    pub(crate) fn or(self, other: TypeSet) -> TypeSet {
        TypeSet(self.0 | other.0)
    }

    pub(crate) fn not(self) -> TypeSet {
        TypeSet(!self.0 & TypeSet::ALL.0)
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl Form {
    /// The types that a literal says something about.
    pub(crate) fn speaks_of(&self) -> TypeSet {
        match self {
            Form::Min { .. } | Form::Max { .. } | Form::MultipleOf(_) => TypeSet::NUMBER,
            Form::MinLength(_) | Form::MaxLength(_) | Form::Pattern(_) => TypeSet::STRING,
            Form::MinItems(_)
            | Form::MaxItems(_)
            | Form::Unique
            | Form::Items { .. }
            | Form::Contains { .. } => TypeSet::ARRAY,
            Form::MinProps(_)
            | Form::MaxProps(_)
            | Form::Required(_)
            | Form::Props(_)
            | Form::Names(_) => TypeSet::OBJECT,
            _ => TypeSet::ALL,
        }
    }
}

/// Makes a node and names it by its content.
pub(crate) fn node(mut form: Form) -> Node {
    if let Form::Values(values) = &mut form {
        values.sort_by_cached_key(text::sorted);
        values.dedup();
    }
    let mut name = String::new();
    let mut list = |word: &str, nodes: &mut dyn Iterator<Item = &Node>| {
        name.push_str(word);
        for node in nodes {
            let _ = write!(name, " {:x}", node.id);
        }
    };
    match &form {
        Form::True => name.push_str("true"),
        Form::False => name.push_str("false"),
        Form::All(parts) => {
            // Order does not matter for the set, so it does not for the name either.
            let mut ids: Vec<&Node> = parts.iter().map(|(_, node)| node).collect();
            ids.sort_by_key(|node| node.id);
            list("all", &mut ids.into_iter());
        }
        Form::Any(nodes) => list("any", &mut sorted(nodes)),
        Form::One(nodes) => list("one", &mut sorted(nodes)),
        Form::Not(inner) => list("not", &mut [inner].into_iter()),
        Form::Ref(key) => {
            let _ = write!(name, "ref {key:x}");
        }
        Form::Types(types) => {
            let _ = write!(name, "types {}", types.0);
        }
        Form::Values(values) => {
            let _ = write!(name, "values {}", text::sorted(&Value::Array(values.clone())));
        }
        Form::Min { at, exclusive } => {
            let _ = write!(name, "min {at:?} {exclusive}");
        }
        Form::Max { at, exclusive } => {
            let _ = write!(name, "max {at:?} {exclusive}");
        }
        Form::MultipleOf(step) => {
            let _ = write!(name, "multiple {step:?}");
        }
        Form::MinLength(len) => {
            let _ = write!(name, "minlen {len}");
        }
        Form::MaxLength(len) => {
            let _ = write!(name, "maxlen {len}");
        }
        Form::Pattern(pattern) => {
            let _ = write!(name, "pattern {}", pattern.text);
        }
        Form::MinItems(len) => {
            let _ = write!(name, "minitems {len}");
        }
        Form::MaxItems(len) => {
            let _ = write!(name, "maxitems {len}");
        }
        Form::Unique => name.push_str("unique"),
        Form::Items { prefix, rest } => list("items", &mut prefix.iter().chain([rest])),
        Form::Contains { of, min, max } => {
            let _ = write!(name, "contains {:x} {min} {max:?}", of.id);
        }
        Form::MinProps(len) => {
            let _ = write!(name, "minprops {len}");
        }
        Form::MaxProps(len) => {
            let _ = write!(name, "maxprops {len}");
        }
        Form::Required(property) => {
            let _ = write!(name, "required {property}");
        }
        Form::Props(props) => {
            name.push_str("props");
            for (property, node) in &props.named {
                let _ = write!(name, " {property:?}:{:x}", node.id);
            }
            for (pattern, node) in &props.patterns {
                let _ = write!(name, " /{:?}/:{:x}", pattern.text, node.id);
            }
            let _ = write!(name, " rest:{:x}", props.rest.id);
        }
        Form::Names(inner) => list("names", &mut [inner].into_iter()),
        Form::Opaque { keyword, inner, .. } => {
            list(&format!("opaque {keyword}"), &mut inner.iter())
        }
    }
    Arc::new(NodeBody { id: short(name.as_bytes()), form })
}

fn sorted(nodes: &[Node]) -> impl Iterator<Item = &Node> {
    let mut nodes: Vec<&Node> = nodes.iter().collect();
    nodes.sort_by_key(|node| node.id);
    nodes.into_iter()
}

pub(crate) fn truth(holds: bool) -> Node {
    node(if holds { Form::True } else { Form::False })
}

/// The intersection without a needless layer.
pub(crate) fn all(mut parts: Vec<(String, Node)>) -> Node {
    parts.retain(|(_, node)| !matches!(node.form, Form::True));
    if parts.iter().any(|(_, node)| matches!(node.form, Form::False)) && parts.len() == 1 {
        return truth(false);
    }
    if parts.is_empty() { truth(true) } else { node(Form::All(parts)) }
}

pub(crate) fn any(nodes: Vec<Node>) -> Node {
    match nodes.len() {
        0 => truth(false),
        _ if nodes.iter().any(|node| matches!(node.form, Form::True)) => truth(true),
        _ => node(Form::Any(nodes)),
    }
}

pub(crate) fn not(inner: Node) -> Node {
    match inner.form {
        Form::True => truth(false),
        Form::False => truth(true),
        _ => node(Form::Not(inner)),
    }
}
