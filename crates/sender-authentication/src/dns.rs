//! What is asked of DNS, and what it said.
//!
//! A check is a function of the answers so far: it gives its verdict, or the question that it needs next. Nothing here waits, and
//! the same answers always mean the same. [`settle`] asks until a verdict is there; how many questions a message may cost is
//! bounded by [`Answers`], beyond which every answer is a failure of DNS.

use std::collections::HashMap;
use std::net::IpAddr;

use crate::name::DomainName;

/// Questions for one message, of all its checks. SPF alone may need 111 for an identity (RFC 7208 §4.6.4).
pub const QUESTIONS_MAX: usize = 300;

/// A question to DNS.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Question {
    /// TXT records; the strings of a record are put together.
    Texts(DomainName),
    /// A records.
    Addresses4(DomainName),
    /// AAAA records.
    Addresses6(DomainName),
    /// MX records.
    MailHosts(DomainName),
    /// PTR records of an address.
    Names(IpAddr),
}

/// What DNS said. An answer of another kind than the question counts as a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// TXT records, at least one.
    Texts(Vec<Vec<u8>>),
    /// A or AAAA records, at least one.
    Addresses(Vec<IpAddr>),
    /// MX records, at least one: preferences and names.
    MailHosts(Vec<(u16, String)>),
    /// PTR records, at least one.
    Names(Vec<String>),
    /// There is no such name (NXDOMAIN).
    NoSuchName,
    /// The name is there, and has no records of this kind.
    NoRecords,
    /// No answer, or one that cannot be used: time-out, SERVFAIL, bogus signatures.
    Failed,
}

/// The question that a check needs answered before it can go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing(pub Question);

/// What DNS has said about one message.
#[derive(Clone, Debug)]
pub struct Answers {
    known: HashMap<Question, Answer>,
    room: usize,
}

impl Default for Answers {
    fn default() -> Self {
        Self { known: HashMap::new(), room: QUESTIONS_MAX }
    }
}

impl Answers {
    /// No answers, and room for `questions`.
    #[must_use]
    pub fn with_room(questions: usize) -> Self {
        Self { known: HashMap::new(), room: questions }
    }

    /// Keeps an answer.
    pub fn insert(&mut self, question: Question, answer: Answer) {
        if self.known.len() < self.room {
            self.known.insert(question, answer);
        }
    }

    /// How many questions have been asked.
    #[must_use]
    pub fn asked(&self) -> usize {
        self.known.len()
    }

    /// The answer to a question, where it is known or there is no room for another.
    ///
    /// # Errors
    /// [`Missing`]: it has to be asked.
    pub fn get(&self, question: Question) -> Result<&Answer, Missing> {
        match self.known.get(&question) {
            Some(answer) => Ok(answer),
            None if self.known.len() >= self.room => Ok(&Answer::Failed),
            None => Err(Missing(question)),
        }
    }
}

/// Who answers questions: a resolver, or a zone in a test. A question that takes too long is answered with [`Answer::Failed`].
pub trait Dns: Sync {
    /// Asks one question.
    fn ask(&self, question: &Question) -> impl Future<Output = Answer> + Send;
}

/// Asks what a check needs until it has its verdict.
pub async fn settle<T: Send>(
    dns: &impl Dns,
    answers: &mut Answers,
    check: impl Fn(&Answers) -> Result<T, Missing> + Send,
) -> T {
    loop {
        match check(answers) {
            Ok(verdict) => return verdict,
            Err(Missing(question)) => {
                let answer = dns.ask(&question).await;
                answers.insert(question, answer);
            }
        }
    }
}
