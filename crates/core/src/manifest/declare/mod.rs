//! Trees into declared objects: every key known, every word understood, nothing twice.
//!
//! Law: all that is wrong is told at once, each with its place and its entry.

mod parser;
mod topic;
mod words;

use self::parser::{Keys, Parser};
use self::words::number;
use super::Problem;
use super::live::policy;
use super::node::{Mark, Node, NodeValue};
use crate::catalog::{Fields, ObjectKey};
use crate::fault::Fault;
use crate::name::NamespaceName;
use crate::position::Position;
use crate::schema::{Compatibility, SchemaType, SubjectName};
use crate::settings::Limit;
use serde_json::json;
use std::collections::BTreeMap;

/// The only version of the format so far.
const API_VERSION: &str = "danube/v1";
/// The owner of manifests that name none.
const DEFAULT_OWNER: &str = "apply";
/// Objects of one manifest.
const OBJECTS_MAX: usize = 50_000;

/// What a manifest declares.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// Whose it is.
    pub owner: String,
    /// The objects, in the order in which they are made.
    pub objects: Vec<Declared>,
}

/// One declared object.
#[derive(Debug, Clone, PartialEq)]
pub struct Declared {
    /// Which.
    pub key: ObjectKey,
    /// Where it is declared.
    pub at: Mark,
    /// What is declared of it, in the names of [`super::fields`].
    pub fields: Fields,
    /// Where a new subscription starts.
    pub start: Option<Position>,
    /// Whether a dead-letter topic that a topic names is made when it does not exist.
    pub makes_dead_letters: bool,
    /// What a schema says.
    pub schema: Option<SchemaSource>,
}

/// The definition of a declared schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaSource {
    /// Its language.
    pub schema_type: SchemaType,
    /// The definition.
    pub definition: String,
    /// For people.
    pub description: String,
    /// For people and programs.
    pub tags: Vec<String>,
}

impl Manifest {
    /// Parses documents. Definitions that are in files of their own are in `files`, by the name
    /// that the manifest has for them.
    ///
    /// # Errors
    /// Everything that is wrong.
    pub fn parse(
        documents: &[Node],
        owner: Option<&str>,
        files: &BTreeMap<String, String>,
    ) -> Result<Manifest, Vec<Problem>> {
        let mut parser = Parser { files, problems: Vec::new(), objects: Vec::new(), owner: None };
        documents.iter().for_each(|document| parser.document(document));
        parser.check_duplicates();
        if !parser.problems.is_empty() {
            return Err(parser.problems);
        }
        let mut objects = parser.objects;
        // Stable: within a kind the order stays as written.
        objects.sort_by_key(|declared| match declared.key {
            ObjectKey::Namespace(_) => 0,
            ObjectKey::Schema(_) => 1,
            ObjectKey::Topic(_) => 2,
            ObjectKey::Subscription(..) => 3,
        });
        let owner = owner.map(str::to_owned).or(parser.owner);
        Ok(Manifest { owner: owner.unwrap_or_else(|| DEFAULT_OWNER.to_owned()), objects })
    }

    /// The files that definitions are in, as far as the documents can be read.
    pub fn files(documents: &[Node]) -> Vec<String> {
        let maps = documents.iter().filter_map(pairs);
        let schemas = maps.flatten().filter(|(key, _)| word(key) == Some("schemas"));
        let entries = schemas.filter_map(|(_, list)| match &list.value {
            NodeValue::List(entries) => Some(entries),
            _ => None,
        });
        let keys = entries.flatten().filter_map(pairs).flatten();
        let files = keys.filter(|(key, _)| word(key) == Some("file"));
        files.filter_map(|(_, file)| word(file).map(str::to_owned)).collect()
    }
}

fn pairs(node: &Node) -> Option<&Vec<(Node, Node)>> {
    match &node.value {
        NodeValue::Map(pairs) => Some(pairs),
        _ => None,
    }
}

fn word(node: &Node) -> Option<&str> {
    match &node.value {
        NodeValue::Plain(text) | NodeValue::Text(text) => Some(text),
        _ => None,
    }
}

impl<'a> Parser<'a> {
    fn document(&mut self, document: &'a Node) {
        const KEYS: [&str; 5] = ["apiVersion", "metadata", "namespaces", "schemas", "topics"];
        if document.value == NodeValue::Null {
            return;
        }
        let Some(keys) = self.keys(document, "", &KEYS) else { return };
        self.take(&keys, "apiVersion", |version| match version {
            API_VERSION => Ok(()),
            other => Err(Fault::invalid(format!(
                "`{}` is not known; this version reads {API_VERSION}",
                other.escape_debug()
            ))),
        });
        if let Some((_, node)) = keys.pairs.get("metadata")
            && let Some(metadata) = self.keys(node, "metadata", &["owner"])
        {
            let owner = self.take(&metadata, "owner", |owner| Ok(owner.to_owned()));
            match (&self.owner, owner) {
                (Some(known), Some(owner)) if *known != owner => {
                    let why = format!("two owners, `{known}` and `{owner}`; apply them separately");
                    self.wrong(metadata.at, "metadata", why);
                }
                (None, owner) => self.owner = owner,
                _ => {}
            }
        }
        for node in self.list(&keys, "namespaces") {
            self.namespace(node);
        }
        for node in self.list(&keys, "schemas") {
            self.schema(node);
        }
        for node in self.list(&keys, "topics") {
            self.topic(node);
        }
    }

    pub(super) fn declare(&mut self, key: ObjectKey, at: &Mark, fields: Fields) -> &mut Declared {
        let declared = Declared {
            key,
            at: at.clone(),
            fields,
            start: None,
            makes_dead_letters: true,
            schema: None,
        };
        self.objects.push(declared);
        self.objects.last_mut().expect("just pushed")
    }

    fn namespace(&mut self, node: &'a Node) {
        if let Some(text) = word(node) {
            match NamespaceName::parse(text) {
                Ok(name) => drop(self.declare(ObjectKey::Namespace(name), &node.at, Fields::new())),
                Err(fault) => self.wrong(&node.at, "namespace", fault.message),
            }
            return;
        }
        let Some(mut keys) = self.keys(node, "namespace", &["name", "policies"]) else { return };
        let Some(name) = self.name(&keys, "name", NamespaceName::parse) else { return };
        keys.entry = format!("namespace `{name}`");
        let mut fields = Fields::new();
        self.policies(&keys, &mut fields);
        self.declare(ObjectKey::Namespace(name), &node.at, fields);
    }

    pub(super) fn policies(&mut self, keys: &Keys<'a>, fields: &mut Fields) {
        let Some((_, node)) = keys.pairs.get("policies") else { return };
        let names = crate::settings::LIMITS.map(Limit::as_str);
        let Some(policies) = self.keys(node, &keys.entry, &names) else { return };
        for name in names {
            let value = self.take(&policies, name, number::<u32>);
            if name == Limit::MaxMessageSize.as_str() && value == Some(0) {
                let why = format!("`{name}` is 0, so no message could be published; give bytes");
                self.wrong(&node.at, &keys.entry, why);
            }
            self.put(fields, &policy(name), value);
        }
    }

    fn schema(&mut self, node: &'a Node) {
        const KEYS: [&str; 7] =
            ["subject", "type", "definition", "file", "compatibility", "description", "tags"];
        let Some(mut keys) = self.keys(node, "schema", &KEYS) else { return };
        let Some(subject) = self.name(&keys, "subject", SubjectName::parse) else { return };
        keys.entry = format!("schema `{subject}`");
        let schema_type = self.name(&keys, "type", str::parse::<SchemaType>);
        let inline = self.take(&keys, "definition", |text| Ok(text.to_owned()));
        let files = self.files;
        let file = self.take(&keys, "file", |name| {
            let missing =
                || Fault::invalid(format!("file `{}` was not sent along", name.escape_debug()));
            files.get(name).cloned().ok_or_else(missing)
        });
        let has = |key: &str| keys.pairs.contains_key(key);
        let needs = !matches!(
            schema_type,
            Some(SchemaType::String | SchemaType::Number | SchemaType::Bytes) | None
        );
        match (has("definition"), has("file")) {
            (true, true) => self.wrong(
                &node.at,
                &keys.entry,
                "`definition` and `file` are both there; leave one out",
            ),
            (false, false) if needs => {
                self.wrong(&node.at, &keys.entry, "the entry has neither `definition` nor `file`");
            }
            _ => {}
        }
        let compatibility = self.take(&keys, "compatibility", str::parse::<Compatibility>);
        let description = self.take(&keys, "description", |text| Ok(text.to_owned()));
        let tags = self.list(&keys, "tags").iter().filter_map(word).map(str::to_owned).collect();
        let Some(schema_type) = schema_type else { return };
        let mut fields = Fields::from([("type".to_owned(), json!(schema_type.as_str()))]);
        self.put(&mut fields, "compatibility", compatibility.map(Compatibility::as_str));
        let declared = self.declare(ObjectKey::Schema(subject), &node.at, fields);
        declared.schema = Some(SchemaSource {
            schema_type,
            definition: inline.or(file).unwrap_or_default(),
            description: description.unwrap_or_default(),
            tags,
        });
    }

    fn check_duplicates(&mut self) {
        let mut seen: BTreeMap<ObjectKey, Mark> = BTreeMap::new();
        let mut problems = Vec::new();
        for declared in &self.objects {
            match seen.get(&declared.key) {
                Some(first) => problems.push(Problem {
                    at: Some(declared.at.clone()),
                    entry: declared.key.to_string(),
                    why: format!("declared twice, first at {first}"),
                }),
                None => drop(seen.insert(declared.key.clone(), declared.at.clone())),
            }
        }
        if self.objects.len() > OBJECTS_MAX {
            problems.push(Problem {
                at: None,
                entry: String::new(),
                why: format!("{} objects; a manifest can have {OBJECTS_MAX}", self.objects.len()),
            });
        }
        self.problems.append(&mut problems);
    }
}
