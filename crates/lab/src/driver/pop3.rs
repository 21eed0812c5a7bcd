//! Fetches a person's mail by POP3 (RFC 1939). Each method is one request of the user.

use std::sync::Arc;

use scrinium_pop3_wire::{
    Command, Credential, DotLine, ListEntry, MessageNumber, Response, dot_line, parse_list_entry,
};

use super::endpoint::{Endpoint, Security};
use super::failure::{Failure, FailureKind};
use super::letter::Scan;
use super::mail::{Account, MailOptions, in_time};
use super::wire::{Wire, shown};

/// A mailbox of more messages is a wrong answer.
const MOST_MESSAGES: usize = 1 << 20;

/// A message is no longer than this.
const LONGEST_MESSAGE_BYTES: u64 = 256 << 20;

/// One user's connection to a POP3 server, which lasts from one retrieval's beginning to its end.
pub struct Pop3Session {
    endpoint: Arc<Endpoint>,
    options: Arc<MailOptions>,
    account: Account,
    wire: Option<Wire>,
}

/// A message of the list: its number, and its size in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Pop3Entry {
    pub number: u32,
    pub bytes: u64,
}

impl Pop3Session {
    pub(super) fn new(endpoint: Arc<Endpoint>, options: Arc<MailOptions>, account: Account) -> Self {
        Self { endpoint, options, account, wire: None }
    }

    /// Drops the connection; nothing that was marked as deleted goes.
    pub fn close(&mut self) {
        self.wire = None;
    }

    /// Connects and logs in; gives the text of the server's greeting.
    ///
    /// # Errors
    /// No connection, no time left, or the server refuses the name or the password.
    pub async fn log_in(&mut self) -> Result<String, Failure> {
        self.wire = None;
        let login = async {
            let mut wire = self.endpoint.connect().await?;
            let greeting = answer(&mut wire, "the greeting").await?;
            if self.endpoint.security == Security::StartTls {
                tell(&mut wire, &Command::StartTls, "STLS").await?;
                wire = self.endpoint.encrypt(wire).await?;
            }
            tell(&mut wire, &Command::User(credential(&self.account.login)?), "USER").await?;
            tell(&mut wire, &Command::Pass(credential(&self.account.password)?), "PASS").await?;
            Ok((wire, greeting))
        };
        let (wire, greeting) = in_time(self.options.time_out, "POP3", login).await?;
        self.wire = Some(wire);
        Ok(greeting)
    }

    /// The text of the server's greeting.
    pub(super) async fn greeting(&self) -> Result<String, Failure> {
        let greet = async { answer(&mut self.endpoint.connect().await?, "the greeting").await };
        in_time(self.options.time_out, "the greeting", greet).await
    }

    /// Lists all messages.
    ///
    /// # Errors
    /// [`Failure`]; their numbers must rise.
    pub async fn list(&mut self) -> Result<Vec<Pop3Entry>, Failure> {
        let wire = self.wire.as_mut().ok_or_else(closed)?;
        let listed = in_time(self.options.time_out, "LIST", list(wire)).await;
        self.keep(listed)
    }

    /// Reads a message whole.
    ///
    /// # Errors
    /// [`Failure`]; it must be as long as the list says, and what its digest says if it is one of the laboratory's.
    pub async fn retrieve(&mut self, entry: Pop3Entry) -> Result<Scan, Failure> {
        let scan = self.read(entry).await?;
        let number = entry.number;
        if scan.bytes() != entry.bytes {
            return Err(Failure::wrong(format!(
                "RETR {number}: {} bytes came, {} were listed",
                scan.bytes(),
                entry.bytes
            )));
        }
        scan.check().map_err(|why| Failure::wrong(format!("RETR {number}: {why}")))?;
        Ok(scan)
    }

    /// Reads a message; whether it is what was sent is for the caller to judge.
    pub(super) async fn read(&mut self, entry: Pop3Entry) -> Result<Scan, Failure> {
        let wire = self.wire.as_mut().ok_or_else(closed)?;
        let read = in_time(self.options.time_out, "RETR", read(wire, entry.number)).await;
        self.keep(read)
    }

    /// Marks a message as deleted; it goes with [`Self::quit`].
    ///
    /// # Errors
    /// [`Failure`]
    pub async fn delete(&mut self, entry: Pop3Entry) -> Result<(), Failure> {
        let wire = self.wire.as_mut().ok_or_else(closed)?;
        let command = Command::Delete(message(entry.number)?);
        let deleted = in_time(self.options.time_out, "DELE", tell(wire, &command, "DELE")).await;
        self.keep(deleted).map(|_| ())
    }

    /// Ends the connection; what was marked as deleted goes now.
    ///
    /// # Errors
    /// [`Failure`]
    pub async fn quit(&mut self) -> Result<(), Failure> {
        let mut wire = self.wire.take().ok_or_else(closed)?;
        in_time(self.options.time_out, "QUIT", tell(&mut wire, &Command::Quit, "QUIT")).await.map(|_| ())
    }

    /// A connection that failed is not used again.
    fn keep<T>(&mut self, answer: Result<T, Failure>) -> Result<T, Failure> {
        if answer.as_ref().is_err_and(|failure| failure.kind != FailureKind::Refused) {
            self.wire = None;
        }
        answer
    }
}

fn closed() -> Failure {
    Failure::new(FailureKind::Connection, "the connection was lost")
}

fn credential(text: &str) -> Result<Credential, Failure> {
    Credential::new(text).ok_or_else(|| Failure::wrong("a name or password that no command can hold"))
}

fn message(number: u32) -> Result<MessageNumber, Failure> {
    MessageNumber::new(number).ok_or_else(|| Failure::wrong("no message has the number 0"))
}

async fn tell(wire: &mut Wire, command: &Command, name: &str) -> Result<String, Failure> {
    let mut line = Vec::new();
    command.write(&mut line);
    wire.write(&line).await?;
    answer(wire, name).await
}

async fn answer(wire: &mut Wire, name: &str) -> Result<String, Failure> {
    let line = wire.line().await?;
    match Response::parse(&line) {
        Ok(Response::Ok(text)) => Ok(text),
        Ok(Response::Err(..)) => {
            Err(Failure::new(FailureKind::Refused, format!("{name} \u{2192} {}", shown(&line))))
        }
        Ok(Response::Challenge(_)) | Err(_) => {
            Err(Failure::wrong(format!("{name}: no answer of POP3: {}", shown(&line))))
        }
    }
}

async fn list(wire: &mut Wire) -> Result<Vec<Pop3Entry>, Failure> {
    tell(wire, &Command::List(None), "LIST").await?;
    let mut entries: Vec<Pop3Entry> = Vec::new();
    loop {
        let line = wire.line().await?;
        let DotLine::Text(text) = dot_line(&line) else { return Ok(entries) };
        let entry = parse_list_entry(text)
            .map(|ListEntry { number, bytes }| Pop3Entry { number: number.get(), bytes });
        let rising = |entry: &Pop3Entry| entries.last().is_none_or(|last| last.number < entry.number);
        match entry.filter(rising) {
            Some(entry) if entries.len() < MOST_MESSAGES => entries.push(entry),
            _ => return Err(Failure::wrong(format!("LIST: {}", shown(&line)))),
        }
    }
}

async fn read(wire: &mut Wire, number: u32) -> Result<Scan, Failure> {
    tell(wire, &Command::Retrieve(message(number)?), "RETR").await?;
    let mut scan = Scan::new();
    loop {
        let line = wire.line().await?;
        let DotLine::Text(text) = dot_line(&line) else {
            scan.finish();
            return Ok(scan);
        };
        scan.feed(text);
        scan.feed(b"\r\n");
        if scan.bytes() > LONGEST_MESSAGE_BYTES {
            return Err(Failure::wrong(format!("RETR {number}: more than {LONGEST_MESSAGE_BYTES} bytes")));
        }
    }
}
