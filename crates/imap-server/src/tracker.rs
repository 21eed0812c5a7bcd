//! Which UIDs a folder has, and which of them a person has not read: kept in memory for folders that sessions work with.
//!
//! Both are sets of numbers that count themselves, so that the number of a message and the message of a number cost no more in a
//! folder of a million than in one of a thousand. They are derived: made from the folder when it is first opened, and brought up
//! to date from the feeds of its changes and of the person's marks.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use roaring::RoaringBitmap;
use scrinium_database::folder::members::MAX_MEMBERS_AT_ONCE;
use scrinium_database::folder::record::MemberChangeKind;
use scrinium_database::{Access, Database, DatabaseError, Result};
use scrinium_mailbox::{FolderIndex, FolderState, FolderView};
use scrinium_store::Snapshot;
use tokio::sync::watch;

use crate::mail_file::MailFile;

/// Reads what the sets are made of; what a person may read is asked before.
static FOLLOWER: Access = Access::of_the_server("following folders for mail clients");

/// Folders that are followed at once, those of sessions besides.
const TRACKERS_MAX: usize = 10_000;

/// A folder as it stands.
#[derive(Clone, Debug)]
pub(crate) struct Tracked {
    pub(crate) state: FolderState,
    pub(crate) present: Arc<RoaringBitmap>,
    pub(crate) unseen: Arc<RoaringBitmap>,
    /// Messages that the person may not read, and those that have left of them since it was made.
    hidden: Arc<RoaringBitmap>,
    /// Views of another epoch have numbers that cannot be kept: what may be read there has changed. 0 where all may be read.
    pub(crate) epoch: u64,
    /// The feeds were followed up to this change.
    reached: u64,
}

impl FolderIndex for Tracked {
    fn position(&self, uid: u32) -> u32 {
        let before = uid.checked_sub(1).map_or(0, |last| self.present.rank(last));
        u32::try_from(before).unwrap_or(u32::MAX)
    }

    fn uids_at(&self, position: u32, count: u32) -> Vec<u32> {
        let Some(first) = self.present.select(position) else { return Vec::new() };
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        self.present.range(first..).take(count).collect()
    }
}

impl Tracked {
    /// The number of the first message that the person has not read.
    pub(crate) fn first_unseen(&self) -> Option<u32> {
        Some(self.position(self.unseen.min()?).saturating_add(1))
    }

    /// How many the person has not read.
    pub(crate) fn unseen_count(&self) -> u32 {
        u32::try_from(self.unseen.len()).unwrap_or(u32::MAX)
    }
}

/// A folder, followed for one person.
pub(crate) struct FolderTracker {
    database: Arc<Database>,
    folder: u32,
    person: Arc<str>,
    /// Who asks, where not all messages may be read by all who read here.
    reader: Option<Access>,
    tracked: Mutex<Option<Tracked>>,
}

/// What a feed has changed.
struct Followed {
    present: RoaringBitmap,
    unseen: RoaringBitmap,
    hidden: RoaringBitmap,
}

/// Tells epochs apart.
static EPOCHS: AtomicU64 = AtomicU64::new(1);

impl FolderTracker {
    pub(crate) fn new(
        database: Arc<Database>,
        folder: u32,
        person: Arc<str>,
        reader: Option<Access>,
    ) -> Self {
        Self { database, folder, person, reader, tracked: Mutex::new(None) }
    }

    /// Whether it is of those alone that the person may read.
    pub(crate) fn is_restricted(&self) -> bool {
        self.reader.is_some()
    }

    fn shows(&self, snapshot: &Snapshot, id: &str) -> Result<bool> {
        let Some(reader) = &self.reader else { return Ok(true) };
        Ok(reader.readable_id(&self.database, snapshot, id.to_owned())?.is_some())
    }

    pub(crate) fn folder(&self) -> u32 {
        self.folder
    }

    /// Tells of changes in the database.
    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.database.watch()
    }

    /// The folder as it is now. Blocks.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`] if the folder is gone, and what the store reports.
    pub(crate) fn up_to_date(&self) -> Result<Tracked> {
        let mut held = self.tracked.lock();
        // Seen before the snapshot is taken, so that the snapshot has at least these changes.
        let visible = self.database.visible_change_number();
        let snapshot = self.database.store().snapshot();
        let purged_to = self.database.compaction_record()?.purged_to;
        let before = held.take().filter(|tracked| tracked.reached >= purged_to || tracked.reached == visible);
        let tracked = match before {
            Some(tracked) if tracked.reached == visible => tracked,
            Some(tracked) => match self.follow(tracked, &snapshot, visible)? {
                Some(tracked) => tracked,
                None => self.build(&snapshot, visible)?,
            },
            None => self.build(&snapshot, visible)?,
        };
        Ok(held.insert(tracked).clone())
    }

    fn build(&self, snapshot: &Snapshot, visible: u64) -> Result<Tracked> {
        let (mut present, mut unseen) = (RoaringBitmap::new(), RoaringBitmap::new());
        let mut hidden = RoaringBitmap::new();
        let mut last = 0;
        loop {
            let members = self.database.members_at(snapshot, self.folder, last, MAX_MEMBERS_AT_ONCE)?;
            for (uid, member) in &members {
                let number = number_of(*uid, &self.database)?;
                last = *uid;
                if !self.shows(snapshot, &member.id)? {
                    hidden.insert(number);
                    continue;
                }
                present.insert(number);
                if !self.database.has_read(snapshot, &member.id, &self.person)? {
                    unseen.insert(number);
                }
            }
            if members.len() < MAX_MEMBERS_AT_ONCE {
                break;
            }
        }
        let epoch = if self.is_restricted() { EPOCHS.fetch_add(1, Ordering::Relaxed) } else { 0 };
        self.finish(Followed { present, unseen, hidden }, epoch, (snapshot, visible))
    }

    /// `None`: a message that was there shows now, or shows no more, so that numbers must be given once more.
    fn follow(&self, before: Tracked, snapshot: &Snapshot, visible: u64) -> Result<Option<Tracked>> {
        let Tracked { present, unseen, hidden, reached, epoch, state } = before;
        let (mut present, mut unseen) = (Arc::unwrap_or_clone(present), Arc::unwrap_or_clone(unseen));
        let mut hidden = Arc::unwrap_or_clone(hidden);
        let mut since = reached;
        loop {
            let changes =
                self.database.member_changes_at(snapshot, self.folder, since, MAX_MEMBERS_AT_ONCE)?;
            for change in &changes {
                let uid = number_of(change.uid, &self.database)?;
                since = change.change_number;
                if change.kind == MemberChangeKind::Left {
                    present.remove(uid);
                    unseen.remove(uid);
                    continue;
                }
                let shows = self.shows(snapshot, &change.id)?;
                if shows != present.contains(uid) && uid < state.uid_next {
                    let was_hidden = !shows && hidden.contains(uid);
                    // One that was never told of may come back under its number.
                    if !was_hidden && self.is_restricted() {
                        return Ok(None);
                    }
                }
                if !shows {
                    hidden.insert(uid);
                } else if present.insert(uid)
                    && !self.database.has_read(snapshot, &change.id, &self.person)?
                {
                    unseen.insert(uid);
                }
            }
            if changes.len() < MAX_MEMBERS_AT_ONCE {
                break;
            }
        }
        self.follow_marks(&mut unseen, &present, (snapshot, reached))?;
        self.finish(Followed { present, unseen, hidden }, epoch, (snapshot, visible)).map(Some)
    }

    fn follow_marks(
        &self,
        unseen: &mut RoaringBitmap,
        present: &RoaringBitmap,
        (snapshot, reached): (&Snapshot, u64),
    ) -> Result<()> {
        let mut since = reached;
        loop {
            let marks = self.database.mark_changes(&self.person, since, MAX_MEMBERS_AT_ONCE, &FOLLOWER)?;
            for mark in &marks.changes {
                let Some(uid) = self.database.uid_at(snapshot, self.folder, &mark.id)? else { continue };
                let uid = number_of(uid, &self.database)?;
                if mark.read {
                    unseen.remove(uid);
                } else if present.contains(uid) {
                    unseen.insert(uid);
                }
            }
            since = marks.last;
            if !marks.more {
                return Ok(());
            }
        }
    }

    fn finish(
        &self,
        Followed { present, unseen, hidden }: Followed,
        epoch: u64,
        (snapshot, visible): (&Snapshot, u64),
    ) -> Result<Tracked> {
        let next = self.database.folder_feed_at(snapshot, self.folder)?;
        let next =
            next.ok_or_else(|| DatabaseError::NotFound { reason: "The folder is gone.".to_owned() })?;
        let marked = self.database.last_mark_change_at(snapshot, &self.person)?;
        let state = FolderState {
            change: next.last_change.max(marked),
            uid_next: number_of(next.next_uid, &self.database)?,
            count: u32::try_from(present.len()).unwrap_or(u32::MAX),
            last_uid: present.max().unwrap_or(0),
        };
        let (present, unseen, hidden) = (Arc::new(present), Arc::new(unseen), Arc::new(hidden));
        Ok(Tracked { state, present, unseen, hidden, epoch, reached: visible })
    }

    /// Brings a session's view up to what was tracked. False: what left since cannot be told any more, and the session ends.
    ///
    /// # Errors
    /// What the store reports.
    pub(crate) fn catch_up(&self, view: &mut FolderView, tracked: &Tracked) -> Result<bool> {
        if view.state() == tracked.state {
            return Ok(true);
        }
        let mut since = view.state().change;
        if since > 0 && since < self.database.compaction_record()?.purged_to {
            return Ok(false);
        }
        let snapshot = self.database.store().snapshot();
        let mut left = Vec::new();
        loop {
            let changes =
                self.database.member_changes_at(&snapshot, self.folder, since, MAX_MEMBERS_AT_ONCE)?;
            for change in &changes {
                since = change.change_number;
                let uid = number_of(change.uid, &self.database)?;
                // What left since it was tracked comes the next time.
                if change.has_left() && !tracked.present.contains(uid) && !tracked.hidden.contains(uid) {
                    left.push(uid);
                }
            }
            if changes.len() < MAX_MEMBERS_AT_ONCE {
                break;
            }
        }
        view.catch_up(tracked.state, left, |uid| tracked.position(uid));
        Ok(!view.is_lost())
    }
}

/// A folder's uid as clients have it (RFC 9051, section 2.3.1.1).
pub(crate) fn number_of(uid: u64, database: &Database) -> Result<u32> {
    u32::try_from(uid).map_err(|_| DatabaseError::damaged("uid of a folder", database.name()))
}

/// Whose folder it is: the database, by its identity, the folder's number, the person, and what they go by where not all may read all.
type TrackerKey = ([u8; 16], u32, Arc<str>, Option<[u8; 32]>);

/// The folders that are followed. Sessions with the same one share it.
#[derive(Default)]
pub(crate) struct Trackers {
    known: Mutex<KnownTrackers>,
}

#[derive(Default)]
struct KnownTrackers {
    all: HashMap<TrackerKey, (Arc<FolderTracker>, u64)>,
    /// How often one was asked for.
    asked: u64,
}

impl Trackers {
    /// # Errors
    /// What the store reports.
    pub(crate) fn of(&self, file: &MailFile, folder: u32) -> Result<Arc<FolderTracker>> {
        let MailFile { database, access, person, .. } = file;
        let reader = (!database.shows_all(access)?).then(|| access.clone());
        let goes_by = reader.as_ref().map(|reader| {
            let mut hasher = blake3::Hasher::new();
            for name in reader.reader_names().unwrap_or_default() {
                hasher.update(name.as_ref());
            }
            *hasher.finalize().as_bytes()
        });
        let mut known = self.known.lock();
        known.asked += 1;
        let asked = known.asked;
        let key = (database.uuid(), folder, Arc::clone(person), goes_by);
        if let Some((tracker, last)) = known.all.get_mut(&key)
            // One that was moved to another volume is another database.
            && Arc::ptr_eq(&tracker.database, database)
        {
            *last = asked;
            return Ok(Arc::clone(tracker));
        }
        if known.all.len() >= TRACKERS_MAX {
            known.forget_half();
        }
        let tracker = FolderTracker::new(Arc::clone(database), folder, Arc::clone(person), reader);
        let tracker = Arc::new(tracker);
        known.all.insert(key, (Arc::clone(&tracker), asked));
        Ok(tracker)
    }
}

impl KnownTrackers {
    /// Forgets the half that nobody asked for longest.
    fn forget_half(&mut self) {
        let mut asked: Vec<u64> = self.all.values().map(|(_, asked)| *asked).collect();
        asked.sort_unstable();
        let Some(middle) = asked.get(asked.len() / 2).copied() else { return };
        self.all.retain(|_, (_, asked)| *asked >= middle);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

    use proptest::prelude::*;
    use scrinium_catalog::Databases;
    use scrinium_database::{DatabaseOptions, Edit, EditMode, FolderChange, InitialAccess};
    use scrinium_store::{Store, StoreOptions};

    use super::*;

    /// Something that happens to a folder; the numbers choose a document.
    #[derive(Clone, Debug)]
    enum Event {
        Comes,
        Leaves(usize),
        Returns(usize),
        IsRead(usize, bool),
        IsEdited(usize),
        IsDeleted(usize),
        /// A session asks.
        Looks,
    }

    fn event() -> impl Strategy<Value = Event> {
        prop_oneof![
            4 => Just(Event::Comes),
            2 => any::<usize>().prop_map(Event::Leaves),
            1 => any::<usize>().prop_map(Event::Returns),
            3 => (any::<usize>(), any::<bool>()).prop_map(|(which, read)| Event::IsRead(which, read)),
            1 => any::<usize>().prop_map(Event::IsEdited),
            1 => any::<usize>().prop_map(Event::IsDeleted),
            4 => Just(Event::Looks),
        ]
    }

    struct Ground {
        database: Arc<Database>,
        ids: Vec<String>,
        _databases: Databases,
        _folder: tempfile::TempDir,
    }

    impl Ground {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let store =
                Store::open(StoreOptions::new(folder.path()), &scrinium_statistics::Registry::new()).unwrap();
            let databases = Databases::open(&store, DatabaseOptions::default()).unwrap();
            let opened = databases.create("mail/ada", &InitialAccess::Everybody).unwrap();
            let database = Arc::clone(opened.database());
            database.define_folder("Inbox", None).unwrap();
            Self { database, ids: Vec::new(), _databases: databases, _folder: folder }
        }

        fn update(&self, edit: Edit) {
            let edits = vec![edit];
            for updated in
                self.database.update(edits, EditMode::Interactive, &FOLLOWER).unwrap().wait().unwrap()
            {
                updated.unwrap();
            }
        }

        fn place(&self, id: String, change: FolderChange) {
            // One that is deleted goes nowhere.
            drop(self.database.change_folders(vec![(id, change)], &FOLLOWER).unwrap().wait().unwrap());
        }

        fn revision(&self, id: &str) -> Option<String> {
            self.database
                .read(id, &scrinium_database::ReadOptions::default(), &FOLLOWER)
                .ok()
                .map(|found| found.revision)
        }

        fn happens(&mut self, event: &Event) {
            let chosen = |which: &usize| self.ids.get(which % self.ids.len().max(1)).cloned();
            let folder = || "Inbox".to_owned();
            match event {
                Event::Comes => {
                    let id = format!("m{}", self.ids.len());
                    let folders = vec![FolderChange::Add { folder: folder() }];
                    self.update(Edit { id: Some(id.clone()), json: "{}".into(), folders, ..Edit::default() });
                    self.ids.push(id);
                }
                Event::Leaves(which) => {
                    if let Some(id) = chosen(which) {
                        self.place(id, FolderChange::Remove { folder: folder() });
                    }
                }
                Event::Returns(which) => {
                    if let Some(id) = chosen(which) {
                        self.place(id, FolderChange::Add { folder: folder() });
                    }
                }
                Event::IsRead(which, read) => {
                    if let Some(id) = chosen(which) {
                        drop(self.database.mark("ada", vec![id], *read, &FOLLOWER).unwrap().wait().unwrap());
                    }
                }
                Event::IsEdited(which) | Event::IsDeleted(which) => {
                    let Some(id) = chosen(which) else { return };
                    let Some(revision) = self.revision(&id) else { return };
                    let json = match event {
                        Event::IsDeleted(_) => "{\"_deleted\":true}",
                        _ => "{\"edited\":true}",
                    };
                    let editor = Some("bob".into());
                    self.update(Edit {
                        id: Some(id),
                        revision: Some(revision),
                        json: json.into(),
                        editor,
                        ..Edit::default()
                    });
                }
                Event::Looks => {}
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

        #[test]
        fn what_is_followed_is_what_a_second_look_finds_and_views_number_what_was_told(
            events in proptest::collection::vec(event(), 1..40),
        ) {
            let mut ground = Ground::new();
            let number = ground.database.folder("Inbox", None).unwrap().number;
            let person: Arc<str> = "ada".into();
            let followed = FolderTracker::new(Arc::clone(&ground.database), number, Arc::clone(&person), None);
            let first = followed.up_to_date().unwrap();
            let mut view = FolderView::new(u64::from(number), 1, first.state);
            // What a client that was told nothing numbers: UIDs in their order, those that are gone too.
            let mut told: Vec<u32> = first.present.iter().collect();
            for event in &events {
                ground.happens(event);
                if !matches!(event, Event::Looks) {
                    continue;
                }
                let now = followed.up_to_date().unwrap();
                let second = FolderTracker::new(Arc::clone(&ground.database), number, Arc::clone(&person), None);
                let second = second.up_to_date().unwrap();
                prop_assert_eq!(&now.present, &second.present);
                prop_assert_eq!(&now.unseen, &second.unseen);
                prop_assert_eq!(now.state, second.state);
                let before = view.state().uid_next;
                prop_assert!(followed.catch_up(&mut view, &now).unwrap());
                told.extend(now.present.range(before..));
                for (place, uid) in told.iter().enumerate() {
                    let wanted = now.present.contains(*uid).then(|| u32::try_from(place + 1).unwrap());
                    let found = now.present.contains(*uid).then(|| view.number_of(*uid, now.position(*uid)));
                    prop_assert_eq!(found.flatten(), wanted, "uid {} of {:?}", uid, told);
                }
                prop_assert_eq!(usize::try_from(view.exists()).unwrap(), told.len());
            }
        }
    }
}
