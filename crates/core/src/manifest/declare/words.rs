//! Words of manifests that are understood in one way, and the known word next to an unknown one.

use crate::fault::Fault;
use crate::name::TopicName;

/// `/namespace/topic`, or `topic` in the namespace `default`; a base name.
pub(super) fn topic_name(text: &str) -> Result<TopicName, Fault> {
    let whole = match (text.starts_with('/'), text.contains('/')) {
        (true, _) => text.to_owned(),
        (false, true) => format!("/{text}"),
        (false, false) => format!("/{}/{text}", crate::catalog::DEFAULT_NAMESPACE),
    };
    let name = TopicName::parse(&whole)?;
    match name.partition() {
        Some((base, _)) => Err(Fault::invalid(format!(
            "`{name}` is one partition; declare `{base}` with its number of partitions"
        ))),
        None => Ok(name),
    }
}

pub(super) fn number<T: std::str::FromStr>(text: &str) -> Result<T, Fault> {
    let wrong =
        || Fault::invalid(format!("`{}` is not a number from 0 up that fits", text.escape_debug()));
    text.replace('_', "").parse().map_err(|_| wrong())
}

pub(super) fn boolean(text: &str) -> Result<bool, Fault> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(Fault::invalid(format!("`{}` is neither true nor false", text.escape_debug()))),
    }
}

pub(super) fn one_of(text: &str, choices: &[&'static str]) -> Result<&'static str, Fault> {
    let wanted = text.to_ascii_lowercase().replace('-', "_");
    choices.iter().find(|choice| **choice == wanted).copied().ok_or_else(|| {
        let known = choices.join(", ");
        Fault::invalid(format!("`{}` is not known; known are {known}", text.escape_debug()))
    })
}

/// The known key that is at most two letters away.
pub(super) fn nearest<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    let near = known.iter().map(|key| (distance(name, key), *key));
    near.filter(|(distance, key)| *distance <= 2 && *distance < key.len()).min().map(|(_, key)| key)
}

/// Letters to insert, remove or replace (Levenshtein).
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.chars().take(64).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in right.iter().enumerate() {
            let cost = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = cost.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[right.len()]
}
