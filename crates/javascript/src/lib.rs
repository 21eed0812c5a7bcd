//! CouchDB's functions: JavaScript in processes of its own, and the built-in reduce functions in Rust.
//!
//! A [`MapEngine`] runs the map functions of one design document, a [`ReduceEngine`] one reduce function, a [`Validator`] one
//! `validate_doc_update`, a [`DesignFunction`] a filter or an update function. The engine inside is QuickJS-ng. Nothing here knows documents, stores or indexes: what goes in and
//! comes out is JSON.
//!
//! # What a function finds
//!
//! As in CouchDB 3: `emit`, `log`, `sum`, `isArray`, `toJSON`, `JSON`, and `require` of modules, of those in `views.lib` in map
//! functions. The document is frozen. Proxies, typed arrays, weak references, operations on two sets and some on iterators are
//! not there; promises and asynchronous functions are, but what waits for one never runs.
//!
//! Nothing passes from one call to another. All that a function finds is frozen, global variables and built-in objects too; the
//! function itself, what its source declares around it, and the modules that it requires are made for each call. An assignment to
//! what is frozen fails the call with a reason, but for one to the document, which is ignored as in CouchDB. (A source that cannot
//! be compiled in strict mode, and modules, have all such assignments ignored.) `Math.random` gives the same numbers for the same
//! document; a function that makes use of the present time gives entries that are not the same when the view is built again.
//!
//! # Where it runs
//!
//! In processes of a [`Pool`]: the program itself, started once more, which never comes to its `main`. Such a process has one engine
//! with the functions of one database. It has no files, no network, no environment and can start nothing: limits of resources
//! see to that, and on Linux landlock and seccomp, as far as the kernel has them.
//!
//! # Bounds
//!
//! A call is bounded in processor time, memory, stack and in what it emits ([`Limits`]), and costs its document no more than its
//! entries in that view ([`ScriptError`]). A process that does not end its call, or that its call ends, is replaced; the
//! function is charged with it, and switched off after three times in a row ([`Conduct`]). What a process did not answer for
//! other reasons is asked of another one; [`ScriptError::Unavailable`] says that none could be had, and nothing else.
//!
//! ```
//! use scrinium_javascript::{MapEngine, Pool, ReduceEngine, Reducer, Row};
//!
//! let (pool, database) = (Pool::default(), [7; 16]);
//! let source = "function (doc) { if (doc.due) emit(doc.due, doc.amount); }";
//! let mut engine = MapEngine::new(&pool, database, &[source], None);
//! let mapped = engine.map(r#"{"_id": "i1", "_rev": "1-a", "due": "2026-11-21", "amount": 12.5}"#)?.remove(0)?;
//! assert_eq!(mapped[0].key_json, r#""2026-11-21""#);
//!
//! let mut sum = ReduceEngine::new(&pool, database, Reducer::parse("_sum")?);
//! let row = |amount| Row { key_json: "null", id: "i1", value_json: amount, order: b"i1" };
//! let (march, april) = (sum.reduce(&[row("12.5"), row("7")])?, sum.reduce(&[row("3")])?);
//! let year = sum.rereduce(&[march, april])?;
//! assert_eq!(sum.finish(&year)?, "22.5");
//! # Ok::<(), scrinium_javascript::ScriptError>(())
//! ```

mod conduct;
mod entry;
mod error;
mod function;
mod limits;
mod map;
mod modules;
mod pool;
mod process;
mod reduce;
mod runner;
mod sandbox;
mod serve;
mod source;
mod text;
mod validate;
mod watch;
mod wire;

pub use conduct::{Conduct, SLOW_MAX_S, STOPPED_MAX};
pub use error::ScriptError;
pub use function::{ANSWER_BYTES_MAX, DesignFunction, UpdateAnswer};
pub use limits::Limits;
pub use map::{Emitted, MapEngine, Mapped};
pub use pool::{Owner, Pool, PoolFigures, PoolOptions};
pub use reduce::{ReduceEngine, Reducer, Row};
pub use validate::{EditToValidate, Validator, Verdict};
