//! A document with the contents of attachments in one request (RFC 2387), as CouchDB's replicator sends it: no content is
//! held in memory but for a piece.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, Method};
use http_body::{Body, Frame, SizeHint};
use reqwest::Response;
use scrinium_document::is_media_type;
use tokio::sync::mpsc;

use super::RemoteEnd;
use super::documents::segments_of;
use crate::document::SourceDocument;
use crate::end::{IncomingAttachment, Refusal};
use crate::error::{ErrorKind, ReplicationError, Result};
use crate::name::random_name;

/// Pieces that wait for the network.
const PIECES: usize = 4;

impl RemoteEnd {
    pub(crate) async fn write_related(
        &self,
        document: &SourceDocument,
        contents: Vec<IncomingAttachment>,
    ) -> Result<Option<Refusal>> {
        let url = self.url(&segments_of(&document.id), &[("new_edits", "false".to_owned())])?;
        let boundary = random_name();
        let heads = Heads::of(&boundary, document, &contents);
        let mut headers = HeaderMap::new();
        let kind = HeaderValue::try_from(format!("multipart/related; boundary=\"{boundary}\""));
        let kind = kind.map_err(|_| ReplicationError::protocol("The boundary cannot be sent."))?;
        headers.insert(CONTENT_TYPE, kind);
        headers.insert(CONTENT_LENGTH, heads.length.into());
        let (pieces, body) = mpsc::channel(PIECES);
        let body = reqwest::Body::wrap(Pieces { pieces: body, length: heads.length });
        let proof = self.proof(&url).await?;
        let sent = self.send(&Method::PUT, &url, (&headers, proof.as_ref()), Some(body));
        let read = read_all(heads, contents, pieces);
        let (response, read) = tokio::join!(sent, read);
        let status = response.as_ref().ok().map(Response::status);
        // What stopped the source is what happened, and the request that came to nothing its consequence.
        if let (Err(error), false) = (read, status.is_some_and(|status| status.is_client_error())) {
            return Err(error);
        }
        let response = response?;
        if response.status().is_success() {
            self.whole(response, 1 << 20).await?;
            return Ok(None);
        }
        if response.status() == 401 && self.session_is_over(proof.as_ref()).await {
            return Err(ReplicationError::new(ErrorKind::Unavailable, "The session is over."));
        }
        let error = self.refused(response).await;
        match error.kind {
            // Of the document, and not of the database: who writes has asked that before.
            ErrorKind::Forbidden | ErrorKind::Unauthorized | ErrorKind::TooLarge | ErrorKind::Refused => {
                Ok(Some(Refusal {
                    id: document.id.clone(),
                    revision: document.revision.clone(),
                    reason: error.reason,
                }))
            }
            _ => Err(error),
        }
    }
}

/// What stands between the contents.
struct Heads {
    before: Vec<Bytes>,
    end: Bytes,
    length: u64,
}

impl Heads {
    fn of(boundary: &str, document: &SourceDocument, contents: &[IncomingAttachment]) -> Self {
        let mut before = Vec::with_capacity(contents.len());
        let mut head = format!("--{boundary}\r\nContent-Type: application/json\r\n\r\n").into_bytes();
        head.extend_from_slice(&document.json);
        for content in contents {
            head.extend_from_slice(format!("\r\n--{boundary}\r\n{}\r\n", head_of(content)).as_bytes());
            before.push(Bytes::from(std::mem::take(&mut head)));
        }
        let end = Bytes::from(format!("\r\n--{boundary}--"));
        let between: usize = before.iter().map(Bytes::len).sum();
        let inside = contents.iter().fold(0_u64, |sum, content| sum.saturating_add(content.length));
        let length = inside.saturating_add((between + end.len()) as u64);
        Self { before, end, length }
    }
}

/// The head of an attachment's part. CouchDB knows it by its place, PouchDB's server by its name alone. A name that would have
/// to be escaped is left out, since each server takes that differently.
fn head_of(content: &IncomingAttachment) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._-/ ()".contains(letter);
    let mut head = format!("Content-Length: {}\r\n", content.length);
    if content.name.chars().all(is_plain) {
        head.push_str(&format!("Content-Disposition: attachment; filename=\"{}\"\r\n", content.name));
    }
    if is_media_type(&content.content_type) {
        head.push_str(&format!("Content-Type: {}\r\n", content.content_type));
    }
    head
}

/// Gives all pieces, in their order; ends early where nobody takes them.
async fn read_all(heads: Heads, contents: Vec<IncomingAttachment>, pieces: Sender) -> Result<()> {
    for (head, mut content) in heads.before.into_iter().zip(contents) {
        if pieces.send(Ok(head)).await.is_err() {
            return Ok(());
        }
        loop {
            match content.content.next_piece().await {
                Ok(Some(piece)) => {
                    if pieces.send(Ok(piece)).await.is_err() {
                        return Ok(());
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    // The request must not look complete.
                    drop(pieces.send(Err(error.clone())).await);
                    return Err(error);
                }
            }
        }
    }
    drop(pieces.send(Ok(heads.end)).await);
    Ok(())
}

type Sender = mpsc::Sender<Result<Bytes>>;

/// A body of pieces that come.
struct Pieces {
    pieces: mpsc::Receiver<Result<Bytes>>,
    length: u64,
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = ReplicationError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<std::result::Result<Frame<Bytes>, ReplicationError>>> {
        self.pieces.poll_recv(context).map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.length)
    }
}
