//! Avro's schema resolution, decided for all data at once: can the reader's schema resolve
//! whatever the writer's schema can write?
//!
//! Law: a pair of types is looked at once; a pair met again inside itself is taken to fit, because
//! whatever is wrong with it is found by the first visit (data is finite).

use super::{AvroSchema, Field, Kind, Name, TypeId, simple};
use crate::verdict::Findings;
use std::collections::BTreeSet;

pub(super) fn resolve(reader: &AvroSchema, writer: &AvroSchema, findings: &mut Findings<'_>) {
    let mut walk = Walk { reader, writer, findings, seen: BTreeSet::new() };
    walk.pair(reader.root, writer.root, "");
}

struct Walk<'a, 'f> {
    reader: &'a AvroSchema,
    writer: &'a AvroSchema,
    findings: &'a mut Findings<'f>,
    seen: BTreeSet<(TypeId, TypeId)>,
}

/// How well a writer's type fits a reader's, before looking inside.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    Promoted,
    SameSimpleName,
    Exact,
}

impl<'a> Walk<'a, '_> {
    fn pair(&mut self, reader_id: TypeId, writer_id: TypeId, path: &str) {
        if !self.seen.insert((reader_id, writer_id)) {
            return;
        }
        let (readers, writers) = (self.reader, self.writer);
        match (&readers.type_of(reader_id).kind, &writers.type_of(writer_id).kind) {
            (_, Kind::Union(branches)) => {
                for branch in branches {
                    let path = format!("{path}<{}>", writers.short_label(*branch));
                    if let Kind::Union(_) = readers.type_of(reader_id).kind {
                        self.union_of_reader(reader_id, *branch, &path);
                    } else if fit(readers, reader_id, writers, *branch).is_some() {
                        self.inside(reader_id, *branch, &path);
                    } else {
                        self.no_match(reader_id, *branch, &path);
                    }
                }
            }
            (Kind::Union(_), _) => self.union_of_reader(reader_id, writer_id, path),
            _ if fit(readers, reader_id, writers, writer_id).is_some() => {
                self.inside(reader_id, writer_id, path);
            }
            _ => self.no_match(reader_id, writer_id, path),
        }
    }

    /// The best branch by name and kind is chosen, then looked into.
    fn union_of_reader(&mut self, reader_id: TypeId, writer_id: TypeId, path: &str) {
        let Kind::Union(branches) = &self.reader.type_of(reader_id).kind else { return };
        let mut best: Option<(Fit, TypeId)> = None;
        for branch in branches {
            if let Some(found) = fit(self.reader, *branch, self.writer, writer_id)
                && best.as_ref().is_none_or(|(fit, _)| found > *fit)
            {
                best = Some((found, *branch));
            }
        }
        match best {
            Some((_, branch)) => {
                if self.seen.insert((branch, writer_id)) {
                    self.inside(branch, writer_id, path);
                }
            }
            None => self.findings.reader_writer(
                path,
                "union_branch_missing",
                self.reader.label(reader_id),
                self.writer.label(writer_id),
                format!(
                    "the reader's union has no branch for {}; add one",
                    self.writer.label(writer_id)
                ),
                None,
            ),
        }
    }

    /// Two types that match by kind and name: their insides.
    fn inside(&mut self, reader_id: TypeId, writer_id: TypeId, path: &str) {
        let (readers, writers) = (self.reader, self.writer);
        let (reader, writer) = (readers.type_of(reader_id), writers.type_of(writer_id));
        if let (Some(ours), Some(theirs)) = (reader.decimal, writer.decimal)
            && ours != theirs
        {
            self.findings.reader_writer(
                path,
                "decimal_changed",
                readers.label(reader_id),
                writers.label(writer_id),
                "precision and scale of a decimal must stay; add a new field instead",
                None,
            );
        }
        match (&reader.kind, &writer.kind) {
            (Kind::Array(ours), Kind::Array(theirs)) => {
                self.pair(*ours, *theirs, &format!("{path}[]"));
            }
            (Kind::Map(ours), Kind::Map(theirs)) => {
                self.pair(*ours, *theirs, &format!("{path}{{}}"));
            }
            (Kind::Enum { symbols: ours, default, .. }, Kind::Enum { symbols: theirs, .. }) => {
                let known: BTreeSet<&String> = ours.iter().collect();
                let missing: Vec<&str> = theirs
                    .iter()
                    .filter(|symbol| !known.contains(symbol))
                    .map(String::as_str)
                    .collect();
                if !missing.is_empty() && default.is_none() {
                    self.findings.reader_writer(
                        path,
                        "enum_symbols_missing",
                        format!("{} {:?}", readers.label(reader_id), ours),
                        format!("{} {:?}", writers.label(writer_id), theirs),
                        format!(
                            "the reader's enum lacks {missing:?} and has no default; add the symbols, or a \
                             default to the enum itself"
                        ),
                        None,
                    );
                }
            }
            (Kind::Record { name, fields: ours }, Kind::Record { fields: theirs, .. }) => {
                self.fields(name, ours, theirs, path);
            }
            _ => {}
        }
    }

    fn fields(&mut self, name: &Name, ours: &[Field], theirs: &[Field], path: &str) {
        let here = if path.is_empty() { name.simple() } else { path };
        for field in ours {
            let path = format!("{here}.{}", field.name);
            let by_name = theirs.iter().find(|their| their.name == field.name);
            let written = by_name.or_else(|| {
                field
                    .aliases
                    .iter()
                    .find_map(|alias| theirs.iter().find(|their| their.name == *alias))
            });
            match written {
                Some(written) => self.pair(field.of, written.of, &path),
                None if field.default.is_some() => {}
                None => {
                    let label = self.reader.label(field.of);
                    self.findings.reader_writer(
                        &path,
                        "field_without_default",
                        format!("{label}, no default"),
                        "",
                        format!(
                            "field `{}` is not in the writer's schema and has no default; give it a \
                             default, or an alias of the field that it replaces",
                            field.name
                        ),
                        None,
                    );
                }
            }
        }
    }

    fn no_match(&mut self, reader_id: TypeId, writer_id: TypeId, path: &str) {
        let (readers, writers) = (self.reader, self.writer);
        let (rule, why) = match (&readers.type_of(reader_id).kind, &writers.type_of(writer_id).kind)
        {
            (Kind::Fixed { size: ours, .. }, Kind::Fixed { size: theirs, .. })
                if ours != theirs =>
            {
                ("fixed_size_changed", "a fixed keeps its size; add a new type instead")
            }
            (Kind::Record { .. }, Kind::Record { .. })
            | (Kind::Enum { .. }, Kind::Enum { .. })
            | (Kind::Fixed { .. }, Kind::Fixed { .. }) => (
                "name_changed",
                "the names differ and the reader's type has no alias of the writer's name; add the \
                 alias",
            ),
            _ => ("type_changed", "a reader of the one type cannot read the other"),
        };
        let path = if path.is_empty() { "the top" } else { path };
        let (ours, theirs) = (readers.label(reader_id), writers.label(writer_id));
        self.findings.reader_writer(path, rule, ours, theirs, why, None);
    }
}

/// Whether the writer's type matches the reader's, unions and insides aside.
fn fit(readers: &AvroSchema, reader: TypeId, writers: &AvroSchema, writer: TypeId) -> Option<Fit> {
    let (reader, writer) = (&readers.type_of(reader).kind, &writers.type_of(writer).kind);
    match (reader, writer) {
        (Kind::Null, Kind::Null)
        | (Kind::Boolean, Kind::Boolean)
        | (Kind::Int, Kind::Int)
        | (Kind::Long, Kind::Long)
        | (Kind::Float, Kind::Float)
        | (Kind::Double, Kind::Double)
        | (Kind::Bytes, Kind::Bytes)
        | (Kind::String, Kind::String)
        | (Kind::Array(_), Kind::Array(_))
        | (Kind::Map(_), Kind::Map(_)) => Some(Fit::Exact),
        (Kind::Long, Kind::Int)
        | (Kind::Float, Kind::Int | Kind::Long)
        | (Kind::Double, Kind::Int | Kind::Long | Kind::Float)
        | (Kind::String, Kind::Bytes)
        | (Kind::Bytes, Kind::String) => Some(Fit::Promoted),
        (Kind::Record { name: ours, .. }, Kind::Record { name: theirs, .. })
        | (Kind::Enum { name: ours, .. }, Kind::Enum { name: theirs, .. }) => {
            same_name(ours, theirs)
        }
        (Kind::Fixed { name: ours, size }, Kind::Fixed { name: theirs, size: written }) => {
            same_name(ours, theirs).filter(|_| size == written)
        }
        _ => None,
    }
}

/// Names match without their namespace (1.12), or through an alias of the reader's type.
fn same_name(reader: &Name, writer: &Name) -> Option<Fit> {
    if reader.full == writer.full || reader.aliases.contains(&writer.full) {
        return Some(Fit::Exact);
    }
    let simple_alias = reader.aliases.iter().any(|alias| simple(alias) == writer.simple());
    (reader.simple() == writer.simple() || simple_alias).then_some(Fit::SameSimpleName)
}
