//! A device under a recorded run.
//!
//! What may survive a power loss, by the promises of POSIX and what ext4, XFS and btrfs keep of them:
//!
//! - Data that a sync of its file covers is there: what was written before the sync began, once it was answered.
//! - Of other data, a sector of 512 bytes that was there before is as it was at some moment since its last sync, each at
//!   its own. What makes a file longer comes in order, up to some sector; a length can be there without it, as zeros.
//!   What was never written is never anybody else's old data.
//! - A name is there once its folder was synced after it came; a sync of the file alone does not do that.
//!   Changes of one folder that were not synced survive up to some moment, a rename as a whole. Between folders there is no
//!   order, or that of the calls; each image has one or the other.
//! - After a sync that failed, what it was to write may be there or not, and later syncs tell nothing of it.
//! - A drive that says it has written what it has not is outside of this, but see [`Faults`](crate::Faults).

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::content::Content;
use crate::journal::Event;
use crate::names::{NamePlace, Names, Node};

const ROOT: Node = Node(0);

/// Of the flags of `open`, as on Linux.
const TRUNCATES: i32 = 0o1000;
const IS_SYNCED: i32 = 0o10000;

#[derive(Clone, Debug)]
enum Kind<'journal> {
    Folder,
    File(Content<'journal>),
}

#[derive(Clone, Copy, Debug)]
struct Opened {
    node: Node,
    /// Each write is synced before it is answered.
    is_synced: bool,
}

/// What a recorded program has done to its device so far.
#[derive(Debug)]
pub struct Disk<'journal> {
    nodes: Vec<Kind<'journal>>,
    names: Names,
    opened: HashMap<i32, Opened>,
    /// Of syncs under way: what they will have made durable.
    syncs: HashMap<u64, (Node, usize)>,
    marks: Vec<&'journal str>,
    random: StdRng,
}

impl<'journal> Disk<'journal> {
    /// An empty folder. What becomes of syncs that fail depends on `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            nodes: vec![Kind::Folder],
            names: Names::default(),
            opened: HashMap::new(),
            syncs: HashMap::new(),
            marks: Vec::new(),
            random: StdRng::seed_from_u64(seed),
        }
    }

    /// A folder that holds what `folder` holds, all of it durable.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn holding(folder: &Path, seed: u64) -> io::Result<Self> {
        let mut disk = Self::new(seed);
        disk.load(folder, ROOT)?;
        Ok(disk)
    }

    fn load(&mut self, from: &Path, folder: Node) -> io::Result<()> {
        for entry in std::fs::read_dir(from)? {
            let entry = entry?;
            let is_folder = entry.file_type()?.is_dir();
            let kind = if is_folder {
                Kind::Folder
            } else {
                Kind::File(Content::holding(std::fs::read(entry.path())?))
            };
            let node = self.add(kind);
            self.names.add_durable((folder, entry.file_name().to_string_lossy().into_owned()), node);
            if is_folder {
                self.load(&entry.path(), node)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, kind: Kind<'journal>) -> Node {
        self.nodes.push(kind);
        Node(self.nodes.len() - 1)
    }

    /// What the program has said so far, in its order.
    #[must_use]
    pub fn marks(&self) -> &[&'journal str] {
        &self.marks
    }

    /// The next call happens.
    pub fn play(&mut self, event: &Event<'journal>) {
        match *event {
            Event::Process => {
                self.opened.clear();
                self.syncs.clear();
            }
            Event::Open { file, flags, is_folder, path } => self.open(file, flags, is_folder, path),
            Event::Duplicate { file, copy } => {
                if let Some(opened) = self.opened.get(&file).copied() {
                    self.opened.insert(copy, opened);
                }
            }
            Event::Write { file, offset, data } => {
                let is_synced = self.opened.get(&file).is_some_and(|opened| opened.is_synced);
                self.with_content(file, |content| content.write(length(offset), data, is_synced));
            }
            Event::Truncate { file, bytes } => self.with_content(file, |content| content.cut(length(bytes))),
            Event::Extend { file, bytes } => self.with_content(file, |content| content.extend(length(bytes))),
            Event::SyncBegun { file, number } => self.begin_sync(file, number),
            Event::SyncDone { number } => self.end_sync(number),
            Event::SyncFailed { file } => {
                let mut random = StdRng::seed_from_u64(self.random.random());
                self.with_content(file, |content| content.sync_failed(&mut random));
            }
            Event::Rename { from, to } => {
                if let (Some((node, from)), Some(to)) = (self.node(from), self.place(to)) {
                    self.names.change(Some(from), Some((to, node)));
                }
            }
            Event::Link { from, to } => {
                if let (Some((node, _)), Some(to)) = (self.node(from), self.place(to)) {
                    self.names.change(None, Some((to, node)));
                }
            }
            Event::MakeFolder(path) => {
                let node = self.add(Kind::Folder);
                if let Some(place) = self.place(path) {
                    self.names.change(None, Some((place, node)));
                }
            }
            Event::Unlink(path) | Event::RemoveFolder(path) => {
                if let Some((_, place)) = self.node(path) {
                    self.names.change(Some(place), None);
                }
            }
            Event::Mark(text) => self.marks.extend(text.lines()),
        }
    }

    fn open(&mut self, file: i32, flags: i32, is_folder: bool, path: &str) {
        let node = if path.is_empty() {
            ROOT
        } else if let Some((node, _)) = self.node(path) {
            node
        } else {
            let node = self.add(if is_folder { Kind::Folder } else { Kind::File(Content::default()) });
            let Some(place) = self.place(path) else { return };
            self.names.change(None, Some((place, node)));
            node
        };
        self.opened.insert(file, Opened { node, is_synced: flags & IS_SYNCED != 0 });
        if flags & TRUNCATES != 0 {
            self.with_content(file, |content| content.cut(0));
        }
    }

    fn begin_sync(&mut self, file: i32, number: u64) {
        let Some(opened) = self.opened.get(&file) else { return };
        let position = match self.nodes.get(opened.node.0) {
            Some(Kind::File(content)) => content.position(),
            _ => self.names.position(),
        };
        self.syncs.insert(number, (opened.node, position));
    }

    fn end_sync(&mut self, number: u64) {
        let Some((node, position)) = self.syncs.remove(&number) else { return };
        match self.nodes.get_mut(node.0) {
            Some(Kind::File(content)) => content.synced(position),
            _ => self.names.synced(node, position),
        }
    }

    fn with_content(&mut self, file: i32, change: impl FnOnce(&mut Content<'journal>)) {
        let opened = self.opened.get(&file);
        if let Some(Kind::File(content)) = opened.and_then(|opened| self.nodes.get_mut(opened.node.0)) {
            change(content);
        }
    }

    /// The folder of a path and its last name, whether or not something has that name.
    fn place(&self, path: &str) -> Option<NamePlace> {
        let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
        let mut folder = ROOT;
        for name in folders.split('/').filter(|name| !name.is_empty()) {
            folder = self.names.find(folder, name)?;
        }
        Some((folder, name.to_owned()))
    }

    fn node(&self, path: &str) -> Option<(Node, NamePlace)> {
        let place = self.place(path)?;
        Some((self.names.find(place.0, &place.1)?, place))
    }

    /// What the device may hold if the power goes now.
    #[must_use]
    pub fn image(&self, random: &mut StdRng) -> Image {
        let names = self.names.image(random);
        self.collect(&names, |content| content.image(random))
    }

    /// What is there if only the program ends now.
    #[must_use]
    pub fn current(&self) -> Image {
        self.collect(self.names.current(), Content::current)
    }

    fn collect(
        &self,
        names: &BTreeMap<NamePlace, Node>,
        mut content_of: impl FnMut(&Content<'journal>) -> Vec<u8>,
    ) -> Image {
        let mut image = Image::default();
        let mut folders = vec![(ROOT, PathBuf::new())];
        while let Some((folder, path)) = folders.pop() {
            let within = (folder, String::new())..(Node(folder.0 + 1), String::new());
            for ((_, name), node) in names.range(within) {
                let path = path.join(name);
                match self.nodes.get(node.0) {
                    Some(Kind::File(content)) => image.files.push((path, content_of(content))),
                    _ => folders.push((*node, path)),
                }
            }
            image.folders.push(path);
        }
        image
    }
}

/// A number of bytes of a file that lies in memory.
fn length(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// What a device holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// Folders, each before what is in it; the first is the empty path.
    pub folders: Vec<PathBuf>,
    /// Files with what is in them.
    pub files: Vec<(PathBuf, Vec<u8>)>,
}

impl Image {
    /// Makes it on a real file system, in a folder that is empty or not there.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        for path in &self.folders {
            std::fs::create_dir_all(folder.join(path))?;
        }
        for (path, content) in &self.files {
            std::fs::write(folder.join(path), content)?;
        }
        Ok(())
    }
}
