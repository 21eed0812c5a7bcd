//! Surroundings of a server's session: a small world of people, and the loop of a port.

use std::sync::{Arc, LazyLock};

use scrinium_credentials::sasl::{Claim, ClaimedProof};
use scrinium_credentials::{Gate, GateOptions, Protocol, StoredCredentials};
use scrinium_smtp::{
    Answer, Delivery, Encryption, Envelope, EnvelopeRecipient, LoginVerdict, Peer, RecipientVerdict, Refusal,
    Request, SenderField, ServerOptions, ServerSession, Service, TextSummary,
};
use scrinium_smtp_wire::{ForwardPath, Mailbox};

/// 26 November 2026, 09:20:51
pub(crate) const NOW_MS: u64 = 1_795_684_851_000;

/// A message that is safe.
#[derive(Debug, PartialEq)]
pub(crate) struct Stored {
    pub(crate) envelope: Envelope,
    pub(crate) text: String,
    pub(crate) summary: TextSummary,
}

impl Stored {
    /// Without what the server puts before it.
    pub(crate) fn own_text(&self) -> &str {
        let end = self.text.find(";\r\n\t").expect("a Received field");
        let rest = &self.text[end + 4..];
        &rest[rest.find("\r\n").expect("a date") + 2..]
    }

    pub(crate) fn recipients(&self) -> Vec<String> {
        self.envelope.recipients.iter().map(|recipient| recipient.path.to_string()).collect()
    }
}

#[derive(Default)]
pub(crate) struct World {
    pub(crate) stored: Vec<Stored>,
    pub(crate) open: Option<(Envelope, Vec<u8>)>,
    pub(crate) asked: Vec<String>,
    pub(crate) claims: Vec<Claim>,
    /// Answers that are given instead: a word of the request, and the answer.
    pub(crate) instead: Vec<(&'static str, Refusal)>,
    /// Keys of Ada's password, made once.
    pub(crate) keys: Option<Arc<(Gate, StoredCredentials)>>,
}

fn word(request: &Request) -> &'static str {
    match request {
        Request::Greet(_) => "greet",
        Request::StartTls => "tls",
        Request::Account(_) => "account",
        Request::LogIn(_) => "login",
        Request::Sender(_) => "sender",
        Request::Recipient(_) => "recipient",
        Request::Begin(_) => "begin",
        Request::Head(_) => "head",
        Request::Text(_) => "text",
        Request::Finish(_) => "finish",
        Request::Abandon => "abandon",
    }
}

fn mailbox(text: &str) -> Mailbox {
    Mailbox::parse(text.as_bytes()).expect("an address")
}

fn verdict(recipient: &EnvelopeRecipient) -> RecipientVerdict {
    let local = match &recipient.path {
        ForwardPath::Postmaster => return RecipientVerdict::Accepted,
        ForwardPath::Path(path) => path.mailbox.local(),
    };
    match local {
        "full" => RecipientVerdict::Full,
        "small" => RecipientVerdict::TooLargeForMailbox,
        "far" => RecipientVerdict::NeedsLogIn,
        "forward" => RecipientVerdict::Forwarded(mailbox("ada@there.test")),
        "moved" => RecipientVerdict::Moved(mailbox("ada@there.test")),
        "later" => RecipientVerdict::Refused(Refusal::new(451, 7, 1, "Later")),
        local if local.starts_with("nobody") => RecipientVerdict::Unknown,
        _ => RecipientVerdict::Accepted,
    }
}

impl World {
    pub(crate) fn answer(&mut self, request: Request) -> Answer {
        let asked = word(&request);
        self.asked.push(asked.to_owned());
        if let Some(at) = self.instead.iter().position(|(word, _)| *word == asked) {
            if asked == "finish" {
                self.open = None;
            }
            return Answer::Refused(self.instead.remove(at).1);
        }
        match request {
            Request::Greet(_) | Request::Sender(_) => Answer::Accepted,
            Request::StartTls => Answer::Encrypted(encryption()),
            Request::Account(name) => self.account(&name),
            Request::LogIn(claim) => self.login(claim),
            Request::Recipient(question) => Answer::Recipient(verdict(&question.recipient)),
            Request::Begin(envelope) => {
                assert!(self.open.is_none(), "a message began while another one was open");
                self.open = Some((*envelope, Vec::new()));
                Answer::Begun(format!("m{}", self.stored.len()))
            }
            Request::Head(_) => Answer::Head(SenderField::Keep),
            Request::Text(piece) => {
                self.open.as_mut().expect("an open message").1.extend_from_slice(&piece);
                Answer::Accepted
            }
            Request::Finish(summary) => self.finish(*summary),
            Request::Abandon => {
                self.open = None;
                Answer::Accepted
            }
        }
    }

    fn account(&self, name: &str) -> Answer {
        let (gate, credentials) = &**self.keys.as_ref().expect("keys");
        let ada = scrinium_credentials::Candidate {
            id: "person:ada",
            names: &["ada"],
            credentials,
            standing: scrinium_credentials::Standing::default(),
        };
        let person = (name == "ada").then_some(&ada);
        Answer::Account(gate.scram_account(name, person, Protocol::Submission, NOW_MS))
    }

    fn login(&mut self, claim: Claim) -> Answer {
        let is_right = match &claim.proof {
            ClaimedProof::Password(password) => password == "secret",
            ClaimedProof::Token(token) => token == "token",
            ClaimedProof::Scram(proof) => !format!("{proof:?}").contains("key: None"),
        } && claim.name.as_deref() == Some("ada");
        self.claims.push(claim);
        Answer::Login(if is_right {
            LoginVerdict::Admitted("person:ada".to_owned())
        } else {
            LoginVerdict::Wrong
        })
    }

    fn finish(&mut self, summary: TextSummary) -> Answer {
        let (envelope, text) = self.open.take().expect("an open message");
        let deliveries = envelope.recipients.iter().map(|recipient| match &recipient.path {
            ForwardPath::Path(path) if path.mailbox.local() == "quota" => {
                Delivery::Refused(Refusal::new(452, 2, 2, "Full"))
            }
            _ => Delivery::Accepted,
        });
        let deliveries: Vec<Delivery> = deliveries.collect();
        let is_lmtp = envelope.protocol.contains("LMTP");
        let text = String::from_utf8(text).expect("text");
        self.stored.push(Stored { envelope, text, summary });
        if is_lmtp { Answer::FinishedEach(deliveries) } else { Answer::Finished(Delivery::Accepted) }
    }
}

pub(crate) fn encryption() -> Encryption {
    let mut encryption =
        Encryption { cipher: Some("TLS_AES_128_GCM_SHA256".to_owned()), ..Encryption::default() };
    encryption.bindings.exporter = Some([7; 32]);
    encryption
}

pub(crate) fn options(service: Service) -> ServerOptions {
    let mut options = ServerOptions::new(service, "mx.test");
    options.has_certificate = true;
    options.has_tokens = true;
    options
}

/// A session and its world.
pub(crate) struct Port {
    pub(crate) session: ServerSession,
    pub(crate) world: World,
    /// All that was sent.
    pub(crate) sent: String,
    /// Pieces in which it was sent.
    pub(crate) writes: usize,
    pub(crate) held_max: usize,
}

impl Port {
    pub(crate) fn new(options: ServerOptions) -> Self {
        Self::with(options, None)
    }

    /// Nobody else can listen, although nothing is encrypted.
    pub(crate) fn private(options: ServerOptions) -> Self {
        Self::of(options, None, true)
    }

    pub(crate) fn with(options: ServerOptions, encryption: Option<Encryption>) -> Self {
        Self::of(options, encryption, false)
    }

    fn of(options: ServerOptions, encryption: Option<Encryption>, is_private: bool) -> Self {
        let peer = Peer {
            address: Some("192.0.2.7".parse().expect("an address")),
            name: Some("out.test".to_owned()),
            is_private,
        };
        let session = ServerSession::new(Arc::new(options), peer, encryption, NOW_MS);
        let mut port = Self { session, world: World::default(), sent: String::new(), writes: 0, held_max: 0 };
        port.turn(NOW_MS);
        port
    }

    /// The loop until there is nothing more to do.
    pub(crate) fn turn(&mut self, now_ms: u64) {
        loop {
            let request = self.session.next(now_ms);
            self.held_max = self.held_max.max(self.session.held_bytes());
            let flushes = self.session.wants_flush();
            if flushes {
                self.writes += 1;
                let output = self.session.take_output();
                self.sent.push_str(&String::from_utf8(output).expect("replies are text"));
            }
            match request {
                Some(request) => {
                    let answer = self.world.answer(request);
                    self.session.answer(answer, now_ms);
                }
                None if flushes => {}
                None => return,
            }
        }
    }

    /// Gives input in pieces of this size; what was sent since.
    pub(crate) fn give(&mut self, input: &[u8], piece: usize) -> String {
        let before = self.sent.len();
        for piece in input.chunks(piece.max(1)) {
            let mut piece = piece;
            while !piece.is_empty() {
                let taken = self.session.receive(piece, NOW_MS);
                piece = &piece[taken..];
                self.turn(NOW_MS);
                assert!(taken > 0, "a session that has nothing to do takes input");
            }
        }
        self.sent[before..].to_owned()
    }

    /// Gives all at once; the codes of what was answered.
    pub(crate) fn codes(&mut self, input: &str) -> Vec<u16> {
        codes(&self.give(input.as_bytes(), usize::MAX))
    }
}

/// The codes of last lines.
pub(crate) fn codes(text: &str) -> Vec<u16> {
    let last = |line: &&str| line.as_bytes().get(3) == Some(&b' ');
    text.split_terminator("\r\n").filter(last).map(|line| line[..3].parse().expect("a code")).collect()
}

/// Gate and credentials of Ada, whose password is `secret`. Making them takes a while.
pub(crate) fn ada() -> Arc<(Gate, StoredCredentials)> {
    static ADA: LazyLock<Arc<(Gate, StoredCredentials)>> = LazyLock::new(|| {
        let gate =
            Gate::new(b"the secret of this test", GateOptions { scram_iterations: Some(4096) }).unwrap();
        let mut credentials = StoredCredentials::default();
        credentials.set_password("secret", gate.scram_iterations(), NOW_MS).unwrap();
        Arc::new((gate, credentials))
    });
    ADA.clone()
}
