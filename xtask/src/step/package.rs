//! Step `package`: the release binary runs on a bare Debian 12, and its package installs, runs and goes
//! again.
//!
//! The package is tried in a copy of this machine that is thrown away (`deploy/debian/try.sh`): what
//! it writes lands in memory. That needs root and Debian; elsewhere the step says what it left out.
//!
//! It is built from the clone of HEAD that the newcomer has, where it is built already.
//!
//! Law: nothing on the machine changes.

use super::newcomer::Checkout;
use crate::ground::Ground;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use xshell::{Shell, cmd};

/// The C library of Debian 12; whatever needs a later one does not start there.
const GLIBC_MAX: (u32, u32) = (2, 36);
/// Libraries that every Debian has.
const LIBRARIES: [&str; 4] = ["libc.so.6", "libm.so.6", "libgcc_s.so.1", "ld-linux"];
/// The package builder, and where it is installed below the build folder.
const CARGO_DEB: &str = "3.8.0";
/// Megabytes that the binary may have; `docs/running.md` promises it.
const BINARY_MB_MAX: u64 = 64;

/// Builds, looks, packs and tries.
pub fn run(ground: &Ground) -> Result<()> {
    let clone = Checkout::again(ground)?;
    let shell = ground.shell()?;
    shell.change_dir(&clone.root);
    shell.set_var("CARGO_TARGET_DIR", &clone.target);
    cmd!(shell, "cargo build --release --locked --package danube").run()?;
    let binary = clone.target.join("release/danube");
    look(&shell, &binary)?;
    if cmd!(shell, "dpkg --version").quiet().ignore_stdout().run().is_err() {
        eprintln!("this is no Debian: the package is not tried");
        return Ok(());
    }
    let package = pack(&shell, ground)?;
    let contents = cmd!(shell, "dpkg-deb --contents {package}").read()?;
    for file in
        ["./usr/bin/danube", "./etc/danube/danube.yml", "./usr/lib/systemd/system/danube.service"]
    {
        if !contents.lines().any(|line| line.ends_with(file)) {
            bail!("the package has no `{file}` but\n{contents}");
        }
    }
    if cmd!(shell, "id -u").read()? != "0" {
        eprintln!("this is not root: the package is not installed");
        return Ok(());
    }
    cmd!(shell, "unshare --mount --pid --fork sh deploy/debian/try.sh {package}").run()?;
    Ok(())
}

/// What the binary asks of a machine.
fn look(shell: &Shell, binary: &Path) -> Result<()> {
    let dynamic = cmd!(shell, "readelf --dynamic --wide {binary}").read()?;
    for line in dynamic.lines().filter(|line| line.contains("(NEEDED)")) {
        if !LIBRARIES.iter().any(|known| line.contains(known)) {
            bail!("the binary needs a library that a bare Debian does not have:{line}");
        }
    }
    let symbols = cmd!(shell, "readelf --dyn-syms --wide {binary}").read()?;
    let glibc = glibc_of(&symbols).context("the binary names no version of the C library")?;
    if glibc > GLIBC_MAX {
        bail!("the binary needs glibc {}.{}, and Debian 12 has 2.36", glibc.0, glibc.1);
    }
    let stripped = binary.with_file_name("danube-stripped");
    cmd!(shell, "objcopy --strip-all {binary} {stripped}").run()?;
    let len = std::fs::metadata(&stripped)?.len();
    std::fs::remove_file(&stripped)?;
    eprintln!(
        "the binary has {:.1} MB without debug information and needs glibc {}.{}",
        len as f64 / 1e6,
        glibc.0,
        glibc.1
    );
    if len > BINARY_MB_MAX * 1_000_000 {
        bail!("the binary has {len} bytes, and at most {BINARY_MB_MAX} MB are promised");
    }
    Ok(())
}

/// The latest version of the C library that a list of symbols names.
fn glibc_of(symbols: &str) -> Option<(u32, u32)> {
    let versions = symbols.split("@GLIBC_").skip(1).filter_map(|rest| {
        let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
        let mut numbers = rest[..end].split('.').map(|number| number.parse().ok());
        Some((numbers.next()??, numbers.next().flatten()?))
    });
    versions.max()
}

fn pack(shell: &Shell, ground: &Ground) -> Result<PathBuf> {
    let tools = ground.target.join("tools");
    let tool = tools.join("bin/cargo-deb");
    let wanted = cmd!(shell, "{tool} --version").quiet().read().is_ok_and(|it| it == CARGO_DEB);
    if !wanted {
        cmd!(
            shell,
            "cargo install --quiet --locked cargo-deb --version {CARGO_DEB} --root {tools}"
        )
        .env("CARGO_TARGET_DIR", ground.target.join("tools-build"))
        .run()
        .context("cargo-deb, which packs the package, cannot be installed")?;
    }
    let package = ground.target.join("debian/danube.deb");
    // Named `deb` as cargo would call it.
    cmd!(shell, "{tool} --package danube --no-build --locked --output {package}").run()?;
    Ok(package)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_version_of_the_c_library_is_found() {
        let symbols = "1: UND read@GLIBC_2.2.5 (2)\n2: UND stat@GLIBC_2.33 (4)\n3: UND x@GCC_3.0\n";
        assert_eq!(glibc_of(symbols), Some((2, 33)));
        assert_eq!(glibc_of("nothing"), None);
    }
}
