//! How far a run is: a bar on a terminal, a line now and then elsewhere. All of it on standard error.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use parking_lot::Mutex;

/// Without a terminal a line is written no more often than this.
const BETWEEN_LINES: Duration = Duration::from_secs(10);

/// Shows one phase after the other.
pub struct Progress {
    state: Mutex<State>,
    terminal: bool,
    quiet: bool,
}

struct State {
    bar: ProgressBar,
    phase: String,
    last_line: Instant,
}

impl Progress {
    /// Talks to people on standard error.
    #[must_use]
    pub fn new() -> Self {
        Self::of(std::io::stderr().is_terminal(), false)
    }

    /// Says nothing.
    #[must_use]
    pub fn silent() -> Self {
        Self::of(false, true)
    }

    fn of(terminal: bool, quiet: bool) -> Self {
        let state = State { bar: ProgressBar::hidden(), phase: String::new(), last_line: Instant::now() };
        Self { state: Mutex::new(state), terminal, quiet }
    }

    /// A line that stays.
    pub fn say(&self, line: &str) {
        if self.quiet {
            return;
        }
        let state = self.state.lock();
        state.bar.suspend(|| eprintln!("{line}"));
    }

    /// A phase of so many steps begins.
    pub fn begin(&self, phase: &str, steps: u64) {
        if self.quiet {
            return;
        }
        let mut state = self.state.lock();
        state.bar.finish_and_clear();
        phase.clone_into(&mut state.phase);
        if self.terminal {
            let style = "{prefix:>9} {bar:28.cyan/dim} {pos}/{len} \u{b7} {eta} left \u{b7} {msg}";
            let bar = ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::stderr());
            if let Ok(style) = ProgressStyle::with_template(style) {
                bar.set_style(style);
            }
            bar.set_prefix(phase.to_owned());
            state.bar = bar;
        } else {
            eprintln!("{phase}: {steps} steps");
            state.last_line = Instant::now();
        }
    }

    /// One step of the phase is done.
    pub fn step(&self) {
        let mut state = self.state.lock();
        state.bar.inc(1);
        self.line_now_and_then(&mut state, None);
    }

    /// So many steps are done, and this is how it goes.
    pub fn at(&self, steps: u64, message: &str) {
        let mut state = self.state.lock();
        state.bar.set_position(steps);
        state.bar.set_message(message.to_owned());
        self.line_now_and_then(&mut state, Some(message));
    }

    /// The phase is over.
    pub fn end(&self) {
        self.state.lock().bar.finish_and_clear();
    }

    fn line_now_and_then(&self, state: &mut State, message: Option<&str>) {
        if self.terminal || self.quiet || state.last_line.elapsed() < BETWEEN_LINES {
            return;
        }
        if let Some(message) = message {
            eprintln!("{}: {message}", state.phase);
            state.last_line = Instant::now();
        }
    }
}

impl Default for Progress {
    fn default() -> Self {
        Self::new()
    }
}
