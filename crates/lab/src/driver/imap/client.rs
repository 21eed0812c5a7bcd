//! One IMAP connection: commands go out with a tag, responses are read until the one with that tag.

use scrinium_imap_wire::{
    Command, Literal, NameEncoding, Next, Part, Speaker, Tag, Value, ValueLimits, WriteOptions, announced,
    parse_values,
};

use crate::driver::failure::{Failure, FailureKind};
use crate::driver::wire::{Wire, shown};

/// A literal that nobody asked for may be so long.
const LONGEST_LITERAL_BYTES: u64 = 64 << 10;

/// A message may be so long.
const LONGEST_MESSAGE_BYTES: u64 = 256 << 20;

/// More text in one response, or more responses to one command, are a wrong answer.
const LONGEST_RESPONSE_BYTES: usize = 4 << 20;
const MOST_RESPONSES: usize = 1 << 20;
const LIMITS: ValueLimits = ValueLimits { depth: 16, values: 1 << 20 };

/// An untagged response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::driver) enum Untagged {
    /// `OK`, `NO`, `BAD`, `PREAUTH` or `BYE`, and its text.
    Status(String, String),
    /// `12 EXISTS`, `3 FETCH (..)`: the number, the word and what follows.
    Numbered(u64, String, Vec<Value>),
    /// `LIST ..`, `CAPABILITY ..`: the word and what follows.
    Named(String, Vec<Value>),
}

/// How a tagged response, or a greeting, ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::driver) struct Done {
    pub(in crate::driver) status: String,
    pub(in crate::driver) text: String,
}

#[derive(Debug)]
enum Response {
    Continue,
    Tagged(String, Done),
    Untagged(Untagged),
}

/// A connection, and what the server has said of the open mailbox without being asked.
pub(super) struct Client {
    wire: Wire,
    tag: u32,
    /// Messages in the open mailbox.
    pub(super) exists: u64,
    pub(super) capabilities: Vec<String>,
}

impl Client {
    /// Reads the greeting of a new connection; gives its text.
    pub(super) async fn greeted(wire: Wire) -> Result<(Self, String), Failure> {
        let mut client = Self { wire, tag: 0, exists: 0, capabilities: Vec::new() };
        match client.response(&mut |_| {}).await? {
            Response::Untagged(Untagged::Status(status, text)) if status == "OK" || status == "PREAUTH" => {
                Ok((client, text))
            }
            Response::Untagged(Untagged::Status(status, text)) => {
                Err(Failure::new(FailureKind::Connection, format!("the server greets with {status} {text}")))
            }
            other => Err(Failure::wrong(format!("no greeting: {other:?}"))),
        }
    }

    /// A connection that has just been encrypted; the server greets no second time.
    pub(super) fn encrypted(wire: Wire) -> Self {
        Self { wire, tag: 0, exists: 0, capabilities: Vec::new() }
    }

    /// The connection itself, to be encrypted.
    pub(super) fn into_wire(self) -> Wire {
        self.wire
    }

    pub(super) fn can(&self, capability: &str) -> bool {
        self.capabilities.iter().any(|known| known.eq_ignore_ascii_case(capability))
    }

    /// Sends a command and gives what came for it. It is a failure if it does not end with OK.
    pub(super) async fn command(&mut self, command: &Command) -> Result<Vec<Untagged>, Failure> {
        self.command_with(command, None, &mut |_| {}).await
    }

    /// The same, with the bytes of a literal that the command announces, and with bodies of messages handed to `body`
    /// while they come.
    pub(super) async fn command_with(
        &mut self,
        command: &Command,
        literal: Option<&[u8]>,
        body: &mut (dyn FnMut(&[u8]) + Send),
    ) -> Result<Vec<Untagged>, Failure> {
        self.tag += 1;
        let tag = format!("L{}", self.tag);
        let name = name_of(command);
        let wire_tag = Tag::new(&tag).ok_or_else(|| Failure::wrong(format!("no tag: {tag}")))?;
        for segment in command.write(&wire_tag, NameEncoding::Utf7, WriteOptions::CLIENT) {
            self.wire.write(&segment.bytes).await?;
            match segment.next {
                Next::End => {}
                Next::Continuation => self.until_continued(&tag, &name).await?,
                Next::Data { .. } => {
                    self.until_continued(&tag, &name).await?;
                    self.wire.write(literal.unwrap_or_default()).await?;
                }
            }
        }
        let mut responses = Vec::new();
        loop {
            match self.response(body).await? {
                Response::Continue => return Err(Failure::wrong(format!("{name}: the server wants more"))),
                Response::Untagged(untagged) => {
                    self.note(&untagged)?;
                    responses.push(untagged);
                    if responses.len() > MOST_RESPONSES {
                        return Err(Failure::wrong(format!("{name}: more than {MOST_RESPONSES} responses")));
                    }
                }
                Response::Tagged(answered, done) => {
                    finished(&name, &tag, &answered, &done)?;
                    return Ok(responses);
                }
            }
        }
    }

    /// Logs out: the server says BYE, and that it is done.
    pub(super) async fn log_out(&mut self) -> Result<(), Failure> {
        self.tag += 1;
        let tag = format!("L{}", self.tag);
        let wire_tag = Tag::new(&tag).ok_or_else(|| Failure::wrong(format!("no tag: {tag}")))?;
        for segment in Command::Logout.write(&wire_tag, NameEncoding::Utf7, WriteOptions::CLIENT) {
            self.wire.write(&segment.bytes).await?;
        }
        let mut said_bye = false;
        for _ in 0..MOST_RESPONSES {
            match self.response(&mut |_| {}).await? {
                Response::Untagged(Untagged::Status(status, _)) if status == "BYE" => said_bye = true,
                Response::Untagged(_) => {}
                Response::Continue => return Err(Failure::wrong("LOGOUT: the server wants more")),
                Response::Tagged(answered, done) => {
                    finished("LOGOUT", &tag, &answered, &done)?;
                    return if said_bye {
                        Ok(())
                    } else {
                        Err(Failure::wrong("LOGOUT: the server says no BYE"))
                    };
                }
            }
        }
        Err(Failure::wrong(format!("LOGOUT: more than {MOST_RESPONSES} responses")))
    }

    async fn until_continued(&mut self, tag: &str, name: &str) -> Result<(), Failure> {
        for _ in 0..MOST_RESPONSES {
            match self.response(&mut |_| {}).await? {
                Response::Continue => return Ok(()),
                Response::Untagged(untagged) => self.note(&untagged)?,
                Response::Tagged(answered, done) => {
                    finished(name, tag, &answered, &done)?;
                    return Err(Failure::wrong(format!("{name}: done before the message was sent")));
                }
            }
        }
        Err(Failure::wrong(format!("{name}: more than {MOST_RESPONSES} responses")))
    }

    /// Keeps what any response may say at any time.
    fn note(&mut self, untagged: &Untagged) -> Result<(), Failure> {
        match untagged {
            Untagged::Status(status, text) if status == "BYE" => {
                return Err(Failure::new(FailureKind::Connection, format!("the server says BYE {text}")));
            }
            Untagged::Numbered(number, word, _) if word == "EXISTS" => self.exists = *number,
            Untagged::Numbered(_, word, _) if word == "EXPUNGE" => {
                self.exists = self.exists.saturating_sub(1);
            }
            Untagged::Named(word, values) if word == "CAPABILITY" => {
                self.capabilities = values.iter().filter_map(Value::text).collect();
            }
            _ => {}
        }
        Ok(())
    }

    async fn response(&mut self, body: &mut (dyn FnMut(&[u8]) + Send)) -> Result<Response, Failure> {
        let first = self.wire.line().await?;
        if first == b"+" || first.starts_with(b"+ ") {
            return Ok(Response::Continue);
        }
        let text = String::from_utf8_lossy(&first).into_owned();
        let (tag, rest) = text
            .split_once(' ')
            .ok_or_else(|| Failure::wrong(format!("no response of IMAP: {}", shown(&first))))?;
        let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
        let word = word.to_ascii_uppercase();
        let is_status = matches!(word.as_str(), "OK" | "NO" | "BAD" | "BYE" | "PREAUTH");
        // The text of a status is for people: it need not be made of values.
        match (tag, is_status) {
            ("*", true) => Ok(Response::Untagged(Untagged::Status(word, after.to_owned()))),
            ("*", false) => self.untagged(first, body).await.map(Response::Untagged),
            (_, true) => Ok(Response::Tagged(tag.to_owned(), Done { status: word, text: after.to_owned() })),
            (_, false) => Err(Failure::wrong(format!("no response of IMAP: {}", shown(&first)))),
        }
    }

    /// Reads the literals of a response and the lines between them.
    async fn untagged(
        &mut self,
        first: Vec<u8>,
        body: &mut (dyn FnMut(&[u8]) + Send),
    ) -> Result<Untagged, Failure> {
        let mut parts = Vec::new();
        let mut line = first.get(2..).unwrap_or_default().to_vec();
        let mut total = 0;
        while let Some((Literal { bytes, binary, .. }, text_bytes)) = announced(&line, Speaker::Server) {
            let is_message = ends_with_message(line.get(..text_bytes).unwrap_or_default());
            let longest = if is_message { LONGEST_MESSAGE_BYTES } else { LONGEST_LITERAL_BYTES };
            if bytes > longest {
                return Err(Failure::wrong(format!("a literal of {bytes} bytes: {}", shown(&line))));
            }
            line.truncate(text_bytes);
            total += line.len();
            parts.push(Part::Text(line));
            if is_message {
                self.wire.take(bytes, &mut *body).await?;
                parts.push(Part::Streamed(bytes, binary));
            } else {
                let mut literal = Vec::new();
                self.wire.take(bytes, |bytes| literal.extend_from_slice(bytes)).await?;
                total += literal.len();
                parts.push(Part::Literal(literal, binary));
            }
            if total > LONGEST_RESPONSE_BYTES {
                return Err(Failure::wrong(format!(
                    "a response of more than {LONGEST_RESPONSE_BYTES} bytes"
                )));
            }
            line = self.wire.line().await?;
        }
        parts.push(Part::Text(line));
        let values = parse_values(&parts, LIMITS)
            .map_err(|why| Failure::wrong(format!("no response of IMAP, {why}: {}", shown(&first))))?;
        named(values)
    }
}

/// Whether the literal behind this text is a message, whole.
fn ends_with_message(text: &[u8]) -> bool {
    text.to_ascii_uppercase().ends_with(b"BODY[] ")
}

fn named(values: Vec<Value>) -> Result<Untagged, Failure> {
    let mut values = values.into_iter();
    let none = || Failure::wrong("a response of IMAP without a word");
    let first = values.next().ok_or_else(none)?;
    if let Some(number) = first.number() {
        let word = values.next().and_then(|word| word.text()).ok_or_else(none)?;
        return Ok(Untagged::Numbered(number, word.to_ascii_uppercase(), values.collect()));
    }
    let word = first.text().ok_or_else(none)?;
    Ok(Untagged::Named(word.to_ascii_uppercase(), values.collect()))
}

fn finished(name: &str, tag: &str, answered: &str, done: &Done) -> Result<(), Failure> {
    if tag != answered {
        return Err(Failure::wrong(format!("{name}: answered with the tag {answered}, was sent with {tag}")));
    }
    match done.status.as_str() {
        "OK" => Ok(()),
        status @ ("NO" | "BAD") => Err(Failure::new(
            FailureKind::Refused,
            format!("{name} \u{2192} {status} {}", shown(done.text.as_bytes())),
        )),
        status => Err(Failure::wrong(format!("{name} \u{2192} {status} {}", done.text))),
    }
}

/// What a command is called where it fails: its first two words.
pub(super) fn name_of(command: &Command) -> String {
    command.shown().split(' ').take(2).collect::<Vec<_>>().join(" ")
}
