//! The console's commands: one table, and the parser over it.
//!
//! A word may be shortened as far as it stays clear (`sh stat`), and case does not matter.

use std::time::Duration;

use scrinium_administration::{NewRequest, RequestKind};
use scrinium_mail::export::ExportFormat;
use scrinium_maintenance::CompactOrder;
use scrinium_outbound::QueueOrder;

use super::{
    ConsoleError, DeletedQuery, FixupOrder, HoldOrder, LogQuery, MailSearchOrder, MoveAttachments,
    QuarantineOrder, ReplicateOrder, SetProperty, SettleOrder, UndeleteOrder, UpdateViews, advice,
    attachments, compact, conflicts, deleted, dkim, holds, log_database, mail_search, person, quarantine,
    queue, replication, requests, reread, retention,
};
use crate::backup::{BackupOrder, RestoreOrder};
use crate::config::parse_duration;
use crate::freeze::{LONGEST_LIMIT, USUAL_LIMIT};

/// A longer command is refused.
const COMMAND_LIMIT_BYTES: usize = 4096;

/// One line of the table of commands.
#[derive(Clone, Copy, Debug)]
pub struct CommandLine {
    /// The words that it begins with, in full.
    pub words: &'static [&'static str],
    /// What follows, as help shows it; empty if nothing does.
    pub arguments: &'static str,
    /// What it does.
    pub help: &'static str,
    build: Build,
}

/// Makes a command of what follows the words; nothing if that is not as the table says.
type Build = fn(&str) -> Option<Command>;

/// Every command.
pub const COMMANDS: &[CommandLine] = &[
    CommandLine {
        words: &["show", "statistics"],
        arguments: "[FACILITY or PATTERN]",
        help: "Values of statistics; of one facility (Server), or that match (Database.*.Peak)",
        build: |rest| Some(Command::ShowStatistics(optional(rest))),
    },
    CommandLine {
        words: &["show", "transactions"],
        arguments: "[PATTERN]",
        help: "Count and milliseconds of each operation since the start",
        build: |rest| Some(Command::ShowTransactions(optional(rest))),
    },
    CommandLine {
        words: &["show", "tasks"],
        arguments: "",
        help: "Long jobs that run, with rate and time left, and those that ended lately",
        build: |rest| rest.is_empty().then_some(Command::ShowTasks),
    },
    CommandLine {
        words: &["show", "server"],
        arguments: "",
        help: "Name, version, ports, time since the start, users, transactions, the log and what a restart would take",
        build: |rest| rest.is_empty().then_some(Command::ShowServer),
    },
    CommandLine {
        words: &["show", "memory"],
        arguments: "",
        help: "What the memory budget is used for, and how much is read from it",
        build: |rest| rest.is_empty().then_some(Command::ShowMemory),
    },
    CommandLine {
        words: &["show", "databases"],
        arguments: "[NAME or PATTERN]",
        help: "Reads, writes, disk and memory of databases, those that are used most first",
        build: |rest| Some(Command::ShowDatabases(optional(rest))),
    },
    CommandLine {
        words: &["show", "log"],
        arguments: log_database::ARGUMENTS,
        help: log_database::HELP,
        build: |rest| LogQuery::parse(rest).map(Command::ShowLog),
    },
    CommandLine {
        words: &["show", "queue"],
        arguments: queue::SHOW_ARGUMENTS,
        help: queue::SHOW_HELP,
        build: |rest| Some(Command::ShowQueue(optional(rest))),
    },
    CommandLine {
        words: &["show", "quarantine"],
        arguments: "",
        help: quarantine::SHOW_HELP,
        build: |rest| rest.is_empty().then_some(Command::ShowQuarantine),
    },
    CommandLine {
        words: &["tell", "quarantine"],
        arguments: quarantine::TELL_ARGUMENTS,
        help: quarantine::TELL_HELP,
        build: |rest| quarantine::parse_order(rest).map(Command::TellQuarantine),
    },
    CommandLine {
        words: &["show", "message"],
        arguments: "MESSAGE-ID",
        help: queue::TRACE_HELP,
        build: |rest| Some(Command::ShowMessage(optional(rest)?)),
    },
    CommandLine {
        words: &["tell", "router"],
        arguments: queue::TELL_ARGUMENTS,
        help: queue::TELL_HELP,
        build: |rest| queue::parse_order(rest).map(Command::TellRouter),
    },
    CommandLine {
        words: &["show", "configuration"],
        arguments: "[KEY or SECTION]",
        help: "Effective values and where each comes from; all about one key",
        build: |rest| Some(Command::ShowConfiguration(optional(rest))),
    },
    CommandLine {
        words: &["set", "configuration"],
        arguments: "KEY=VALUE",
        help: "Changes a key, by its name or Domino's, and keeps it in the configuration file",
        build: assignment,
    },
    CommandLine {
        words: &["show", "database"],
        arguments: "DATABASE",
        help: "Properties of a database, such as whether it is logged",
        build: |rest| Some(Command::ShowDatabase(optional(rest)?)),
    },
    CommandLine {
        words: &["set", "database"],
        arguments: "DATABASE PROPERTY=VALUE",
        help: "Sets a property of a database: logged, full_text (true or false); quota_bytes, quota_documents (0: no limit), quota_warn_percent; undelete_days, undelete_bytes (null: as the server)",
        build: property,
    },
    CommandLine {
        words: &["load", "updall"],
        arguments: "DATABASE or * [-R] [-T VIEW]",
        help: "Brings all views and folders up to date; -R rebuilds them, -T only those of a name",
        build: update_views,
    },
    CommandLine {
        words: &["load", "compact"],
        arguments: compact::ARGUMENTS,
        help: compact::HELP,
        build: compact::parse,
    },
    CommandLine {
        words: &["show", "volumes"],
        arguments: "",
        help: "The stores that databases lie on: folder, databases, memory, disk, log",
        build: |rest| rest.is_empty().then_some(Command::ShowVolumes),
    },
    CommandLine {
        words: &["load", "move"],
        arguments: "DATABASE VOLUME",
        help: "Moves a database to another volume while it is used; show volumes names them",
        build: move_database,
    },
    CommandLine {
        words: &["load", "fixup"],
        arguments: "[DATABASE or *] [-V] [-Q] [-N] [-L]",
        help: "Checks and repairs databases; -V indexes too, -Q not the bytes of attachments, -N changes nothing, -L shows all",
        build: |rest| FixupOrder::parse(rest).map(Command::Fixup),
    },
    CommandLine {
        words: &["show", "fixup"],
        arguments: "",
        help: "What the last fixups found, repaired and set aside",
        build: |rest| rest.is_empty().then_some(Command::ShowFixup),
    },
    CommandLine {
        words: &["show", "aside"],
        arguments: "[DATABASE]",
        help: "Damaged records that fixups have set aside",
        build: |rest| Some(Command::ShowAside(optional(rest))),
    },
    CommandLine {
        words: &["load", "attachments"],
        arguments: attachments::ARGUMENTS,
        help: attachments::HELP,
        build: attachments::parse,
    },
    CommandLine {
        words: &["load", "reread"],
        arguments: reread::ARGUMENTS,
        help: reread::HELP,
        build: reread::parse,
    },
    CommandLine {
        words: &["load", "retention"],
        arguments: retention::ARGUMENTS,
        help: retention::HELP,
        build: |rest| Some(Command::Retention { database: optional(rest)? }),
    },
    CommandLine {
        words: &["load", "backup"],
        arguments: "[DIR] [-r RATE]",
        help: "Backs the server up into a place of backup.targets; -r at most so much a second (50MB)",
        build: |rest| BackupOrder::parse(rest).map(Command::BackUp),
    },
    CommandLine {
        words: &["load", "restore"],
        arguments: "REPOSITORY DATABASE NEW [-b BACKUP] [-t MOMENT] [-a ARCHIVE]",
        help: "Restores a database from a backup under a new name, next to the live one",
        build: |rest| RestoreOrder::parse(rest).map(Command::RestoreDatabase),
    },
    CommandLine {
        words: &["replicate"],
        arguments: replication::ARGUMENTS,
        help: replication::HELP,
        build: replication::parse,
    },
    CommandLine {
        words: &["show", "replication"],
        arguments: "[DATABASE]",
        help: "Replications that run, and why one fails; or with which others a database was replicated, and what came of it",
        build: |rest| Some(Command::ShowReplication(optional(rest))),
    },
    CommandLine {
        words: &["show", "conflicts"],
        arguments: "DATABASE",
        help: "Documents with conflicts that nobody has settled",
        build: |rest| Some(Command::ShowConflicts(optional(rest)?)),
    },
    CommandLine {
        words: &["show", "advice"],
        arguments: "",
        help: advice::HELP,
        build: |rest| rest.is_empty().then_some(Command::ShowAdvice),
    },
    CommandLine {
        words: &["show", "dkim"],
        arguments: "[DOMAIN]",
        help: dkim::HELP,
        build: |rest| Some(Command::ShowDkim(optional(rest))),
    },
    CommandLine {
        words: &["settle", "conflicts"],
        arguments: conflicts::ARGUMENTS,
        help: conflicts::HELP,
        build: conflicts::parse,
    },
    CommandLine {
        words: &["show", "holds"],
        arguments: "",
        help: holds::SHOW_HELP,
        build: |rest| rest.is_empty().then_some(Command::ShowHolds),
    },
    CommandLine {
        words: &["set", "hold"],
        arguments: holds::ARGUMENTS,
        help: holds::SET_HELP,
        build: |rest| holds::parse(rest).map(Command::SetHold),
    },
    CommandLine {
        words: &["lift", "hold"],
        arguments: holds::ARGUMENTS,
        help: holds::LIFT_HELP,
        build: |rest| holds::parse(rest).map(Command::LiftHold),
    },
    CommandLine {
        words: &["show", "deleted"],
        arguments: deleted::SHOW_ARGUMENTS,
        help: deleted::SHOW_HELP,
        build: deleted::parse_show,
    },
    CommandLine {
        words: &["undelete"],
        arguments: deleted::RESTORE_ARGUMENTS,
        help: deleted::RESTORE_HELP,
        build: deleted::parse_restore,
    },
    CommandLine {
        words: &["search", "mail"],
        arguments: mail_search::SEARCH_ARGUMENTS,
        help: mail_search::SEARCH_HELP,
        build: mail_search::parse_search,
    },
    CommandLine {
        words: &["show", "mailsearch"],
        arguments: "[SEARCH]",
        help: mail_search::SHOW_HELP,
        build: mail_search::parse_show,
    },
    CommandLine {
        words: &["move", "mail"],
        arguments: "SEARCH FOLDER",
        help: mail_search::MOVE_HELP,
        build: mail_search::parse_move,
    },
    CommandLine {
        words: &["purge", "mail"],
        arguments: "SEARCH",
        help: mail_search::PURGE_HELP,
        build: mail_search::parse_purge,
    },
    CommandLine {
        words: &["rename", "person"],
        arguments: requests::RENAME_PERSON,
        help: "Renames a person in all databases: access lists, Readers, Authors, groups; the old names stay theirs",
        build: |rest| requests::parse(RequestKind::RenamePerson, rest),
    },
    CommandLine {
        words: &["rename", "group"],
        arguments: requests::RENAME_GROUP,
        help: "Renames a group in all databases",
        build: |rest| requests::parse(RequestKind::RenameGroup, rest),
    },
    CommandLine {
        words: &["remove", "person"],
        arguments: requests::REMOVE,
        help: "Removes a person from all databases and the directory; the mail database stays",
        build: |rest| requests::parse(RequestKind::RemovePerson, rest),
    },
    CommandLine {
        words: &["remove", "group"],
        arguments: requests::REMOVE,
        help: "Removes a group from all databases and the directory",
        build: |rest| requests::parse(RequestKind::RemoveGroup, rest),
    },
    CommandLine {
        words: &["erase", "person"],
        arguments: requests::REMOVE,
        help: "Removes a person, and deletes the mail database, unless a legal hold keeps it",
        build: |rest| requests::parse(RequestKind::ErasePerson, rest),
    },
    CommandLine {
        words: &["export", "person"],
        arguments: "NAME",
        help: "Writes everything that is a person's into a folder below exports in the data folder",
        build: |rest| Some(Command::ExportPerson(optional(rest)?)),
    },
    CommandLine {
        words: &["export", "mail"],
        arguments: "maildir|mbox|eml NAME",
        help: "Writes a person's mail into a folder below exports in the data folder, for other mail programs",
        build: |rest| {
            let (format, person) = rest.split_once(' ')?;
            let format = ExportFormat::parse(format)?;
            Some(Command::ExportMail { person: optional(person.trim())?, format })
        },
    },
    CommandLine {
        words: &["show", "person"],
        arguments: person::ARGUMENTS,
        help: person::HELP,
        build: |rest| Some(Command::ShowPerson(optional(rest)?)),
    },
    CommandLine {
        words: &["show", "requests"],
        arguments: "",
        help: "People and groups that are renamed and removed: databases done, documents changed",
        build: |rest| rest.is_empty().then_some(Command::ShowRequests),
    },
    CommandLine {
        words: &["freeze"],
        arguments: "[TIME]",
        help: "Holds changes while a snapshot of the disks is taken, for 30 s or TIME (2min) at most",
        build: freeze,
    },
    CommandLine {
        words: &["thaw"],
        arguments: "",
        help: "Accepts changes again after freeze; says if they had resumed by themselves before",
        build: |rest| rest.is_empty().then_some(Command::Thaw),
    },
    CommandLine {
        words: &["tell"],
        arguments: "NUMBER quit|pause|resume",
        help: "Stops a task, by its number in show tasks; or pauses (a compaction, a move of attachments) and resumes it",
        build: tell,
    },
    CommandLine {
        words: &["help"],
        arguments: "",
        help: "This list",
        build: |rest| rest.is_empty().then_some(Command::Help),
    },
];

/// A command that was understood.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the table of commands says what each does")]
pub enum Command {
    ShowStatistics(Option<String>),
    ShowTransactions(Option<String>),
    ShowTasks,
    ShowServer,
    ShowMemory,
    ShowDatabases(Option<String>),
    ShowLog(LogQuery),
    ShowConfiguration(Option<String>),
    SetConfiguration {
        name: String,
        value: String,
    },
    ShowDatabase(String),
    SetDatabase(SetProperty),
    UpdateViews(UpdateViews),
    Compact {
        database: String,
        order: CompactOrder,
    },
    UpgradeFormat {
        database: String,
    },
    MoveAttachments(MoveAttachments),
    Reread {
        database: String,
    },
    Retention {
        database: String,
    },
    ShowVolumes,
    Move {
        database: String,
        volume: String,
    },
    Fixup(FixupOrder),
    ShowFixup,
    ShowQueue(Option<String>),
    ShowQuarantine,
    TellQuarantine(QuarantineOrder),
    ShowMessage(String),
    TellRouter(QueueOrder),
    ShowAside(Option<String>),
    BackUp(BackupOrder),
    RestoreDatabase(RestoreOrder),
    Replicate(ReplicateOrder),
    Request(NewRequest),
    ExportPerson(String),
    ExportMail {
        person: String,
        format: ExportFormat,
    },
    ShowRequests,
    ShowReplication(Option<String>),
    ShowConflicts(String),
    ShowAdvice,
    ShowDkim(Option<String>),
    /// `show person`, by a name or an address.
    ShowPerson(String),
    SettleConflicts(SettleOrder),
    ShowHolds,
    SetHold(HoldOrder),
    LiftHold(HoldOrder),
    /// `show deleted`: it shows other people's mail, so it is not one of those that only show.
    ShowDeleted(DeletedQuery),
    Undelete(UndeleteOrder),
    /// `search mail` and what follows it, which shows other people's mail as well.
    MailSearch(MailSearchOrder),
    Freeze {
        limit: Duration,
    },
    Thaw,
    Quit {
        task: u64,
    },
    Pause {
        task: u64,
        paused: bool,
    },
    Help,
}

impl Command {
    /// Whether it changes nothing, here or anywhere.
    #[must_use]
    pub const fn only_shows(&self) -> bool {
        matches!(
            self,
            Self::ShowStatistics(_)
                | Self::ShowTransactions(_)
                | Self::ShowTasks
                | Self::ShowServer
                | Self::ShowMemory
                | Self::ShowDatabases(_)
                | Self::ShowLog(_)
                | Self::ShowConfiguration(_)
                | Self::ShowDatabase(_)
                | Self::ShowVolumes
                | Self::ShowFixup
                | Self::ShowQueue(_)
                | Self::ShowQuarantine
                | Self::ShowMessage(_)
                | Self::ShowAside(_)
                | Self::ShowReplication(_)
                | Self::ShowRequests
                | Self::ShowConflicts(_)
                | Self::ShowHolds
                | Self::ShowAdvice
                | Self::ShowDkim(_)
                | Self::ShowPerson(_)
                | Self::Help
        )
    }

    /// Reads one line.
    ///
    /// # Errors
    /// [`ConsoleError`] says what is wrong and names the commands that are near.
    pub fn parse(line: &str) -> Result<Self, ConsoleError> {
        let line = line.trim();
        if line.len() > COMMAND_LIMIT_BYTES || line.chars().any(char::is_control) {
            return Err(ConsoleError::NotOneLine);
        }
        if line.is_empty() {
            return Err(ConsoleError::Empty);
        }
        if line == "?" {
            return Ok(Self::Help);
        }
        let mut matching: Vec<&CommandLine> =
            COMMANDS.iter().filter(|known| known.rest_of(line).is_some()).collect();
        // A verb in full is that verb: `set`, and not `settle`.
        if matching.iter().any(|known| known.has_verb(line)) {
            matching.retain(|known| known.has_verb(line));
        }
        // Of a command's words and more of them, the more are meant: tell router, and not tell with a number.
        let most = matching.iter().map(|known| known.words.len()).max().unwrap_or_default();
        matching.retain(|known| known.words.len() == most);
        // Words in full are clear, also where another command's words begin so.
        if matching.iter().any(|known| known.is_in_full(line)) {
            matching.retain(|known| known.is_in_full(line));
        }
        match matching.as_slice() {
            [] => Err(not_understood(line)),
            [known] => {
                let rest = known.rest_of(line).unwrap_or_default();
                (known.build)(rest).ok_or_else(|| ConsoleError::Usage { usage: known.usage() })
            }
            several => Err(ConsoleError::Ambiguous {
                line: line.to_owned(),
                candidates: several.iter().map(|known| known.phrase()).collect(),
            }),
        }
    }
}

impl CommandLine {
    /// Whether a line begins with the first word, in full.
    fn has_verb(&self, line: &str) -> bool {
        let typed = line.split_whitespace().next().unwrap_or_default();
        self.words.first().is_some_and(|verb| verb.eq_ignore_ascii_case(typed))
    }

    /// The words in full: `show statistics`.
    #[must_use]
    pub fn phrase(&self) -> String {
        self.words.join(" ")
    }

    /// The words and what follows.
    #[must_use]
    pub fn usage(&self) -> String {
        format!("{} {}", self.phrase(), self.arguments).trim_end().to_owned()
    }

    /// How near the typed words are, from 0 to 1; a word is compared with as much of the command's as was
    /// typed, so that `shwo stat` is near to `show statistics`.
    fn likeness(&self, typed: &[&str]) -> f64 {
        let typed: Vec<String> =
            typed.iter().take(self.words.len()).map(|word| word.to_lowercase()).collect();
        let shortened = self.words.iter().enumerate().map(|(position, word)| {
            let length = typed.get(position).map_or(word.len(), |typed| typed.len().max(3));
            word.get(..length).unwrap_or(word)
        });
        let shortened: Vec<&str> = shortened.collect();
        strsim::normalized_damerau_levenshtein(&typed.join(" "), &shortened.join(" "))
    }

    fn is_in_full(&self, line: &str) -> bool {
        let mut typed = line.split_whitespace();
        self.words.iter().all(|word| typed.next().is_some_and(|typed| typed.eq_ignore_ascii_case(word)))
    }

    /// What follows the words in `line`, if it begins with them or their beginnings.
    fn rest_of<'a>(&self, line: &'a str) -> Option<&'a str> {
        let mut rest = line;
        for word in self.words {
            let (first, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            let shortened = !first.is_empty()
                && word.get(..first.len()).is_some_and(|start| start.eq_ignore_ascii_case(first));
            if !shortened {
                return None;
            }
            rest = after.trim_start();
        }
        Some(rest)
    }
}

/// Commands less alike than this are not proposed.
const ALIKE: f64 = 0.5;

fn optional(rest: &str) -> Option<String> {
    (!rest.is_empty()).then(|| rest.to_owned())
}

fn assignment(rest: &str) -> Option<Command> {
    let (name, value) = rest.split_once('=')?;
    let name = name.trim().to_owned();
    (!name.is_empty()).then(|| Command::SetConfiguration { name, value: value.trim().to_owned() })
}

/// A database's name has no blanks in it.
fn property(rest: &str) -> Option<Command> {
    let (database, assigned) = rest.split_once(char::is_whitespace)?;
    let (name, value) = assigned.split_once('=')?;
    let (database, name, value) = (database.to_owned(), name.trim().to_owned(), value.trim().to_owned());
    (!name.is_empty()).then_some(Command::SetDatabase(SetProperty { database, name, value }))
}

fn move_database(rest: &str) -> Option<Command> {
    let (database, volume) = rest.split_once(char::is_whitespace)?;
    let volume = volume.trim();
    let is_one_word = !volume.is_empty() && !volume.contains(char::is_whitespace);
    is_one_word.then(|| Command::Move { database: database.to_owned(), volume: volume.to_owned() })
}

/// What follows `-T` is a view's name, which may have blanks in it.
fn update_views(rest: &str) -> Option<Command> {
    let (rest, view) = match rest.split_once("-T ").or_else(|| rest.split_once("-t ")) {
        Some((before, after)) => match after.trim().split_once(" -R") {
            Some((view, "")) => (format!("{before} -R"), Some(view.trim().to_owned())),
            _ => (before.to_owned(), Some(after.trim().to_owned())),
        },
        None => (rest.to_owned(), None),
    };
    let (options, names): (Vec<&str>, Vec<&str>) =
        rest.split_whitespace().partition(|word| word.starts_with('-'));
    let rebuild = options.iter().any(|option| option.eq_ignore_ascii_case("-R"));
    let known = options.iter().all(|option| option.eq_ignore_ascii_case("-R"));
    match names.as_slice() {
        [database] if known && view.as_deref() != Some("") => {
            Some(Command::UpdateViews(UpdateViews { database: (*database).to_owned(), view, rebuild }))
        }
        _ => None,
    }
}

fn freeze(rest: &str) -> Option<Command> {
    let limit = if rest.is_empty() { USUAL_LIMIT } else { parse_duration(rest).ok()? };
    (Duration::from_secs(1)..=LONGEST_LIMIT).contains(&limit).then_some(Command::Freeze { limit })
}

fn tell(rest: &str) -> Option<Command> {
    let (task, order) = rest.split_once(char::is_whitespace)?;
    let task = task.parse().ok()?;
    match order.trim().to_ascii_lowercase().as_str() {
        "quit" | "stop" | "exit" => Some(Command::Quit { task }),
        "pause" => Some(Command::Pause { task, paused: true }),
        "resume" => Some(Command::Pause { task, paused: false }),
        _ => None,
    }
}

/// Tells a verb that stands alone from a line that no command is like.
fn not_understood(line: &str) -> ConsoleError {
    let first = line.split_whitespace().next().unwrap_or_default();
    let begins = |known: &&CommandLine| {
        let verb = known.words.first().copied().unwrap_or_default();
        line == first && verb.get(..first.len()).is_some_and(|start| start.eq_ignore_ascii_case(first))
    };
    let mut beginning: Vec<&CommandLine> = COMMANDS.iter().filter(begins).collect();
    if beginning.iter().any(|known| known.has_verb(line)) {
        beginning.retain(|known| known.has_verb(line));
    }
    let candidates: Vec<String> = beginning.into_iter().map(CommandLine::usage).collect();
    if !candidates.is_empty() {
        return ConsoleError::Incomplete { line: line.to_owned(), candidates };
    }
    let typed: Vec<&str> = line.split_whitespace().collect();
    let scored = COMMANDS.iter().map(|known| (known.likeness(&typed), known));
    let best = scored.filter(|(score, _)| *score >= ALIKE).max_by(|a, b| a.0.total_cmp(&b.0));
    ConsoleError::Unknown { line: line.to_owned(), nearest: best.map(|(_, known)| known.usage()) }
}
