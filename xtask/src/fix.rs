//! `cargo xtask fix`: what a machine can mend it mends, in the tree.
//!
//! Law: only mechanical changes: layout, suggestions that clippy calls safe, and the texts that
//! `expect-test` compares with. Read the diff before you commit it.

use crate::ground::Ground;
use anyhow::Result;
use xshell::cmd;

/// Formats, applies clippy's safe suggestions, rewrites expected texts.
///
/// # Errors
/// When a command fails; what earlier ones mended stays.
pub fn run(ground: &Ground) -> Result<()> {
    let shell = ground.shell()?;
    // Clippy first: what it rewrites may want another layout.
    cmd!(shell, "cargo clippy --fix --allow-dirty --allow-staged --workspace --all-targets")
        .run()?;
    cmd!(shell, "cargo fmt --all").run()?;
    for satellite in ground.satellites() {
        let manifest = satellite.join("Cargo.toml");
        cmd!(shell, "cargo fmt --all --manifest-path {manifest}").run()?;
    }
    cmd!(shell, "cargo test --workspace --no-fail-fast").env("UPDATE_EXPECT", "1").run()?;
    eprintln!("fixed what a machine can fix; read `git diff` before you commit it");
    Ok(())
}
