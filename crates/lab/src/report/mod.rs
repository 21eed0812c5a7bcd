//! From what a run measured to its report.

mod build;
mod drivers;
pub mod validity;

pub use build::report_of;
