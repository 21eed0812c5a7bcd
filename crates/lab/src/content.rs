//! What simulated users write: words of English, in the sizes that a workload asks for.
//!
//! A body is a piece of one long text that is drawn once from common words with Zipf-like frequencies, so
//! that it compresses about as prose does. Taking a piece costs no more than copying it.

use std::borrow::Cow;
use std::sync::OnceLock;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use scrinium_lab_script::{CalendarKind, MessageSize};

/// Length of the text that bodies are cut from.
const TEXT_BYTES: usize = 1 << 20;

/// Lines of a body are about as long as people's.
const LINE_BYTES: usize = 72;

const WORDS: &[&str] = &[
    "the",
    "to",
    "and",
    "of",
    "a",
    "in",
    "we",
    "for",
    "is",
    "that",
    "you",
    "on",
    "with",
    "this",
    "be",
    "our",
    "as",
    "are",
    "it",
    "will",
    "have",
    "by",
    "at",
    "from",
    "please",
    "meeting",
    "report",
    "project",
    "can",
    "your",
    "if",
    "or",
    "not",
    "has",
    "would",
    "all",
    "new",
    "time",
    "week",
    "server",
    "team",
    "about",
    "they",
    "was",
    "there",
    "been",
    "should",
    "customer",
    "next",
    "which",
    "their",
    "one",
    "more",
    "also",
    "need",
    "let",
    "know",
    "today",
    "order",
    "review",
    "month",
    "plan",
    "work",
    "office",
    "before",
    "could",
    "any",
    "figures",
    "change",
    "before",
    "after",
    "Monday",
    "morning",
    "schedule",
    "attached",
    "price",
    "delivery",
    "question",
    "answer",
    "version",
    "contract",
    "department",
    "budget",
    "thank",
    "regards",
    "manager",
    "colleague",
    "agenda",
    "minutes",
    "quarter",
    "warehouse",
    "invoice",
    "proposal",
    "draft",
    "comment",
    "deadline",
    "holiday",
    "training",
    "network",
    "database",
    "replica",
    "documentation",
    "requirement",
    "installation",
    "configuration",
    "discussion",
    "responsibility",
    "Thursday",
    "confirmation",
];

/// A simulated user.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Person {
    /// The first user is 1.
    pub number: usize,
    /// The short name, with which the user logs in: `user0001`.
    pub name: String,
    pub full_name: String,
    /// The mail database: `mail/user0001`.
    pub mail_database: String,
}

/// Which message of which run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct MessageNumber {
    pub run: u32,
    /// The first user is 1.
    pub sender: u32,
    /// The sender's first message is 1.
    pub sequence: u32,
}

/// What kind of document a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Form {
    Memo,
    Calendar(CalendarKind),
}

/// A document that a user writes.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Message {
    pub id: String,
    pub number: MessageNumber,
    pub form: Form,
    /// Short name.
    pub from: String,
    /// Short names.
    pub recipients: Vec<String>,
    pub subject: String,
    pub body: Cow<'static, str>,
    pub attachment_bytes: usize,
    /// Seconds since 1970.
    pub posted: i64,
    /// Whether it lies in a mail database already.
    pub delivered: bool,
}

/// Writes messages of one user.
#[derive(Clone, Debug)]
pub(crate) struct Writer {
    random: SmallRng,
    /// Distinguishes the documents of this run from those of any other.
    run: u32,
    name: String,
    number: u32,
    written: u32,
}

impl Writer {
    /// A writer whose messages depend on `seed` and the person alone, but for their ids.
    #[must_use]
    pub(crate) fn new(person: &Person, seed: u64, run: u32) -> Self {
        let seed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(person.number as u64);
        Self {
            random: SmallRng::seed_from_u64(seed),
            run,
            name: person.name.clone(),
            number: u32::try_from(person.number).unwrap_or(u32::MAX),
            written: 0,
        }
    }

    /// A message of these sizes, posted at `posted` (seconds since 1970).
    pub(crate) fn write(
        &mut self,
        form: Form,
        body_bytes: usize,
        attachment_bytes: usize,
        recipients: Vec<String>,
        posted: i64,
    ) -> Message {
        self.written += 1;
        Message {
            id: format!("lab-{}-{:08x}-{:06}", self.name, self.run, self.written),
            number: MessageNumber { run: self.run, sender: self.number, sequence: self.written },
            form,
            from: self.name.clone(),
            recipients,
            subject: self.subject(),
            body: self.body(body_bytes),
            attachment_bytes,
            posted,
            delivered: false,
        }
    }

    /// Sizes of body and attachment.
    ///
    /// The profile is Server.Load's (help page of `SendMessage profile`): 10 % of 500 bytes, 30 % of
    /// 10,000, 40 % of 50,000, 10 % of 50,000 with 50,000 attached, 9.5 % of 150,000, and 0.5 % of 1,000
    /// with 10,000,000 attached.
    pub(crate) fn sizes(&mut self, size: &MessageSize) -> (usize, usize) {
        match size {
            MessageSize::Bytes { body, attachment } => (*body, *attachment),
            MessageSize::Weighted(choices) => {
                let total: u64 = choices.iter().map(|(_, weight)| u64::from(*weight)).sum();
                let mut drawn = self.random.random_range(0..total.max(1));
                for (body, weight) in choices.iter() {
                    let weight = u64::from(*weight);
                    if drawn < weight {
                        return (*body, 0);
                    }
                    drawn -= weight;
                }
                (0, 0)
            }
            MessageSize::Profile => match self.random.random_range(0..1000) {
                0..100 => (500, 0),
                100..400 => (10_000, 0),
                400..800 => (50_000, 0),
                800..900 => (50_000, 50_000),
                900..995 => (150_000, 0),
                _ => (1_000, 10_000_000),
            },
        }
    }

    fn subject(&mut self) -> String {
        let count = self.random.random_range(2..7);
        let words: Vec<&str> = (0..count).map(|_| word(&mut self.random)).collect();
        words.join(" ")
    }

    fn body(&mut self, bytes: usize) -> Cow<'static, str> {
        let text = text();
        let start = self.random.random_range(0..text.len());
        if let Some(piece) = text.get(start..start.saturating_add(bytes)) {
            return Cow::Borrowed(piece);
        }
        let mut body = String::with_capacity(bytes);
        body.push_str(text.get(start..).unwrap_or_default());
        while body.len() < bytes {
            body.push_str(text.get(..text.len().min(bytes - body.len())).unwrap_or_default());
        }
        body.truncate(bytes);
        Cow::Owned(body)
    }
}

fn word(random: &mut SmallRng) -> &'static str {
    // The cube of an even draw favours the first words about as language does.
    let draw: f64 = random.random();
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let index = (draw.powi(3) * WORDS.len() as f64) as usize;
    WORDS.get(index).copied().unwrap_or("and")
}

/// Nothing but ASCII, so that it can be cut anywhere.
pub(crate) fn text() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| {
        let mut random = SmallRng::seed_from_u64(1999);
        let mut text = String::with_capacity(TEXT_BYTES + LINE_BYTES);
        let mut line = 0;
        while text.len() < TEXT_BYTES {
            let word = word(&mut random);
            text.push_str(word);
            line += word.len() + 1;
            text.push(if line > LINE_BYTES { '\n' } else { ' ' });
            line = if line > LINE_BYTES { 0 } else { line };
        }
        text
    })
}

/// What is attached: bytes that repeat only after 251 of them.
#[must_use]
pub(crate) fn attachment(bytes: usize) -> Vec<u8> {
    (0..=250).cycle().take(bytes).collect()
}

/// A digest of a body that travels with it: its CRC-32 and its length.
#[must_use]
pub(crate) fn digest(body: &str) -> String {
    format!("{:08x}-{}", crc32fast::hash(body.as_bytes()), body.len())
}
