//! Items of FETCH for one message, and the bytes behind them.

use scrinium_imap_wire::{FetchAttribute, FetchItem, MessageData, Partial, Section};
use scrinium_mailbox::{
    Decoder, FieldFilter, MessageMap, SectionContent, Span, TransferEncoding, locate, locate_part,
};

use crate::request::Entry;

/// What is said of a message.
pub(crate) enum Built {
    /// Its items, and the bytes of those that are sent while they come.
    Whole {
        items: Vec<FetchItem>,
        contents: Vec<Content>,
        /// A part is encoded in a way that nobody knows.
        is_unknown: bool,
    },
    /// The length of a choice of fields must be known first.
    Measure(Box<Measure>),
}

/// Finds the length of a choice of fields whose header is not at hand.
pub(crate) struct Measure {
    filter: FieldFilter,
    rest: Span,
    bytes: u64,
}

impl Measure {
    pub(crate) fn needs(&self) -> Option<Span> {
        (self.rest.bytes() > 0).then_some(self.rest)
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let mut out = Vec::new();
        self.filter.push(bytes, &mut out);
        self.bytes += out.len() as u64;
        self.rest.start = self.rest.start.saturating_add(bytes.len() as u64).min(self.rest.end);
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Bytes of an item: a range of the source, as it is or through a filter.
pub(crate) struct Content {
    rest: Span,
    filter: Filter,
    skip: u64,
    /// How many bytes are still to be sent.
    take: u64,
    given: Option<Vec<u8>>,
    /// What was made and not sent.
    made: Vec<u8>,
    is_over: bool,
}

enum Filter {
    Identity,
    Fields(FieldFilter),
    Decode(Decoder),
}

impl Content {
    fn new(rest: Span, filter: Filter, skip: u64, take: u64) -> Self {
        Self { rest, filter, skip, take, given: None, made: Vec::new(), is_over: false }
    }

    /// Bytes of the source that are not at hand.
    pub(crate) fn needs(&self, source: &[u8]) -> Option<Span> {
        let at_hand = self.rest.start < source.len() as u64;
        (self.take > 0 && self.given.is_none() && !at_hand && self.rest.bytes() > 0).then_some(self.rest)
    }

    /// Bytes that were asked for.
    pub(crate) fn give(&mut self, mut bytes: Vec<u8>) {
        bytes.truncate(usize::try_from(self.rest.bytes()).unwrap_or(usize::MAX));
        self.given = Some(bytes);
    }

    /// Sends up to `room` bytes. Gives what is needed next, nothing of it if there is only no room, and `None` at the end.
    pub(crate) fn next(&mut self, source: &[u8], room: usize, mut send: impl FnMut(&[u8])) -> Option<Span> {
        loop {
            let count = usize::try_from(self.take).unwrap_or(usize::MAX).min(self.made.len());
            if count > 0 {
                send(self.made.get(..count).unwrap_or_default());
                self.take -= count as u64;
                self.made.clear();
                if self.take > 0 && count >= room {
                    return Some(Span::default());
                }
            }
            if self.take == 0 {
                return None;
            }
            if self.rest.bytes() == 0 && self.is_over {
                // Less came than was announced; what is missing is blank, so that the answer keeps its form.
                self.made = vec![b' '; usize::try_from(self.take).unwrap_or(usize::MAX).min(room.max(1))];
                continue;
            }
            if let Some(needed) = self.needs(source) {
                return Some(needed);
            }
            self.make(source, room.max(1));
        }
    }

    /// Makes more of it from bytes that are at hand.
    fn make(&mut self, source: &[u8], room: usize) {
        let piece = match self.given.take() {
            Some(given) => given,
            None => {
                let at = usize::try_from(self.rest.start).unwrap_or(usize::MAX);
                let count = usize::try_from(self.rest.bytes()).unwrap_or(usize::MAX).min(room);
                let end = at.saturating_add(count).min(source.len());
                source.get(at..end).unwrap_or_default().to_vec()
            }
        };
        self.rest.start = self.rest.start.saturating_add(piece.len() as u64).min(self.rest.end);
        let mut made = Vec::new();
        match &mut self.filter {
            Filter::Identity => made = piece,
            Filter::Fields(filter) => filter.push(&piece, &mut made),
            Filter::Decode(decoder) => decoder.push(&piece, &mut made),
        }
        if self.rest.bytes() == 0 && !self.is_over {
            self.is_over = true;
            match &mut self.filter {
                Filter::Identity => {}
                // The empty line is there in any case (RFC 9051, section 6.4.5.1).
                Filter::Fields(_) => made.extend_from_slice(b"\r\n"),
                Filter::Decode(decoder) => decoder.finish(&mut made),
            }
        }
        let skipped = usize::try_from(self.skip).unwrap_or(usize::MAX).min(made.len());
        self.skip -= skipped as u64;
        made.drain(..skipped);
        self.made = made;
    }
}

/// What a session wants to learn of each message.
#[derive(Clone, Copy)]
pub(crate) struct ItemStyle {
    pub(crate) utf8: bool,
    pub(crate) condstore: bool,
    /// The UID is sent in any case.
    pub(crate) tells_uid: bool,
}

pub(crate) fn build(
    entry: &Entry,
    attributes: &[FetchAttribute],
    measured: &[u64],
    style: ItemStyle,
) -> Built {
    let mut builder = Builder {
        entry,
        utf8: style.utf8,
        measured: measured.iter(),
        items: Vec::new(),
        contents: Vec::new(),
        is_unknown: false,
    };
    let ItemStyle { condstore, tells_uid, .. } = style;
    let has = |attribute: &FetchAttribute| attributes.contains(attribute);
    if tells_uid && !has(&FetchAttribute::Uid) {
        builder.items.push(FetchItem::Uid(entry.uid));
    }
    for attribute in attributes {
        if let Some(measure) = builder.add(attribute) {
            return Built::Measure(Box::new(measure));
        }
    }
    if entry.was_changed {
        if !has(&FetchAttribute::Flags) {
            builder.items.push(FetchItem::Flags(entry.all_flags()));
        }
        if condstore && !has(&FetchAttribute::ModSeq) {
            builder.items.push(FetchItem::ModSeq(entry.mod_seq));
        }
    }
    Built::Whole { items: builder.items, contents: builder.contents, is_unknown: builder.is_unknown }
}

struct Builder<'a> {
    entry: &'a Entry,
    utf8: bool,
    measured: std::slice::Iter<'a, u64>,
    items: Vec<FetchItem>,
    contents: Vec<Content>,
    is_unknown: bool,
}

impl Builder<'_> {
    fn add(&mut self, attribute: &FetchAttribute) -> Option<Measure> {
        let entry = self.entry;
        let map = entry.map.as_deref();
        let item = match attribute {
            FetchAttribute::Flags => FetchItem::Flags(entry.all_flags()),
            FetchAttribute::Uid => FetchItem::Uid(entry.uid),
            FetchAttribute::InternalDate => FetchItem::InternalDate(entry.internal_date),
            FetchAttribute::Rfc822Size => FetchItem::Size(entry.bytes),
            FetchAttribute::ModSeq => FetchItem::ModSeq(entry.mod_seq),
            FetchAttribute::EmailId => FetchItem::EmailId(entry.email_id.clone()),
            FetchAttribute::ThreadId => FetchItem::ThreadId(entry.thread_id.clone()),
            FetchAttribute::SaveDate => FetchItem::SaveDate(entry.save_date),
            FetchAttribute::Envelope => FetchItem::Envelope(Box::new(map?.envelope(self.utf8))),
            FetchAttribute::Body => FetchItem::Body(Box::new(map?.structure(false, self.utf8))),
            FetchAttribute::BodyStructure => {
                FetchItem::BodyStructure(Box::new(map?.structure(true, self.utf8)))
            }
            FetchAttribute::Preview(_) => {
                FetchItem::Preview(map?.preview.as_ref().map(|text| text.clone().into_bytes()))
            }
            FetchAttribute::Rfc822 => {
                let span = Span { start: 0, end: entry.bytes };
                FetchItem::Rfc822(self.range(span))
            }
            FetchAttribute::Rfc822Header => FetchItem::Rfc822Header(self.range(map?.root()?.header)),
            FetchAttribute::Rfc822Text => FetchItem::Rfc822Text(self.range(map?.root()?.body)),
            FetchAttribute::BodySection { section, partial, .. } => {
                return self.section(map?, section, *partial);
            }
            FetchAttribute::Binary { part, partial, .. } => {
                self.binary(map?, part, *partial);
                return None;
            }
            FetchAttribute::BinarySize(part) => {
                self.binary_size(map?, part);
                return None;
            }
        };
        self.items.push(item);
        None
    }

    fn range(&mut self, span: Span) -> MessageData {
        let bytes = span.bytes();
        if bytes == 0 {
            return MessageData::Bytes(Vec::new());
        }
        self.contents.push(Content::new(span, Filter::Identity, 0, bytes));
        MessageData::Streamed(bytes, false)
    }

    fn section(&mut self, map: &MessageMap, section: &Section, partial: Option<Partial>) -> Option<Measure> {
        let offset = partial.map(|partial| partial.offset);
        let found = locate(map, section);
        let data = match found {
            None => MessageData::Nil,
            Some(SectionContent::Bytes(span)) => {
                self.range(partial.map_or(span, |partial| span.part(partial.offset, partial.count)))
            }
            Some(SectionContent::Fields(span, names, excluded)) => {
                let filter = FieldFilter::new(&names, excluded);
                let Some(bytes) = self.fields_bytes(&filter, span) else {
                    return Some(Measure { filter, rest: span, bytes: 0 });
                };
                let (skip, take) = cut(bytes + 2, partial);
                self.filtered(span, Filter::Fields(filter), skip, take, false)
            }
        };
        self.items.push(FetchItem::Section(section.clone(), offset, data));
        None
    }

    /// The length of a choice of fields; `None` where it must be measured.
    fn fields_bytes(&mut self, filter: &FieldFilter, span: Span) -> Option<u64> {
        let end = usize::try_from(span.end).ok()?;
        let start = usize::try_from(span.start).ok()?;
        match self.entry.source.get(start..end) {
            Some(header) => {
                let (mut filter, mut out) = (filter.clone(), Vec::new());
                filter.push(header, &mut out);
                Some(out.len() as u64)
            }
            None => self.measured.next().copied(),
        }
    }

    fn filtered(&mut self, span: Span, filter: Filter, skip: u64, take: u64, binary: bool) -> MessageData {
        if take == 0 {
            return MessageData::Bytes(Vec::new());
        }
        self.contents.push(Content::new(span, filter, skip, take));
        MessageData::Streamed(take, binary)
    }

    /// RFC 3516, section 4.2.
    fn binary(&mut self, map: &MessageMap, part: &[u32], partial: Option<Partial>) {
        let offset = partial.map(|partial| partial.offset);
        let data = match binary_part(map, part) {
            None => MessageData::Nil,
            Some((_, TransferEncoding::Unknown, _)) => {
                self.is_unknown = true;
                return;
            }
            Some((span, encoding, bytes)) => {
                let (skip, take) = cut(bytes, partial);
                self.filtered(span, Filter::Decode(Decoder::new(encoding)), skip, take, true)
            }
        };
        self.items.push(FetchItem::Binary(part.to_vec(), offset, data));
    }

    fn binary_size(&mut self, map: &MessageMap, part: &[u32]) {
        match binary_part(map, part) {
            Some((_, TransferEncoding::Unknown, _)) => self.is_unknown = true,
            Some((_, _, bytes)) => self.items.push(FetchItem::BinarySize(part.to_vec(), bytes)),
            None => self.items.push(FetchItem::BinarySize(part.to_vec(), 0)),
        }
    }
}

/// Where a part is, how it is encoded, and how long it is then. A part that holds others is not encoded itself.
fn binary_part(map: &MessageMap, path: &[u32]) -> Option<(Span, TransferEncoding, u64)> {
    if path.is_empty() {
        return Some((Span { start: 0, end: map.bytes }, TransferEncoding::Identity, map.bytes));
    }
    let part = locate_part(map, path)?;
    if part.children.is_empty() {
        return Some((part.body, part.encoding, part.decoded_bytes));
    }
    Some((part.body, TransferEncoding::Identity, part.body.bytes()))
}

fn cut(bytes: u64, partial: Option<Partial>) -> (u64, u64) {
    match partial {
        Some(Partial { offset, count }) => (offset, bytes.saturating_sub(offset).min(count)),
        None => (0, bytes),
    }
}
