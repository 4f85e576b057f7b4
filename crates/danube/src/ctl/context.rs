//! `danube ctl context`: the clusters that this machine knows by name, in a file of the user's.
//!
//! ```yaml
//! current: prod
//! contexts:
//!   prod:
//!     endpoint: http://broker.example:50051
//! ```
//!
//! Law: the file is replaced whole, so that a crash leaves the old one or the new one.

use super::{Format, print};
use crate::failure::Failure;
use clap::Subcommand;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::PathBuf;

/// What to do with the context file.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Print the clusters and which one is current
    List,
    /// Print the current cluster
    Show,
    /// Remember a cluster, or give it another address; the first one becomes current
    Set {
        /// Its name
        #[arg(value_name = "NAME")]
        name: String,
        /// The admin address of one of its brokers
        #[arg(value_name = "URL")]
        url: String,
    },
    /// Make a cluster the current one
    Use {
        /// Its name
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Forget a cluster
    Remove {
        /// Its name
        #[arg(value_name = "NAME")]
        name: String,
    },
}

/// The file.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Contexts {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    current: Option<String>,
    #[serde(default)]
    contexts: BTreeMap<String, Context>,
}

/// One cluster.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Context {
    endpoint: String,
}

/// `$DANUBE_CONTEXT_FILE`, else `danube/contexts.yml` where the user's configuration is.
fn path() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(file) = set("DANUBE_CONTEXT_FILE") {
        return Some(file.into());
    }
    let home = || set("HOME").map(|home| PathBuf::from(home).join(".config"));
    let config = set("XDG_CONFIG_HOME").map(PathBuf::from).or_else(home)?;
    Some(config.join("danube").join("contexts.yml"))
}

impl Contexts {
    /// Reads the file; none is one without contexts.
    pub(super) fn read() -> Result<Contexts, Failure> {
        let Some(path) = path() else { return Ok(Contexts::default()) };
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Contexts::default()),
            Err(error) => {
                return Err(Failure::usage(format!(
                    "context file `{}` cannot be read: {error}",
                    path.display()
                )));
            }
        };
        serde_norway::from_str::<Option<Contexts>>(&text).map(Option::unwrap_or_default).map_err(
            |error| {
                Failure::usage(format!("context file `{}`: {error}", path.display()))
                    .help("mend it, or name another file in DANUBE_CONTEXT_FILE")
            },
        )
    }

    /// The address of a cluster.
    pub(super) fn endpoint(&self, name: &str) -> Result<String, Failure> {
        self.contexts.get(name).map(|context| context.endpoint.clone()).ok_or_else(|| {
            let known: Vec<&str> = self.contexts.keys().map(String::as_str).collect();
            let known =
                if known.is_empty() { "there is none".to_owned() } else { known.join(", ") };
            Failure::usage(format!("context `{}` is not known: {known}", name.escape_debug()))
                .help("`danube ctl context set NAME URL` remembers one")
        })
    }

    /// The address of the current cluster.
    pub(super) fn current(&self) -> Result<Option<String>, Failure> {
        self.current.as_deref().map(|name| self.endpoint(name)).transpose()
    }

    fn write(&self) -> Result<(), Failure> {
        let path = path().ok_or_else(|| {
            Failure::usage("there is no home directory for the context file")
                .help("name a file in DANUBE_CONTEXT_FILE")
        })?;
        let cannot = |error: std::io::Error| {
            Failure::refused(format!(
                "context file `{}` cannot be written: {error}",
                path.display()
            ))
        };
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(cannot)?;
        }
        let text = serde_norway::to_string(self)
            .map_err(|error| Failure::refused(format!("contexts cannot be written: {error}")))?;
        let fresh = path.with_extension("new");
        std::fs::write(&fresh, text).map_err(cannot)?;
        std::fs::rename(&fresh, &path).map_err(cannot)
    }
}

pub(super) fn run(arguments: &Arguments, format: Format) -> Result<(), Failure> {
    let mut contexts = Contexts::read()?;
    match &arguments.verb {
        Verb::List => {
            let rows = contexts.contexts.iter().map(|(name, context)| {
                let mark = if contexts.current.as_ref() == Some(name) { "*" } else { " " };
                format!("{mark} {name}  {}", context.endpoint)
            });
            let text = rows.collect::<Vec<_>>().join("\n");
            return print(format, &json!(contexts), &text);
        }
        Verb::Show => {
            let endpoint = contexts.current()?;
            let text = match (&contexts.current, &endpoint) {
                (Some(name), Some(endpoint)) => format!("{name}  {endpoint}"),
                _ => "no context is current".to_owned(),
            };
            let data = json!({ "current": contexts.current, "endpoint": endpoint });
            return print(format, &data, &text);
        }
        Verb::Set { name, url } => {
            contexts.contexts.insert(name.clone(), Context { endpoint: url.clone() });
            contexts.current.get_or_insert_with(|| name.clone());
        }
        Verb::Use { name } => {
            contexts.endpoint(name)?;
            contexts.current = Some(name.clone());
        }
        Verb::Remove { name } => {
            contexts.endpoint(name)?;
            contexts.contexts.remove(name);
            contexts.current.take_if(|current| current == name);
        }
    }
    contexts.write()
}
