//! What programs of the project write for people and for other programs: data to standard output, talk to standard error,
//! an exit code at the end.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use thiserror::Error;

/// How a command ended; [`CommandOutcome::code`] is the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandOutcome {
    /// Everything asked for was done: 0.
    Done,
    /// It could not be done: 1.
    Failed,
    /// What was asked for cannot be: 2.
    Usage,
    /// A run ended, and it is not valid or an objective was missed: 99, as load tools use it.
    Missed,
    /// The operator broke it off, and it can be resumed: 130, as shells say of a program that was interrupted.
    BrokenOff,
}

impl CommandOutcome {
    /// The exit code.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Missed => 99,
            Self::BrokenOff => 130,
        }
    }
}

impl From<CommandOutcome> for std::process::ExitCode {
    fn from(outcome: CommandOutcome) -> Self {
        Self::from(outcome.code())
    }
}

/// Why data was not written.
#[derive(Debug, Error)]
pub enum OutputError {
    /// There is nothing to say about it, and nobody to say it to.
    #[error("nobody reads standard output any more")]
    NobodyReads,
    /// The disk is full, for one.
    #[error("cannot write to standard output: {0}")]
    NotWritten(io::Error),
}

impl OutputError {
    /// Whether it is nothing that anybody need be told.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        matches!(self, Self::NobodyReads)
    }

    /// How the program ends because of this: anyone who stops reading has what they want.
    #[must_use]
    pub fn outcome(&self) -> CommandOutcome {
        if self.is_silent() { CommandOutcome::Done } else { CommandOutcome::Failed }
    }
}

/// Somebody has said that there are to be no colours.
static COLOURLESS: AtomicBool = AtomicBool::new(false);

/// Writes data to standard output.
///
/// # Errors
/// [`OutputError::NobodyReads`] if its reader has gone away, [`OutputError::NotWritten`] if it cannot be written.
pub fn print(text: &str) -> Result<(), OutputError> {
    let mut output = io::stdout().lock();
    output.write_all(text.as_bytes()).and_then(|()| output.flush()).map_err(not_written)
}

/// Says what a command line has to say in place of being carried out: help on standard output, what is wrong with it on
/// standard error.
///
/// # Errors
/// As of [`print()`], for help.
pub fn tell_usage(told: &clap::Error) -> Result<CommandOutcome, OutputError> {
    // clap itself would colour wherever continuous integration is named in the environment.
    let text = told.render();
    let worded = |colours: bool| if colours { text.ansi().to_string() } else { text.to_string() };
    if told.use_stderr() {
        let mut stream = io::stderr().lock();
        drop(stream.write_all(worded(has_colours(&stream)).as_bytes()));
        return Ok(CommandOutcome::Usage);
    }
    let mut stream = io::stdout().lock();
    let written = stream.write_all(worded(has_colours(&stream)).as_bytes()).and_then(|()| stream.flush());
    written.map_err(not_written)?;
    Ok(CommandOutcome::Done)
}

fn not_written(error: io::Error) -> OutputError {
    match error.kind() {
        io::ErrorKind::BrokenPipe => OutputError::NobodyReads,
        _ => OutputError::NotWritten(error),
    }
}

/// Writes a line to standard error. If nobody reads it, that is no failure.
pub fn say(line: &str) {
    drop(writeln!(io::stderr().lock(), "{line}"));
}

/// From now on nothing is coloured.
pub fn leave_colours_out() {
    COLOURLESS.store(true, Ordering::Relaxed);
}

/// Whether a terminal with this value of `TERM` does more than write characters: moves its cursor, and has colours. One
/// of which nothing is known does not.
#[must_use]
pub fn is_capable(term: Option<&str>) -> bool {
    !matches!(term, None | Some("" | "dumb"))
}

/// Whether this value of `NO_COLOR` asks for no colours: any but the empty one (<https://no-color.org>).
#[must_use]
pub fn refuses_colours(no_color: Option<&str>) -> bool {
    no_color.is_some_and(|value| !value.is_empty())
}

/// Whether what goes there can be drawn again in its place.
#[must_use]
pub fn can_be_drawn(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && is_capable(std::env::var("TERM").ok().as_deref())
}

/// Whether what goes there may be coloured.
#[must_use]
pub fn has_colours(stream: &impl IsTerminal) -> bool {
    let refused = COLOURLESS.load(Ordering::Relaxed)
        || refuses_colours(
            std::env::var_os("NO_COLOR").map(|value| value.to_string_lossy().into_owned()).as_deref(),
        );
    !refused && can_be_drawn(stream)
}
