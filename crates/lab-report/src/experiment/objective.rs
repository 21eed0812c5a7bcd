//! What an experiment was asked to show, and whether it does.

use serde::{Deserialize, Serialize};

/// An objective, held against the cells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct ObjectivePart {
    pub title: String,
    pub column: String,
    /// `at most` or `at least`, and the limit.
    pub asked: String,
    /// Of the cell that is farthest from holding it; `None` where none of its cells has a valid value.
    pub measured: Option<String>,
    /// The cell of that value.
    pub cell: Vec<String>,
    /// `None`: not measured.
    pub held: Option<bool>,
}

impl ObjectivePart {
    /// Whether it holds, in a word or two.
    #[must_use]
    pub fn verdict(&self) -> &'static str {
        match self.held {
            Some(true) => "held",
            Some(false) => "missed",
            None => "not measured",
        }
    }

    /// In a sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let measured =
            self.measured.as_ref().map(|measured| format!("{measured} ({}), ", self.cell.join(", ")));
        format!(
            "{}: {}. {}: {}asked: {}.",
            self.title,
            self.verdict(),
            self.column,
            measured.unwrap_or_default(),
            self.asked
        )
    }
}
