//! One connection: a session with the guest who answers what it asks.

use std::sync::Arc;

use scrinium_accounting::Busy;
use scrinium_credentials::Protection;
use scrinium_credentials::sasl::ChannelBindings;
use scrinium_port::{Conversation, Link, RequestKind, Secrecy};
use scrinium_smtp::{Answer, Encryption, Peer, Request, ServerSession};

use crate::guest::Guest;
use crate::protocol::SharedProtocol;

/// A connection under way.
pub(crate) struct Connection {
    link: Arc<Link>,
    session: ServerSession,
    guest: Box<dyn Guest>,
    /// While a message comes, the connection is not idle.
    message: Option<Busy>,
}

impl Connection {
    pub(crate) fn new(link: Arc<Link>, secrecy: Secrecy, shared: &SharedProtocol) -> Self {
        let peer = Peer { address: Some(link.peer.address), name: None, is_private: secrecy.is_private };
        let encryption = secrecy.is_encrypted.then(|| encryption_of(secrecy));
        let now_ms = shared.settings.clock.now_ms();
        let session = ServerSession::new(Arc::clone(&shared.options), peer, encryption, now_ms);
        let guest = shared.surroundings.receive(&link);
        Self { link, session, guest, message: None }
    }
}

impl Conversation for Connection {
    type Request = Request;
    type Answer = Answer;

    fn next(&mut self, now_ms: u64) -> Option<Request> {
        self.session.next(now_ms)
    }

    fn kind(request: &Request) -> RequestKind {
        match request {
            Request::StartTls => RequestKind::StartTls,
            Request::Finish(_) => RequestKind::Durable,
            _ => RequestKind::Question,
        }
    }

    async fn reply(&mut self, request: Request, _: &Secrecy) -> Answer {
        if matches!(request, Request::Begin(_)) {
            self.message = Some(self.link.connection.begin());
        }
        let is_last = matches!(request, Request::Finish(_) | Request::Abandon);
        let protection = if self.session.is_protected() { Protection::Protected } else { Protection::Open };
        let answer = self.guest.answer(request, protection).await;
        if is_last {
            self.message = None;
        }
        answer
    }

    fn answer(&mut self, answer: Answer, now_ms: u64) {
        self.session.answer(answer, now_ms);
    }

    fn encrypted(&mut self, secrecy: Secrecy, now_ms: u64) {
        self.session.answer(Answer::Encrypted(encryption_of(secrecy)), now_ms);
    }

    fn receive(&mut self, bytes: &[u8], now_ms: u64) -> usize {
        self.session.receive(bytes, now_ms)
    }

    fn wants_input(&self) -> bool {
        self.session.wants_input()
    }

    fn wants_flush(&self) -> bool {
        self.session.wants_flush()
    }

    fn take_output(&mut self) -> Vec<u8> {
        self.session.take_output()
    }

    fn is_closed(&self) -> bool {
        self.session.is_closed()
    }

    fn deadline_ms(&self) -> u64 {
        self.session.deadline_ms()
    }

    fn time_passed(&mut self, now_ms: u64) {
        self.session.time_passed(now_ms);
    }

    fn shut_down(&mut self, now_ms: u64) {
        self.session.shut_down(now_ms);
    }

    fn disconnected(&mut self) {
        self.session.disconnected();
    }
}

/// What a session knows of a connection's TLS.
fn encryption_of(secrecy: Secrecy) -> Encryption {
    let Secrecy { cipher, exporter, server_end_point, .. } = secrecy;
    Encryption { cipher, bindings: ChannelBindings { exporter, server_end_point } }
}
