//! LMTP's replies after the text of a message: one for each recipient that was taken (RFC 2033, section 4.2).

use crate::reply::{Reply, ReplyError, ReplyLimits, ReplyReader};

/// Collects the replies of a server to one message, in the order of its recipients.
#[derive(Clone, Debug)]
pub struct RecipientReplies {
    reader: ReplyReader,
    missing: usize,
    replies: Vec<Reply>,
}

impl RecipientReplies {
    /// This many recipients were taken.
    #[must_use]
    pub fn new(recipients: usize, limits: ReplyLimits) -> Self {
        Self { reader: ReplyReader::new(limits), missing: recipients, replies: Vec::new() }
    }

    /// Takes the next line, without its end.
    ///
    /// # Errors
    /// [`ReplyError`], also for a line that comes after the last reply.
    pub fn line(&mut self, line: &[u8]) -> Result<(), ReplyError> {
        if self.is_whole() {
            return Err(ReplyError::Malformed);
        }
        if let Some(reply) = self.reader.line(line)? {
            self.replies.push(reply);
            self.missing = self.missing.saturating_sub(1);
        }
        Ok(())
    }

    /// Whether all recipients have their reply.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.missing == 0
    }

    /// The replies that came.
    #[must_use]
    pub fn into_replies(self) -> Vec<Reply> {
        self.replies
    }
}
