//! Lists of addresses and domains in DNS (RFC 5782).

use std::net::{IpAddr, Ipv4Addr};

use scrinium_sender_authentication::{Answer, Answers, DomainName, Missing, Question};

/// Lists that one message may ask.
pub const MAX_LISTS: usize = 20;

/// Letters of a list's reason that are given on.
const REASON_LETTERS_MAX: usize = 200;

/// A list, and what it means to be on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsList {
    /// The list's zone.
    pub zone: DomainName,
    /// Which of its answers count, and how much each weighs; lists of good senders have negative weights. The first that fits counts.
    pub weights: Vec<(AnswerRange, i32)>,
}

/// The first and the last answer of a range.
pub type AnswerRange = (Ipv4Addr, Ipv4Addr);

/// A list that something is on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// The list.
    pub zone: DomainName,
    /// What it answered.
    pub answer: Ipv4Addr,
    /// What that weighs.
    pub weight: i32,
    /// Why, in the list's words: one line of printable ASCII.
    pub reason: Option<String>,
}

/// What the lists say together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListVerdict {
    /// The sum of the weights.
    pub weight: i32,
    /// The lists that something is on.
    pub listings: Vec<Listing>,
    /// Lists that did not answer, or that refuse to answer this server. They weigh nothing.
    pub silent: Vec<DomainName>,
}

/// What is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A server's address (RFC 5782 §2.1, §2.4).
    Address(IpAddr),
    /// A domain (RFC 5782 §3).
    Domain(DomainName),
}

impl From<IpAddr> for Subject {
    fn from(address: IpAddr) -> Self {
        Self::Address(address)
    }
}

impl From<DomainName> for Subject {
    fn from(domain: DomainName) -> Self {
        Self::Domain(domain)
    }
}

/// Asks the lists about an address or a domain, at most [`MAX_LISTS`].
///
/// # Errors
/// [`Missing`]: a question that has to be asked.
pub fn judge(
    subject: impl Into<Subject>,
    lists: &[DnsList],
    answers: &Answers,
) -> Result<ListVerdict, Missing> {
    let subject = subject.into();
    let mut verdict = ListVerdict::default();
    for list in lists.iter().take(MAX_LISTS) {
        let Some(name) = list.name_of(&subject) else { continue };
        let found = match answers.get(Question::Addresses4(name.clone()))? {
            Answer::Addresses(found) => found,
            Answer::NoSuchName | Answer::NoRecords => continue,
            _ => {
                verdict.silent.push(list.zone.clone());
                continue;
            }
        };
        // RFC 5782 §2.1: answers are of 127.0.0.0/8. Others are of a zone that has become somebody else's.
        let found: Vec<Ipv4Addr> = found
            .iter()
            .filter_map(|address| match address {
                IpAddr::V4(address) if address.is_loopback() => Some(*address),
                _ => None,
            })
            .collect();
        // By convention 127.255.255.0/24 says that the list does not answer who asks.
        if found.is_empty() || found.iter().any(|answer| answer.octets().starts_with(&[127, 255, 255])) {
            verdict.silent.push(list.zone.clone());
            continue;
        }
        let weigh = |(first, last): &AnswerRange| found.iter().find(|answer| (first..=last).contains(answer));
        let counted = list.weights.iter().find_map(|(range, weight)| Some((*weigh(range)?, *weight)));
        let Some((answer, weight)) = counted else { continue };
        let reason = reason(answers.get(Question::Texts(name))?);
        verdict.weight = verdict.weight.saturating_add(weight);
        verdict.listings.push(Listing { zone: list.zone.clone(), answer, weight, reason });
    }
    Ok(verdict)
}

impl DnsList {
    fn name_of(&self, subject: &Subject) -> Option<DomainName> {
        match subject {
            Subject::Domain(domain) => self.zone.below(domain.as_str()),
            Subject::Address(address) => {
                let labels: Vec<String> = match address.to_canonical() {
                    IpAddr::V4(address) => address.octets().iter().rev().map(ToString::to_string).collect(),
                    IpAddr::V6(address) => {
                        let halves =
                            address.octets().into_iter().rev().flat_map(|octet| [octet & 0xf, octet >> 4]);
                        halves.map(|half| format!("{half:x}")).collect()
                    }
                };
                self.zone.below(&labels.join("."))
            }
        }
    }
}

fn reason(answer: &Answer) -> Option<String> {
    let Answer::Texts(texts) = answer else { return None };
    let text = String::from_utf8_lossy(texts.first()?).into_owned();
    let line: String =
        text.chars().filter(|letter| matches!(letter, ' '..='~')).take(REASON_LETTERS_MAX).collect();
    (!line.is_empty()).then_some(line)
}
