//! The console: commands in Domino's manner, answered as text for people and as data for programs.
//!
//! [`COMMANDS`] is the table of them. A console knows the server by its [`ServerParts`] only, and its commands arrive as lines of text,
//! whatever brought them.

mod advice;
mod attachments;
mod command;
mod compact;
mod conflicts;
mod database;
mod databases;
mod deleted;
mod dkim;
mod fixup;
mod holds;
mod log;
mod log_database;
mod mail_search;
mod memory;
mod pattern;
mod person;
mod quarantine;
mod queue;
mod replication;
pub(crate) mod requests;
mod reread;
mod retention;
mod server;
mod settings;
mod statistics;
mod table;
mod tasks;
mod volumes;
mod words;

use std::sync::Arc;
use std::time::Duration;

use scrinium_administration::Requests;
use scrinium_catalog::Databases;
use scrinium_database::Properties;
use scrinium_mail::export::ExportFormat;
use scrinium_maintenance::CompactOrder;
use scrinium_outbound::OutboundControls;
use scrinium_statistics::{Snapshot, Tasks, breaks_line};
use serde_json::{Map, Value, json};

use crate::backup::{BackupOrder, RestoreOrder};
use crate::config::{RunningConfiguration, SetError};

pub use attachments::MoveAttachments;
pub use command::{COMMANDS, Command, CommandLine};
pub use conflicts::SettleOrder;
pub use database::SetProperty;
pub use deleted::{DeletedQuery, UndeleteOrder, show_deleted, undelete};
pub use fixup::FixupOrder;
pub use holds::{HoldOrder, change_hold};
pub use log_database::LogQuery;
pub use mail_search::{MailSearchOrder, MailSearches, criteria_on_record};
pub use quarantine::QuarantineOrder;
pub use replication::ReplicateOrder;
pub use server::ServerReport;
pub(crate) use words::quoted;

/// What the console sees of the server.
pub trait ServerParts: Send + Sync {
    /// All statistics, as they are now.
    fn statistics(&self) -> Snapshot;
    /// The table of tasks.
    fn tasks(&self) -> &Tasks;
    /// The configuration.
    fn configuration(&self) -> &RunningConfiguration;
    /// What there is to say of the server as a whole.
    fn report(&self) -> ServerReport;
    /// The queue of outgoing mail, while it is worked on.
    fn outbound(&self) -> Option<OutboundControls>;
    /// Replications that run, as `_scheduler/jobs` lists them.
    fn replications(&self) -> Vec<Value> {
        Vec::new()
    }
    /// Begins to write everything that is a person's into a folder, in the background.
    ///
    /// # Errors
    /// Why not, in words.
    fn export_person(&self, _name: &str) -> Result<Reply, String> {
        Err("the server is about to stop".to_owned())
    }
    /// Begins to write a person's mail into a folder, in the background.
    ///
    /// # Errors
    /// Why not, in words.
    fn export_mail(&self, _name: &str, _format: ExportFormat) -> Result<Reply, String> {
        Err("the server is about to stop".to_owned())
    }
    /// What is renamed and removed in all databases, while they are open.
    fn requests(&self) -> Option<Arc<Requests>> {
        None
    }
    /// The databases, while they are open.
    fn databases(&self) -> Option<Databases>;
    /// Begins to bring views up to date, in the background; returns how many databases' views.
    ///
    /// # Errors
    /// Why not, in words.
    fn update_views(&self, order: &UpdateViews) -> Result<usize, String>;
    /// Begins to compact a database, or all of them (`*`), in the background; returns how many.
    ///
    /// # Errors
    /// Why not, in words.
    fn compact(&self, database: &str, order: &CompactOrder) -> Result<usize, String>;
    /// Begins to move attachments to where they should be, in the background.
    ///
    /// # Errors
    /// Why not, in words.
    fn move_attachments(&self, order: &MoveAttachments) -> Result<(), String>;
    /// Begins to read the messages of a mail file again, or of all of them (`*`), in the background.
    ///
    /// # Errors
    /// Why not, in words.
    fn reread(&self, database: &str) -> Result<(), String>;
    /// Begins to check and repair databases, in the background.
    ///
    /// # Errors
    /// Why not, in words.
    fn fixup(&self, order: &FixupOrder) -> Result<(), String>;
    /// Begins to settle the conflicts of a database by a rule, in the background; returns the task's number.
    ///
    /// # Errors
    /// Why not, in words.
    fn settle_conflicts(&self, order: &SettleOrder) -> Result<u64, String>;
    /// Begins to move a database to another volume, in the background.
    ///
    /// # Errors
    /// Why not, in words.
    fn move_database(&self, database: &str, volume: &str) -> Result<(), String>;
    /// What the last fixups found.
    fn fixup_reports(&self) -> Reply;
    /// What fixups have set aside, of one database or of all.
    ///
    /// # Errors
    /// Why it cannot be told, in words.
    fn set_aside(&self, database: Option<&str>) -> Result<Reply, String>;
    /// Begins a backup, in the background; returns the task's number.
    ///
    /// # Errors
    /// Why not, in words.
    fn back_up(&self, order: BackupOrder) -> Result<u64, String>;
    /// Begins to restore a database, in the background; returns the task's number.
    ///
    /// # Errors
    /// Why not, in words.
    fn restore_database(&self, order: RestoreOrder) -> Result<u64, String>;
    /// Holds changes of all databases for a snapshot of the disks, for `limit` at most.
    ///
    /// # Errors
    /// Why not, in words.
    fn freeze(&self, limit: Duration) -> Result<Reply, String>;
    /// Takes changes again.
    ///
    /// # Errors
    /// In words, that they were not held until now.
    fn thaw(&self) -> Result<Reply, String>;
    /// What is set for a database as a whole.
    ///
    /// # Errors
    /// Why not, in words.
    fn properties(&self, database: &str) -> Result<Properties, String>;
    /// Sets properties of a database; returns all of them.
    ///
    /// # Errors
    /// Why not, in words.
    fn set_properties(&self, database: &str, wish: &Map<String, Value>) -> Result<Properties, String>;
}

/// `load updall`: which views, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpdateViews {
    /// The database, or `*` for all of them.
    pub database: String,
    /// Only views of this name (`-T`).
    pub view: Option<String>,
    /// Build them again from all documents (`-R`).
    pub rebuild: bool,
}

/// The answer to a command.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// For people: lines, each ended.
    pub text: String,
    /// For programs: the same as data.
    pub data: Value,
}

/// Why a command did nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConsoleError {
    /// Nothing was typed.
    #[error("type a command; help lists them")]
    Empty,
    /// Too long, or not a line of text.
    #[error("a command is one line of at most 4096 bytes")]
    NotOneLine,
    /// There is no such command.
    #[error("there is no command {line:?}; {}", nearest.as_ref().map_or_else(
        || "help lists them".to_owned(),
        |nearest| format!("did you mean: {nearest}"),
    ))]
    Unknown {
        /// What was typed.
        line: String,
        /// The command that is most like it.
        nearest: Option<String>,
    },
    /// Several commands begin like this.
    #[error("{line:?} could be: {}", candidates.join("; "))]
    Ambiguous {
        /// What was typed.
        line: String,
        /// Those commands.
        candidates: Vec<String>,
    },
    /// A verb without its object.
    #[error("{line:?} needs more: {}", candidates.join("; "))]
    Incomplete {
        /// What was typed.
        line: String,
        /// The commands that begin with it.
        candidates: Vec<String>,
    },
    /// What follows the words is not as it must be.
    #[error("type it like this: {usage}")]
    Usage {
        /// The command with its arguments.
        usage: String,
    },
    /// Nothing of this name, in words.
    #[error("{0}")]
    NotFound(String),
    /// `set config` did nothing.
    #[error(transparent)]
    Set(#[from] SetError),
}

/// Carries out console commands. Clones share the parts.
#[derive(Clone)]
pub struct Console {
    parts: Arc<dyn ServerParts>,
}

impl Console {
    /// A console of the server with these parts.
    #[must_use]
    pub fn new(parts: Arc<dyn ServerParts>) -> Self {
        Self { parts }
    }

    /// Carries out one line. It may write the configuration file, and so may wait for the disk.
    ///
    /// # Errors
    /// [`ConsoleError`], with what to type instead; nothing was changed then.
    pub fn execute(&self, line: &str) -> Result<Reply, ConsoleError> {
        self.carry_out(line).map(plain)
    }

    fn carry_out(&self, line: &str) -> Result<Reply, ConsoleError> {
        let parts = self.parts.as_ref();
        let open = || parts.databases().ok_or_else(databases::not_open);
        match Command::parse(line)? {
            Command::ShowStatistics(filter) => {
                statistics::show_statistics(&parts.statistics(), filter.as_deref())
            }
            Command::ShowTransactions(filter) => {
                statistics::show_transactions(&parts.statistics(), filter.as_deref())
            }
            Command::ShowTasks => Ok(tasks::show_tasks(parts.tasks())),
            Command::Pause { task, paused } => tasks::pause(parts.tasks(), task, paused),
            Command::Compact { database, order } => compact::begin(parts, &database, &order),
            Command::UpgradeFormat { database } => Ok(compact::upgrade(&database)),
            Command::Quit { task } => tasks::quit(parts.tasks(), task),
            Command::ShowServer => Ok(server::show_server(&parts.report(), &parts.statistics())),
            Command::ShowMemory => Ok(memory::show_memory(&parts.statistics())),
            Command::ShowLog(query) => {
                let settings = parts.configuration().settings();
                log_database::show_log(&open()?, &settings.log_database.name, &query)
            }
            Command::ShowDatabases(filter) => databases::show_databases(&open()?, filter.as_deref()),
            Command::ShowConfiguration(name) => {
                settings::show_configuration(parts.configuration(), name.as_deref())
            }
            Command::SetConfiguration { name, value } => {
                settings::set_configuration(parts.configuration(), &name, &value)
            }
            Command::ShowDatabase(name) => database::show_database(parts, &name),
            Command::SetDatabase(order) => database::set_database(parts, &order),
            Command::UpdateViews(order) => update_views(parts, &order),
            Command::MoveAttachments(order) => attachments::begin(parts, &order),
            Command::Reread { database } => reread::begin(parts, &database),
            Command::Retention { database } => retention::begin(parts, &database),
            Command::ShowVolumes => volumes::show_volumes(&open()?, &parts.statistics()),
            Command::Move { database, volume } => volumes::begin_move(parts, &database, &volume),
            Command::Fixup(order) => fixup::begin(parts, &order),
            Command::ShowQueue(what) => queue::show_queue(parts.outbound(), what.as_deref()),
            Command::TellRouter(order) => queue::tell(parts.outbound(), &order),
            Command::ShowQuarantine => quarantine::show(&open()?),
            Command::TellQuarantine(order) => quarantine::tell(&open()?, &order),
            Command::ShowMessage(id) => queue::show_message(&open()?, &log_database_of(parts), &id),
            Command::ShowFixup => Ok(parts.fixup_reports()),
            Command::ShowAside(database) => {
                parts.set_aside(database.as_deref()).map_err(ConsoleError::NotFound)
            }
            Command::BackUp(order) => begun("Backup", parts.back_up(order)),
            Command::RestoreDatabase(order) => begun("Restore", parts.restore_database(order)),
            Command::ShowReplication(database) => replication::reply(parts, database.as_deref()),
            Command::ShowDkim(domain) => dkim::show(parts.outbound(), domain.as_deref()),
            Command::ShowConflicts(database) => conflicts::show(&open()?, &database),
            Command::SettleConflicts(order) => conflicts::begin(parts, &order),
            Command::ShowHolds => holds::show(&open()?),
            // Carried out by the one who knows who asks.
            Command::SetHold(_) | Command::LiftHold(_) => Err(holds::of_nobody()),
            Command::ShowDeleted(_) | Command::Undelete(_) | Command::MailSearch(_) => {
                Err(deleted::of_nobody())
            }
            Command::Replicate(_) | Command::Request(_) => Err(replication::not_running()),
            Command::ExportPerson(name) => parts.export_person(&name).map_err(ConsoleError::NotFound),
            Command::ExportMail { person, format } => {
                parts.export_mail(&person, format).map_err(ConsoleError::NotFound)
            }
            Command::ShowPerson(name) => person::show(parts.requests().as_deref(), &name),
            Command::ShowRequests => requests::show(parts.requests().as_deref()),
            Command::Freeze { limit } => parts.freeze(limit).map_err(ConsoleError::NotFound),
            Command::Thaw => parts.thaw().map_err(ConsoleError::NotFound),
            Command::ShowAdvice => advice::show(self),
            Command::Help => Ok(help()),
        }
    }
}

/// An answer without what could move a terminal's cursor: lines are the console's own; whatever else is in them came from others.
pub(crate) fn plain(mut reply: Reply) -> Reply {
    let lines = reply.text.split_inclusive('\n').map(|line| match line.strip_suffix('\n') {
        Some(line) => plain_line(line) + "\n",
        None => plain_line(line),
    });
    reply.text = lines.collect();
    reply
}

fn update_views(parts: &dyn ServerParts, order: &UpdateViews) -> Result<Reply, ConsoleError> {
    let databases = parts.update_views(order).map_err(ConsoleError::NotFound)?;
    Ok(Reply {
        text: format!("Updating the views of {databases} databases; show tasks shows its progress.\n"),
        data: json!({"databases": databases}),
    })
}

/// What the log database is called.
fn log_database_of(parts: &dyn ServerParts) -> String {
    parts.configuration().settings().log_database.name.clone()
}

/// A line without characters that a terminal would obey.
fn plain_line(line: &str) -> String {
    line.chars()
        .flat_map(|character| {
            let escaped = breaks_line(character).then(|| character.escape_unicode());
            let plain = escaped.is_none().then_some(character);
            escaped.into_iter().flatten().chain(plain)
        })
        .collect()
}

fn begun(what: &str, task: Result<u64, String>) -> Result<Reply, ConsoleError> {
    let task = task.map_err(ConsoleError::NotFound)?;
    let text = format!(
        "{what} has started as task {task}; show tasks shows its progress, tell {task} quit cancels it.\n"
    );
    Ok(Reply { text, data: json!({"task": task}) })
}

fn help() -> Reply {
    let mut text = String::from("Words may be shortened: sh stat, sh ta.\n\n");
    let mut commands = Vec::new();
    for known in COMMANDS {
        text.push_str(&format!("{:<42} {}\n", known.usage(), known.help));
        commands.push(json!({"command": known.usage(), "help": known.help}));
    }
    Reply { text, data: json!({"commands": commands}) }
}
