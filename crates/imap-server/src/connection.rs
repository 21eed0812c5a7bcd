//! One connection of IMAP: a session with the desk that answers what it asks.

use std::sync::Arc;

use scrinium_credentials::sasl::ChannelBindings;
use scrinium_imap::{Answer, Encryption, Peer, Request, ServerSession, Watching};
use scrinium_port::{Conversation, Link, RequestKind, Secrecy};

use crate::desk::Desk;
use crate::protocol::SharedProtocol;

/// A connection under way.
pub(crate) struct Connection {
    session: ServerSession,
    desk: Desk,
}

impl Connection {
    pub(crate) fn new(link: Arc<Link>, secrecy: Secrecy, shared: &SharedProtocol) -> Self {
        let options = if secrecy.is_private { &shared.local_session } else { &shared.session };
        let peer = Peer { address: Some(link.peer.address) };
        let encryption = secrecy.is_encrypted.then(|| encryption_of(secrecy));
        let now_ms = shared.settings.clock.now_ms();
        let session = ServerSession::new(Arc::clone(options), peer, encryption, now_ms);
        let access = Arc::clone(&shared.access.0);
        let desk = Desk::new(access, link, (options.limits.message_bytes, Arc::clone(&shared.hiding)));
        Self { session, desk }
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
            Request::FinishAppend => RequestKind::Durable,
            _ => RequestKind::Question,
        }
    }

    async fn reply(&mut self, request: Request, secrecy: &Secrecy) -> Answer {
        self.desk.answer(request, secrecy).await
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

    async fn changed(&mut self) {
        match self.session.watches() {
            Watching::Nothing => std::future::pending().await,
            Watching::Folder(_) => self.desk.changed(false).await,
            Watching::All => self.desk.changed(true).await,
        }
    }

    fn wake(&mut self, now_ms: u64) {
        self.session.wake(now_ms);
    }
}

/// What a session knows of a connection's TLS.
fn encryption_of(secrecy: Secrecy) -> Encryption {
    let Secrecy { exporter, server_end_point, .. } = secrecy;
    Encryption { bindings: ChannelBindings { exporter, server_end_point } }
}
