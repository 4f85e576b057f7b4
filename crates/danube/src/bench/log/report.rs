//! What was measured against what, as a table for people and a document for programs.

use crate::failure::Failure;
use crate::output::{self, Format};
use danube_ops::view::Table;
use serde_json::{Value, json};

/// What a ratio should be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Target {
    /// At most this.
    AtMost(f64),
    /// At least this.
    AtLeast(f64),
}

impl Target {
    fn is_met(self, ratio: f64) -> bool {
        match self {
            Target::AtMost(most) => ratio <= most,
            Target::AtLeast(least) => ratio >= least,
        }
    }

    fn text(self) -> String {
        match self {
            Target::AtMost(most) => format!("<= {most}"),
            Target::AtLeast(least) => format!(">= {least}"),
        }
    }
}

/// One figure of the engine and its limit.
#[derive(Debug)]
pub struct Row {
    /// What the engine did.
    pub name: &'static str,
    /// What it was held against.
    pub limit_name: &'static str,
    /// Unit of both figures.
    pub unit: &'static str,
    /// The engine's figure.
    pub engine: f64,
    /// The limit's.
    pub limit: f64,
    /// What the first divided by the second should be.
    pub target: Target,
}

impl Row {
    fn ratio(&self) -> f64 {
        if self.limit > 0.0 { self.engine / self.limit } else { f64::INFINITY }
    }

    fn document(&self) -> Value {
        let ratio = self.ratio();
        json!({
            "name": self.name,
            "limit_name": self.limit_name,
            "unit": self.unit,
            "engine": self.engine,
            "limit": self.limit,
            "ratio": ratio,
            "target": self.target.text(),
            "met": self.target.is_met(ratio),
        })
    }
}

/// All rows of a run.
#[derive(Debug)]
pub struct Report {
    /// Where it ran.
    pub dir: String,
    /// In the order of measuring.
    pub rows: Vec<Row>,
}

impl Report {
    /// A table.
    pub fn text(&self) -> String {
        let mut table =
            Table::new(&["what", "engine", "limit", "unit", "ratio", "target", "met", "limit is"]);
        for row in &self.rows {
            let ratio = row.ratio();
            table.row([
                row.name.to_owned(),
                figure(row.engine),
                figure(row.limit),
                row.unit.to_owned(),
                format!("{ratio:.2}"),
                row.target.text(),
                if row.target.is_met(ratio) { "yes" } else { "NO" }.to_owned(),
                row.limit_name.to_owned(),
            ]);
        }
        table.render()
    }

    /// The same for programs.
    pub fn document(&self) -> Value {
        let rows: Vec<Value> = self.rows.iter().map(Row::document).collect();
        json!({ "dir": self.dir, "rows": rows })
    }

    /// Prints it on stdout.
    ///
    /// # Errors
    /// As [`output::line`].
    pub fn print(&self, format: Format) -> Result<(), Failure> {
        match format {
            Format::Text => output::line(self.text()),
            Format::Json => output::json(&self.document()),
        }
    }
}

fn figure(value: f64) -> String {
    if value >= 100.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn a_row_says_whether_its_target_is_met() {
        let row = |engine, target| Row {
            name: "one append",
            limit_name: "bare",
            unit: "us",
            engine,
            limit: 100.0,
            target,
        };
        let rows = vec![row(149.0, Target::AtMost(1.5)), row(1999.0, Target::AtLeast(20.0))];
        let report = Report { dir: "/d".into(), rows };
        expect![[r#"
            what        engine  limit  unit  ratio  target  met  limit is
            one append  149     100    us    1.49   <= 1.5  yes  bare
            one append  1999    100    us    19.99  >= 20   NO   bare"#]]
        .assert_eq(&report.text());
        let document = report.document();
        assert_eq!(document["rows"][1]["met"], false);
    }
}
