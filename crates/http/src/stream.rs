//! Long answers, made piece by piece on the worker pool as fast as the client takes them.
//!
//! The first piece is made in the same hand-off as the rest of the request's work, so that an error still
//! becomes a status, and an answer of one piece costs nothing more. A piece is made only when the last
//! one has been taken, so that a client that does not read costs one piece of memory and no thread.

use bytes::Bytes;
use futures_util::stream;
use scrinium_worker::{Admission, WorkerError, WorkerPool};

use crate::budget::Share;
use crate::context::Context;
use crate::error::Result;
use crate::response::Body;

/// What a piece should come to: large enough that its hand-off does not matter, small enough for many
/// clients at once.
pub(crate) const PIECE_BYTES: usize = 32 << 10;

/// Something that can be made piece by piece. Making one may block.
pub(crate) trait Source: Send + 'static {
    /// The next piece.
    fn next_piece(&mut self) -> Result<Piece>;
}

/// A piece of an answer.
pub(crate) struct Piece {
    pub(crate) bytes: Bytes,
    /// Nothing comes after it.
    pub(crate) last: bool,
}

/// An answer whose first piece is made.
pub(crate) struct Begun<S> {
    first: Bytes,
    rest: Option<S>,
}

/// Makes the first piece. Blocks.
pub(crate) fn begin<S: Source>(mut source: S) -> Result<Begun<S>> {
    let piece = source.next_piece()?;
    Ok(Begun { first: piece.bytes, rest: (!piece.last).then_some(source) })
}

impl<S: Source> Begun<S> {
    /// The body; `length` is that of all pieces where it is known.
    ///
    /// # Errors
    /// 503 where clients have not taken as many answers as may be held.
    pub(crate) fn into_body(self, context: &Context, length: Option<u64>) -> Result<Body> {
        let mut share = context.state.budget.for_answer(context.identity.shared_name());
        share.cover(self.first.len())?;
        let Some(source) = self.rest else { return Ok(Body::whole(self.first).with_share(share)) };
        let stage = Stage::First(self.first, source, share);
        let workers = context.state.workers.clone();
        let pieces = stream::try_unfold(stage, move |stage| {
            let workers = workers.clone();
            async move {
                match stage {
                    Stage::First(bytes, source, share) => Ok(Some((bytes, Stage::Next(source, share)))),
                    Stage::Next(source, share) => next(&workers, source, share).await.map(Some),
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
    First(Bytes, S, Share),
    Next(S, Share),
    /// The share is that of the last piece, which the client may not have taken yet.
    End(Share),
}

async fn next<S: Source>(workers: &WorkerPool, mut source: S, mut share: Share) -> Result<(Bytes, Stage<S>)> {
    // The piece before this one was taken.
    share.shrink(0);
    share.wait_for_room().await;
    let admission = admit_again(workers).await?;
    let (piece, source) = admission.run(move || (source.next_piece(), source)).await?;
    let piece = piece?;
    share.cover_made(piece.bytes.len());
    Ok((piece.bytes, if piece.last { Stage::End(share) } else { Stage::Next(source, share) }))
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
