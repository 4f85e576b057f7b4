//! The check of a new schema against every existing version.
//!
//! Law: the same arguments give the same verdict, so the dry check and registering agree.

use crate::limits::CHECK_WORK_MAX;
use crate::schema::Schema;
use crate::verdict::{Direction, Findings, Verdict};
use danube_core::schema::{Compatibility, Levels};

fn directions(mode: Compatibility) -> &'static [Direction] {
    match mode {
        Compatibility::None => &[],
        Compatibility::Backward => &[Direction::NewReadsOld],
        Compatibility::Forward => &[Direction::OldReadsNew],
        Compatibility::Full => &[Direction::NewReadsOld, Direction::OldReadsNew],
    }
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
        for direction in directions(mode) {
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
