//! The run itself: users begin, work and end, while every second is measured.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use super::context::{Context, Stop};
use super::plan::{Plan, StopConditions};
use super::syncs::SyncMeter;
use super::user::User;
use crate::driver::{Driver, Person};
use crate::measure::{KeptSecond, Recorder};
use crate::monitor::{ProcessMeter, Usage};
use crate::progress::Progress;

/// A phase of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the names say it")]
pub enum Phase {
    RampUp,
    Hold,
    RampDown,
}

impl Phase {
    /// For people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::RampUp => "ramp-up",
            Self::Hold => "hold",
            Self::RampDown => "ramp-down",
        }
    }
}

/// One second of a run.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Tick {
    pub phase: Phase,
    /// Seconds after the run's beginning at which it ended, and its length.
    pub at_s: f64,
    pub length_s: f64,
    pub active_users: usize,
    pub kept: KeptSecond,
    pub server: Option<Usage>,
    pub driver: Option<Usage>,
    pub log_syncs: Option<u64>,
}

/// Why a run ended before its time.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum Cut {
    TimeOuts(u64),
    Errors(f64),
    Average(f64),
    Operator,
    ServerGone,
    UsersEnded,
}

/// Everything that was measured.
#[allow(missing_docs, reason = "the names say it")]
pub struct RunData {
    pub ticks: Vec<Tick>,
    pub recorder: Arc<Recorder>,
    /// Real length of the hold phase.
    pub hold: Duration,
    pub cut: Option<Cut>,
    /// Users that had done a round when the hold phase began.
    pub users_past_first_round: u64,
    /// How far each user was behind the timetable at the end.
    pub behind: Vec<Duration>,
    /// Users that did not end in time and were broken off.
    pub broken_off: usize,
    pub idle_memory_bytes: Option<u64>,
}

const TICK: Duration = Duration::from_secs(1);

/// Stop conditions look at so many seconds.
const WINDOW: usize = 10;

/// Fewer requests than this in the window say nothing about a share.
const ENOUGH_REQUESTS: u64 = 50;

/// Runs all users.
pub(super) async fn run<D: Driver>(
    driver: &Arc<D>,
    plan: &Plan,
    people: &[Person],
    server_pids: &[u32],
    progress: &Progress,
) -> RunData {
    let recorder = Arc::new(Recorder::new());
    let (stop, _) = watch::channel(None);
    let context = Arc::new(Context {
        script: Arc::clone(&plan.script),
        recorder: Arc::clone(&recorder),
        model: plan.model,
        speedup: plan.speedup,
        seed: plan.seed,
        run: rand::random(),
        people: people.iter().map(|person| person.name.clone()).collect(),
        normal_message_bytes: usize::try_from(plan.number("NormalMessageSize", 1000)).unwrap_or(1000),
        critical: Arc::new(Semaphore::new(1)),
        first_rounds: AtomicU64::new(0),
        active: AtomicUsize::new(0),
        stop,
    });
    let mut run = Run {
        plan,
        server: ProcessMeter::of(server_pids),
        driver: ProcessMeter::new(std::process::id()),
        syncs: SyncMeter::start(Arc::clone(driver)).await,
        context: Arc::clone(&context),
        phase: Phase::RampUp,
        hold_from: None,
        data: RunData {
            ticks: Vec::new(),
            recorder,
            hold: Duration::ZERO,
            cut: None,
            users_past_first_round: 0,
            behind: Vec::new(),
            broken_off: 0,
            idle_memory_bytes: None,
        },
        last_tick: Instant::now(),
    };
    run.data.idle_memory_bytes =
        run.server.as_mut().and_then(ProcessMeter::read).map(|usage| usage.resident_bytes);
    let mut users = begin_users(driver, &context, people, plan.ramp_up_times().0);
    run.ramp_up_and_hold(&users, progress).await;
    run.ramp_down(&mut users, progress).await;
    run.data
}

fn begin_users<D: Driver>(
    driver: &Arc<D>,
    context: &Arc<Context>,
    people: &[Person],
    spread: Duration,
) -> JoinSet<Duration> {
    let mut users = JoinSet::new();
    let begin = Instant::now();
    for (index, person) in people.iter().enumerate() {
        #[allow(clippy::cast_precision_loss, reason = "users are few")]
        let fraction = index as f64 / people.len() as f64;
        let start = begin + spread.mul_f64(fraction);
        let (driver, context, person) = (Arc::clone(driver), Arc::clone(context), person.clone());
        users.spawn(async move {
            context.sleep_until(start, person.number).await;
            let session = driver.session(&person);
            context.active.fetch_add(1, Ordering::Relaxed);
            let behind = User::new(Arc::clone(&context), person, session, start).run().await;
            context.active.fetch_sub(1, Ordering::Relaxed);
            behind
        });
    }
    users
}

struct Run<'a> {
    plan: &'a Plan,
    server: Option<ProcessMeter>,
    driver: Option<ProcessMeter>,
    syncs: SyncMeter,
    context: Arc<Context>,
    phase: Phase,
    hold_from: Option<Instant>,
    last_tick: Instant,
    data: RunData,
}

impl Run<'_> {
    async fn ramp_up_and_hold(&mut self, users: &JoinSet<Duration>, progress: &Progress) {
        let mut ticks = tokio::time::interval_at((Instant::now() + TICK).into(), TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let begin = self.data.recorder.origin();
        let longest = self.plan.ramp_up_times().1;
        progress.begin(Phase::RampUp.name(), longest.as_secs().max(1));
        let operator = tokio::signal::ctrl_c();
        tokio::pin!(operator);
        let mut phase_end = begin + longest;
        if !self.plan.is_endless() {
            // There is no time in which all are at work: everything counts.
            self.begin_hold(begin, progress);
            phase_end = begin + self.plan.duration;
        }
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                () = tokio::time::sleep_until(phase_end.into()) => {}
                Ok(()) = &mut operator => self.data.cut = Some(Cut::Operator),
            }
            self.tick(progress, begin);
            let now = Instant::now();
            if self.data.cut.is_none() {
                self.data.cut = self.cut(users);
            }
            if self.data.cut.is_some() {
                break;
            }
            match self.hold_from {
                None if now >= phase_end || self.everyone_is_at_work() => {
                    self.begin_hold(now, progress);
                    phase_end = now + self.plan.duration;
                }
                Some(_) if now >= phase_end => break,
                _ => {}
            }
        }
        self.data.recorder.end_hold();
        if let Some(from) = self.hold_from {
            self.data.hold = from.elapsed();
        }
        progress.end();
    }

    /// A ramp-up without a given length ends when everyone has done a round.
    fn everyone_is_at_work(&self) -> bool {
        let rounds = self.context.first_rounds.load(Ordering::Relaxed);
        self.plan.ramp_up.is_none() && rounds >= self.plan.users as u64
    }

    fn begin_hold(&mut self, now: Instant, progress: &Progress) {
        self.phase = Phase::Hold;
        self.hold_from = Some(now);
        self.data.recorder.begin_hold();
        self.data.users_past_first_round = self.context.first_rounds.load(Ordering::Relaxed);
        progress.begin(Phase::Hold.name(), self.plan.duration.as_secs().max(1));
    }

    async fn ramp_down(&mut self, users: &mut JoinSet<Duration>, progress: &Progress) {
        self.phase = Phase::RampDown;
        let spread = if self.data.cut.is_some() { Duration::ZERO } else { self.plan.ramp_down };
        let begin = Instant::now();
        self.context.stop.send_replace(Some(Stop { from: begin, spread }));
        // A request that was sent before is waited for as long as any.
        let latest = begin + spread + self.plan.time_out + 2 * TICK;
        let origin = self.data.recorder.origin();
        let mut ticks = tokio::time::interval_at((begin + TICK).into(), TICK);
        progress.begin(Phase::RampDown.name(), users.len() as u64);
        while Instant::now() < latest {
            tokio::select! {
                ended = users.join_next() => match ended {
                    None => break,
                    Some(Ok(behind)) => self.data.behind.push(behind),
                    Some(Err(_)) => self.data.broken_off += 1,
                },
                _ = ticks.tick() => self.tick(progress, origin),
            }
        }
        self.data.broken_off += users.len();
        users.abort_all();
        self.tick(progress, origin);
        progress.end();
    }

    /// Takes everything that was measured since the last tick.
    fn tick(&mut self, progress: &Progress, begin: Instant) {
        let now = Instant::now();
        let tick = Tick {
            phase: self.phase,
            at_s: now.saturating_duration_since(begin).as_secs_f64(),
            length_s: now.saturating_duration_since(self.last_tick).as_secs_f64(),
            active_users: self.context.active.load(Ordering::Relaxed),
            kept: self.data.recorder.take_second(),
            server: self.server.as_mut().and_then(ProcessMeter::read),
            driver: self.driver.as_mut().and_then(ProcessMeter::read),
            log_syncs: self.syncs.since_last(),
        };
        self.last_tick = now;
        progress.at(self.steps(now, begin), &tick.line());
        self.data.ticks.push(tick);
    }

    fn steps(&self, now: Instant, begin: Instant) -> u64 {
        match self.phase {
            Phase::RampUp => now.saturating_duration_since(begin).as_secs(),
            Phase::Hold => self.hold_from.map_or(0, |from| now.saturating_duration_since(from).as_secs()),
            Phase::RampDown => self.data.behind.len() as u64,
        }
    }

    fn cut(&self, users: &JoinSet<Duration>) -> Option<Cut> {
        if self.server.is_some() && self.data.ticks.last().is_some_and(|tick| tick.server.is_none()) {
            return Some(Cut::ServerGone);
        }
        if users.is_empty() || self.everyone_ended() {
            return Some(Cut::UsersEnded);
        }
        let window: Vec<&KeptSecond> =
            self.data.ticks.iter().rev().take(WINDOW).map(|tick| &tick.kept).collect();
        stop_condition(&self.plan.stop, self.data.recorder.totals().time_outs, &window)
    }

    fn everyone_ended(&self) -> bool {
        self.context.active.load(Ordering::Relaxed) == 0
            && self.context.first_rounds.load(Ordering::Relaxed) >= self.plan.users as u64
    }
}

/// Whether the last seconds fulfil a stop condition.
fn stop_condition(stop: &StopConditions, time_outs: u64, window: &[&KeptSecond]) -> Option<Cut> {
    if time_outs > stop.time_outs {
        return Some(Cut::TimeOuts(time_outs));
    }
    let sum = |of: fn(&KeptSecond) -> u64| window.iter().map(|second| of(second)).sum::<u64>();
    let (answered, failed) = (sum(|second| second.answered), sum(|second| second.failed));
    if answered + failed < ENOUGH_REQUESTS {
        return None;
    }
    #[allow(clippy::cast_precision_loss, reason = "requests of ten seconds are few")]
    let (failed_percent, average_ms) = (
        100.0 * failed as f64 / (answered + failed) as f64,
        window.iter().map(|second| second.mean_ms * second.answered as f64).sum::<f64>()
            / answered.max(1) as f64,
    );
    if failed_percent > stop.errors_percent {
        return Some(Cut::Errors(failed_percent));
    }
    stop.average_ms.filter(|limit| average_ms > *limit).map(|_| Cut::Average(average_ms))
}

impl Tick {
    /// One line for people.
    fn line(&self) -> String {
        let mut latency = crate::measure::Times::default();
        self.kept.latency.add_to(&mut latency);
        let summary = latency.summary();
        #[allow(clippy::cast_precision_loss, reason = "requests of a second are few")]
        let rate = self.kept.answered as f64 / self.length_s.max(0.001);
        let mut line = format!(
            "{} users \u{b7} {rate:.0}/s \u{b7} {:.1} ms, p99 {:.1} ms",
            self.active_users, summary.mean_ms, summary.p99_ms
        );
        if self.kept.failed > 0 {
            line.push_str(&format!(" \u{b7} {} failed", self.kept.failed));
        }
        line
    }
}
