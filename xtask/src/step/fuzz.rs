//! Step `fuzz`: every fuzz target runs for a few seconds from its corpus.
//!
//! That needs cargo-fuzz and a nightly toolchain, which nobody must have: the ordinary tests run the
//! same targets over the corpus and changed copies of it. Where the tools are not there, the step
//! says so. What a run finds worth keeping stays under the build folder; the corpus is only read.

use crate::ground::Ground;
use anyhow::{Context, Result, bail};
use xshell::cmd;

/// Seconds for each target.
const SECONDS: u32 = 5;

/// Runs the targets of `fuzz/`.
pub fn run(ground: &Ground) -> Result<()> {
    let shell = ground.shell()?;
    if cmd!(shell, "cargo +nightly fuzz --version").quiet().ignore_stderr().read().is_err() {
        eprintln!("no cargo-fuzz with a nightly toolchain here; fuzz/README.md says how to get it");
        return Ok(());
    }
    shell.set_var("CARGO_TARGET_DIR", ground.target.join("fuzz"));
    shell.change_dir(ground.root.join("fuzz"));
    let names = shell.read_dir("fuzz_targets")?;
    let targets = names.iter().filter_map(|path| path.file_stem()?.to_str());
    let found = ground.target.join("fuzz-found");
    let seconds = SECONDS.to_string();
    let mut count = 0;
    for target in targets {
        let own = found.join(target);
        shell.create_dir(&own)?;
        let artifacts = format!("-artifact_prefix={}/", found.display());
        let limit = format!("-max_total_time={seconds}");
        // New inputs go to the first folder; the others are only read.
        cmd!(
            shell,
            "cargo +nightly fuzz run {target} {own} corpus/{target} -- {limit} {artifacts} -verbosity=0 -print_final_stats=1"
        )
        .run()
        .with_context(|| format!("target `{target}` failed; the input is in {}", found.display()))?;
        count += 1;
    }
    if count == 0 {
        bail!("fuzz/fuzz_targets has no target");
    }
    Ok(())
}
