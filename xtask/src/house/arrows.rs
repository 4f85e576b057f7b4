//! Rule: arrows between our crates point inward, and only where this table says.
//!
//! ```text
//!                 danube ──▶ broker ──▶ wire ─┐
//!                    │          ├─────▶ store ┼──▶ core
//!                    │          ├─────▶ meta ─┤
//!                    │          └───▶ schema ─┘
//!                    ├─▶ console ──▶ ops
//!                    └─▶ ops, sdk ──▶ wire, core          sim ──▶ core; xtask (alone)
//!                             └─────▶ schema
//! ```

use super::{Finding, House};

/// What a crate may depend on.
struct Row {
    /// The crate.
    name: &'static str,
    /// Crates of ours that it may name.
    ours: &'static [&'static str],
    /// Published crates that it may ship with; any when `None`.
    others: Option<&'static [&'static str]>,
}

const TABLE: &[Row] = &[
    Row {
        name: "danube-core",
        ours: &[],
        others: Some(&["rpds", "saphyr-parser", "serde", "serde_json", "thiserror"]),
    },
    Row {
        name: "danube-schema",
        ours: &["danube-core"],
        others: Some(&[
            "jsonschema",
            "jsonschema-regex",
            "miniz_oxide",
            "prost",
            "prost-reflect",
            "prost-types",
            "protox",
            "regex",
            "regex-syntax",
            "serde",
            "serde_json",
            "sha2",
            "thiserror",
        ]),
    },
    Row { name: "danube-wire", ours: &["danube-core"], others: None },
    Row { name: "danube-store", ours: &["danube-core"], others: None },
    Row { name: "danube-meta", ours: &["danube-core"], others: None },
    Row {
        name: "danube-broker",
        ours: &["danube-core", "danube-schema", "danube-wire", "danube-store", "danube-meta"],
        others: None,
    },
    Row { name: "danube-ops", ours: &["danube-core", "danube-wire"], others: None },
    Row { name: "danube-console", ours: &["danube-ops"], others: None },
    Row {
        name: "danube-sdk",
        ours: &["danube-core", "danube-schema", "danube-wire"],
        others: None,
    },
    Row {
        name: "danube",
        ours: &[
            "danube-core",
            "danube-schema",
            "danube-wire",
            "danube-store",
            "danube-meta",
            "danube-broker",
            "danube-ops",
            "danube-console",
            "danube-sdk",
        ],
        others: None,
    },
    Row { name: "danube-sim", ours: &["danube-core"], others: Some(&[]) },
    Row { name: "xtask", ours: &[], others: None },
];

const NEW_ARROW: &str = "move the code to where both may see it, or pass it in as a value or trait; \
                         a new arrow wants a record in docs/adr and a row in xtask's table";
const NEW_CRATE: &str = "give it a row in xtask/src/house/arrows.rs and a line in ARCHITECTURE.md";
const PURE: &str = "the pure ring stays small: do it in an engine, or argue in docs/adr for the \
                    crate and add it to xtask's table";

/// Finds dependencies that the table does not allow, and crates that it does not know.
pub fn check(house: &House) -> Vec<Finding> {
    let ours: Vec<&str> = house.packages.iter().map(|package| package.name.as_str()).collect();
    let mut found = Vec::new();
    for package in &house.packages {
        let Some(row) = TABLE.iter().find(|row| row.name == package.name) else {
            let what = format!("crate `{}` has no row in the table of arrows", package.name);
            found.push(Finding::new(&package.manifest, what, NEW_CRATE));
            continue;
        };
        for (name, ships) in &package.dependencies {
            if ours.contains(&name.as_str()) {
                if !row.ours.contains(&name.as_str()) {
                    let what = format!("`{}` may not depend on `{name}`", row.name);
                    found.push(Finding::new(&package.manifest, what, NEW_ARROW));
                }
            } else if let Some(others) = row.others
                && *ships
                && !others.contains(&name.as_str())
            {
                let what = format!("`{}` may not depend on the published `{name}`", row.name);
                found.push(Finding::new(&package.manifest, what, PURE));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::sources::Package;
    use super::*;

    fn house(arrows: &[(&str, &[&str])]) -> House {
        let package = |(name, to): &(&str, &[&str])| Package {
            name: (*name).to_string(),
            dependencies: to.iter().map(|one| ((*one).to_string(), true)).collect(),
            ..Package::default()
        };
        House { packages: arrows.iter().map(package).collect(), ..House::default() }
    }

    #[test]
    fn inward_arrows_hold() {
        let house = house(&[
            ("danube-core", &["serde"]),
            ("danube-store", &["danube-core", "bytes"]),
            ("danube", &["danube-store", "danube-core"]),
        ]);
        assert_eq!(check(&house), []);
    }

    #[test]
    fn an_outward_arrow_a_strange_crate_and_a_heavy_core_are_found() {
        let house = house(&[
            ("danube-core", &["danube-store", "tokio"]),
            ("danube-store", &[]),
            ("danube-extra", &[]),
        ]);
        let found = check(&house);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].what.contains("may not depend on `danube-store`"));
        assert!(found[1].what.contains("published `tokio`"));
        assert!(found[2].what.contains("`danube-extra` has no row"));
    }
}
