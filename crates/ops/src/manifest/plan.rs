//! The plan of a manifest as the broker made it, and how it is shown.

use super::Field;
use super::files::ManifestArgs;
use crate::channel::{self, call_within};
use crate::error::OpError;
use crate::operation::Output;
use crate::session::Session;
use danube_core::manifest::Manifest;
use danube_wire::proto::control::{self, ApplyManifestRequest, ApplyManifestResponse};
use schemars::JsonSchema;
use serde::Serialize;
use std::time::Duration;

/// Longest wait for an apply unless the user says otherwise, in seconds.
pub(super) const APPLY_TIMEOUT_S: u32 = 300;

/// How a plan is asked for.
#[derive(Debug, Clone)]
pub(super) struct How {
    pub(super) dry_run: bool,
    pub(super) prune: bool,
    pub(super) prune_kinds: Vec<String>,
    pub(super) replace: Vec<String>,
    pub(super) update_subscriptions: bool,
    pub(super) force: bool,
    pub(super) timeout: Duration,
}

impl Default for How {
    fn default() -> How {
        How {
            dry_run: false,
            prune: false,
            prune_kinds: Vec::new(),
            replace: Vec::new(),
            update_subscriptions: false,
            force: false,
            timeout: Duration::from_secs(APPLY_TIMEOUT_S.into()),
        }
    }
}

/// A plan, and what became of it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Plan {
    owner: String,
    dry_run: bool,
    /// Something in it cannot be done, so nothing was.
    refused: bool,
    /// How many lines have which action.
    summary: Summary,
    items: Vec<Item>,
    /// Declared by the owner before and no longer; `--prune` removes them.
    undeclared: Vec<String>,
    #[serde(skip)]
    pub(super) is_diff: bool,
}

/// How many lines have which action.
#[derive(Debug, Default, Serialize, JsonSchema)]
struct Summary {
    create: usize,
    update: usize,
    replace: usize,
    unchanged: usize,
    prune: usize,
    conflict: usize,
    blocked: usize,
    /// Entries that were only checked, without a broker.
    valid: usize,
    /// Lines that were to be done and were not.
    not_done: usize,
}

/// One line of a plan.
#[derive(Debug, Serialize, JsonSchema)]
struct Item {
    /// `create`, `update`, `replace`, `unchanged`, `conflict`, `prune`, `blocked` or `valid`.
    action: String,
    kind: String,
    name: String,
    /// Where it is declared, as `file:line`.
    at: Option<String>,
    fields: Vec<Field>,
    /// Why it is a conflict or blocked.
    why: Option<String>,
    warnings: Vec<String>,
    /// `done`, `conflict`, `failed`, `skipped`, or absent.
    result: Option<String>,
    /// Why it was not done.
    error: Option<String>,
}

/// Sends a manifest.
pub(super) async fn ask(
    manifest: &ManifestArgs,
    how: How,
    session: &Session,
) -> Result<Plan, OpError> {
    let files = manifest.read()?;
    let request = ApplyManifestRequest {
        files: files.files,
        definitions: files.definitions,
        owner: manifest.owner.clone(),
        dry_run: how.dry_run,
        prune: how.prune,
        force: how.force,
        prune_kinds: how.prune_kinds,
        replace: how.replace,
        update_subscriptions: how.update_subscriptions,
    };
    let mut control = session.control().await?;
    let asked = control.apply_manifest(session.request(request));
    let answer = call_within(how.timeout, asked).await;
    let answer =
        answer.map_err(|status| channel::error("the manifest cannot be applied", &status))?;
    if !answer.problems.is_empty() {
        return Err(wrong(&answer.problems.iter().map(line).collect::<Vec<_>>()));
    }
    Ok(Plan::of(answer, how.dry_run))
}

/// Checks a manifest as far as that can be done without a broker.
pub(super) fn validate(manifest: &ManifestArgs) -> Result<Plan, OpError> {
    let files = manifest.read()?;
    let mut documents = Vec::new();
    let mut problems = Vec::new();
    for file in &files.files {
        match danube_core::manifest::read(&file.name, &file.text) {
            Ok(read) => documents.extend(read),
            Err(problem) => problems.push(problem.to_string()),
        }
    }
    if !problems.is_empty() {
        return Err(wrong(&problems));
    }
    let definitions = files.definitions.into_iter().collect();
    let parsed = Manifest::parse(&documents, manifest.owner.as_deref(), &definitions);
    let parsed = parsed
        .map_err(|problems| wrong(&problems.iter().map(ToString::to_string).collect::<Vec<_>>()))?;
    let items = parsed.objects.iter().map(|declared| Item {
        action: "valid".to_owned(),
        kind: declared.key.kind().to_owned(),
        name: declared.key.name(),
        at: Some(declared.at.to_string()),
        fields: Vec::new(),
        why: None,
        warnings: Vec::new(),
        result: None,
        error: None,
    });
    let items: Vec<Item> = items.collect();
    Ok(Plan {
        owner: parsed.owner,
        dry_run: true,
        refused: false,
        summary: Summary { valid: items.len(), ..Summary::default() },
        items,
        undeclared: Vec::new(),
        is_diff: false,
    })
}

/// The refusal of a manifest that is wrong.
fn wrong(problems: &[String]) -> OpError {
    let mut message = match problems.len() {
        1 => "the manifest is wrong in 1 place; nothing was changed".to_owned(),
        count => format!("the manifest is wrong in {count} places; nothing was changed"),
    };
    for problem in problems {
        message += &format!("\n  {problem}");
    }
    OpError::usage(message)
}

fn line(problem: &control::ManifestProblem) -> String {
    let at = place(problem.file.as_deref(), problem.line);
    let at = at.map(|at| format!("{at}: ")).unwrap_or_default();
    match problem.entry.as_str() {
        "" => format!("{at}{}", problem.why),
        entry => format!("{at}{entry}: {}", problem.why),
    }
}

fn place(file: Option<&str>, line: Option<u32>) -> Option<String> {
    Some(format!("{}:{}", file?, line?))
}

impl Plan {
    fn of(answer: ApplyManifestResponse, dry_run: bool) -> Plan {
        let mut summary = Summary::default();
        for item in &answer.items {
            match item.action.as_str() {
                "create" => summary.create += 1,
                "update" => summary.update += 1,
                "replace" => summary.replace += 1,
                "prune" => summary.prune += 1,
                "conflict" => summary.conflict += 1,
                "blocked" => summary.blocked += 1,
                _ => summary.unchanged += 1,
            }
            summary.not_done += usize::from(!matches!(item.result.as_str(), "" | "done"));
        }
        Plan {
            owner: answer.owner,
            dry_run,
            refused: answer.refused,
            summary,
            items: answer.items.into_iter().map(Item::of).collect(),
            undeclared: answer.undeclared,
            is_diff: false,
        }
    }

    fn changes(&self) -> usize {
        let Summary { create, update, replace, prune, .. } = self.summary;
        create + update + replace + prune
    }

    fn has_changes(&self) -> bool {
        self.changes() > 0
    }
}

impl Item {
    fn of(wire: control::PlanItem) -> Item {
        let given = |text: String| (!text.is_empty()).then_some(text);
        Item {
            at: place(wire.file.as_deref(), wire.line),
            action: wire.action,
            kind: wire.kind,
            name: wire.name,
            fields: wire.fields.into_iter().map(Field::of).collect(),
            why: given(wire.why),
            warnings: wire.warnings,
            result: given(wire.result),
            error: given(wire.error),
        }
    }

    /// The line of the plan, the same for a dry run and a real one; below it what changes.
    fn lines(&self, text: &mut String) {
        *text += &format!("{:<9} {:<12} {}\n", self.action, self.kind, self.name);
        for field in &self.fields {
            *text += &format!("            {}\n", field.line());
        }
        if let Some(why) = &self.why {
            let at = self.at.as_ref().map(|at| format!("{at}: ")).unwrap_or_default();
            *text += &format!("            {at}{why}\n");
        }
        for warning in &self.warnings {
            *text += &format!("            warning: {warning}\n");
        }
        if let Some(error) = &self.error {
            let result = self.result.as_deref().unwrap_or("failed");
            *text += &format!("            {result}: {error}\n");
        }
    }
}

impl Output for Plan {
    fn text(&self) -> String {
        let mut text = String::new();
        for item in &self.items {
            if !(self.is_diff && item.action == "unchanged") {
                item.lines(&mut text);
            }
        }
        let Summary { create, update, replace, unchanged, prune, valid, .. } = self.summary;
        if valid == self.items.len() {
            return text + &format!("{valid} entries are valid; no broker was asked");
        }
        let replace = if replace > 0 { format!(", {replace} to replace") } else { String::new() };
        text + &format!(
            "{create} to create, {update} to update{replace}, {prune} to prune, {unchanged} unchanged"
        )
    }

    fn notes(&self) -> Vec<String> {
        if self.undeclared.is_empty() {
            return Vec::new();
        }
        vec![format!(
            "owner `{}` declared these before and declares them no longer; --prune removes them: {}",
            self.owner,
            self.undeclared.join(", ")
        )]
    }

    fn partial(&self) -> Option<String> {
        let not_done = self.summary.not_done;
        (not_done > 0).then(|| {
            format!(
                "{not_done} of the steps were not done; what was done is safe, apply again to go on"
            )
        })
    }

    fn refused(&self) -> Option<String> {
        let Summary { conflict, blocked, .. } = self.summary;
        if self.refused {
            return Some(format!(
                "the manifest cannot be applied: {conflict} conflicts, {blocked} blocked; nothing \
                 was changed"
            ));
        }
        (self.is_diff && self.has_changes())
            .then(|| format!("{} objects differ from the manifest", self.changes()))
    }

    fn pending(&self) -> bool {
        self.dry_run && self.has_changes()
    }
}
