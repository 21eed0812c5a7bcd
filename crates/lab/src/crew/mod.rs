//! The users that one process simulates, and what that takes of the process.

mod context;
mod critical;
mod desk;
mod documents;
mod groupware;
mod plan;
mod resources;
mod user;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use scrinium_lab_report::Machine;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use self::context::Context;
use self::user::User;
use crate::driver::{Driver, Person};
use crate::measure::{KeptSecond, Recorded, Recorder};
use crate::monitor::{ProcessMeter, Usage, WaitMeter, Waiting, cpus_allowed, machine_identity, this_machine};

pub(crate) use context::Stop;
pub(crate) use critical::{Asked, CriticalRegion};
pub use plan::{Objectives, Plan, StopConditions};
pub(crate) use resources::provide;
pub use resources::{Supplies, judge as judge_supplies};

/// The heart of a driver beats so often; how late it does tells how late an answer is seen.
const BEAT: Duration = Duration::from_millis(10);

/// Which of the users a driver simulates: every `of`th, beginning with number `index`, so that all drivers are
/// equally busy at any moment of the ramp-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Share {
    pub(crate) index: usize,
    pub(crate) of: usize,
}

impl Share {
    pub(crate) const WHOLE: Self = Self { index: 0, of: 1 };

    fn takes(self, index: usize) -> bool {
        index % self.of.max(1) == self.index
    }

    /// How many of this many users it takes.
    pub(crate) fn count(self, users: usize) -> usize {
        (0..users).filter(|index| self.takes(*index)).count()
    }
}

/// What a crew did since it was last asked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct CrewSecond {
    pub(crate) kept: KeptSecond,
    pub(crate) active: usize,
    pub(crate) first_rounds: u64,
    /// Users that have not ended.
    pub(crate) left: usize,
    pub(crate) usage: Option<Usage>,
}

impl CrewSecond {
    /// Adds what another driver did in the same second.
    pub(crate) fn add(&mut self, other: &Self) {
        self.kept.merge(&other.kept);
        self.active += other.active;
        self.first_rounds += other.first_rounds;
        self.left += other.left;
        match (&mut self.usage, other.usage) {
            (Some(here), Some(there)) => here.add(there),
            (here, there) => *here = here.or(there),
        }
    }
}

/// What simulating took of a driver's process in the hold phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct DriverUse {
    pub users: usize,
    pub pid: u32,
    pub held_s: f64,
    /// Seconds of one CPU.
    pub cpu_s: f64,
    /// CPUs that it may use at a time.
    pub cpus: f64,
    /// `None` where the system does not count waits.
    pub waiting: Option<Waiting>,
    /// The most that it was, in the whole run.
    pub resident_bytes: u64,
    pub machine: Machine,
    pub machine_identity: String,
}

/// Everything that a crew has to say at the end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct CrewOutcome {
    pub(crate) recorded: Recorded,
    /// How far each user was behind the timetable.
    pub(crate) behind: Vec<Duration>,
    pub(crate) broken_off: usize,
    pub(crate) driver: DriverUse,
}

pub(crate) struct LocalUsers {
    context: Arc<Context>,
    users: JoinSet<Duration>,
    meter: Option<ProcessMeter>,
    waits: Option<WaitMeter>,
    heart: Option<JoinHandle<()>>,
    last: Instant,
    hold: Option<(Instant, Instant)>,
    outcome: CrewOutcome,
}

impl LocalUsers {
    pub(crate) fn new(plan: &Plan, people: &[Person], critical: CriticalRegion) -> Self {
        let (stop, _) = watch::channel(None);
        let context = Arc::new(Context {
            script: Arc::clone(&plan.script),
            recorder: Arc::new(Recorder::new()),
            model: plan.model,
            speedup: plan.speedup,
            keep_alive: plan.keep_alive,
            seed: plan.seed,
            run: rand::random(),
            people: people.iter().map(|person| person.name.clone()).collect(),
            normal_message_size: plan.normal_message_size(),
            recipient_skew: plan.recipient_skew(),
            replicated_documents: plan.number("ReplicateDocuments", 5),
            critical,
            first_rounds: AtomicU64::new(0),
            active: AtomicUsize::new(0),
            stop,
        });
        let driver = DriverUse {
            pid: std::process::id(),
            cpus: cpus_allowed(),
            machine: this_machine(),
            machine_identity: machine_identity(),
            ..DriverUse::default()
        };
        Self {
            context,
            users: JoinSet::new(),
            meter: ProcessMeter::new(std::process::id()),
            waits: WaitMeter::new(),
            heart: None,
            last: Instant::now(),
            hold: None,
            outcome: CrewOutcome { driver, ..CrewOutcome::default() },
        }
    }

    pub(crate) fn recorder(&self) -> &Arc<Recorder> {
        &self.context.recorder
    }

    /// The users of this share begin, spread over a time from `at`.
    pub(crate) fn begin<D: Driver>(
        &mut self,
        driver: &Arc<D>,
        people: &[Person],
        share: Share,
        at: Instant,
        spread: Duration,
    ) {
        for (index, person) in people.iter().enumerate().filter(|(index, _)| share.takes(*index)) {
            #[allow(clippy::cast_precision_loss, reason = "users are few")]
            let fraction = index as f64 / people.len() as f64;
            let start = at + spread.mul_f64(fraction);
            let (driver, context, person) = (Arc::clone(driver), Arc::clone(&self.context), person.clone());
            self.users.spawn(async move {
                context.sleep_until(start, person.number).await;
                let session = driver.session(&person);
                context.active.fetch_add(1, Ordering::Relaxed);
                let behind = Box::new(User::new(Arc::clone(&context), person, session, start)).run().await;
                context.active.fetch_sub(1, Ordering::Relaxed);
                behind
            });
        }
        self.outcome.driver.users = self.users.len();
        self.heart = Some(tokio::spawn(beat(Arc::clone(&self.context.recorder))));
        self.last = Instant::now();
        self.meter.as_mut().map(ProcessMeter::read);
        self.waits.as_mut().map(WaitMeter::read);
    }

    /// What is due between these moments counts.
    pub(crate) fn hold(&mut self, from: Instant, to: Instant) {
        self.hold = Some((from, to));
        self.context.recorder.begin_hold(from);
        self.context.recorder.end_hold(to);
    }

    /// Counting ends earlier than was said.
    pub(crate) fn end_hold(&mut self, at: Instant) {
        if let Some((_, to)) = &mut self.hold {
            *to = at.min(*to);
            self.context.recorder.end_hold(*to);
        }
    }

    pub(crate) fn stop(&self, stop: Stop) {
        self.context.stop.send_replace(Some(stop));
    }

    /// Whether anyone is still at work.
    pub(crate) fn has_users(&mut self) -> bool {
        self.gather();
        !self.users.is_empty()
    }

    fn gather(&mut self) {
        while let Some(ended) = self.users.try_join_next() {
            match ended {
                Ok(behind) => self.outcome.behind.push(behind),
                Err(_) => self.outcome.broken_off += 1,
            }
        }
    }

    /// What happened since the last call.
    pub(crate) fn second(&mut self) -> CrewSecond {
        self.gather();
        let usage = self.use_of_process();
        CrewSecond {
            kept: self.context.recorder.take_second(),
            active: self.context.active.load(Ordering::Relaxed),
            first_rounds: self.context.first_rounds.load(Ordering::Relaxed),
            left: self.users.len(),
            usage,
        }
    }

    fn use_of_process(&mut self) -> Option<Usage> {
        let now = Instant::now();
        let length = now.saturating_duration_since(self.last);
        let middle = self.last + length / 2;
        self.last = now;
        let usage = self.meter.as_mut().and_then(ProcessMeter::read);
        let waiting = self.waits.as_mut().map(WaitMeter::read);
        let driver = &mut self.outcome.driver;
        if let Some(usage) = usage {
            driver.resident_bytes = driver.resident_bytes.max(usage.resident_bytes);
        }
        if self.hold.is_some_and(|(from, to)| (from..to).contains(&middle)) {
            driver.held_s += length.as_secs_f64();
            driver.cpu_s += usage.map_or(0.0, |usage| usage.user_s + usage.system_s);
            if let Some(waiting) = waiting {
                driver.waiting.get_or_insert_default().add(waiting);
            }
        }
        usage
    }

    /// Users that have not ended are broken off.
    pub(crate) fn finish(mut self) -> CrewOutcome {
        self.outcome.broken_off += self.users.len();
        self.users.abort_all();
        self.outcome.recorded = self.context.recorder.recorded();
        std::mem::take(&mut self.outcome)
    }
}

impl Drop for LocalUsers {
    fn drop(&mut self) {
        if let Some(heart) = &self.heart {
            heart.abort();
        }
    }
}

/// Sleeps for a moment again and again, and records how much too long that took. Users who are behind their
/// timetable are not woken, so that their own lateness would say nothing.
async fn beat(recorder: Arc<Recorder>) {
    loop {
        let due = Instant::now() + BEAT;
        tokio::time::sleep_until(due.into()).await;
        let now = Instant::now();
        recorder.beat(now.saturating_duration_since(due), now);
    }
}
