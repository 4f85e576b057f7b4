//! Trees into declared objects: every key known, every word understood, nothing twice.
//!
//! Law: all that is wrong is told at once, each with its place and its entry.

use super::Problem;
use super::live::policy;
use super::node::{Mark, Node, NodeValue};
use super::quantity::{duration_ms, size};
use crate::catalog::{Fields, ObjectKey};
use crate::fault::Fault;
use crate::intent::{Delivery, Intent, WalSyncMode};
use crate::name::{NamespaceName, SubscriptionName, TopicName};
use crate::position::Position;
use crate::schema::{Compatibility, SchemaType, SubjectName, ValidationPolicy};
use crate::settings::Limit;
use serde_json::{Value, json};
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

/// One level of a map while it is read: its keys, and the entry it belongs to.
struct Keys<'a> {
    at: &'a Mark,
    entry: String,
    pairs: BTreeMap<&'a str, (&'a Node, &'a Node)>,
}

struct Parser<'a> {
    files: &'a BTreeMap<String, String>,
    problems: Vec<Problem>,
    objects: Vec<Declared>,
    owner: Option<String>,
}

impl<'a> Parser<'a> {
    fn wrong(&mut self, at: &Mark, entry: &str, why: impl Into<String>) {
        let problem = Problem { at: Some(at.clone()), entry: entry.to_owned(), why: why.into() };
        self.problems.push(problem);
    }

    /// The keys of a map, each once and each known.
    fn keys(&mut self, node: &'a Node, entry: &str, known: &[&str]) -> Option<Keys<'a>> {
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

    fn list(&mut self, keys: &Keys<'a>, name: &str) -> &'a [Node] {
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
    fn take<T>(
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

    fn put(&mut self, fields: &mut Fields, field: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            fields.insert(field.to_owned(), value.into());
        }
    }

    /// The name of an entry; without one, nothing else of it is read.
    fn name<T: ToString>(
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

    fn declare(&mut self, key: ObjectKey, at: &Mark, fields: Fields) -> &mut Declared {
        let declared = Declared { key, at: at.clone(), fields, start: None, schema: None };
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

    fn policies(&mut self, keys: &Keys<'a>, fields: &mut Fields) {
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

    fn topic(&mut self, node: &'a Node) {
        const KEYS: [&str; 10] = [
            "name",
            "intent",
            "delivery",
            "partitions",
            "schema",
            "policies",
            "retention",
            "wal_sync",
            "labels",
            "subscriptions",
        ];
        let Some(mut keys) = self.keys(node, "topic", &KEYS) else { return };
        let Some(name) = self.name(&keys, "name", topic_name) else { return };
        keys.entry = format!("topic `{name}`");
        let mut fields = Fields::new();
        let intent = self.take(&keys, "intent", Intent::parse);
        let delivery = self.take(&keys, "delivery", Delivery::parse);
        if let (Some(intent), Some(delivery)) = (intent, delivery) {
            let own = intent.expand(&name).delivery;
            if own != delivery {
                let why = format!(
                    "intent `{intent}` means delivery {}, and {} is declared; leave one out",
                    own.as_str(),
                    delivery.as_str()
                );
                self.wrong(&node.at, &keys.entry, why);
            }
        }
        self.put(&mut fields, "intent", intent.map(Intent::as_str));
        self.put(&mut fields, "delivery", delivery.map(Delivery::as_str));
        let partitions = self.take(&keys, "partitions", |text| match number::<u32>(text)? {
            0 => Err(Fault::invalid("0 partitions; leave it out for a topic without partitions")),
            count => Ok(count),
        });
        self.put(&mut fields, "partitions", Some(partitions.unwrap_or(0)));
        let sync = self.take(&keys, "wal_sync", WalSyncMode::parse);
        self.put(&mut fields, "wal_sync", sync.map(WalSyncMode::as_str));
        self.policies(&keys, &mut fields);
        self.retention(&keys, &mut fields);
        self.topic_schema(&keys, &mut fields);
        self.labels(&keys, &mut fields);
        let subscriptions = self.list(&keys, "subscriptions");
        self.declare(ObjectKey::Topic(name.clone()), &node.at, fields);
        for node in subscriptions {
            self.subscription(&name, node);
        }
    }

    fn retention(&mut self, keys: &Keys<'a>, fields: &mut Fields) {
        let Some((_, node)) = keys.pairs.get("retention") else { return };
        let Some(retention) = self.keys(node, &keys.entry, &["time", "bytes"]) else { return };
        let time = self.take(&retention, "time", duration_ms);
        let bytes = self.take(&retention, "bytes", size);
        self.put(fields, "retention.time_ms", time);
        self.put(fields, "retention.bytes", bytes);
    }

    fn topic_schema(&mut self, keys: &Keys<'a>, fields: &mut Fields) {
        const KEYS: [&str; 3] = ["subject", "validation", "payload_validation"];
        let Some((_, node)) = keys.pairs.get("schema") else { return };
        let Some(schema) = self.keys(node, &keys.entry, &KEYS) else { return };
        let subject = self.name(&schema, "subject", SubjectName::parse);
        let validation = self.take(&schema, "validation", str::parse::<ValidationPolicy>);
        let payload = self.take(&schema, "payload_validation", boolean);
        self.put(fields, "schema.subject", subject.map(|subject| subject.to_string()));
        let validation = validation.unwrap_or_default();
        self.put(fields, "schema.validation", Some(validation.as_str()));
        self.put(fields, "schema.payload_validation", Some(payload.unwrap_or(false)));
    }

    fn labels(&mut self, keys: &Keys<'a>, fields: &mut Fields) {
        let Some((_, node)) = keys.pairs.get("labels") else { return };
        let Some(labels) = self.keys(node, &keys.entry, &[]) else { return };
        for name in labels.pairs.keys().copied().collect::<Vec<_>>() {
            let value = self.take(&labels, name, |text| Ok(text.to_owned()));
            self.put(fields, &format!("labels.{name}"), value);
        }
    }

    fn subscription(&mut self, topic: &TopicName, node: &'a Node) {
        const KEYS: [&str; 5] = ["name", "type", "start", "failure_policy", "dispatch"];
        let entry = format!("topic `{topic}`, subscription");
        let Some(mut keys) = self.keys(node, &entry, &KEYS) else { return };
        let Some(name) = self.name(&keys, "name", SubscriptionName::parse) else { return };
        keys.entry = format!("topic `{topic}`, subscription `{name}`");
        let mut fields = Fields::new();
        let kind = self.take(&keys, "type", crate::policy::SubscriptionType::parse);
        let kind = kind.unwrap_or(crate::policy::SubscriptionType::Shared);
        self.put(&mut fields, "type", Some(kind.as_str()));
        let start = self.take(&keys, "start", Position::parse);
        self.failure_policy(&keys, &mut fields);
        if let Some((_, node)) = keys.pairs.get("dispatch")
            && let Some(dispatch) = self.keys(node, &keys.entry, &["max_unacked_messages"])
        {
            let max = self.take(&dispatch, "max_unacked_messages", number::<u32>);
            self.put(&mut fields, "dispatch.max_unacked_messages", max);
        }
        let key = ObjectKey::Subscription(topic.clone(), name);
        self.declare(key, &node.at, fields).start = Some(start.unwrap_or(Position::Latest));
    }

    fn failure_policy(&mut self, keys: &Keys<'a>, fields: &mut Fields) {
        const NUMBERS: [&str; 4] = [
            "max_redelivery_count",
            "ack_timeout_ms",
            "base_redelivery_delay_ms",
            "max_redelivery_delay_ms",
        ];
        const WORDS: [&str; 2] = ["backoff_strategy", "poison_policy"];
        let known = [&NUMBERS[..], &WORDS[..], &["dead_letter_topic"]].concat();
        let Some((_, node)) = keys.pairs.get("failure_policy") else { return };
        let Some(policy) = self.keys(node, &keys.entry, &known) else { return };
        for name in NUMBERS {
            let value = self.take(&policy, name, number::<u64>);
            self.put(fields, &format!("failure_policy.{name}"), value);
        }
        let choices: [&[&str]; 2] = [&["fixed", "exponential"], &["dead_letter", "block", "drop"]];
        for (name, choices) in WORDS.into_iter().zip(choices) {
            let value = self.take(&policy, name, |text| one_of(text, choices));
            self.put(fields, &format!("failure_policy.{name}"), value);
        }
        let target = self.take(&policy, "dead_letter_topic", topic_name);
        let target = target.map(|name| name.to_string());
        self.put(fields, "failure_policy.dead_letter_topic", target);
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

/// `/namespace/topic`, or `topic` in the namespace `default`; a base name.
fn topic_name(text: &str) -> Result<TopicName, Fault> {
    let whole = match (text.starts_with('/'), text.contains('/')) {
        (true, _) => text.to_owned(),
        (false, true) => format!("/{text}"),
        (false, false) => format!("/{}/{text}", crate::catalog::DEFAULT_NAMESPACE),
    };
    let name = TopicName::parse(&whole)?;
    match name.partition() {
        Some((base, _)) => Err(Fault::invalid(format!(
            "`{name}` is one partition; declare `{base}` with its number of partitions"
        ))),
        None => Ok(name),
    }
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, Fault> {
    let wrong =
        || Fault::invalid(format!("`{}` is not a number from 0 up that fits", text.escape_debug()));
    text.replace('_', "").parse().map_err(|_| wrong())
}

fn boolean(text: &str) -> Result<bool, Fault> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(Fault::invalid(format!("`{}` is neither true nor false", text.escape_debug()))),
    }
}

fn one_of(text: &str, choices: &[&'static str]) -> Result<&'static str, Fault> {
    let wanted = text.to_ascii_lowercase().replace('-', "_");
    choices.iter().find(|choice| **choice == wanted).copied().ok_or_else(|| {
        let known = choices.join(", ");
        Fault::invalid(format!("`{}` is not known; known are {known}", text.escape_debug()))
    })
}

/// The known key that is at most two letters away.
fn nearest<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    let near = known.iter().map(|key| (distance(name, key), *key));
    near.filter(|(distance, key)| *distance <= 2 && *distance < key.len()).min().map(|(_, key)| key)
}

/// Letters to insert, remove or replace (Levenshtein).
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.chars().take(64).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in right.iter().enumerate() {
            let cost = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = cost.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[right.len()]
}
