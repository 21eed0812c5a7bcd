//! The verdict (RFC 9989 §5.3, §5.4).

use std::fmt;

use crate::author::{AuthorFault, Authors};
use crate::dkim::{DkimOutcome, DkimResult};
use crate::dns::{Answer, Answers, Missing, Question};
use crate::name::DomainName;
use crate::spf::{SpfOutcome, SpfResult};

use super::record::{Alignment, DmarcPolicy, DmarcRecord};
use super::walk::{Walk, walk};

/// Author domains whose policies are looked for, in a message that has several.
const DOMAINS_MAX: usize = 4;

/// What came of DMARC (RFC 9989 §9.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DmarcResult {
    /// No policy applies.
    None,
    /// The author domain vouches for the message.
    Pass,
    /// It has a policy, and does not vouch for the message.
    Fail,
    /// DNS did not answer, and what it would have said may have been a pass.
    TempError,
    /// The message has no single author domain.
    PermError,
}

impl fmt::Display for DmarcResult {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::None => "none",
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::TempError => "temperror",
            Self::PermError => "permerror",
        })
    }
}

/// What is to be done with a message, as far as DMARC goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Disposition {
    /// Nothing.
    Deliver,
    /// It belongs where people look at what is suspicious.
    Quarantine,
    /// It is to be refused now, and may be taken later (4xx): DNS did not answer, and the domain asks for more than nothing, or what
    /// it asks for is not known.
    Defer,
    /// It is to be refused (5xx).
    Reject,
}

/// Why a message has no verdict of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DmarcFault {
    /// Its From field.
    #[error(transparent)]
    Author(#[from] AuthorFault),
    /// DNS did not answer.
    #[error("DNS did not answer")]
    Dns,
}

/// Which record a policy is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicySource {
    /// `p=` of the author domain itself, or of one above that says nothing else of those below.
    Domain,
    /// `sp=`
    Subdomain,
    /// `np=`
    AbsentSubdomain,
}

/// What is known of a message when DMARC begins.
#[derive(Clone, Copy, Debug)]
pub struct DmarcEvidence<'a> {
    /// Whom it claims to be from.
    pub authors: &'a Authors,
    /// What SPF says; `None` where nothing could be checked.
    pub spf: Option<&'a SpfOutcome>,
    /// What its signatures say.
    pub dkim: &'a [DkimOutcome],
}

/// The verdict on a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DmarcOutcome {
    /// What came of it.
    pub result: DmarcResult,
    /// What is to be done, as the domain wishes.
    pub disposition: Disposition,
    /// Why there is no verdict.
    pub fault: Option<DmarcFault>,
    /// The author domain; of several, the one whose policy is the strictest.
    pub author: Option<DomainName>,
    /// Where the record is.
    pub policy_domain: Option<DomainName>,
    /// What the record asks for, for this author domain, and with `t=y` one step less.
    pub policy: Option<DmarcPolicy>,
    /// Which of its tags says so.
    pub source: Option<PolicySource>,
    /// Whether SPF's domain is aligned with the author domain, and passes.
    pub is_spf_aligned: bool,
    /// Whether that of a signature is.
    pub is_dkim_aligned: bool,
}

impl DmarcOutcome {
    fn new(result: DmarcResult, author: Option<DomainName>) -> Self {
        Self {
            result,
            disposition: Disposition::Deliver,
            fault: None,
            author,
            policy_domain: None,
            policy: None,
            source: None,
            is_spf_aligned: false,
            is_dkim_aligned: false,
        }
    }
}

/// Says what DMARC says of a message.
///
/// A message without exactly one author domain never passes. The RFC leaves it to the receiver what happens with it, and warns that
/// naming a second domain must not be a way around a policy (§5.3.1, §11.5): here the strictest policy of those that it names
/// applies, and a message whose From field cannot be read is suspicious in any case.
///
/// # Errors
/// [`Missing`]: a question that has to be asked.
pub fn evaluate(evidence: &DmarcEvidence<'_>, answers: &Answers) -> Result<DmarcOutcome, Missing> {
    if let Some(author) = evidence.authors.single() {
        return of_domain(author, evidence, answers);
    }
    let mut strictest = DmarcOutcome::new(DmarcResult::PermError, None);
    for author in evidence.authors.domains.iter().take(DOMAINS_MAX) {
        // What one of several domains vouches for is no word of the others.
        let unverified = DmarcEvidence { spf: None, dkim: &[], ..*evidence };
        let outcome = of_domain(author, &unverified, answers)?;
        if strictest.author.is_none() || outcome.disposition > strictest.disposition {
            strictest = outcome;
        }
    }
    strictest.result = DmarcResult::PermError;
    strictest.fault = evidence.authors.fault.map(DmarcFault::from);
    let is_readable = evidence.authors.fault == Some(AuthorFault::SeveralDomains)
        && evidence.authors.domains.len() <= DOMAINS_MAX;
    if !is_readable {
        strictest.disposition = strictest.disposition.max(Disposition::Quarantine);
    }
    Ok(strictest)
}

fn of_domain(
    author: &DomainName,
    evidence: &DmarcEvidence<'_>,
    answers: &Answers,
) -> Result<DmarcOutcome, Missing> {
    let walked = walk(author, answers)?;
    let found = walked.policy(author);
    let Some((policy_domain, record)) = found.filter(|(_, record)| record.is_policy) else {
        let mut outcome = DmarcOutcome::new(DmarcResult::None, Some(author.clone()));
        if walked.has_failed && found.is_none() {
            // §4.10.1: no record is known, which is not the same as that there is none.
            outcome.result = DmarcResult::TempError;
            outcome.disposition = Disposition::Defer;
            outcome.fault = Some(DmarcFault::Dns);
        }
        return Ok(outcome);
    };
    let (policy, source, has_failed) = policy_of(author, policy_domain, record, answers)?;
    let policy = if record.is_testing { milder(policy) } else { policy };
    let mut outcome = DmarcOutcome::new(DmarcResult::Fail, Some(author.clone()));
    outcome.policy_domain = Some(policy_domain.clone());
    outcome.policy = Some(policy);
    outcome.source = Some(source);
    let aligned = Aligned { author, walked: &walked, answers };
    let mut is_open = walked.has_failed || has_failed;
    if let Some((spf, domain)) = evidence.spf.and_then(|spf| Some((spf, spf.domain.as_ref()?))) {
        let (is_aligned, failed) = match spf.result {
            SpfResult::Pass | SpfResult::TempError => aligned.is_with(domain, record.spf_alignment)?,
            _ => (false, false),
        };
        outcome.is_spf_aligned = is_aligned && spf.result == SpfResult::Pass;
        is_open |= failed || (is_aligned && spf.result == SpfResult::TempError);
    }
    for dkim in evidence.dkim {
        let counts = matches!(dkim.result, DkimResult::Pass | DkimResult::TempError);
        let Some(domain) = dkim.domain.as_ref().filter(|_| counts) else { continue };
        let (is_aligned, failed) = aligned.is_with(domain, record.dkim_alignment)?;
        outcome.is_dkim_aligned |= is_aligned && dkim.result == DkimResult::Pass;
        is_open |= failed || (is_aligned && dkim.result == DkimResult::TempError);
    }
    if outcome.is_spf_aligned || outcome.is_dkim_aligned {
        // §5.3.5
        outcome.result = DmarcResult::Pass;
    } else if is_open {
        // §5.3.6: where DNS did not answer, a message neither passes nor fails, and the policy cannot be applied.
        outcome.result = DmarcResult::TempError;
        outcome.fault = Some(DmarcFault::Dns);
        if policy != DmarcPolicy::None {
            outcome.disposition = Disposition::Defer;
        }
    } else {
        outcome.disposition = match policy {
            DmarcPolicy::None => Disposition::Deliver,
            DmarcPolicy::Quarantine => Disposition::Quarantine,
            DmarcPolicy::Reject => Disposition::Reject,
        };
    }
    Ok(outcome)
}

/// Which policy a record has for an author domain (§4.10.1), and whether DNS failed to say.
fn policy_of(
    author: &DomainName,
    policy_domain: &DomainName,
    record: &DmarcRecord,
    answers: &Answers,
) -> Result<(DmarcPolicy, PolicySource, bool), Missing> {
    if author == policy_domain {
        return Ok((record.policy, PolicySource::Domain, false));
    }
    let for_existing = match record.subdomain_policy {
        Some(policy) => (policy, PolicySource::Subdomain),
        None => (record.policy, PolicySource::Domain),
    };
    let Some(for_absent) = record.absent_policy.filter(|policy| *policy != for_existing.0) else {
        return Ok((for_existing.0, for_existing.1, false));
    };
    let (exists, has_failed) = exists(author, answers)?;
    Ok(if exists {
        (for_existing.0, for_existing.1, has_failed)
    } else {
        (for_absent, PolicySource::AbsentSubdomain, has_failed)
    })
}

/// Whether a domain is there (RFC 9989 §3.2.13): any record of its own makes it so, or a name below it.
fn exists(domain: &DomainName, answers: &Answers) -> Result<(bool, bool), Missing> {
    match answers.get(Question::Addresses4(domain.clone()))? {
        Answer::NoSuchName => Ok((false, false)),
        Answer::Failed => Ok((true, true)),
        _ => Ok((true, false)),
    }
}

/// §4.7, `t=y`: the domain is trying out its policy.
fn milder(policy: DmarcPolicy) -> DmarcPolicy {
    match policy {
        DmarcPolicy::Reject => DmarcPolicy::Quarantine,
        DmarcPolicy::Quarantine | DmarcPolicy::None => DmarcPolicy::None,
    }
}

struct Aligned<'a> {
    author: &'a DomainName,
    walked: &'a Walk,
    answers: &'a Answers,
}

impl Aligned<'_> {
    /// Whether a domain is aligned with the author's (§4.10.2), and whether DNS failed to say. Each has a walk of its own.
    fn is_with(&self, domain: &DomainName, alignment: Alignment) -> Result<(bool, bool), Missing> {
        if domain == self.author {
            return Ok((true, false));
        }
        // Two names of one organization end with the same label.
        if alignment == Alignment::Strict || domain.last_labels(1) != self.author.last_labels(1) {
            return Ok((false, false));
        }
        let organization = self.walked.organization(self.author);
        // A name that is not within the organization's domain cannot have it as its own.
        if !domain.is_within(&organization) {
            return Ok((false, false));
        }
        let other = walk(domain, self.answers)?;
        let is_aligned = other.organization(domain) == organization;
        Ok((is_aligned, !is_aligned && other.has_failed))
    }
}
