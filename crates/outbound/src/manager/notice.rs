//! What senders hear: a notice goes into a mail.box, once, under an id of its own.

use bytes::Bytes;
use scrinium_database::DatabaseError;
use scrinium_mail::{
    DepositError, EnvelopeItems, IncomingMessage, MessageSource, QUEUE_KEEPER, QueuedDocument,
    SOURCE_ATTACHMENT,
};
use scrinium_mail_queue::NoticePlan;
use scrinium_mail_queue::report::{OriginalSource, write_report};
use scrinium_smtp_wire::Return;

use super::QueueManager;

/// More of a message does not come back, whatever its sender asked for; its head does.
const RETURNED_MAX_BYTES: usize = 5 << 20;

/// Of a longer message, this much is read for its head.
const HEAD_BYTES: usize = 128 << 10;

/// Read of a message at a time.
const PIECE_BYTES: usize = 256 << 10;

impl QueueManager {
    /// Puts a notice that is planned into a mail.box, unless it is or was there.
    pub(super) fn notify(
        &mut self,
        document: &QueuedDocument,
        plan: &NoticePlan,
        now_ms: u64,
    ) -> Result<(), DepositError> {
        let mut entry = document.entry.clone();
        let original = self.original(document)?;
        if original.len() as u64 != entry.size_bytes {
            entry.envelope.return_content = Some(Return::Headers);
        }
        let source = OriginalSource { bytes: &original };
        let Some(notice) = write_report(&entry, plan, source, &self.options.report, now_ms) else {
            return Ok(());
        };
        let message = IncomingMessage {
            source: MessageSource::from(Bytes::from(notice.source)),
            recipients: vec![notice.recipient.to_string()],
            return_path: String::new(),
            envelope: EnvelopeItems::default(),
        };
        match self.mailboxes.deposit_message(&notice.id, &message) {
            Ok(_) => {
                self.statistics.notices.add(1);
                Ok(())
            }
            Err(DepositError::Memo(error)) => {
                tracing::warn!(entry = entry.id, %error, "a sender's address cannot be notified");
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// The message; of a long one the beginning, and nothing where it cannot be read any more: the sender hears all the same.
    fn original(&self, document: &QueuedDocument) -> Result<Vec<u8>, DatabaseError> {
        let QueuedDocument { entry, start_bytes, .. } = document;
        let reader = match self.database.open_attachment(&entry.id, SOURCE_ATTACHMENT, None, &QUEUE_KEEPER) {
            Ok(reader) => reader,
            Err(DatabaseError::NotFound { .. } | DatabaseError::Damaged { .. }) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let is_short = entry.size_bytes <= RETURNED_MAX_BYTES as u64;
        let most = if is_short { RETURNED_MAX_BYTES } else { HEAD_BYTES };
        let mut original = Vec::new();
        while original.len() < most {
            let wanted = PIECE_BYTES.min(most - original.len());
            let piece = reader.read(start_bytes + original.len() as u64, wanted)?;
            if piece.is_empty() {
                break;
            }
            original.extend_from_slice(&piece);
        }
        Ok(original)
    }
}
