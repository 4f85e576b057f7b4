//! The rules of the house, one per file under one closed list.
//!
//! A rule reads a [`House`] (files and manifests, nothing else) and returns [`Finding`]s, each
//! with the sentence that says what to do instead. A rule that nobody runs is decoration, so
//! every rule has a test that shows it bite.
//!
//! Law: rules judge and never write.

mod adr;
mod arrows;
mod docs;
mod licences;
mod manifests;
mod map;
mod marks;
mod module_docs;
mod readme;
mod satellites;
mod sources;
mod words;

pub use sources::House;

use crate::ground::Ground;
use anyhow::{Result, bail};

/// One place where a rule does not hold.
#[derive(Debug, PartialEq, Eq)]
pub struct Finding {
    /// File and line, or the name of a package.
    pub at: String,
    /// What is wrong there.
    pub what: String,
    /// What to do instead.
    pub instead: &'static str,
}

impl Finding {
    fn new(at: impl Into<String>, what: impl Into<String>, instead: &'static str) -> Finding {
        Finding { at: at.into(), what: what.into(), instead }
    }
}

/// A rule: its name, and what finds the places where it does not hold.
type Rule = (&'static str, fn(&House) -> Vec<Finding>);

const RULES: &[Rule] = &[
    ("arrows between crates", arrows::check),
    ("satellites stand alone", satellites::check),
    ("manifests inherit the house's lints", manifests::check),
    ("words that belong to one crate", words::check),
    ("module docs", module_docs::check),
    ("nothing left open", marks::check),
    ("decision records are dated", adr::check),
    ("documents are found", docs::check),
    ("the map names every crate", map::check),
    ("README's commands", readme::check),
    ("licences and bans", licences::check),
];

/// Step `house`: runs every rule.
pub fn run(ground: &Ground) -> Result<()> {
    let house = House::read(ground)?;
    let mut found = 0;
    for (name, rule) in RULES {
        let findings = rule(&house);
        eprintln!("   {} {name}", if findings.is_empty() { "ok    " } else { "FAILED" });
        for finding in &findings {
            eprintln!("     {}: {}; {}", finding.at, finding.what, finding.instead);
        }
        found += findings.len();
    }
    if found > 0 {
        bail!("{found} places break a rule of the house, each with its remedy above");
    }
    Ok(())
}
