//! One line for each call of a tool: when, who, what, with which arguments, and how it ended.
//!
//! Law: a call whose line cannot be written does not happen.

use crate::failure::Failure;
use danube_core::WallMs;
use danube_core::position::Rfc3339;
use serde_json::{Map, Value, json};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

/// Characters of one argument that are written down.
const ARGUMENT_LEN_MAX: usize = 256;

/// Where the lines go.
#[derive(Debug)]
pub(super) struct Audit {
    /// `None`: stderr.
    file: Option<Mutex<File>>,
}

/// One call.
#[derive(Debug)]
pub(super) struct Line<'a> {
    pub(super) client: &'a str,
    pub(super) tool: &'a str,
    pub(super) arguments: &'a Map<String, Value>,
    /// `asked`, then `ok`, `refused` or `failed`.
    pub(super) outcome: &'a str,
    pub(super) why: Option<&'a str>,
}

impl Audit {
    pub(super) fn open(path: Option<&Path>) -> Result<Audit, Failure> {
        let open = |path: &Path| {
            OpenOptions::new().create(true).append(true).open(path).map_err(|error| {
                Failure::refused(format!(
                    "audit log `{}` cannot be opened: {error}",
                    path.display()
                ))
            })
        };
        Ok(Audit { file: path.map(open).transpose()?.map(Mutex::new) })
    }

    pub(super) fn write(&self, line: &Line<'_>) -> std::io::Result<()> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = WallMs(u64::try_from(now.as_millis()).unwrap_or(u64::MAX));
        let document = json!({
            "audit": "mcp",
            "at": Rfc3339(now).to_string(),
            "client": line.client,
            "tool": line.tool,
            "arguments": line.arguments.iter().map(|(k, v)| (k.clone(), shortened(v))).collect::<Map<_, _>>(),
            "outcome": line.outcome,
            "why": line.why,
        });
        let text = format!("{document}\n");
        match &self.file {
            Some(file) => {
                let mut file = file.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                file.write_all(text.as_bytes())
            }
            None => std::io::stderr().lock().write_all(text.as_bytes()),
        }
    }
}

fn shortened(value: &Value) -> Value {
    match value {
        Value::String(text) if text.chars().count() > ARGUMENT_LEN_MAX => {
            let kept: String = text.chars().take(ARGUMENT_LEN_MAX).collect();
            format!("{kept}… ({} bytes)", text.len()).into()
        }
        other => other.clone(),
    }
}
