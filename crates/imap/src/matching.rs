//! What a search means for one message (RFC 9051, section 6.4.4; RFC 5032, 7162, 8474, 8514), for those who keep the messages.

use std::cmp::Ordering;

use scrinium_imap_wire::{DateTime, Flag, SearchKey, SequenceSet, SortKey};
use scrinium_line_wire::day_number;
use scrinium_mailbox::{
    FolderView, MessageMap, MessageText, NumberSet, SentDate, base_subject, decode_words,
};

use crate::request::Entry;

/// What a search is asked against.
#[derive(Clone, Copy, Debug)]
pub struct SearchContext<'a> {
    /// The folder as the session has told it.
    pub view: &'a FolderView,
    /// `$`
    pub saved: &'a NumberSet,
    /// The time, in seconds since 1970.
    pub now_seconds: i64,
}

/// Texts of a message, which are only looked at where a key asks for them.
pub trait SearchText {
    /// The values of all fields of this name, decoded.
    fn field(&mut self, name: &str) -> Vec<String>;
    /// The header, decoded.
    fn header(&mut self) -> String;
    /// The text of the body, decoded.
    fn body(&mut self) -> String;
}

impl SearchText for MessageText<'_> {
    fn field(&mut self, name: &str) -> Vec<String> {
        MessageText::field(self, name)
    }

    fn header(&mut self) -> String {
        MessageText::header(self)
    }

    fn body(&mut self) -> String {
        MessageText::body(self)
    }
}

/// Whether a message is one that all keys ask for, as far as it can be told without its texts: `None` where they are needed.
#[must_use]
pub fn matches_without_text(keys: &[SearchKey], entry: &Entry, context: SearchContext<'_>) -> Option<bool> {
    all(keys, &mut |key| simple(key, entry, context))
}

/// Whether a message is one that all keys ask for.
pub fn matches(
    keys: &[SearchKey],
    entry: &Entry,
    texts: &mut impl SearchText,
    context: SearchContext<'_>,
) -> bool {
    let mut one = |key: &SearchKey| simple(key, entry, context).or_else(|| Some(in_text(key, texts)));
    all(keys, &mut one).unwrap_or(false)
}

/// All of these: `None` as long as nothing is false and something is unknown.
fn all(keys: &[SearchKey], one: &mut impl FnMut(&SearchKey) -> Option<bool>) -> Option<bool> {
    let mut known = Some(true);
    for key in keys {
        match truth(key, one) {
            Some(false) => return Some(false),
            Some(true) => {}
            None => known = None,
        }
    }
    known
}

/// Keys are nested no deeper than the parser allows.
fn truth(key: &SearchKey, one: &mut impl FnMut(&SearchKey) -> Option<bool>) -> Option<bool> {
    match key {
        SearchKey::And(keys) => all(keys, one),
        SearchKey::Not(key) => truth(key, one).map(|found| !found),
        SearchKey::Fuzzy(key) => truth(key, one),
        SearchKey::Or(first, second) => match (truth(first, one), truth(second, one)) {
            (Some(true), _) | (_, Some(true)) => Some(true),
            (Some(false), other) | (other, Some(false)) => other,
            (None, None) => None,
        },
        key => one(key),
    }
}

/// A key that needs no text; `None` for one that does.
fn simple(key: &SearchKey, entry: &Entry, context: SearchContext<'_>) -> Option<bool> {
    let day = |time: &DateTime| local_day(time);
    let saved_day = entry.save_date.as_ref().map(day);
    let sent = || {
        entry
            .map
            .as_ref()
            .map(|map| map.sent.map_or_else(|| day(&entry.internal_date), |sent| sent.local_day))
    };
    Some(match key {
        SearchKey::All => true,
        SearchKey::Flag(flag, set) => has_flag(entry, flag) == *set,
        SearchKey::New => entry.flags.recent && !entry.flags.seen,
        SearchKey::Old => !entry.flags.recent,
        SearchKey::Recent => entry.flags.recent,
        SearchKey::Before(date) => day(&entry.internal_date) < number(date.0),
        SearchKey::On(date) => day(&entry.internal_date) == number(date.0),
        SearchKey::Since(date) => day(&entry.internal_date) >= number(date.0),
        SearchKey::SavedBefore(date) => saved_day.is_some_and(|day| day < number(date.0)),
        SearchKey::SavedOn(date) => saved_day.is_some_and(|day| day == number(date.0)),
        SearchKey::SavedSince(date) => saved_day.is_some_and(|day| day >= number(date.0)),
        SearchKey::SaveDateSupported => saved_day.is_some(),
        SearchKey::SentBefore(date) => sent()? < number(date.0),
        SearchKey::SentOn(date) => sent()? == number(date.0),
        SearchKey::SentSince(date) => sent()? >= number(date.0),
        SearchKey::Larger(bytes) => entry.bytes > *bytes,
        SearchKey::Smaller(bytes) => entry.bytes < *bytes,
        SearchKey::Older(seconds) => age(entry, context) >= i64::from(*seconds),
        SearchKey::Younger(seconds) => age(entry, context) <= i64::from(*seconds),
        SearchKey::Uid(SequenceSet::Saved) | SearchKey::Sequence(SequenceSet::Saved) => {
            context.saved.contains(entry.uid)
        }
        SearchKey::Uid(set) => is_in(set, entry.uid, context.view.state().last_uid),
        SearchKey::Sequence(set) => is_in(set, entry.number, context.view.exists()),
        SearchKey::ModSeq(_, change) => entry.mod_seq >= *change,
        SearchKey::EmailId(id) => entry.email_id == *id,
        SearchKey::ThreadId(id) => entry.thread_id.as_ref() == Some(id),
        _ => return None,
    })
}

fn in_text(key: &SearchKey, texts: &mut impl SearchText) -> bool {
    let holds = |text: &str, wanted: &str| folded(text).contains(&folded(wanted));
    let mut field = |name: &str, wanted: &str| {
        let values = texts.field(name);
        values.iter().any(|value| holds(value, wanted))
    };
    match key {
        SearchKey::From(wanted) => field("From", wanted),
        SearchKey::To(wanted) => field("To", wanted),
        SearchKey::Cc(wanted) => field("Cc", wanted),
        SearchKey::Bcc(wanted) => field("Bcc", wanted),
        SearchKey::Subject(wanted) => field("Subject", wanted),
        // An empty text is in any field that is there.
        SearchKey::Header(name, wanted) => field(name, wanted),
        SearchKey::Body(wanted) => holds(&texts.body(), wanted),
        SearchKey::Text(wanted) => holds(&texts.header(), wanted) || holds(&texts.body(), wanted),
        _ => false,
    }
}

fn folded(text: &str) -> String {
    text.chars().flat_map(char::to_lowercase).collect()
}

fn has_flag(entry: &Entry, flag: &Flag) -> bool {
    let mut flags = entry.flags;
    match flags.place(flag) {
        Some(is_set) => *is_set,
        None => entry.keywords.iter().any(|keyword| keyword.is(flag.as_str())),
    }
}

fn is_in(set: &SequenceSet, number: u32, last: u32) -> bool {
    let SequenceSet::Ranges(_) = set else { return false };
    NumberSet::of_ranges(set.resolve(last)).contains(number)
}

fn number(day: scrinium_imap_wire::Day) -> i64 {
    let (year, month, day) = day.parts();
    day_number(i64::from(year), month, day)
}

/// The day of INTERNALDATE, without its zone (RFC 9051, section 6.4.4).
fn local_day(time: &DateTime) -> i64 {
    number(time.date().0)
}

/// Seconds since 1970.
#[must_use]
pub fn utc_seconds(time: &DateTime) -> i64 {
    local_day(time) * 86_400 + i64::from(time.second_of_day()) - i64::from(time.zone_minutes()) * 60
}

fn age(entry: &Entry, context: SearchContext<'_>) -> i64 {
    context.now_seconds.saturating_sub(utc_seconds(&entry.internal_date))
}

/// What a message is sorted by that is a number (RFC 5256, section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct SortNumbers {
    pub uid: u32,
    /// Seconds since 1970.
    pub arrival: i64,
    /// Seconds since 1970. Where it was not dated, it was sent when it came.
    pub sent: i64,
    pub bytes: u64,
}

impl SortNumbers {
    /// Of a message that was sent then, as its header says.
    #[must_use]
    pub fn new(entry: &Entry, sent: Option<SentDate>) -> Self {
        let arrival = utc_seconds(&entry.internal_date);
        let sent = sent.map_or(arrival, |sent| sent.utc_seconds);
        Self { uid: entry.uid, arrival, sent, bytes: entry.bytes }
    }

    /// Whether messages can be sorted by these keys without their texts.
    #[must_use]
    pub fn suffice(keys: &[(SortKey, bool)]) -> bool {
        keys.iter().all(|(key, _)| matches!(key, SortKey::Arrival | SortKey::Date | SortKey::Size))
    }

    /// The order of two messages: by those of these keys that are numbers, and then by UID.
    #[must_use]
    pub fn compare(&self, other: &Self, keys: &[(SortKey, bool)]) -> Ordering {
        compare(keys, |key| self.by(other, key)).then(self.uid.cmp(&other.uid))
    }

    fn by(&self, other: &Self, key: SortKey) -> Ordering {
        match key {
            SortKey::Arrival => self.arrival.cmp(&other.arrival),
            SortKey::Date => self.sent.cmp(&other.sent),
            SortKey::Size => self.bytes.cmp(&other.bytes),
            _ => Ordering::Equal,
        }
    }
}

/// The first key that tells two messages apart decides.
fn compare(keys: &[(SortKey, bool)], by: impl Fn(SortKey) -> Ordering) -> Ordering {
    for (key, is_reversed) in keys {
        let order = by(*key);
        if order != Ordering::Equal {
            return if *is_reversed { order.reverse() } else { order };
        }
    }
    Ordering::Equal
}

/// What a message is sorted by (RFC 5256, section 3; RFC 5957).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortFields {
    numbers: SortNumbers,
    subject: String,
    from: String,
    to: String,
    cc: String,
    display_from: String,
    display_to: String,
}

impl SortFields {
    /// Of a message and its map.
    #[must_use]
    pub fn new(entry: &Entry, map: &MessageMap) -> Self {
        let envelope = map.raw_envelope().cloned().unwrap_or_default();
        let mailbox = |addresses: &[scrinium_imap_wire::Address]| {
            let first = addresses.first().and_then(|address| address.mailbox.as_deref());
            folded(&String::from_utf8_lossy(first.unwrap_or_default()))
        };
        let display = |addresses: &[scrinium_imap_wire::Address]| {
            let Some(first) = addresses.first() else { return String::new() };
            let name = first.name.as_deref().or(first.mailbox.as_deref()).unwrap_or_default();
            folded(&decode_words(name))
        };
        Self {
            numbers: SortNumbers::new(entry, map.sent),
            subject: base_subject(envelope.subject.as_deref().unwrap_or_default()).text,
            from: mailbox(&envelope.from),
            to: mailbox(&envelope.to),
            cc: mailbox(&envelope.cc),
            display_from: display(&envelope.from),
            display_to: display(&envelope.to),
        }
    }

    /// Its UID.
    #[must_use]
    pub const fn uid(&self) -> u32 {
        self.numbers.uid
    }

    /// What it takes of memory, about.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        let texts = [&self.subject, &self.from, &self.to, &self.cc, &self.display_from, &self.display_to];
        size_of::<Self>() + texts.iter().map(|text| text.capacity()).sum::<usize>()
    }

    /// The order of two messages: by these keys, and then by UID.
    #[must_use]
    pub fn compare(&self, other: &Self, keys: &[(SortKey, bool)]) -> Ordering {
        let by = |key| match key {
            SortKey::Subject => self.subject.cmp(&other.subject),
            SortKey::From => self.from.cmp(&other.from),
            SortKey::To => self.to.cmp(&other.to),
            SortKey::Cc => self.cc.cmp(&other.cc),
            SortKey::DisplayFrom => self.display_from.cmp(&other.display_from),
            SortKey::DisplayTo => self.display_to.cmp(&other.display_to),
            SortKey::Arrival | SortKey::Date | SortKey::Size => self.numbers.by(&other.numbers, key),
        };
        compare(keys, by).then(self.uid().cmp(&other.uid()))
    }
}
