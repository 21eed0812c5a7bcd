//! What is written for people and for programs: data to standard output, talk to standard error.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{LabError, Outcome};

/// Somebody has said that there are to be no colours.
static COLOURLESS: AtomicBool = AtomicBool::new(false);

/// Writes data to standard output.
///
/// # Errors
/// [`LabError::NobodyReads`] if its reader has gone away, [`LabError::Output`] if it cannot be written.
pub fn print(text: &str) -> Result<(), LabError> {
    let mut output = io::stdout().lock();
    output.write_all(text.as_bytes()).and_then(|()| output.flush()).map_err(not_written)
}

/// Says what a command line has to say in place of being carried out: help on standard output, what is wrong with it on
/// standard error.
///
/// # Errors
/// As of [`print()`], for help.
pub fn tell_usage(told: &clap::Error) -> Result<Outcome, LabError> {
    // clap itself would colour wherever continuous integration is named in the environment.
    let text = told.render();
    let worded = |colours: bool| if colours { text.ansi().to_string() } else { text.to_string() };
    if told.use_stderr() {
        let mut stream = io::stderr().lock();
        drop(stream.write_all(worded(has_colours(&stream)).as_bytes()));
        return Ok(Outcome::Usage);
    }
    let mut stream = io::stdout().lock();
    let written = stream.write_all(worded(has_colours(&stream)).as_bytes()).and_then(|()| stream.flush());
    written.map_err(not_written)?;
    Ok(Outcome::Done)
}

fn not_written(error: io::Error) -> LabError {
    match error.kind() {
        io::ErrorKind::BrokenPipe => LabError::NobodyReads,
        _ => LabError::Output(error),
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

/// Whether what goes there can be drawn anew in its place.
pub(crate) fn can_be_drawn(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && is_capable(std::env::var("TERM").ok().as_deref())
}

/// Whether what goes there may be coloured.
pub(crate) fn has_colours(stream: &impl IsTerminal) -> bool {
    let refused = COLOURLESS.load(Ordering::Relaxed)
        || refuses_colours(
            std::env::var_os("NO_COLOR").map(|value| value.to_string_lossy().into_owned()).as_deref(),
        );
    !refused && can_be_drawn(stream)
}
