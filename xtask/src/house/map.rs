//! Rule: ARCHITECTURE.md's map is true: it names every crate, and what it names is there.

use super::{Finding, House};

const MAP: &str = "ARCHITECTURE.md";
const NAME_IT: &str = "add the crate with its one-line purpose to the map";
const MEND_IT: &str = "the file was moved or never made; say where the reader should look now";

/// Finds crates that the map does not name, and paths in it that lead nowhere.
pub fn check(house: &House) -> Vec<Finding> {
    let Some(map) = house.file(MAP) else {
        return vec![Finding::new(MAP, "there is no map", NAME_IT)];
    };
    let unnamed = house
        .packages
        .iter()
        .filter_map(|package| package.manifest.strip_suffix("/Cargo.toml"))
        .filter(|folder| !map.text.contains(&format!("`{folder}`")))
        .map(|folder| Finding::new(MAP, format!("the map does not name `{folder}`"), NAME_IT));
    let leads_nowhere = map
        .lines()
        .flat_map(|(number, line)| paths(line).map(move |path| (number, path)))
        .filter(|(_, path)| !is_there(house, path))
        .map(|(number, path)| {
            Finding::new(map.at(number), format!("`{path}` is not in the tree"), MEND_IT)
        });
    unnamed.chain(leads_nowhere).collect()
}

/// What stands in back-quotes on `line` and begins like a path of ours.
fn paths(line: &str) -> impl Iterator<Item = &str> {
    let quoted = line.split('`').skip(1).step_by(2);
    let folders = ["crates/", "xtask/", "docs/", "interop/", ".ci/"];
    quoted.filter(move |path| folders.iter().any(|folder| path.starts_with(folder)))
}

/// Whether `path` is a file, or a folder that holds one.
fn is_there(house: &House, path: &str) -> bool {
    let folder = format!("{}/", path.trim_end_matches('/'));
    house.files.iter().any(|file| file.path == path || file.path.starts_with(&folder))
}

#[cfg(test)]
mod tests {
    use super::super::sources::Package;
    use super::*;

    #[test]
    fn a_crate_off_the_map_is_found() {
        let mut house =
            House::of(&[(MAP, "| `crates/core` | decisions |"), ("crates/core/Cargo.toml", "")]);
        for folder in ["crates/core", "crates/wire"] {
            let manifest = format!("{folder}/Cargo.toml");
            house.packages.push(Package { manifest, ..Package::default() });
        }
        let found = check(&house);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].what.contains("`crates/wire`"));
    }

    #[test]
    fn a_path_that_leads_nowhere_is_found() {
        let text = "`crates/a/src/b.rs`, `crates/a/src/`, then\n`crates/a/src/gone.rs` and `cargo`";
        let found = check(&House::of(&[(MAP, text), ("crates/a/src/b.rs", "")]));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].at, "ARCHITECTURE.md:2");
    }
}
