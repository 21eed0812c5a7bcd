//! One conversation with a filter about one message.

use std::io::ErrorKind;

use scrinium_mail_filters::milter::{
    BODY_BYTES_MAX, Change, Client, MilterLimits, MilterSession, Told, Verdict,
};
use scrinium_sender_authentication::Head;
use scrinium_smtp::Envelope;
use scrinium_worker::WorkerPool;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

use super::{FilterAddress, FilterFault, FilteredMessage};
use crate::desk::address_of;

/// Read of a filter's answer at a time.
const READ_BYTES: usize = 4 << 10;

/// What a filter does not answer goes out together, up to this much.
const UNSENT_BYTES_MAX: usize = 64 << 10;

/// What a filter may make this server hold for one message.
const LIMITS: MilterLimits = MilterLimits { packet_bytes: 1 << 20, changes: 1_000, changed_bytes: 16 << 20 };

pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// What a filter wants.
pub(super) enum Conclusion {
    /// The message goes on, changed like this.
    Changes(Vec<Change>),
    /// It is taken and thrown away.
    Discarded,
    /// It is not taken.
    Refused(Verdict),
}

/// Whom to ask, and in whose name.
pub(super) struct Talk<'t> {
    pub(super) address: &'t FilterAddress,
    pub(super) server: &'t str,
    /// The person who hands the message in.
    pub(super) submitter: Option<&'t str>,
    pub(super) workers: &'t WorkerPool,
}

impl Talk<'_> {
    /// Tells a filter all of a message; the caller bounds the time.
    pub(super) async fn about(
        &self,
        message: &FilteredMessage,
        envelope: &Envelope,
    ) -> Result<Conclusion, FilterFault> {
        let mut line = Line::open(self.address).await?;
        let told = self.tell(&mut line, message, envelope).await;
        if told.is_ok() {
            line.close().await;
        }
        told
    }

    async fn tell(
        &self,
        line: &mut Line,
        message: &FilteredMessage,
        envelope: &Envelope,
    ) -> Result<Conclusion, FilterFault> {
        if let Some(concluded) = self.tell_envelope(line, envelope).await? {
            return Ok(concluded);
        }
        let head = Head::parse(&message.head);
        for field in head.fields.iter().filter(|field| !field.name.is_empty()) {
            if let Some(concluded) = line.say(&Told::Field(field.name, field.value), &[]).await? {
                return Ok(concluded);
            }
        }
        if let Some(concluded) = line.say(&Told::EndOfFields, &[]).await? {
            return Ok(concluded);
        }
        if let Some(concluded) = self.tell_body(line, message).await? {
            return Ok(concluded);
        }
        match line.say(&Told::End, &[]).await? {
            Some(Conclusion::Changes(_)) | None => Ok(Conclusion::Changes(line.session.take_changes())),
            Some(concluded) => Ok(concluded),
        }
    }

    async fn tell_envelope(
        &self,
        line: &mut Line,
        envelope: &Envelope,
    ) -> Result<Option<Conclusion>, FilterFault> {
        let address = envelope.peer.address.map(|address| address.to_canonical());
        let in_brackets = address.map_or_else(|| "localhost".to_owned(), |address| format!("[{address}]"));
        let name = envelope.peer.name.as_deref().unwrap_or(&in_brackets);
        let client = Client { name, address, port: 0 };
        let (hello, id) = (envelope.hello.1.to_string(), format!("{:016x}", rand::random::<u64>()));
        let sender = envelope.sender.mailbox().map(ToString::to_string).unwrap_or_default();
        let of_server = [("j", self.server), ("{daemon_name}", "scrinium"), ("v", "Scrinium")];
        let mut of_message = vec![("i", id.as_str()), ("{mail_addr}", sender.as_str())];
        if let Some(submitter) = self.submitter {
            of_message.push(("{auth_authen}", submitter));
        }
        let in_angles = format!("<{sender}>");
        let steps: [(Told<'_>, &[(&str, &str)]); 3] = [
            (Told::Connect(client), &of_server),
            (Told::Helo(hello.as_bytes()), &[]),
            (Told::Sender(in_angles.as_bytes(), &[]), &of_message),
        ];
        for (told, macros) in steps {
            if let Some(concluded) = line.say(&told, macros).await? {
                return Ok(Some(concluded));
            }
        }
        for recipient in &envelope.recipients {
            let recipient = address_of(&recipient.path);
            let in_angles = format!("<{recipient}>");
            let macros = [("{rcpt_addr}", recipient.as_str())];
            if let Some(concluded) = line.say(&Told::Recipient(in_angles.as_bytes(), &[]), &macros).await? {
                return Ok(Some(concluded));
            }
        }
        line.say(&Told::Data, &[("i", &id)]).await
    }

    async fn tell_body(
        &self,
        line: &mut Line,
        message: &FilteredMessage,
    ) -> Result<Option<Conclusion>, FilterFault> {
        if let Some(body) = &message.body {
            for piece in body.chunks(BODY_BYTES_MAX) {
                if let Some(concluded) = line.say(&Told::Body(piece), &[]).await? {
                    return Ok(Some(concluded));
                }
            }
            return Ok(None);
        }
        let mut position = message.head_end;
        loop {
            let source = message.source.clone();
            // What is in a file is read where waiting for the disk is allowed.
            let read = self.workers.run(move || source.piece(position, BODY_BYTES_MAX)).await;
            let piece =
                read.map_err(|error| FilterFault::Message(std::io::Error::other(error.to_string())))?;
            let piece = piece.map_err(FilterFault::Message)?;
            if piece.is_empty() {
                return Ok(None);
            }
            // The empty line between head and body belongs to neither.
            let is_first = position == message.head_end;
            let body = if is_first { piece.strip_prefix(b"\r\n").unwrap_or(&piece) } else { &piece };
            if !body.is_empty()
                && let Some(concluded) = line.say(&Told::Body(body), &[]).await?
            {
                return Ok(Some(concluded));
            }
            position += piece.len() as u64;
        }
    }
}

/// Connects to a filter.
pub(super) async fn connect(address: &FilterAddress) -> Result<Box<dyn Stream>, FilterFault> {
    match address {
        FilterAddress::Network(address) => {
            let stream = TcpStream::connect(address).await.map_err(FilterFault::Unreachable)?;
            drop(stream.set_nodelay(true));
            Ok(Box::new(stream))
        }
        FilterAddress::Socket(path) => {
            Ok(Box::new(UnixStream::connect(path).await.map_err(FilterFault::Unreachable)?))
        }
    }
}

/// The connection to a filter.
struct Line {
    stream: Box<dyn Stream>,
    session: MilterSession,
    /// What was said and is not on its way yet.
    unsent: Vec<u8>,
}

impl Line {
    /// Connects, and agrees on what both sides can.
    async fn open(address: &FilterAddress) -> Result<Self, FilterFault> {
        let stream = connect(address).await?;
        let (session, opening) = MilterSession::new(LIMITS);
        let mut line = Self { stream, session, unsent: opening };
        line.verdict().await?;
        Ok(line)
    }

    /// Says one thing. Gives what the filter has concluded, once it has.
    async fn say(
        &mut self,
        told: &Told<'_>,
        macros: &[(&str, &str)],
    ) -> Result<Option<Conclusion>, FilterFault> {
        let sending = self.session.tell(told, macros)?;
        self.unsent.extend(sending.bytes);
        if self.unsent.len() >= UNSENT_BYTES_MAX {
            self.send().await?;
        }
        let verdict = if sending.is_answered { self.verdict().await? } else { Verdict::Continue };
        Ok(match verdict {
            Verdict::Continue => None,
            Verdict::Accept => Some(Conclusion::Changes(Vec::new())),
            Verdict::Discard => Some(Conclusion::Discarded),
            refused => Some(Conclusion::Refused(refused)),
        })
    }

    async fn verdict(&mut self) -> Result<Verdict, FilterFault> {
        self.send().await?;
        loop {
            let mut piece = [0; READ_BYTES];
            let count = self.stream.read(&mut piece).await.map_err(FilterFault::Broken)?;
            if count == 0 {
                return Err(FilterFault::HungUp);
            }
            if let Some(verdict) = self.session.take(piece.get(..count).unwrap_or_default())? {
                return Ok(verdict);
            }
        }
    }

    async fn send(&mut self) -> Result<(), FilterFault> {
        self.stream.write_all(&self.unsent).await.map_err(|error| match error.kind() {
            ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => FilterFault::HungUp,
            _ => FilterFault::Broken(error),
        })?;
        self.unsent.clear();
        Ok(())
    }

    async fn close(mut self) {
        let goodbye = self.session.quit();
        // It has said what it had to say.
        drop(self.stream.write_all(&goodbye).await);
    }
}
