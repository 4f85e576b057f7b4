//! Rule: a document is found: the index names each page, and the map names each format's.
//!
//! Pages are Markdown; golden files belong to the tests that read them.

use super::{Finding, House};

const INDEX: &str = "docs/README.md";
const MAP: &str = "ARCHITECTURE.md";
const IN_INDEX: &str = "add a line for it to docs/README.md";
const IN_MAP: &str = "mention the page in ARCHITECTURE.md where persisted formats are listed";

/// Finds documents that no reader would come across.
pub fn check(house: &House) -> Vec<Finding> {
    let text = |path: &str| house.file(path).map_or("", |file| file.text.as_str());
    let mut found = Vec::new();
    for file in &house.files {
        let Some(name) = file.path.strip_prefix("docs/") else { continue };
        if !name.ends_with(".md") {
            continue;
        }
        if file.path != INDEX && !text(INDEX).contains(name) {
            let what = format!("the index does not name `{name}`");
            found.push(Finding::new(&file.path, what, IN_INDEX));
        }
        if name.starts_with("formats/") && !text(MAP).contains(name) {
            let what = format!("the map does not mention the format `{name}`");
            found.push(Finding::new(&file.path, what, IN_MAP));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_nothing_names_is_found() {
        let files = [
            (INDEX, "[a](adr/a.md), [j](formats/journal.md)"),
            (MAP, "docs/formats/journal.md"),
            ("docs/adr/a.md", ""),
            ("docs/formats/journal.md", ""),
            ("docs/formats/golden/journal.txt", ""),
        ];
        assert_eq!(check(&House::of(&files)), []);
        let mut more = files.to_vec();
        more.push(("docs/formats/record.md", ""));
        assert_eq!(check(&House::of(&more)).len(), 2, "neither index nor map names it");
    }
}
