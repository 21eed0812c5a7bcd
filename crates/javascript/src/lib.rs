//! CouchDB's map and reduce functions: JavaScript in a sandbox, and the built-in reduce functions in Rust.
//!
//! A [`MapEngine`] runs the map functions of one design document, a [`ReduceEngine`] one reduce function. The
//! engine inside is QuickJS-ng. Nothing here knows documents, stores or indexes: what goes in and comes out is
//! JSON.
//!
//! # What a function finds
//!
//! As in CouchDB 3: `emit`, `log`, `sum`, `isArray`, `toJSON`, `JSON`, and in map functions `require` of modules
//! in `views.lib`. The document is frozen. Proxies, typed arrays, weak references, operations on two sets and some
//! on iterators are not there; promises and asynchronous functions are, but what waits for one never runs.
//!
//! Built-in objects cannot be redefined; where a script may assign to them (a global function, a member of
//! `Array.prototype` or `Object.prototype`), what it assigns holds until it returns. What it adds, such as global
//! variables, stays as long as the engine, as in CouchDB. A function that makes use of that, of `Math.random` or
//! of the present time gives entries that are not the same when the view is built again.
//!
//! # Bounds
//!
//! A call is bounded in processor time, memory, stack and in what it emits ([`Limits`]), and costs its document
//! no more than its entries in that view ([`ScriptError`]). Time is looked at every 10,000 steps of a script, and
//! some steps work on all the data that fits into its memory, so it may be passed if a script means harm, until
//! 30 seconds show no progress. Memory in cycles is collected between calls only.
//!
//! An engine runs on a thread of its own. There are scripts that QuickJS cannot be made to leave (it forgets that
//! it was interrupted when an iterator is closed, for one). Such a thread is put to sleep and left behind with its
//! memory, the function is switched off ([`ScriptError::Runaway`]), and the others go on in a new engine; after 16
//! of them no engine is made any more until the process is started again.
//!
//! ```
//! use scrinium_javascript::{Limits, MapEngine, ReduceEngine, Reducer, Row};
//!
//! let source = "function (doc) { if (doc.due) emit(doc.due, doc.amount); }";
//! let mut engine = MapEngine::new(&[source], None, Limits::default())?;
//! let mapped = engine.map(r#"{"_id": "i1", "_rev": "1-a", "due": "2026-11-21", "amount": 12.5}"#).remove(0)?;
//! assert_eq!(mapped[0].key_json, r#""2026-11-21""#);
//!
//! let mut sum = ReduceEngine::new(Reducer::parse("_sum")?, Limits::default())?;
//! let row = |amount| Row { key_json: "null", id: "i1", value_json: amount };
//! let (march, april) = (sum.reduce(&[row("12.5"), row("7")])?, sum.reduce(&[row("3")])?);
//! let year = sum.rereduce(&[march, april])?;
//! assert_eq!(sum.finish(&year)?, "22.5");
//! # Ok::<(), scrinium_javascript::ScriptError>(())
//! ```

mod error;
mod limits;
mod map;
mod modules;
mod reduce;
mod sandbox;
mod source;
mod text;
mod watch;
mod worker;

pub use error::ScriptError;
pub use limits::Limits;
pub use map::{Emitted, MapEngine, Mapped, check_map};
pub use reduce::{ReduceEngine, Reducer, Row, check_reduce};
