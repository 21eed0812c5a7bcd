//! The @formula language: selections and columns of views, compiled once and evaluated for every document.
//!
//! A [`Formula`] is compiled from text and then evaluated, from any number of threads, for documents seen
//! through [`Fields`] and in an [`Environment`] that says what time it is and who asks. Nothing here reads a
//! file, a clock or a store: the same formula, document and environment always give the same value.
//!
//! # Date-times in documents
//!
//! Documents are JSON, which has no date-times; they are texts there. A text that is asked for as a
//! date-time, by a function of dates or by a comparison with or a subtraction of a date-time, is read as one if
//! it is a full date or date-time as RFC 3339 (section 5.6) defines them: `2026-11-21` or
//! `2026-11-21T10:00:00Z`; or a range of these, `2026-11-21/2026-11-23`. Any other text is an error value there.
//! Two texts are always compared as texts.
//!
//! # Bounds
//!
//! A formula is at most 64 KB and nested at most 100 deep; one evaluation takes a bounded number of steps
//! and makes texts and lists of bounded size. So no formula, no matter who wrote it, can hold up or bring down the
//! server.
//!
//! ```
//! use scrinium_formula::{Environment, Fields, Formula, Value};
//!
//! struct Memo;
//!
//! impl Fields for Memo {
//!     fn field(&self, name: &str) -> Option<Value> {
//!         name.eq_ignore_ascii_case("Subject").then(|| Value::text("Re: lunch"))
//!     }
//!
//!     fn id(&self) -> &str {
//!         "memo-1"
//!     }
//! }
//!
//! let formula = Formula::compile(r#"@Right(Subject; "Re: ")"#)?;
//! assert_eq!(formula.evaluate(&Memo, &Environment::default())?, Value::text("lunch"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod compile;
mod datetime;
mod environment;
mod error;
mod forms;
mod formula;
mod functions;
mod json;
mod lexer;
mod machine;
mod number;
mod operators;
mod parser;
mod program;
mod range;
mod reference;
mod syntax;
mod value;
mod written;

pub use datetime::DateTime;
pub use environment::{AttachmentInfo, Environment, Fields};
pub use error::{ErrorValue, EvaluationError, FormulaError, FormulaErrorKind};
pub use formula::{Formula, Responses};
pub use machine::{MAX_ELEMENTS, MAX_STEPS, MAX_TEXT_BYTES};
pub use range::DateTimeRange;
pub use reference::{
    FunctionEntry, FunctionName, RefusedEntry, function_named, functions, reference_markdown,
    refused_functions,
};
pub use value::{Kind, List, Text, Value};
