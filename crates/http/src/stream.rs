//! Long answers, made piece by piece on the worker pool as fast as the client takes them.
//!
//! The first piece is made in the same hand-off as the rest of the request's work, so that an error still
//! becomes a status, and an answer of one piece costs nothing more. A piece is made only when the last
//! one has been taken, so that a client that does not read costs one piece of memory and no thread.

use bytes::Bytes;
use futures_util::stream;
use scrinium_document::json::{FilledText, JsonWriter};
use scrinium_worker::{Admission, WorkerError, WorkerPool};

use crate::budget::Share;
use crate::context::Context;
use crate::error::{HttpError, Result};
use crate::response::{Body, PIECE_BYTES};

/// Something that can be made piece by piece. Making one may block.
pub(crate) trait Source: Send + 'static {
    /// The next piece.
    fn next_piece(&mut self) -> Result<Piece>;
}

/// A piece of an answer, with contents of attachments that are still to be read into it.
pub(crate) struct Piece {
    text: FilledText,
    /// Nothing comes after it.
    last: bool,
}

impl Piece {
    /// JSON text.
    pub(crate) fn of_json(text: JsonWriter, last: bool) -> Self {
        Self { text: text.into_filled(), last }
    }

    /// Bytes of any kind.
    pub(crate) fn of_bytes(bytes: Bytes, last: bool) -> Self {
        Self { text: FilledText::of_bytes(bytes), last }
    }
}

/// A text that is whole, but for contents that are read as it is sent.
pub(crate) struct Whole(Option<FilledText>);

impl Source for Whole {
    fn next_piece(&mut self) -> Result<Piece> {
        let text = self.0.take().unwrap_or_else(|| FilledText::of_bytes(Bytes::new()));
        Ok(Piece { text, last: true })
    }
}

/// Begins an answer that is one text, and gives its length. Blocks.
pub(crate) fn begin_whole(text: JsonWriter) -> Result<(u64, Begun<Whole>)> {
    let text = text.into_filled();
    Ok((text.length(), begin(Whole(Some(text)))?))
}

/// The rest of an answer: a piece that is being sent, and what makes further ones.
struct Rest<S> {
    text: FilledText,
    source: Option<S>,
}

impl<S> Rest<S> {
    /// Text that it holds for further pieces.
    fn held_bytes(&self) -> usize {
        self.text.held_bytes()
    }
}

impl<S: Source> Rest<S> {
    /// The next bytes, and what comes after them. Blocks.
    fn advance(mut self) -> Result<(Bytes, Option<Self>)> {
        loop {
            if let Some(bytes) = next_bytes(&mut self.text)? {
                let more = self.text.has_contents() || self.text.has_text() || self.source.is_some();
                return Ok((bytes, more.then_some(self)));
            }
            let Some(source) = &mut self.source else { return Ok((Bytes::new(), None)) };
            let piece = source.next_piece()?;
            self.text = piece.text;
            if piece.last {
                self.source = None;
            }
        }
    }
}

/// The next bytes of a piece, of which no more is in memory than is sent at once. Blocks.
pub(crate) fn next_bytes(text: &mut FilledText) -> Result<Option<Bytes>> {
    text.next_piece(PIECE_BYTES).map_err(|error| {
        HttpError::internal(format!("An attachment could not be read while it was sent: {error}."))
    })
}

/// An answer whose first piece is made.
pub(crate) struct Begun<S> {
    first: Bytes,
    rest: Option<Rest<S>>,
}

/// Makes the first piece. Blocks.
pub(crate) fn begin<S: Source>(source: S) -> Result<Begun<S>> {
    let (first, rest) = Rest { text: FilledText::of_bytes(Bytes::new()), source: Some(source) }.advance()?;
    Ok(Begun { first, rest })
}

impl<S: Source> Begun<S> {
    /// The body; `length` is that of all pieces where it is known.
    ///
    /// # Errors
    /// 503 where clients have not taken as many answers as may be held.
    pub(crate) fn into_body(self, context: &Context, length: Option<u64>) -> Result<Body> {
        let mut share = context.state.budget.for_answer(context.identity.shared_name());
        share.cover(self.first.len().saturating_add(self.rest.as_ref().map_or(0, Rest::held_bytes)))?;
        let Some(rest) = self.rest else { return Ok(Body::whole(self.first).with_share(share)) };
        let stage = Stage::First(self.first, rest, share);
        let workers = context.state.workers.clone();
        let pieces = stream::try_unfold(stage, move |stage| {
            let workers = workers.clone();
            async move {
                match stage {
                    Stage::First(bytes, rest, share) => Ok(Some((bytes, Stage::Next(rest, share)))),
                    Stage::Next(rest, share) => next(&workers, rest, share).await.map(Some),
                    Stage::End(share) => {
                        drop(share);
                        Ok(None)
                    }
                }
            }
        });
        Ok(match length {
            Some(length) => Body::pieces_of_length(pieces, length),
            None => Body::pieces(pieces),
        })
    }
}

enum Stage<S> {
    First(Bytes, Rest<S>, Share),
    Next(Rest<S>, Share),
    /// The share is that of the last piece, which the client may not have taken yet.
    End(Share),
}

async fn next<S: Source>(workers: &WorkerPool, rest: Rest<S>, mut share: Share) -> Result<(Bytes, Stage<S>)> {
    // The piece before this one was taken.
    share.shrink(rest.held_bytes());
    // Who holds memory must not wait for others who do; the next piece frees some of it.
    if share.is_empty() {
        share.wait_for_room().await;
    }
    let admission = admit_again(workers).await?;
    let (bytes, rest) = admission.run(move || rest.advance()).await??;
    share.cover_made(bytes.len().saturating_add(rest.as_ref().map_or(0, Rest::held_bytes)));
    let stage = match rest {
        Some(rest) => Stage::Next(rest, share),
        None => Stage::End(share),
    };
    Ok((bytes, stage))
}

/// Admission for the next piece of an answer that has begun: it cannot be refused any more, so where the
/// server is busy it waits. The client's taking nothing meanwhile does no harm.
pub(crate) async fn admit_again(workers: &WorkerPool) -> Result<Admission> {
    loop {
        match workers.admit().await {
            Ok(admission) => return Ok(admission),
            Err(WorkerError::Busy { retry_after, .. }) => tokio::time::sleep(retry_after).await,
            Err(error) => return Err(error.into()),
        }
    }
}
