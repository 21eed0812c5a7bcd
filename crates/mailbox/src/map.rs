//! A message as a tree of parts.

use scrinium_imap_wire::{BodyStructure, Envelope};

use crate::decode::TransferEncoding;
use crate::envelope::sendable;
use crate::part::PartHeader;
use crate::sent::SentDate;
use crate::structure::structure;

/// Bytes of a message, from its beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Where they begin.
    pub start: u64,
    /// Where they end.
    pub end: u64,
}

impl Span {
    /// How many bytes they are.
    #[must_use]
    pub fn bytes(self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// Some of them: from an offset, up to a limit.
    #[must_use]
    pub fn part(self, offset: u64, count: u64) -> Self {
        let start = self.start.saturating_add(offset).min(self.end);
        Self { start, end: start.saturating_add(count).min(self.end) }
    }
}

/// What a part is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartKind {
    /// Itself.
    Single,
    /// Parts.
    Multipart,
    /// A message, which is its only child.
    Message,
}

/// A part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapPart {
    /// What it is made of.
    pub kind: PartKind,
    /// Its header, with the empty line.
    pub header: Span,
    /// Its body.
    pub body: Span,
    /// Lines of the body.
    pub lines: u64,
    /// Its parts, as places in [`MessageMap::parts`].
    pub children: Vec<usize>,
    /// How it is encoded.
    pub encoding: TransferEncoding,
    /// The length of the body when it is decoded.
    pub decoded_bytes: u64,
    pub(crate) fields: PartHeader,
    /// Of a message: the whole one, or one in a part.
    pub(crate) envelope: Option<Box<Envelope>>,
}

/// A message: its parts, the first of which is the message itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageMap {
    /// Its length: RFC822.SIZE.
    pub bytes: u64,
    /// Its parts in their order.
    pub parts: Vec<MapPart>,
    /// Its first words, where it has text.
    pub preview: Option<String>,
    /// What its `Date` says.
    pub sent: Option<SentDate>,
    /// Message ids that it refers to, the oldest first, and the one that it answers last.
    pub references: Vec<String>,
}

impl MessageMap {
    /// The whole message.
    #[must_use]
    pub fn root(&self) -> Option<&MapPart> {
        self.parts.first()
    }

    /// Its envelope, in ASCII or in UTF-8.
    #[must_use]
    pub fn envelope(&self, utf8: bool) -> Envelope {
        let envelope = self.root().and_then(|root| root.envelope.as_deref());
        envelope.map(|envelope| sendable(envelope, utf8)).unwrap_or_default()
    }

    /// Its structure; with extension data for BODYSTRUCTURE.
    #[must_use]
    pub fn structure(&self, is_extended: bool, utf8: bool) -> BodyStructure {
        structure(self, is_extended, utf8)
    }

    /// Its envelope as it was written.
    #[must_use]
    pub fn raw_envelope(&self) -> Option<&Envelope> {
        self.root().and_then(|root| root.envelope.as_deref())
    }
}
