//! `schemas check`: would this version be taken, and if not, what breaks for whom?

use super::definition::{DefinitionArg, SubjectArg};
use crate::channel::{self, call};
use crate::error::OpError;
use crate::operation::{Effect, Operation, Output, Permission, Spec};
use crate::session::Session;
use danube_core::Compatibility;
use danube_core::schema::{JsonLevel, ProtobufLevel};
use danube_wire::proto::control::{CheckSchemaRequest, CheckSchemaResponse, SchemaBreak};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Say whether a definition may follow the versions of a subject, and what it would break; nothing
/// is registered, and the exit code is 1 when it may not
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub struct Check {
    #[command(flatten)]
    #[serde(flatten)]
    subject: SubjectArg,
    #[command(flatten)]
    #[serde(flatten)]
    definition: DefinitionArg,
    /// Under this mode instead of the subject's: none, backward, forward or full
    #[arg(long, value_name = "MODE")]
    #[serde(default)]
    mode: Option<String>,
    /// At this level instead of the subject's: lenient or strict
    #[arg(long, value_name = "LEVEL")]
    #[serde(default)]
    json_level: Option<String>,
    /// At this level instead of the subject's: wire or json
    #[arg(long, value_name = "LEVEL")]
    #[serde(default)]
    protobuf_level: Option<String>,
}

/// The verdict.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Verdict {
    subject: String,
    compatible: bool,
    mode: String,
    json_level: String,
    protobuf_level: String,
    /// The versions it was held against.
    versions: Vec<u32>,
    /// It is this version already.
    same_as: Option<u32>,
    breaks: Vec<Break>,
    warnings: Vec<Warning>,
    /// There are more than are listed.
    truncated: bool,
    fingerprint: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Break {
    version: u32,
    /// `new_reads_old` or `old_reads_new`.
    direction: String,
    path: String,
    rule: String,
    old: String,
    new: String,
    why: String,
    witness: Option<Value>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Warning {
    version: u32,
    path: String,
    rule: String,
    why: String,
}

impl Operation for Check {
    type Output = Verdict;
    const SPEC: Spec = Spec {
        path: ("schemas", "check"),
        permission: Permission::Lookup,
        effect: Effect::Read,
        example: "order-events --schema-type avro --file order.avsc --mode full",
    };

    async fn run(self, session: &Session) -> Result<Verdict, OpError> {
        let subject = self.subject.name()?;
        let (schema_type, definition) = self.definition.read()?;
        let mode: Option<Compatibility> = self.mode.as_deref().map(str::parse).transpose()?;
        let json: Option<JsonLevel> = self.json_level.as_deref().map(str::parse).transpose()?;
        let protobuf: Option<ProtobufLevel> =
            self.protobuf_level.as_deref().map(str::parse).transpose()?;
        let request = CheckSchemaRequest {
            subject: subject.to_string(),
            schema_type: schema_type.to_string(),
            schema_definition: definition,
            compatibility_mode: mode.map(|mode| mode.to_string()),
            json_level: json.map(|level| level.to_string()),
            protobuf_level: protobuf.map(|level| level.to_string()),
        };
        let mut control = session.control().await?;
        let answer = call(control.check_schema(request)).await.map_err(|status| {
            channel::error(
                &format!("subject `{subject}`: the definition cannot be checked"),
                &status,
            )
        })?;
        Ok(Verdict::of(subject.to_string(), answer))
    }
}

impl Verdict {
    fn of(subject: String, wire: CheckSchemaResponse) -> Verdict {
        Verdict {
            subject,
            compatible: wire.compatible,
            mode: wire.compatibility_mode,
            json_level: wire.json_level,
            protobuf_level: wire.protobuf_level,
            versions: wire.versions,
            same_as: wire.same_as,
            breaks: wire.breaks.into_iter().map(Break::from).collect(),
            warnings: wire
                .warnings
                .into_iter()
                .map(|wire| Warning {
                    version: wire.version,
                    path: wire.path,
                    rule: wire.rule,
                    why: wire.why,
                })
                .collect(),
            truncated: wire.truncated,
            fingerprint: wire.fingerprint,
        }
    }

    fn headline(&self) -> String {
        let subject = &self.subject;
        if let Some(version) = self.same_as {
            return format!("compatible: it means the same as version {version} of {subject}");
        }
        let against = match self.versions.as_slice() {
            [] => "which has no versions yet".to_owned(),
            [one] => format!("version {one}"),
            [first, .., last] => format!("{} versions, {first} to {last}", self.versions.len()),
        };
        let word = if self.compatible { "compatible" } else { "INCOMPATIBLE" };
        format!("{word}: {subject} ({against}), mode {}", self.mode)
    }
}

impl From<SchemaBreak> for Break {
    fn from(wire: SchemaBreak) -> Break {
        Break {
            version: wire.version,
            direction: wire.direction,
            path: wire.path,
            rule: wire.rule,
            old: wire.old,
            new: wire.new,
            why: wire.why,
            witness: wire.witness.map(|text| serde_json::from_str(&text).unwrap_or(text.into())),
        }
    }
}

/// Who cannot read whom, as a heading.
fn for_whom(direction: &str) -> &str {
    match direction {
        "new_reads_old" => "readers of the new schema cannot read what was written with",
        "old_reads_new" => "what is written with the new schema cannot be read by readers of",
        other => other,
    }
}

impl Output for Verdict {
    fn text(&self) -> String {
        let mut lines = vec![self.headline()];
        let mut heading = None;
        for found in &self.breaks {
            let own = (found.version, found.direction.as_str());
            if heading != Some(own) {
                heading = Some(own);
                lines.push(format!("\n{} version {}:", for_whom(&found.direction), found.version));
            }
            let path = if found.path.is_empty() { "(the top)" } else { &found.path };
            lines.push(format!("  {path}  [{}]", found.rule));
            if !(found.old.is_empty() && found.new.is_empty()) {
                for (sign, text) in [("-", &found.old), ("+", &found.new)] {
                    let text = if text.is_empty() { "(absent)" } else { text };
                    lines.push(format!("    {sign} {text}"));
                }
            }
            lines.push(format!("    {}", found.why));
            if let Some(witness) = &found.witness {
                lines.push(format!("    for example {witness}"));
            }
        }
        for warning in &self.warnings {
            lines.push(format!(
                "\nwarning, version {}: {}  [{}]\n    {}",
                warning.version, warning.path, warning.rule, warning.why
            ));
        }
        lines.join("\n")
    }

    fn notes(&self) -> Vec<String> {
        match self.truncated {
            true => vec!["there is more than is listed; mend these first".to_owned()],
            false => Vec::new(),
        }
    }

    fn refused(&self) -> Option<String> {
        let count = self.breaks.len();
        (!self.compatible).then(|| {
            format!(
                "subject `{}` would not take it: {count} {}",
                self.subject,
                if count == 1 { "break" } else { "breaks" }
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use danube_wire::proto::control::SchemaWarning;
    use expect_test::expect;

    #[test]
    fn a_verdict_reads_like_a_diff() {
        let found = |version: u32, direction: &str, path: &str, old: &str, new: &str| SchemaBreak {
            version,
            direction: direction.into(),
            path: path.into(),
            rule: "type_changed".into(),
            old: old.into(),
            new: new.into(),
            why: "a long does not fit an int".into(),
            witness: (version == 2).then(|| "{\"a\":1.5}".into()),
        };
        let wire = CheckSchemaResponse {
            compatible: false,
            breaks: vec![
                found(1, "new_reads_old", "R.f1", "long", "int"),
                found(1, "new_reads_old", "", "", "int"),
                found(2, "old_reads_new", "#/properties/a", "int", "long"),
            ],
            warnings: vec![SchemaWarning {
                version: 2,
                path: "M.1".into(),
                rule: "deleted".into(),
                why: "reserve the number".into(),
            }],
            truncated: true,
            compatibility_mode: "full".into(),
            versions: vec![1, 2],
            ..Default::default()
        };
        let verdict = Verdict::of("orders".into(), wire);
        expect![[r#"
            INCOMPATIBLE: orders (2 versions, 1 to 2), mode full

            readers of the new schema cannot read what was written with version 1:
              R.f1  [type_changed]
                - long
                + int
                a long does not fit an int
              (the top)  [type_changed]
                - (absent)
                + int
                a long does not fit an int

            what is written with the new schema cannot be read by readers of version 2:
              #/properties/a  [type_changed]
                - int
                + long
                a long does not fit an int
                for example {"a":1.5}

            warning, version 2: M.1  [deleted]
                reserve the number"#]]
        .assert_eq(&verdict.text());
        assert_eq!(
            verdict.refused().as_deref(),
            Some("subject `orders` would not take it: 3 breaks")
        );
        let fine = CheckSchemaResponse { compatible: true, same_as: Some(3), ..Default::default() };
        let fine = Verdict::of("orders".into(), fine);
        assert_eq!(fine.text(), "compatible: it means the same as version 3 of orders");
        assert_eq!(fine.refused(), None);
    }
}
