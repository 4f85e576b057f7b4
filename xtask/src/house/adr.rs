//! Rule: a decision record's file is named by its date and subject.
//!
//! Numbers collide when two people write at once, dates do not.

use super::{Finding, House};

const INSTEAD: &str = "name it docs/adr/YYYY-MM-DD-what-was-decided.md";

/// Finds records with other names.
pub fn check(house: &House) -> Vec<Finding> {
    house
        .files
        .iter()
        .filter_map(|file| Some((file, file.path.strip_prefix("docs/adr/")?)))
        .filter(|(_, name)| !is_dated(name))
        .map(|(file, name)| Finding::new(&file.path, format!("`{name}` has no date"), INSTEAD))
        .collect()
}

fn is_dated(name: &str) -> bool {
    let Some(stem) = name.strip_suffix(".md") else { return false };
    let mut parts = stem.splitn(4, '-');
    let mut number = |len: usize| {
        parts.next().filter(|part| part.len() == len).and_then(|part| part.parse::<u32>().ok())
    };
    let dated = number(4).is_some()
        && number(2).is_some_and(|month| (1..=12).contains(&month))
        && number(2).is_some_and(|day| (1..=31).contains(&day));
    dated && parts.next().is_some_and(|subject| !subject.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_dated_names_pass() {
        assert!(is_dated("2026-11-30-effects-as-data.md"));
        for name in ["0001-effects.md", "2026-13-30-a.md", "2026-11-30.md", "2026-11-30-a.txt"] {
            assert!(!is_dated(name), "{name}");
            let path = format!("docs/adr/{name}");
            assert_eq!(check(&House::of(&[(path.as_str(), "")])).len(), 1, "{name}");
        }
    }
}
