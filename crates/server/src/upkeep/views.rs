//! Views and folders that are brought up to date in the background: where a reader wanted it, and where the policy of a
//! view says so. Databases in which there may be something to do announce themselves; no other is looked at.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use scrinium_clock::Clock;
use scrinium_database::DatabaseError;
use scrinium_views::OpenDatabase;
use tokio::task::{Id, JoinError, JoinSet};

/// At most this many are brought up to date at once; another waits rather than take more processors and disk from those who
/// work.
const UPDATES_AT_ONCE: usize = 2;

/// Databases taken up while others wait; the rest stay announced.
const WAITING_MAX: usize = 1000;

/// Databases that are looked at again although nothing changes in them; the next change reminds of any other.
const LATER_MAX: usize = 10_000;

/// What is to be brought up to date.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Wanted {
    /// The views of a design document.
    Views(String),
    Folder(String),
    /// Views whose policy says so.
    Followed,
}

/// A database, and when it is to be looked at again.
type Looked = (OpenDatabase, Option<Duration>);

/// How an update ended.
pub(super) type Ended = Result<Result<(), DatabaseError>, JoinError>;

/// What waits, and what is under way: of one database only one at a time.
#[derive(Default)]
pub(super) struct ViewUpdates {
    clock: Clock,
    /// In the order of asking.
    waiting: VecDeque<(OpenDatabase, Wanted)>,
    /// The same, by the databases' numbers.
    known: HashSet<(u32, Wanted)>,
    running: JoinSet<Result<Looked, DatabaseError>>,
    /// The databases of `running`.
    busy: HashMap<Id, u32>,
    later: HashMap<u32, (Instant, OpenDatabase)>,
}

impl ViewUpdates {
    pub(super) fn new(clock: &Clock) -> Self {
        Self { clock: clock.clone(), ..Self::default() }
    }

    /// How many databases may be taken up.
    pub(super) fn room(&self) -> usize {
        WAITING_MAX.saturating_sub(self.waiting.len())
    }

    /// Takes up what is wanted in databases that have announced themselves.
    pub(super) fn take_up(&mut self, announced: Vec<OpenDatabase>) {
        for database in announced {
            for design in database.take_wanted_views() {
                self.want(&database, Wanted::Views(design));
            }
            for folder in database.take_wanted_folders() {
                self.want(&database, Wanted::Folder(folder));
            }
            self.want(&database, Wanted::Followed);
        }
    }

    /// Begins with as much as may run.
    pub(super) fn begin(&mut self) {
        let now = self.clock.instant();
        let due: Vec<u32> =
            self.later.iter().filter(|(_, (at, _))| *at <= now).map(|(key, _)| *key).collect();
        for number in due {
            if let Some((_, database)) = self.later.remove(&number) {
                self.want(&database, Wanted::Followed);
            }
        }
        while self.running.len() < UPDATES_AT_ONCE
            && let Some((database, wanted)) = self.next()
        {
            let number = database.number();
            let task = self.running.spawn_blocking(move || update(database, &wanted));
            self.busy.insert(task.id(), number);
        }
    }

    fn want(&mut self, database: &OpenDatabase, wanted: Wanted) {
        if self.known.insert((database.number(), wanted.clone())) {
            self.waiting.push_back((database.clone(), wanted));
        }
    }

    /// The first that waits of a database with which nobody is busy.
    fn next(&mut self) -> Option<(OpenDatabase, Wanted)> {
        let is_free = |database: &OpenDatabase| self.busy.values().all(|busy| *busy != database.number());
        let place = self.waiting.iter().position(|(database, _)| is_free(database))?;
        let (database, wanted) = self.waiting.remove(place)?;
        self.known.remove(&(database.number(), wanted.clone()));
        Some((database, wanted))
    }

    /// Waits for one to end; `None` if none is under way.
    pub(super) async fn ended(&mut self) -> Option<Ended> {
        let ended = self.running.join_next_with_id().await?;
        let id = ended.as_ref().map_or_else(JoinError::id, |(id, _)| *id);
        self.busy.remove(&id);
        Some(ended.map(|(_, updated)| {
            let (database, again) = updated?;
            if let Some(again) = again
                && self.later.len() < LATER_MAX
            {
                self.later.insert(database.number(), (self.clock.instant() + again, database));
            }
            Ok(())
        }))
    }
}

fn update(database: OpenDatabase, wanted: &Wanted) -> Result<Looked, DatabaseError> {
    let updated = match wanted {
        Wanted::Views(design) => database.update_view_group(design).map(|()| None),
        Wanted::Folder(name) => database.update_folder(name).map(|()| None),
        Wanted::Followed => database.update_followed_views(),
    };
    match updated {
        Ok(again) => Ok((database, again)),
        // A design document, a folder, or its database, may have gone meanwhile.
        Err(DatabaseError::NotFound { .. }) => Ok((database, None)),
        Err(error) => Err(error),
    }
}
