//! A world in simulated time: a queue on a disk that may crash, and servers that fail, hang, throttle and die.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use scrinium_mail_queue::outcome::{SessionEnd, SessionReport, Stage, Trouble};
use scrinium_mail_queue::{
    ConnectionUse, Dispatch, Ending, MemoryDueIndex, NoticeKind, NoticePlan, QueueEntry, QueuePolicy, Random,
    Record, Scheduler, SchedulerOptions, Step, rebuild_queue,
};

use crate::kit::{HOUR_MS, MINUTE_MS, SECOND_MS, START_MS, reply};

/// The server's end in the middle of its work.
#[derive(Debug)]
pub(crate) struct Crash;

/// How the servers of a domain behave.
#[derive(Clone, Debug)]
pub(crate) enum Behaviour {
    Healthy,
    /// Nobody answers before this.
    DeadUntil(u64),
    /// Connections are accepted, and nothing is said.
    Hanging,
    /// More connections than this are refused.
    Throttling(usize),
    /// One of this many attempts fails somewhere.
    Flaky(u64),
    /// One of this many answers to the last dot is lost.
    LosesAnswers(u64),
    /// Each recipient is greylisted until some time after the first attempt.
    Greylisting,
    /// Half of the recipients do not exist.
    HalfUnknown,
}

#[derive(Clone, Debug)]
struct Session {
    dispatch: Dispatch,
    report: SessionReport,
    /// When the last dot is through, and the recipients who then have it.
    taken: Vec<u32>,
}

#[derive(Clone, Debug)]
enum Happening {
    Connected(Dispatch),
    Taken(Session),
    Ended(Session),
}

pub(crate) struct World {
    pub(crate) now_ms: u64,
    pub(crate) policy: QueuePolicy,
    options: SchedulerOptions,
    random: Random,
    // What a crash leaves.
    disk: BTreeMap<String, Vec<Vec<u8>>>,
    pub(crate) notices: BTreeMap<String, (String, NoticePlan)>,
    pub(crate) removed: BTreeMap<String, QueueEntry>,
    // What it does not.
    pub(crate) entries: BTreeMap<String, QueueEntry>,
    index: MemoryDueIndex,
    pub(crate) scheduler: Scheduler,
    happenings: BTreeMap<(u64, u64), Happening>,
    number: u64,
    // The servers.
    pub(crate) behaviours: HashMap<String, Behaviour>,
    connected: HashMap<String, usize>,
    first_attempts: HashMap<String, u64>,
    /// How often a recipient's server has taken an entry, and how often it may have.
    pub(crate) received: BTreeMap<(String, u32), u32>,
    pub(crate) unknown: BTreeMap<String, u32>,
    // What is measured.
    pub(crate) attempts: HashMap<String, u64>,
    pub(crate) lateness_ms: HashMap<String, Vec<u64>>,
    pub(crate) order: Vec<String>,
    pub(crate) most_open: usize,
    pub(crate) most_window: usize,
    crash_in: Option<u64>,
    pub(crate) crashes: u32,
}

impl World {
    pub(crate) fn new(seed: u64, options: SchedulerOptions) -> Self {
        Self {
            now_ms: START_MS,
            policy: QueuePolicy { serving_since_ms: START_MS, ..QueuePolicy::default() },
            scheduler: Scheduler::new(options.clone(), seed),
            options,
            random: Random::new(seed),
            disk: BTreeMap::new(),
            notices: BTreeMap::new(),
            removed: BTreeMap::new(),
            entries: BTreeMap::new(),
            index: MemoryDueIndex::default(),
            happenings: BTreeMap::new(),
            number: 0,
            behaviours: HashMap::new(),
            connected: HashMap::new(),
            first_attempts: HashMap::new(),
            received: BTreeMap::new(),
            unknown: BTreeMap::new(),
            attempts: HashMap::new(),
            lateness_ms: HashMap::new(),
            order: Vec::new(),
            most_open: 0,
            most_window: 0,
            crash_in: None,
            crashes: 0,
        }
    }

    /// The next crash, at any step between records and effects.
    pub(crate) fn crash_within(&mut self, steps: u64) {
        self.crash_in = Some(self.random.below(steps));
    }

    fn crash_point(&mut self) -> Result<(), Crash> {
        match &mut self.crash_in {
            None => Ok(()),
            Some(0) => {
                self.crash_in = None;
                Err(Crash)
            }
            Some(left) => {
                *left -= 1;
                Ok(())
            }
        }
    }

    pub(crate) fn queue(&mut self, entry: QueueEntry) {
        let record = entry.snapshot(self.now_ms);
        self.disk.entry(entry.id.clone()).or_default().push(record.encode());
        self.index.set(&entry.id, entry.due_row(&self.policy));
        self.entries.insert(entry.id.clone(), entry);
    }

    /// Writes a record, with the row of the index in the same batch.
    pub(crate) fn write(&mut self, record: &Record) -> Result<(), Crash> {
        self.crash_point()?;
        let records = self.disk.get_mut(&record.entry).unwrap();
        records.push(record.encode());
        let entry = self.entries.get_mut(&record.entry).unwrap();
        entry.apply(record).unwrap();
        if records.len() > 8 {
            *records = vec![entry.snapshot(self.now_ms).encode()];
        }
        let row = entry.due_row(&self.policy);
        if entry.removed {
            let entry = self.entries.remove(&record.entry).unwrap();
            self.removed.insert(record.entry.clone(), entry);
            self.disk.remove(&record.entry);
        }
        self.index.set(&record.entry, row);
        self.crash_point()
    }

    /// The server's memory is gone: the records give the state again.
    pub(crate) fn restart(&mut self) {
        self.crashes += 1;
        let records: Vec<Record> =
            self.disk.values().flatten().map(|bytes| Record::decode(bytes).unwrap()).collect();
        self.entries = rebuild_queue(&records).unwrap();
        self.happenings.clear();
        self.connected.clear();
        self.index = MemoryDueIndex::default();
        let seed = self.random.number();
        self.scheduler = Scheduler::new(self.options.clone(), seed);
        self.policy.serving_since_ms = self.now_ms;
        for id in self.entries.keys().cloned().collect::<Vec<_>>() {
            self.index.set(&id, self.entries[&id].due_row(&self.policy));
            if let Some(record) = self.entries[&id].interrupted(self.now_ms) {
                *self.unknown.entry(id.clone()).or_default() += 1;
                self.write(&record).unwrap();
            }
            // A crash in here is like one before.
            while self.settle(&id).is_err() {}
        }
    }

    /// Does what the entry's step says, until it waits for the scheduler or for time.
    fn settle(&mut self, id: &str) -> Result<(), Crash> {
        while let Some(entry) = self.entries.get(id) {
            let record = match entry.step(self.now_ms, &self.policy) {
                Step::Notify(plan) => {
                    let record = entry.noticed(self.now_ms, &plan);
                    self.crash_point()?;
                    // A notice that is there already stays as it is.
                    self.notices.entry(plan.id.clone()).or_insert_with(|| (id.to_owned(), plan));
                    record
                }
                Step::Expire => entry.expire(self.now_ms, &self.policy).unwrap(),
                Step::Remove => entry.remove(self.now_ms, &self.policy).unwrap(),
                Step::Attempt | Step::Await | Step::Wait(_) => break,
            };
            self.write(&record)?;
        }
        if let Some(entry) = self.entries.get(id) {
            self.index.set(id, entry.due_row(&self.policy));
        }
        Ok(())
    }

    fn happens(&mut self, in_ms: u64, happening: Happening) {
        self.number += 1;
        self.happenings.insert((self.now_ms + in_ms, self.number), happening);
    }

    /// Everything that is to be done at this moment.
    fn work(&mut self) -> Result<(), Crash> {
        for id in self.scheduler.deadlines(self.now_ms, &mut self.index).unwrap() {
            self.settle(&id)?;
        }
        self.scheduler.stale_connections(self.now_ms);
        loop {
            let has_more = self.scheduler.refill(self.now_ms, &mut self.index).unwrap();
            self.most_window = self.most_window.max(self.scheduler.window_entries());
            let mut dealt = false;
            while let Some(dispatch) = self.scheduler.next(self.now_ms) {
                dealt = true;
                self.begin(dispatch)?;
            }
            if !has_more && !dealt {
                return Ok(());
            }
        }
    }

    fn begin(&mut self, dispatch: Dispatch) -> Result<(), Crash> {
        let begun = self.entries.get(&*dispatch.entry).and_then(|entry| {
            let record = entry.begin(self.now_ms, &self.policy)?;
            Some((record, entry.due_ms, entry.waiting()))
        });
        let Some((record, due_ms, waiting)) = begun else {
            self.scheduler.cancel(dispatch.attempt, self.now_ms);
            return self.settle(&dispatch.entry);
        };
        let host = dispatch.destination.host.clone();
        *self.attempts.entry(host.clone()).or_default() += 1;
        self.lateness_ms.entry(host).or_default().push(self.now_ms - due_ms);
        self.order.push(dispatch.entry.to_string());
        self.most_open = self.most_open.max(self.scheduler.open_attempts());
        self.write(&record)?;
        self.connect(dispatch, &waiting);
        Ok(())
    }

    fn connect(&mut self, dispatch: Dispatch, waiting: &[u32]) {
        let host = dispatch.destination.host.clone();
        let connected = self.connected.entry(host.clone()).or_default();
        *connected += 1;
        let is_over = |most: usize| *connected > most;
        let behaviour = self.behaviours.get(&host).cloned().unwrap_or(Behaviour::Healthy);
        let broken = |stage, trouble| SessionEnd::Broken { stage, trouble };
        let mut accepted = waiting.to_vec();
        let mut answers = vec!["250 2.1.5 Ok"; waiting.len()];
        let taken = SessionEnd::Answered(reply("250 2.0.0 Taken"));
        let first_ms = *self.first_attempts.entry(dispatch.entry.to_string()).or_insert(self.now_ms);
        let (end, time_ms) = match behaviour {
            Behaviour::DeadUntil(until_ms) if self.now_ms < until_ms => {
                (broken(Stage::Connect, Trouble::TimedOut), 30 * SECOND_MS)
            }
            Behaviour::Hanging => (broken(Stage::Greeting, Trouble::TimedOut), 5 * MINUTE_MS),
            Behaviour::Throttling(most) if is_over(most) => {
                (SessionEnd::Refused { stage: Stage::Greeting, reply: reply("421 4.7.0 Too many") }, 100)
            }
            Behaviour::Flaky(one_of) if self.random.below(one_of) == 0 => match self.random.below(4) {
                0 => (broken(Stage::Connect, Trouble::Refused), 10),
                1 => (broken(Stage::Data, Trouble::Closed), 500),
                2 => (SessionEnd::Refused { stage: Stage::Sender, reply: reply("451 4.3.0 Later") }, 200),
                _ => (SessionEnd::Answered(reply("452 4.3.1 No space")), 900),
            },
            Behaviour::LosesAnswers(one_of) if self.random.below(one_of) == 0 => {
                (broken(Stage::FinalDot, Trouble::TimedOut), 10 * MINUTE_MS)
            }
            Behaviour::Greylisting if self.now_ms < first_ms + 4 * MINUTE_MS => {
                answers.fill("450 4.2.0 Greylisted");
                (SessionEnd::NobodyAccepted, 300)
            }
            Behaviour::HalfUnknown => {
                accepted.retain(|place| place % 2 == 0);
                let refused = waiting.iter().zip(&mut answers).filter(|(place, _)| *place % 2 == 1);
                refused.for_each(|(_, answer)| *answer = "550 5.1.1 Unknown");
                (if accepted.is_empty() { SessionEnd::NobodyAccepted } else { taken }, 300)
            }
            _ => (taken, 200 + self.random.below(300)),
        };
        let was_taken = match &end {
            SessionEnd::Answered(reply) => reply.is_success(),
            SessionEnd::Broken { stage, .. } => *stage == Stage::FinalDot,
            _ => false,
        };
        let reaches = !matches!(end, SessionEnd::Broken { stage: Stage::Connect | Stage::Greeting, .. });
        let report = SessionReport {
            host: Some(format!("mx.{host}")),
            has_dsn: true,
            is_final: false,
            recipients: answers.into_iter().map(reply).collect(),
            end,
        };
        if reaches && dispatch.connection.is_none() {
            self.happens(10, Happening::Connected(dispatch.clone()));
        }
        let session = Session { dispatch, report, taken: if was_taken { accepted } else { Vec::new() } };
        // The server has the message a moment before we have its answer.
        self.happens(time_ms.saturating_sub(50), Happening::Taken(session.clone()));
        self.happens(time_ms, Happening::Ended(session));
    }

    fn happen(&mut self, happening: Happening) -> Result<(), Crash> {
        match happening {
            Happening::Connected(dispatch) => self.scheduler.connected(dispatch.attempt),
            Happening::Taken(session) => {
                let id = session.dispatch.entry.to_string();
                for place in session.taken {
                    *self.received.entry((id.clone(), place)).or_default() += 1;
                }
                self.crash_point()?;
            }
            Happening::Ended(session) => self.end(&session)?,
        }
        Ok(())
    }

    fn end(&mut self, session: &Session) -> Result<(), Crash> {
        let id = session.dispatch.entry.to_string();
        *self.connected.get_mut(&session.dispatch.destination.host).unwrap() -= 1;
        let entry = &self.entries[&id];
        let waiting = entry.waiting();
        let outcomes = session.report.outcomes(waiting.len());
        if outcomes.iter().any(|outcome| outcome.ending == Ending::Unknown) {
            *self.unknown.entry(id.clone()).or_default() += 1;
        }
        let outcomes: Vec<_> = waiting.into_iter().zip(outcomes).collect();
        let record = entry.end(self.now_ms, &outcomes, &self.policy, &mut self.random).unwrap();
        self.write(&record)?;
        self.scheduler.finish(
            session.dispatch.attempt,
            session.report.effect(),
            ConnectionUse::Closed,
            self.now_ms,
        );
        self.settle(&id)
    }

    /// Lets time pass. Gives whether the server crashed before the end.
    pub(crate) fn run_until(&mut self, end_ms: u64) -> Result<(), Crash> {
        loop {
            self.work()?;
            let next = self.happenings.first_key_value().map(|((time_ms, _), _)| *time_ms);
            let wake = self.scheduler.wake_ms(self.now_ms, &mut self.index).unwrap();
            let Some(next_ms) = next.into_iter().chain(wake).min().filter(|next_ms| *next_ms < end_ms) else {
                self.now_ms = end_ms;
                return Ok(());
            };
            self.now_ms = next_ms.max(self.now_ms);
            while let Some(first) = self.happenings.first_entry() {
                if first.key().0 > self.now_ms {
                    break;
                }
                let happening = first.remove();
                self.happen(happening)?;
            }
        }
    }

    /// Runs through crashes, about one in `steps` records or effects.
    pub(crate) fn run_crashing_until(&mut self, end_ms: u64, steps: Option<u64>) {
        loop {
            if let Some(steps) = steps {
                self.crash_within(steps);
            }
            match self.run_until(end_ms) {
                Ok(()) => break,
                Err(Crash) => {
                    self.crash_in = None;
                    self.now_ms += SECOND_MS;
                    self.restart();
                }
            }
        }
        self.crash_in = None;
    }

    /// What holds of every message at every time. `ended` are all entries, those that are gone as well.
    pub(crate) fn check(&self) {
        let mut told: BTreeMap<(&str, NoticeKind), BTreeSet<u32>> = BTreeMap::new();
        for (id, plan) in self.notices.values() {
            for place in &plan.recipients {
                let is_new = told.entry((id, plan.kind)).or_default().insert(*place);
                assert!(is_new, "{id}: recipient {place} is twice in notices of {:?}", plan.kind);
            }
        }
        for (id, entry) in self.entries.iter().chain(&self.removed) {
            for (place, recipient) in (0_u32..).zip(&entry.recipients) {
                let received = self.received.get(&(id.clone(), place)).copied().unwrap_or(0);
                let unknown = self.unknown.get(id).copied().unwrap_or(0);
                assert!(received <= 1 + unknown, "{id}: recipient {place} got it {received} times");
                let was_told =
                    told.get(&(id.as_str(), NoticeKind::Failure)).is_some_and(|set| set.contains(&place));
                match recipient.state {
                    scrinium_mail_queue::RecipientState::Delivered => {
                        assert!(received >= 1, "{id}: recipient {place} is delivered, and has it not");
                        assert!(
                            !was_told,
                            "{id}: recipient {place} has it, and its sender hears that he has not"
                        );
                    }
                    scrinium_mail_queue::RecipientState::Failed => {
                        let is_to_hear = entry.envelope.sender.is_some();
                        assert_eq!(was_told, is_to_hear, "{id}: recipient {place} failed");
                        assert!(received <= unknown, "{id}: recipient {place} failed, and has it");
                    }
                    scrinium_mail_queue::RecipientState::Waiting => {
                        assert!(!entry.removed, "{id}: recipient {place} is lost");
                        let latest_ms = entry.expires_ms.max(entry.due_ms).max(self.policy.serving_since_ms);
                        assert!(self.now_ms <= latest_ms + 2 * HOUR_MS, "{id}: is older than its lifetime");
                    }
                }
            }
            let is_null = entry.envelope.sender.is_none();
            assert!(
                !is_null || self.notices.values().all(|(of, _)| of != id),
                "{id}: the null sender is notified"
            );
        }
    }
}
