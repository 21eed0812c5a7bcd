//! What simulated users do: the script language of Server.Load, and workloads written in it.
//!
//! A script is one command a line, with `**comments**` and `[variables]`. [`Script::parse`] reads a whole script, with
//! every variable's value known, and names each word that is wrong with its line. What it returns can be run at once:
//! loops and conditions know where they jump to. The language and its commands: Domino's administration help,
//! "Server.Load commands".
//!
//! - [`Workload`] is a script with a name, found by name or by path, or carried by the program;
//! - [`Estimate`] says what a script does in an hour, and [`Operation`] names the requests of its commands;
//! - [`Ability`] is what a command needs a server for;
//! - [`mod@capture`] makes a workload of what a server's users did.
//!
//! This crate reads and writes text. It knows no server, protocol or report.

mod ability;
mod actions;
mod arguments;
mod blocks;
pub mod capture;
mod command;
mod error;
mod estimate;
mod header;
mod mail;
mod needs;
mod operation;
mod parser;
mod print;
mod reference;
mod table;
mod text_file;
mod web;
mod words;
mod workload;

pub use ability::Ability;
pub use arguments::message_size;
pub use command::{
    CalendarKind, Command, Direction, LoopName, MessageSize, NavigationStep, Percent, ReplicationDirection,
    Sending, Statement, Stop, TimeRange, UserText,
};
pub use error::{Problem, ScriptError, ScriptErrors, ScriptPlace};
pub use estimate::{Estimate, ExpectedCommand, ExpectedRequest, connected_share};
pub use header::{Header, Variable, Variables};
pub use mail::{MailCommand, MailEntry};
pub use needs::{Needs, SharedDatabase};
pub use operation::Operation;
pub use reference::reference_markdown as workloads_markdown;
pub use table::{COMMANDS, CommandInfo, Elsewhere, Support, find as find_command};
pub use text_file::{TextFileError, read_text};
pub use workload::{Workload, WorkloadError};

/// A script that can be run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Script {
    pub header: Header,
    pub statements: Vec<Statement>,
    /// What is done otherwise than it is written there.
    pub notes: Vec<ScriptNote>,
}

/// What is done otherwise than a line says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct ScriptNote {
    pub line: usize,
    pub text: String,
}

/// Variables that have a meaning of their own, whatever the script is.
const OWN_VARIABLES: [&str; 10] = [
    "AttachmentBytes",
    "MailServer",
    "MailTemplate",
    "NB_MAIL_SAVE_MESSAGE",
    "NormalMessageSize",
    "NumMailNotesPerUser",
    "RecipientDomain",
    "RecipientSkew",
    "ReplicateDocuments",
    "nb_dbdir",
];

/// A name that is no variable of a script, with those that are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StrangeVariable {
    pub(crate) name: String,
    pub(crate) nearest: Option<String>,
    pub(crate) known: Vec<String>,
}

/// The first of the given variables that the script does not use and that means nothing by itself.
pub(crate) fn strange_variable(text: &str, given: &Variables) -> Option<StrangeVariable> {
    let words = words::split(text, &mut Vec::new());
    let header = header::read(&words.comments, &mut Vec::new());
    let mut known = words.variables();
    known.extend(header.variables.into_iter().map(|variable| variable.name));
    let (name, _) = given.iter().find(|(name, _)| {
        let mut names = known.iter().map(String::as_str).chain(OWN_VARIABLES);
        !names.any(|known| known.eq_ignore_ascii_case(name))
    })?;
    let names = known.iter().map(String::as_str).chain(OWN_VARIABLES);
    let nearest = table::nearest(name, names);
    Some(StrangeVariable { name: name.to_owned(), nearest, known: known.into_iter().collect() })
}

impl Script {
    /// Reads a script. `given` values win over those of the header.
    ///
    /// # Errors
    /// Everything that is wrong with it, in the order of its lines.
    pub fn parse(text: &str, given: &Variables) -> Result<(Self, Variables), ScriptErrors> {
        let mut errors = Vec::new();
        if text.len() > words::LONGEST_SCRIPT_BYTES {
            return Err(ScriptErrors(vec![whole(Problem::TooLong(words::LONGEST_SCRIPT_BYTES))]));
        }
        let words = words::split(text, &mut errors);
        let header = header::read(&words.comments, &mut errors);
        let mut variables = given.clone();
        for variable in &header.variables {
            variables.set_default(&variable.name, &variable.value);
        }
        let (statements, notes) = parser::parse(&words.lines, &variables, &mut errors);
        if errors.is_empty() && statements.is_empty() {
            errors.push(whole(Problem::Empty));
        }
        if errors.is_empty() {
            return Ok((Self { header, statements, notes }, variables));
        }
        errors.sort_by_key(|error| error.place);
        Err(ScriptErrors(errors))
    }

    /// What it needs servers for: for each, any one of some abilities.
    #[must_use]
    pub fn abilities(&self) -> Vec<&'static [Ability]> {
        let mut found: Vec<&'static [Ability]> = Vec::new();
        for statement in &self.statements {
            let needs = statement.command.needs();
            if !needs.is_empty() && !found.contains(&needs) {
                found.push(needs);
            }
        }
        found
    }

    /// The most recipients that one of its messages has.
    #[must_use]
    pub fn recipients(&self) -> usize {
        self.statements.iter().map(|statement| statement.command.recipients()).max().unwrap_or(0)
    }

    /// Commands that the language knows and the laboratory cannot run, with their lines.
    pub fn cannot_run(&self) -> impl Iterator<Item = (usize, &'static str)> + '_ {
        self.statements.iter().filter_map(|statement| match statement.command {
            Command::Known(name) => Some((statement.line, name)),
            _ => None,
        })
    }
}

fn whole(problem: Problem) -> ScriptError {
    ScriptError { place: ScriptPlace { line: 1, column: 1 }, word: String::new(), problem }
}
