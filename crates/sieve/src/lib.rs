//! Sieve (RFC 5228): the language in which people say what happens with their mail.
//!
//! [`Script::compile`] reads a script and checks all that can be checked without a message; [`Script::run`] looks at a
//! message through [`Message`] and gives an [`ScriptOutcome`]: what is to be done. Nothing is done here.
//! [`Settings`] are what a page of settings shows: they become a script, and are read back from it. [`no_reply`] says who
//! is never answered.
//!
//! ```
//! use scrinium_sieve::{Extension, Limits, Script};
//!
//! let script = br#"require "fileinto"; if header :contains "Subject" "sale" { fileinto "Offers"; }"#;
//! let script = Script::compile(script, &Limits::default()).unwrap();
//! assert_eq!(script.extensions().collect::<Vec<_>>(), [Extension::FileInto]);
//!
//! let error = Script::compile(b"keep;\nfileinto \"Offers\";", &Limits::default()).unwrap_err();
//! let words = "line 2, column 1: \"fileinto\" needs: require \"fileinto\"; at the beginning of the script";
//! assert_eq!(error.to_string(), words);
//! ```
//!
//! *Invariant*: pure: no storage, no sockets, no clock, nothing of the server. Nothing panics, whatever the script and
//! the message. Steps, depth, sizes, and bytes that are looked at have [limits](Limits). A run that fails keeps the
//! message and does nothing else.

#![forbid(unsafe_code)]

mod action;
mod address;
mod budget;
mod compile;
mod date;
mod error;
mod extension;
mod fields;
mod lexer;
mod limits;
mod mailto;
mod matching;
mod message;
mod program;
mod run;
mod script;
mod settings;
mod syntax;
mod template;
mod vacation;

pub use action::{Action, HeaderEdit, Notification, ScriptOutcome, SeenMark, Target};
pub use error::{Position, RunError, RunFault, ScriptError, ScriptFault};
pub use extension::{Extension, NOTIFY_METHODS};
pub use limits::Limits;
pub use message::{BodyPart, Delivery, HeaderField, Host, Message, NoHost, PartForm};
pub use program::{Location, RejectKind};
pub use script::Script;
pub use settings::{
    Absence, CalendarDay, Forwarding, MoveRule, RuleCondition, RuleField, Settings, SettingsError,
};
pub use vacation::{NoReply, VacationReply, no_reply};
