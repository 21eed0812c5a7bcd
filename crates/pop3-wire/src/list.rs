//! What STAT, LIST and UIDL answer.

use std::fmt;

use crate::command::MessageNumber;

/// A message and its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct ListEntry {
    pub number: MessageNumber,
    /// With CR LF for each end of a line.
    pub bytes: u64,
}

impl fmt::Display for ListEntry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.number, self.bytes)
    }
}

/// Reads a line of LIST, or the text of its `+OK` for one message. More may follow behind a space (RFC 1939,
/// section 5).
#[must_use]
pub fn parse_list_entry(line: &[u8]) -> Option<ListEntry> {
    let (number, bytes) = two(line)?;
    Some(ListEntry { number: number.parse().ok()?, bytes: digits(bytes)? })
}

/// The id of a message, which stays the same in all sessions: 1 to 70 characters from `!` to `~`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UniqueId(String);

impl UniqueId {
    /// `None` if it is not valid.
    #[must_use]
    pub fn new(id: &str) -> Option<Self> {
        let valid = (1..=70).contains(&id.len()) && id.bytes().all(|byte| (b'!'..=b'~').contains(&byte));
        valid.then(|| Self(id.to_owned()))
    }

    /// The id.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A message and its id.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct UniqueIdEntry {
    pub number: MessageNumber,
    pub id: UniqueId,
}

impl fmt::Display for UniqueIdEntry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.number, self.id.0)
    }
}

/// Reads a line of UIDL, or the text of its `+OK` for one message.
#[must_use]
pub fn parse_unique_id_entry(line: &[u8]) -> Option<UniqueIdEntry> {
    let (number, id) = two(line)?;
    Some(UniqueIdEntry { number: number.parse().ok()?, id: UniqueId::new(id)? })
}

/// What STAT says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct MailboxSize {
    pub messages: u32,
    pub bytes: u64,
}

impl fmt::Display for MailboxSize {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.messages, self.bytes)
    }
}

/// Reads the text of STAT's `+OK`.
#[must_use]
pub fn parse_mailbox_size(text: &[u8]) -> Option<MailboxSize> {
    let (messages, bytes) = two(text)?;
    Some(MailboxSize { messages: u32::try_from(digits(messages)?).ok()?, bytes: digits(bytes)? })
}

fn two(line: &[u8]) -> Option<(&str, &str)> {
    let mut words = std::str::from_utf8(line).ok()?.split(' ');
    Some((words.next()?, words.next()?))
}

fn digits(text: &str) -> Option<u64> {
    let valid = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if valid { text.parse().ok() } else { None }
}
