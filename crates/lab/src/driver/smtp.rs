//! Sends messages by SMTP (RFC 5321) or LMTP (RFC 2033): a connection for each message, as mail programs do, or one for many,
//! as servers do.
//!
//! With PIPELINING (RFC 2920) the envelope goes out at once. A message of which one recipient is refused is not sent
//! at all, so that nobody gets what the run counts as failed.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use scrinium_smtp_wire::{
    BareEnds, Capabilities, Capability, ClientName, Command, Domain, DotWriter, ForwardPath, Greeting,
    InitialResponse, MailParameters, Mailbox, Mechanism, RecipientParameters, Reply, ReplyError, ReplyLimits,
    ReplyReader, ReversePath,
};

use super::endpoint::{Endpoint, Security};
use super::failure::{Failure, FailureKind};
use super::letter::Letter;
use super::mail::{Account, MailOptions, in_time};
use super::tls::Tls;
use super::wire::{Wire, shown};

/// What the laboratory calls itself.
const CLIENT_NAME: &str = "lab.invalid";

/// How messages are handed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
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

/// A connection on which one message after the other is sent.
pub(crate) struct SmtpConnection {
    wire: Wire,
    pipelining: bool,
}

/// Gives the reply if its code is this one.
fn expect(reply: Reply, code: u16, to: &str) -> Result<Reply, Failure> {
    if reply.code() == code {
        return Ok(reply);
    }
    let text = format!("{to} \u{2192} {} {}", reply.code(), reply.lines().join(" / "));
    // A code that means success and is not the right one is no refusal.
    let kind = if reply.code() >= 400 { FailureKind::Status(reply.code()) } else { FailureKind::WrongAnswer };
    Err(Failure::new(kind, text))
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

    /// Somebody who hands messages to that port of this machine. With `authority`, a file of certificates, the connection is
    /// encrypted after it begins; `login` is a name and its password, for a server that asks for them.
    ///
    /// # Errors
    /// What is wrong with the certificates.
    pub(crate) fn to_port(
        port: u16,
        dialect: Dialect,
        authority: Option<&PathBuf>,
        (login, password): (&str, &str),
        time_out: Duration,
    ) -> Result<Self, String> {
        let scheme = match dialect {
            Dialect::Smtp => "smtp",
            Dialect::Lmtp => "lmtp",
        };
        let security = if authority.is_some() { "+starttls" } else { "" };
        let target = format!("{scheme}{security}://127.0.0.1:{port}");
        let endpoint = Endpoint::parse(&target, scheme, (port, port), || Ok(Arc::new(Tls::new(authority)?)))?;
        let options = MailOptions { time_out, domain: String::new(), login_name: String::new() };
        let account = Account { login: login.to_owned(), password: password.to_owned() };
        Ok(Self::new(Arc::new(endpoint), dialect, Arc::new(options), account))
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
            let greeting = expect(reply(&mut wire).await?, 220, "the greeting")?;
            Ok(greeting.lines().join(" "))
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
        let mut connection = self.greet().await?;
        self.transaction(&mut connection, letter).await?;
        // The server need not be waited for any more.
        drop(connection.wire.write(b"QUIT\r\n").await);
        Ok(())
    }

    /// A connection for many messages.
    ///
    /// # Errors
    /// No connection, no time left, or the server refuses the client.
    pub(crate) async fn open(&self) -> Result<SmtpConnection, Failure> {
        in_time(self.options.time_out, "SMTP", self.greet()).await
    }

    /// As [`Self::send`], on a connection that is open. After an error it is of no use any more.
    ///
    /// # Errors
    /// As there.
    pub(crate) async fn send_on(
        &self,
        connection: &mut SmtpConnection,
        letter: &Letter,
    ) -> Result<(), Failure> {
        in_time(self.options.time_out, "SMTP", self.transaction(connection, letter)).await
    }

    async fn greet(&self) -> Result<SmtpConnection, Failure> {
        let mut wire = self.endpoint.connect().await?;
        expect(reply(&mut wire).await?, 220, "the greeting")?;
        let mut offers = self.hello(&mut wire).await?;
        if self.endpoint.security == Security::StartTls {
            tell(&mut wire, &Command::StartTls, 220).await?;
            wire = self.endpoint.encrypt(wire).await?;
            offers = self.hello(&mut wire).await?;
        }
        if offers.can_authenticate("PLAIN") {
            self.log_in(&mut wire).await?;
        }
        Ok(SmtpConnection { wire, pipelining: offers.has(&Capability::Pipelining) })
    }

    async fn transaction(&self, connection: &mut SmtpConnection, letter: &Letter) -> Result<(), Failure> {
        let SmtpConnection { wire, pipelining } = connection;
        self.envelope(wire, letter, *pipelining).await?;
        wire.write(&stuffed(&letter.text)?).await?;
        let replies = match self.dialect {
            Dialect::Smtp => 1,
            Dialect::Lmtp => letter.recipients.len(),
        };
        for recipient in letter.recipients.iter().take(replies) {
            expect(reply(wire).await?, 250, &format!("the message to {recipient}"))?;
        }
        Ok(())
    }

    async fn hello(&self, wire: &mut Wire) -> Result<Capabilities, Failure> {
        let (greeting, word) = match self.dialect {
            Dialect::Smtp => (Greeting::Ehlo, "EHLO"),
            Dialect::Lmtp => (Greeting::Lhlo, "LHLO"),
        };
        let name = ClientName::Domain(Domain::Name(CLIENT_NAME.to_owned()));
        send(wire, &Command::Hello(greeting, name)).await?;
        expect(reply(wire).await?, 250, word).map(|reply| Capabilities::of(&reply))
    }

    async fn log_in(&self, wire: &mut Wire) -> Result<(), Failure> {
        let response = format!("\0{}\0{}", self.account.login, self.account.password).into_bytes();
        let plain = Mechanism::parse(b"PLAIN").map_err(|error| Failure::wrong(error.to_string()))?;
        send(wire, &Command::Authenticate(plain, Some(InitialResponse(response)))).await?;
        expect(reply(wire).await?, 235, "AUTH").map(|_| ())
    }

    async fn envelope(&self, wire: &mut Wire, letter: &Letter, pipelining: bool) -> Result<(), Failure> {
        let from = ReversePath::Path(mailbox(&letter.from)?.into());
        let mut commands = vec![(Command::Mail(from, MailParameters::default()), 250)];
        for recipient in &letter.recipients {
            let to = ForwardPath::Path(mailbox(recipient)?.into());
            commands.push((Command::Recipient(to, RecipientParameters::default()), 250));
        }
        commands.push((Command::Data, 354));
        if pipelining {
            let mut all = Vec::new();
            commands.iter().for_each(|(command, _)| command.write(&mut all));
            wire.write(&all).await?;
        }
        for (command, code) in commands {
            if !pipelining {
                send(wire, &command).await?;
            }
            expect(reply(wire).await?, code, &command.to_string())?;
        }
        Ok(())
    }
}

fn mailbox(address: &str) -> Result<Mailbox, Failure> {
    Mailbox::parse(address.as_bytes()).map_err(|error| Failure::wrong(format!("{address}: {error}")))
}

async fn send(wire: &mut Wire, command: &Command) -> Result<(), Failure> {
    let mut line = Vec::new();
    command.write(&mut line);
    wire.write(&line).await
}

async fn tell(wire: &mut Wire, command: &Command, code: u16) -> Result<Reply, Failure> {
    send(wire, command).await?;
    expect(reply(wire).await?, code, &command.to_string())
}

/// Reads a reply of one line or more.
async fn reply(wire: &mut Wire) -> Result<Reply, Failure> {
    let mut reader = ReplyReader::new(ReplyLimits::default());
    loop {
        let line = wire.line().await?;
        match reader.line(&line) {
            Ok(Some(reply)) => return Ok(reply),
            Ok(None) => {}
            Err(error @ ReplyError::Malformed) => {
                return Err(Failure::wrong(format!("{error}: {}", shown(&line))));
            }
            Err(error) => return Err(Failure::wrong(error.to_string())),
        }
    }
}

/// The text as it goes on the way, with the line that ends it.
fn stuffed(text: &[u8]) -> Result<Vec<u8>, Failure> {
    let mut stuffed = Vec::with_capacity(text.len() + text.len() / 64 + 8);
    let mut writer = DotWriter::new(BareEnds::Refuse);
    let written = writer.write(text, &mut stuffed).and_then(|()| writer.finish(&mut stuffed));
    written.map_err(|fault| Failure::wrong(format!("the message: {fault}")))?;
    Ok(stuffed)
}
