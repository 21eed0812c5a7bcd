//! A message as clients fetch it: the source that a document keeps, with lines that end in CR LF, or what a memo without a source
//! becomes when it is sent.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use scrinium_database::{
    Access, AttachmentReader, Database, DatabaseError, ReadOptions, Result, SOURCE_ATTACHMENT,
};
use scrinium_imap::ContentId;
use scrinium_mail::{MessageComposer, MessageSource};
use scrinium_mailbox::{MapBuilder, MapLimits, MessageMap, Span};
use serde_json::{Map, Value};

/// Read of a source at a time.
const PIECE_BYTES: usize = 256 << 10;

/// Of a source whose lines end otherwise than those of a client's form, a place is kept each time after about this number of bytes.
const PLACES_BYTES: u64 = 64 << 10;

/// Read at first of a message whose header is asked for; and no longer header is read without the rest.
const HEADER_BYTES: usize = 16 << 10;
const HEADER_BYTES_MAX: usize = 1 << 20;

/// Messages whose maps are kept, and the bytes that these may take, by their parts.
const KEPT_MESSAGES: usize = 4096;

/// What is known of a message once it was read.
pub(crate) struct Outline {
    pub(crate) map: Arc<MessageMap>,
    /// The hash of what was composed: the directory may make something else of it later.
    composed: Option<blake3::Hash>,
    /// Where places of the client's form lie in the source, if not in the same distance from the start.
    places: Option<Vec<Place>>,
}

/// A place in a message, and in its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    form: u64,
    source: u64,
    /// Whether the byte before it is a carriage return.
    behind_return: bool,
}

/// Where bytes of a message come from.
enum Origin {
    Attachment { reader: Box<AttachmentReader>, start: u64 },
    Composed(MessageSource, blake3::Hash),
}

impl Origin {
    fn composed(&self) -> Option<blake3::Hash> {
        match self {
            Self::Composed(_, hash) => Some(*hash),
            Self::Attachment { .. } => None,
        }
    }

    fn read(&self, offset: u64, most: usize) -> Result<bytes::Bytes> {
        match self {
            Self::Attachment { reader, start } => reader.read(start.saturating_add(offset), most),
            Self::Composed(source, _) => source
                .piece(offset, most)
                .map_err(|error| DatabaseError::Internal { reason: error.to_string() }),
        }
    }
}

/// Opens messages, and keeps what was found out about them.
pub(crate) struct Messages {
    composer: MessageComposer,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    outlines: HashMap<ContentId, Arc<Outline>>,
    /// In the order in which they came.
    order: VecDeque<ContentId>,
}

/// A message that was opened.
pub(crate) struct OpenMessage {
    origin: Origin,
    pub(crate) outline: Arc<Outline>,
}

/// A message as far as its header is concerned.
pub(crate) struct Beginning {
    /// The map, whose parts say nothing, with the length of the whole message.
    pub(crate) map: Arc<MessageMap>,
    /// The first bytes of the client's form, the whole header among them.
    pub(crate) source: Vec<u8>,
}

/// What a content is of: a document, and of one without a source its revision.
pub(crate) fn content_id(database: &Database, id: &str, revision: Option<&str>) -> ContentId {
    let mut bytes = database.uuid().to_vec();
    bytes.extend_from_slice(revision.unwrap_or_default().as_bytes());
    bytes.push(0);
    bytes.extend_from_slice(id.as_bytes());
    ContentId(bytes.into())
}

/// The document and the revision of a content of this database.
pub(crate) fn document_of(database: &Database, content: &ContentId) -> Option<(String, Option<String>)> {
    let rest = content.0.strip_prefix(&database.uuid())?;
    let end = rest.iter().position(|byte| *byte == 0)?;
    let text = |bytes: &[u8]| std::str::from_utf8(bytes).ok().map(str::to_owned);
    let revision = text(rest.get(..end)?)?;
    Some((text(rest.get(end + 1..)?)?, Some(revision).filter(|revision| !revision.is_empty())))
}

impl Messages {
    pub(crate) fn new(composer: MessageComposer) -> Self {
        Self { composer, kept: Mutex::default() }
    }

    /// Opens the message of a document, reading it whole where that was not done of late. Blocks.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`] if it is not there any more, or is another one, and what the store reports.
    pub(crate) fn open(
        &self,
        database: &Arc<Database>,
        content: &ContentId,
        access: &Access,
    ) -> Result<OpenMessage> {
        let (id, revision) = document_of(database, content).ok_or_else(DatabaseError::missing)?;
        let origin = self.origin(database, (&id, revision.as_deref()), access)?;
        let known = self.kept.lock().outlines.get(content).cloned();
        if known.as_ref().is_some_and(|known| known.composed != origin.composed()) {
            return Err(DatabaseError::missing());
        }
        let outline = match known {
            Some(outline) => outline,
            None => self.keep(content, outline_of(&origin)?),
        };
        Ok(OpenMessage { origin, outline })
    }

    /// The header of a message and what follows it at once, in the form of clients, without reading the rest. `None` where that does not
    /// do: for a memo without a source, and for a header that is very long. Blocks.
    ///
    /// # Errors
    /// As of [`Self::open`].
    pub(crate) fn beginning(
        &self,
        database: &Arc<Database>,
        (content, bytes): (&ContentId, u64),
        access: &Access,
    ) -> Result<Option<Beginning>> {
        let (id, revision) = document_of(database, content).ok_or_else(DatabaseError::missing)?;
        if revision.is_some() {
            return Ok(None);
        }
        beginning_of(&self.origin(database, (&id, None), access)?, bytes)
    }

    fn origin(
        &self,
        database: &Arc<Database>,
        (id, revision): (&str, Option<&str>),
        access: &Access,
    ) -> Result<Origin> {
        let document = database.read(id, &ReadOptions::default(), access)?;
        let memo = scrinium_document::json::stored_value(&document.json);
        let Some(Value::Object(memo)) = memo else { return Err(DatabaseError::missing()) };
        if has_source(&memo) {
            let reader = Box::new(database.open_attachment(id, SOURCE_ATTACHMENT, None, access)?);
            let start = memo.get(scrinium_database::SOURCE_START).and_then(Value::as_u64).unwrap_or(0);
            return Ok(Origin::Attachment { reader, start });
        }
        if revision.is_none_or(|revision| Some(revision) != memo.get("_rev").and_then(Value::as_str)) {
            return Err(DatabaseError::missing());
        }
        let source = self.composer.compose(database, (id, &memo), access)?;
        let hash = hash_of(&source)?;
        Ok(Origin::Composed(source, hash))
    }

    fn keep(&self, content: &ContentId, outline: Outline) -> Arc<Outline> {
        let outline = Arc::new(outline);
        let mut kept = self.kept.lock();
        if kept.outlines.insert(content.clone(), Arc::clone(&outline)).is_none() {
            kept.order.push_back(content.clone());
        }
        while kept.order.len() > KEPT_MESSAGES
            && let Some(oldest) = kept.order.pop_front()
        {
            kept.outlines.remove(&oldest);
        }
        outline
    }
}

/// Whether a document keeps the source of its message.
pub(crate) fn has_source(memo: &Map<String, Value>) -> bool {
    memo.get("_attachments").and_then(|attachments| attachments.get(SOURCE_ATTACHMENT)).is_some()
}

impl OpenMessage {
    pub(crate) fn bytes(&self) -> u64 {
        self.outline.map.bytes
    }

    /// Bytes of the client's form. Fewer than asked for only at its end.
    ///
    /// # Errors
    /// What the store reports.
    pub(crate) fn read(&self, span: Span) -> Result<Vec<u8>> {
        let end = span.end.min(self.bytes());
        let wanted = usize::try_from(end.saturating_sub(span.start)).unwrap_or(usize::MAX);
        let mut found = Vec::with_capacity(wanted.min(PIECE_BYTES));
        let Some(places) = &self.outline.places else {
            while found.len() < wanted {
                let offset = span.start + found.len() as u64;
                let piece = self.origin.read(offset, (wanted - found.len()).min(PIECE_BYTES))?;
                if piece.is_empty() {
                    break;
                }
                found.extend_from_slice(&piece);
            }
            return Ok(found);
        };
        let at = places.partition_point(|place| place.form <= span.start).saturating_sub(1);
        let place = places.get(at).copied().unwrap_or(Place { form: 0, source: 0, behind_return: false });
        let mut form = Form { position: place.form, behind_return: place.behind_return };
        let mut source = place.source;
        while form.position < end {
            let piece = self.origin.read(source, PIECE_BYTES)?;
            if piece.is_empty() {
                break;
            }
            source += piece.len() as u64;
            form.each(&piece, |position, byte| {
                if position >= span.start && position < end {
                    found.push(byte);
                }
            });
        }
        Ok(found)
    }
}

fn hash_of(source: &MessageSource) -> Result<blake3::Hash> {
    let mut hasher = blake3::Hasher::new();
    let mut position = 0;
    loop {
        let piece = source
            .piece(position, PIECE_BYTES)
            .map_err(|error| DatabaseError::Internal { reason: error.to_string() })?;
        if piece.is_empty() {
            return Ok(hasher.finalize());
        }
        hasher.update(&piece);
        position += piece.len() as u64;
    }
}

/// Turns a source into the form that clients get: a line feed without a carriage return before it gets one.
struct Form {
    position: u64,
    behind_return: bool,
}

impl Form {
    fn each(&mut self, piece: &[u8], mut take: impl FnMut(u64, u8)) {
        for byte in piece {
            if *byte == b'\n' && !self.behind_return {
                take(self.position, b'\r');
                self.position += 1;
            }
            take(self.position, *byte);
            self.position += 1;
            self.behind_return = *byte == b'\r';
        }
    }
}

/// Reads until the header has ended.
fn beginning_of(origin: &Origin, bytes: u64) -> Result<Option<Beginning>> {
    let mut form = Form { position: 0, behind_return: false };
    let (mut position, mut source) = (0_u64, Vec::new());
    let mut wanted = HEADER_BYTES;
    loop {
        let piece = origin.read(position, wanted)?;
        position += piece.len() as u64;
        form.each(&piece, |_, byte| source.push(byte));
        let mut map = MapBuilder::map(&source);
        let header_end = map.root().map_or(0, |root| root.header.end);
        if piece.is_empty() || header_end < source.len() as u64 {
            map.bytes = bytes;
            return Ok(Some(Beginning { map: Arc::new(map), source }));
        }
        if source.len() > HEADER_BYTES_MAX {
            return Ok(None);
        }
        wanted = source.len();
    }
}

fn outline_of(origin: &Origin) -> Result<Outline> {
    let mut builder = MapBuilder::new(MapLimits::default());
    let mut form = Form { position: 0, behind_return: false };
    let (mut source, mut places, mut is_other) = (0_u64, Vec::new(), false);
    let mut converted = Vec::new();
    loop {
        let piece = origin.read(source, PIECE_BYTES)?;
        if piece.is_empty() {
            break;
        }
        for part in piece.chunks(usize::try_from(PLACES_BYTES).unwrap_or(usize::MAX)) {
            places.push(Place { form: form.position, source, behind_return: form.behind_return });
            source += part.len() as u64;
            converted.clear();
            form.each(part, |_, byte| converted.push(byte));
            is_other |= converted.len() != part.len();
            builder.push(&converted);
        }
    }
    let composed = origin.composed();
    Ok(Outline { map: Arc::new(builder.finish()), composed, places: is_other.then_some(places) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_of_clients_has_a_carriage_return_before_each_line_feed() {
        for (source, wanted) in
            [("a\nb\r\nc\r\r\n\n", "a\r\nb\r\nc\r\r\n\r\n"), ("", ""), ("\n", "\r\n"), ("\r", "\r")]
        {
            for cut in 0..=source.len() {
                let mut form = Form { position: 0, behind_return: false };
                let mut found = Vec::new();
                let (one, other) = source.as_bytes().split_at(cut);
                for piece in [one, other] {
                    form.each(piece, |position, byte| {
                        assert_eq!(position, found.len() as u64);
                        found.push(byte);
                    });
                }
                assert_eq!(found, wanted.as_bytes(), "{source:?}");
            }
        }
    }
}
