//! What a publish passes on its way to its topic: does the message fit the topic's schema?
//!
//! ```text
//!  catalog ── set ──▶ TopicGate ─┬─ open: nothing is looked at
//!                                └─ Rules: policy, subject ─▶ id, version (a search in a short list)
//!                                                       └──▶ payload, by the parsed schema
//! ```
//!
//! Every transport asks [`TopicGate::check`] before it hands a message to the actor; what the broker
//! itself publishes (dead letters) does not pass here. Law: a message that fits takes no lock and
//! makes no allocation of ours, and `warn` never refuses.

use super::compiled::Compiled;
use crate::context::Context;
use crate::metrics::{MisfitKind, TopicMetrics};
use arc_swap::{ArcSwapOption, Guard};
use danube_core::catalog::{self, Catalog, Subject};
use danube_core::{Fault, SchemaId, SubjectName, Tick, TopicName, ValidationPolicy};
use danube_schema::{PayloadLimits, Schema};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Pause between two lines in the log about messages of one topic that do not fit.
const TELL_INTERVAL_MS: u64 = 10_000;
/// What the check of one payload may cost.
const PAYLOAD_LIMITS: PayloadLimits = PayloadLimits {
    work_max: 20_000_000,
    depth_max: 100,
    unpacked_len_max: 64 << 20,
    faults_max: 3,
};

/// What a message says of its schema, and what it carries.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tagged<'a> {
    pub(crate) schema_id: Option<u64>,
    pub(crate) schema_version: Option<u32>,
    pub(crate) payload: &'a [u8],
}

/// The gate of one loaded topic. It can be changed while messages pass.
pub(crate) struct TopicGate {
    topic: TopicName,
    /// `None` while there is nothing to look at.
    rules: ArcSwapOption<Rules>,
    metrics: Arc<TopicMetrics>,
    /// When the log was last told, plus one; 0 for never.
    told_at: AtomicU64,
    untold: AtomicU64,
}

/// A gate with the rules of one moment.
pub(crate) struct Passage<'a> {
    gate: &'a TopicGate,
    rules: Guard<Option<Arc<Rules>>>,
}

impl Passage<'_> {
    /// As [`TopicGate::check`].
    ///
    /// # Errors
    /// As there.
    pub(crate) fn check(&self, context: &Context, message: Tagged<'_>) -> Result<(), Fault> {
        let Some(rules) = self.rules.as_deref() else { return Ok(()) };
        self.gate.metrics.checked(rules.policy);
        match rules.look(context, message) {
            Ok(()) => Ok(()),
            Err(misfit) => self.gate.misfits(context, rules, &misfit),
        }
    }
}

/// How a topic checks its messages.
struct Rules {
    policy: ValidationPolicy,
    /// Checks payloads as well.
    payload: bool,
    subject: String,
    /// `None` when nobody has registered that subject.
    gate: Option<Arc<SubjectGate>>,
}

/// What the gates of all topics of a subject share.
pub(super) struct SubjectGate {
    id: SchemaId,
    name: SubjectName,
    revision: u64,
    /// By number.
    versions: Box<[Version]>,
}

struct Version {
    number: u32,
    /// Filled by the first payload that needs it.
    schema: OnceLock<Result<Arc<Schema>, Fault>>,
}

/// Why a message does not fit.
enum Misfit {
    /// The topic's subject is not registered.
    NoSubject,
    NoId,
    OtherId(u64),
    NoVersion(u32),
    Payload(String),
    /// Our own fault: the schema cannot be used.
    Schema(Fault),
}

impl TopicGate {
    /// The gate of `topic`; open until it is [set](TopicGate::set).
    pub(crate) fn new(topic: &TopicName, metrics: &Arc<TopicMetrics>) -> TopicGate {
        TopicGate {
            topic: topic.clone(),
            rules: ArcSwapOption::empty(),
            metrics: Arc::clone(metrics),
            told_at: AtomicU64::new(0),
            untold: AtomicU64::new(0),
        }
    }

    /// Makes the gate what the catalog says.
    pub(crate) fn set(&self, context: &Context, catalog: &Catalog, topic: &catalog::Topic) {
        let policy = topic.schema.validation_policy;
        let rules = match &topic.schema_subject {
            Some(subject) if policy != ValidationPolicy::None => Some(Arc::new(Rules {
                policy,
                payload: topic.schema.enable_payload_validation,
                subject: subject.clone(),
                gate: context.schemas.subject_gate(catalog, subject),
            })),
            _ => None,
        };
        self.rules.store(rules);
    }

    /// Lets a message pass, or says why not.
    ///
    /// # Errors
    /// `Invalid` under `enforce`, for a message that does not fit its topic's schema.
    pub(crate) fn check(&self, context: &Context, message: Tagged<'_>) -> Result<(), Fault> {
        self.as_it_is().check(context, message)
    }

    /// The gate with the rules of this moment, for messages that come together.
    pub(crate) fn as_it_is(&self) -> Passage<'_> {
        Passage { gate: self, rules: self.rules.load() }
    }

    /// Off the way of the messages that fit.
    #[cold]
    fn misfits(&self, context: &Context, rules: &Rules, misfit: &Misfit) -> Result<(), Fault> {
        self.metrics.misfit(misfit.kind());
        if rules.policy == ValidationPolicy::Enforce {
            return Err(misfit.fault(context, &self.topic, rules));
        }
        if let Some(count) = self.tell(context.clock.now()) {
            let fault = misfit.fault(context, &self.topic, rules);
            tracing::warn!(topic = %self.topic, policy = %rules.policy, count, "{fault}; taken all the same");
        }
        Ok(())
    }

    /// How many messages the next line in the log stands for; `None` when it is too early for one.
    fn tell(&self, now: Tick) -> Option<u64> {
        self.untold.fetch_add(1, Ordering::Relaxed);
        let before = self.told_at.load(Ordering::Relaxed);
        if before != 0 && now.0 < (before - 1).saturating_add(TELL_INTERVAL_MS) {
            return None;
        }
        let mine = now.0.saturating_add(1);
        self.told_at
            .compare_exchange(before, mine, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
            .then(|| self.untold.swap(0, Ordering::Relaxed))
    }
}

impl Rules {
    fn look(&self, context: &Context, message: Tagged<'_>) -> Result<(), Misfit> {
        let gate = self.gate.as_deref().ok_or(Misfit::NoSubject)?;
        let id = message.schema_id.ok_or(Misfit::NoId)?;
        if id != gate.id.0 {
            return Err(Misfit::OtherId(id));
        }
        let version = match message.schema_version {
            Some(number) => gate
                .versions
                .binary_search_by_key(&number, |version| version.number)
                .map(|at| &gate.versions[at])
                .map_err(|_| Misfit::NoVersion(number))?,
            // The wire lets it be left out; the payload then has to be of the latest.
            None => gate.versions.last().ok_or(Misfit::NoSubject)?,
        };
        if !self.payload {
            return Ok(());
        }
        let schema = version.schema.get_or_init(|| gate.parse(context, version.number));
        let schema = schema.as_ref().map_err(|fault| Misfit::Schema(fault.clone()))?;
        schema.validate(message.payload, &PAYLOAD_LIMITS).map_err(|faults| {
            let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
            Misfit::Payload(format!("version {}: {}", version.number, faults.join("; ")))
        })
    }
}

impl SubjectGate {
    /// What was parsed for `before`, the same subject at an earlier revision, is kept.
    pub(super) fn new(
        name: SubjectName,
        subject: &Subject,
        before: Option<&SubjectGate>,
    ) -> SubjectGate {
        let known = |number: u32| {
            let before = before?;
            let at =
                before.versions.binary_search_by_key(&number, |version| version.number).ok()?;
            before.versions[at].schema.get().cloned()
        };
        let version = |number: u32| {
            let schema = known(number).map_or_else(OnceLock::new, OnceLock::from);
            Version { number, schema }
        };
        SubjectGate {
            id: subject.id,
            name,
            revision: subject.revision,
            versions: subject.versions.keys().copied().map(version).collect(),
        }
    }

    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    fn parse(&self, context: &Context, version: u32) -> Result<Arc<Schema>, Fault> {
        let view = context.meta.view();
        let compiled: &Compiled = &context.schemas.compiled;
        let (name, subject) = view.subject_by_id(self.id).ok_or_else(|| {
            Fault::not_found(format!("schema subject `{}` was deleted meanwhile", self.name))
        })?;
        compiled.get(&view, (name.as_str(), subject), version)
    }
}

impl Misfit {
    /// What it counts as.
    fn kind(&self) -> MisfitKind {
        match self {
            Misfit::NoId => MisfitKind::MissingSchemaId,
            Misfit::OtherId(_) => MisfitKind::SubjectMismatch,
            Misfit::NoVersion(_) => MisfitKind::UnknownVersion,
            Misfit::Payload(_) => MisfitKind::PayloadInvalid,
            Misfit::NoSubject => MisfitKind::UnknownSubject,
            Misfit::Schema(_) => MisfitKind::SchemaUnusable,
        }
    }

    fn fault(&self, context: &Context, topic: &TopicName, rules: &Rules) -> Fault {
        let subject = &rules.subject;
        let why = match self {
            Misfit::NoSubject => {
                format!("nobody has registered its schema subject `{subject}`; register it first")
            }
            Misfit::NoId => format!(
                "the message has no schema_id and the topic wants schema subject `{subject}`; \
                 create the producer with a schema reference to it"
            ),
            Misfit::OtherId(id) => {
                let view = context.meta.view();
                match view.subject_by_id(SchemaId(*id)) {
                    Some((other, _)) => format!(
                        "the message has schema_id {id}, which is subject `{other}`, and the topic \
                         wants `{subject}`"
                    ),
                    None => format!(
                        "the message has schema_id {id}, which no subject of the registry has; the \
                         topic wants `{subject}`"
                    ),
                }
            }
            Misfit::NoVersion(version) => format!(
                "schema subject `{subject}` has no version {version}; was it deleted? Create the \
                 producer again to get the latest"
            ),
            Misfit::Payload(why) => format!("it does not fit schema subject `{subject}`, {why}"),
            Misfit::Schema(fault) => {
                return Fault::new(fault.kind, format!("message for topic `{topic}`: {fault}"));
            }
        };
        Fault::invalid(format!("message for topic `{topic}` does not fit its schema: {why}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Metrics;
    use crate::options::MetricsOptions;

    #[test]
    fn the_log_is_told_once_in_a_while_and_how_often_it_was() {
        let (told_at, untold) = (AtomicU64::new(0), AtomicU64::new(0));
        let gate = TopicGate {
            topic: TopicName::parse("/default/t").expect("well formed"),
            rules: ArcSwapOption::empty(),
            metrics: Metrics::new(&MetricsOptions::default())
                .topic(&TopicName::parse("/default/t").expect("well formed")),
            told_at,
            untold,
        };
        assert_eq!(gate.tell(Tick(0)), Some(1));
        assert_eq!(gate.tell(Tick(1)), None);
        assert_eq!(gate.tell(Tick(TELL_INTERVAL_MS - 1)), None);
        assert_eq!(gate.tell(Tick(TELL_INTERVAL_MS)), Some(3));
        assert_eq!(gate.tell(Tick(TELL_INTERVAL_MS + 1)), None);
    }
}
