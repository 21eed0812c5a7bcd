//! Holding indexes against their documents, by evaluating every document again.
//!
//! An index and the documents are looked at as they stood together at one moment; documents that changed after the
//! change that the index had reached then are left out on both sides. Readers, writers and updates of the index go on.

#![allow(missing_docs, reason = "the names say it")]

use std::collections::HashSet;
use std::sync::Arc;

use scrinium_assertion::never;
use scrinium_database::head::ChangeRecord;
use scrinium_database::leaf::Leaf;
use scrinium_database::{DatabaseError, Result, keys};
use scrinium_index::{IndexError, Reader};
use scrinium_store::{Family, KeyRange, ScanStep, Snapshot};

use crate::entries::{Entry, StoredEntry, encode_list};
use crate::evaluate::Evaluator;
use crate::group::{Group, View};
use crate::lists::each_list;
use crate::open::OpenDatabase;
use crate::registry::numbers_of;
use crate::tally::Tally;
use crate::unique::candidate_parts;
use crate::update::environment;

/// Documents evaluated together.
const DOCUMENTS_AT_ONCE: usize = 64;

/// An index that is this many changes behind is brought up to date first.
const BEHIND_MAX: usize = 10_000;

/// What differs the first time may have changed in that moment.
const TRIES: usize = 3;

/// What an audit of one index came to.
pub enum Audited {
    /// It has what it should.
    Sound,
    /// Nobody has read it yet.
    NotBuilt,
    /// Its records contradict each other.
    Damaged(String),
    /// It has other entries than its documents come to.
    Differs(String),
}

/// An index that can be audited and rebuilt.
pub struct Audit {
    /// `design document/view`, or a folder.
    pub name: String,
    group: Arc<Group>,
    place: usize,
}

/// An index, or what cannot be audited and why.
pub type AuditResult = std::result::Result<Audit, (String, DatabaseError)>;

/// The entries and lists of an index.
#[derive(Default, PartialEq, Eq)]
struct Content {
    entries: Tally,
    lists: Tally,
}

impl OpenDatabase {
    /// All indexes that are to be audited.
    ///
    /// # Errors
    /// What the store reports.
    pub fn audits(&self) -> Result<Vec<AuditResult>> {
        let mut audits = Vec::new();
        for design in self.design_names()? {
            match self.view_group(&design) {
                Ok(group) => audits.extend(group.kept().enumerate().map(|(place, view)| {
                    let name = format!("{design}/{}", view.definition.name);
                    Ok(Audit { name, group: Arc::clone(&group), place })
                })),
                Err(error) => audits.push(Err((design, error))),
            }
        }
        let folders = match self.folders(None) {
            Ok(folders) => folders,
            Err(error) => {
                audits.push(Err(("folders".to_owned(), error)));
                Vec::new()
            }
        };
        for folder in folders {
            audits.push(match self.group_of_folder(&folder.name) {
                Ok(group) => Ok(Audit { name: format!("folder {}", folder.name), group, place: 0 }),
                Err(error) => Err((folder.name, error)),
            });
        }
        Ok(audits)
    }
}

impl Audit {
    fn view(&self) -> Option<&View> {
        self.group.kept().nth(self.place)
    }

    /// Whether the index can be held against its documents, and not only against itself.
    pub fn is_comparable(&self) -> bool {
        self.view().is_some_and(is_comparable)
    }

    /// Builds the index again; readers have the old entries meanwhile.
    ///
    /// # Errors
    /// What the store reports.
    pub fn rebuild(&self, database: &OpenDatabase) -> Result<()> {
        self.view().map_or(Ok(()), |view| database.rebuild_views(vec![view]))
    }

    /// Holds the index against its documents. `tick` is called for every record, and stops it with an error.
    ///
    /// # Errors
    /// What the store reports, and that of `tick`.
    pub fn run(&self, database: &OpenDatabase, tick: &mut dyn FnMut() -> Result<()>) -> Result<Audited> {
        let Some(view) = self.view() else { return Ok(Audited::NotBuilt) };
        let mut last = Audited::NotBuilt;
        for _ in 0..TRIES {
            if !view.is_built() {
                return Ok(Audited::NotBuilt);
            }
            last = audit(database, view, tick)?;
            if matches!(last, Audited::Sound | Audited::NotBuilt) {
                break;
            }
        }
        Ok(last)
    }
}

fn audit(database: &OpenDatabase, view: &View, tick: &mut dyn FnMut() -> Result<()>) -> Result<Audited> {
    let mut reader = view.index.index.reader();
    let mut later = changed_later(database, view, &reader)?;
    if later.len() > BEHIND_MAX {
        database.update_chosen_view(view)?;
        reader = view.index.index.reader();
        later = changed_later(database, view, &reader)?;
    }
    let found = match stored(view, &reader, &later, tick) {
        Ok(found) => found,
        Err(Stopped::Damaged(what)) => return Ok(Audited::Damaged(what)),
        Err(Stopped::Failed(error)) => return Err(error),
    };
    if !is_comparable(view) {
        return Ok(Audited::Sound);
    }
    let wanted = evaluated(database, view, reader.snapshot(), &later, tick)?;
    if found == wanted {
        return Ok(Audited::Sound);
    }
    Ok(Audited::Differs(format!(
        "it has {} entries of {} documents, and these come to {} entries of {} documents",
        found.entries.count, found.lists.count, wanted.entries.count, wanted.lists.count
    )))
}

/// Entries beneath others come of several documents, and those that depend on the time are those of another moment.
fn is_comparable(view: &View) -> bool {
    view.definition.responses.is_none() && !view.definition.is_time_variant
}

/// Documents that changed after the change that the index had reached.
fn changed_later(database: &OpenDatabase, view: &View, reader: &Reader) -> Result<HashSet<String>> {
    let (number, snapshot) = (database.number(), reader.snapshot());
    let from = keys::change(number, reader.reached().saturating_add(1));
    let (_, to) = keys::change_range(number);
    let range = KeyRange { from: &from, to: Some(&to) };
    let mut cursor = snapshot.cursor(Family::Churn, range, scrinium_store::Direction::Forward);
    let mut later = HashSet::new();
    while let Some((_, change)) = cursor.next()? {
        let change = ChangeRecord::decode(change);
        later.insert(change.ok_or_else(|| DatabaseError::damaged("change", database.name()))?.id);
        if later.len() > BEHIND_MAX {
            return Ok(later);
        }
    }
    if let Some(folder) = view.folder {
        let placed = database.member_changes_at(snapshot, folder, reader.reached(), BEHIND_MAX + 1)?;
        later.extend(placed.into_iter().map(|change| change.id));
    }
    Ok(later)
}

enum Stopped {
    Damaged(String),
    Failed(DatabaseError),
}

impl From<DatabaseError> for Stopped {
    fn from(error: DatabaseError) -> Self {
        Self::Failed(error)
    }
}

/// What the index holds, but for documents that changed later.
fn stored(
    view: &View,
    reader: &Reader,
    later: &HashSet<String>,
    tick: &mut dyn FnMut() -> Result<()>,
) -> std::result::Result<Content, Stopped> {
    let mut content = Content::default();
    let mut stopped: Option<Stopped> = None;
    let totals = view.definition.totals().count();
    let is_plain = view.definition.responses.is_none();
    let checked = reader.check_each(|key, sums, value| {
        if stopped.is_some() {
            return;
        }
        stopped = tick().err().map(Stopped::Failed);
        let candidate =
            if view.definition.keys.is_unique { candidate_parts(key, value, totals) } else { None };
        let (key, sums, value) = match &candidate {
            Some((key, sums, value)) => (*key, sums.as_slice(), *value),
            None => (key, sums, value),
        };
        let decoded = StoredEntry::decode(&view.definition, key, value, sums.iter().copied());
        match decoded.as_ref().and_then(StoredEntry::id) {
            None => stopped = Some(Stopped::Damaged("an entry cannot be read".to_owned())),
            Some(id) if is_plain && !later.contains(id) => content.add_entry(key, sums, value),
            Some(_) => {}
        }
    });
    match checked {
        Err(IndexError::Store(error)) => {
            return Err(Stopped::Damaged(format!("it cannot be read: {error}")));
        }
        Err(error) => return Err(Stopped::Damaged(error.to_string())),
        Ok(_) => {}
    }
    if let Some(stopped) = stopped {
        return Err(stopped);
    }
    if !is_plain {
        return Ok(content);
    }
    let (_, index) = numbers_of(view.index.id);
    let is_whole = each_list(reader.snapshot(), view.index.home(), index, |id, list| {
        tick()?;
        if !later.contains(id) {
            content.lists.add(&[id.as_bytes(), list]);
        }
        Ok(())
    })?;
    if is_whole {
        Ok(content)
    } else {
        Err(Stopped::Damaged("a document's lists of entries cannot be read".to_owned()))
    }
}

/// What the documents come to, but for those that changed later.
fn evaluated(
    database: &OpenDatabase,
    view: &View,
    snapshot: &Snapshot,
    later: &HashSet<String>,
    tick: &mut dyn FnMut() -> Result<()>,
) -> Result<Content> {
    let mut content = Content::default();
    let environment = environment(database);
    let mut evaluator = Evaluator::new(database, vec![view], &environment);
    let (from, to) = keys::winner_range(database.number());
    let mut scan = snapshot.tolerant(Family::Scan, KeyRange { from: &from, to: Some(&to) });
    let mut waiting: Vec<(String, Vec<u8>)> = Vec::new();
    while let Some(step) = scan.next() {
        // What cannot be read is in no view; checking documents tells of it.
        let ScanStep::Entry(key, record) = step else { continue };
        tick()?;
        let Some(id) = keys::id_of(key) else { continue };
        if later.contains(id) || !evaluator.includes_designs() && scrinium_document::is_design(id) {
            continue;
        }
        if let Some(folder) = view.folder
            && database.uid_at(snapshot, folder, id)?.is_none()
        {
            continue;
        }
        waiting.push((id.to_owned(), record.to_vec()));
        if waiting.len() >= DOCUMENTS_AT_ONCE {
            evaluate(&mut evaluator, &mut waiting, &mut content)?;
        }
    }
    evaluate(&mut evaluator, &mut waiting, &mut content)?;
    Ok(content)
}

fn evaluate(
    evaluator: &mut Evaluator<'_>,
    waiting: &mut Vec<(String, Vec<u8>)>,
    content: &mut Content,
) -> Result<()> {
    let mut leaves = Vec::with_capacity(waiting.len());
    for (id, record) in &*waiting {
        leaves.extend(evaluator.leaf(id, record)?.map(|leaf| (id.as_str(), leaf)));
    }
    let alive = leaves.iter().filter(|(_, leaf)| !leaf.deleted);
    let documents: Vec<(&str, &Leaf<'_>)> = alive.map(|(id, leaf)| (*id, leaf)).collect();
    let evaluated = evaluator.entries_of_many(&documents)?;
    for ((id, _), entries) in documents.iter().zip(evaluated) {
        let entries: Option<Vec<Entry>> = entries.into_iter().next();
        let entries = entries.ok_or_else(|| never!("an audit evaluates one view", "{id}"))?;
        if !entries.is_empty() {
            content.lists.add(&[id.as_bytes(), &encode_list(id, &entries)]);
        }
        entries.iter().for_each(|Entry { key, value, totals }| content.add_entry(key, totals, value));
    }
    waiting.clear();
    Ok(())
}

impl Content {
    fn add_entry(&mut self, key: &[u8], totals: &[f64], value: &[u8]) {
        // As the index keeps them: finite, and without a negative zero.
        let kept = |total: &f64| if total.is_finite() { total + 0.0 } else { 0.0 };
        let totals: Vec<u8> = totals.iter().flat_map(|total| kept(total).to_be_bytes()).collect();
        self.entries.add(&[key, &totals, value]);
    }
}
