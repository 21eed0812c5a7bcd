//! What a person sees of a run: pure text, made from one second and those before it.

use std::collections::VecDeque;
use std::time::Duration;

use scrinium_lab_report::run::Phase;

use crate::crew::Plan;

/// Seconds that the small charts show.
const CHART_SECONDS: usize = 32;

const BAR_CELLS: usize = 32;

/// Eighths of a line's height.
const HEIGHTS: [char; 8] =
    ['\u{2581}', '\u{2582}', '\u{2583}', '\u{2584}', '\u{2585}', '\u{2586}', '\u{2587}', '\u{2588}'];

/// One second of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Live {
    pub(crate) phase: Phase,
    /// Whether it was about a second: the last of a phase may be so short that it says nothing of how the run goes.
    pub(crate) whole: bool,
    /// How long the phase has been going on.
    pub(crate) elapsed: Duration,
    /// Users at work.
    pub(crate) active: usize,
    pub(crate) per_s: f64,
    /// Whether there is any latency in this second.
    pub(crate) answered: bool,
    pub(crate) mean_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) failed: u64,
    pub(crate) requests: u64,
    /// CPUs that all drivers use, on average.
    pub(crate) driver_cpus: Option<f64>,
    /// How late the latest timer of a driver was.
    pub(crate) late: Duration,
}

/// A run, as far as it got.
#[derive(Debug, Default)]
pub(crate) struct View {
    title: String,
    users: usize,
    ramp_up: Duration,
    hold: Duration,
    ramp_down: Duration,
    runs_after: u32,
    failed: u64,
    requests: u64,
    rates: VecDeque<f64>,
    responses: VecDeque<f64>,
}

impl View {
    pub(crate) fn of(plan: &Plan, runs_after: u32) -> Self {
        let speedup = if (plan.speedup - 1.0).abs() > f64::EPSILON {
            format!(" \u{b7} speed-up {}", plan.speedup)
        } else {
            String::new()
        };
        let users = thousands(plan.users as f64);
        Self {
            title: format!("{} \u{b7} {users} users \u{b7} {}{speedup}", plan.workload, plan.target),
            users: plan.users,
            ramp_up: if plan.is_endless() { plan.expected_ramp_up() } else { Duration::ZERO },
            hold: plan.duration,
            ramp_down: plan.ramp_down,
            runs_after,
            ..Self::default()
        }
    }

    /// Takes in a second.
    pub(crate) fn add(&mut self, live: &Live) {
        self.failed += live.failed;
        self.requests += live.requests;
        if !live.whole {
            return;
        }
        let response = if live.answered { live.mean_ms } else { 0.0 };
        for (chart, value) in [(&mut self.rates, live.per_s), (&mut self.responses, response)] {
            chart.push_back(value);
            if chart.len() > CHART_SECONDS {
                chart.pop_front();
            }
        }
    }

    /// One line, for where no terminal is.
    pub(crate) fn line(&self, live: &Live) -> String {
        let mut line = format!(
            "{}: {} \u{b7} {} users \u{b7} {}/s \u{b7} {}",
            live.phase.name(),
            self.time(live),
            thousands(live.active as f64),
            thousands(live.per_s.round()),
            response(live)
        );
        if self.failed > 0 {
            line.push_str(&format!(" \u{b7} {}", self.failures()));
        }
        line
    }

    /// Some lines, for a terminal. None is longer than 80 characters, but for the title.
    pub(crate) fn lines(&self, live: &Live, coloured: bool) -> String {
        let paint = |code: &str, text: &str| {
            if coloured { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
        };
        let whole = self.length(live.phase);
        let bar = bar(live.elapsed, whole);
        let filled = bar.chars().filter(|cell| *cell == '\u{2501}').count();
        let (done, ahead): (String, String) =
            (bar.chars().take(filled).collect(), bar.chars().skip(filled).collect());
        let row = |name: &str, value: String, chart: &VecDeque<f64>, beside: String| {
            format!(
                "  {name:<11} {value:<14} {} {beside}",
                paint("36", &format!("{:<CHART_SECONDS$}", sparks(chart)))
            )
        };
        let answered = if live.answered { milliseconds(live.mean_ms) } else { "no answer".to_owned() };
        let p99 = if live.answered { format!("p99 {}", milliseconds(live.p99_ms)) } else { String::new() };
        let late_ms = live.late.as_secs_f64() * 1000.0;
        let driver = live.driver_cpus.map_or_else(String::new, |cpus| {
            format!("{cpus:.1} CPUs busy, timers at most {} late", milliseconds(late_ms))
        });
        let failures = if self.failed > 0 { paint("31", &self.failures()) } else { "none".to_owned() };
        let driver = if late_ms > LATE_MS { paint("33", &driver) } else { driver };
        [
            paint("1", &self.title),
            format!(
                "  {:<11} {}{} {}",
                live.phase.name(),
                paint("32", &done),
                paint("2", &ahead),
                self.time(live)
            ),
            format!(
                "  {:<11} {} of {} at work",
                "users",
                thousands(live.active as f64),
                thousands(self.users as f64)
            ),
            row("throughput", format!("{}/s", thousands(live.per_s.round())), &self.rates, String::new()),
            row("response", answered, &self.responses, p99),
            format!("  {:<11} {failures}", "errors"),
            format!("  {:<11} {driver}", "driver"),
        ]
        .iter()
        .map(|line| line.trim_end())
        .collect::<Vec<_>>()
        .join("\n")
    }

    fn length(&self, phase: Phase) -> Duration {
        match phase {
            Phase::RampUp => self.ramp_up,
            Phase::Hold => self.hold,
            Phase::RampDown => self.ramp_down,
        }
    }

    fn time(&self, live: &Live) -> String {
        let whole = self.length(live.phase);
        let elapsed = live.elapsed.min(whole);
        let of = format!("{} of {}", time(elapsed), time(whole));
        format!("{of}, {} left", time(self.left(live)))
    }

    /// All that is still to come, further runs included.
    fn left(&self, live: &Live) -> Duration {
        let rest = self.length(live.phase).saturating_sub(live.elapsed);
        let later = match live.phase {
            Phase::RampUp => self.hold + self.ramp_down,
            Phase::Hold => self.ramp_down,
            Phase::RampDown => Duration::ZERO,
        };
        rest + later + (self.ramp_up + self.hold + self.ramp_down) * self.runs_after
    }

    fn failures(&self) -> String {
        let share = 100.0 * self.failed as f64 / self.requests.max(1) as f64;
        format!("{} failed ({share:.2} %)", thousands(self.failed as f64))
    }
}

/// A driver whose timers are later than this is about to spoil the run.
const LATE_MS: f64 = 50.0;

fn response(live: &Live) -> String {
    if live.answered {
        format!("{}, p99 {}", milliseconds(live.mean_ms), milliseconds(live.p99_ms))
    } else {
        "no answer".to_owned()
    }
}

/// A line that is filled as far as the time has passed.
fn bar(elapsed: Duration, whole: Duration) -> String {
    let share = if whole.is_zero() { 1.0 } else { elapsed.as_secs_f64() / whole.as_secs_f64() };
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 32")]
    let filled = (share.clamp(0.0, 1.0) * BAR_CELLS as f64) as usize;
    "\u{2501}".repeat(filled) + &"\u{2500}".repeat(BAR_CELLS - filled)
}

/// The values as heights of one line, from nothing to the highest of them.
fn sparks(values: &VecDeque<f64>) -> String {
    let highest = values.iter().copied().fold(0.0, f64::max);
    let height = |value: &f64| {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 7")]
        let step = if highest > 0.0 { (value / highest * 7.0).round() as usize } else { 0 };
        HEIGHTS.get(step).copied().unwrap_or(' ')
    };
    values.iter().map(height).collect()
}

fn thousands(value: f64) -> String {
    scrinium_lab_report::thousands(value)
}

fn milliseconds(value: f64) -> String {
    scrinium_lab_report::milliseconds(value)
}

/// `45 s`, `2:05 min`, `1:30 h`: never longer than it was a second ago.
fn time(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..100 => format!("{seconds} s"),
        seconds @ 100..6000 => format!("{}:{:02} min", seconds / 60, seconds % 60),
        seconds => format!("{}:{:02} h", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(index: u32) -> Live {
        Live {
            phase: Phase::Hold,
            whole: true,
            elapsed: Duration::from_secs(u64::from(index)),
            active: 9_874,
            per_s: 1000.0 + f64::from(index % 8) * 50.0,
            answered: true,
            mean_ms: if index == 20 { 400.0 } else { 4.25 },
            p99_ms: 31.0,
            failed: u64::from(index == 20) * 3,
            requests: 1000,
            driver_cpus: Some(0.62),
            late: Duration::from_millis(3),
        }
    }

    fn view() -> View {
        View {
            title: "R5Mail \u{b7} 10,000 users \u{b7} http://127.0.0.1:5984".to_owned(),
            users: 10_000,
            ramp_up: Duration::from_secs(30),
            hold: Duration::from_secs(60),
            ramp_down: Duration::from_secs(3),
            runs_after: 1,
            ..View::default()
        }
    }

    #[test]
    fn a_person_sees_all_that_matters() {
        let mut view = view();
        (0..45).for_each(|index| view.add(&second(index)));
        let shown = view.lines(&second(45), false);
        assert_eq!(
            shown,
            "R5Mail \u{b7} 10,000 users \u{b7} http://127.0.0.1:5984
  hold        \u{2501}\u{2501}\u{2501}\u{2501}\u{2501}\u{2501}\u{2501}\u{2501}\u{2501}\u{2501}\u{2501}\u{2501}\u{2501}\u{2501}\u{2501}\u{2501}\u{2501}\u{2501}\u{2501}\u{2501}\u{2501}\u{2501}\u{2501}\u{2501}\u{2500}\u{2500}\u{2500}\u{2500}\u{2500}\u{2500}\u{2500}\u{2500} 45 s of 60 s, 1:51 min left
  users       9,874 of 10,000 at work
  throughput  1,250/s        \u{2587}\u{2588}\u{2588}\u{2586}\u{2586}\u{2587}\u{2587}\u{2587}\u{2587}\u{2588}\u{2588}\u{2586}\u{2586}\u{2587}\u{2587}\u{2587}\u{2587}\u{2588}\u{2588}\u{2586}\u{2586}\u{2587}\u{2587}\u{2587}\u{2587}\u{2588}\u{2588}\u{2586}\u{2586}\u{2587}\u{2587}\u{2587}
  response    4.25 ms        \u{2581}\u{2581}\u{2581}\u{2581}\u{2581}\u{2581}\u{2581}\u{2588}\u{2581}\u{2581}\u{2581}\u{2581}\u{2581}\u{2581}\u{2581}\u{2581}\u{2581}\u{2581}\u{2581}\u{2581}\u{2581}\u{2581}\u{2581}\u{2581}\u{2581}\u{2581}\u{2581}\u{2581}\u{2581}\u{2581}\u{2581}\u{2581} p99 31.0 ms
  errors      3 failed (0.01 %)
  driver      0.6 CPUs busy, timers at most 3.00 ms late"
        );
        let line = view.line(&second(45));
        assert_eq!(
            line,
            "hold: 45 s of 60 s, 1:51 min left \u{b7} 9,874 users \u{b7} 1,250/s \u{b7} 4.25 ms, p99 31.0 ms \u{b7} 3 failed (0.01 %)"
        );
        assert!(view.lines(&second(45), true).contains("\u{1b}[31m3 failed"));
    }

    /// The charts fell to nothing at the end of each phase, as if the server had stopped.
    #[test]
    fn the_short_end_of_a_phase_is_counted_and_not_drawn() {
        let mut view = view();
        view.add(&second(1));
        let before = (view.rates.clone(), view.responses.clone());
        view.add(&Live { whole: false, per_s: 0.0, answered: false, requests: 0, failed: 2, ..second(2) });
        assert_eq!((view.rates, view.responses, view.failed), (before.0, before.1, 2));
    }

    /// The time left never grows while a run goes as it was planned.
    #[test]
    fn time_left_only_shrinks() {
        let view = view();
        let mut last = Duration::MAX;
        for (phase, seconds) in [(Phase::RampUp, 40), (Phase::Hold, 60), (Phase::RampDown, 5)] {
            for elapsed in 0..=seconds {
                let left = view.left(&Live { phase, elapsed: Duration::from_secs(elapsed), ..second(0) });
                assert!(left <= last, "{phase:?} {elapsed}");
                last = left;
            }
        }
        assert_eq!(last, Duration::from_secs(93), "the run that comes after");
    }
}
