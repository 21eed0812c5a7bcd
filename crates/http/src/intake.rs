//! JSON of documents as it comes: long contents of attachments in it go to the store piece by piece, and only the rest is
//! held. A client that sends a hundred photographs in one request needs no more memory here than one that sends their names.

use std::collections::HashMap;

use bytes::Bytes;
use scrinium_contents::{Content, Upload};
use scrinium_document::json::{ContentPlace, ContentSeparator, Separated};

use crate::access::Opened;
use crate::context::Context;
use crate::error::{HttpError, Result};

/// A body up to this length is held as it comes.
pub(crate) const HELD_WHOLE_BYTES: usize = 256 << 10;

/// Contents up to this length are stored in one piece with their document, and held until then.
const PIECE_BYTES: u64 = 256 << 10;

/// What contents may be held of one request; further ones are written at once.
const HELD_CONTENT_BYTES: u64 = 4 << 20;

/// What is known of a content's type while it comes: its document says it elsewhere.
const UNKNOWN_TYPE: &str = "application/octet-stream";

/// Contents with the names of their attachments, by the places of their documents.
pub(crate) type TakenOut = HashMap<usize, Vec<(String, Content)>>;

/// The JSON of a request, and what was taken out of it.
pub(crate) struct Received {
    pub(crate) json: Bytes,
    pub(crate) contents: TakenOut,
}

impl Received {
    pub(crate) fn whole(json: Bytes) -> Self {
        Self { json, contents: TakenOut::new() }
    }

    /// What was taken out of the only document.
    pub(crate) fn into_document(mut self) -> (Bytes, Vec<(String, Content)>) {
        let contents = self.contents.remove(&0).unwrap_or_default();
        (self.json, contents)
    }
}

/// What a content holds in memory until it is stored.
pub(crate) fn held_bytes(content: &Content) -> u64 {
    if content.length() <= PIECE_BYTES { content.length() } else { 0 }
}

/// A JSON text on its way in.
pub(crate) struct Intake {
    separator: ContentSeparator,
    database: Opened,
    upload: Option<Upload>,
    /// One that has ended and may go to a store of objects, which no thread of the worker pool waits for.
    leaving: Option<(ContentPlace, Upload)>,
    contents: TakenOut,
    held_bytes: u64,
}

impl Intake {
    pub(crate) fn new(separator: ContentSeparator, database: Opened) -> Box<Self> {
        Box::new(Self {
            separator,
            database,
            upload: None,
            leaving: None,
            contents: TakenOut::new(),
            held_bytes: 0,
        })
    }

    /// Bytes of text that are held, and of contents.
    pub(crate) fn held_bytes(&self) -> (usize, usize) {
        (self.separator.held_bytes(), usize::try_from(self.held_bytes).unwrap_or(usize::MAX))
    }

    /// Whether most of the body is passed on.
    pub(crate) fn passes_on(&self) -> bool {
        self.upload.is_some() || !self.contents.is_empty()
    }

    /// Looks at more bytes; waits while contents are written.
    pub(crate) async fn push(mut self: Box<Self>, context: &Context, bytes: Bytes) -> Result<Box<Self>> {
        self.separator.push(bytes);
        loop {
            self = context
                .state
                .run(move || {
                    self.take()?;
                    Ok(self)
                })
                .await?;
            let Some((place, upload)) = self.leaving.take() else { return Ok(self) };
            let sent = tokio::task::spawn_blocking(move || upload.finish()).await;
            let sent = sent.map_err(|_| HttpError::internal("An attachment could not be stored."))?;
            self.add(place, sent.map_err(HttpError::of_attachment)?);
        }
    }

    /// Takes out what has arrived. Blocks.
    fn take(&mut self) -> Result<()> {
        while self.leaving.is_none() {
            match self.separator.next_piece()? {
                Separated::Starved => break,
                Separated::Data(bytes) => {
                    let upload = self.upload.get_or_insert_with(|| self.database.upload(UNKNOWN_TYPE));
                    upload.write(&bytes).map_err(HttpError::of_attachment)?;
                }
                Separated::End(place) => self.end(place)?,
            }
        }
        Ok(())
    }

    fn end(&mut self, place: ContentPlace) -> Result<()> {
        let upload = self.upload.take().unwrap_or_else(|| self.database.upload(UNKNOWN_TYPE));
        if upload.may_leave() {
            self.leaving = Some((place, upload));
            return Ok(());
        }
        let content = if self.held_bytes < HELD_CONTENT_BYTES {
            let content = upload.finish().map_err(HttpError::of_attachment)?;
            self.held_bytes += held_bytes(&content);
            content
        } else {
            upload.finish_written().map_err(HttpError::of_attachment)?
        };
        self.add(place, content);
        Ok(())
    }

    fn add(&mut self, place: ContentPlace, content: Content) {
        self.contents.entry(place.document).or_default().push((place.name, content));
    }

    /// All has arrived.
    pub(crate) fn finish(self) -> Received {
        Received { json: self.separator.into_text().into(), contents: self.contents }
    }
}
