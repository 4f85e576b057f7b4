//! Compiles a `.proto` text from memory. Imports come from the registry; Google's well-known types
//! are built in.

use super::{Enum, Field, Message, ProtobufSchema, Reserved};
use crate::error::SchemaError;
use crate::limits::{DEFINITION_NESTING_MAX, NODES_MAX, REFERENCES_LEN_MAX, REFERENCES_MAX};
use crate::references::References;
use danube_core::schema::SchemaType;
use prost::Message as _;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto,
};
use protox::file::{File, FileResolver, GoogleFileResolver};
use std::collections::{BTreeMap, BTreeSet};

/// What the definition itself is called among the files.
const OWN_NAME: &str = "danube-definition.proto";

const WELL_KNOWN: &str = "google/protobuf/";

pub(super) fn parse(
    definition: &[u8],
    references: &dyn References,
) -> Result<ProtobufSchema, SchemaError> {
    let text = source(definition)?;
    let mut sources = BTreeMap::from([(OWN_NAME.to_owned(), text.clone())]);
    gather(&text, references, &mut sources)?;
    let mut compiler = protox::Compiler::with_file_resolver(FromMemory(sources));
    compiler.include_imports(true).include_source_info(false);
    compiler.open_file(OWN_NAME).map_err(|error| syntax(&error))?;
    let mut files = compiler.file_descriptor_set().file;

    let mut schema = Tables::default();
    for file in &files {
        let prefix = file.package().to_owned();
        let imported = file.name() != OWN_NAME;
        file.message_type
            .iter()
            .for_each(|message| add_message(&mut schema, &prefix, message, imported));
        file.enum_type.iter().for_each(|of| add_enum(&mut schema, &prefix, of, imported));
    }
    let nodes = schema.messages.values().map(|message| message.fields.len() + 1).sum::<usize>()
        + schema.enums.values().map(|of| of.values.len()).sum::<usize>();
    if nodes > NODES_MAX {
        return Err(too_large("its number of fields", nodes, NODES_MAX));
    }
    let root = root(&text, &files, &schema)?;
    let descriptor = compiler.descriptor_pool().get_message_by_name(&root).ok_or_else(|| {
        SchemaError::syntax(SchemaType::Protobuf, format!("message `{root}` is not to be found"))
    })?;
    let canonical = canonical(&mut files, &root);
    Ok(ProtobufSchema {
        messages: schema.messages,
        enums: schema.enums,
        root,
        canonical,
        descriptor,
    })
}

/// What the wire depends on, gathered from all files.
#[derive(Default)]
struct Tables {
    messages: BTreeMap<String, Message>,
    enums: BTreeMap<String, Enum>,
}

fn source(bytes: &[u8]) -> Result<String, SchemaError> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        SchemaError::syntax(
            SchemaType::Protobuf,
            format!("it is not UTF-8: bad byte at offset {}", error.valid_up_to()),
        )
    })?;
    let depth = nesting(text);
    if depth > DEFINITION_NESTING_MAX {
        return Err(too_large("its nesting", depth, DEFINITION_NESTING_MAX));
    }
    Ok(text.trim_start_matches('\u{FEFF}').to_owned())
}

fn too_large(what: &'static str, got: usize, max: usize) -> SchemaError {
    SchemaError::TooLarge { kind: SchemaType::Protobuf, what, got, max }
}

fn syntax(error: &protox::Error) -> SchemaError {
    // The short form names the file; ours has a name that means nothing to whoever reads it.
    let why = format!("{error:?}").replace(OWN_NAME, "definition");
    SchemaError::syntax(SchemaType::Protobuf, why.chars().take(400).collect::<String>())
}

/// The deepest nesting of brackets outside strings and comments, plus the longest row of signs that
/// a parser may take one by one.
fn nesting(text: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0_usize);
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        match (char, chars.peek()) {
            ('/', Some('/')) => while chars.next_if(|next| *next != '\n').is_some() {},
            ('/', Some('*')) => {
                chars.next();
                let mut star = false;
                for next in chars.by_ref() {
                    if star && next == '/' {
                        break;
                    }
                    star = next == '*';
                }
            }
            (quote @ ('"' | '\''), _) => {
                let mut escaped = false;
                for next in chars.by_ref() {
                    match next {
                        _ if escaped => escaped = false,
                        '\\' => escaped = true,
                        // Strings end with their line.
                        '\n' => break,
                        _ if next == quote => break,
                        _ => {}
                    }
                }
            }
            ('{' | '[' | '(' | '<', _) => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            ('}' | ']' | ')' | '>', _) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Collects the texts of everything imported, breadth first.
fn gather(
    text: &str,
    references: &dyn References,
    sources: &mut BTreeMap<String, String>,
) -> Result<(), SchemaError> {
    let mut pulled_len = 0;
    let mut texts = vec![(OWN_NAME.to_owned(), text.to_owned())];
    while let Some((importer, text)) = texts.pop() {
        let file = File::from_source(&importer, &text).map_err(|error| syntax(&error))?;
        for name in &file.file_descriptor_proto().dependency {
            if name.starts_with(WELL_KNOWN) || sources.contains_key(name) {
                continue;
            }
            let Some(bytes) = references.definition(name) else {
                return Err(SchemaError::UnknownReference {
                    kind: SchemaType::Protobuf,
                    path: if importer == OWN_NAME { "import".to_owned() } else { importer },
                    name: name.clone(),
                });
            };
            pulled_len += bytes.len();
            if pulled_len > REFERENCES_LEN_MAX {
                let what = "the length of its references in bytes";
                return Err(too_large(what, pulled_len, REFERENCES_LEN_MAX));
            }
            let text = source(&bytes)?;
            sources.insert(name.clone(), text.clone());
            if sources.len() > REFERENCES_MAX + 1 {
                return Err(too_large(
                    "its number of references",
                    sources.len() - 1,
                    REFERENCES_MAX,
                ));
            }
            texts.push((name.clone(), text));
        }
    }
    Ok(())
}

/// Every file there is; no other exists.
struct FromMemory(BTreeMap<String, String>);

impl FileResolver for FromMemory {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        match self.0.get(name) {
            Some(text) => File::from_source(name, text),
            None => GoogleFileResolver::new().open_file(name),
        }
    }
}

/// The message that a payload is: the one a comment names, else the first.
fn root(text: &str, files: &[FileDescriptorProto], schema: &Tables) -> Result<String, SchemaError> {
    let own = files.iter().find(|file| file.name() == OWN_NAME);
    let package = own.map_or("", FileDescriptorProto::package);
    let asked = text.lines().find_map(|line| {
        line.trim().strip_prefix("//")?.trim().strip_prefix("danube:root=").map(str::trim)
    });
    if let Some(asked) = asked {
        let full = join(package, asked);
        return [full.as_str(), asked]
            .into_iter()
            .find(|name| schema.messages.contains_key(*name))
            .map(str::to_owned)
            .ok_or_else(|| {
                SchemaError::invalid(
                    SchemaType::Protobuf,
                    "danube:root",
                    format!("message `{asked}` is not defined here"),
                )
            });
    }
    match own.and_then(|file| file.message_type.first()) {
        Some(first) => Ok(join(package, first.name())),
        None => Err(SchemaError::invalid(
            SchemaType::Protobuf,
            "the file",
            "it defines no message, so there is nothing that a payload could be",
        )),
    }
}

fn join(prefix: &str, name: &str) -> String {
    if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") }
}

fn add_message(schema: &mut Tables, prefix: &str, of: &DescriptorProto, imported: bool) {
    let full = join(prefix, of.name());
    let mut message = Message {
        is_map_entry: of.options.as_ref().is_some_and(|options| options.map_entry()),
        imported,
        ..Message::default()
    };
    for field in &of.field {
        message.fields.insert(field.number(), field_of(field, of));
    }
    // The end of a message's range is excluded, the end of an enum's is not.
    message.reserved = Reserved {
        ranges: of
            .reserved_range
            .iter()
            .map(|range| (i64::from(range.start()), i64::from(range.end()) - 1))
            .collect(),
        names: of.reserved_name.iter().cloned().collect(),
    };
    of.nested_type.iter().for_each(|nested| add_message(schema, &full, nested, imported));
    of.enum_type.iter().for_each(|nested| add_enum(schema, &full, nested, imported));
    schema.messages.insert(full, message);
}

fn field_of(field: &FieldDescriptorProto, of: &DescriptorProto) -> Field {
    let oneof = field
        .oneof_index
        .filter(|_| !field.proto3_optional())
        .and_then(|at| of.oneof_decl.get(usize::try_from(at).ok()?))
        .map(|oneof| oneof.name().to_owned());
    Field {
        name: field.name().to_owned(),
        json_name: field.json_name().to_owned(),
        kind: field.r#type(),
        type_name: field.type_name().trim_start_matches('.').to_owned(),
        repeated: field.label() == Label::Repeated,
        required: field.label() == Label::Required,
        oneof,
    }
}

fn add_enum(schema: &mut Tables, prefix: &str, of: &EnumDescriptorProto, imported: bool) {
    let mut values: BTreeMap<i32, BTreeSet<String>> = BTreeMap::new();
    for value in &of.value {
        values.entry(value.number()).or_default().insert(value.name().to_owned());
    }
    let reserved = Reserved {
        ranges: of
            .reserved_range
            .iter()
            .map(|range| (i64::from(range.start()), i64::from(range.end())))
            .collect(),
        names: of.reserved_name.iter().cloned().collect(),
    };
    schema.enums.insert(join(prefix, of.name()), Enum { values, reserved, imported });
}

/// Descriptors with everything sorted whose order says nothing.
fn canonical(files: &mut Vec<FileDescriptorProto>, root: &str) -> Vec<u8> {
    files.retain(|file| !file.name().starts_with(WELL_KNOWN));
    files.sort_by(|a, b| a.name().cmp(b.name()));
    let mut form = format!("root {root}\n").into_bytes();
    for file in files {
        file.source_code_info = None;
        file.message_type.iter_mut().for_each(sort_message);
        file.message_type.sort_by(|a, b| a.name().cmp(b.name()));
        file.enum_type.iter_mut().for_each(sort_enum);
        file.enum_type.sort_by(|a, b| a.name().cmp(b.name()));
        if file.public_dependency.is_empty() && file.weak_dependency.is_empty() {
            file.dependency.sort();
        }
        form.extend(file.encode_length_delimited_to_vec());
    }
    form
}

fn sort_message(message: &mut DescriptorProto) {
    // Oneofs are referred to by position, so their order follows that of their first field.
    let first_field = |message: &DescriptorProto, at: usize| {
        let of = |field: &&FieldDescriptorProto| {
            field.oneof_index.and_then(|index| usize::try_from(index).ok()) == Some(at)
        };
        message.field.iter().filter(of).map(FieldDescriptorProto::number).min()
    };
    let mut order: Vec<usize> = (0..message.oneof_decl.len()).collect();
    order.sort_by_key(|at| first_field(message, *at));
    let declared = std::mem::take(&mut message.oneof_decl);
    message.oneof_decl = order.iter().map(|at| declared[*at].clone()).collect();
    for field in &mut message.field {
        if let Some(index) = &mut field.oneof_index {
            let now = order.iter().position(|at| i32::try_from(*at) == Ok(*index));
            *index = now.and_then(|now| i32::try_from(now).ok()).unwrap_or(*index);
        }
    }
    message.field.sort_by_key(FieldDescriptorProto::number);
    message.nested_type.iter_mut().for_each(sort_message);
    message.nested_type.sort_by(|a, b| a.name().cmp(b.name()));
    message.enum_type.iter_mut().for_each(sort_enum);
    message.enum_type.sort_by(|a, b| a.name().cmp(b.name()));
    message.reserved_range.sort_by_key(|range| (range.start(), range.end()));
    message.reserved_name.sort();
}

/// The first value is the default, so the order of values stays.
fn sort_enum(of: &mut EnumDescriptorProto) {
    of.reserved_range.sort_by_key(|range| (range.start(), range.end()));
    of.reserved_name.sort();
}

/// Whether a type is a message on the wire.
pub(super) fn is_message(kind: Type) -> bool {
    matches!(kind, Type::Message | Type::Group)
}
