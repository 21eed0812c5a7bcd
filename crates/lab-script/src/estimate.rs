//! What a script will do in an hour when the server answers at once.

use std::ops::Range;
use std::time::Duration;

use crate::Operation;
use crate::Script;
use crate::command::{CalendarKind, Command, LoopName, ReplicationDirection, Statement, Stop};

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

/// How often a request is sent.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct ExpectedRequest {
    pub operation: Operation,
    pub per_loop: f64,
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
    /// The requests of that, where nothing fails and every page is full.
    pub requests: Vec<ExpectedRequest>,
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
        let mut requests: Vec<ExpectedRequest> = Vec::new();
        for (statement, weight) in weighted(statements, body) {
            for (operation, count) in requests_of(&statement.command) {
                let per_loop = count * weight;
                let known = requests.iter_mut().find(|known| known.operation == operation);
                match known {
                    Some(known) => known.per_loop += per_loop,
                    None => requests.push(ExpectedRequest { operation, per_loop, per_hour: 0.0 }),
                }
            }
            let Some((operation, count)) = action_of(&statement.command) else { continue };
            let (command, per_loop) = (operation.command(), count * weight);
            match commands.iter_mut().find(|known| known.command == command) {
                Some(known) => known.per_loop += per_loop,
                None => {
                    let command = command.to_owned();
                    commands.push(ExpectedCommand { command, per_loop, per_hour: 0.0 });
                }
            }
        }
        for command in &mut commands {
            command.per_hour = command.per_loop * loops_per_hour;
        }
        for request in &mut requests {
            request.per_hour = request.per_loop * loops_per_hour;
        }
        let one_loop = if endless.is_some() { one_loop } else { Duration::ZERO };
        Self { before_loop, one_loop, commands, requests }
    }
}

/// The share of a loop's think time in which a user is connected who closes a connection that was idle for
/// `keep_alive`.
#[must_use]
pub fn connected_share(script: &Script, keep_alive: Duration) -> f64 {
    let statements = &script.statements;
    let body = endless_loop(statements).map_or(0..statements.len(), |(from, to)| from..to);
    let (mut connected, mut all) = (0.0, 0.0);
    for (statement, weight) in weighted(statements, body) {
        if let Command::Pause(range) = &statement.command {
            connected += range.mean_up_to(keep_alive).as_secs_f64() * weight;
            all += range.mean().as_secs_f64() * weight;
        }
    }
    if all > 0.0 { connected / all } else { 1.0 }
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
            Command::NewMail { polls, delay, .. } => {
                Some(delay.mul_f64(number(polls.saturating_sub(1)) * weight))
            }
            _ => None,
        })
        .sum()
}

/// A part of the script that is run with some probability.
struct Branch {
    end: usize,
    /// Of what is before it.
    weight_before: f64,
    probability: f64,
}

/// The statements of a part, each with the number of times that it is run, on average. What a condition jumps over is
/// left out where the condition is known before a script is run.
fn weighted(statements: &[Statement], part: Range<usize>) -> impl Iterator<Item = (&Statement, f64)> {
    let mut weight = 1.0;
    let mut next = part.start;
    let mut branches: Vec<Branch> = Vec::new();
    part.filter_map(move |index| {
        while let Some(branch) = branches.pop_if(|branch| branch.end <= index) {
            weight = branch.weight_before;
        }
        let statement = statements.get(index).filter(|_| index >= next)?;
        let mut begin = |end: usize, probability: f64, weight: &mut f64| {
            branches.push(Branch { end, weight_before: *weight, probability });
            *weight *= probability;
        };
        match &statement.command {
            Command::SkipUnlessChance { percent, target } => {
                begin(*target, percent.fraction(), &mut weight);
            }
            Command::SkipUnlessNth { nth, target } => begin(*target, 1.0 / number(*nth), &mut weight),
            Command::Jump { target } => {
                let other = branches.pop_if(|branch| branch.end == index + 1);
                match other {
                    Some(branch) => {
                        weight = branch.weight_before * (1.0 - branch.probability);
                        branches.push(Branch {
                            end: *target,
                            weight_before: branch.weight_before,
                            probability: 1.0 - branch.probability,
                        });
                    }
                    None => next = *target,
                }
            }
            Command::SkipUnless { holds: false, target } => next = *target,
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
    !requests_of(command).is_empty()
}

/// What a command is there for, and how often one run of it does that.
fn action_of(command: &Command) -> Option<(Operation, f64)> {
    let requests = requests_of(command);
    // The request that a command is there for is the last one, but for what follows on it.
    let main = requests.iter().rev().find(|(operation, _)| {
        !matches!(
            operation,
            Operation::KeepMessage
                | Operation::MarkRead
                | Operation::GetAllUnread
                | Operation::NewMailRefresh
                | Operation::ReplicateWrite
                | Operation::ReplicateCompare
                | Operation::ReplicateRead
                | Operation::ReplicateChanges
        )
    });
    main.copied()
}

/// The requests of one run of a command, in their order.
fn requests_of(command: &Command) -> Vec<(Operation, f64)> {
    match command {
        Command::SendMessage { sending, .. } => {
            let each = 1.0 / number(sending.nth);
            let mut requests = vec![(Operation::SendMessage, each)];
            requests.extend(sending.kept.then_some((Operation::KeepMessage, each)));
            requests
        }
        Command::Answer { sending, .. } => {
            let each = 1.0 / number(sending.nth);
            let mut requests = vec![(Operation::AnswerFetch, each), (Operation::Answer, each)];
            requests.extend(sending.kept.then_some((Operation::KeepMessage, each)));
            requests
        }
        Command::Calendar { kind, sending } => {
            let operation = match kind {
                CalendarKind::Appointment => Operation::Appointment,
                _ => Operation::Invitation,
            };
            vec![(operation, 1.0 / number(sending.nth))]
        }
        Command::Accept { nth } => {
            let each = 1.0 / number(*nth);
            vec![(Operation::AcceptFind, each), (Operation::AcceptFetch, each), (Operation::Accept, each)]
        }
        Command::Replicate { direction, databases } => {
            let mut requests = Vec::new();
            let each = number(databases.len().max(1) as u64);
            if *direction != ReplicationDirection::Push {
                requests.push((Operation::ReplicateChanges, each));
                requests.push((Operation::ReplicateRead, each));
            }
            if *direction != ReplicationDirection::Pull {
                requests.push((Operation::ReplicateCompare, each));
                requests.push((Operation::ReplicateWrite, each));
            }
            requests.push((Operation::ReplicateCheckpoint, each));
            requests
        }
        Command::Navigate { count, step } => {
            let mut requests = vec![(Operation::Navigate, number(*count))];
            if matches!(step.stop, Stop::Unread | Stop::UnreadMain) {
                requests.push((Operation::MarkRead, number(*count)));
            }
            requests
        }
        Command::Update { count, stamp: true } => {
            vec![(Operation::StampFetch, number(*count)), (Operation::Stamp, number(*count))]
        }
        Command::Update { count, stamp: false } => {
            vec![(Operation::UpdateFetch, number(*count)), (Operation::Update, number(*count))]
        }
        Command::DeleteFromCollection { count } => {
            vec![(Operation::DeleteEntryFetch, number(*count)), (Operation::DeleteEntry, number(*count))]
        }
        Command::GetAll => vec![(Operation::GetAll, 1.0), (Operation::GetAllUnread, 1.0)],
        Command::NewMailPoll => vec![(Operation::NewMailPoll, 1.0), (Operation::NewMailRefresh, 1.0)],
        Command::ColorProfileAdd => {
            vec![(Operation::ColorProfileFetch, 1.0), (Operation::ColorProfileAdd, 1.0)]
        }
        Command::ColorProfileDelete => {
            vec![(Operation::ColorProfileDeleteFetch, 1.0), (Operation::ColorProfileDelete, 1.0)]
        }
        Command::SetCalendarProfile => {
            vec![(Operation::CalendarProfileFetch, 1.0), (Operation::CalendarProfile, 1.0)]
        }
        Command::Mail(command) => command.requests(),
        command => single_request(command).into_iter().collect(),
    }
}

fn single_request(command: &Command) -> Option<(Operation, f64)> {
    Some(match command {
        Command::ChangeTo { .. } | Command::Populate { .. } => (Operation::ChangeTo, 1.0),
        Command::Open { .. } => (Operation::Open, 1.0),
        Command::OpenCollection { .. } => (Operation::OpenCollection, 1.0),
        Command::Index { .. } => (Operation::Index, 1.0),
        Command::SetCollation { .. } => (Operation::SetCollation, 1.0),
        Command::FindByKey { .. } => (Operation::FindByKey, 1.0),
        Command::FindPeriod => (Operation::FindPeriod, 1.0),
        Command::Entries { .. } => (Operation::Entries, 1.0),
        Command::Read { count } => (Operation::Read, number(*count)),
        Command::Add { count, .. } => (Operation::Add, number(*count)),
        Command::Delete { count } => (Operation::Delete, number(*count)),
        Command::Unread { .. } => (Operation::Unread, 1.0),
        Command::MoveToFolder { .. } => (Operation::Move, 1.0),
        Command::CheckForNewMail { .. } => (Operation::CheckForNewMail, 1.0),
        Command::NewMail { polls, .. } => (Operation::NewMail, number(*polls)),
        Command::ModifiedNotes => (Operation::ModifiedNotes, 1.0),
        Command::FolderChanges => (Operation::FolderChanges, 1.0),
        Command::Lookup { .. } => (Operation::Lookup, 1.0),
        Command::ProfileOpen { .. } => (Operation::ProfileOpen, 1.0),
        Command::ProfileUpdate => (Operation::ProfileUpdate, 1.0),
        Command::DeleteDatabase { .. } => (Operation::DeleteDatabase, 1.0),
        Command::Console { .. } => (Operation::Console, 1.0),
        Command::WebGet { .. } => (Operation::WebGet, 1.0),
        _ => return None,
    })
}

#[allow(clippy::cast_precision_loss, reason = "numbers of a script are far below 2^53")]
pub(super) fn number(value: u64) -> f64 {
    value as f64
}
