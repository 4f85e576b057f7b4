//! How a definition names another one: through the registry, never through the network.

use std::collections::BTreeMap;

/// Where a definition finds what it refers to.
///
/// Law: the same name gives the same bytes for as long as a schema that uses it is kept, so that
/// parsing it again anywhere gives the same schema.
pub trait References {
    /// The registered definition called `name`: the full name of an Avro type, the URI (without
    /// fragment) of a JSON Schema `$ref`, the file name of a Protobuf import.
    fn definition(&self, name: &str) -> Option<Vec<u8>>;
}

/// Refers to nothing: every definition stands alone.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoReferences;

impl References for NoReferences {
    fn definition(&self, _name: &str) -> Option<Vec<u8>> {
        None
    }
}

impl References for BTreeMap<String, Vec<u8>> {
    fn definition(&self, name: &str) -> Option<Vec<u8>> {
        self.get(name).cloned()
    }
}
