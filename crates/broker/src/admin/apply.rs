//! Apply a manifest: plan it, and carry the plan out unless it is a dry run.
//!
//! The plan is a value of the pure core; here are its surroundings: who is connected, what schemas
//! say, where subscriptions start, and the proposals to the catalog. A step that meets an object
//! which somebody else has changed meanwhile is planned once more; it counts as done when the other
//! one did the same, else it is a conflict and no further step is taken.
//!
//! Law: one apply at a time, and nothing is proposed of a plan that cannot be done whole.

use super::follow::follow;
use super::manifests::field;
use crate::clock::Clock;
use crate::context::Context;
use crate::schema::Caller;
use danube_core::catalog::{Catalog, ObjectKey};
use danube_core::change::{APPLY_STEPS_MAX, ApplyStep, ApplySteps, Change, Outcome, StepResult};
use danube_core::manifest::{
    self, Action, Item, Manifest, Mark, Options, Plan, Problem, candidates, revision,
};
use danube_core::{Fault, Position, TopicName};
use danube_wire::proto::control;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// The one apply that may run.
pub(crate) struct Applying(Semaphore);

impl Default for Applying {
    fn default() -> Applying {
        Applying(Semaphore::new(1))
    }
}

pub(super) async fn call(
    context: &Arc<Context>,
    caller: Caller,
    request: control::ApplyManifestRequest,
) -> Result<control::ApplyManifestResponse, Fault> {
    let options = options(&request, &caller)?;
    let manifest = match parse(&request) {
        Ok(manifest) => manifest,
        Err(problems) => {
            let problems = problems.into_iter().map(problem).collect();
            return Ok(control::ApplyManifestResponse {
                problems,
                refused: true,
                ..control::ApplyManifestResponse::default()
            });
        }
    };
    options.check(&manifest)?;
    let _turn = match request.dry_run {
        true => None,
        false => Some(context.applying.0.try_acquire().map_err(|_| {
            Fault::precondition(
                "conflict: another apply is under way, and two at once could undo each other; \
                 nothing was changed; run it again when the other is done",
            )
        })?),
    };
    let plan = plan(context, &manifest, &options).await?;
    let refused = plan.is_refused();
    let owner = plan.owner.clone();
    let undeclared = plan.undeclared.iter().map(ToString::to_string).collect();
    let results = match request.dry_run || refused {
        true => vec![End::Nothing; plan.items.len()],
        false => carry_out(context, &manifest, &options, &plan).await,
    };
    let items = plan.items.into_iter().zip(results).map(|(item, done)| line(item, done)).collect();
    Ok(control::ApplyManifestResponse { owner, problems: Vec::new(), items, undeclared, refused })
}

/// What became of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
enum End {
    /// There was nothing to do, or nothing was done.
    Nothing,
    /// It is done.
    Done,
    /// Somebody else changed the object meanwhile.
    Conflict,
    /// It was refused.
    Failed(String),
    /// An earlier step was not done.
    Skipped,
}

fn options(request: &control::ApplyManifestRequest, caller: &Caller) -> Result<Options, Fault> {
    Ok(Options {
        prune: request.prune,
        prune_kinds: request.prune_kinds.iter().cloned().collect(),
        replace: request
            .replace
            .iter()
            .map(|name| TopicName::parse(name))
            .collect::<Result<_, Fault>>()?,
        update_subscriptions: request.update_subscriptions,
        force: request.force,
        by: caller.by(""),
    })
}

fn parse(request: &control::ApplyManifestRequest) -> Result<Manifest, Vec<Problem>> {
    let mut documents = Vec::new();
    let mut problems = Vec::new();
    for file in &request.files {
        match manifest::read(&file.name, &file.text) {
            Ok(read) => documents.extend(read),
            Err(problem) => problems.push(problem),
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let files: BTreeMap<String, String> = request.definitions.clone().into_iter().collect();
    Manifest::parse(&documents, request.owner.as_deref(), &files)
}

fn problem(problem: Problem) -> control::ManifestProblem {
    let (file, line) = place(problem.at);
    control::ManifestProblem { file, line, entry: problem.entry, why: problem.why }
}

fn place(at: Option<Mark>) -> (Option<String>, Option<u32>) {
    at.map_or((None, None), |at| (Some(at.file.to_string()), Some(at.line)))
}

fn line(item: Item, done: End) -> control::PlanItem {
    let (file, line) = place(item.at);
    let (result, error) = match done {
        End::Nothing => ("", String::new()),
        End::Done => ("done", String::new()),
        End::Conflict => (
            "conflict",
            "somebody else changed it meanwhile, in another way; look at it and apply again"
                .to_owned(),
        ),
        End::Failed(why) => ("failed", why),
        End::Skipped => ("skipped", "an earlier step was not done".to_owned()),
    };
    // What is only written down, such as whose it is, is no work that a person would notice.
    let result = if item.action == Action::Unchanged && result == "done" { "" } else { result };
    control::PlanItem {
        action: item.action.as_str().to_owned(),
        kind: item.object.kind().to_owned(),
        name: item.object.name(),
        file,
        line,
        fields: item.fields.into_iter().map(field).collect(),
        why: item.why,
        warnings: item.warnings,
        result: result.to_owned(),
        error,
    }
}

/// Plans against the catalog as it is now.
async fn plan(
    context: &Arc<Context>,
    manifest: &Manifest,
    options: &Options,
) -> Result<Plan, Fault> {
    let view = context.meta.view();
    let busy = busy(context, &view, candidates(&view, manifest, options)).await?;
    let (manifest, options) = (manifest.clone(), options.clone());
    context.schemas.plan(view, manifest, options, busy).await
}

/// Which of these have data or clients, and which.
async fn busy(
    context: &Arc<Context>,
    view: &Catalog,
    objects: Vec<ObjectKey>,
) -> Result<BTreeMap<ObjectKey, String>, Fault> {
    let mut busy = BTreeMap::new();
    for object in objects {
        let why = match &object {
            ObjectKey::Topic(topic) => {
                let mut messages = 0;
                let mut clients = 0;
                for partition in view.partitions(topic) {
                    let found = context.topics.get(context, &partition)?.describe().await?;
                    messages += found.next.0 - found.start.0;
                    clients += connected(found.subscriptions.iter());
                }
                // Offsets of a topic that keeps nothing count what went by.
                let keeps = manifest::fields(view, &object)
                    .is_some_and(|fields| fields.get("delivery") == Some(&"Reliable".into()));
                tell(if keeps { messages } else { 0 }, "messages", clients)
            }
            ObjectKey::Subscription(topic, name) => {
                let (mut backlog, mut clients) = (0, 0);
                for partition in view.partitions(topic) {
                    let found = context.topics.get(context, &partition)?.describe().await?;
                    let own = found.subscriptions.iter().filter(|known| known.name == *name);
                    backlog += own.clone().map(|known| known.backlog).sum::<u64>();
                    clients += connected(own);
                }
                tell(backlog, "unfinished messages", clients)
            }
            ObjectKey::Namespace(_) | ObjectKey::Schema(_) => None,
        };
        busy.extend(why.map(|why| (object, why)));
    }
    Ok(busy)
}

fn connected<'a>(
    subscriptions: impl Iterator<Item = &'a crate::topic::SubscriptionDescription>,
) -> usize {
    let consumers = subscriptions.flat_map(|known| &known.consumers);
    consumers.filter(|consumer| consumer.connected).count()
}

fn tell(data: u64, what: &str, clients: usize) -> Option<String> {
    match (data, clients) {
        (0, 0) => None,
        (data, 0) => Some(format!("it has {data} {what}")),
        (0, clients) => Some(format!("it has {clients} connected consumers")),
        (data, clients) => Some(format!("it has {data} {what} and {clients} connected consumers")),
    }
}

/// Proposes the steps in order, some at a time; by item, what became of it.
async fn carry_out(
    context: &Arc<Context>,
    manifest: &Manifest,
    options: &Options,
    plan: &Plan,
) -> Vec<End> {
    let mut results = vec![End::Nothing; plan.items.len()];
    let work: Vec<(usize, &ApplyStep, Option<Position>)> = plan
        .items
        .iter()
        .enumerate()
        .filter_map(|(index, item)| Some((index, item.step.as_ref()?, item.start)))
        .collect();
    let mut failed = false;
    for batch in work.chunks(APPLY_STEPS_MAX) {
        if failed {
            batch.iter().for_each(|(index, ..)| results[*index] = End::Skipped);
            continue;
        }
        let ends = propose(context, plan, options, batch).await;
        for ((index, step, _), end) in batch.iter().zip(ends) {
            let is_met = end == End::Conflict && !failed;
            let is_done = is_met && is_done_meanwhile(context, manifest, options, step).await;
            results[*index] = if is_done { End::Done } else { end };
            failed |= results[*index] != End::Done;
        }
    }
    tracing::info!(owner = plan.owner, by = options.by, steps = work.len(), failed, "applied");
    results
}

/// Proposes one batch of steps.
async fn propose(
    context: &Arc<Context>,
    plan: &Plan,
    options: &Options,
    batch: &[(usize, &ApplyStep, Option<Position>)],
) -> Vec<End> {
    let mut steps = Vec::with_capacity(batch.len());
    for (_, step, start) in batch {
        let mut step = (*step).clone();
        // A topic that is made anew has nothing yet, whatever its predecessor has.
        let is_of_replaced = plan.replaces(&step.object);
        if !is_of_replaced && let Err(fault) = fill_starts(context, &mut step, *start).await {
            return vec![End::Failed(fault.message); batch.len()];
        }
        steps.push(step);
    }
    let change = ApplySteps { owner: plan.owner.clone(), by: options.by.clone(), steps };
    match context.meta.propose(change, Clock::wall()).await {
        Ok(Outcome::StepsApplied { results }) => {
            let ends = results.iter().map(|result| match result {
                StepResult::Done(_) => End::Done,
                StepResult::Conflict => End::Conflict,
                StepResult::Refused(fault) => End::Failed(fault.message.clone()),
            });
            let ends: Vec<End> = ends.collect();
            for ((_, step, _), result) in batch.iter().zip(results) {
                let StepResult::Done(outcomes) = result else { continue };
                for outcome in outcomes {
                    follow(context, &step.object, outcome).await;
                }
            }
            ends
        }
        Ok(other) => vec![End::Failed(format!("asked for steps, got {other:?}")); batch.len()],
        Err(fault) => vec![End::Failed(fault.message); batch.len()],
    }
}

/// A new subscription of a topic that is there already starts at an offset that only the log knows.
async fn fill_starts(
    context: &Arc<Context>,
    step: &mut ApplyStep,
    start: Option<Position>,
) -> Result<(), Fault> {
    for change in &mut step.changes {
        let Change::CreateSubscription(create) = change else { continue };
        if !context.meta.view().partitions(&create.topic).is_empty() {
            let position = start.unwrap_or(Position::Latest);
            create.starts = super::starts(context, &create.topic, position).await?;
        }
    }
    Ok(())
}

/// Whether the object is by now as the manifest declares it, because somebody else did the same.
async fn is_done_meanwhile(
    context: &Arc<Context>,
    manifest: &Manifest,
    options: &Options,
    step: &ApplyStep,
) -> bool {
    if step.record.is_none() {
        return revision(&context.meta.view(), &step.object).is_none();
    }
    let Ok(again) = plan(context, manifest, options).await else { return false };
    let mut items = again.items.iter();
    items.any(|item| item.object == step.object && item.action == Action::Unchanged)
}
