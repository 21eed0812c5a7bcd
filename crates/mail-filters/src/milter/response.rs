//! What a filter answers.

use super::action;
use super::packet::MilterError;

/// Letters of a reply that are given on.
const REPLY_LETTERS_MAX: usize = 2_000;

/// A change of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A field at the end of the head. Folds are CR LF and a space.
    AddField {
        /// Its name.
        name: String,
        /// Its value.
        value: Vec<u8>,
    },
    /// A field before the field with this number, from 0.
    InsertField {
        /// Where.
        index: u32,
        /// Its name.
        name: String,
        /// Its value.
        value: Vec<u8>,
    },
    /// Another value for a field; `None` removes it.
    ChangeField {
        /// Which of those with the name, from 1.
        index: u32,
        /// Its name.
        name: String,
        /// Its new value.
        value: Option<Vec<u8>>,
    },
    /// One more recipient, as `RCPT TO` has it, with its angles.
    AddRecipient(Vec<u8>),
    /// One recipient less.
    RemoveRecipient(Vec<u8>),
    /// Another sender.
    ChangeSender(Vec<u8>),
    /// More of a body that replaces the one before.
    Body(Vec<u8>),
    /// The message is to be kept until somebody has looked at it, for this reason.
    Quarantine(String),
}

/// What a filter answers to one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Response {
    /// What it offers: version, what it may do, what it does not want.
    Negotiated(u32, u32, u32),
    /// Go on.
    Continue,
    /// Nothing more has to be asked.
    Accept,
    /// Take the message and throw it away.
    Discard,
    /// Refuse (5xx).
    Reject,
    /// Refuse for now (4xx).
    Postpone,
    /// Refuse with this reply: 4xx or 5xx, and its text in one line.
    Reply(u16, String),
    /// The connection is to be ended (421).
    Shutdown,
    /// Send no more of this kind.
    Skip,
    /// Still at work: wait on.
    Progress,
    /// A change; more may follow.
    Change(Change),
}

impl Response {
    /// Reads a packet.
    ///
    /// # Errors
    /// [`MilterError`]
    pub fn parse(kind: u8, data: &[u8]) -> Result<Self, MilterError> {
        let malformed = || MilterError::Malformed(kind);
        let change = |change| Ok(Self::Change(change));
        match kind {
            b'O' => {
                let (version, rest) = number(data).ok_or_else(malformed)?;
                let (actions, rest) = number(rest).ok_or_else(malformed)?;
                let (wishes, _macros) = number(rest).ok_or_else(malformed)?;
                Ok(Self::Negotiated(version, actions, wishes))
            }
            b'c' => Ok(Self::Continue),
            b'a' => Ok(Self::Accept),
            b'd' => Ok(Self::Discard),
            b'r' => Ok(Self::Reject),
            b't' => Ok(Self::Postpone),
            b'f' | b'4' => Ok(Self::Shutdown),
            b's' => Ok(Self::Skip),
            b'p' => Ok(Self::Progress),
            b'y' => reply(data).ok_or_else(malformed),
            b'h' => {
                let (name, value) = field(data).ok_or_else(malformed)?;
                change(Change::AddField { name, value })
            }
            b'i' => {
                let (index, rest) = number(data).ok_or_else(malformed)?;
                let (name, value) = field(rest).ok_or_else(malformed)?;
                change(Change::InsertField { index, name, value })
            }
            b'm' => {
                let (index, rest) = number(data).ok_or_else(malformed)?;
                let (name, value) = field(rest).ok_or_else(malformed)?;
                change(Change::ChangeField { index, name, value: (!value.is_empty()).then_some(value) })
            }
            b'+' | b'2' => change(Change::AddRecipient(address(data).ok_or_else(malformed)?)),
            b'-' => change(Change::RemoveRecipient(address(data).ok_or_else(malformed)?)),
            b'e' => change(Change::ChangeSender(address(data).ok_or_else(malformed)?)),
            b'b' => change(Change::Body(data.to_vec())),
            b'q' => {
                let reason = texts(data).next().unwrap_or_default();
                change(Change::Quarantine(line(reason)))
            }
            kind => Err(MilterError::Unexpected(kind)),
        }
    }
}

impl Change {
    /// What has to have been agreed upon for it.
    pub(crate) fn needs(&self, kind: u8) -> u32 {
        match self {
            Self::AddField { .. } | Self::InsertField { .. } => action::ADD_FIELDS,
            Self::ChangeField { .. } => action::CHANGE_FIELDS,
            Self::AddRecipient(_) if kind == b'2' => action::ADD_RECIPIENT_WITH_PARAMETERS,
            Self::AddRecipient(_) => action::ADD_RECIPIENT,
            Self::RemoveRecipient(_) => action::REMOVE_RECIPIENT,
            Self::ChangeSender(_) => action::CHANGE_SENDER,
            Self::Body(_) => action::CHANGE_BODY,
            Self::Quarantine(_) => action::QUARANTINE,
        }
    }
}

fn number(data: &[u8]) -> Option<(u32, &[u8])> {
    let (number, rest) = data.split_first_chunk::<4>()?;
    Some((u32::from_be_bytes(*number), rest))
}

/// Texts that end with NUL each.
fn texts(data: &[u8]) -> impl Iterator<Item = &[u8]> {
    let data = data.strip_suffix(&[0]).unwrap_or(data);
    data.split(|byte| *byte == 0)
}

/// A field that stays one: a name as RFC 5322 §3.6.8 has it, and a value of which each further line begins with white space.
fn field(data: &[u8]) -> Option<(String, Vec<u8>)> {
    let mut texts = texts(data);
    let name = std::str::from_utf8(texts.next()?).ok()?;
    let raw = texts.next().unwrap_or_default();
    if texts.next().is_some() { None } else { one_field(name, raw) }
}

/// A name of a field (RFC 5322 §3.6.8).
pub(crate) fn is_field_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b':')
}

/// As [`field`], of a name and a value that a filter gives.
pub(crate) fn one_field(name: &str, raw: &[u8]) -> Option<(String, Vec<u8>)> {
    if !is_field_name(name) || raw.contains(&0) {
        return None;
    }
    let mut value = Vec::with_capacity(raw.len());
    // Filters end lines with LF, some with CR LF.
    for (number, line) in raw.split(|byte| *byte == b'\n').enumerate() {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.contains(&b'\r') || (number > 0 && !matches!(line.first(), Some(b' ' | b'\t'))) {
            return None;
        }
        if number > 0 {
            // A line of white space alone would be the end of a head for some readers.
            if line.trim_ascii().is_empty() {
                continue;
            }
            value.extend_from_slice(b"\r\n");
        }
        value.extend_from_slice(line);
    }
    Some((name.to_owned(), value))
}

/// An address in one line.
fn address(data: &[u8]) -> Option<Vec<u8>> {
    let address = texts(data).next()?;
    let is_line = address.iter().all(|byte| *byte >= b' ' && *byte != 0x7f);
    (!address.is_empty() && is_line).then(|| address.to_vec())
}

/// `4yz TEXT` or `5yz TEXT`, of several lines the first of each text.
fn reply(data: &[u8]) -> Option<Response> {
    let text = texts(data).next()?;
    let (code, rest) = text.split_at_checked(3)?;
    let code: u16 = std::str::from_utf8(code).ok()?.parse().ok()?;
    let words: Vec<String> = rest
        .split(|byte| *byte == b'\n')
        .map(|one| {
            // The lines of a reply repeat its code.
            let one = one.strip_prefix(text.get(..3).unwrap_or_default()).unwrap_or(one);
            line(one.strip_prefix(b"-").unwrap_or(one)).trim().to_owned()
        })
        .filter(|line| !line.is_empty())
        .collect();
    (400..600)
        .contains(&code)
        .then(|| Response::Reply(code, words.join(" ").chars().take(REPLY_LETTERS_MAX).collect()))
}

/// Bytes as a line of printable ASCII.
pub(crate) fn line(bytes: &[u8]) -> String {
    let letters = bytes.iter().take(REPLY_LETTERS_MAX);
    letters.filter(|byte| (b' '..=b'~').contains(*byte)).map(|byte| char::from(*byte)).collect()
}
