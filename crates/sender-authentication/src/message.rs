//! All checks of one message, in their order.

use crate::author::Authors;
use crate::dkim::{self, BodyDigests, DkimOutcome};
use crate::dmarc::{self, DmarcEvidence, DmarcOutcome};
use crate::dns::{Answers, Dns, settle};
use crate::head::Head;
use crate::results::{Verified, authentication_results};
use crate::spf::{SpfOutcome, SpfRequest, check_sender};

/// A message that came from another server.
#[derive(Clone, Copy, Debug)]
pub struct MessageToCheck<'a> {
    /// Its head.
    pub head: &'a Head<'a>,
    /// Digests of its body.
    pub digests: &'a BodyDigests,
    /// Who sent it.
    pub sender: SpfRequest<'a>,
}

/// What was found out about a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authentication {
    /// Whom it claims to be from.
    pub authors: Authors,
    /// What SPF says.
    pub spf: SpfOutcome,
    /// What its signatures say.
    pub dkim: Vec<DkimOutcome>,
    /// What DMARC says.
    pub dmarc: DmarcOutcome,
}

impl Authentication {
    /// The field that tells it, under the name of this server.
    #[must_use]
    pub fn field(&self, server: &str, sender: &SpfRequest<'_>) -> String {
        let verified = Verified {
            spf: Some((&self.spf, sender.mail_from, sender.helo)),
            dkim: &self.dkim,
            dmarc: Some(&self.dmarc),
            authors: &self.authors,
        };
        authentication_results(server, &verified)
    }
}

/// Does all checks of a message. How long that takes is the resolver's to bound: one that answers [`Answer::Failed`] once its time is
/// over ends it with temporary errors.
///
/// [`Answer::Failed`]: crate::Answer::Failed
pub async fn authenticate(dns: &impl Dns, message: &MessageToCheck<'_>) -> Authentication {
    let mut answers = Answers::default();
    let authors = Authors::of(message.head);
    let spf = settle(dns, &mut answers, |answers| check_sender(&message.sender, answers)).await;
    let now_seconds = message.sender.now_seconds;
    // Each check is settled before the next begins, so that no signature is computed twice.
    let verify = |answers: &Answers| dkim::verify(message.head, message.digests, now_seconds, answers);
    let dkim = settle(dns, &mut answers, verify).await;
    let evidence = DmarcEvidence { authors: &authors, spf: Some(&spf), dkim: &dkim };
    let dmarc = settle(dns, &mut answers, |answers| dmarc::evaluate(&evidence, answers)).await;
    Authentication { authors, spf, dkim, dmarc }
}
