//! The folder of a build whose entries do not fit into memory: sorted files, and a manifest that says how far it has
//! come, so that it continues there after a crash.
//!
//! What was spilled holds the documents as they were at change `reached`; those of later segments may be newer.
//! The views follow all changes since `reached` afterwards, and the lists say what to take out.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use scrinium_assertion::{always, never};
use scrinium_contents::hex;
use scrinium_database::Result;
use scrinium_database::context::StoreContext;
use serde::{Deserialize, Serialize};

use super::claim::{Claim, is_of, remove_left};
use super::run::{Merge, READ_BYTES, Run, Spill, file_error, read_bytes, spill, spilled};
use super::segment::Segment;
use crate::context::ViewsContext;
use crate::group::View;
use crate::open::OpenDatabase;
use crate::registry::awaits_build;
use crate::update::cores;

const MANIFEST: &str = "manifest.json";
const VERSION: u32 = 3;

/// At most this many files of one view are merged into one, so that few are open at once; fewer in little memory, of which they take
/// this part while as many views are merged as there are cores.
const FILES_MAX: usize = 64;
const FILES_MIN: usize = 8;
const FILES_PART: usize = 2;

/// What is in the folder.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Manifest {
    version: u32,
    database: String,
    /// The database's name.
    name: String,
    /// The views' identities, in the order of their files.
    views: Vec<String>,
    /// The last change that the first segment knew.
    reached: u64,
    /// The last document in the files.
    after: Option<String>,
    /// Files of each view.
    runs: Vec<Vec<String>>,
    /// Files of lists, in order.
    lists: Vec<String>,
    /// Entries in the files.
    entries: u64,
    next_file: u64,
}

/// A folder that is made when the first segment is spilled.
pub(super) struct Workplace {
    path: PathBuf,
    history: String,
    /// From when there is a folder.
    claim: Option<Claim>,
    manifest: Manifest,
    resumed: bool,
    files_max: usize,
}

impl Workplace {
    /// The folder of an earlier build of the same views that was cut off, or a new one.
    pub(super) fn open(database: &OpenDatabase, views: &[&View], reached: u64, limit_bytes: usize) -> Self {
        let identities: Vec<String> = views.iter().map(|view| hex(&view.index.identity)).collect();
        let uuid = id_of(database);
        let mut hasher = blake3::Hasher::new();
        for identity in &identities {
            hasher.update(identity.as_bytes());
        }
        let name: String = hasher.finalize().to_hex().chars().take(16).collect();
        let history = database.context.history.clone();
        let path = database.server.rebuild_dir().join(format!("{uuid}-{name}"));
        let manifest = Manifest {
            version: VERSION,
            database: uuid,
            name: database.name().to_owned(),
            runs: views.iter().map(|_| Vec::new()).collect(),
            views: identities,
            reached,
            ..Manifest::default()
        };
        let files_max = (limit_bytes / FILES_PART / (READ_BYTES * cores())).clamp(FILES_MIN, FILES_MAX);
        let mut this = Self { path, history, claim: None, manifest, resumed: false, files_max };
        if this.path.exists()
            && let Err(error) = this.take_over(reached)
        {
            tracing::warn!(path = %this.path.display(), %error, "leftovers of an earlier view build cannot be used");
        }
        this
    }

    /// Goes on with what lies there, or removes it if that is no use. What another server works on stays its.
    fn take_over(&mut self, reached: u64) -> Result<()> {
        self.claim()?;
        let is_new = self.claim.as_ref().is_none_or(Claim::is_new);
        match Manifest::read(&self.path).filter(|_| !is_new) {
            Some(stored) if stored.is_of(&self.manifest) && stored.reached <= reached => {
                tracing::info!(path = %self.path.display(), after = ?stored.after, "resuming a build of views");
                self.manifest = stored;
                self.resumed = true;
            }
            _ => self.remove(),
        }
        Ok(())
    }

    /// Takes the folder, or one next to it if another server works in it, for this build alone.
    fn claim(&mut self) -> Result<()> {
        if self.claim.is_some() {
            return Ok(());
        }
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |error: std::io::Error| file_error("make", &path, &error)
        };
        self.claim = Claim::take(&self.path, &self.history).map_err(failed(&self.path))?;
        if self.claim.is_none() {
            let name = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            self.path.set_file_name(format!("{name}-{:08x}", rand::random::<u32>()));
            self.claim = Claim::take(&self.path, &self.history).map_err(failed(&self.path))?;
        }
        Ok(())
    }

    /// Bytes of the sorted files that are there.
    pub(super) fn spilled_bytes(&self) -> u64 {
        let files = self.manifest.runs.iter().flatten().chain(&self.manifest.lists);
        files.filter_map(|file| fs::metadata(self.path.join(file)).ok()).map(|found| found.len()).sum()
    }

    pub(super) const fn is_resumed(&self) -> bool {
        self.resumed
    }

    /// The change that the views stand at when everything is written.
    pub(super) const fn reached(&self) -> u64 {
        self.manifest.reached
    }

    /// The last document that need not be read again.
    pub(super) fn after(&self) -> Option<&str> {
        self.manifest.after.as_deref()
    }

    #[cfg(test)]
    pub(super) fn files(&self) -> usize {
        self.manifest.runs.iter().map(Vec::len).sum()
    }

    #[cfg(test)]
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Entries in files.
    pub(super) const fn entries(&self) -> u64 {
        self.manifest.entries
    }

    pub(super) fn remove(&mut self) {
        // What another one works on is not to be removed.
        let Some(_claim) = self.claim.take() else { return };
        if let Err(error) = fs::remove_dir_all(&self.path)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(path = %self.path.display(), %error, "a folder of a build of views was not removed");
        }
    }

    /// Writes a segment into files. They count once the manifest names them.
    pub(super) fn spill(&mut self, segment: Segment, totals: &[usize]) -> Result<()> {
        self.claim()?;
        let mut next = self.manifest.clone();
        next.entries += segment.entries();
        let views = next.runs.len();
        let fits = segment.runs.len() == views && totals.len() == views;
        always!(fits, "a segment has runs of each view of its build", "{} of {views}", segment.runs.len())?;
        for ((runs, files), totals) in segment.runs.into_iter().zip(&mut next.runs).zip(totals) {
            let name = format!("{}.run", next.next_file);
            next.next_file += 1;
            spill(&self.path.join(&name), Merge::of(runs, [], *totals)?)?;
            files.push(name);
        }
        let name = format!("{}.lists", next.next_file);
        next.next_file += 1;
        let path = self.path.join(&name);
        let mut out = Spill::create(&path)?;
        segment.lists.iter().try_for_each(|lists| out.write(lists))?;
        out.finish()?;
        next.lists.push(name);
        if let Some(last_id) = segment.last_id {
            next.after = Some(last_id);
        }
        self.note(next)?;
        if self.manifest.lists.len().is_multiple_of(self.files_max) {
            self.join_files(totals)
        } else {
            Ok(())
        }
    }

    fn join_files(&mut self, totals: &[usize]) -> Result<()> {
        let mut next = self.manifest.clone();
        for (files, totals) in next.runs.iter_mut().zip(totals) {
            let name = format!("{}.run", next.next_file);
            next.next_file += 1;
            let paths: Vec<PathBuf> = files.iter().map(|file| self.path.join(file)).collect();
            spill(&self.path.join(&name), Merge::of([], paths, *totals)?)?;
            *files = vec![name];
        }
        let joined = self.manifest.runs.clone();
        self.note(next)?;
        for file in joined.iter().flatten() {
            drop(fs::remove_file(self.path.join(file)));
        }
        Ok(())
    }

    /// Puts the manifest in place of the one before; whatever happens, one of them is whole.
    fn note(&mut self, manifest: Manifest) -> Result<()> {
        let part = self.path.join(format!("{MANIFEST}.part"));
        let write = || {
            let mut file = fs::File::create(&part)?;
            file.write_all(&serde_json::to_vec(&manifest)?)?;
            file.sync_all()?;
            fs::rename(&part, self.path.join(MANIFEST))?;
            fs::File::open(&self.path)?.sync_all()
        };
        write().map_err(|error| file_error("write", &part, &error))?;
        self.manifest = manifest;
        Ok(())
    }

    /// All entries of a view in order: those in files and those still in memory.
    pub(super) fn merged(&self, view: usize, runs: Vec<Run>, totals: usize) -> Result<Merge> {
        let files = self.manifest.runs.get(view);
        let files =
            files.ok_or_else(|| never!("a manifest names files of each view of its build", "view {view}"))?;
        let paths: Vec<PathBuf> = files.iter().map(|file| self.path.join(file)).collect();
        Merge::of(runs, paths, totals)
    }

    /// Before files are written in it by others: makes sure that there is a folder.
    pub(super) fn make(&mut self) -> Result<()> {
        self.claim()
    }

    /// Where a view's entries are put for a while that come last; nothing of a build that is resumed.
    pub(super) fn aside(&self, view: usize) -> PathBuf {
        self.path.join(format!("{view}.aside"))
    }

    /// The ids and lists of all documents in order: those in files, opened one after the other, and those still in memory.
    pub(super) fn lists(
        &self,
        in_memory: Vec<Vec<u8>>,
    ) -> impl Iterator<Item = Result<(Vec<u8>, Vec<u8>)>> + use<> {
        let paths: Vec<PathBuf> = self.manifest.lists.iter().map(|file| self.path.join(file)).collect();
        let in_files = paths.into_iter().flat_map(|path| {
            let (lists, failed) = match spilled(path, read_list) {
                Ok(lists) => (Some(lists), None),
                Err(error) => (None, Some(Err(error))),
            };
            lists.into_iter().flatten().chain(failed)
        });
        let in_memory = in_memory.into_iter().flat_map(|lists| {
            let mut rest = std::io::Cursor::new(lists);
            std::iter::from_fn(move || read_list(&mut rest).map_err(|error| memory_error(&error)).transpose())
        });
        in_files.chain(in_memory)
    }
}

impl Manifest {
    /// `None`: there is none that can be read.
    fn read(folder: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(folder.join(MANIFEST)).ok()?).ok()
    }

    /// Whether it tells of a build that is still to be done: of views that there are, and that are not built.
    fn is_wanted(&self, open: &dyn Fn(&str) -> Option<OpenDatabase>) -> bool {
        let Some(database) = open(&self.name) else { return false };
        let awaits = |identity: &String| {
            let identity = unhex(identity);
            identity.is_some_and(|identity| awaits_build(&database, &identity).unwrap_or(true))
        };
        self.version == VERSION && id_of(&database) == self.database && self.views.iter().all(awaits)
    }

    /// Whether it tells of a build of the same views.
    fn is_of(&self, other: &Self) -> bool {
        self.version == other.version
            && self.database == other.database
            && self.views == other.views
            && self.runs.len() == other.views.len()
    }
}

/// What a database's folders begin with. One that is being moved is built at two places at once.
fn id_of(database: &OpenDatabase) -> String {
    format!("{}-{}", hex(&database.uuid()), database.number())
}

/// The change from which builds of a database that were cut off would go on, the earliest of them.
pub(crate) fn unfinished_build(database: &OpenDatabase) -> Result<Option<u64>> {
    let dir = database.server.rebuild_dir();
    let folders = match fs::read_dir(&dir) {
        Ok(folders) => folders,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(file_error("read", &dir, &error)),
    };
    let (begin, history) = (format!("{}-", id_of(database)), &database.context.history);
    let paths = folders.flatten().map(|folder| folder.path());
    let is_ours = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&begin))
            && is_of(path, history)
    };
    let reached = paths.filter(is_ours).filter_map(|path| Manifest::read(&path));
    Ok(reached.map(|manifest| manifest.reached).min())
}

/// Removes from the folder of builds what a killed server has left of builds that will not be gone on with; `open` finds a
/// database by its name. Whatever another server works on stays, as does what is not of these stores. Looks at each folder there.
pub fn remove_left_builds(
    views: &ViewsContext,
    contexts: &[Arc<StoreContext>],
    open: &dyn Fn(&str) -> Option<OpenDatabase>,
) {
    let dir = views.rebuild_dir();
    let is_wanted = |path: &Path| Manifest::read(path).is_some_and(|manifest| manifest.is_wanted(open));
    for context in contexts {
        if let Err(error) = remove_left(&dir, &context.history, is_wanted) {
            tracing::warn!(dir = %dir.display(), %error, "what builds of views have left there was not removed");
        }
    }
}

fn unhex(digits: &str) -> Option<[u8; 16]> {
    u128::from_str_radix(digits, 16).ok().map(u128::to_be_bytes)
}

fn memory_error(error: &std::io::Error) -> scrinium_database::DatabaseError {
    file_error("read", Path::new("lists in memory"), error)
}

fn read_list(input: &mut impl std::io::BufRead) -> std::io::Result<Option<(Vec<u8>, Vec<u8>)>> {
    if input.fill_buf()?.is_empty() {
        return Ok(None);
    }
    Ok(Some((read_bytes(input)?, read_bytes(input)?)))
}
