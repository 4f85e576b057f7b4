//! What all entries of a manifest are read with: known keys, each once, and words that are understood.
//!
//! Law: a mistake is noted and reading goes on, so that all mistakes are told at once.

use super::words::nearest;
use super::{Declared, word};
use crate::catalog::Fields;
use crate::fault::Fault;
use crate::manifest::Problem;
use crate::manifest::node::{Mark, Node, NodeValue};
use serde_json::Value;
use std::collections::BTreeMap;

/// One level of a map while it is read: its keys, and the entry it belongs to.
pub(super) struct Keys<'a> {
    pub(super) at: &'a Mark,
    pub(super) entry: String,
    pub(super) pairs: BTreeMap<&'a str, (&'a Node, &'a Node)>,
}

/// A manifest while it is read.
pub(super) struct Parser<'a> {
    pub(super) files: &'a BTreeMap<String, String>,
    pub(super) problems: Vec<Problem>,
    pub(super) objects: Vec<Declared>,
    pub(super) owner: Option<String>,
}

impl<'a> Parser<'a> {
    pub(super) fn wrong(&mut self, at: &Mark, entry: &str, why: impl Into<String>) {
        let problem = Problem { at: Some(at.clone()), entry: entry.to_owned(), why: why.into() };
        self.problems.push(problem);
    }

    /// The keys of a map, each once and each known.
    pub(super) fn keys(&mut self, node: &'a Node, entry: &str, known: &[&str]) -> Option<Keys<'a>> {
        let NodeValue::Map(found) = &node.value else {
            self.wrong(
                &node.at,
                entry,
                format!(
                    "here is {}, where keys are wanted: {}",
                    node.value.kind(),
                    known.join(", ")
                ),
            );
            return None;
        };
        let mut pairs: BTreeMap<&str, (&Node, &Node)> = BTreeMap::new();
        for (key, value) in found {
            let Some(name) = word(key) else {
                self.wrong(&key.at, entry, format!("a key is {}, not a word", key.value.kind()));
                continue;
            };
            if !known.contains(&name) && !known.is_empty() {
                let near = nearest(name, known);
                let hint = near.map_or_else(
                    || format!("known are {}", known.join(", ")),
                    |near| format!("did you mean `{near}`?"),
                );
                self.wrong(
                    &key.at,
                    entry,
                    format!("unknown key `{}`; {hint}", name.escape_debug()),
                );
                continue;
            }
            if let Some((first, _)) = pairs.get(name) {
                let line = first.at.line;
                self.wrong(
                    &key.at,
                    entry,
                    format!("key `{name}` is there twice, first in line {line}"),
                );
                continue;
            }
            pairs.insert(name, (key, value));
        }
        Some(Keys { at: &node.at, entry: entry.to_owned(), pairs })
    }

    pub(super) fn list(&mut self, keys: &Keys<'a>, name: &str) -> &'a [Node] {
        match keys.pairs.get(name).map(|(_, node)| (*node, &node.value)) {
            None | Some((_, NodeValue::Null)) => &[],
            Some((_, NodeValue::List(nodes))) => nodes,
            Some((node, other)) => {
                let why = format!("`{name}` is {}, where a list is wanted", other.kind());
                self.wrong(&node.at, &keys.entry, why);
                &[]
            }
        }
    }

    /// A word under `name`, understood by `parse`.
    pub(super) fn take<T>(
        &mut self,
        keys: &Keys<'a>,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, Fault>,
    ) -> Option<T> {
        let (_, node) = keys.pairs.get(name)?;
        match &node.value {
            NodeValue::Null => None,
            NodeValue::Plain(text) | NodeValue::Text(text) => match parse(text) {
                Ok(value) => Some(value),
                Err(fault) => {
                    self.wrong(&node.at, &keys.entry, format!("`{name}`: {}", fault.message));
                    None
                }
            },
            other => {
                let why = format!("`{name}` is {}, where a word is wanted", other.kind());
                self.wrong(&node.at, &keys.entry, why);
                None
            }
        }
    }

    pub(super) fn put(
        &mut self,
        fields: &mut Fields,
        field: &str,
        value: Option<impl Into<Value>>,
    ) {
        if let Some(value) = value {
            fields.insert(field.to_owned(), value.into());
        }
    }

    /// The name of an entry; without one, nothing else of it is read.
    pub(super) fn name<T: ToString>(
        &mut self,
        keys: &Keys<'a>,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, Fault>,
    ) -> Option<T> {
        if !keys.pairs.contains_key(name) {
            let why = format!("the entry has no `{name}`");
            self.wrong(keys.at, &keys.entry, why);
        }
        self.take(keys, name, parse)
    }
}
