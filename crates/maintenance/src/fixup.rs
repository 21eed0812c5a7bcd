//! Fixup: looking at everything that databases consist of, repairing what is derived from something sound, and putting
//! aside what is damaged.
//!
//! A database is checked as it stood at one moment, so that updates go on meanwhile and nothing half-written is ever
//! seen. What is found is looked at again under the database's lock, a hundred records at a time, and repaired there.
//! Then the database is checked once more, until nothing is found. What lies in different orders is compared by
//! tallies, so that memory does not grow with the database; blocks that are read do not stay in memory.

pub(crate) mod aside;
mod check;
mod contents;
mod document;
mod documents;
mod folders;
mod header;
mod leaf;
mod members;
mod membership;
mod mend;
mod report;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::time::{Duration, Instant};

use scrinium_catalog::{Databases, NameRange};
use scrinium_contents::hex;
use scrinium_database::access::list::AccessList;
use scrinium_database::context::StoreContext;
use scrinium_database::header::Header;
use scrinium_database::{Database, DatabaseError, Result, header_at, keys, read_header};
use scrinium_document::Fields;
use scrinium_document::json::stored_value_of_bytes;
use scrinium_store::{Batch, Family, Snapshot, Store};
use scrinium_views::OpenDatabase;
use scrinium_views::audit::Audited;

use check::{Check, Note, Watch};
use contents::References;

pub use aside::{SetAside, discard_set_aside, each_set_aside};
pub use report::{Finding, FindingKind, FindingOutcome, FixupReport};

/// A moment of the store serves for the databases that are begun within this time.
const MOMENT_HOLDS: Duration = Duration::from_secs(600);

/// A database is checked so often at most, the repairs before each included.
const ROUNDS: usize = 5;

/// At most this many unused contents are noted by one batch.
const UNUSED_AT_ONCE: usize = 1000;

/// What a fixup does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixupOptions {
    /// Also hold every index of views and folders against its documents, and read the attachments that lie in a store
    /// of objects.
    pub views: bool,
    /// Read the bytes of attachments and long fields, and hold them against their digests. Of those in a store of
    /// objects, look whether they are there with their lengths.
    pub contents: bool,
    /// Repair and put aside; otherwise only look.
    pub repair: bool,
}

impl Default for FixupOptions {
    fn default() -> Self {
        Self { views: false, contents: true, repair: true }
    }
}

/// All databases of one store at one moment.
struct Moment {
    volume: String,
    snapshot: Snapshot,
    references: References,
    taken: Instant,
}

/// A fixup under way.
struct Fixup<'a> {
    databases: &'a Databases,
    options: FixupOptions,
    watch: Watch,
    moment: Option<Moment>,
    report: FixupReport,
    told: &'a mut dyn FnMut(&Finding),
}

/// Checks and repairs a database, or all of them. `told` is called with each finding as it comes.
///
/// # Errors
/// [`DatabaseError::NotFound`]; [`DatabaseError::Unavailable`] if the task was told to stop; and what the store
/// reports. What was repaired by then is repaired.
pub fn fixup(
    databases: &Databases,
    database: Option<&str>,
    options: FixupOptions,
    mut told: impl FnMut(&Finding),
) -> Result<FixupReport> {
    let names = match database {
        Some(name) => vec![name.to_owned()],
        None => databases.names(&NameRange::default())?,
    };
    let watch = Watch {
        task: databases.first().tasks().map(|tasks| tasks.start("fixup", database, None)),
        ..Watch::default()
    };
    let report = FixupReport::default();
    let mut fixup = Fixup { databases, options, watch, moment: None, report, told: &mut told };
    let done = fixup.run(&names, database.is_none());
    let Fixup { watch, mut report, .. } = fixup;
    report.documents = watch.documents;
    report.records = watch.records;
    report.contents = watch.contents;
    report.content_bytes = watch.content_bytes;
    match (done, watch.task) {
        (Ok(()), Some(task)) => {
            task.progress(report.records);
            task.finish();
        }
        (Err(error), Some(task)) if !task.is_cancelled() => {
            task.fail(error.to_string());
            return Err(error);
        }
        (Err(error), _) => return Err(error),
        (Ok(()), None) => {}
    }
    Ok(report)
}

impl Fixup<'_> {
    fn run(&mut self, names: &[String], all: bool) -> Result<()> {
        self.set_total(names);
        for name in names {
            if let Some(task) = &self.watch.task {
                task.detail("database", name.as_str());
            }
            match self.database(name) {
                // It was dropped meanwhile.
                Err(DatabaseError::NotFound { .. }) if all => {}
                // Nothing of it can be looked at.
                Err(error @ DatabaseError::Unavailable { .. }) if all && self.is_away(name) => {
                    tracing::warn!(database = name, %error, "the database was not checked");
                }
                done => done?,
            }
        }
        if all && self.options.contents { self.unused_contents() } else { Ok(()) }
    }

    /// Says how many records there will be, about, so that the time left can be told.
    fn set_total(&self, names: &[String]) {
        let Some(task) = &self.watch.task else { return };
        let of = |name: &String| {
            let (number, context) = self.databases.place_of(name).ok()?;
            Some(read_header(&context.store, number).ok()?.records())
        };
        task.set_total(names.iter().filter_map(of).sum());
    }

    /// A moment of a store that is young enough; another one than before if `again`.
    fn moment(&mut self, context: &StoreContext, again: bool) -> Result<Moment> {
        let holds = |moment: &Moment| {
            moment.volume == context.volume && context.store.clock().elapsed(moment.taken) < MOMENT_HOLDS
        };
        let kept = self.moment.take().filter(|moment| !again && holds(moment));
        if let Some(moment) = kept {
            return Ok(moment);
        }
        let snapshot = context.store.snapshot();
        let references = contents::tally(&snapshot, &mut self.watch)?;
        let taken = context.store.clock().instant();
        Ok(Moment { volume: context.volume.clone(), snapshot, references, taken })
    }

    /// Whether a database lies on a volume that is not there.
    fn is_away(&self, name: &str) -> bool {
        self.databases.place_of(name).is_err()
    }

    fn database(&mut self, name: &str) -> Result<()> {
        let database = match self.databases.for_fixup(name) {
            Err(error) if error.is_unreadable() && self.mend_header(name)? => {
                self.databases.for_fixup(name)?
            }
            // What could not be repaired was said.
            Err(error) if error.is_unreadable() => return Ok(()),
            opened => opened?,
        };
        self.report.databases += 1;
        let mut known: HashSet<(FindingKind, String)> = HashSet::new();
        let mut has_lost = false;
        for round in 0..ROUNDS {
            let moment = self.moment(&database.context, round > 0)?;
            let header = match header_at(&moment.snapshot, database.number()) {
                Err(DatabaseError::NotFound { .. }) if round == 0 => {
                    // It is younger than the moment.
                    let moment = self.moment(&database.context, true)?;
                    let header = header_at(&moment.snapshot, database.number());
                    self.moment = Some(moment);
                    header.map(drop)?;
                    continue;
                }
                header => header?,
            };
            let mut check = Check::new(&database, &moment.snapshot, header, &mut self.watch);
            check.reads_objects = self.options.views;
            check_all(&mut check, &moment.references, self.options.contents && round == 0)?;
            let Check { notes, mends, has_gaps, .. } = check;
            self.moment = Some(moment);
            let may_repair = self.options.repair && !has_gaps;
            let is_last = !may_repair || mends.is_empty() || round + 1 == ROUNDS;
            for mut note in notes {
                let is_known = !known.insert((note.kind, note.subject.clone()));
                if is_known && !(is_last && note.outcome != FindingOutcome::Left) {
                    continue;
                }
                if is_last {
                    note.outcome = FindingOutcome::Left;
                }
                has_lost |= note.outcome == FindingOutcome::SetAside;
                self.tell(name, note);
            }
            if is_last {
                if !has_gaps {
                    break;
                }
                return Ok(());
            }
            let watch = &self.watch;
            mend::mend(&database, &mends, &mut || watch.tell())?;
        }
        self.indexes(&database, has_lost)
    }

    /// Makes the record again of what is known of a database as a whole. Whether it could be.
    fn mend_header(&mut self, name: &str) -> Result<bool> {
        let detail =
            "the record of what is known of the database as a whole cannot be read; rebuilt, and counted";
        let outcome = if self.options.repair { FindingOutcome::Repaired } else { FindingOutcome::Left };
        let mended = self.options.repair && header::mend(self.databases, name)?;
        let note = Note {
            kind: FindingKind::Header,
            subject: name.to_owned(),
            detail: detail.to_owned(),
            outcome: if mended { outcome } else { FindingOutcome::Left },
        };
        self.tell(name, note);
        Ok(mended)
    }

    /// Holds indexes against their documents; where documents were lost, builds them again, since no change tells them.
    fn indexes(&mut self, database: &OpenDatabase, has_lost: bool) -> Result<()> {
        if !self.options.views && !has_lost {
            return Ok(());
        }
        self.text_indexes(database)?;
        for audit in database.audits()? {
            let audit = match audit {
                Ok(audit) => audit,
                Err((name, error)) => {
                    self.tell_index(database, FindingKind::IndexUnchecked, &name, error.to_string(), false);
                    continue;
                }
            };
            self.report.indexes += 1;
            let watch = &mut self.watch;
            let (kind, detail) = match audit.run(database, &mut || watch.tick()) {
                Ok(Audited::NotBuilt) => continue,
                Ok(Audited::Sound) if has_lost && !audit.is_comparable() => {
                    (FindingKind::IndexDiffers, "it may have entries of documents that were lost".to_owned())
                }
                Ok(Audited::Sound) => continue,
                Ok(Audited::Damaged(what)) => (FindingKind::IndexDamaged, what),
                Ok(Audited::Differs(what)) => (FindingKind::IndexDiffers, what),
                Err(error @ DatabaseError::Unavailable { .. }) => return Err(error),
                Err(error) => {
                    let name = &audit.name;
                    self.tell_index(database, FindingKind::IndexUnchecked, name, error.to_string(), false);
                    continue;
                }
            };
            let rebuilt = self.options.repair && is_rebuilt(&audit.name, audit.rebuild(database))?;
            self.tell_index(database, kind, &audit.name, detail, rebuilt);
        }
        Ok(())
    }

    /// Holds indexes of words against their documents.
    fn text_indexes(&mut self, database: &OpenDatabase) -> Result<()> {
        for audit in database.text_audits()? {
            self.report.indexes += 1;
            let watch = &mut self.watch;
            let (kind, detail) = match audit.run(database, &mut || watch.tick())? {
                Audited::NotBuilt | Audited::Sound => continue,
                Audited::Damaged(what) => (FindingKind::IndexDamaged, what),
                Audited::Differs(what) => (FindingKind::IndexDiffers, what),
            };
            let rebuilt = self.options.repair && is_rebuilt(&audit.name, audit.rebuild(database))?;
            self.tell_index(database, kind, &audit.name, detail, rebuilt);
        }
        Ok(())
    }

    fn tell_index(
        &mut self,
        database: &Database,
        kind: FindingKind,
        name: &str,
        detail: String,
        repaired: bool,
    ) {
        let outcome = if repaired { FindingOutcome::Repaired } else { FindingOutcome::Left };
        self.tell(database.name(), Note { kind, subject: name.to_owned(), detail, outcome });
    }

    /// Makes the collector look at contents that it does not know about.
    fn unused_contents(&mut self) -> Result<()> {
        self.databases.contexts().iter().try_for_each(|context| self.unused_contents_in(&context.store))
    }

    fn unused_contents_in(&mut self, store: &Store) -> Result<()> {
        let snapshot = store.snapshot();
        let unused = contents::unused(&snapshot, &mut self.watch)?;
        let outcome = if self.options.repair { FindingOutcome::Repaired } else { FindingOutcome::Left };
        for digest in &unused {
            let detail = "no document refers to it; the collector will remove it".to_owned();
            self.tell("", Note { kind: FindingKind::ContentUnused, subject: hex(digest), detail, outcome });
        }
        if self.options.repair {
            // The collector looks again whether somebody refers to them by then.
            for some in unused.chunks(UNUSED_AT_ONCE) {
                let mut batch = Batch::new();
                some.iter().for_each(|digest| batch.put(Family::Point, &keys::collectable(digest), &[]));
                store.commit(batch)?;
            }
        }
        Ok(())
    }

    fn tell(&mut self, database: &str, note: Note) {
        let Note { kind, subject, detail, outcome } = note;
        let finding = Finding { database: database.to_owned(), kind, subject, detail, outcome };
        (self.told)(&finding);
        self.report.add(finding);
    }
}

/// Whether an index was built again.
///
/// # Errors
/// The fixup was told to stop.
fn is_rebuilt(name: &str, rebuilt: Result<()>) -> Result<bool> {
    match rebuilt {
        Ok(()) => Ok(true),
        Err(error @ DatabaseError::Unavailable { .. }) => Err(error),
        Err(error) => {
            tracing::warn!(%error, index = name, "an index could not be rebuilt");
            Ok(false)
        }
    }
}

/// Everything of one database but its indexes.
fn check_all(check: &mut Check<'_>, references: &References, contents: bool) -> Result<()> {
    let mut documents = documents::check(check)?;
    let folders = folders::check(check)?;
    contents::check_references(check, &documents, references)?;
    if contents {
        contents::check_contents(check, true)?;
    }
    check_locals(check)?;
    check_rights(check)?;
    if !check.has_gaps {
        documents.last_change = documents.last_change.max(folders.last_change);
        documents.check_counts(check, &folders);
        folders.check_counts(check)?;
    }
    Ok(())
}

fn check_locals(check: &mut Check<'_>) -> Result<()> {
    check.each(Family::Point, &keys::local_range(check.number()), |check, key, value| {
        let fields = scrinium_database::local::decode(value).map(|(_, fields, _)| fields);
        if keys::id_of(key).is_none() || fields.is_none_or(|fields| Fields::decode(fields).is_err()) {
            let reason = "a _local document cannot be read";
            check.set_aside(FindingKind::Local, Family::Point, key, reason);
        }
        Ok(())
    })
}

/// Who may do what is nothing that a server may make up.
fn check_rights(check: &mut Check<'_>) -> Result<()> {
    let number = check.number();
    let json = stored_value_of_bytes;
    let security = check.get(Family::Meta, &keys::security(number))?;
    if security.is_some_and(|stored| json(&stored).is_none_or(|security| !security.is_object())) {
        let detail = "it cannot be read, so that nobody but administrators is admitted; set it again";
        check.note(FindingKind::Security, "_security", detail, FindingOutcome::Left);
    }
    let list = check.get(Family::Meta, &keys::access_list(number))?;
    if list.is_some_and(|stored| json(&stored).is_none_or(|list| AccessList::parse(&list).is_err())) {
        let detail = "it cannot be read, so that nobody but administrators is admitted; set it again";
        check.note(FindingKind::AccessList, "access control list", detail, FindingOutcome::Left);
    }
    Ok(())
}

/// The header as the store has it.
fn header_of(database: &Database) -> Result<Header> {
    header_at(&database.store().snapshot(), database.number())
}
