//! Responses, whole.

use crate::command::{CommandFault, Tag};
use crate::fetched::FetchItem;
use crate::flag::Flag;
use crate::frame::Part;
use crate::list::{ListedMailbox, StatusItem};
use crate::mailbox::{MailboxName, NameEncoding};
use crate::response_code::ResponseCode;
use crate::set::SequenceSet;
use crate::value::{Value, ValueLimits};
use crate::write::{Next, Segment, WriteOptions, write_values};

/// How a command went, or what the server says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Status {
    Ok,
    No,
    Bad,
    PreAuth,
    Bye,
}

impl Status {
    /// Its word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::No => "NO",
            Self::Bad => "BAD",
            Self::PreAuth => "PREAUTH",
            Self::Bye => "BYE",
        }
    }

    fn parse(word: &[u8]) -> Option<Self> {
        let all = [Self::Ok, Self::No, Self::Bad, Self::PreAuth, Self::Bye];
        all.into_iter().find(|status| word.eq_ignore_ascii_case(status.word().as_bytes()))
    }
}

/// Names of one kind: what they begin with, and what stands between their levels.
pub type Namespace = Vec<(String, Option<char>)>;

/// A thread: messages in a row, then branches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Thread {
    pub messages: Vec<u32>,
    pub branches: Vec<Thread>,
}

/// What ESEARCH answers (RFC 4731).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct SearchResult {
    /// The tag of the command.
    pub tag: Option<String>,
    pub uid: bool,
    pub min: Option<u32>,
    pub max: Option<u32>,
    /// `None` where nothing was found, or it was not asked for.
    pub all: Option<SequenceSet>,
    pub count: Option<u64>,
    pub mod_seq: Option<u64>,
    /// From and to, and what was found there.
    pub partial: Option<((i64, i64), Option<SequenceSet>)>,
}

/// A response.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Response {
    /// `+`: the server wants more; the text, or a challenge in base64.
    Continuation(String),
    /// How a command went (with its tag), or what the server says of itself.
    Status {
        tag: Option<Tag>,
        status: Status,
        code: Option<ResponseCode>,
        text: String,
    },
    Capability(Vec<String>),
    Enabled(Vec<String>),
    Id(Vec<(String, Option<String>)>),
    Flags(Vec<Flag>),
    List(ListedMailbox),
    Lsub(ListedMailbox),
    Namespace {
        personal: Namespace,
        other_users: Namespace,
        shared: Namespace,
    },
    /// Numbers; `None` where the answer is no number (NIL, or an id).
    MailboxStatus {
        mailbox: MailboxName,
        items: Vec<(StatusItem, Value)>,
    },
    /// With the highest change among them (RFC 7162).
    Search {
        found: Vec<u32>,
        mod_seq: Option<u64>,
    },
    Sort {
        found: Vec<u32>,
        mod_seq: Option<u64>,
    },
    Thread(Vec<Thread>),
    Esearch(Box<SearchResult>),
    Exists(u32),
    Recent(u32),
    Expunge(u32),
    Vanished {
        earlier: bool,
        uids: SequenceSet,
    },
    Fetch {
        number: u32,
        items: Vec<FetchItem>,
    },
    /// A message without a number (RFC 9586).
    UidFetch {
        uid: u32,
        items: Vec<FetchItem>,
    },
    /// The name of a root, and of each resource what is used and allowed.
    Quota {
        root: String,
        resources: Vec<(String, u64, u64)>,
    },
    QuotaRoot {
        mailbox: MailboxName,
        roots: Vec<String>,
    },
    /// Identifiers and their rights.
    Acl {
        mailbox: MailboxName,
        entries: Vec<(String, String)>,
    },
    ListRights {
        mailbox: MailboxName,
        identifier: String,
        rights: Vec<String>,
    },
    MyRights {
        mailbox: MailboxName,
        rights: String,
    },
    Metadata {
        mailbox: String,
        entries: Vec<(String, Option<Vec<u8>>)>,
    },
    /// Any other: the number before its word, the word in capitals, and what follows.
    Other(Option<u64>, String, Vec<Value>),
}

impl Response {
    /// A status without a tag.
    #[must_use]
    pub fn status(status: Status, code: Option<ResponseCode>, text: &str) -> Self {
        Self::Status { tag: None, status, code, text: line_text(text) }
    }

    /// How the command of this tag went.
    #[must_use]
    pub fn done(tag: Tag, status: Status, code: Option<ResponseCode>, text: &str) -> Self {
        Self::Status { tag: Some(tag), status, code, text: line_text(text) }
    }

    /// Reads a frame of a server.
    ///
    /// # Errors
    /// [`CommandFault`]
    pub fn parse(parts: &[Part], names: NameEncoding, limits: ValueLimits) -> Result<Self, CommandFault> {
        let Some(Part::Text(line)) = parts.first() else { return Err(CommandFault::Syntax) };
        if parts.len() == 1
            && let Some(response) = Self::line(line)
        {
            return response;
        }
        match line.strip_prefix(b"* ") {
            Some(rest) => {
                let mut untagged = vec![Part::Text(rest.to_vec())];
                untagged.extend(parts.iter().skip(1).cloned());
                Self::untagged(&untagged, names, limits)
            }
            None => Err(CommandFault::Syntax),
        }
    }

    /// A response that is text for people.
    fn line(line: &[u8]) -> Option<Result<Self, CommandFault>> {
        if line.first() == Some(&b'+') {
            let text = line.get(1..).unwrap_or_default();
            let text = String::from_utf8_lossy(text.strip_prefix(b" ").unwrap_or(text)).into_owned();
            return Some(Ok(Self::Continuation(text)));
        }
        let mut words = line.splitn(3, |byte| *byte == b' ');
        let (tag, word, text) = (words.next()?, words.next()?, words.next().unwrap_or_default());
        let tag = match tag {
            b"*" => None,
            tag => match std::str::from_utf8(tag).ok().and_then(Tag::new) {
                Some(tag) => Some(tag),
                None => return Some(Err(CommandFault::Tag)),
            },
        };
        let Some(status) = Status::parse(word) else {
            return tag.map(|_| Err(CommandFault::Unknown));
        };
        let (code, text) = ResponseCode::split(text);
        let text = String::from_utf8_lossy(text).into_owned();
        Some(Ok(Self::Status { tag, status, code, text }))
    }

    /// Writes the response. All of it but what the caller sends is one segment, so that it goes out at once.
    #[must_use]
    pub fn write(&self, names: NameEncoding, options: WriteOptions) -> Vec<Segment> {
        let line = match self {
            Self::Continuation(text) => format!("+ {}\r\n", line_text(text)).into_bytes(),
            Self::Status { tag, status, code, text } => {
                let tag = tag.as_ref().map_or("*", Tag::as_str);
                let mut line = format!("{tag} {} ", status.word()).into_bytes();
                if let Some(code) = code {
                    line.push(b'[');
                    let values = write_values(&code.values(), options);
                    let code = values.iter().flat_map(|segment| segment.bytes.iter().copied());
                    line.extend(code.filter(|byte| !matches!(byte, b'\r' | b'\n')));
                    line.extend_from_slice(b"] ");
                }
                line.extend_from_slice(line_text(text).as_bytes());
                line.extend_from_slice(b"\r\n");
                line
            }
            response => {
                let mut values = vec![Value::atom("*")];
                response.write_values(names, &mut values);
                return write_values(&values, options);
            }
        };
        vec![Segment { bytes: line, next: Next::End }]
    }
}

/// Text for people has no control characters, and there is always some (RFC 9051, section 7.1).
fn line_text(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}
