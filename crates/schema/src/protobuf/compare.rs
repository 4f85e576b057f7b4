//! The rules of the wire between two versions, and of the JSON encoding where that is asked for.
//!
//! What a number meant it means for ever. Most rules do not ask who reads; those that do (labels,
//! required fields, oneofs) look at the direction.

use super::parse::is_message;
use super::{Enum, Field, Message, ProtobufSchema, Reserved, word};
use crate::verdict::{Direction, Findings};
use danube_core::schema::ProtobufLevel;
use prost_types::field_descriptor_proto::Type;
use std::collections::BTreeSet;

pub(super) fn compare(
    old: &ProtobufSchema,
    new: &ProtobufSchema,
    level: ProtobufLevel,
    findings: &mut Findings<'_>,
) {
    if old.root != new.root {
        findings.old_new(
            &new.root,
            "root_message_changed",
            &old.root,
            &new.root,
            "payloads are decoded as another message; keep the first message of the file, or name the \
             old one with a comment `// danube:root=NAME`",
        );
        // Whatever else differs would be noise when the old root is gone altogether.
        if !new.messages.contains_key(&old.root) {
            return;
        }
    }
    let mut walk = Walk { old, new, level, findings, seen: BTreeSet::new() };
    walk.message(&old.root, &old.root);
    for (name, message) in &old.messages {
        if message.imported || message.is_map_entry {
            continue;
        }
        if new.messages.contains_key(name) {
            walk.message(name, name);
        } else {
            let why = "the message is gone; fine as long as nothing refers to it";
            walk.findings.warn(name, "message_removed", why);
        }
    }
    for (name, of) in &old.enums {
        if !of.imported && new.enums.contains_key(name) {
            walk.enumeration(name, name);
        }
    }
}

struct Walk<'a, 'f> {
    old: &'a ProtobufSchema,
    new: &'a ProtobufSchema,
    level: ProtobufLevel,
    findings: &'a mut Findings<'f>,
    seen: BTreeSet<(&'a str, &'a str)>,
}

impl<'a> Walk<'a, '_> {
    fn message(&mut self, old_name: &'a str, new_name: &'a str) {
        if !self.seen.insert((old_name, new_name)) {
            return;
        }
        let (Some(old), Some(new)) =
            (self.old.messages.get(old_name), self.new.messages.get(new_name))
        else {
            return;
        };
        for (number, field) in &old.fields {
            let path = format!("{old_name}.{number}");
            match new.fields.get(number) {
                Some(now) => self.field(field, now, &path),
                None => self.removed(field, *number, new, &path),
            }
        }
        for (number, field) in &new.fields {
            if !old.fields.contains_key(number) {
                self.added(field, *number, old, &format!("{new_name}.{number}"));
            }
        }
        self.oneofs(old, new, old_name);
        self.lifted(&old.reserved, &new.reserved, old_name);
        self.names(old, new, old_name);
    }

    /// A number that both have.
    fn field(&mut self, old: &'a Field, new: &'a Field, path: &str) {
        self.types(old, new, path);
        let (reader, writer) = match self.findings.direction() {
            Direction::NewReadsOld => (new, old),
            Direction::OldReadsNew => (old, new),
        };
        if writer.repeated && !reader.repeated {
            self.findings.old_new(
                path,
                "repeated_changed",
                label(old),
                label(new),
                "a reader that expects one value loses all but one, or all of a packed field; add a new \
                 field instead",
            );
        } else if reader.repeated && !writer.repeated {
            let why = "one value is read as a list of one; other readers still expect one value";
            self.findings.warn(path, "repeated_changed", why);
        }
        if reader.required && !writer.required {
            self.findings.old_new(
                path,
                "required_changed",
                label(old),
                label(new),
                format!(
                    "the reader requires field `{}`, which the writer may leave out",
                    reader.name
                ),
            );
        }
        if self.level == ProtobufLevel::Json && old.json_name != new.json_name {
            self.findings.old_new(
                path,
                "json_name_changed",
                &old.json_name,
                &new.json_name,
                "the JSON encoding knows fields by name; keep the name, or keep the JSON name with \
                 `json_name`",
            );
        }
    }

    fn types(&mut self, old: &'a Field, new: &'a Field, path: &str) {
        let maps = (map_entry(self.old, old), map_entry(self.new, new));
        if let (Some(before), Some(after)) = maps {
            for number in [1, 2] {
                if let (Some(before), Some(after)) =
                    (before.fields.get(&number), after.fields.get(&number))
                {
                    self.types(before, after, path);
                }
            }
            return;
        }
        if is_message(old.kind) && old.kind == new.kind {
            if old.type_name == new.type_name {
                self.message(&old.type_name, &new.type_name);
            } else {
                self.findings.old_new(
                    path,
                    "message_type_changed",
                    &old.type_name,
                    &new.type_name,
                    "the number now stands for another message; add a new field instead",
                );
            }
            return;
        }
        if old.kind == Type::Enum && new.kind == Type::Enum {
            if old.type_name != new.type_name {
                let why = format!(
                    "enum {} becomes {}; the wire carries numbers, so both must mean the same by them",
                    old.type_name, new.type_name
                );
                self.findings.warn(path, "enum_type_changed", why);
            }
            self.enumeration(&old.type_name, &new.type_name);
            return;
        }
        if old.kind == new.kind {
            return;
        }
        match between(old.kind, new.kind) {
            Step::Warn(_)
                if self.level == ProtobufLevel::Json
                    && json_class(old.kind) != json_class(new.kind) =>
            {
                self.findings.old_new(
                    path,
                    "json_type_changed",
                    type_text(old),
                    type_text(new),
                    "the binary encoding is the same, the JSON encoding is not; add a new field instead",
                );
            }
            Step::Warn(why) => self.findings.warn(path, "type_widened", why),
            Step::Break(why) => self.findings.old_new(
                path,
                "type_changed",
                type_text(old),
                type_text(new),
                format!("field `{}` becomes `{}`: {why}", old.name, new.name),
            ),
        }
    }

    fn removed(&mut self, field: &Field, number: i32, new: &Message, path: &str) {
        if field.required && self.findings.direction() == Direction::OldReadsNew {
            let why = format!("existing readers require field `{}`", field.name);
            self.findings.old_new(path, "required_removed", label(field), "", why);
        }
        if !new.reserved.has_number(number) {
            let why = format!(
                "field `{}` is gone without a reservation; add `reserved {number};` so that nobody uses \
                 the number again",
                field.name
            );
            self.findings.warn(path, "deleted_without_reserve", why);
        }
    }

    fn added(&mut self, field: &Field, number: i32, old: &Message, path: &str) {
        if old.reserved.has_number(number) {
            self.findings.old_new(
                path,
                "reserved_number_used",
                format!("reserved {number}"),
                format!("{} {}", type_text(field), field.name),
                "the number is reserved because something else used it once; take a new number",
            );
        }
        if old.reserved.names.contains(&field.name) {
            let why = "the name is reserved because another field had it once; take a new name";
            self.by_name(path, "reserved_name_used", &field.name, why);
        }
        if field.required && self.findings.direction() == Direction::NewReadsOld {
            let why = format!(
                "the new schema requires field `{}`, which existing data lacks; make it optional",
                field.name
            );
            self.findings.old_new(path, "required_added", "", label(field), why);
        }
    }

    /// Matters to the JSON encoding only: a break there, a warning on the wire.
    fn by_name(&mut self, path: &str, rule: &str, name: &str, why: &str) {
        match self.level {
            ProtobufLevel::Json => self.findings.old_new(path, rule, name, name, why),
            ProtobufLevel::Wire => self.findings.warn(path, rule, format!("`{name}`: {why}")),
        }
    }

    /// Two fields that exclude each other for the reader, but not for the writer.
    fn oneofs(&mut self, old: &Message, new: &Message, name: &str) {
        let (reader, writer) = match self.findings.direction() {
            Direction::NewReadsOld => (new, old),
            Direction::OldReadsNew => (old, new),
        };
        let together = |message: &Message, a: i32, b: i32| {
            let of = |number| message.fields.get(&number).and_then(|field| field.oneof.as_ref());
            of(a).is_some() && of(a) == of(b)
        };
        let numbers: Vec<i32> = reader
            .fields
            .iter()
            .filter(|(number, field)| field.oneof.is_some() && writer.fields.contains_key(number))
            .map(|(number, _)| *number)
            .collect();
        for (at, second) in numbers.iter().enumerate() {
            // One partner is enough to tell; listing every pair would be noise.
            let clash = numbers[..at].iter().find(|first| {
                together(reader, **first, *second) && !together(writer, **first, *second)
            });
            if let Some(first) = clash {
                let text = |message: &Message| {
                    let of = message.fields.get(second).and_then(|field| field.oneof.as_deref());
                    of.map_or("no oneof".to_owned(), |oneof| format!("oneof {oneof}"))
                };
                self.findings.old_new(
                    &format!("{name}.{second}"),
                    "oneof_changed",
                    text(old),
                    text(new),
                    format!(
                        "a reader keeps only one of the fields {first} and {second}, a writer may set both; a \
                         field moves into a new oneof alone or not at all"
                    ),
                );
            }
        }
    }

    fn lifted(&mut self, old: &Reserved, new: &Reserved, name: &str) {
        let kept = |range: &&(i64, i64)| {
            // Ranges may be split and joined, so ends are compared number by number up to a bound.
            let (low, high) = **range;
            let ends = [low, high, i64::midpoint(low, high)];
            let dense = (low..=high).take(1_000);
            let covers =
                |number: i64| new.ranges.iter().any(|(low, high)| (*low..=*high).contains(&number));
            !(ends.into_iter().all(covers) && dense.into_iter().all(covers))
        };
        for (low, high) in old.ranges.iter().filter(kept) {
            let why = format!(
                "the reservation of {low} to {high} is lifted; this registry still remembers it, other tools \
                 will not"
            );
            self.findings.warn(name, "reservation_lifted", why);
        }
    }

    /// JSON: a name that now belongs to another number.
    fn names(&mut self, old: &Message, new: &Message, name: &str) {
        if self.level != ProtobufLevel::Json {
            return;
        }
        for (number, field) in &new.fields {
            let before = old.fields.iter().find(|(_, before)| before.json_name == field.json_name);
            if let Some((before, _)) = before
                && before != number
            {
                self.findings.old_new(
                    &format!("{name}.{number}"),
                    "json_name_moved",
                    format!("{before}"),
                    format!("{number}"),
                    format!("JSON name `{}` belonged to field number {before}", field.json_name),
                );
            }
        }
    }

    fn enumeration(&mut self, old_name: &'a str, new_name: &'a str) {
        if !self.seen.insert((old_name, new_name)) {
            return;
        }
        let (Some(old), Some(new)) = (self.old.enums.get(old_name), self.new.enums.get(new_name))
        else {
            return;
        };
        for (number, names) in &old.values {
            let path = format!("{old_name}.{number}");
            match new.values.get(number) {
                Some(now) if self.level == ProtobufLevel::Json && !names.is_subset(now) => {
                    self.findings.old_new(
                        &path,
                        "enum_name_changed",
                        text(names),
                        text(now),
                        "the JSON encoding knows enum values by name; keep the old name as an alias",
                    );
                }
                Some(_) => {}
                None if new.reserved.has_number(*number) => {}
                None => {
                    let why = format!(
                        "value {} is gone without a reservation; add `reserved {number};`",
                        text(names)
                    );
                    self.findings.warn(&path, "deleted_without_reserve", why);
                }
            }
        }
        self.enum_additions(old, new, new_name);
        self.lifted(&old.reserved, &new.reserved, old_name);
    }

    fn enum_additions(&mut self, old: &Enum, new: &Enum, name: &str) {
        for (number, names) in &new.values {
            let path = format!("{name}.{number}");
            if old.values.contains_key(number) {
                continue;
            }
            if old.reserved.has_number(*number) {
                self.findings.old_new(
                    &path,
                    "reserved_number_used",
                    format!("reserved {number}"),
                    text(names),
                    "the number is reserved because another value had it once; take a new number",
                );
            }
            for value in names.intersection(&old.reserved.names) {
                let why = "the name is reserved because another value had it once; take a new name";
                self.by_name(&path, "reserved_name_used", value, why);
            }
        }
    }
}

fn text(names: &BTreeSet<String>) -> String {
    names.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

fn map_entry<'s>(schema: &'s ProtobufSchema, field: &Field) -> Option<&'s Message> {
    schema.messages.get(&field.type_name).filter(|message| message.is_map_entry)
}

fn type_text(field: &Field) -> String {
    match field.kind {
        Type::Message | Type::Group | Type::Enum => {
            format!("{} {}", word(field.kind), field.type_name)
        }
        kind => word(kind).to_owned(),
    }
}

fn label(field: &Field) -> String {
    let label = match (field.repeated, field.required) {
        (true, _) => "repeated ",
        (_, true) => "required ",
        _ => "",
    };
    format!("{label}{} {}", type_text(field), field.name)
}

/// Types that the JSON encoding writes alike. Parsers take integers of any width as numbers or strings.
fn json_class(kind: Type) -> &'static str {
    match kind {
        Type::Bool | Type::Enum | Type::String | Type::Bytes => word(kind),
        _ => "number",
    }
}

/// What becomes of a field whose scalar type changes.
enum Step {
    Warn(&'static str),
    Break(&'static str),
}

fn between(old: Type, new: Type) -> Step {
    let varint = |kind| {
        matches!(
            kind,
            Type::Int32 | Type::Int64 | Type::Uint32 | Type::Uint64 | Type::Bool | Type::Enum
        )
    };
    let group = |kind| match kind {
        Type::Sint32 | Type::Sint64 => 1,
        Type::Fixed32 | Type::Sfixed32 => 2,
        Type::Fixed64 | Type::Sfixed64 => 3,
        _ => 0,
    };
    match (old, new) {
        _ if varint(old) && varint(new) => Step::Warn(
            "both are variable-length integers; values that do not fit the narrower type are truncated",
        ),
        _ if group(old) != 0 && group(old) == group(new) => {
            if group(old) == 1 {
                Step::Warn("values that do not fit the narrower type are truncated")
            } else {
                Step::Warn("the sign is read differently; values of the upper half change")
            }
        }
        (Type::String, Type::Bytes) => {
            Step::Warn("readers of the old schema need the bytes to be UTF-8")
        }
        (Type::Bytes, Type::String) => {
            Step::Break("existing bytes need not be UTF-8; add a new field instead")
        }
        _ if varint(old) && matches!(new, Type::Sint32 | Type::Sint64)
            || varint(new) && matches!(old, Type::Sint32 | Type::Sint64) =>
        {
            Step::Break(
                "zigzag and plain integers are read as different numbers; add a new field instead",
            )
        }
        _ => Step::Break("the types are encoded differently; add a new field instead"),
    }
}
