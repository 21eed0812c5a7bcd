//! Messages on their way through a server's port: many in one request, and large ones each in a request of its own, in
//! pieces.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{Method, StatusCode};
use hyper::body::Bytes;
use scrinium_mail::import::{ImportedMemo, RefusedMessage, StoredBatch};
use scrinium_mail::{SOURCE_ATTACHMENT, SOURCE_CONTENT_TYPE};
use serde_json::{Value, json};

use crate::client::{BodyPiece, ClientError, ConsoleClient};
use crate::registry::refusal;

/// A larger message goes alone.
const LARGE_BYTES: u64 = 2 << 20;

/// Messages of this many bytes go together, so that no request comes near what a server takes at once.
const TOGETHER_BYTES: u64 = 3 << 20;

/// Words of CouchDB's for what is wrong with one document; everything else is wrong with all.
const OF_ONE_DOCUMENT: [&str; 7] = [
    "forbidden",
    "unauthorized",
    "bad_request",
    "document_too_large",
    "attachment_too_large",
    "too_large",
    "illegal_docid",
];

/// Where messages go.
#[derive(Clone)]
pub(super) struct Letters {
    pub(super) client: ConsoleClient,
    /// `/mail%2Fada`.
    pub(super) database: String,
    /// The name under which the person uses the server.
    pub(super) owner: String,
}

impl Letters {
    /// Stores messages that go into the same folders, all read or all not.
    ///
    /// # Errors
    /// Why the server takes none of them; what is wrong with one is counted.
    pub(super) async fn store(
        &self,
        memos: Vec<ImportedMemo>,
        stored: &mut StoredBatch,
    ) -> Result<(), String> {
        let (large, small): (Vec<_>, Vec<_>) =
            memos.into_iter().partition(|memo| memo.source.len() > LARGE_BYTES);
        let mut together = Vec::new();
        let mut bytes = 0;
        for memo in small {
            if bytes + memo.source.len() > TOGETHER_BYTES {
                self.store_small(std::mem::take(&mut together), stored).await?;
                bytes = 0;
            }
            bytes += memo.source.len();
            together.push(memo);
        }
        self.store_small(together, stored).await?;
        for memo in large {
            self.store_alone(memo, stored).await?;
        }
        Ok(())
    }

    async fn store_small(&self, memos: Vec<ImportedMemo>, stored: &mut StoredBatch) -> Result<(), String> {
        if !self.store_together(&memos, stored).await? {
            // The server says of all what is true of one.
            for memo in memos {
                self.store_alone(memo, stored).await?;
            }
        }
        Ok(())
    }

    /// Whether the server took the request.
    async fn store_together(&self, memos: &[ImportedMemo], stored: &mut StoredBatch) -> Result<bool, String> {
        let Some(first) = memos.first() else { return Ok(true) };
        let path = format!("{}/_bulk_docs?{}", self.database, self.query(first));
        let with_source = |memo: &ImportedMemo| -> std::io::Result<Value> {
            let bytes = memo.source.bytes()?;
            let source = json!({"content_type": SOURCE_CONTENT_TYPE, "data": STANDARD.encode(bytes)});
            Ok(document(memo, &source))
        };
        let documents: std::io::Result<Vec<Value>> = memos.iter().map(with_source).collect();
        let body = json!({"docs": documents.map_err(|error| error.to_string())?}).to_string();
        let asked = self.client.request(Method::POST, &path, Some(body.into())).await;
        let (status, body) = match asked {
            Ok(answer) => answer,
            Err(ClientError::Broken { .. }) => return Ok(false),
            Err(error) => return Err(error.to_string()),
        };
        if status == StatusCode::UNAUTHORIZED || status.is_server_error() {
            return Err(refusal(&self.client, status, &body));
        }
        if !status.is_success() {
            return Ok(false);
        }
        let rows: Vec<Value> = serde_json::from_slice(&body).map_err(|error| error.to_string())?;
        if rows.len() != memos.len() {
            return Err(format!("the server answers {} rows for {} messages", rows.len(), memos.len()));
        }
        for (row, memo) in rows.iter().zip(memos) {
            let reason = row.get("reason").and_then(Value::as_str).unwrap_or_default();
            match row.get("error").and_then(Value::as_str) {
                None => stored.added += 1,
                Some("conflict") => stored.present += 1,
                Some(error) if OF_ONE_DOCUMENT.contains(&error) => stored.refused.push(refused(memo, reason)),
                Some(error) => return Err(format!("the server takes no messages: {error}: {reason}")),
            }
        }
        Ok(true)
    }

    async fn store_alone(&self, memo: ImportedMemo, stored: &mut StoredBatch) -> Result<(), String> {
        let path = format!("{}/{}?{}", self.database, memo.id, self.query(&memo));
        // The id is a digest of the message, which therefore does not hold it.
        let boundary = format!("scrinium-{}", memo.id);
        let length = memo.source.len();
        let source = json!({"content_type": SOURCE_CONTENT_TYPE, "length": length, "follows": true});
        let head = format!(
            "--{boundary}\r\nContent-Type: application/json\r\n\r\n{}\r\n--{boundary}\r\n\
             Content-Disposition: attachment; filename=\"{SOURCE_ATTACHMENT}\"\r\n\
             Content-Type: {SOURCE_CONTENT_TYPE}\r\nContent-Length: {length}\r\n\r\n",
            document(&memo, &source)
        );
        let tail = format!("\r\n--{boundary}--");
        let pieces = vec![
            BodyPiece::Bytes(Bytes::from(head)),
            BodyPiece::Message(memo.source.clone()),
            BodyPiece::Bytes(Bytes::from(tail)),
        ];
        let content_type = format!("multipart/related; boundary=\"{boundary}\"");
        let asked = self.client.send_pieces(Method::PUT, &path, &content_type, pieces).await;
        let (status, body) = match asked {
            Ok(answer) => answer,
            // A server that does not want a body may close the connection before its answer was read.
            Err(error @ ClientError::Broken { .. }) => {
                self.client.request(Method::GET, "/", None).await.map_err(|error| error.to_string())?;
                let reason = format!("{error}; a message may have attachment.max_bytes");
                stored.refused.push(refused(&memo, &reason));
                return Ok(());
            }
            Err(error) => return Err(error.to_string()),
        };
        match status {
            _ if status.is_success() => stored.added += 1,
            StatusCode::CONFLICT => stored.present += 1,
            StatusCode::UNAUTHORIZED => return Err(refusal(&self.client, status, &body)),
            _ if status.is_client_error() => {
                stored.refused.push(refused(&memo, &refusal(&self.client, status, &body)));
            }
            _ => return Err(refusal(&self.client, status, &body)),
        }
        Ok(())
    }

    /// Into which folders messages come, and who has read them.
    fn query(&self, memo: &ImportedMemo) -> String {
        let mut query: Vec<String> =
            memo.folders.iter().map(|folder| format!("folder={}", escape(folder))).collect();
        if memo.read {
            query.push(format!("read_by={}", escape(&self.owner)));
        }
        query.join("&")
    }
}

fn refused(memo: &ImportedMemo, reason: &str) -> RefusedMessage {
    RefusedMessage { place: memo.place.clone(), reason: format!("the server does not take it: {reason}") }
}

/// A message's document with what is said of its source.
fn document(memo: &ImportedMemo, source: &Value) -> Value {
    let mut fields = memo.fields.clone();
    fields.insert("_id".to_owned(), Value::from(memo.id.as_str()));
    fields.insert("_attachments".to_owned(), json!({SOURCE_ATTACHMENT: source}));
    Value::Object(fields)
}

pub(super) fn escape(name: &str) -> String {
    percent_encoding::utf8_percent_encode(name, percent_encoding::NON_ALPHANUMERIC).to_string()
}
