//! Mail of all people looked through for an administrator, and what is found moved or deleted: first a search, which changes nothing, and
//! then what is to become of what that search has found.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use scrinium_catalog::Databases;
use scrinium_mail::{FoundMail, MailAction, MailCriteria, MailSearchReport, search_mail};
use scrinium_statistics::Tasks;
use serde_json::{Value, json};

use super::table::{Align, table};
use super::words::Words;
use super::{Command, ConsoleError, Reply};

pub(super) const SEARCH_ARGUMENTS: &str =
    "[message=ID] [from=TEXT] [subject=TEXT] [attachment=NAME] [since=TIME] [until=TIME]";

pub(super) const SEARCH_HELP: &str = "Looks for messages in all mail files, in the background, and changes nothing; show mailsearch shows what it finds";

pub(super) const SHOW_HELP: &str =
    "What a search of all mail has found, or is to find; the last one, unless said";

pub(super) const MOVE_HELP: &str = "Moves what a finished search has found into a folder of each person's";

pub(super) const PURGE_HELP: &str =
    "Deletes what a finished search has found; undelete brings it back for some days";

/// The task, by its kind.
const KIND: &str = "mail_search";

/// Searches that are remembered.
const REMEMBERED_MAX: usize = 20;

/// What is asked for of all mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MailSearchOrder {
    /// `search mail`; times that were given as ago are of the moment when it was read.
    Search(Box<SearchWords>),
    /// `show mailsearch`.
    Show(Option<u64>),
    /// `move mail`.
    Move(u64, String),
    /// `purge mail`.
    Purge(u64),
}

/// What is looked for, as it was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchWords {
    criteria: MailCriteria,
    since: Option<super::words::Moment>,
    until: Option<super::words::Moment>,
}

/// Reads what follows `search mail`.
pub(super) fn parse_search(rest: &str) -> Option<Command> {
    let names = ["message", "from", "subject", "attachment", "since", "until"];
    let mut words = Words::read(rest, &names)?;
    let (since, until) = (words.take_moment("since").ok()?, words.take_moment("until").ok()?);
    let mut text = |name: &str| words.take(name).filter(|text| !text.trim().is_empty());
    let criteria = MailCriteria {
        message_id: text("message"),
        from: text("from"),
        subject: text("subject"),
        attachment: text("attachment"),
        ..MailCriteria::default()
    };
    let is_something = !criteria.is_empty() || since.is_some() || until.is_some();
    let words_are_pairs = words.words.is_empty() && words.pairs.is_empty();
    let search = SearchWords { criteria, since, until };
    (is_something && words_are_pairs).then(|| Command::MailSearch(MailSearchOrder::Search(Box::new(search))))
}

/// Reads what follows `show mailsearch`.
pub(super) fn parse_show(rest: &str) -> Option<Command> {
    let number = if rest.is_empty() { None } else { Some(rest.parse().ok()?) };
    Some(Command::MailSearch(MailSearchOrder::Show(number)))
}

/// Reads what follows `move mail`.
pub(super) fn parse_move(rest: &str) -> Option<Command> {
    let words = Words::read(rest, &[])?.words;
    let [number, folder] = <[String; 2]>::try_from(words).ok()?;
    let number = number.parse().ok()?;
    (!folder.is_empty()).then_some(Command::MailSearch(MailSearchOrder::Move(number, folder)))
}

/// Reads what follows `purge mail`.
pub(super) fn parse_purge(rest: &str) -> Option<Command> {
    Some(Command::MailSearch(MailSearchOrder::Purge(rest.parse().ok()?)))
}

/// A search, or what was done with what one has found.
#[derive(Clone, Debug)]
struct Remembered {
    number: u64,
    criteria: MailCriteria,
    action: MailAction,
    /// `None`: it runs still.
    ended: Option<Result<MailSearchReport, String>>,
}

/// The last searches. Clones share them.
#[derive(Clone, Default)]
pub struct MailSearches(Arc<Mutex<VecDeque<Remembered>>>);

impl MailSearches {
    /// Carries out an order; `told` hears of the report of what was begun, when it has ended.
    ///
    /// # Errors
    /// In words: one is under way, there is no such search, or it has not ended.
    pub fn order(
        &self,
        (databases, tasks): (&Databases, &Tasks),
        order: &MailSearchOrder,
        told: impl FnOnce(&Value) + Send + 'static,
    ) -> Result<Reply, ConsoleError> {
        let now_ms = databases.clock().now_ms();
        let (criteria, action) = match order {
            MailSearchOrder::Show(number) => return self.show(*number),
            MailSearchOrder::Search(words) => {
                let SearchWords { criteria, since, until } = &**words;
                let ms = |moment: &Option<super::words::Moment>| moment.map(|moment| moment.ms(now_ms));
                let criteria = MailCriteria { since_ms: ms(since), until_ms: ms(until), ..criteria.clone() };
                (criteria, MailAction::Report)
            }
            MailSearchOrder::Move(number, folder) => {
                (self.found_by(*number)?, MailAction::Move(folder.clone()))
            }
            MailSearchOrder::Purge(number) => (self.found_by(*number)?, MailAction::Delete),
        };
        self.begin((databases, tasks), criteria, &action, told)
    }

    /// What a finished search has looked for.
    fn found_by(&self, number: u64) -> Result<MailCriteria, ConsoleError> {
        let remembered = self.0.lock().iter().find(|one| one.number == number).cloned();
        let wrong = |why: &str| ConsoleError::NotFound(format!("search {number}: {why}"));
        let remembered = remembered.ok_or_else(|| wrong("there is none; search mail begins one"))?;
        match remembered.ended {
            None => Err(wrong("it has not ended; show mailsearch says how far it is")),
            Some(Ok(report)) if remembered.action == MailAction::Report && !report.stopped => {
                Ok(remembered.criteria)
            }
            Some(_) => Err(wrong("it did not come to its end, or was no search; search mail begins one")),
        }
    }

    fn begin(
        &self,
        (databases, tasks): (&Databases, &Tasks),
        criteria: MailCriteria,
        action: &MailAction,
        told: impl FnOnce(&Value) + Send + 'static,
    ) -> Result<Reply, ConsoleError> {
        if tasks.running().iter().any(|task| task.kind == KIND) {
            let reason = "all mail is being looked through; show tasks shows its progress".to_owned();
            return Err(ConsoleError::NotFound(reason));
        }
        let task = tasks.start(KIND, None, None);
        let number = task.id();
        {
            let mut all = self.0.lock();
            while all.len() >= REMEMBERED_MAX {
                all.pop_front();
            }
            let (criteria, action) = (criteria.clone(), action.clone());
            all.push_back(Remembered { number, criteria, action, ended: None });
        }
        let (searches, databases, wanted) = (self.clone(), databases.clone(), action.clone());
        let work = move || {
            let ended = search_mail(&databases, &criteria, &wanted, (&task, &|| false));
            match &ended {
                Ok(report) if report.stopped => drop(task),
                Ok(_) => task.finish(),
                Err(error) => task.fail(error.to_string()),
            }
            told(&data(&wanted, &ended));
            let ended = ended.map_err(|error| error.to_string());
            let mut all = searches.0.lock();
            if let Some(one) = all.iter_mut().find(|one| one.number == number) {
                one.ended = Some(ended);
            }
        };
        let begun = std::thread::Builder::new().name("mail search".to_owned()).spawn(work);
        begun.map_err(|error| ConsoleError::NotFound(format!("cannot start a thread for it: {error}")))?;
        let text = format!(
            "Looking through all mail as task {number}; show mailsearch {number} shows what it finds, tell {number} quit \
             cancels it.\n"
        );
        Ok(Reply { text, data: json!({"search": number}) })
    }

    fn show(&self, number: Option<u64>) -> Result<Reply, ConsoleError> {
        let found = {
            let all = self.0.lock();
            let found = match number {
                Some(number) => all.iter().find(|one| one.number == number),
                None => all.back(),
            };
            found.cloned()
        };
        let missing = || ConsoleError::NotFound("there is no such search; search mail begins one".to_owned());
        let one = found.ok_or_else(missing)?;
        let report = match &one.ended {
            None => {
                let text = format!("Search {} runs; show tasks shows its progress.\n", one.number);
                return Ok(Reply { text, data: json!({"search": one.number, "running": true}) });
            }
            Some(Err(error)) => return Err(ConsoleError::NotFound(error.clone())),
            Some(Ok(report)) => report,
        };
        let mut data = told(&one.action, report);
        if let Some(members) = data.as_object_mut() {
            members.insert("search".to_owned(), one.number.into());
            members.insert("running".to_owned(), false.into());
            let messages: Vec<Value> = report.messages.iter().map(message).collect();
            members.insert("messages".to_owned(), messages.into());
        }
        Ok(Reply { text: text(&one, report), data })
    }
}

fn text(one: &Remembered, report: &MailSearchReport) -> String {
    let titles = ["Came", "Mail file", "From", "Subject"].map(|title| (title, Align::Left));
    let row = |found: &FoundMail| {
        vec![found.date.clone(), found.database.clone(), found.from.clone(), found.subject.clone()]
    };
    let rows: Vec<Vec<String>> = report.messages.iter().map(row).collect();
    let mut text = if rows.is_empty() { String::new() } else { table(&titles, &rows) };
    let word = match one.action {
        MailAction::Report => String::new(),
        MailAction::Move(_) => format!(", {} moved", report.changed),
        MailAction::Delete => format!(", {} deleted", report.changed),
    };
    let stopped = if report.stopped { "; it was stopped" } else { "" };
    text.push_str(&format!(
        "Search {}: {} messages in {} of {} mail files{word}{stopped}.\n",
        one.number, report.found, report.mail_files_with, report.mail_files
    ));
    for failed in &report.failed {
        text.push_str(&format!("not looked through: {failed}\n"));
    }
    if one.action == MailAction::Report && report.found > 0 && !report.stopped {
        text.push_str(&format!(
            "move mail {} FOLDER moves them, purge mail {} deletes them.\n",
            one.number, one.number
        ));
    }
    text
}

fn message(found: &FoundMail) -> Value {
    json!({
        "database": found.database, "id": found.id, "from": found.from, "subject": found.subject,
        "date": found.date,
    })
}

/// What is on record of what was begun; nothing of a look at what is on record already.
pub fn criteria_on_record(order: &MailSearchOrder) -> Option<Value> {
    match order {
        MailSearchOrder::Search(words) => {
            let MailCriteria { message_id, from, subject, attachment, .. } = &words.criteria;
            let dates = [words.since, words.until].map(|moment| moment.map(|moment| moment.to_string()));
            let [since, until] = dates;
            Some(json!({
                "message_id": message_id, "from": from, "subject": subject, "attachment": attachment,
                "since": since, "until": until,
            }))
        }
        MailSearchOrder::Show(_) => None,
        MailSearchOrder::Move(number, folder) => Some(json!({"search": number, "folder": folder})),
        MailSearchOrder::Purge(number) => Some(json!({"search": number})),
    }
}

fn data(action: &MailAction, ended: &scrinium_database::Result<MailSearchReport>) -> Value {
    match ended {
        Ok(report) => told(action, report),
        Err(error) => json!({"failed": error.to_string()}),
    }
}

fn told(action: &MailAction, report: &MailSearchReport) -> Value {
    json!({
        "action": word(action), "mail_files": report.mail_files, "mail_files_with": report.mail_files_with,
        "examined": report.examined, "found": report.found, "changed": report.changed,
        "stopped": report.stopped, "failed": report.failed,
    })
}

const fn word(action: &MailAction) -> &'static str {
    match action {
        MailAction::Report => "search",
        MailAction::Move(_) => "move",
        MailAction::Delete => "purge",
    }
}
