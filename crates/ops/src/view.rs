//! Pieces of a view for people: tables, text on one line, bytes as text.

/// A payload as text: itself where it is UTF-8, else base64; and which of the two.
pub fn payload(bytes: &[u8]) -> (String, &'static str) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (text.to_owned(), "text"),
        Err(_) => (base64(bytes), "base64"),
    }
}

/// A time in milliseconds since 1970, as RFC 3339 has it.
pub fn time(ms: u64) -> String {
    danube_core::position::Rfc3339(danube_core::WallMs(ms)).to_string()
}

/// Control characters escaped, all else as it is.
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        match c.is_control() {
            true => line.extend(c.escape_default()),
            false => line.push(c),
        }
    }
    line
}

/// Base64 with padding (RFC 4648, section 4).
pub fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let group = byte(0) << 16 | byte(1) << 8 | byte(2);
        for sextet in 0..4 {
            let index = (group >> (18 - 6 * sextet)) & 0x3f;
            let present = sextet as usize <= chunk.len();
            text.push(if present { char::from(ALPHABET[index as usize]) } else { '=' });
        }
    }
    text
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

    /// The vectors of RFC 4648, section 10.
    #[test]
    fn base64_matches_its_published_vectors() {
        let encoded: Vec<String> =
            ["", "f", "fo", "foo", "foob", "fooba", "foobar"].map(|s| base64(s.as_bytes())).into();
        assert_eq!(encoded, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"]);
    }
}
