//! Reads an Avro definition: names, namespaces, aliases, every rule of the specification that a
//! later comparison or decoding leans on.
//!
//! Law: what comes out has no dangling name, no union in a union, no default that does not fit.

use super::{AvroSchema, Decimal, Field, Kind, Name, Type, TypeId, default};
use crate::error::SchemaError;
use crate::json::text;
use crate::limits::{DEFINITION_NESTING_MAX, NODES_MAX, REFERENCES_LEN_MAX, REFERENCES_MAX};
use crate::references::References;
use danube_core::schema::SchemaType;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn parse(
    definition: &[u8],
    references: &dyn References,
) -> Result<AvroSchema, SchemaError> {
    let value = read_text(definition)?;
    let mut parser = Parser {
        references,
        types: Vec::new(),
        named: BTreeMap::new(),
        defaults: Vec::new(),
        depth: 0,
        pulled: 0,
        pulled_len: 0,
    };
    let (root, canonical) = parser.any(&value, "", "")?;
    let schema = AvroSchema { types: parser.types, root, canonical: text::sorted(&canonical) };
    for (path, of, value) in parser.defaults {
        default::check(&schema, of, &value).map_err(|why| invalid(&path, why))?;
    }
    Ok(schema)
}

/// JSON, or the bare name of a primitive, which many tools write without quotes.
fn read_text(definition: &[u8]) -> Result<Value, SchemaError> {
    if let Ok(word) = std::str::from_utf8(definition)
        && primitive(word.trim()).is_some()
    {
        return Ok(Value::String(word.trim().to_owned()));
    }
    text::parse(SchemaType::Avro, definition)
}

fn invalid(path: &str, why: impl Into<String>) -> SchemaError {
    let path = if path.is_empty() { "the top" } else { path };
    SchemaError::invalid(SchemaType::Avro, path, why)
}

fn primitive(word: &str) -> Option<Kind> {
    Some(match word {
        "null" => Kind::Null,
        "boolean" => Kind::Boolean,
        "int" => Kind::Int,
        "long" => Kind::Long,
        "float" => Kind::Float,
        "double" => Kind::Double,
        "bytes" => Kind::Bytes,
        "string" => Kind::String,
        _ => return None,
    })
}

struct Parser<'a> {
    references: &'a dyn References,
    types: Vec<Type>,
    named: BTreeMap<String, TypeId>,
    /// Checked when every type is known: field path, type, value.
    defaults: Vec<(String, TypeId, Value)>,
    depth: usize,
    pulled: usize,
    pulled_len: usize,
}

/// A type and its canonical form.
type Parsed = Result<(TypeId, Value), SchemaError>;

impl Parser<'_> {
    fn any(&mut self, value: &Value, namespace: &str, path: &str) -> Parsed {
        self.depth += 1;
        if self.depth > DEFINITION_NESTING_MAX {
            return Err(SchemaError::TooLarge {
                kind: SchemaType::Avro,
                what: "its nesting, references included,",
                got: self.depth,
                max: DEFINITION_NESTING_MAX,
            });
        }
        let parsed = match value {
            Value::String(name) => self.by_name(name, namespace, path),
            Value::Array(branches) => self.union(branches, namespace, path),
            Value::Object(object) => self.object(object, namespace, path),
            other => Err(invalid(
                path,
                format!("`{other}` is not a type; write a name, a list or an object"),
            )),
        };
        self.depth -= 1;
        parsed
    }

    fn push(&mut self, kind: Kind) -> Result<TypeId, SchemaError> {
        if self.types.len() >= NODES_MAX {
            return Err(SchemaError::TooLarge {
                kind: SchemaType::Avro,
                what: "its number of types",
                got: self.types.len() + 1,
                max: NODES_MAX,
            });
        }
        self.types.push(Type { kind, decimal: None });
        Ok(self.types.len() - 1)
    }

    fn by_name(&mut self, name: &str, namespace: &str, path: &str) -> Parsed {
        if let Some(kind) = primitive(name) {
            return Ok((self.push(kind)?, json!(name)));
        }
        let full = qualify(name, namespace);
        // A name without dots falls back on the null namespace, as most libraries have it.
        for candidate in [full.as_str(), name] {
            if let Some(id) = self.named.get(candidate) {
                return Ok((*id, json!(candidate)));
            }
        }
        self.registered(&full, name, path)
    }

    fn registered(&mut self, full: &str, name: &str, path: &str) -> Parsed {
        let found = [full, name].into_iter().find_map(|wanted| {
            let bytes = self.references.definition(wanted)?;
            Some((wanted.to_owned(), bytes))
        });
        let Some((wanted, bytes)) = found else {
            return Err(SchemaError::UnknownReference {
                kind: SchemaType::Avro,
                path: path.to_owned(),
                name: full.to_owned(),
            });
        };
        self.pulled += 1;
        self.pulled_len += bytes.len();
        for (what, got, max) in [
            ("its number of references", self.pulled, REFERENCES_MAX),
            ("the length of its references in bytes", self.pulled_len, REFERENCES_LEN_MAX),
        ] {
            if got > max {
                return Err(SchemaError::TooLarge { kind: SchemaType::Avro, what, got, max });
            }
        }
        let value = read_text(&bytes)?;
        let (id, canonical) = self.any(&value, "", &wanted)?;
        match self.named.get(&wanted) {
            // The referred definition may define more than the type that was asked for.
            Some(named) if *named == id => Ok((id, canonical)),
            Some(named) => Ok((*named, json!([canonical, wanted]))),
            None => Err(invalid(
                path,
                format!(
                    "the registry's definition for `{wanted}` does not define a type of that name"
                ),
            )),
        }
    }

    fn union(&mut self, branches: &[Value], namespace: &str, path: &str) -> Parsed {
        let mut ids = Vec::with_capacity(branches.len());
        let mut forms = Vec::with_capacity(branches.len());
        let mut seen = BTreeSet::new();
        for branch in branches {
            let (id, form) = self.any(branch, namespace, path)?;
            let key = match &self.types[id].kind {
                Kind::Union(_) => {
                    return Err(invalid(path, "a union holds a union; write one list of branches"));
                }
                Kind::Record { name, .. } | Kind::Enum { name, .. } | Kind::Fixed { name, .. } => {
                    name.full.clone()
                }
                Kind::Array(_) => "array".to_owned(),
                Kind::Map(_) => "map".to_owned(),
                kind => format!("{kind:?}").to_ascii_lowercase(),
            };
            if !seen.insert(key.clone()) {
                return Err(invalid(
                    path,
                    format!(
                        "the union has two branches `{key}`; only named types of different names may repeat a kind"
                    ),
                ));
            }
            ids.push(id);
            forms.push(form);
        }
        Ok((self.push(Kind::Union(ids))?, Value::Array(forms)))
    }

    fn object(&mut self, object: &Map<String, Value>, namespace: &str, path: &str) -> Parsed {
        let of = object.get("type").ok_or_else(|| invalid(path, "`type` is missing"))?;
        let Value::String(word) = of else {
            // {"type": {...}} and {"type": [...]} are the inner type.
            return self.any(of, namespace, path);
        };
        match word.as_str() {
            "record" | "error" => self.record(object, namespace, path),
            "enum" => self.enumeration(object, namespace, path),
            "fixed" => self.fixed(object, namespace, path),
            "array" => self.container(object, "items", namespace, path),
            "map" => self.container(object, "values", namespace, path),
            _ => {
                let (id, form) = self.by_name(word, namespace, path)?;
                let mut kept = properties(object, &["type"]);
                if primitive(word).is_some() {
                    self.types[id].decimal = decimal(object, path)?;
                }
                if kept.is_empty() {
                    return Ok((id, form));
                }
                kept.insert("type".into(), form);
                Ok((id, Value::Object(kept)))
            }
        }
    }

    fn container(
        &mut self,
        object: &Map<String, Value>,
        key: &str,
        namespace: &str,
        path: &str,
    ) -> Parsed {
        let inner = object.get(key).ok_or_else(|| invalid(path, format!("`{key}` is missing")))?;
        let mark = if key == "items" { "[]" } else { "{}" };
        let (of, form) = self.any(inner, namespace, &format!("{path}{mark}"))?;
        let kind = if key == "items" { Kind::Array(of) } else { Kind::Map(of) };
        let mut canonical = properties(object, &[key, "default"]);
        canonical.insert(key.to_owned(), form);
        Ok((self.push(kind)?, Value::Object(canonical)))
    }

    /// Reads the name, enters it, and gives its namespace for what is inside.
    fn declare(
        &mut self,
        object: &Map<String, Value>,
        namespace: &str,
        path: &str,
    ) -> Result<(TypeId, Name, String), SchemaError> {
        let name = object
            .get("name")
            .and_then(Value::as_str)
            .ok_or_else(|| invalid(path, "a named type has no `name`"))?;
        let own = match object.get("namespace") {
            None | Some(Value::Null) => namespace,
            Some(Value::String(own)) => own,
            Some(other) => {
                return Err(invalid(path, format!("namespace `{other}` is not a string")));
            }
        };
        let full = qualify(name, own);
        check_name(&full, path, true)?;
        if primitive(&full).is_some() {
            return Err(invalid(path, format!("`{full}` is the name of a primitive type")));
        }
        let space = full.rsplit_once('.').map_or("", |(space, _)| space).to_owned();
        let mut aliases = Vec::new();
        for alias in strings(object, "aliases", path)? {
            let alias = qualify(&alias, &space);
            check_name(&alias, path, true)?;
            aliases.push(alias);
        }
        // Until it is complete it is a record without fields, so that its name is known inside it.
        let unfinished = Name { full: full.clone(), aliases: Vec::new() };
        let id = self.push(Kind::Record { name: unfinished, fields: Vec::new() })?;
        if self.named.insert(full.clone(), id).is_some() {
            return Err(invalid(
                path,
                format!("`{full}` is defined twice; refer to it by its name the second time"),
            ));
        }
        Ok((id, Name { full, aliases }, space))
    }

    fn record(&mut self, object: &Map<String, Value>, namespace: &str, path: &str) -> Parsed {
        let (id, name, space) = self.declare(object, namespace, path)?;
        let Some(Value::Array(listed)) = object.get("fields") else {
            return Err(invalid(path, format!("record `{}` has no list of `fields`", name.full)));
        };
        let here = if path.is_empty() { name.simple().to_owned() } else { path.to_owned() };
        let mut taken = BTreeSet::new();
        let mut fields = Vec::with_capacity(listed.len());
        let mut forms = Vec::with_capacity(listed.len());
        for (at, listed) in listed.iter().enumerate() {
            let Some(object) = listed.as_object() else {
                return Err(invalid(&here, format!("field {at} is not an object")));
            };
            let (field, form) = self.field(object, &space, &here, at)?;
            if !taken.insert(field.name.clone()) {
                return Err(invalid(&here, format!("field `{}` is listed twice", field.name)));
            }
            fields.push(field);
            forms.push(form);
        }
        let mut canonical = named_properties(object, &name, &["fields"]);
        canonical.insert("fields".into(), Value::Array(forms));
        canonical.insert("type".into(), json!("record"));
        self.types[id].kind = Kind::Record { name, fields };
        Ok((id, Value::Object(canonical)))
    }

    fn field(
        &mut self,
        object: &Map<String, Value>,
        namespace: &str,
        record: &str,
        at: usize,
    ) -> Result<(Field, Value), SchemaError> {
        let name = object
            .get("name")
            .and_then(Value::as_str)
            .ok_or_else(|| invalid(record, format!("field {at} has no `name`")))?
            .to_owned();
        check_name(&name, record, false)?;
        let path = format!("{record}.{name}");
        let aliases = strings(object, "aliases", &path)?;
        for alias in &aliases {
            check_name(alias, &path, false)?;
        }
        let of = object.get("type").ok_or_else(|| invalid(&path, "`type` is missing"))?;
        let (of, form) = self.any(of, namespace, &path)?;
        let default = object.get("default").cloned();
        if let Some(value) = &default {
            self.defaults.push((path, of, value.clone()));
        }
        let mut canonical = properties(object, &["type"]);
        canonical.insert("type".into(), form);
        Ok((Field { name, aliases, of, default }, Value::Object(canonical)))
    }

    fn enumeration(&mut self, object: &Map<String, Value>, namespace: &str, path: &str) -> Parsed {
        let (id, name, _) = self.declare(object, namespace, path)?;
        let here = if path.is_empty() { name.simple().to_owned() } else { path.to_owned() };
        if !object.contains_key("symbols") {
            return Err(invalid(&here, format!("enum `{}` has no list of `symbols`", name.full)));
        }
        let symbols = strings(object, "symbols", &here)?;
        let mut taken = BTreeSet::new();
        for symbol in &symbols {
            check_name(symbol, &here, false)?;
            if !taken.insert(symbol) {
                return Err(invalid(&here, format!("symbol `{symbol}` is listed twice")));
            }
        }
        let default = match object.get("default") {
            None => None,
            Some(Value::String(symbol)) if taken.contains(symbol) => Some(symbol.clone()),
            Some(other) => {
                return Err(invalid(
                    &here,
                    format!("default `{other}` is not one of the symbols {symbols:?}"),
                ));
            }
        };
        let canonical = named_properties(object, &name, &[]);
        self.types[id].kind = Kind::Enum { name, symbols, default };
        Ok((id, Value::Object(canonical)))
    }

    fn fixed(&mut self, object: &Map<String, Value>, namespace: &str, path: &str) -> Parsed {
        let (id, name, _) = self.declare(object, namespace, path)?;
        let size =
            object.get("size").and_then(Value::as_u64).and_then(|size| usize::try_from(size).ok());
        let Some(size) = size.filter(|size| *size <= i32::MAX as usize) else {
            return Err(invalid(
                path,
                format!("fixed `{}` has no `size` from 0 to 2147483647", name.full),
            ));
        };
        let canonical = named_properties(object, &name, &[]);
        self.types[id] = Type { kind: Kind::Fixed { name, size }, decimal: decimal(object, path)? };
        Ok((id, Value::Object(canonical)))
    }
}

/// A decimal that says something sensible; by the specification any other is ignored.
fn decimal(object: &Map<String, Value>, path: &str) -> Result<Option<Decimal>, SchemaError> {
    if object.get("logicalType").and_then(Value::as_str) != Some("decimal") {
        return Ok(None);
    }
    let precision = object.get("precision").and_then(Value::as_u64);
    let scale = object.get("scale").map_or(Some(0), Value::as_u64);
    match (precision, scale) {
        (Some(precision), Some(scale)) if precision > 0 && scale <= precision => {
            Ok(Some(Decimal { precision, scale }))
        }
        _ => Err(invalid(
            path,
            "a decimal needs a `precision` above 0 and a `scale` from 0 to the precision",
        )),
    }
}

fn qualify(name: &str, namespace: &str) -> String {
    if name.contains('.') || namespace.is_empty() {
        name.trim_start_matches('.').to_owned()
    } else {
        format!("{namespace}.{name}")
    }
}

fn check_name(name: &str, path: &str, dotted: bool) -> Result<(), SchemaError> {
    let good = |part: &str| {
        let mut chars = part.chars();
        chars.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
            && chars.all(|next| next.is_ascii_alphanumeric() || next == '_')
    };
    let fine = if dotted { name.split('.').all(good) } else { good(name) };
    if fine {
        return Ok(());
    }
    Err(invalid(
        path,
        format!(
            "`{name}` is not a name; names are letters, digits and `_`, and start with no digit"
        ),
    ))
}

fn strings(object: &Map<String, Value>, key: &str, path: &str) -> Result<Vec<String>, SchemaError> {
    match object.get(key) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(listed)) => listed
            .iter()
            .map(|item| {
                item.as_str().map(str::to_owned).ok_or_else(|| {
                    invalid(path, format!("`{key}` holds `{item}`, which is not a string"))
                })
            })
            .collect(),
        Some(other) => Err(invalid(path, format!("`{key}` is `{other}`, not a list of strings"))),
    }
}

/// Everything of an object that the canonical form keeps, without documentation.
fn properties(object: &Map<String, Value>, without: &[&str]) -> Map<String, Value> {
    object
        .iter()
        .filter(|(key, _)| *key != "doc" && !without.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

fn named_properties(
    object: &Map<String, Value>,
    name: &Name,
    without: &[&str],
) -> Map<String, Value> {
    let mut kept = properties(object, without);
    kept.remove("namespace");
    kept.insert("name".into(), json!(name.full));
    if !name.aliases.is_empty() {
        kept.insert("aliases".into(), json!(name.aliases));
    }
    kept
}
