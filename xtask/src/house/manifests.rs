//! Rule: every crate of the workspace inherits the house's lints.
//!
//! Without `[lints] workspace = true` a crate silently drops `forbid(unsafe_code)` and the rest.

use super::{Finding, House};

const INSTEAD: &str = "add the two lines `[lints]` and `workspace = true`";

/// Finds manifests that do not inherit.
pub fn check(house: &House) -> Vec<Finding> {
    house
        .packages
        .iter()
        .filter(|package| {
            house.file(&package.manifest).is_none_or(|file| {
                !file.text.replace(' ', "").contains("[lints]\nworkspace=true\n")
            })
        })
        .map(|package| {
            Finding::new(&package.manifest, "it does not inherit the workspace's lints", INSTEAD)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::sources::Package;
    use super::*;

    #[test]
    fn a_manifest_without_the_lints_is_found() {
        let manifest = "crates/a/Cargo.toml";
        let package = Package { manifest: manifest.to_string(), ..Package::default() };
        let mut house = House::of(&[(manifest, "[package]\n[lints]\nworkspace = true\n")]);
        house.packages.push(package);
        assert_eq!(check(&house), []);
        house.files[0].text = "[package]\n".to_string();
        assert_eq!(check(&house).len(), 1);
    }
}
