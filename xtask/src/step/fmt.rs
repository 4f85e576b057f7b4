//! Step `fmt`: every Rust file is laid out by rustfmt, the satellites' too.

use crate::ground::Ground;
use anyhow::{Context, Result};
use xshell::cmd;

/// Checks the layout; `cargo xtask fix` mends it.
pub fn run(ground: &Ground) -> Result<()> {
    let shell = ground.shell()?;
    let advice = "some files are not laid out by rustfmt; `cargo xtask fix` mends it";
    cmd!(shell, "cargo fmt --all --check").run().context(advice)?;
    for satellite in ground.satellites() {
        let manifest = satellite.join("Cargo.toml");
        cmd!(shell, "cargo fmt --all --check --manifest-path {manifest}").run().context(advice)?;
    }
    Ok(())
}
