//! Step `test`: unit, property and process tests of the whole workspace.
//!
//! Plain `cargo test`: a fresh machine has no other runner.

use crate::ground::Ground;
use anyhow::Result;
use xshell::cmd;

/// Runs every test of the workspace.
pub fn run(ground: &Ground) -> Result<()> {
    let shell = ground.shell()?;
    cmd!(shell, "cargo test --locked --workspace").run()?;
    Ok(())
}
