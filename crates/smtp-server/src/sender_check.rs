//! Whether a message of another server is from whom it says: SPF, DKIM and DMARC, as it comes in.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use scrinium_accounting::{AddressRange, is_within};
use scrinium_clock::Clock;
use scrinium_mail::SenderVerdict;
use scrinium_sender_authentication::dmarc::{Disposition, DmarcOutcome, DmarcResult};
use scrinium_sender_authentication::spf::{SpfRequest, SpfResult};
use scrinium_sender_authentication::{
    Answer, Authentication, Dns, HEAD_BYTES_MAX, Head, MessageToCheck, Question, ReadMessage, authenticate,
    without_claims,
};
use scrinium_smtp::{Envelope, Refusal};
use scrinium_statistics::{Counter, Registry};
use tokio::time::Instant;

/// How long DNS may take for all questions about one message.
const DNS_TIME: Duration = Duration::from_secs(20);

/// Answers questions about senders.
pub trait SenderDns: Send + Sync {
    /// Asks one question; the caller bounds the time.
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer>;
}

/// How messages of other servers are checked.
#[derive(Clone)]
pub struct SenderCheckOptions {
    /// Answers questions about senders.
    pub dns: Arc<dyn SenderDns>,
    /// The name of this server in `Authentication-Results`.
    pub server: String,
    /// Whether what a domain asks for is done. Otherwise it is written down alone.
    pub applies_dmarc: bool,
    /// Servers in these networks have checked what they bring, or send for people of this server.
    pub trusted: Vec<AddressRange>,
    /// The time, for signatures that expire.
    pub clock: Clock,
}

/// The head of a message that was checked, and what is to be thought of its sender.
pub(crate) struct CheckedHead {
    pub(crate) head: Vec<u8>,
    pub(crate) sender: SenderVerdict,
    /// DNS did not answer, and might have said more for the sender.
    pub(crate) is_undecided: bool,
}

/// Checks messages.
pub(crate) struct SenderCheck {
    options: SenderCheckOptions,
    passed: Counter,
    failed: Counter,
    refused: Counter,
}

impl SenderCheck {
    /// Registers `SMTP.DMARC.Passed`, `SMTP.DMARC.Failed` and `SMTP.DMARC.Refused`.
    pub(crate) fn register(options: SenderCheckOptions, registry: &Registry) -> Self {
        let counter = |name: &str| registry.counter(&format!("SMTP.DMARC.{name}"));
        Self { options, passed: counter("Passed"), failed: counter("Failed"), refused: counter("Refused") }
    }

    /// Where a message comes from that is to be checked; `None` for one that comes from a trusted server.
    pub(crate) fn examined(&self, envelope: &Envelope) -> Option<IpAddr> {
        let address = envelope.peer.address?.to_canonical();
        (!is_within(&self.options.trusted, address)).then_some(address)
    }

    /// The head that the message has from now on and what is to be thought of its sender, or why it is not taken.
    pub(crate) async fn check(
        &self,
        (message, address): (&ReadMessage, IpAddr),
        envelope: &Envelope,
    ) -> Result<CheckedHead, Refusal> {
        if message.head.len() > HEAD_BYTES_MAX {
            return Err(Refusal::new(552, 3, 4, "The head of the message is too long"));
        }
        let mail_from = envelope.sender.mailbox().map(ToString::to_string).unwrap_or_default();
        let helo = envelope.hello.1.to_string();
        let head = Head::parse(&message.head);
        let sender = SpfRequest {
            address,
            mail_from: &mail_from,
            helo: &helo,
            receiver: &self.options.server,
            now_seconds: self.options.clock.now_ms() / 1000,
        };
        let dns = Bounded { dns: &*self.options.dns, until: Instant::now() + DNS_TIME };
        let to_check = MessageToCheck { head: &head, digests: &message.digests, sender };
        let found = authenticate(&dns, &to_check).await;
        self.count(&found.dmarc);
        if let Some(refusal) = self.refusal(&found.dmarc) {
            self.refused.add(1);
            return Err(refusal);
        }
        // RFC 8601 §5: nobody else speaks in this server's name.
        let mut checked = found.field(&self.options.server, &sender).into_bytes();
        checked.extend_from_slice(&without_claims(&message.head, &[&self.options.server]));
        let is_undecided =
            found.spf.result == SpfResult::TempError || found.dmarc.result == DmarcResult::TempError;
        Ok(CheckedHead { head: checked, sender: self.verdict(&found), is_undecided })
    }

    fn verdict(&self, found: &Authentication) -> SenderVerdict {
        let path = found.spf.domain.as_ref().filter(|_| !found.spf.is_greeting);
        let by_author = found.dmarc.result == DmarcResult::Pass && found.dmarc.author.as_ref() == path;
        SenderVerdict {
            is_vouched_for: path.is_some() && (found.spf.result == SpfResult::Pass || by_author),
            is_author_vouched_for: found.dmarc.result == DmarcResult::Pass,
            is_suspect: self.options.applies_dmarc && found.dmarc.disposition == Disposition::Quarantine,
        }
    }

    fn count(&self, outcome: &DmarcOutcome) {
        match outcome.result {
            DmarcResult::Pass => self.passed.add(1),
            DmarcResult::Fail => self.failed.add(1),
            _ => {}
        }
    }

    /// Why a message is not taken, as the domain that it names wishes.
    fn refusal(&self, outcome: &DmarcOutcome) -> Option<Refusal> {
        if !self.options.applies_dmarc {
            return None;
        }
        let named = outcome.author.as_ref().filter(|author| author.is_plain());
        let domain = named.map_or_else(|| "the author's domain".to_owned(), ToString::to_string);
        match outcome.disposition {
            Disposition::Deliver | Disposition::Quarantine => None,
            Disposition::Reject => {
                let text =
                    format!("Neither SPF nor DKIM vouches for this message in the name of {domain} (DMARC)");
                // RFC 7372 §3.4
                Some(Refusal::new(550, 7, 26, &text))
            }
            Disposition::Defer => {
                let text =
                    format!("DNS does not say now if {domain} vouches for this message. Try again later");
                Some(Refusal::new(451, 4, 3, &text))
            }
        }
    }
}

/// DNS for one message or connection, for as long as there is time.
pub(crate) struct Bounded<'a> {
    pub(crate) dns: &'a dyn SenderDns,
    pub(crate) until: Instant,
}

impl Dns for Bounded<'_> {
    async fn ask(&self, question: &Question) -> Answer {
        tokio::time::timeout_at(self.until, self.dns.ask(question)).await.unwrap_or(Answer::Failed)
    }
}
