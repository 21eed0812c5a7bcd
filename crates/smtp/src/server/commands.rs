//! Commands: what each does, and when it is refused. A refused command changes nothing.

use scrinium_smtp_wire::{
    Body, Capabilities, Capability, CapabilityLimits, ClientName, Command, CommandError, ForwardPath,
    Greeting, Hold, MailParameters, Mechanism, Parameter, RecipientParameters, Reply, ReversePath,
};

use crate::received::protocol_word;
use crate::server::options::Service;
use crate::server::request::{Envelope, EnvelopeRecipient, RecipientQuestion, Request, SenderQuestion};
use crate::server::session::{Chunk, Pending, Refused, ServerSession, SessionState, reply};
use crate::time::{internet_date, read_internet_date};

/// What a browser says that a page has sent here to speak in its name.
const NOT_MAIL: [&[u8]; 7] = [b"GET ", b"POST ", b"PUT ", b"CONNECT ", b"OPTIONS ", b"HEAD ", b"DELETE "];

impl ServerSession {
    pub(super) fn refuse_command(&mut self, line: &[u8], error: CommandError) {
        if NOT_MAIL.iter().any(|word| line.starts_with(word)) {
            return self.close(&reply(421, (4, 7, 0), "This is a server of mail, and no web server"));
        }
        self.error(&error.reply());
    }

    pub(super) fn command(&mut self, command: Command, line_bytes: usize) {
        let brings_nothing = matches!(
            command,
            Command::Hello(..)
                | Command::Reset
                | Command::Noop(_)
                | Command::Verify(_)
                | Command::Expand(_)
                | Command::Help(_)
                | Command::TurnAround(_)
                | Command::Chunk(0, false)
        );
        if brings_nothing {
            self.counts.idle_commands = self.counts.idle_commands.saturating_add(1);
            if self.counts.idle_commands > self.limits().idle_commands {
                let text = "Too many commands without a message; the connection is closed";
                return self.close(&reply(421, (4, 7, 0), text));
            }
        }
        match command {
            Command::Hello(greeting, name) => self.hello(greeting, name),
            Command::Mail(sender, parameters) => self.mail(sender, parameters),
            Command::Recipient(path, parameters) => self.recipient(path, parameters, line_bytes),
            Command::Data => self.data(),
            Command::Chunk(bytes, is_last) => self.chunk(bytes, is_last),
            Command::Reset => {
                self.reset();
                self.say(&reply(250, (2, 0, 0), "Done"));
            }
            Command::Noop(_) => self.say(&reply(250, (2, 0, 0), "Done")),
            Command::Verify(_) => {
                // Nobody hears beforehand who is here (RFC 5321, section 7.3).
                self.say(&reply(
                    252,
                    (2, 1, 5),
                    "Send a message, and you hear whether there is such a recipient",
                ));
            }
            Command::Expand(_) => self.say(&reply(502, (5, 5, 1), "Lists are not shown here")),
            Command::Help(_) => self.help(),
            Command::StartTls => self.start_tls(),
            Command::Authenticate(mechanism, response) => self.authenticate(&mechanism, response.as_ref()),
            Command::TurnAround(_) => self.error(&reply(502, (5, 5, 1), "The command is not known here")),
            Command::Quit => {
                let text = format!("{} says goodbye", self.options.host);
                self.close(&reply(221, (2, 0, 0), &text));
            }
        }
    }

    fn help(&mut self) {
        let words = "Commands: EHLO MAIL RCPT DATA BDAT RSET NOOP VRFY STARTTLS AUTH QUIT. See RFC 5321";
        self.say(&reply(214, (2, 0, 0), words));
    }

    /// RFC 5321, section 4.1.4: as RSET, and it may come again.
    fn hello(&mut self, greeting: Greeting, name: ClientName) {
        let is_lmtp = self.options.service == Service::Lmtp;
        if is_lmtp != (greeting == Greeting::Lhlo) {
            let word = if is_lmtp { "LHLO" } else { "EHLO" };
            return self.error(&reply(500, (5, 5, 1), &format!("Greet with {word} here")));
        }
        self.reset();
        self.hello = Some((greeting, name));
        let greeting_text = format!("{} at your service", self.options.host);
        if greeting == Greeting::Helo {
            return self.say(&Reply::new(250, &greeting_text));
        }
        let capabilities = Capabilities { greeting: greeting_text, list: self.capabilities() };
        self.say(&capabilities.reply());
    }

    fn capabilities(&self) -> Vec<Capability> {
        let limits = self.limits();
        let mut list = vec![
            Capability::Pipelining,
            Capability::Size(Some(limits.message_bytes)),
            Capability::EightBitMime,
            Capability::SmtpUtf8,
            Capability::Chunking,
            Capability::Dsn,
            Capability::EnhancedStatusCodes,
        ];
        if self.encryption.is_none() && self.options.has_certificate {
            list.push(Capability::StartTls);
        }
        let mechanisms = self.mechanisms();
        if !mechanisms.is_empty() && self.person.is_none() {
            let names = mechanisms.iter().filter_map(|known| Mechanism::parse(known.name().as_bytes()).ok());
            list.push(Capability::Auth(names.collect()));
        }
        if self.encryption.is_some() {
            list.push(Capability::RequireTls);
        }
        if let Some(seconds) = self.future_release_s() {
            let last = internet_date(self.now_ms.saturating_add(seconds.saturating_mul(1000)));
            list.push(Capability::FutureRelease(seconds, Some(last)));
        }
        // RFC 9422.
        list.push(Capability::Limits(CapabilityLimits {
            messages: Some(limits.messages as u64),
            recipients: Some(limits.recipients as u64),
            recipient_domains: None,
        }));
        list
    }

    fn future_release_s(&self) -> Option<u64> {
        self.options.future_release_s.filter(|_| self.options.service == Service::Submission)
    }

    fn start_tls(&mut self) {
        if self.encryption.is_some() {
            return self.error(&reply(503, (5, 5, 1), "The connection is encrypted already"));
        }
        if !self.options.has_certificate {
            return self.error(&reply(502, (5, 5, 1), "The connection cannot be encrypted here"));
        }
        if !self.rest().is_empty() {
            // RFC 3207, section 4.2: nothing that was said in the open may be taken for what is said encrypted.
            let text = "Something was sent behind STARTTLS before the connection was encrypted; the connection is closed";
            return self.close(&reply(554, (5, 5, 0), text));
        }
        self.reset();
        self.say(&reply(220, (2, 0, 0), "Begin TLS now"));
        self.ask(Pending::StartTls, Request::StartTls);
    }

    /// Why no message is taken now, whatever it is.
    fn no_message_now(&self) -> Option<Reply> {
        if self.hello.is_none() {
            let word = if self.options.service == Service::Lmtp { "LHLO" } else { "EHLO" };
            return Some(reply(503, (5, 5, 1), &format!("Greet with {word} first")));
        }
        if self.options.requires_tls && !self.is_protected() {
            // RFC 3207, section 4.
            return Some(reply(530, (5, 7, 0), "Encrypt the connection with STARTTLS first"));
        }
        if self.options.service == Service::Submission && self.person.is_none() {
            return Some(reply(530, (5, 7, 0), "Log in first"));
        }
        self.transaction
            .is_some()
            .then(|| reply(503, (5, 5, 1), "A message has begun already; send RSET to drop it"))
    }

    fn mail(&mut self, sender: ReversePath, parameters: MailParameters) {
        if let Some(reply) = self.no_message_now() {
            return self.error(&reply);
        }
        if self.counts.messages >= self.limits().messages {
            let text = "That were enough messages for one connection; continue with another one";
            return self.close(&reply(421, (4, 5, 3), text));
        }
        let release_ms = match self.check_mail(&sender, &parameters) {
            Ok(release_ms) => release_ms,
            Err(reply) => return self.error(&reply),
        };
        let question = SenderQuestion {
            person: self.person.clone(),
            sender: sender.clone(),
            parameters: parameters.clone(),
        };
        self.ask(
            Pending::Sender(sender, Box::new(parameters), release_ms),
            Request::Sender(Box::new(question)),
        );
    }

    /// When the message may go out, or why its parameters are refused.
    fn check_mail(&self, sender: &ReversePath, parameters: &MailParameters) -> Result<Option<u64>, Reply> {
        check_known(&parameters.other)?;
        if sender.mailbox().is_some_and(|mailbox| !mailbox.is_ascii()) && !parameters.utf8 {
            return Err(needs_utf8());
        }
        let limit = self.limits().message_bytes;
        if parameters.size_bytes.is_some_and(|bytes| bytes > limit) {
            let text = format!("A message has at most {limit} bytes here; send a shorter one");
            return Err(reply(552, (5, 3, 4), &text));
        }
        if parameters.body == Some(Body::BinaryMime) {
            return Err(reply(504, (5, 5, 4), "BINARYMIME is not offered here; send the message encoded"));
        }
        if parameters.priority.is_some() {
            return Err(unknown_parameter("MT-PRIORITY"));
        }
        if parameters.require_tls && self.encryption.is_none() {
            // RFC 8689, section 4.1: offered only on an encrypted connection.
            return Err(unknown_parameter("REQUIRETLS"));
        }
        parameters.hold.as_ref().map(|hold| self.release_ms(hold)).transpose()
    }

    /// RFC 4865, section 5.
    fn release_ms(&self, hold: &Hold) -> Result<u64, Reply> {
        let Some(limit_s) = self.future_release_s() else { return Err(unknown_parameter("HOLDFOR")) };
        let last_ms = self.now_ms.saturating_add(limit_s.saturating_mul(1000));
        let release_ms = match hold {
            Hold::ForSeconds(seconds) => self.now_ms.saturating_add(seconds.saturating_mul(1000)),
            Hold::Until(time) => read_internet_date(time).ok_or_else(|| {
                reply(501, (5, 5, 4), "HOLDUNTIL takes a time such as 2026-12-24T18:00:00Z")
            })?,
        };
        if release_ms > last_ms {
            let text = format!("A message waits here until {} at most", internet_date(last_ms));
            return Err(reply(501, (5, 5, 4), &text));
        }
        Ok(release_ms)
    }

    fn recipient(&mut self, path: ForwardPath, parameters: RecipientParameters, line_bytes: usize) {
        let limits = *self.limits();
        let Some(transaction) = &self.transaction else {
            return self.error(&reply(503, (5, 5, 1), "Say with MAIL whom the message is from first"));
        };
        if transaction.incoming.is_some() {
            return self.error(&reply(
                503,
                (5, 5, 1),
                "The text has begun; there can be no further recipients",
            ));
        }
        if let Err(reply) = check_known(&parameters.other) {
            return self.error(&reply);
        }
        let is_ascii = |path: &ForwardPath| match path {
            ForwardPath::Postmaster => true,
            ForwardPath::Path(path) => path.mailbox.is_ascii(),
        };
        if !is_ascii(&path) && !transaction.parameters.utf8 {
            return self.error(&needs_utf8());
        }
        let envelope_bytes = transaction.envelope_bytes.saturating_add(line_bytes);
        if transaction.recipients.len() >= limits.recipients || envelope_bytes > limits.envelope_bytes {
            // RFC 5321, section 4.5.3.1.10: the client sends the message once more to those that remain. It is not an error of its.
            return self.say(&reply(
                452,
                (4, 5, 3),
                "Enough recipients for one message; send it once more to the others",
            ));
        }
        let recipient = EnvelopeRecipient { path, parameters };
        let question = RecipientQuestion {
            person: self.person.clone(),
            sender: transaction.sender.clone(),
            recipient: recipient.clone(),
            taken: transaction.recipients.len(),
        };
        self.ask(
            Pending::Recipient(Box::new(recipient), envelope_bytes),
            Request::Recipient(Box::new(question)),
        );
    }

    /// Why a text cannot begin now.
    fn no_text_now(&self) -> Option<Reply> {
        match &self.transaction {
            None => Some(reply(503, (5, 5, 1), "Say with MAIL whom the message is from first")),
            Some(transaction) if transaction.recipients.is_empty() => {
                // RFC 2033, section 4.2: LMTP says 503.
                let code = if self.options.service == Service::Lmtp { 503 } else { 554 };
                Some(reply(code, (5, 5, 1), "There is no recipient that was taken"))
            }
            Some(_) => None,
        }
    }

    fn data(&mut self) {
        let begun = self.incoming().is_some();
        let refused = match self.no_text_now() {
            None if begun => Some(reply(503, (5, 5, 1), "The text has begun with BDAT; continue with that")),
            refused => refused,
        };
        let Some(refused) = refused else { return self.begin(None) };
        if self.rest().is_empty() {
            return self.error(&refused);
        }
        // What stands behind DATA is not sent before its reply (RFC 2920, section 3.1). It may be a text, which must not be
        // read as commands.
        self.say(&refused);
        let text = "Something was sent behind DATA before its reply; the connection is closed";
        self.close(&reply(421, (4, 5, 0), text));
    }

    /// RFC 3030, section 2. A chunk that is refused is read as well.
    fn chunk(&mut self, bytes: u64, is_last: bool) {
        let reader = scrinium_smtp_wire::ChunkReader::new(bytes);
        let mut refused = self.no_text_now().map(|reply| Refused { reply, times: 1 });
        let limit = self.limits().message_bytes;
        let is_too_long = self.incoming().map_or(bytes > limit, |incoming| incoming.would_be_too_long(bytes));
        if refused.is_none() && is_too_long {
            let text = format!("A message has at most {limit} bytes here; send a shorter one");
            let recipients = self.transaction.as_ref().map_or(1, |transaction| transaction.recipients.len());
            let times = self.answers_of_text(recipients, is_last);
            refused = Some(Refused { reply: reply(552, (5, 3, 4), &text), times });
            self.reset();
        }
        // Nobody sends by mistake what is too long to be worth reading over.
        if let Some(refused) = refused.as_ref().filter(|_| bytes > limit.saturating_mul(2)) {
            self.say(&refused.reply);
            let text = "The chunk that was refused is too long to be read over; the connection is closed";
            return self.close(&reply(421, (4, 5, 0), text));
        }
        let chunk = Chunk { reader, is_last, refused };
        if chunk.refused.is_none() && self.incoming().is_none() {
            return self.begin(Some(chunk));
        }
        self.state = SessionState::Chunk(chunk);
    }

    fn begin(&mut self, chunk: Option<Chunk>) {
        let (Some(transaction), Some(hello)) = (&self.transaction, &self.hello) else {
            return self.error(&reply(503, (5, 5, 1), "There is no message"));
        };
        let envelope = Envelope {
            sender: transaction.sender.clone(),
            parameters: transaction.parameters.clone(),
            recipients: transaction.recipients.clone(),
            release_ms: transaction.release_ms,
            person: self.person.clone(),
            peer: self.peer.clone(),
            hello: hello.clone(),
            protocol: protocol_word(
                hello.0,
                transaction.parameters.utf8,
                self.encryption.is_some(),
                self.person.is_some(),
            ),
        };
        self.ask(Pending::Begin(chunk), Request::Begin(Box::new(envelope)));
    }
}

/// RFC 5321, section 4.1.1.11.
fn check_known(other: &[Parameter]) -> Result<(), Reply> {
    other.first().map_or(Ok(()), |parameter| Err(unknown_parameter(parameter.keyword())))
}

fn unknown_parameter(keyword: &str) -> Reply {
    let keyword: String = keyword.chars().take(64).collect();
    reply(555, (5, 5, 4), &format!("The parameter {keyword} is not offered here"))
}

/// RFC 6531, section 3.5.
fn needs_utf8() -> Reply {
    reply(553, (5, 6, 7), "An address beyond ASCII needs the parameter SMTPUTF8 of MAIL")
}
