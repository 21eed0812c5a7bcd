//! Words of documents, found again: full text.
//!
//! Text is cut into words, folded and stemmed ([`AnalysisOptions`]) by a [`SegmentBuilder`], which needs no store and may work
//! in several threads. A [`FullTextIndex`] keeps the segments in the store's derived families; a [`Reader`] answers a
//! [`Query`] from the same snapshot of the store that its caller reads documents from.
//!
//! *Invariant*: derived. Each update is one batch with the change number that it reached; what a reader finds, counts or
//! scores, comes from documents alone that its [`Readership`] may see. An index at rest is keys in the store: no thread,
//! file or memory of its own.
//!
//! Documents have *addresses* that count down, so that the ascending order of keys shows the newest first.

mod address_set;
mod audit;
mod bookmark;
mod builder;
mod chunks;
mod compaction;
mod document;
mod error;
mod fold;
mod format;
mod forms;
mod html;
mod index;
mod language;
mod lexicon;
mod number;
mod phrase;
mod plan;
mod postings;
mod query;
mod reader;
mod scan;
mod search;
mod segment;
mod snippet;
mod state;
mod syntax;
mod tail;
mod term_postings;
mod walker;
mod words;

pub use audit::{EachPosting, Posting};
pub use builder::SegmentBuilder;
pub use document::{DocumentText, Field, FieldValue, Readers, SortKey};
pub use error::FullTextError;
pub use forms::{AnalysisOptions, tokens};
pub use html::{text_of_flowed, text_of_html};
pub use index::FullTextIndex;
pub use language::{Language, LanguageChoice};
pub use query::{Bounds, Query, Value};
pub use reader::{Reader, Readership};
pub use search::{Found, Hit, Search, SearchLimits, Sort, Total};
pub use segment::Segment;
pub use snippet::{Fragment, SnippetOptions, snippet};
pub use state::Figures;
pub use syntax::parse_query;
