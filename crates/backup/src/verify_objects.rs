//! Looking whether the objects are there that backups need: each once, however many backups need it.
//!
//! The lists are gone through several times, each time for a part of all digests, so that what was found of the objects of
//! this part fits into memory.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use scrinium_objects::{Needed, ObjectError, Objects, Survey};

use crate::attachments::{Lines, line};
use crate::manifest::ObjectsEntry;
use crate::{BackupError, Manifest, Progress, Repository, Verified};

/// At most this many objects that are lost are named of one backup.
const TOLD_MAX: usize = 20;

/// Of this many lost ones it is known why; of more only that they are.
const REASONS_MAX: usize = 10_000;

/// Objects that are remembered at once, with some 60 bytes each.
const AT_ONCE: u64 = 1 << 20;

/// What tells an object from all others.
type Print = [u8; 16];

/// A backup, and what was found of its objects.
struct Looked {
    manifest: Manifest,
    needs: ObjectsEntry,
    objects: u64,
    lost_count: u64,
    /// Those that are named.
    lost: Vec<String>,
    /// Why it could not be looked at as a whole.
    problem: Option<String>,
}

/// A part of all digests.
#[derive(Clone, Copy)]
struct Part {
    number: u64,
    of: u64,
}

/// What became of looking for an object.
enum ObjectFinding {
    There,
    Lost(Option<String>),
}

/// Looks whether the objects are there that a backup needs, or that any does; with `deep` reads each. One that several
/// backups need is looked at once.
///
/// # Errors
/// If the repository cannot be read, or it was told to stop. What is lost, or cannot be asked, is no error of this.
pub fn verify_objects(
    repository: &Repository,
    id: Option<&str>,
    (objects, deep): (&Objects, bool),
    progress: &dyn Progress,
) -> Result<Verified, BackupError> {
    verify_in_parts(repository, id, (objects, deep), AT_ONCE, progress)
}

fn verify_in_parts(
    repository: &Repository,
    id: Option<&str>,
    (objects, deep): (&Objects, bool),
    at_once: u64,
    progress: &dyn Progress,
) -> Result<Verified, BackupError> {
    let _readers = repository.lock_to_read()?;
    let manifests = match id {
        Some(id) => vec![repository.backup(Some(id))?],
        // Those that cannot be read are told of where their files are.
        None => repository.backups()?.into_iter().filter_map(|(_, manifest)| manifest.ok()).collect(),
    };
    let mut verified = Verified::default();
    let is_closed = |manifest: &Manifest| manifest.is_sealed() && repository.keys.is_none();
    let (closed, open): (Vec<Manifest>, Vec<Manifest>) = manifests.into_iter().partition(is_closed);
    let mut backups: Vec<Looked> = open.into_iter().filter_map(Looked::new).collect();
    for closed in closed.into_iter().filter_map(Looked::new) {
        let needs = BackupError::NeedsIdentity { what: "the list of them".to_owned() };
        verified.unread.push((closed.name(), needs.to_string()));
    }
    if backups.is_empty() {
        return Ok(verified);
    }
    progress.step("objects");
    let most = backups.iter().map(|backup| backup.needs.objects).fold(0, u64::saturating_add);
    let of = most.div_ceil(at_once.max(1)).clamp(1, 1 << 16);
    let parts = || (0..of).map(|number| Part { number, of });
    let mut bytes = 0_u64;
    for part in parts() {
        bytes = bytes.saturating_add(bytes_of(repository, &mut backups, part, progress)?);
    }
    progress.total(bytes);
    for part in parts() {
        look_at(repository, &mut backups, part, (objects, deep), progress)?;
    }
    for backup in backups {
        backup.tell(&mut verified);
    }
    Ok(verified)
}

/// Bytes of the objects of a part, each counted once.
fn bytes_of(
    repository: &Repository,
    backups: &mut [Looked],
    part: Part,
    progress: &dyn Progress,
) -> Result<u64, BackupError> {
    let (mut seen, mut bytes) = (HashSet::new(), 0_u64);
    for backup in backups.iter_mut() {
        backup.each(repository, part, progress, |_, needed| {
            if seen.insert(print(needed)) {
                bytes = bytes.saturating_add(needed.stored.stored_bytes);
            }
            Ok(())
        })?;
    }
    Ok(bytes)
}

fn look_at(
    repository: &Repository,
    backups: &mut [Looked],
    part: Part,
    (objects, deep): (&Objects, bool),
    progress: &dyn Progress,
) -> Result<(), BackupError> {
    let mut found: HashMap<Print, ObjectFinding> = HashMap::new();
    let mut reasons = 0;
    for backup in backups {
        let mut survey = Survey::new(objects, deep);
        backup.each(repository, part, progress, |looked, needed| {
            let print = print(needed);
            if let Entry::Vacant(entry) = found.entry(print) {
                let problem = survey.look(needed)?;
                progress.advance(needed.stored.stored_bytes);
                reasons += usize::from(problem.is_some());
                let known = |problem| ObjectFinding::Lost(Some(problem).filter(|_| reasons <= REASONS_MAX));
                entry.insert(problem.map_or(ObjectFinding::There, known));
            }
            looked.objects += 1;
            if let Some(ObjectFinding::Lost(reason)) = found.get(&print) {
                looked.lose(needed, reason.as_deref());
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn print(needed: &Needed) -> Print {
    blake3::hash(line(needed).as_bytes()).as_bytes().first_chunk().copied().unwrap_or_default()
}

impl Part {
    fn has(self, needed: &Needed) -> bool {
        let [first, second, ..] = needed.stored.name.digest;
        (u64::from(u16::from_be_bytes([first, second])) * self.of) >> 16 == self.number
    }
}

impl Looked {
    fn new(manifest: Manifest) -> Option<Self> {
        let needs = manifest.objects.clone()?;
        Some(Self { manifest, needs, objects: 0, lost_count: 0, lost: Vec::new(), problem: None })
    }

    /// Goes through its objects of a part. What keeps it from that is its problem, and it is left alone from then on.
    fn each(
        &mut self,
        repository: &Repository,
        part: Part,
        progress: &dyn Progress,
        mut take: impl FnMut(&mut Self, &Needed) -> Result<(), ObjectError>,
    ) -> Result<(), BackupError> {
        if self.problem.is_some() {
            return Ok(());
        }
        let mut lines = match Lines::open(repository, &self.needs) {
            Ok(lines) => lines,
            Err(error) => return self.give_up(error),
        };
        loop {
            if progress.is_cancelled() {
                return Err(BackupError::Cancelled);
            }
            let needed = match lines.next_line() {
                Ok(Some(needed)) => needed,
                Ok(None) => return Ok(()),
                Err(error) => return self.give_up(error),
            };
            if part.has(&needed)
                && let Err(error) = take(self, &needed)
            {
                self.problem = Some(error.to_string());
                return Ok(());
            }
        }
    }

    fn give_up(&mut self, error: BackupError) -> Result<(), BackupError> {
        match error {
            BackupError::Cancelled => Err(BackupError::Cancelled),
            error => {
                self.problem = Some(error.to_string());
                Ok(())
            }
        }
    }

    fn lose(&mut self, needed: &Needed, reason: Option<&str>) {
        self.lost_count += 1;
        if self.lost.len() < TOLD_MAX {
            let plain = || format!("{}/{} is lost", needed.address, needed.stored.name);
            self.lost.push(reason.map_or_else(plain, str::to_owned));
        }
    }

    fn name(&self) -> String {
        format!("{}, {} attachments in a store of objects", self.manifest.id, self.needs.objects)
    }

    fn tell(self, verified: &mut Verified) {
        let name = self.name();
        if let Some(problem) = self.problem {
            verified.damaged.push((name, problem));
        } else if self.lost_count == 0 && self.objects == self.needs.objects {
            verified.whole.push(name);
        } else {
            let more = self.lost_count.saturating_sub(self.lost.len() as u64);
            let more = if more > 0 { format!("; and {more} more") } else { String::new() };
            let missing = self.needs.objects.saturating_sub(self.objects);
            let cut = if missing > 0 { format!("; the list of them lacks {missing}") } else { String::new() };
            let problem = format!("{} are lost: {}{more}{cut}", self.lost_count, self.lost.join("; "));
            verified.damaged.push((name, problem));
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::{Arc, Mutex};

    use scrinium_objects::{ObjectName, Stored, WriteOptions, open_bucket};
    use scrinium_statistics::Registry;
    use scrinium_store::{Batch, Family, Store, StoreOptions};

    use super::*;
    use crate::{ObjectLister, Quiet, Source, Stores, create};

    const CONTENTS: u8 = 60;

    /// Sums up what is reported to it.
    #[derive(Default)]
    struct Sums {
        total: AtomicU64,
        advanced: AtomicU64,
    }

    impl Progress for Sums {
        fn total(&self, bytes: u64) {
            self.total.store(bytes, Ordering::Relaxed);
        }

        fn advance(&self, bytes: u64) {
            self.advanced.fetch_add(bytes, Ordering::Relaxed);
        }

        fn step(&self, _what: &str) {}

        fn is_cancelled(&self) -> bool {
            false
        }
    }

    fn write(objects: &Objects, address: &str, number: u8) -> Needed {
        let content = vec![number; 300_000 + usize::from(number)];
        let name = ObjectName { home: 7, digest: *blake3::hash(&content).as_bytes(), upload: 9 };
        let length = content.len() as u64;
        let stored_bytes = objects
            .write(
                address,
                &name,
                length,
                &mut content.as_slice(),
                WriteOptions { compressible: true, keep: false },
            )
            .unwrap();
        Needed { address: address.to_owned(), stored: Stored { name, length, stored_bytes } }
    }

    /// Backup number N needs all contents but those of the same remainder by three.
    #[test]
    fn an_object_that_several_backups_need_is_read_once_and_missed_by_each() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        std::fs::create_dir(dir.join("bucket")).unwrap();
        let address = format!("file://{}", dir.join("bucket").display());
        let statistics = Registry::new();
        let objects = Objects::new(&dir.join("objects"), Arc::new(open_bucket));
        objects.register_statistics(&statistics);
        let mut all: Vec<(u8, Needed)> =
            (0..CONTENTS).map(|number| (number, write(&objects, &address, number))).collect();
        all.sort_by_key(|(_, needed)| needed.stored.name);
        let mut options = StoreOptions::new(dir.join("data/store"));
        options.budget_bytes = Some(32 << 20);
        let store = Store::open(options, &Registry::new()).unwrap();
        let repository = Repository::create(&dir.join("repository"), None).unwrap();
        for backup in 0..3 {
            let mut batch = Batch::new();
            batch.put(Family::Scan, &[backup], &[]);
            store.commit(batch).unwrap();
            let needed: Vec<Needed> = all
                .iter()
                .filter(|(number, _)| number % 3 != backup)
                .map(|(_, needed)| needed.clone())
                .collect();
            let needed = Mutex::new(needed);
            let lister =
                ObjectLister::new(move |_, give| needed.lock().unwrap().iter().try_for_each(&mut *give));
            let source = Source {
                server: "test".to_owned(),
                version: "0".to_owned(),
                data_dir: dir.join("data"),
                leave_out: Vec::new(),
                configuration: None,
                archive_dir: None,
                objects: Some(lister),
            };
            create(&repository, &Stores::one(&store), &source, None, &Quiet).unwrap();
        }
        let bytes: u64 = all.iter().map(|(_, needed)| needed.stored.stored_bytes).sum();
        let read_bytes = || statistics.snapshot().counters["Attachment.Store.ReadBytes"];
        let mut survey = Survey::new(&objects, true);
        assert!(all.iter().all(|(_, needed)| survey.look(needed).unwrap().is_none()));
        let once_bytes = read_bytes();
        for at_once in [1000, 7] {
            let (sums, before) = (Sums::default(), read_bytes());
            let found = verify_in_parts(&repository, None, (&objects, true), at_once, &sums).unwrap();
            assert_eq!((found.whole.len(), found.damaged.len()), (3, 0), "{found:?}");
            assert_eq!(sums.total.load(Ordering::Relaxed), bytes);
            assert_eq!(sums.advanced.load(Ordering::Relaxed), bytes);
            assert_eq!(read_bytes() - before, once_bytes);
        }
        let lost = &all.iter().find(|(number, _)| *number == 3).unwrap().1;
        objects.remove(&address, &lost.stored.name).unwrap();
        for (at_once, deep) in [(1000, true), (7, false)] {
            let found = verify_in_parts(&repository, None, (&objects, deep), at_once, &Quiet).unwrap();
            assert_eq!((found.whole.len(), found.damaged.len()), (1, 2), "{found:?}");
            for (_, problem) in found.damaged {
                assert!(problem.starts_with("1 are lost") && problem.contains(&lost.stored.name.to_string()));
            }
        }
    }
}
