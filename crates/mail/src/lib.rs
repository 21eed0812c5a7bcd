//! Mail: what a memo is, how a message of the Internet becomes one, to whom it goes, and how it gets there.
//!
//! A memo is a document. Put into one of the mail.box databases ([`Mailboxes`]) it is delivered by the
//! [`Router`] to the mail database of everybody whom its recipients stand for ([`Resolver`]). Mail from
//! elsewhere becomes memos by [`memo_of_message`], one message at a time, or a whole mbox, Maildir or folder by
//! [`import::Importer`]. What is delivered comes into the folder [`INBOX`], what is imported into the folder that
//! it lay in. What is for people elsewhere goes into the [`OutgoingQueue`].
//!
//! *Invariant*: a memo whose deposit was acknowledged reaches every recipient's mail database exactly once, or
//! its sender is notified, whenever the server stops. It knows nothing of sockets.

mod address;
mod authors;
mod calendars;
mod envelope;
pub mod export;
pub mod import;
mod inbox;
mod incoming;
mod mail_file;
mod mail_search;
mod mailbox;
mod memo;
mod message;
mod notes;
mod outgoing;
mod outline;
mod postponed;
mod quarantine;
mod recipients;
mod reread;
mod retention;
mod router;
mod rules;
mod send_rights;
mod sieve;
mod source;
mod time;

pub use address::{WrittenAddress, format_address};
pub use authors::authors_of;
pub use calendars::{AuthorProof, CalendarArrival, CalendarKeeper};
pub use envelope::{
    EnvelopeItems, RecipientItems, SERVER_FIELDS, SenderVerdict, keep_server_fields, note_submitter,
};
pub use inbox::{INBOX, JUNK, folder_id, into_folder, mail_columns};
pub use incoming::IncomingMail;
pub use mail_file::{legal_holds_of, let_delegates_in, mail_file_access, open_mail_file};
pub use mail_search::{FoundMail, MailAction, MailCriteria, MailSearchReport, search_mail};
pub use mailbox::{DepositError, Deposited, IncomingMessage, MOST_MAILBOXES, Mailboxes};
pub use memo::{
    FAILURE_FORM, LONGEST_BODY, MEMO_FORM, MOST_RECIPIENTS, MemoError, check_mailable, field, recipients_of,
};
pub use message::{
    MessageOptions, SOURCE_ATTACHMENT, SOURCE_CONTENT_TYPE, imported_id, memo_of_message, memo_of_reader,
};
pub use outgoing::{
    MessageComposer, OUTGOING_DATABASE, OutgoingOptions, OutgoingQueue, QUEUE_KEEPER, QUEUED_FORM,
    QueuedDocument, QueuedDocumentError, WrittenMessage, WrittenPart,
};
pub use outline::{limit_outlines, outline_of};
pub use postponed::{POSTPONED_MAX_MS, take_not_before};
pub use quarantine::{HeldMail, Quarantine};
pub use recipients::{
    Expansion, MOST_PEOPLE, OutsideRecipient, Resolver, Undeliverable, UndeliverableReason, Writer,
};
pub use reread::{RereadReport, reread_mail_file};
pub use retention::{RetentionDays, delete_outdated};
pub use router::{Round, Routed, RoutedState, Router, RouterHandle, RouterOptions};
pub use rules::{RuleBook, RuleOwner, RuleSet, RuleSetError, RulesError, is_rules_document};
pub use send_rights::SendRight;
pub use sieve::{SCRIPTS_MAX, ScriptBook, ScriptsError, ScriptsKept, TEXTS_MAX_BYTES, script_limits};
pub use source::{MEMORY_BYTES, MessageSource, SourceWriter, attachment_of as stored_source};
