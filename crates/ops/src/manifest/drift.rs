//! `drift`: what has moved away from what manifests declared, and who moved it.

use super::Field;
use crate::channel::{self, call};
use crate::error::OpError;
use crate::operation::{Effect, Operation, Output, Permission, Spec};
use crate::session::Session;
use crate::view::time;
use danube_wire::proto::control::ListDriftRequest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Print what is not as manifests declared it, and who changed it; exit code 1 when something is
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub struct ListDrift {
    /// Only what this owner declared [default: everybody]
    #[arg(long, value_name = "NAME")]
    #[serde(default)]
    owner: Option<String>,
}

/// What drifted.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Drifts {
    drift: Vec<Drift>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Drift {
    /// Absent: nobody declares it.
    owner: Option<String>,
    kind: String,
    name: String,
    /// `changed`, `missing` or `unmanaged`.
    how: String,
    /// `old` is what was declared, `new` what is there.
    fields: Vec<Field>,
    /// When it was changed last since it was declared.
    changed_at: Option<String>,
    /// By whom, as far as the broker knows.
    changed_by: Option<String>,
    /// By which change.
    change: Option<String>,
}

impl Operation for ListDrift {
    type Output = Drifts;
    const SPEC: Spec = Spec {
        path: ("", "drift"),
        permission: Permission::Lookup,
        effect: Effect::Read,
        example: "--owner apply",
    };

    async fn run(self, session: &Session) -> Result<Drifts, OpError> {
        let mut control = session.control().await?;
        let answer = call(control.list_drift(ListDriftRequest { owner: self.owner })).await;
        let answer = answer.map_err(|status| channel::error("drift cannot be listed", &status))?;
        let drift = answer.drift.into_iter().map(|found| Drift {
            owner: (!found.owner.is_empty()).then_some(found.owner),
            kind: found.kind,
            name: found.name,
            how: found.how,
            fields: found.fields.into_iter().map(Field::of).collect(),
            changed_at: found.changed_at.map(time),
            changed_by: found.changed_by,
            change: found.change,
        });
        Ok(Drifts { drift: drift.collect() })
    }
}

impl Output for Drifts {
    fn text(&self) -> String {
        let mut lines = Vec::new();
        for drift in &self.drift {
            let owner = drift.owner.as_deref().map(|owner| format!(" (owner {owner})"));
            let owner = owner.unwrap_or_default();
            lines.push(format!("{:<9} {:<12} {}{owner}", drift.how, drift.kind, drift.name));
            lines.extend(drift.fields.iter().map(|field| format!("            {}", field.line())));
            if let (Some(at), Some(by), Some(change)) =
                (&drift.changed_at, &drift.changed_by, &drift.change)
            {
                lines.push(format!("            {change} at {at} by {by}"));
            }
        }
        match lines.is_empty() {
            true => "no drift: everything is as it was declared".to_owned(),
            false => lines.join("\n"),
        }
    }

    fn refused(&self) -> Option<String> {
        let count = self.drift.len();
        (count > 0).then(|| format!("{count} objects are not as manifests declared them"))
    }
}
