//! A message as clients fetch it: the source that a document keeps, with lines that end in CR LF, or what a memo without a source
//! becomes when it is sent.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use scrinium_database::keys::Digest;
use scrinium_database::{
    Access, AttachmentReader, Database, DatabaseError, ReadOptions, Result, SOURCE_ATTACHMENT,
};
use scrinium_imap::ContentId;
use scrinium_mail::{MessageComposer, MessageSource};
use scrinium_mailbox::{
    Form, MapBuilder, MapPart, MessageMap, Outline, OutlineBuilder, Place, SentDate, Span,
};
use serde_json::{Map, Value};

/// Read of a source at a time.
const PIECE_BYTES: usize = 256 << 10;

/// Read at first of a message whose header is asked for; and no longer header is read without the rest.
const HEADER_BYTES: usize = 16 << 10;
const HEADER_BYTES_MAX: usize = 1 << 20;

/// Messages whose outlines are kept in memory, and the bytes that these may take.
const KEPT_MESSAGES: usize = 4096;
const KEPT_BYTES: usize = 32 << 20;

/// What is taken for the size of one that is too long to be stored.
const LONG_OUTLINE_BYTES: usize = 4 << 20;

/// What is known of a message once it was read.
pub(crate) struct Known {
    pub(crate) map: Arc<MessageMap>,
    /// As of [`Outline`].
    places: Option<Vec<Place>>,
    held_bytes: usize,
}

impl Known {
    /// `stored_bytes`: how long it is as it is stored, which says how much memory its texts take.
    fn new(outline: Outline, stored_bytes: Option<usize>) -> Self {
        let Outline { map, places } = outline;
        let texts_bytes = stored_bytes.map_or(LONG_OUTLINE_BYTES, |bytes| bytes * 2);
        let held_bytes = map.parts.len() * size_of::<MapPart>() + texts_bytes;
        Self { map: Arc::new(map), places, held_bytes }
    }
}

/// Where bytes of a message come from.
enum Origin {
    Attachment { reader: Box<AttachmentReader>, start: u64 },
    Composed(MessageSource),
}

impl Origin {
    fn read(&self, offset: u64, most: usize) -> Result<bytes::Bytes> {
        match self {
            Self::Attachment { reader, start } => reader.read(start.saturating_add(offset), most),
            Self::Composed(source) => source
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
    outlines: HashMap<ContentId, Arc<Known>>,
    /// In the order in which they came.
    order: VecDeque<ContentId>,
    bytes: usize,
}

/// A message that was opened.
pub(crate) struct OpenMessage {
    origin: Origin,
    pub(crate) outline: Arc<Known>,
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
        let outline = match known {
            Some(outline) => outline,
            None => self.keep(content, find_out(database, &id, &origin, access)?),
        };
        Ok(OpenMessage { origin, outline })
    }

    /// What is known of a message whose source is this content, without its document and its source. `None`: it must be opened.
    ///
    /// # Errors
    /// What the store reports.
    pub(crate) fn known(
        &self,
        database: &Arc<Database>,
        (content, source): (&ContentId, Option<&Digest>),
        access: &Access,
    ) -> Result<Option<Arc<Known>>> {
        let Some(source) = source else { return Ok(None) };
        if let Some(known) = self.kept.lock().outlines.get(content).cloned() {
            return Ok(Some(known));
        }
        let Some(stored) = stored_outline(database, (content, source), access)? else { return Ok(None) };
        let outline = Outline::decode(&stored);
        Ok(outline.map(|outline| self.keep(content, Known::new(outline, Some(stored.len())))))
    }

    /// What is kept of a document's message, for a copy of it.
    ///
    /// # Errors
    /// What the store reports.
    pub(crate) fn stored(
        database: &Arc<Database>,
        (id, source): (&str, Option<&Digest>),
        access: &Access,
    ) -> Result<Option<bytes::Bytes>> {
        let Some(source) = source else { return Ok(None) };
        let stored = stored_outline(database, (&content_id(database, id, None), source), access)?;
        Ok(stored.map(bytes::Bytes::from))
    }

    /// When a message was sent, as its header says, where that is known without its document and its source.
    ///
    /// # Errors
    /// What the store reports.
    pub(crate) fn known_sent(
        database: &Arc<Database>,
        (content, source): (&ContentId, Option<&Digest>),
        access: &Access,
    ) -> Result<Option<Option<SentDate>>> {
        let Some(source) = source else { return Ok(None) };
        let stored = stored_outline(database, (content, source), access)?;
        Ok(stored.and_then(|stored| Outline::decode_sent(&stored)))
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
        let Some(revision) = revision else { return Err(DatabaseError::missing()) };
        let (source, now) = self.composer.frozen(database, id, access)?;
        if now == revision { Ok(Origin::Composed(source)) } else { Err(DatabaseError::missing()) }
    }

    /// How long a message is, where it was read whole of late.
    pub(crate) fn known_bytes(&self, content: &ContentId) -> Option<u64> {
        self.kept.lock().outlines.get(content).map(|known| known.map.bytes)
    }

    /// The content of a document without a source as it is now, and its length. Blocks.
    ///
    /// # Errors
    /// As of [`Self::open`].
    pub(crate) fn composed(
        &self,
        database: &Arc<Database>,
        id: &str,
        access: &Access,
    ) -> Result<(ContentId, u64)> {
        let (source, revision) = self.composer.frozen(database, id, access)?;
        let content = content_id(database, id, Some(&revision));
        let known = find_out(database, id, &Origin::Composed(source), access)?;
        let bytes = self.keep(&content, known).map.bytes;
        Ok((content, bytes))
    }

    /// Keeps what these documents are to mail clients, in one batch, where that is not known yet. Blocks.
    ///
    /// # Errors
    /// What the store reports.
    pub(crate) fn freeze(&self, database: &Arc<Database>, ids: &[&str], access: &Access) -> Result<()> {
        if ids.is_empty() { Ok(()) } else { self.composer.freeze(database, ids, access) }
    }

    fn keep(&self, content: &ContentId, known: Known) -> Arc<Known> {
        let known = Arc::new(known);
        let mut kept = self.kept.lock();
        kept.bytes += known.held_bytes;
        match kept.outlines.insert(content.clone(), Arc::clone(&known)) {
            Some(before) => kept.bytes = kept.bytes.saturating_sub(before.held_bytes),
            None => kept.order.push_back(content.clone()),
        }
        while (kept.order.len() > KEPT_MESSAGES || kept.bytes > KEPT_BYTES)
            && let Some(oldest) = kept.order.pop_front()
        {
            let gone = kept.outlines.remove(&oldest);
            kept.bytes = kept.bytes.saturating_sub(gone.map_or(0, |gone| gone.held_bytes));
        }
        known
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
        let place = places.get(at).copied().unwrap_or_default();
        let mut form = Form::at(place);
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

/// Reads until the header has ended.
fn beginning_of(origin: &Origin, bytes: u64) -> Result<Option<Beginning>> {
    let mut form = Form::default();
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

/// What is kept of a message whose source is this content.
fn stored_outline(
    database: &Arc<Database>,
    (content, source): (&ContentId, &Digest),
    access: &Access,
) -> Result<Option<Vec<u8>>> {
    let Some((id, None)) = document_of(database, content) else { return Ok(None) };
    let snapshot = database.store().snapshot();
    let Some(id) = access.readable_id(database, &snapshot, id)? else { return Ok(None) };
    database.outline_at(&snapshot, &id, source)
}

/// What is kept of a message, or else is found out by reading it whole, and kept from then on.
fn find_out(database: &Arc<Database>, id: &str, origin: &Origin, access: &Access) -> Result<Known> {
    let source = match origin {
        Origin::Attachment { reader, .. } => reader.content_name,
        Origin::Composed(_) => {
            let outline = outline_of(origin)?;
            let stored_bytes = outline.encode().map(|stored| stored.len());
            return Ok(Known::new(outline, stored_bytes));
        }
    };
    let content = content_id(database, id, None);
    if let Some(stored) = stored_outline(database, (&content, &source), access)?
        && let Some(outline) = Outline::decode(&stored)
    {
        return Ok(Known::new(outline, Some(stored.len())));
    }
    let outline = outline_of(origin)?;
    let stored = outline.encode();
    let stored_bytes = stored.as_ref().map(Vec::len);
    if let Some(stored) = stored
        && let Err(error) = database.keep_outlines(vec![(id.to_owned(), source, stored.into())])
    {
        tracing::debug!(%error, "what was found out about a message is not kept");
    }
    Ok(Known::new(outline, stored_bytes))
}

fn outline_of(origin: &Origin) -> Result<Outline> {
    let (mut builder, mut position) = (OutlineBuilder::default(), 0);
    loop {
        let piece = origin.read(position, PIECE_BYTES)?;
        if piece.is_empty() {
            return Ok(builder.finish());
        }
        position += piece.len() as u64;
        builder.push(&piece);
    }
}
