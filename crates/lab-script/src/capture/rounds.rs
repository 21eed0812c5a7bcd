//! From what users did to the round that is their average.

use std::collections::BTreeMap;
use std::time::Duration;

use super::log::{Action, Done, OperationLog};

/// A pause of this length ends a session; what comes after it is another one's beginning.
const SESSION_GAP_MS: u64 = 30 * 60_000;

/// A round that has more of one operation is cut here; the rest counts, and is not repeated one by one.
const MOST_OF_ONE: usize = 40;

/// Sizes are told by this many values of equal weight.
const SIZES: usize = 10;

/// The nth operation of its kind in a round.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct RoundStep {
    pub action: Action,
    /// In which part of all rounds it comes, from 0 to 1.
    pub share: f64,
    /// How far into a round it comes on average, from 0 to 1.
    pub place: f64,
    /// The pause before it.
    pub pause: (Duration, Duration),
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Rounds {
    pub users: usize,
    pub sessions: usize,
    pub rounds: usize,
    /// From the first operation of a session to its last, all together.
    pub at_work: Duration,
    pub steps: Vec<RoundStep>,
    /// Bytes of what was created and sent, by deciles, smallest first.
    pub sizes: BTreeMap<Action, Vec<u64>>,
    /// Operations that a step of another kind does with it: a document that is read in order to be written.
    pub joined: u64,
}

#[derive(Default)]
struct Pauses {
    count: u64,
    sum_ms: f64,
    squares: f64,
}

#[derive(Default)]
struct FoundRounds {
    rounds: u64,
    places: f64,
    pauses: Pauses,
}

impl Rounds {
    /// Cuts a log into sessions and rounds, and takes their average.
    #[must_use]
    pub fn of(log: &OperationLog) -> Self {
        let mut rounds = Self::default();
        let mut found: BTreeMap<(Action, usize), FoundRounds> = BTreeMap::new();
        let mut sizes: BTreeMap<Action, Vec<u64>> = BTreeMap::new();
        for person in log.done.chunk_by(|one, other| one.person == other.person) {
            rounds.users += 1;
            for session in person.chunk_by(|one, next| next.at_ms.saturating_sub(one.at_ms) < SESSION_GAP_MS)
            {
                rounds.add_session(session, &mut found);
            }
            for done in person.iter().filter(|done| matches!(done.action, Action::Add | Action::SendMessage))
            {
                sizes.entry(done.action).or_default().push(done.bytes);
            }
        }
        rounds.sizes = sizes.into_iter().map(|(action, sizes)| (action, deciles(sizes))).collect();
        #[allow(clippy::cast_precision_loss, reason = "rounds are far below 2^53")]
        let all = rounds.rounds.max(1) as f64;
        rounds.steps = found
            .into_iter()
            .map(|((action, _), found)| {
                #[allow(clippy::cast_precision_loss, reason = "rounds are far below 2^53")]
                let count = found.rounds.max(1) as f64;
                RoundStep {
                    action,
                    share: count / all,
                    place: found.places / count,
                    pause: found.pauses.range(),
                }
            })
            .collect();
        rounds.steps.sort_by(|one, other| one.place.total_cmp(&other.place));
        rounds
    }

    fn add_session(&mut self, session: &[Done], found: &mut BTreeMap<(Action, usize), FoundRounds>) {
        self.sessions += 1;
        if let (Some(first), Some(last)) = (session.first(), session.last()) {
            self.at_work += Duration::from_millis(last.at_ms - first.at_ms);
        }
        let joined = join(session);
        self.joined += (session.len() - joined.len()) as u64;
        // The last operation before a round tells how long the pause before its first one was.
        let mut before: Option<u64> = None;
        let begins = |done: &Done| matches!(done.action, Action::ChangeTo { .. });
        for round in joined.chunk_by(|_, next| !begins(next)) {
            self.rounds += 1;
            let mut counts: BTreeMap<Action, usize> = BTreeMap::new();
            #[allow(clippy::cast_precision_loss, reason = "a round is short")]
            let length = round.len() as f64;
            for (index, done) in round.iter().enumerate() {
                let nth = counts.entry(done.action).or_default();
                let found = found.entry((done.action, (*nth).min(MOST_OF_ONE))).or_default();
                *nth += 1;
                found.rounds += 1;
                #[allow(clippy::cast_precision_loss, reason = "a round is short")]
                let place = index as f64 / length;
                found.places += place;
                if let Some(before) = before {
                    found.pauses.add(done.at_ms.saturating_sub(before));
                }
                before = Some(done.at_ms);
            }
        }
    }
}

/// A document that is read and then written at once is one update, which reads it by itself.
fn join(session: &[Done]) -> Vec<Done> {
    const AT_ONCE_MS: u64 = 1000;
    let mut joined: Vec<Done> = Vec::with_capacity(session.len());
    for done in session {
        if done.action == Action::Update
            && let Some(read) = joined.last_mut().filter(|read| {
                read.action == Action::Navigate && done.at_ms.saturating_sub(read.at_ms) < AT_ONCE_MS
            })
        {
            *read = Done { at_ms: read.at_ms, ..*done };
            continue;
        }
        joined.push(*done);
    }
    joined
}

impl Pauses {
    #[allow(clippy::cast_precision_loss, reason = "a pause is less than an hour")]
    fn add(&mut self, ms: u64) {
        let ms = ms as f64;
        self.count += 1;
        self.sum_ms += ms;
        self.squares += ms * ms;
    }

    /// The even distribution of the same mean and, as far as no time is negative, of the same spread.
    #[allow(clippy::cast_precision_loss, reason = "operations are far below 2^53")]
    fn range(&self) -> (Duration, Duration) {
        let count = self.count.max(1) as f64;
        let mean = self.sum_ms / count;
        let deviation = (self.squares / count - mean * mean).max(0.0).sqrt();
        let half = (3.0_f64.sqrt() * deviation).min(mean);
        let time = |ms: f64| Duration::try_from_secs_f64(ms / 1000.0).unwrap_or_default();
        (time(mean - half), time(mean + half))
    }
}

/// The values in the middle of each tenth.
fn deciles(mut sizes: Vec<u64>) -> Vec<u64> {
    sizes.sort_unstable();
    let at = |tenth: usize| sizes.get((2 * tenth + 1) * sizes.len() / (2 * SIZES)).copied();
    (0..SIZES).filter_map(at).collect()
}
