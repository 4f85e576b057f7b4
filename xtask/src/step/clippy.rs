//! Steps `clippy` and `fence`: no lint fires, and the fence around the pure crates truly bites.
//!
//! Clippy takes the nearest `clippy.toml` above a package. The root's has the rules for all, and
//! `crates/core/clippy.toml` the strict ones. A path that is mistyped there forbids nothing and
//! nobody would notice, so `fence` makes a probe that does each forbidden thing once and counts.

use crate::ground::Ground;
use anyhow::{Result, bail};
use xshell::cmd;

/// What the pure crates must not say, each as a line of the probe.
const FORBIDDEN: &[(&str, &str)] = &[
    ("std::time::Instant::now", "let _ = std::time::Instant::now();"),
    ("std::time::SystemTime::now", "let _ = std::time::SystemTime::now();"),
    ("std::time::Instant::elapsed", "let _ = |at: std::time::Instant| at.elapsed();"),
    ("std::time::SystemTime::elapsed", "let _ = |at: std::time::SystemTime| at.elapsed();"),
    ("std::thread::sleep", "std::thread::sleep(std::time::Duration::ZERO);"),
    ("std::thread::spawn", "let _ = std::thread::spawn(|| ());"),
    ("std::thread::Builder::spawn", "let _ = std::thread::Builder::new().spawn(|| ());"),
    ("std::thread::scope", "std::thread::scope(|_| ());"),
    ("std::hash::RandomState::new", "let _ = std::hash::RandomState::new();"),
    ("std::collections::HashMap", "let _ = std::collections::HashMap::<u8, u8>::default();"),
    ("std::collections::HashSet", "let _ = std::collections::HashSet::<u8>::default();"),
    ("std::env::var", "let _ = std::env::var(\"A\");"),
    ("std::env::var_os", "let _ = std::env::var_os(\"A\");"),
    ("std::fs::File", "let _ = std::fs::File::open(\"a\");"),
    ("std::fs::read", "let _ = std::fs::read(\"a\");"),
    ("std::fs::read_to_string", "let _ = std::fs::read_to_string(\"a\");"),
    ("std::fs::write", "let _ = std::fs::write(\"a\", \"b\");"),
    ("std::net::TcpStream", "let _ = std::net::TcpStream::connect(\"a\");"),
    ("std::net::TcpListener", "let _ = std::net::TcpListener::bind(\"a\");"),
    ("std::net::UdpSocket", "let _ = std::net::UdpSocket::bind(\"a\");"),
    ("std::process::Command", "let _ = std::process::Command::new(\"a\");"),
    ("std::process::exit", "let _ = || std::process::exit(1);"),
];

/// Clippy over everything, tests included, warnings refused.
pub fn run(ground: &Ground) -> Result<()> {
    let shell = ground.shell()?;
    cmd!(shell, "cargo clippy --locked --workspace --all-targets -- -D warnings").run()?;
    Ok(())
}

/// Runs clippy with the fence of `crates/core` over a probe that climbs it at every place.
pub fn fence(ground: &Ground) -> Result<()> {
    let shell = ground.shell()?;
    let probe = ground.target.join("fence-probe");
    shell.remove_path(&probe)?;
    shell.create_dir(probe.join("src"))?;
    shell.write_file(
        probe.join("Cargo.toml"),
        "[package]\nname = \"fence-probe\"\nversion = \"0.0.0\"\nedition = \"2024\"\n[workspace]\n",
    )?;
    let body: String = FORBIDDEN.iter().map(|(_, line)| format!("    {line}\n")).collect();
    shell.write_file(probe.join("src/lib.rs"), format!("pub fn climb() {{\n{body}}}\n"))?;
    shell.change_dir(&probe);
    let seen = cmd!(shell, "cargo clippy --offline --message-format short")
        .env("CLIPPY_CONF_DIR", ground.root.join("crates/core"))
        .env("CARGO_TARGET_DIR", probe.join("target"))
        .env("CARGO_TERM_COLOR", "never")
        .ignore_status()
        .read_stderr()?;
    let open: Vec<&str> = FORBIDDEN
        .iter()
        .map(|(path, _)| *path)
        .filter(|path| {
            !seen
                .lines()
                .any(|line| line.contains("disallowed") && line.contains(&format!("`{path}`")))
        })
        .collect();
    if !open.is_empty() {
        bail!(
            "crates/core/clippy.toml does not keep out {}; clippy said:\n{seen}",
            open.join(", ")
        );
    }
    eprintln!("{} ways around the fence tried, none open", FORBIDDEN.len());
    Ok(())
}
