//! What mail programs ask of each message is found out while its source is stored, and kept with its document.

use bytes::Bytes;
use scrinium_database::{AttachmentReader, DatabaseError, Edit, SOURCE_START};
use scrinium_mailbox::OutlineBuilder;
use serde_json::{Map, Value};

use crate::source::MessageSource;

/// Read of a source at a time.
const PIECE_BYTES: usize = 256 << 10;

/// A longer message is looked at when somebody asks for it: nobody waits for that while mail is delivered.
const SOURCE_BYTES_MAX: u64 = 2 << 20;

/// Of a message with many parts it is longer, and comes later, too: each recipient's batch has it.
const OUTLINE_BYTES_MAX: usize = 4 << 10;

/// Outlines of one batch, which has a limit for all that it brings.
const OUTLINES_BYTES_MAX: usize = 16 << 10;

/// Leaves outlines out behind those that one batch may bring; they come later.
pub fn limit_outlines(edits: &mut [Edit]) {
    let mut bytes = 0;
    for edit in edits {
        bytes += edit.outline.as_ref().map_or(0, Bytes::len);
        if bytes > OUTLINES_BYTES_MAX {
            edit.outline = None;
        }
    }
}

/// The outline of a message that is to be stored, for [`Edit::outline`](scrinium_database::Edit); `None` where it comes later. `memo`
/// says where the message begins.
///
/// # Errors
/// What reading the message gives.
pub fn outline_of(source: &MessageSource, memo: &Map<String, Value>) -> std::io::Result<Option<Bytes>> {
    if source.len() > SOURCE_BYTES_MAX {
        return Ok(None);
    }
    outline(memo, |position| source.piece(position, PIECE_BYTES))
}

/// The same of one that is stored already.
pub(crate) fn outline_of_stored(
    source: &AttachmentReader,
    memo: &Map<String, Value>,
) -> Result<Option<Bytes>, DatabaseError> {
    if source.length > SOURCE_BYTES_MAX {
        return Ok(None);
    }
    outline(memo, |position| source.read(position, PIECE_BYTES))
}

fn outline<E>(memo: &Map<String, Value>, read: impl Fn(u64) -> Result<Bytes, E>) -> Result<Option<Bytes>, E> {
    let mut position = memo.get(SOURCE_START).and_then(Value::as_u64).unwrap_or(0);
    let mut builder = OutlineBuilder::default();
    loop {
        let piece = read(position)?;
        if piece.is_empty() {
            let outline = builder.finish().encode().filter(|outline| outline.len() <= OUTLINE_BYTES_MAX);
            return Ok(outline.map(Bytes::from));
        }
        position = position.saturating_add(piece.len() as u64);
        builder.push(&piece);
    }
}
