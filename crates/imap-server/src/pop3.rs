//! POP3 as a protocol of ports.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use scrinium_credentials::sasl::ChannelBindings;
use scrinium_pop3::{Answer, Encryption, MaildropQuestion, Peer, Request, ServerOptions, ServerSession};
use scrinium_port::{
    Arrival, Conversation, ConversationSettings, Ending, PortSecurity, Protocol, RequestKind, Secrecy,
    converse,
};

use crate::maildrop::MaildropDesk;
use crate::protocol::WRITE_TIMEOUT;
use crate::surroundings::MailAccess;

/// POP3 at ports: people's inboxes.
pub struct Pop3Protocol {
    session: Arc<ServerOptions>,
    /// For those of this machine, who may log in without TLS.
    local_session: Arc<ServerOptions>,
    settings: Arc<ConversationSettings>,
    access: MailAccess,
}

impl Pop3Protocol {
    /// With limits, times, and who we are. Without a certificate the session does not offer STLS.
    #[must_use]
    pub fn new(access: MailAccess, mut session: ServerOptions, security: PortSecurity) -> Self {
        session.has_certificate = security.tls.is_some();
        session.has_tokens = access.0.tokens.is_some();
        let local_session = ServerOptions { requires_tls: false, ..session.clone() };
        let settings = ConversationSettings {
            security,
            clock: access.0.clock.clone(),
            tls_timeout: Duration::from_millis(session.times.tls_ms),
            write_timeout: WRITE_TIMEOUT,
        };
        Self {
            session: Arc::new(session),
            local_session: Arc::new(local_session),
            settings: Arc::new(settings),
            access,
        }
    }
}

impl Protocol for Pop3Protocol {
    fn serve(&self, arrival: Arrival, ending: Ending) -> BoxFuture<'static, ()> {
        let secrecy = self.settings.security.secrecy(&arrival.stream, &arrival.link);
        let options = if secrecy.is_private { &self.local_session } else { &self.session };
        let peer = Peer { address: Some(arrival.link.peer.address) };
        let encryption = secrecy.is_encrypted.then(|| encryption_of(secrecy));
        let session = ServerSession::new(Arc::clone(options), peer, encryption, self.settings.clock.now_ms());
        let desk = MaildropDesk::new(Arc::clone(&self.access.0), Arc::clone(&arrival.link));
        converse(arrival, Connection { session, desk }, Arc::clone(&self.settings), ending).boxed()
    }
}

/// A connection under way.
struct Connection {
    session: ServerSession,
    desk: MaildropDesk,
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
            Request::Maildrop(question) if matches!(**question, MaildropQuestion::Delete(..)) => {
                RequestKind::Durable
            }
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
}

/// What a session knows of a connection's TLS.
fn encryption_of(secrecy: Secrecy) -> Encryption {
    let Secrecy { exporter, server_end_point, .. } = secrecy;
    Encryption { bindings: ChannelBindings { exporter, server_end_point } }
}
