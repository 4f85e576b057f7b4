//! Rule: a satellite (`interop/*`) depends on published crates only and locks its own versions.
//!
//! A satellite proves what a user would see, so it must get what a user would get; and what it
//! pulls in must never reach the product's lock file.

use super::{Finding, House};
use std::path::Path;

const PUBLISHED: &str = "depend on the published crate and speak to the binary over the wire";
const LOCK: &str = "commit its Cargo.lock, so that the same clients are tested tomorrow";

/// Finds dependencies into folders, and missing lock files.
pub fn check(house: &House) -> Vec<Finding> {
    let mut found = Vec::new();
    for package in &house.satellites {
        for name in &package.local {
            let what = format!("satellite `{}` takes `{name}` from a folder", package.name);
            found.push(Finding::new(&package.manifest, what, PUBLISHED));
        }
        if !is_locked(house, &package.manifest) {
            found.push(Finding::new(&package.manifest, "no lock file covers it", LOCK));
        }
    }
    found
}

/// Whether a lock file lies beside `manifest` or above it, below the top: the product's own lock
/// must not cover a satellite.
fn is_locked(house: &House, manifest: &str) -> bool {
    let folders = Path::new(manifest).ancestors().skip(1);
    folders
        .take_while(|folder| folder.components().count() > 0)
        .any(|folder| house.file(&folder.join("Cargo.lock").to_string_lossy()).is_some())
}

#[cfg(test)]
mod tests {
    use super::super::sources::Package;
    use super::*;

    #[test]
    fn a_folder_dependency_and_a_missing_lock_are_found() {
        let manifest = "interop/rust/helper/Cargo.toml".to_string();
        let local = vec!["danube-core".to_string()];
        let package = Package { manifest, local, ..Package::default() };
        let mut house = House { satellites: vec![package], ..House::of(&[("Cargo.lock", "")]) };
        assert_eq!(check(&house).len(), 2, "the product's lock does not count");
        house.satellites[0].local.clear();
        house.files = House::of(&[("interop/rust/Cargo.lock", "")]).files;
        assert_eq!(check(&house), []);
    }
}
