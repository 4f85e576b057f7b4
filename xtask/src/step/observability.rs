//! Step `observability`: a real Prometheus scrapes the binary just built; the shipped rules and
//! every query of the shipped dashboard are tried on it.
//!
//! The tests live in `interop/observability`. Prometheus is Debian's package, unpacked under the
//! build folder without being installed, unless the machine has one.

use super::clients::build;
use crate::ground::Ground;
use anyhow::{Context, Result, bail};
use std::path::PathBuf;
use xshell::{Shell, cmd};

/// The tests of `interop/observability`.
pub fn run(ground: &Ground) -> Result<()> {
    let danube = build(ground)?;
    let shell = ground.shell()?;
    let prometheus = prometheus(&shell, ground)?;
    shell.change_dir(ground.root.join("interop/observability"));
    cmd!(shell, "python3 -m unittest discover -v")
        .env("DANUBE_BIN", danube)
        .env("PROMETHEUS_BIN", prometheus)
        .run()?;
    Ok(())
}

/// The folder of `prometheus` and `promtool`.
fn prometheus(shell: &Shell, ground: &Ground) -> Result<PathBuf> {
    if let Some(found) = on_path() {
        return Ok(found);
    }
    let home = ground.target.join("prometheus");
    let binaries = home.join("usr/bin");
    if has_both(&binaries) {
        return Ok(binaries);
    }
    shell.remove_path(&home)?;
    shell.create_dir(&home)?;
    let _there = shell.push_dir(&home);
    let fetched = cmd!(shell, "apt-get download --quiet prometheus").run().or_else(|_| {
        // A machine that was never updated knows no packages.
        cmd!(shell, "apt-get update --quiet").run()?;
        cmd!(shell, "apt-get download --quiet prometheus").run()
    });
    fetched.context("Prometheus is not on this machine and cannot be fetched; install it")?;
    let entries = shell.read_dir(&home)?;
    let package = entries.iter().find(|path| path.extension().is_some_and(|it| it == "deb"));
    let package = package.context("the package was fetched to where the step stands")?;
    cmd!(shell, "dpkg-deb --extract {package} {home}").run()?;
    if !has_both(&binaries) {
        bail!("the package has no prometheus and promtool in `{}`", binaries.display());
    }
    Ok(binaries)
}

fn has_both(folder: &std::path::Path) -> bool {
    ["prometheus", "promtool"].iter().all(|name| folder.join(name).is_file())
}

fn on_path() -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?).find(|folder| has_both(folder))
}
