//! The message that a memo without a source stands for, as mail clients have seen it first: the same for ever, while what it was made of
//! is as it was.
//!
//! What depends on the directory, on the server's name and on the version is kept with the document
//! ([`NewRendering`]); the text and the files are taken from it.

use std::sync::Arc;

use scrinium_database::{Access, Database, DatabaseError, NewRendering, ReadOptions};
use serde_json::{Map, Value};

use super::compose::MessagePlan;
use super::{MessageComposer, name_of};
use crate::memo::field;
use crate::message::SOURCE_ATTACHMENT;
use crate::source::MessageSource;

/// What a message is made of, besides files.
const RENDERED: &[&str] = &[
    field::FORM,
    field::FROM,
    field::SENDER,
    field::REPLY_TO,
    field::SEND_TO,
    field::COPY_TO,
    field::SUBJECT,
    field::POSTED_DATE,
    field::DELIVERED_DATE,
    field::MESSAGE_ID,
    field::IN_REPLY_TO,
    field::REFERENCES,
    field::IMPORTANCE,
    field::BODY,
];

/// A memo, and what is kept of its message.
struct Seen {
    memo: Map<String, Value>,
    revision: String,
    plan: Option<MessagePlan>,
}

impl MessageComposer {
    /// The message of a document without a source, and the revision that it is of. What is made of it for the first time is durable when this
    /// returns. Blocks.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`] if it is not there, or changes in this moment, and what the store reports.
    pub fn frozen(
        &self,
        database: &Arc<Database>,
        id: &str,
        access: &Access,
    ) -> Result<(MessageSource, String), DatabaseError> {
        let mut seen = seen(database, id, access)?;
        if seen.plan.is_none() {
            self.freeze(database, &[id], access)?;
            seen = self::seen(database, id, access)?;
        }
        let Seen { memo, revision, plan } = seen;
        let plan = plan.ok_or_else(DatabaseError::missing)?;
        let source =
            plan.written(&memo, |name| database.open_attachment(id, name, Some(&revision), access))?;
        Ok((source, revision))
    }

    /// Keeps what several of these are made of, in one batch. Those that are gone, have a source, or were seen before are passed over. Blocks.
    ///
    /// # Errors
    /// What the store reports.
    pub fn freeze(
        &self,
        database: &Arc<Database>,
        ids: &[&str],
        access: &Access,
    ) -> Result<(), DatabaseError> {
        let mut new = Vec::new();
        for id in ids {
            let Seen { memo, revision, .. } = match seen(database, id, access) {
                Ok(seen) if seen.plan.is_none() => seen,
                Ok(_) | Err(DatabaseError::NotFound { .. }) => continue,
                Err(error) => return Err(error),
            };
            let attachments = memo.get("_attachments");
            if attachments.and_then(|attachments| attachments.get(SOURCE_ATTACHMENT)).is_some() {
                continue;
            }
            let kind = |name: &str| {
                let kind =
                    attachments.and_then(|attachments| attachments.get(name)?.get("content_type")?.as_str());
                Ok(kind.unwrap_or_default().to_owned())
            };
            let name = name_of(id);
            let plan = self.composer((&name, &memo), access).plan(kind)?;
            let content = plan.stored().into();
            new.push(NewRendering { id: (*id).to_owned(), revision, fields: RENDERED, content });
        }
        database.keep_renderings(new)
    }
}

fn seen(database: &Arc<Database>, id: &str, access: &Access) -> Result<Seen, DatabaseError> {
    let snapshot = database.store().snapshot();
    let found = database.read_at(&snapshot, id, &ReadOptions::default(), access)?;
    let found = found.ok_or_else(DatabaseError::missing)?;
    let readable = access.readable_id(database, &snapshot, id.to_owned())?;
    let kept = match readable {
        Some(readable) => database.rendering_at(&snapshot, &readable)?,
        None => None,
    };
    let memo = found.json.to_object().ok_or_else(DatabaseError::missing)?;
    Ok(Seen { memo, revision: found.revision, plan: kept.as_deref().and_then(MessagePlan::read) })
}
