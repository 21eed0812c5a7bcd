//! The run itself: users begin, work and end, while every second is measured.

use std::sync::Arc;
use std::time::{Duration, Instant};

use scrinium_lab_report::run::Phase;
use tokio::time::MissedTickBehavior;

use super::counts::CountsMeter;
use super::hands::{DriverData, Drivers};
use crate::crew::{Plan, Share, Stop, StopConditions};
use crate::driver::{Driver, Person, ServerCounts};
use crate::measure::{KeptSecond, Recorder, Times};
use crate::monitor::{ProcessMeter, Usage};
use crate::progress::{Live, Progress};

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
    /// What the server has counted.
    pub counts: Option<ServerCounts>,
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
    /// A driver's process is gone or silent: which one, and how that showed.
    DriverLost(String),
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
    pub drivers: Vec<DriverData>,
}

const TICK: Duration = Duration::from_secs(1);

/// Stop conditions look at this many seconds.
const WINDOW: usize = 10;

/// Fewer requests than this in the window say nothing about a share.
const ENOUGH_REQUESTS: u64 = 50;

/// Users that are on their way out are looked at so often.
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// Runs all users, no matter who drives them.
pub(super) async fn run<D: Driver>(
    driver: &Arc<D>,
    plan: &Plan,
    people: &[Person],
    server_pids: &[u32],
    hands: Drivers,
    progress: &Progress,
) -> RunData {
    let mut server = ProcessMeter::of(server_pids);
    let idle = server.as_mut().and_then(ProcessMeter::read).map(|usage| usage.resident_bytes);
    let counts = CountsMeter::start(Arc::clone(driver)).await;
    let begin = Instant::now() + hands.lead();
    let mut run = Run {
        plan,
        server,
        counts,
        hands,
        begin,
        phase: Phase::RampUp,
        hold: None,
        last_tick: begin,
        first_rounds: 0,
        active: 0,
        left: people.len(),
        time_outs: 0,
        data: RunData {
            ticks: Vec::new(),
            recorder: Arc::new(Recorder::new()),
            hold: Duration::ZERO,
            cut: None,
            users_past_first_round: 0,
            behind: Vec::new(),
            broken_off: 0,
            idle_memory_bytes: idle,
            drivers: Vec::new(),
        },
    };
    if !plan.is_endless() {
        // There is no time in which all are at work: everything counts, and is counted before the first user begins.
        run.order_hold(begin);
    }
    run.hands.begin(driver, people, Share::WHOLE, begin, plan.ramp_up_times().0);
    run.through(progress).await
}

struct Run<'a> {
    plan: &'a Plan,
    server: Option<ProcessMeter>,
    counts: CountsMeter,
    hands: Drivers,
    begin: Instant,
    phase: Phase,
    hold: Option<(Instant, Instant)>,
    last_tick: Instant,
    /// As all drivers said last.
    first_rounds: u64,
    active: usize,
    left: usize,
    time_outs: u64,
    data: RunData,
}

impl Run<'_> {
    async fn through(mut self, progress: &Progress) -> RunData {
        progress.begin_run(self.plan);
        self.ramp_up_and_hold(progress).await;
        self.ramp_down(progress).await;
        progress.end();
        let ended = self.hands.finish().await;
        if let Some(lost) = ended.lost {
            self.data.cut.get_or_insert(Cut::DriverLost(lost));
        }
        self.data.recorder = ended.recorder;
        self.data.behind = ended.behind;
        self.data.broken_off = ended.broken_off;
        self.data.drivers = ended.drivers;
        self.data
    }

    async fn ramp_up_and_hold(&mut self, progress: &Progress) {
        let longest = self.plan.ramp_up_times().1;
        tokio::time::sleep_until(self.begin.into()).await;
        if self.hold.is_some() {
            self.phase = Phase::Hold;
        }
        let mut ticks = tokio::time::interval_at((self.begin + TICK).into(), TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let operator = tokio::signal::ctrl_c();
        tokio::pin!(operator);
        loop {
            let phase_end = self.hold.map_or(self.begin + longest, |(_, to)| to);
            tokio::select! {
                _ = ticks.tick() => {}
                () = tokio::time::sleep_until(phase_end.into()) => {}
                Ok(()) = &mut operator => self.data.cut = Some(Cut::Operator),
            }
            self.tick(progress);
            if self.data.cut.is_none() {
                self.data.cut = self.cut();
            }
            if self.data.cut.is_some() {
                break;
            }
            let now = Instant::now();
            match self.hold {
                None if now >= phase_end || self.everyone_is_at_work() => {
                    let from = now + self.hands.lead();
                    self.order_hold(from);
                    tokio::time::sleep_until(from.into()).await;
                    if from > now {
                        self.tick(progress);
                    }
                    self.data.users_past_first_round = self.first_rounds;
                    self.phase = Phase::Hold;
                }
                Some((_, to)) if now >= to => break,
                _ => {}
            }
        }
        let end = Instant::now();
        self.hands.end_hold(end);
        if let Some((from, to)) = self.hold {
            self.data.hold = end.min(to).saturating_duration_since(from);
        }
    }

    /// A ramp-up without a given length ends when everyone has done a round.
    fn everyone_is_at_work(&self) -> bool {
        self.plan.ramp_up.is_none() && self.first_rounds >= self.plan.users as u64
    }

    fn order_hold(&mut self, from: Instant) {
        let to = from + self.plan.duration;
        self.hold = Some((from, to));
        self.hands.hold(from, to);
    }

    async fn ramp_down(&mut self, progress: &Progress) {
        self.phase = Phase::RampDown;
        let spread = if self.data.cut.is_some() { Duration::ZERO } else { self.plan.ramp_down };
        let begin = Instant::now();
        self.hands.stop(Stop { from: begin, spread });
        // A request that was sent before is waited for as long as any.
        let latest = begin + spread + self.plan.time_out + 2 * TICK;
        let mut next_tick = begin + TICK;
        while Instant::now() < latest && self.hands.has_users() {
            tokio::time::sleep(BETWEEN_LOOKS).await;
            if Instant::now() >= next_tick {
                next_tick += TICK;
                self.tick(progress);
            }
        }
        self.tick(progress);
    }

    /// Takes everything that was measured since the last tick.
    fn tick(&mut self, progress: &Progress) {
        let now = Instant::now();
        let second = match self.hands.second() {
            Ok(second) => second,
            Err(lost) => {
                self.data.cut.get_or_insert(Cut::DriverLost(lost));
                return;
            }
        };
        (self.first_rounds, self.active, self.left) = (second.first_rounds, second.active, second.left);
        self.time_outs += second.kept.time_outs;
        let tick = Tick {
            phase: self.phase,
            at_s: now.saturating_duration_since(self.begin).as_secs_f64(),
            length_s: now.saturating_duration_since(self.last_tick).as_secs_f64(),
            active_users: second.active,
            kept: second.kept,
            server: self.server.as_mut().and_then(ProcessMeter::read),
            driver: second.usage,
            counts: self.counts.since_last(),
        };
        self.last_tick = now;
        progress.live(&self.live(&tick, now));
        self.data.ticks.push(tick);
    }

    /// What a person sees of this moment.
    fn live(&self, tick: &Tick, now: Instant) -> Live {
        let mut latency = Times::default();
        tick.kept.latency.add_to(&mut latency);
        let summary = latency.summary();
        let phase_began = match (self.phase, self.hold) {
            (Phase::RampUp, _) | (_, None) => self.begin,
            (Phase::Hold, Some((from, _))) => from,
            (Phase::RampDown, Some((_, to))) => to,
        };
        #[allow(clippy::cast_precision_loss, reason = "requests of a second are few")]
        let per_s = tick.kept.answered as f64 / tick.length_s.max(0.001);
        Live {
            phase: self.phase,
            whole: tick.length_s >= TICK.as_secs_f64() / 2.0,
            elapsed: now.saturating_duration_since(phase_began),
            active: tick.active_users,
            per_s,
            answered: summary.count > 0,
            mean_ms: summary.mean_ms,
            p99_ms: summary.p99_ms,
            failed: tick.kept.failed,
            requests: tick.kept.answered + tick.kept.failed,
            driver_cpus: tick.driver.map(|used| (used.user_s + used.system_s) / tick.length_s.max(0.001)),
            late: tick.kept.lag_max,
        }
    }

    fn cut(&self) -> Option<Cut> {
        if self.server.is_some() && self.data.ticks.last().is_some_and(|tick| tick.server.is_none()) {
            return Some(Cut::ServerGone);
        }
        if self.left == 0 || self.everyone_ended() {
            return Some(Cut::UsersEnded);
        }
        let window: Vec<&KeptSecond> =
            self.data.ticks.iter().rev().take(WINDOW).map(|tick| &tick.kept).collect();
        stop_condition(&self.plan.stop, self.time_outs, &window)
    }

    fn everyone_ended(&self) -> bool {
        self.active == 0 && self.first_rounds >= self.plan.users as u64
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
