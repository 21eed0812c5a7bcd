//! What IMAP and POP3 share: a folder as a session has told it, and messages as trees of parts.
//!
//! **Folders.** A session numbers messages from 1, and the numbers change only when the client has heard that a message is gone.
//! Yet a session keeps no list of UIDs: a folder's index counts, and a [`FolderView`] keeps what the client has not heard: messages that
//! left (its ghosts), as ranges. The number of a message is its position in the index plus the ghosts before it. A view travels with
//! each question to the folder, and who answers [brings it up to date](FolderView::catch_up) from the same snapshot that the
//! answer comes from. So no snapshot outlives an answer, and numbers never belong to another state than the answer does.
//!
//! **Messages.** A [`MapBuilder`] takes a message's bytes as they come and makes a [`MessageMap`]: where its parts are, how long they are
//! decoded, ENVELOPE, BODYSTRUCTURE and the first words. Sections are then ranges of the source. What people read of it in a browser are
//! its [texts and files](MessageMap::shown_texts), and HTML that was [made harmless](safe_html).
//!
//! *Invariant*: pure: no sockets, no clock, no storage. Whatever the bytes, nothing panics, and depth, parts, ranges and kept bytes have
//! limits; the ranges of a map lie within its message.

#![forbid(unsafe_code)]

mod address;
mod builder;
mod decode;
mod envelope;
mod field;
mod html;
mod map;
mod media;
mod numbers;
mod outline;
mod part;
mod preview;
mod safe;
mod section;
mod select;
mod sent;
mod shown;
mod stored;
mod structure;
mod subject;
mod text;
mod view;
mod words;

pub use builder::{MapBuilder, MapLimits};
pub use decode::{Decoder, TransferEncoding};
pub use field::{Field, FieldFilter, fields};
pub use map::{MapPart, MessageMap, PartKind, Span};
pub use numbers::{NumberSet, TooManyRanges};
pub use outline::{Form, Outline, OutlineBuilder, Place};
pub use safe::{SafeHtml, SafeOptions, html_of_text, safe_html};
pub use section::{SectionContent, locate, locate_part};
pub use select::{FolderIndex, Messages, Picked, Selection, narrow, select};
pub use sent::SentDate;
pub use shown::{ShownFile, ShownText};
pub use subject::{BaseSubject, base_subject};
pub use text::{MessageFile, MessageText};
pub use view::{FolderState, FolderView, GhostRange};
pub use words::{decode_words, encode_words};
