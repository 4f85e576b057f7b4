//! Rule: what we build from is licensed as `deny.toml` allows, and is not banned there.
//!
//! `cargo deny check` says more (advisories, duplicates, sources) but takes long to install; this
//! rule reads the same file, so that the two parts which bind a user of the product are run on
//! every machine. It reads only the layout that `deny.toml` keeps: one entry per line.

use super::{Finding, House};

const DENY: &str = "deny.toml";
const LICENCE: &str = "take another crate, or argue in deny.toml for the licence";
const BANNED: &str = "take what deny.toml names as the replacement";
const LIST: &str = "keep `allow = [` under [licenses] with one quoted licence per line";

/// Finds packages with a licence that is not allowed, and banned packages.
pub fn check(house: &House) -> Vec<Finding> {
    let text = house.file(DENY).map_or("", |file| file.text.as_str());
    let allowed = entries(text, "[licenses]", "allow");
    if allowed.is_empty() {
        return vec![Finding::new(DENY, "it lists no allowed licence", LIST)];
    }
    let banned = entries(text, "[bans]", "deny");
    let mut found = Vec::new();
    for foreign in &house.foreign {
        let licence = foreign.licence.as_deref().unwrap_or("");
        if !permits(licence, &allowed) {
            let what = format!("its licence `{licence}` is not allowed");
            found.push(Finding::new(&foreign.id, what, LICENCE));
        }
        if banned.iter().any(|name| *name == foreign.name) {
            found.push(Finding::new(&foreign.id, "it is banned", BANNED));
        }
    }
    found
}

/// The first quoted string of each line of the list `key` in `section`.
fn entries<'t>(text: &'t str, section: &str, key: &str) -> Vec<&'t str> {
    text.lines()
        .skip_while(|line| line.trim() != section)
        .skip(1)
        .take_while(|line| !line.starts_with("[") || line.starts_with("[["))
        .skip_while(|line| line.replace(' ', "") != format!("{key}=["))
        .skip(1)
        .take_while(|line| line.trim() != "]")
        .filter(|line| !line.trim_start().starts_with('#'))
        .filter_map(|line| line.split('"').nth(1))
        .collect()
}

/// Whether the SPDX expression can be met with allowed licences alone: one side of each `OR`,
/// both of each `AND`; the old `/` means `OR`, and an exception after `WITH` only grants more.
fn permits(expression: &str, allowed: &[&str]) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut words = spaced.split_whitespace().peekable();
    let met = either(&mut words, allowed);
    met == Some(true) && words.peek().is_none()
}

type Words<'w> = std::iter::Peekable<std::str::SplitWhitespace<'w>>;

/// `None` when the expression is malformed.
fn either(words: &mut Words<'_>, allowed: &[&str]) -> Option<bool> {
    let mut met = both(words, allowed)?;
    while words.next_if_eq(&"OR").is_some() {
        met |= both(words, allowed)?;
    }
    Some(met)
}

fn both(words: &mut Words<'_>, allowed: &[&str]) -> Option<bool> {
    let mut met = one(words, allowed)?;
    while words.next_if_eq(&"AND").is_some() {
        met &= one(words, allowed)?;
    }
    Some(met)
}

fn one(words: &mut Words<'_>, allowed: &[&str]) -> Option<bool> {
    let word = words.next()?;
    if word == "(" {
        let met = either(words, allowed)?;
        return words.next_if_eq(&")").map(|_| met);
    }
    if words.next_if_eq(&"WITH").is_some() {
        words.next()?;
    }
    Some(allowed.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::super::sources::Foreign;
    use super::*;

    const DENY_TOML: &str = "[licenses]\nallow = [\n  # why\n  \"MIT\", # short\n  \"Zlib\",\n]\n\
        [bans]\ndeny = [\n  { crate = \"openssl\", reason = \"a C build\" },\n]\n";

    #[test]
    fn expressions_are_met_as_spdx_means_them() {
        let allowed = ["MIT", "Apache-2.0", "Unicode-3.0"];
        for good in [
            "MIT",
            "GPL-3.0 OR MIT",
            "GPL-3.0/MIT",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR GPL-3.0",
        ] {
            assert!(permits(good, &allowed), "{good}");
        }
        for bad in ["", "GPL-3.0", "MIT AND GPL-3.0", "(MIT", "MIT MIT", "MIT AND (GPL-3.0)"] {
            assert!(!permits(bad, &allowed), "{bad}");
        }
    }

    #[test]
    fn strange_licences_and_banned_crates_are_found() {
        let foreign = |name: &str, licence: &str| Foreign {
            id: format!("{name} 1.0.0"),
            name: name.to_string(),
            licence: (!licence.is_empty()).then(|| licence.to_string()),
        };
        let mut house = House::of(&[(DENY, DENY_TOML)]);
        house.foreign = vec![
            foreign("a", "MIT"),
            foreign("b", "GPL-3.0"),
            foreign("c", ""),
            foreign("openssl", "Zlib"),
        ];
        let found = check(&house);
        let at: Vec<&str> = found.iter().map(|finding| finding.at.as_str()).collect();
        assert_eq!(at, ["b 1.0.0", "c 1.0.0", "openssl 1.0.0"]);
    }

    #[test]
    fn a_missing_list_is_found_rather_than_taken_as_nothing_to_check() {
        assert_eq!(check(&House::of(&[(DENY, "[bans]\n")])).len(), 1);
    }
}
