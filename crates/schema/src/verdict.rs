//! What a compatibility check found: every break, with the version and the place it breaks for.

use crate::limits::FAULTS_MAX;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Who cannot read whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Backward: readers with the new schema, data written with the existing version.
    NewReadsOld,
    /// Forward: readers with the existing version, data written with the new schema.
    OldReadsNew,
}

impl Direction {
    /// The sentence for a person.
    pub fn sentence(self) -> &'static str {
        match self {
            Direction::NewReadsOld => "readers of the new schema cannot read existing data",
            Direction::OldReadsNew => "existing readers cannot read data of the new schema",
        }
    }
}

/// One reason why the new schema is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Break {
    /// The existing version that it breaks with.
    pub version: u32,
    /// For whom.
    pub direction: Direction,
    /// Field path (Avro, Protobuf) or JSON pointer into the reader's schema (JSON Schema).
    pub path: String,
    /// The rule, in `snake_case`, stable for programs.
    pub rule: String,
    /// What the existing version has there.
    pub old: String,
    /// What the new schema has there.
    pub new: String,
    /// Why that breaks and what would not, in a sentence.
    pub why: String,
    /// A document that the writer's schema allows and the reader's refuses (JSON Schema only).
    pub witness: Option<serde_json::Value>,
}

impl fmt::Display for Break {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "version {}, `{}`, {}: {}", self.version, self.path, self.rule, self.why)?;
        if !(self.old.is_empty() && self.new.is_empty()) {
            write!(f, " (old: {}; new: {})", or_absent(&self.old), or_absent(&self.new))?;
        }
        if let Some(witness) = &self.witness {
            write!(f, "; for example {witness}")?;
        }
        write!(f, "; {}", self.direction.sentence())
    }
}

fn or_absent(text: &str) -> &str {
    if text.is_empty() { "absent" } else { text }
}

/// Something that is let through, but that whoever registers should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// The existing version.
    pub version: u32,
    /// Field path or JSON pointer.
    pub path: String,
    /// The rule, in `snake_case`.
    pub rule: String,
    /// What to know, in a sentence.
    pub why: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "version {}, `{}`, {}: {}", self.version, self.path, self.rule, self.why)
    }
}

/// The answer of [`check`](crate::check): compatible exactly when it lists no break.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// Every break, by version, then in the order of the schema.
    pub breaks: Vec<Break>,
    /// What is let through with a warning.
    pub warnings: Vec<Warning>,
    /// Whether there were more than [`FAULTS_MAX`] breaks or warnings.
    pub truncated: bool,
}

impl Verdict {
    /// Whether the new schema may be registered.
    pub fn is_compatible(&self) -> bool {
        self.breaks.is_empty()
    }

    pub(crate) fn break_at(&mut self, found: Break) {
        if self.breaks.len() < FAULTS_MAX {
            self.breaks.push(found);
        } else {
            self.truncated = true;
        }
    }

    pub(crate) fn warn(&mut self, warning: Warning) {
        if self.warnings.len() < FAULTS_MAX {
            self.warnings.push(warning);
        } else {
            self.truncated = true;
        }
    }
}

/// One comparison under way: reader, writer, and where what it finds is written down.
pub(crate) struct Findings<'a> {
    version: u32,
    direction: Direction,
    verdict: &'a mut Verdict,
    work_left: &'a mut u64,
}

impl<'a> Findings<'a> {
    pub(crate) fn new(
        version: u32,
        direction: Direction,
        verdict: &'a mut Verdict,
        work_left: &'a mut u64,
    ) -> Findings<'a> {
        Findings { version, direction, verdict, work_left }
    }

    /// Steps that the whole check has left, for the comparisons that count them.
    pub(crate) fn work_left(&mut self) -> &mut u64 {
        self.work_left
    }

    pub(crate) fn direction(&self) -> Direction {
        self.direction
    }

    /// A break, told from the reader's and the writer's side; `old` and `new` follow from the
    /// direction.
    pub(crate) fn reader_writer(
        &mut self,
        path: &str,
        rule: &str,
        reader: impl Into<String>,
        writer: impl Into<String>,
        why: impl Into<String>,
        witness: Option<serde_json::Value>,
    ) {
        let (old, new) = match self.direction {
            Direction::NewReadsOld => (writer.into(), reader.into()),
            Direction::OldReadsNew => (reader.into(), writer.into()),
        };
        self.verdict.break_at(Break {
            version: self.version,
            direction: self.direction,
            path: path.to_owned(),
            rule: rule.to_owned(),
            old,
            new,
            why: why.into(),
            witness,
        });
    }

    /// A break, told as old and new.
    pub(crate) fn old_new(
        &mut self,
        path: &str,
        rule: &str,
        old: impl Into<String>,
        new: impl Into<String>,
        why: impl Into<String>,
    ) {
        self.verdict.break_at(Break {
            version: self.version,
            direction: self.direction,
            path: path.to_owned(),
            rule: rule.to_owned(),
            old: old.into(),
            new: new.into(),
            why: why.into(),
            witness: None,
        });
    }

    pub(crate) fn warn(&mut self, path: &str, rule: &str, why: impl Into<String>) {
        self.verdict.warn(Warning {
            version: self.version,
            path: path.to_owned(),
            rule: rule.to_owned(),
            why: why.into(),
        });
    }
}
