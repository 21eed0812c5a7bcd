//! What pages and tables of reports are made of, for other programs whose reports shall look the same.

pub use super::curve::{CurvePoint, Curves, Marks};
pub use super::html::{escape, figure, table};
pub use super::table::Table;
pub use crate::experiment::page::{begin, keys};
