//! What `danube version --json` tells of the build: commit, compiler, target, and the date of a build
//! that was given one.
//!
//! Law: the same commit gives the same binary, so a date comes from `SOURCE_DATE_EPOCH` alone.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=DANUBE_COMMIT");
    println!("cargo:rerun-if-env-changed=SOURCE_DATE_EPOCH");
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    // Only what is shipped names its commit: a debug build would be made anew with each.
    let is_release = variable("PROFILE").as_deref() == Some("release");
    let commit = variable("DANUBE_COMMIT").or_else(|| if is_release { commit() } else { None });
    let rustc = variable("RUSTC").and_then(|rustc| output(&rustc, &["--version"]));
    tell("DANUBE_BUILD_COMMIT", commit);
    tell("DANUBE_BUILD_RUSTC", rustc);
    tell("DANUBE_BUILD_TARGET", variable("TARGET"));
    tell("DANUBE_BUILD_EPOCH", variable("SOURCE_DATE_EPOCH"));
}

fn tell(name: &str, value: Option<String>) {
    println!("cargo:rustc-env={name}={}", value.unwrap_or_default());
}

/// The commit that is checked out, where there is git and a checkout.
fn commit() -> Option<String> {
    // Both change when another commit is checked out.
    for file in ["HEAD", "logs/HEAD"] {
        let path = output("git", &["rev-parse", "--git-path", file])?;
        if std::path::Path::new(&path).exists() {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    output("git", &["rev-parse", "HEAD"])
}

fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let done = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8(done.stdout).ok()?;
    (done.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
}
