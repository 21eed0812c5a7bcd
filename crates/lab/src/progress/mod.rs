//! How far a run is: some lines that change on a terminal, a line now and then elsewhere. All of it on standard
//! error.

mod view;

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use parking_lot::Mutex;
use scrinium_terminal::{can_be_drawn, has_colours, say};

use crate::crew::Plan;
pub(crate) use view::Live;
use view::View;

/// Without a terminal a line is written no more often than this.
const BETWEEN_LINES: Duration = Duration::from_secs(10);

/// What continues for long is logged again at twice the time since the line before, and no more seldom than this.
const LONGEST_BETWEEN_LINES: Duration = Duration::from_secs(160);

/// Shows one phase after the other.
pub struct Progress {
    state: Mutex<ProgressState>,
    terminal: bool,
    quiet: bool,
}

struct ProgressState {
    bar: ProgressBar,
    phase: String,
    last_line: Instant,
    /// How long after the last line the same is logged again.
    until_again: Duration,
    view: View,
    runs_after: u32,
}

impl Progress {
    /// Talks to people on standard error.
    #[must_use]
    pub fn new() -> Self {
        Self::of(can_be_drawn(&std::io::stderr()), false)
    }

    /// Says nothing.
    #[must_use]
    pub fn silent() -> Self {
        Self::of(false, true)
    }

    fn of(terminal: bool, quiet: bool) -> Self {
        let state = ProgressState {
            bar: ProgressBar::hidden(),
            phase: String::new(),
            last_line: Instant::now(),
            until_again: BETWEEN_LINES,
            view: View::default(),
            runs_after: 0,
        };
        Self { state: Mutex::new(state), terminal, quiet }
    }

    /// A line that stays.
    pub fn say(&self, line: &str) {
        if self.quiet {
            return;
        }
        let state = self.state.lock();
        state.bar.suspend(|| say(line));
    }

    /// A phase of this many steps begins.
    pub fn begin(&self, phase: &str, steps: u64) {
        if self.quiet {
            return;
        }
        let mut state = self.state.lock();
        state.bar.finish_and_clear();
        phase.clone_into(&mut state.phase);
        if self.terminal {
            let bar = ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::stderr());
            if let Some(style) = style("{eta} left") {
                bar.set_style(style);
            }
            bar.set_prefix(phase.to_owned());
            state.bar = bar;
        } else {
            state.bar = ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::hidden());
            say(&format!("{phase}: {steps} steps"));
            state.last_line = Instant::now();
        }
    }

    /// One step of the phase is done.
    pub fn step(&self) {
        let mut state = self.state.lock();
        state.bar.inc(1);
        if !self.terminal && !self.quiet && state.last_line.elapsed() >= BETWEEN_LINES {
            let length = state.bar.length().unwrap_or(0);
            say(&format!("{}: {} of {length}", state.phase, state.bar.position()));
            state.last_line = Instant::now();
        }
    }

    /// A phase begins that tells by itself how far it is, by [`Self::at`].
    pub(crate) fn begin_told(&self, phase: &str, steps: u64) {
        self.begin(phase, steps);
        if let Some(style) = style("{msg}") {
            self.state.lock().bar.set_style(style);
        }
    }

    /// This many steps of the phase are done, and this is how it goes.
    pub(crate) fn at(&self, steps: u64, message: &str) {
        let mut state = self.state.lock();
        state.until_again = BETWEEN_LINES;
        self.show(&mut state, steps, message);
    }

    /// It continues what [`Self::at`] told, and this is how it goes now.
    pub(crate) fn still_at(&self, steps: u64, message: &str) {
        let mut state = self.state.lock();
        if self.show(&mut state, steps, message) {
            state.until_again = (state.until_again * 2).min(LONGEST_BETWEEN_LINES);
        }
    }

    /// Shows it; whether a line was written.
    fn show(&self, state: &mut ProgressState, steps: u64, message: &str) -> bool {
        state.bar.set_position(steps);
        state.bar.set_message(message.to_owned());
        let is_due = !self.terminal && !self.quiet && state.last_line.elapsed() >= state.until_again;
        if is_due {
            say(&format!("{}: {message}", state.phase));
            state.last_line = Instant::now();
        }
        is_due
    }

    /// This many runs come after the next one.
    pub(crate) fn after_this(&self, runs: u32) {
        self.state.lock().runs_after = runs;
    }

    /// A run begins; [`Self::live`] shows how it goes.
    pub(crate) fn begin_run(&self, plan: &Plan) {
        if self.quiet {
            return;
        }
        let mut state = self.state.lock();
        state.bar.finish_and_clear();
        state.view = View::of(plan, state.runs_after);
        if self.terminal {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            if let Ok(style) = ProgressStyle::with_template("{msg}") {
                bar.set_style(style);
            }
            state.bar = bar;
        }
        // The first line comes at once.
        state.last_line = Instant::now().checked_sub(BETWEEN_LINES).unwrap_or_else(Instant::now);
    }

    /// What a second of the run was like.
    pub(crate) fn live(&self, live: &Live) {
        if self.quiet {
            return;
        }
        let mut state = self.state.lock();
        state.view.add(live);
        if !live.whole {
            return;
        }
        if self.terminal {
            let coloured = has_colours(&std::io::stderr());
            state.bar.set_message(state.view.lines(live, coloured));
        } else if state.last_line.elapsed() >= BETWEEN_LINES {
            say(&state.view.line(live));
            state.last_line = Instant::now();
        }
    }

    /// The phase is over.
    pub fn end(&self) {
        self.state.lock().bar.finish_and_clear();
    }
}

/// A bar with the steps next to it, and this behind them.
fn style(behind: &str) -> Option<ProgressStyle> {
    let colours = if has_colours(&std::io::stderr()) { ".cyan/dim" } else { "" };
    ProgressStyle::with_template(&format!(
        "{{prefix:>9}} {{bar:28{colours}}} {{pos}}/{{len}} \u{b7} {behind}"
    ))
    .ok()
}

impl Default for Progress {
    fn default() -> Self {
        Self::new()
    }
}
