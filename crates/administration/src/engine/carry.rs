//! One request, step by step.

use std::time::Instant;

use scrinium_catalog::NameRange;
use scrinium_database::DatabaseError;
use scrinium_statistics::Task;
use scrinium_store::IoClass;
use scrinium_views::OpenDatabase;

use super::Requests;
use crate::entry::Entry;
use crate::error::RequestError;
use crate::keeper::{NameOrder, Piece};
use crate::keepers::add_new_names;
use crate::records::ADMINISTRATION_DATABASE;
use crate::request::{Request, RequestState, Step};

/// The task, by its kind.
const KIND: &str = "administration_request";

/// How far it is is written down after this number of databases in which nothing changed.
const DATABASES_UNWRITTEN_MAX: u64 = 200;

impl Requests {
    /// Carries out a request from where it is. Whether it is over; else it was stopped, and goes on later.
    pub(super) fn carry_out(&self, mut request: Request) -> Result<bool, RequestError> {
        let task = self.tasks.start(KIND, None, None);
        task.detail("request", request.id.as_str());
        task.detail("what", format!("{} {}", request.kind.words(), request.name));
        match self.steps(&mut request, &task) {
            Ok(true) => {
                task.finish();
                Ok(true)
            }
            // Dropped, it counts as cancelled.
            Ok(false) => Ok(false),
            Err(error) if error.is_passing() => {
                task.fail(error.to_string());
                Err(error)
            }
            Err(error) => {
                tracing::error!(request = request.id, %error, "a request has failed");
                request.reason = Some(error.to_string());
                self.end(&mut request, RequestState::Failed)?;
                task.fail(error.to_string());
                Ok(true)
            }
        }
    }

    /// Whether it went to the end.
    fn steps(&self, request: &mut Request, task: &Task) -> Result<bool, RequestError> {
        loop {
            if self.is_stopping() || task.is_cancelled() {
                return Ok(false);
            }
            let next = match request.progress.step {
                Step::Begin => self.begin(request)?,
                Step::Lists => {
                    if !self.add_to_lists(request, task)? {
                        return Ok(false);
                    }
                    Step::Entry
                }
                Step::Entry => {
                    if !Entry::new(self.databases(), &request.entry).rename(request)? {
                        // Removed meanwhile: nobody may come to what access lists now give to the new name.
                        request.names = std::mem::take(&mut request.names).into_removal();
                        request.reason = Some("the entry was removed; so its names are".to_owned());
                    }
                    Step::Databases
                }
                Step::Databases => {
                    if !self.change_databases(request, task)? {
                        return Ok(false);
                    }
                    Step::End
                }
                Step::End => {
                    if request.kind.removes() {
                        self.erase_mail(request)?;
                        Entry::new(self.databases(), &request.entry).remove()?;
                    }
                    self.end(request, RequestState::Done)?;
                    return Ok(true);
                }
            };
            request.progress.step = next;
            request.state = RequestState::Running;
            self.records.put(request)?;
        }
    }

    /// The names are found; the new one is taken, or who goes is disabled.
    fn begin(&self, request: &mut Request) -> Result<Step, RequestError> {
        let names = self.names_of(request).ok_or_else(|| RequestError::Nobody(request.name.clone()))?;
        request.names = names;
        let entry = Entry::new(self.databases(), &request.entry);
        if let Some(new_name) = &request.new_name {
            entry.reserve(new_name)?;
            return Ok(Step::Lists);
        }
        if request.kind.is_of_person() {
            entry.disable()?;
        }
        Ok(Step::Databases)
    }

    /// Deletes the mail database of who is erased. A hold that was set meanwhile wins: then it stays, which is said.
    fn erase_mail(&self, request: &mut Request) -> Result<(), RequestError> {
        let Some(mail_file) = request.mail_file.clone() else { return Ok(()) };
        match self.check_holds(&request.name, (&request.entry, &mail_file)) {
            Ok(()) => {}
            Err(RequestError::Held { hold, .. }) => {
                request.reason = Some(format!("{mail_file} was not deleted: {hold}"));
                return Ok(());
            }
            Err(error) => return Err(error),
        }
        match self.databases().delete(&mail_file) {
            Ok(()) | Err(DatabaseError::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Lets the new name into all databases, before anybody comes in by it. Whether it came to the end.
    fn add_to_lists(&self, request: &Request, task: &Task) -> Result<bool, RequestError> {
        let order = order_of(request);
        for name in self.names_of_databases()? {
            let begun = Instant::now();
            if let Some(database) = self.open(&name)? {
                add_new_names(&database, &order).or_else(gone)?;
            }
            if !self.rest(0, begun, task) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Leaves time to others after a piece of this many bytes. Whether to go on.
    fn rest(&self, bytes: u64, begun: Instant, task: &Task) -> bool {
        let goes_on = || !self.is_stopping() && !task.is_cancelled();
        self.databases().io_limits().pace(IoClass::Names, bytes, begun.elapsed(), goes_on)
    }

    fn names_of_databases(&self) -> Result<Vec<String>, RequestError> {
        let mut names = self.databases().names(&NameRange::default())?;
        names.retain(|name| name != ADMINISTRATION_DATABASE);
        Ok(names)
    }

    /// The database of this name; `None` where it is gone.
    fn open(&self, name: &str) -> Result<Option<OpenDatabase>, RequestError> {
        match self.databases().get(name) {
            Ok(database) => Ok(Some(database)),
            Err(DatabaseError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Goes through all databases, from where the request is. Whether it came to the end.
    fn change_databases(&self, request: &mut Request, task: &Task) -> Result<bool, RequestError> {
        let names = self.names_of_databases()?;
        request.progress.databases = names.len() as u64;
        task.set_total(names.len() as u64);
        let mut unwritten = 0;
        for (number, name) in names.iter().enumerate() {
            let progress = &request.progress;
            let is_done = match (&progress.database, &progress.keeper) {
                (Some(reached), None) => name <= reached,
                (Some(reached), Some(_)) => name < reached,
                (None, _) => false,
            };
            if is_done {
                task.advance(1);
                continue;
            }
            if progress.database.as_ref() != Some(name) {
                request.progress.keeper = Some((0, None));
                request.progress.database = Some(name.clone());
            }
            let before = request.progress.changed.clone();
            if !self.change_database(request, name, task)? {
                return Ok(false);
            }
            request.progress.keeper = None;
            request.progress.databases_done = number as u64 + 1;
            task.advance(1);
            unwritten += 1;
            if before != request.progress.changed || unwritten >= DATABASES_UNWRITTEN_MAX {
                self.records.put(request)?;
                unwritten = 0;
            }
        }
        Ok(true)
    }

    /// Lets each keeper change what it has in a database. Whether it came to the end.
    fn change_database(&self, request: &mut Request, name: &str, task: &Task) -> Result<bool, RequestError> {
        let Some(database) = self.open(name)? else { return Ok(true) };
        let (first, mut place) = request.progress.keeper.clone().unwrap_or_default();
        for (number, keeper) in self.keepers.iter().enumerate().skip(first) {
            loop {
                let begun = Instant::now();
                let order = order_of(request);
                let piece = keeper.change(&database, &order, place.as_deref());
                let piece = piece.or_else(gone).or_else(|error| damaged(name, error))?;
                request.progress.left += piece.left;
                if piece.changed > 0 {
                    *request.progress.changed.entry(keeper.title().to_owned()).or_default() += piece.changed;
                    task.detail(keeper.title(), request.progress.changed.get(keeper.title()).copied());
                }
                let is_last = piece.next.is_none();
                place = piece.next;
                request.progress.keeper =
                    Some(if is_last { (number + 1, None) } else { (number, place.clone()) });
                if piece.changed > 0 && !is_last {
                    self.records.put(request)?;
                }
                if !self.rest(piece.bytes, begun, task) {
                    self.records.put(request)?;
                    return Ok(false);
                }
                if is_last {
                    break;
                }
            }
        }
        Ok(true)
    }
}

fn order_of(request: &Request) -> NameOrder<'_> {
    // Of an entry that is gone all names go.
    let new_name = request.new_name.as_deref().filter(|_| !request.names.removes());
    NameOrder {
        names: &request.names,
        name: &request.name,
        new_name,
        is_of_person: request.kind.is_of_person(),
        fields: &request.fields,
    }
}

/// A database that was dropped in this moment has nothing to be changed.
fn gone<T: Default>(error: DatabaseError) -> Result<T, DatabaseError> {
    match error {
        DatabaseError::NotFound { .. } => Ok(T::default()),
        error => Err(error),
    }
}

/// What is damaged keeps nobody else's names from being changed.
fn damaged(database: &str, error: DatabaseError) -> Result<Piece, DatabaseError> {
    match error {
        DatabaseError::Damaged { .. } => {
            tracing::error!(database, %error, "names cannot be changed in a database that is damaged; load fixup repairs it");
            Ok(Piece { left: 1, ..Piece::default() })
        }
        error => Err(error),
    }
}
