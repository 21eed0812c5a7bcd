//! How much a person may send within a day, so that a password that was stolen sends no flood.
//!
//! It is counted in memory, by the hour. A restart forgets it, which a thief of a password cannot bring about; in exchange a
//! message costs no further write. Who has sent nothing for a day takes no memory, and only people of the directory are counted.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use parking_lot::Mutex;
use scrinium_clock::Clock;

/// A day in hours.
const HOURS: usize = 24;

const HOUR_MS: u64 = 60 * 60 * 1000;

/// The most that one person sends within 24 hours. 0: as much as they like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllowanceLimits {
    /// Messages.
    pub messages: u64,
    /// Recipients of all messages; one who gets two counts twice.
    pub recipients: u64,
}

/// What people have sent. Clones are the same.
#[derive(Clone)]
pub struct Allowances {
    shared: Arc<Shared>,
}

struct Shared {
    limits: AllowanceLimits,
    clock: Clock,
    people: Mutex<People>,
}

#[derive(Default)]
struct People {
    sent: HashMap<Arc<str>, Sent>,
    /// The hour in which those who had sent nothing for a day were forgotten.
    swept: u64,
}

/// What a limit is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spent {
    Messages,
    Recipients,
}

/// Somebody has sent as much as they may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Overspent {
    pub(crate) spent: Spent,
    pub(crate) limit: u64,
    /// Hours until something of it is free again.
    pub(crate) wait_hours: u64,
}

impl std::fmt::Display for Overspent {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { spent, limit, wait_hours } = self;
        let of = match spent {
            Spent::Messages => "messages",
            Spent::Recipients => "recipients",
        };
        let hours = if *wait_hours == 1 { "an hour".to_owned() } else { format!("{wait_hours} hours") };
        write!(formatter, "You have reached the limit of {limit} {of} a day; send the rest in {hours}")
    }
}

/// What one person has sent in each of the last 24 hours.
#[derive(Clone, Copy, Default)]
struct Sent {
    /// The last hour in which something was counted.
    hour: u64,
    /// By the hour's place in the day, messages and recipients.
    hours: [(u32, u32); HOURS],
}

impl Sent {
    /// Forgets what is more than a day ago.
    fn turn(&mut self, hour: u64) {
        let passed = hour.saturating_sub(self.hour).min(HOURS as u64);
        for back in 0..passed {
            *self.slot(hour.saturating_sub(back)) = (0, 0);
        }
        self.hour = self.hour.max(hour);
    }

    fn slot(&mut self, hour: u64) -> &mut (u32, u32) {
        let place = usize::try_from(hour % HOURS as u64).unwrap_or_default();
        let [first, rest @ ..] = &mut self.hours;
        match place.checked_sub(1) {
            Some(place) => rest.get_mut(place).unwrap_or(first),
            None => first,
        }
    }

    fn sums(&self) -> (u64, u64) {
        let sum = |(messages, recipients), hour: &(u32, u32)| {
            (messages + u64::from(hour.0), recipients + u64::from(hour.1))
        };
        self.hours.iter().fold((0, 0), sum)
    }

    /// Hours until the oldest hour with something in it is a day ago.
    fn wait_hours(&mut self) -> u64 {
        let hour = self.hour;
        let waits = (1..=HOURS as u64).find(|wait| *self.slot(hour + wait) != (0, 0));
        waits.unwrap_or(1)
    }
}

impl Allowances {
    /// Nobody has sent anything.
    #[must_use]
    pub fn new(limits: AllowanceLimits, clock: Clock) -> Self {
        Self { shared: Arc::new(Shared { limits, clock, people: Mutex::default() }) }
    }

    /// Whether a person may send one message more, with this number of recipients.
    ///
    /// # Errors
    /// [`Overspent`]
    pub(crate) fn check(&self, person: &str, recipients: usize) -> Result<(), Overspent> {
        let hour = self.shared.hour();
        let mut people = self.shared.people.lock();
        let Some(sent) = people.sent.get_mut(person) else {
            let mut nothing = Sent { hour, ..Sent::default() };
            return self.shared.limits.check(&mut nothing, recipients);
        };
        sent.turn(hour);
        self.shared.limits.check(sent, recipients)
    }

    /// Counts a message that is coming, until it is [kept](Reservation::keep) or does not come.
    ///
    /// # Errors
    /// [`Overspent`]; then nothing is counted.
    pub(crate) fn reserve(&self, person: &str, recipients: usize) -> Result<Reservation, Overspent> {
        let hour = self.shared.hour();
        let mut people = self.shared.people.lock();
        people.sweep(hour);
        let person: Arc<str> = Arc::from(person);
        let sent = match people.sent.entry(Arc::clone(&person)) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(Sent { hour, ..Sent::default() }),
        };
        sent.turn(hour);
        self.shared.limits.check(sent, recipients)?;
        let recipients = u32::try_from(recipients).unwrap_or(u32::MAX);
        let slot = sent.slot(hour);
        *slot = (slot.0.saturating_add(1), slot.1.saturating_add(recipients));
        Ok(Reservation { shared: Arc::clone(&self.shared), person, hour, recipients, is_kept: false })
    }
}

impl Shared {
    fn hour(&self) -> u64 {
        self.clock.now_ms() / HOUR_MS
    }
}

impl AllowanceLimits {
    fn check(self, sent: &mut Sent, recipients: usize) -> Result<(), Overspent> {
        let (messages, before) = sent.sums();
        let all = before.saturating_add(recipients as u64);
        let (spent, limit) = if self.messages > 0 && messages >= self.messages {
            (Spent::Messages, self.messages)
        } else if self.recipients > 0 && all > self.recipients {
            (Spent::Recipients, self.recipients)
        } else {
            return Ok(());
        };
        Err(Overspent { spent, limit, wait_hours: sent.wait_hours() })
    }
}

impl People {
    fn sweep(&mut self, hour: u64) {
        if std::mem::replace(&mut self.swept, hour) != hour {
            self.sent.retain(|_, sent| hour.saturating_sub(sent.hour) < HOURS as u64);
        }
    }
}

/// A message that is counted. One that does not come is not.
pub(crate) struct Reservation {
    shared: Arc<Shared>,
    person: Arc<str>,
    hour: u64,
    recipients: u32,
    is_kept: bool,
}

impl Reservation {
    /// The message was taken.
    pub(crate) fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        let mut people = self.shared.people.lock();
        // A day later it counts no more anyhow.
        let Some(sent) = people.sent.get_mut(&self.person) else { return };
        if sent.hour.saturating_sub(self.hour) < HOURS as u64 {
            let slot = sent.slot(self.hour);
            *slot = (slot.0.saturating_sub(1), slot.1.saturating_sub(self.recipients));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use scrinium_clock::Clock;

    use super::*;

    #[test]
    fn a_day_of_messages_is_a_day_of_messages() {
        let manual = Clock::manual(1_795_684_851_000);
        let limits = AllowanceLimits { messages: 5, recipients: 40 };
        let allowances = Allowances::new(limits, manual.clock());
        let send = |person: &str, recipients| allowances.reserve(person, recipients).map(Reservation::keep);
        for _ in 0..4 {
            send("ada", 9).unwrap();
        }
        let over = Overspent { spent: Spent::Recipients, limit: 40, wait_hours: 24 };
        assert_eq!((send("ada", 5), allowances.check("ada", 5)), (Err(over), Err(over)));
        manual.advance(Duration::from_hours(3));
        send("ada", 4).unwrap();
        let over = Overspent { spent: Spent::Messages, limit: 5, wait_hours: 21 };
        assert_eq!(send("ada", 0), Err(over));
        assert!(over.to_string().contains("5 messages a day"));
        send("bob", 40).unwrap();
        manual.advance(Duration::from_hours(21));
        for _ in 0..4 {
            send("ada", 9).unwrap();
        }
        assert_eq!(send("ada", 1).unwrap_err().wait_hours, 3, "the fifth is of three hours later");
        manual.advance(Duration::from_hours(100));
        send("eve", 1).unwrap();
        assert_eq!(allowances.shared.people.lock().sent.len(), 1, "who sends nothing is forgotten");
    }

    #[test]
    fn what_does_not_come_is_not_counted_and_what_comes_at_once_is() {
        let limits = AllowanceLimits { messages: 2, recipients: 0 };
        let allowances = Allowances::new(limits, Clock::manual(1_795_684_851_000).clock());
        drop(allowances.reserve("ada", 1_000_000).unwrap());
        let (first, second) = (allowances.reserve("ada", 1).unwrap(), allowances.reserve("ada", 1).unwrap());
        assert!(allowances.reserve("ada", 1).is_err(), "two are on their way");
        drop(first);
        second.keep();
        allowances.reserve("ada", 1).unwrap().keep();
        assert!(allowances.check("ada", 1).is_err());
        let unlimited = AllowanceLimits { messages: 0, recipients: 0 };
        let allowances = Allowances::new(unlimited, Clock::manual(1_795_684_851_000).clock());
        for _ in 0..100 {
            allowances.reserve("ada", 10_000).unwrap().keep();
        }
    }
}
