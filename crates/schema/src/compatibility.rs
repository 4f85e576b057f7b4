//! Modes, levels, and the check of a new schema against every existing version.
//!
//! Law: the same arguments give the same verdict, so the dry check and registering agree.

use crate::error::SchemaError;
use crate::limits::CHECK_WORK_MAX;
use crate::schema::Schema;
use crate::verdict::{Direction, Findings, Verdict};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What a subject promises about its versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Compatibility {
    /// Nothing.
    None,
    /// Whoever has the new schema can read everything written before.
    #[default]
    Backward,
    /// Whoever has any existing version can read what is written from now on.
    Forward,
    /// Both.
    Full,
}

impl Compatibility {
    /// The lower-case spelling of the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Compatibility::None => "none",
            Compatibility::Backward => "backward",
            Compatibility::Forward => "forward",
            Compatibility::Full => "full",
        }
    }

    fn directions(self) -> &'static [Direction] {
        match self {
            Compatibility::None => &[],
            Compatibility::Backward => &[Direction::NewReadsOld],
            Compatibility::Forward => &[Direction::OldReadsNew],
            Compatibility::Full => &[Direction::NewReadsOld, Direction::OldReadsNew],
        }
    }
}

impl fmt::Display for Compatibility {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Compatibility {
    type Err = SchemaError;

    /// Reads the wire's word without regard to case.
    fn from_str(text: &str) -> Result<Compatibility, SchemaError> {
        match text.trim().to_ascii_lowercase().as_str() {
            "none" => Ok(Compatibility::None),
            "backward" => Ok(Compatibility::Backward),
            "forward" => Ok(Compatibility::Forward),
            "full" => Ok(Compatibility::Full),
            _ => Err(SchemaError::UnknownSetting {
                what: "compatibility mode",
                got: text.chars().take(64).collect(),
                choices: "none, backward, forward or full",
            }),
        }
    }
}

/// How open objects of JSON Schema are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JsonLevel {
    /// Names that only the reader declares are taken as unused by a writer that leaves its objects
    /// open. Adding or dropping an optional property is then compatible.
    #[default]
    Lenient,
    /// Pure set inclusion.
    Strict,
}

/// What of a Protobuf schema other people depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProtobufLevel {
    /// The binary encoding: numbers and types.
    #[default]
    Wire,
    /// The JSON encoding too: names of fields and of enum values.
    Json,
}

/// The named levels of a subject, for the languages that have some.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Levels {
    /// For JSON Schema.
    #[serde(default)]
    pub json: JsonLevel,
    /// For Protobuf.
    #[serde(default)]
    pub protobuf: ProtobufLevel,
}

/// Says whether `new` may follow the existing versions of its subject under `mode`, and if not,
/// everything that stands in the way. The order of `existing` is that of the verdict.
pub fn check(
    mode: Compatibility,
    levels: Levels,
    existing: &[(u32, &Schema)],
    new: &Schema,
) -> Verdict {
    let mut verdict = Verdict::default();
    let mut work_left = CHECK_WORK_MAX;
    for (version, old) in existing {
        if old.fingerprint() == new.fingerprint() {
            continue;
        }
        for direction in mode.directions() {
            let mut findings = Findings::new(*version, *direction, &mut verdict, &mut work_left);
            old.compare(new, levels, &mut findings);
        }
    }
    // A break that is the same in both directions (most of Protobuf's) is told once.
    let mut told: Vec<crate::verdict::Break> = Vec::with_capacity(verdict.breaks.len());
    let same = |a: &crate::verdict::Break, b: &crate::verdict::Break| {
        (a.version, &a.path, &a.rule, &a.old, &a.new)
            == (b.version, &b.path, &b.rule, &b.old, &b.new)
            && a.why == b.why
    };
    for found in std::mem::take(&mut verdict.breaks) {
        if !told.iter().any(|earlier| same(earlier, &found)) {
            told.push(found);
        }
    }
    verdict.breaks = told;
    let mut known = Vec::with_capacity(verdict.warnings.len());
    for warning in std::mem::take(&mut verdict.warnings) {
        if !known.contains(&warning) {
            known.push(warning);
        }
    }
    verdict.warnings = known;
    verdict
}
