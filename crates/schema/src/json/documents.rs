//! The document and those it refers to, with every place that has a name of its own.
//!
//! Law: what is not in the document or in the registry does not exist; nothing is fetched.

use crate::error::SchemaError;
use crate::limits::{REFERENCES_LEN_MAX, REFERENCES_MAX};
use crate::references::References;
use danube_core::schema::SchemaType;
use serde_json::Value;
use std::collections::BTreeMap;

use super::text;

/// Which rules a document follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Draft {
    Draft6,
    Draft7,
    Draft201909,
    Draft202012,
}

impl Draft {
    fn of(document: &Value) -> Result<Draft, SchemaError> {
        let Some(uri) = document.get("$schema").and_then(Value::as_str) else {
            return Ok(Draft::Draft202012);
        };
        let bare = uri.trim_end_matches('#');
        let bare =
            bare.strip_prefix("https://").or_else(|| bare.strip_prefix("http://")).unwrap_or(bare);
        Ok(match bare {
            "json-schema.org/draft-06/schema" => Draft::Draft6,
            "json-schema.org/draft-07/schema" => Draft::Draft7,
            "json-schema.org/draft/2019-09/schema" => Draft::Draft201909,
            "json-schema.org/draft/2020-12/schema" | "json-schema.org/schema" => Draft::Draft202012,
            _ => {
                return Err(SchemaError::invalid(
                    SchemaType::JsonSchema,
                    "#/$schema",
                    format!(
                        "`{uri}` is not known here; use draft-06, draft-07, 2019-09 or 2020-12"
                    ),
                ));
            }
        })
    }

    pub(crate) fn validator(self) -> jsonschema::Draft {
        match self {
            Draft::Draft6 => jsonschema::Draft::Draft6,
            Draft::Draft7 => jsonschema::Draft::Draft7,
            Draft::Draft201909 => jsonschema::Draft::Draft201909,
            Draft::Draft202012 => jsonschema::Draft::Draft202012,
        }
    }

    /// Whether `$ref` silences its neighbours, and other ways of the older drafts.
    pub(crate) fn is_old(self) -> bool {
        matches!(self, Draft::Draft6 | Draft::Draft7)
    }

    /// Whether a list under `items` describes a tuple.
    pub(crate) fn has_item_lists(self) -> bool {
        self != Draft::Draft202012
    }
}

/// A place in one of the documents.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) document: usize,
    pub(crate) pointer: String,
}

pub(crate) struct Documents {
    texts: Vec<(String, Value)>,
    draft: Draft,
    /// Absolute URI without fragment → where that resource starts.
    resources: BTreeMap<String, Place>,
    /// Where a resource starts → its URI.
    bases: BTreeMap<Place, String>,
    /// URI of the resource and anchor → place.
    anchors: BTreeMap<(String, String), Place>,
    dynamic_anchors: BTreeMap<String, Vec<Place>>,
    has_recursive_anchor: bool,
}

impl Documents {
    pub(crate) fn gather(
        root: &Value,
        references: &dyn References,
    ) -> Result<Documents, SchemaError> {
        let mut documents = Documents {
            texts: Vec::new(),
            draft: Draft::of(root)?,
            resources: BTreeMap::new(),
            bases: BTreeMap::new(),
            anchors: BTreeMap::new(),
            dynamic_anchors: BTreeMap::new(),
            has_recursive_anchor: false,
        };
        let mut wanted = documents.enter(String::new(), root.clone());
        let mut pulled_len = 0;
        while let Some((place, uri, raw)) = wanted.pop() {
            if documents.resources.contains_key(&uri) {
                continue;
            }
            // The registry may know it by the text of the reference or by the resolved URI.
            let found = [raw.as_str(), uri.as_str()]
                .into_iter()
                .find_map(|name| references.definition(name).map(|bytes| (name, bytes)));
            let Some((_, bytes)) = found else {
                // A metaschema is known to every validator; comparing against one is undecided.
                if uri.contains("json-schema.org/draft") {
                    continue;
                }
                return Err(SchemaError::UnknownReference {
                    kind: SchemaType::JsonSchema,
                    path: format!("#{}", place.pointer),
                    name: raw,
                });
            };
            pulled_len += bytes.len();
            for (what, got, max) in [
                ("its number of references", documents.texts.len(), REFERENCES_MAX),
                ("the length of its references in bytes", pulled_len, REFERENCES_LEN_MAX),
            ] {
                if got > max {
                    return Err(SchemaError::TooLarge {
                        kind: SchemaType::JsonSchema,
                        what,
                        got,
                        max,
                    });
                }
            }
            let value = text::parse(SchemaType::JsonSchema, &bytes)?;
            wanted.extend(documents.enter(uri, value));
        }
        Ok(documents)
    }

    /// Adds a document and gives what it refers to: where, resolved URI, text of the reference.
    fn enter(&mut self, uri: String, value: Value) -> Vec<(Place, String, String)> {
        let document = self.texts.len();
        let place = Place { document, pointer: String::new() };
        self.resources.insert(uri.clone(), place.clone());
        self.bases.insert(place.clone(), uri.clone());
        self.texts.push((uri.clone(), value.clone()));
        let mut wanted = Vec::new();
        self.walk(&value, place, &uri, &mut wanted);
        wanted
    }

    fn walk(
        &mut self,
        value: &Value,
        place: Place,
        base: &str,
        wanted: &mut Vec<(Place, String, String)>,
    ) {
        let step = |place: &Place, key: &str| Place {
            document: place.document,
            pointer: format!("{}/{}", place.pointer, escape(key)),
        };
        match value {
            Value::Object(object) => {
                let mut base = base.to_owned();
                let silenced = self.draft.is_old() && object.contains_key("$ref");
                if let Some(id) = object.get("$id").and_then(Value::as_str).filter(|_| !silenced) {
                    if let Some(anchor) = id.strip_prefix('#') {
                        self.anchors.insert((base.clone(), anchor.to_owned()), place.clone());
                    } else {
                        base = join(&base, id.trim_end_matches('#'));
                        self.resources.insert(base.clone(), place.clone());
                        self.bases.insert(place.clone(), base.clone());
                    }
                }
                for key in ["$anchor", "$dynamicAnchor"] {
                    if let Some(anchor) = object.get(key).and_then(Value::as_str) {
                        self.anchors.insert((base.clone(), anchor.to_owned()), place.clone());
                        if key == "$dynamicAnchor" {
                            self.dynamic_anchors
                                .entry(anchor.to_owned())
                                .or_default()
                                .push(place.clone());
                        }
                    }
                }
                self.has_recursive_anchor |=
                    object.get("$recursiveAnchor") == Some(&Value::Bool(true));
                for key in ["$ref", "$dynamicRef"] {
                    if let Some(reference) = object.get(key).and_then(Value::as_str) {
                        let raw = reference.split('#').next().unwrap_or("");
                        if !raw.is_empty() {
                            wanted.push((step(&place, key), join(&base, raw), raw.to_owned()));
                        }
                    }
                }
                for (key, inner) in object {
                    // Data is not schema, whatever it looks like.
                    if !matches!(key.as_str(), "enum" | "const" | "default" | "examples") {
                        self.walk(inner, step(&place, key), &base, wanted);
                    }
                }
            }
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    self.walk(item, step(&place, &at.to_string()), base, wanted);
                }
            }
            _ => {}
        }
    }

    pub(crate) fn draft(&self) -> Draft {
        self.draft
    }

    pub(crate) fn root(&self) -> Place {
        Place { document: 0, pointer: String::new() }
    }

    pub(crate) fn value(&self, place: &Place) -> Option<&Value> {
        self.texts.get(place.document)?.1.pointer(&place.pointer)
    }

    /// The documents besides the first, by URI.
    pub(crate) fn external(&self) -> BTreeMap<String, Value> {
        self.texts.iter().skip(1).cloned().collect()
    }

    /// Where a reference written at `from` leads.
    pub(crate) fn resolve(&self, from: &Place, reference: &str) -> Option<Place> {
        let (uri, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let base = self.base(from);
        let base = if uri.is_empty() { base.to_owned() } else { join(base, uri) };
        let start = self.resources.get(&base)?;
        let fragment = unescape_uri(fragment);
        let place = if fragment.is_empty() {
            start.clone()
        } else if fragment.starts_with('/') {
            Place { document: start.document, pointer: format!("{}{fragment}", start.pointer) }
        } else {
            self.anchors.get(&(base, fragment))?.clone()
        };
        self.value(&place).is_some().then_some(place)
    }

    /// Where a `$dynamicRef` leads, if that does not depend on how one got there.
    pub(crate) fn resolve_dynamic(&self, from: &Place, reference: &str) -> Option<Place> {
        let anchor = reference.split_once('#').map_or("", |(_, anchor)| anchor);
        match self.dynamic_anchors.get(anchor).map(Vec::as_slice) {
            None => self.resolve(from, reference),
            Some([only]) => {
                (self.resolve(from, reference).as_ref() == Some(only)).then(|| only.clone())
            }
            Some(_) => None,
        }
    }

    pub(crate) fn resolve_recursive(&self, from: &Place) -> Option<Place> {
        if self.has_recursive_anchor { None } else { self.resolve(from, "#") }
    }

    fn base(&self, from: &Place) -> &str {
        let mut pointer = from.pointer.as_str();
        loop {
            let place = Place { document: from.document, pointer: pointer.to_owned() };
            if let Some(base) = self.bases.get(&place) {
                return base;
            }
            match pointer.rfind('/') {
                Some(at) => pointer = &pointer[..at],
                None => return "",
            }
        }
    }
}

/// One step of a JSON pointer.
pub(crate) fn escape(step: &str) -> String {
    step.replace('~', "~0").replace('/', "~1")
}

fn unescape_uri(fragment: &str) -> String {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let [first, tail @ ..] = rest {
        if let (b'%', [high, low, after @ ..]) = (first, tail)
            && let (Some(high), Some(low)) =
                (char::from(*high).to_digit(16), char::from(*low).to_digit(16))
        {
            bytes.push(u8::try_from(high * 16 + low).unwrap_or(b'?'));
            rest = after;
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Resolves a reference against a base, as far as schema ids need it.
fn join(base: &str, reference: &str) -> String {
    let has_scheme = reference.split_once(':').is_some_and(|(scheme, _)| {
        !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    });
    if has_scheme || base.is_empty() {
        return reference.to_owned();
    }
    let authority_end = base
        .find("://")
        .map_or(0, |at| base[at + 3..].find('/').map_or(base.len(), |slash| at + 3 + slash));
    if let Some(path) = reference.strip_prefix('/') {
        return format!("{}/{path}", &base[..authority_end]);
    }
    let directory_end =
        base.rfind('/').filter(|at| *at >= authority_end).map_or(authority_end, |at| at + 1);
    let (mut head, mut reference) = (base[..directory_end].to_owned(), reference);
    if !head.is_empty() && !head.ends_with('/') {
        head.push('/');
    }
    while let Some(rest) = reference.strip_prefix("../") {
        reference = rest;
        let trimmed = head.trim_end_matches('/');
        if let Some(at) = trimmed.rfind('/').filter(|at| *at >= authority_end) {
            head.truncate(at + 1);
        }
    }
    format!("{head}{}", reference.strip_prefix("./").unwrap_or(reference))
}
