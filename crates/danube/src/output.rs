//! What goes to stdout, where pipes read it. Everything else goes to stderr.
//!
//! Law: a line is written whole and flushed before the command goes on, so that a reader sees it
//! while the command still runs.

use crate::failure::Failure;
use std::io::{ErrorKind, Write};

/// How a command prints its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

/// Writes `text` and a line end to stdout.
///
/// # Errors
/// [`Exit::PipeClosed`](crate::failure::Exit::PipeClosed) when nobody reads any more;
/// [`Exit::Refused`](crate::failure::Exit::Refused) when the disk behind stdout is full.
pub fn line(text: impl AsRef<str>) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    let written =
        stdout.write_all(format!("{}\n", text.as_ref()).as_bytes()).and_then(|()| stdout.flush());
    written.map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => Failure::pipe_closed(),
        _ => Failure::refused(format!("stdout cannot be written: {error}")),
    })
}

/// Writes a JSON document, indented, and a line end to stdout.
///
/// # Errors
/// As [`line`].
pub fn json(document: &serde_json::Value) -> Result<(), Failure> {
    line(format!("{document:#}"))
}

/// Rows under headings, aligned by hand with two spaces between columns.
#[derive(Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these headings and no rows yet.
    pub fn new(headings: &[&str]) -> Table {
        Table { rows: vec![headings.iter().map(|heading| (*heading).to_owned()).collect()] }
    }

    /// Adds one row, which has as many cells as there are headings.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The whole table, without a line end after the last row.
    pub fn render(&self) -> String {
        let columns = self.rows[0].len();
        let width_of = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width_of).collect();
        let lines = self.rows.iter().map(|row| {
            let cells = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}"));
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn a_table_is_as_wide_as_its_widest_cells() {
        let mut table = Table::new(&["NAME", "DELIVERY"]);
        table.row(["/default/größe".into(), "Reliable".into()]);
        table.row(["/n/t".into(), "NonReliable".into()]);
        expect![[r#"
            NAME            DELIVERY
            /default/größe  Reliable
            /n/t            NonReliable"#]]
        .assert_eq(&table.render());
    }
}
