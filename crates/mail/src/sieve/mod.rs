//! Sieve: what a person's script makes of a message that comes into their mail file.
//!
//! The rules of the server come first, then those of the person, then the script, which has the last word on where the message
//! lies: what it keeps lies where the rules say. Scripts are one document of the mail file, so that they are copied, kept and
//! shared with it. What they send waits in a mail.box before the message is taken out of its own, under ids that a repeated round
//! finds.

mod answered;
mod edited;
mod head;
mod message;
mod notice;
mod reply;
mod run;
mod scripts;
mod seen;

pub(crate) use answered::note_answer;
pub(crate) use edited::edited_head;
pub(crate) use head::read_head;
pub(crate) use message::SourceOf;
pub(crate) use notice::{Leaving, tell_of_leaving};
pub(crate) use reply::{notification_source, reply_source};
pub(crate) use run::{Addressee, folder_for, mark};
pub use scripts::{SCRIPTS_MAX, ScriptBook, ScriptsError, ScriptsKept, TEXTS_MAX_BYTES, script_limits};
