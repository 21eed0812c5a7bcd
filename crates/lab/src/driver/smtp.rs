//! Sends messages by SMTP (RFC 5321) or LMTP (RFC 2033), a connection for each message, as mail programs do.
//!
//! With PIPELINING (RFC 2920) the envelope goes out at once. A message of which one recipient is refused is not sent
//! at all, so that nobody gets what the run counts as failed.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::endpoint::{Endpoint, Security};
use super::failure::{Failure, FailureKind};
use super::letter::Letter;
use super::mail::{Account, MailOptions, in_time};
use super::wire::{Wire, shown};

/// A reply of more lines is a wrong answer.
const MOST_LINES: usize = 128;

/// How messages are handed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    Smtp,
    /// Speaks of each recipient after the message.
    Lmtp,
}

/// Sends one user's messages.
#[derive(Clone)]
pub struct SmtpSender {
    endpoint: Arc<Endpoint>,
    dialect: Dialect,
    options: Arc<MailOptions>,
    account: Account,
}

/// A reply: its code, and the lines behind it.
struct Reply {
    code: u16,
    lines: Vec<String>,
}

impl Reply {
    /// Fails unless the code is this one.
    fn expect(self, code: u16, to: &str) -> Result<Self, Failure> {
        if self.code == code {
            return Ok(self);
        }
        let text = format!("{to} \u{2192} {} {}", self.code, self.lines.join(" / "));
        // A code that means success and is not the right one is no refusal.
        let kind = if self.code >= 400 { FailureKind::Status(self.code) } else { FailureKind::WrongAnswer };
        Err(Failure::new(kind, text))
    }

    /// A keyword of the reply to EHLO, with what follows it.
    fn keyword(&self, name: &str) -> Option<&str> {
        self.lines.iter().skip(1).find_map(|line| {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            word.eq_ignore_ascii_case(name).then_some(rest)
        })
    }
}

impl SmtpSender {
    pub(super) fn new(
        endpoint: Arc<Endpoint>,
        dialect: Dialect,
        options: Arc<MailOptions>,
        account: Account,
    ) -> Self {
        Self { endpoint, dialect, options, account }
    }

    /// What stands in the addresses behind the @.
    #[must_use]
    pub fn domain(&self) -> &str {
        &self.options.domain
    }

    /// The text of the server's greeting.
    pub(super) async fn greeting(&self) -> Result<String, Failure> {
        let greet = async {
            let mut wire = self.endpoint.connect().await?;
            let greeting = reply(&mut wire).await?.expect(220, "the greeting")?;
            Ok(greeting.lines.join(" "))
        };
        in_time(self.options.time_out, "the greeting", greet).await
    }

    /// Hands a message to the server, which takes over the duty to deliver it to all its recipients.
    ///
    /// # Errors
    /// No connection, no time left, or the server refuses the sender, a recipient or the message
    /// ([`FailureKind::Status`] with its code). Whether a message arrives whose last reply did not come is unknown.
    pub async fn send(&self, letter: &Letter) -> Result<(), Failure> {
        in_time(self.options.time_out, "SMTP", self.exchange(letter)).await
    }

    async fn exchange(&self, letter: &Letter) -> Result<(), Failure> {
        let mut wire = self.endpoint.connect().await?;
        reply(&mut wire).await?.expect(220, "the greeting")?;
        let mut offers = self.hello(&mut wire).await?;
        if self.endpoint.security == Security::StartTls {
            wire.write(b"STARTTLS\r\n").await?;
            reply(&mut wire).await?.expect(220, "STARTTLS")?;
            wire = self.endpoint.encrypt(wire).await?;
            offers = self.hello(&mut wire).await?;
        }
        let methods = offers.keyword("AUTH").unwrap_or_default();
        if methods.split(' ').any(|method| method.eq_ignore_ascii_case("PLAIN")) {
            self.log_in(&mut wire).await?;
        }
        self.envelope(&mut wire, letter, offers.keyword("PIPELINING").is_some()).await?;
        wire.write(&stuffed(&letter.text)).await?;
        let replies = match self.dialect {
            Dialect::Smtp => 1,
            Dialect::Lmtp => letter.recipients.len(),
        };
        for recipient in letter.recipients.iter().take(replies) {
            reply(&mut wire).await?.expect(250, &format!("the message to {recipient}"))?;
        }
        // The server need not be waited for any more.
        drop(wire.write(b"QUIT\r\n").await);
        Ok(())
    }

    async fn hello(&self, wire: &mut Wire) -> Result<Reply, Failure> {
        let word = match self.dialect {
            Dialect::Smtp => "EHLO",
            Dialect::Lmtp => "LHLO",
        };
        wire.write(format!("{word} lab.invalid\r\n").as_bytes()).await?;
        reply(wire).await?.expect(250, word)
    }

    async fn log_in(&self, wire: &mut Wire) -> Result<(), Failure> {
        let token = STANDARD.encode(format!("\0{}\0{}", self.account.login, self.account.password));
        wire.write(format!("AUTH PLAIN {token}\r\n").as_bytes()).await?;
        reply(wire).await?.expect(235, "AUTH").map(|_| ())
    }

    async fn envelope(&self, wire: &mut Wire, letter: &Letter, pipelining: bool) -> Result<(), Failure> {
        let mut commands = vec![(format!("MAIL FROM:<{}>", letter.from), 250)];
        commands.extend(letter.recipients.iter().map(|to| (format!("RCPT TO:<{to}>"), 250)));
        commands.push(("DATA".to_owned(), 354));
        if pipelining {
            let all: String = commands.iter().map(|(command, _)| format!("{command}\r\n")).collect();
            wire.write(all.as_bytes()).await?;
        }
        for (command, code) in commands {
            if !pipelining {
                wire.write(format!("{command}\r\n").as_bytes()).await?;
            }
            reply(wire).await?.expect(code, &command)?;
        }
        Ok(())
    }
}

/// Reads a reply of one line or more (RFC 5321, section 4.2.1).
async fn reply(wire: &mut Wire) -> Result<Reply, Failure> {
    let mut lines = Vec::new();
    let mut first = None;
    while lines.len() < MOST_LINES {
        let line = wire.line().await?;
        let wrong = || Failure::wrong(format!("no reply of SMTP: {}", shown(&line)));
        let text = String::from_utf8_lossy(&line);
        let code = text.get(..3).filter(|code| code.bytes().all(|digit| digit.is_ascii_digit()));
        let code: u16 = code
            .and_then(|code| code.parse().ok())
            .filter(|code| (200..600).contains(code))
            .ok_or_else(wrong)?;
        if *first.get_or_insert(code) != code {
            return Err(wrong());
        }
        lines.push(text.get(4..).unwrap_or_default().to_owned());
        match text.as_bytes().get(3) {
            None | Some(b' ') => return Ok(Reply { code, lines }),
            Some(b'-') => {}
            Some(_) => return Err(wrong()),
        }
    }
    Err(Failure::wrong(format!("a reply of more than {MOST_LINES} lines")))
}

/// The text with a point before each line that begins with one, and the line that ends it.
fn stuffed(text: &[u8]) -> Vec<u8> {
    let mut stuffed = Vec::with_capacity(text.len() + text.len() / 64 + 8);
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        if line.first() == Some(&b'.') {
            stuffed.push(b'.');
        }
        stuffed.extend_from_slice(line);
    }
    stuffed.extend_from_slice(b".\r\n");
    stuffed
}
