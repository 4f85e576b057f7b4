//! A definition as two verbs take it: from a file or as text, with its type.

use crate::error::OpError;
use danube_core::{SchemaType, SubjectName};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The subject a verb is about.
#[derive(Debug, Clone, clap::Args, Serialize, Deserialize)]
pub struct SubjectArg {
    /// The subject, such as `order-events`
    #[arg(value_name = "SUBJECT")]
    subject: String,
}

impl SubjectArg {
    /// The name.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage), saying what is wrong with it.
    pub(super) fn name(&self) -> Result<SubjectName, OpError> {
        Ok(SubjectName::parse(&self.subject)?)
    }
}

/// A definition and its type.
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub struct DefinitionArg {
    /// avro, json_schema, protobuf, string, number or bytes
    #[arg(long, value_name = "TYPE")]
    schema_type: String,
    #[command(flatten)]
    #[serde(flatten)]
    source: Source,
}

#[derive(Debug, clap::Args, Serialize, Deserialize)]
#[group(multiple = false)]
struct Source {
    /// The file that has the definition
    #[arg(long, value_name = "FILE")]
    // A program that sends a document sends the definition in it.
    #[serde(skip)]
    file: Option<PathBuf>,
    /// The definition itself
    #[arg(long, value_name = "TEXT")]
    #[serde(default)]
    schema: Option<String>,
}

impl DefinitionArg {
    /// Type and bytes.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) when the type is unknown, nothing was given, or
    /// the file cannot be read.
    pub(super) fn read(self) -> Result<(SchemaType, Vec<u8>), OpError> {
        let schema_type: SchemaType = self.schema_type.parse()?;
        let plain =
            matches!(schema_type, SchemaType::String | SchemaType::Number | SchemaType::Bytes);
        let definition = match (self.source.file, self.source.schema) {
            (Some(path), _) => std::fs::read(&path).map_err(|error| {
                OpError::usage(format!("file `{}` cannot be read: {error}", path.display()))
                    .help("give the path of a readable file, or the definition with --schema")
            })?,
            (None, Some(text)) => text.into_bytes(),
            (None, None) if plain => Vec::new(),
            (None, None) => {
                return Err(OpError::usage(format!("there is no {schema_type} definition"))
                    .help("give --file FILE or --schema TEXT"));
            }
        };
        Ok((schema_type, definition))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(schema_type: &str, file: Option<&str>, schema: Option<&str>) -> DefinitionArg {
        let source = Source { file: file.map(Into::into), schema: schema.map(Into::into) };
        DefinitionArg { schema_type: schema_type.into(), source }
    }

    #[test]
    fn plain_types_need_no_definition() {
        assert_eq!(given("STRING", None, None).read(), Ok((SchemaType::String, Vec::new())));
        assert!(given("avro", None, None).read().is_err());
        let (schema_type, text) = given("json", None, Some("true")).read().expect("given");
        assert_eq!((schema_type, text.as_slice()), (SchemaType::JsonSchema, b"true".as_slice()));
        let missing = given("avro", Some("/nowhere/at.all"), None).read().expect_err("no file");
        assert!(missing.message.contains("/nowhere/at.all"), "{missing}");
        assert!(given("thrift", None, Some("x")).read().is_err());
    }
}
