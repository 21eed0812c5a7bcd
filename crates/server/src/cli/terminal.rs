//! Standard output for data, standard error for talk.

use std::io::{self, IsTerminal, Write};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use scrinium_terminal::{CommandOutcome, is_capable, refuses_colours, tell_usage};
use serde_json::Value;

use super::{Failure, GlobalArguments};

const RED: &str = "\x1b[1;31m";
const BOLD: &str = "\x1b[1m";
const PLAIN: &str = "\x1b[0m";

/// How to speak to the one who started the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminal {
    json: bool,
    /// Somebody has said that there are to be none.
    colourless: bool,
    /// Standard error is a terminal on which lines can be drawn again in their place.
    capable: bool,
    /// Standard error.
    color: bool,
    /// Standard output.
    data_color: bool,
}

impl Terminal {
    pub(super) fn new(global: &GlobalArguments, environment: &[(String, String)]) -> Self {
        let value = |wanted: &str| {
            environment.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str())
        };
        let colourless = global.no_color || refuses_colours(value("NO_COLOR"));
        let capable = is_capable(value("TERM"));
        let may = capable && !colourless;
        Self {
            json: global.json,
            colourless,
            capable: capable && io::stderr().is_terminal(),
            color: may && io::stderr().is_terminal(),
            data_color: may && io::stdout().is_terminal(),
        }
    }

    /// Whether answers are to be JSON.
    #[must_use]
    pub fn wants_json(&self) -> bool {
        self.json
    }

    /// Whether somebody sees what is said, who is at a terminal.
    #[must_use]
    pub fn is_watched(&self) -> bool {
        io::stderr().is_terminal()
    }

    /// A bar of this form for `length` steps, on standard error; hidden for programs, and where it could not be drawn.
    pub(crate) fn bar(&self, length: u64, template: &str) -> ProgressBar {
        let shown = self.capable && !self.json;
        let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(length), target);
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar
    }

    /// Whether somebody has said that there are to be no colours.
    #[cfg_attr(not(feature = "lab"), expect(dead_code, reason = "only the laboratory asks"))]
    pub(crate) fn is_colourless(&self) -> bool {
        self.colourless
    }

    /// Says what a command line has to say in place of being carried out: help, or what is wrong with it.
    ///
    /// # Errors
    /// As of [`Self::data`], for help; [`Failure::Told`] for what is wrong.
    pub(crate) fn tell_usage(&self, told: &clap::Error) -> Result<(), Failure> {
        match tell_usage(told) {
            Ok(CommandOutcome::Done) => Ok(()),
            Ok(_) => Err(Failure::Told),
            Err(error) if error.is_silent() => Err(Failure::OutputClosed),
            Err(error) => Err(Failure::work(error)),
        }
    }

    /// Whether talk may be coloured.
    #[must_use]
    pub fn has_color(&self) -> bool {
        self.color
    }

    /// Writes data: the text, or the value where JSON is wanted.
    ///
    /// # Errors
    /// [`Failure::OutputClosed`] if nobody reads it, [`Failure::Work`] if it cannot be written.
    pub fn data(&self, text: &str, value: &Value) -> Result<(), Failure> {
        let mut output = io::stdout().lock();
        let written = if self.json { writeln!(output, "{value}") } else { output.write_all(text.as_bytes()) };
        written.and_then(|()| output.flush()).map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::OutputClosed,
            _ => Failure::Work(format!("cannot write to standard output: {error}")),
        })
    }

    /// Talks to a person. If nobody listens, that is no failure.
    pub fn say(&self, text: &str) {
        drop(writeln!(io::stderr().lock(), "{text}"));
    }

    pub(super) fn prompt(&self, text: &str) {
        let mut output = io::stderr().lock();
        drop(output.write_all(text.as_bytes()).and_then(|()| output.flush()));
    }

    pub(super) fn complain(&self, reason: &str) {
        self.say(&format!("{} {reason}", self.alarming("error:")));
    }

    /// A part of talk that is to strike the eye.
    pub(super) fn alarming(&self, text: &str) -> String {
        if self.color { format!("{RED}{text}{PLAIN}") } else { text.to_owned() }
    }

    /// A part of data for people that is to stand out.
    pub(super) fn emphasised(&self, text: &str) -> String {
        if self.data_color { format!("{BOLD}{text}{PLAIN}") } else { text.to_owned() }
    }
}
