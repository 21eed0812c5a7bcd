//! What a script will do in an hour when the server answers at once.

use std::ops::Range;
use std::time::Duration;

use super::Script;
use super::command::{Command, LoopName, Statement};

/// How often a command is run.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpectedCommand {
    /// The command, with what it acts on: `Navigate`, `Cal Invitation`.
    pub command: String,
    /// Actions (documents opened, messages sent) in one loop, on average.
    pub per_loop: f64,
    /// The same for one user in one hour.
    pub per_hour: f64,
}

/// Think times and actions of a script.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// Mean think time before the loop.
    pub before_loop: Duration,
    /// Mean think time of one loop; zero if the script has no loop that is repeated for ever.
    pub one_loop: Duration,
    /// What is done in the loop, or in the whole script if it has none.
    pub commands: Vec<ExpectedCommand>,
}

impl Estimate {
    /// Walks through the script once.
    #[must_use]
    pub fn of(script: &Script) -> Self {
        let statements = &script.statements;
        let endless = endless_loop(statements);
        let body = endless.map_or(0..statements.len(), |(from, to)| from..to);
        let before_loop = endless.map_or(Duration::ZERO, |(from, _)| think_time(statements, 0..from));
        let one_loop = think_time(statements, body.clone());
        let loops_per_hour = if one_loop.is_zero() { 0.0 } else { 3600.0 / one_loop.as_secs_f64() };
        let mut commands: Vec<ExpectedCommand> = Vec::new();
        for (statement, weight) in weighted(statements, body) {
            let Some((command, count)) = actions(&statement.command) else { continue };
            let per_loop = count * weight;
            match commands.iter_mut().find(|known| known.command == command) {
                Some(known) => known.per_loop += per_loop,
                None => commands.push(ExpectedCommand { command, per_loop, per_hour: 0.0 }),
            }
        }
        for command in &mut commands {
            command.per_hour = command.per_loop * loops_per_hour;
        }
        let one_loop = if endless.is_some() { one_loop } else { Duration::ZERO };
        Self { before_loop, one_loop, commands }
    }
}

/// The statements inside the loop that is repeated for ever.
fn endless_loop(statements: &[Statement]) -> Option<(usize, usize)> {
    statements.iter().enumerate().find_map(|(index, statement)| match statement.command {
        Command::Rewind { times: None, target, .. } => Some((target, index)),
        _ => None,
    })
}

fn think_time(statements: &[Statement], part: Range<usize>) -> Duration {
    weighted(statements, part)
        .filter_map(|(statement, weight)| match &statement.command {
            Command::Pause(range) => Some(range.mean().mul_f64(weight)),
            _ => None,
        })
        .sum()
}

/// The statements of a part, each with the number of times that it is run. What a condition jumps over is
/// left out: conditions are known before a script is run.
fn weighted(statements: &[Statement], part: Range<usize>) -> impl Iterator<Item = (&Statement, f64)> {
    let mut weight = 1.0;
    let mut next = part.start;
    part.filter_map(move |index| {
        let statement = statements.get(index).filter(|_| index >= next)?;
        match &statement.command {
            Command::SkipUnless { holds: false, target } | Command::Jump { target } => next = *target,
            Command::BeginLoop(name) => weight *= repetitions(statements, *name),
            Command::Rewind { name, .. } => weight /= repetitions(statements, *name),
            _ => {}
        }
        Some((statement, weight))
    })
}

fn repetitions(statements: &[Statement], name: LoopName) -> f64 {
    let times = statements.iter().find_map(|statement| match statement.command {
        Command::Rewind { name: found, times, .. } if found == name => times,
        _ => None,
    });
    times.map_or(1.0, number)
}

/// Whether a command asks something of a server.
pub(super) fn acts(command: &Command) -> bool {
    actions(command).is_some() || matches!(command, Command::Populate { .. })
}

/// The command's name for people, and how many actions one run of it takes.
fn actions(command: &Command) -> Option<(String, f64)> {
    let (name, count) = match command {
        Command::ChangeTo { .. } => ("ChangeTo", 1.0),
        Command::Open { .. } => ("Open", 1.0),
        Command::Entries { .. } => ("Entries", 1.0),
        Command::Navigate { count, .. } => ("Navigate", number(*count)),
        Command::Read { count } => ("Read", number(*count)),
        Command::Add { count, .. } => ("Add", number(*count)),
        Command::Update { count, stamp: true } => ("Stamp", number(*count)),
        Command::Update { count, stamp: false } => ("Update", number(*count)),
        Command::Delete { count } => ("Delete", number(*count)),
        Command::SendMessage { sending, .. } => ("SendMessage", 1.0 / number(sending.nth)),
        Command::Calendar { kind, sending } => {
            return Some((format!("Cal {kind:?}"), 1.0 / number(sending.nth)));
        }
        Command::CheckForNewMail { .. } => ("CheckForNewMail", 1.0),
        Command::Mail(command) => (command.name(), command.actions()),
        _ => return None,
    };
    Some((name.to_owned(), count))
}

#[allow(clippy::cast_precision_loss, reason = "numbers of a script are far below 2^53")]
pub(super) fn number(value: u64) -> f64 {
    value as f64
}
