//! What an experiment showed: as data, in sentences, for a terminal, as a page with charts; and a page about many.

mod findings;
mod index;
mod model;
mod objective;
mod page;
mod picture;
mod search;
mod text;

pub use findings::{factor, shown};
pub use index::write_index;
pub use model::{
    CellPart, ColumnPart, ExperimentReport, FORMAT, FactorPart, FigurePart, Form, LeftOut, LoadReport,
    Published, Spread, Unit,
};
pub use objective::ObjectivePart;
pub(crate) use page::cell;
pub use search::SearchPoint;
pub use text::{cell_count, terminal_text};
pub(crate) use text::{spread_numbers, value};

impl ExperimentReport {
    /// Says in sentences what the numbers show, in the place of what was said before.
    pub fn set_findings(&mut self) {
        self.findings = findings::of(self);
    }
}
