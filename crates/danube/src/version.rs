//! `danube version`: what this binary is, and with `--json` what it was made from and what files it
//! reads.
//!
//! Law: what is not known is `null`, never a guess.

use crate::failure::Failure;
use crate::output;
use serde_json::{Value, json};

/// Print the version
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Print version, commit, compiler and formats for programs
    #[arg(long)]
    json: bool,
}

/// Prints it.
///
/// # Errors
/// When stdout cannot be written.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.json {
        return output::line(format!("{:#}", whole()));
    }
    output::line(concat!("danube ", env!("CARGO_PKG_VERSION")))
}

fn whole() -> Value {
    let known = |value: &'static str| (!value.is_empty()).then_some(value);
    let epoch = known(env!("DANUBE_BUILD_EPOCH")).and_then(|epoch| epoch.parse::<u64>().ok());
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "commit": known(env!("DANUBE_BUILD_COMMIT")),
        "build_date_epoch": epoch,
        "rustc": known(env!("DANUBE_BUILD_RUSTC")),
        "target": known(env!("DANUBE_BUILD_TARGET")),
        "formats": {
            "record": danube_wire::record::VERSION,
            "journal": danube_store::JOURNAL_VERSION,
            "segment": danube_store::SEGMENT_VERSION,
            "checkpoint": danube_store::CHECKPOINT_VERSION,
            "catalog": danube_core::change::LEVEL,
        },
    })
}
