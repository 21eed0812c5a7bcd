//! Tables of text.

/// Columns of text, the first to the left, all others to the right.
#[derive(Clone, Debug)]
pub struct TextTable {
    rows: Vec<Vec<String>>,
}

impl TextTable {
    /// A table with its heads.
    #[must_use]
    pub fn new(heads: &[&str]) -> Self {
        Self::of(heads.iter().map(|head| (*head).to_owned()).collect())
    }

    /// The same with heads that were made.
    #[must_use]
    pub fn of(heads: Vec<String>) -> Self {
        Self { rows: vec![heads] }
    }

    /// One more row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Puts it at the end of a text.
    pub fn write(&self, text: &mut String) {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for (index, row) in self.rows.iter().enumerate() {
            let mut line = String::new();
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let space = " ".repeat(width.saturating_sub(cell.chars().count()));
                let gap = if column == 0 { "" } else { "  " };
                line.push_str(&if column == 0 {
                    format!("{cell}{space}")
                } else {
                    format!("{gap}{space}{cell}")
                });
            }
            text.push_str(line.trim_end());
            text.push('\n');
            if index == 0 {
                let total = widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1);
                text.push_str(&"\u{2500}".repeat(total));
                text.push('\n');
            }
        }
    }
}
