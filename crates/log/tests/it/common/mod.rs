//! A disk in memory that tells what was synced from what was only written, and fails when asked.
//!
//! It keeps Linux's rules: reads see what was last written; a sync makes a file's dirty sectors durable;
//! after a failed sync the sectors count as clean though they are not on the device; a power cut keeps
//! any subset of the dirty sectors, and the renames up to any point since the directory's last sync.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;

use bytes::Bytes;
use scrinium_log::system::{Access, FileHandle, System};
use scrinium_log::{DirectIo, Log, LogError, LogOptions, Recovery, Sequence};

pub(crate) const SECTOR: usize = 512;
pub(crate) const DIR: &str = "/log";
pub(crate) const EXTENT_BYTES: u64 = 16 << 10;

/// A small reproducible generator (xorshift64*), so that a printed seed repeats a run.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        (self.next() >> 11) % bound.max(1)
    }
}

/// What goes wrong, once, at a later operation that changes the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The machine stops; nothing works after that.
    Stop,
    /// One write writes nothing and fails.
    Write,
    /// One sync fails, and the page cache forgets that it was dirty.
    Sync,
}

#[derive(Clone, Default)]
struct Inode {
    current: Vec<u8>,
    durable: Vec<u8>,
    dirty: BTreeSet<usize>,
    /// Sectors that the device does not read any more.
    unreadable: BTreeSet<usize>,
}

struct State {
    inodes: Vec<Inode>,
    names: BTreeMap<PathBuf, usize>,
    durable_names: BTreeMap<PathBuf, usize>,
    /// Directory contents after each change since the last sync of the directory.
    unsynced_names: Vec<BTreeMap<PathBuf, usize>>,
    fault: Option<(u64, Fault)>,
    stopped: bool,
    capacity_bytes: Option<usize>,
    /// A refusal for want of space after which there is space again, if so.
    refusals_left: Option<u32>,
    short_writes: Option<Random>,
    wrote_short: bool,
    threads: bool,
    locked: bool,
    syncs: u64,
    /// The system's error for files that are opened, and for how many more of them.
    handles_refused: Option<(i32, u32)>,
}

#[derive(Clone)]
pub(crate) struct Disk(Arc<Mutex<State>>);

impl Disk {
    pub(crate) fn new() -> Self {
        Self::of(Vec::new(), BTreeMap::new())
    }

    fn of(inodes: Vec<Inode>, names: BTreeMap<PathBuf, usize>) -> Self {
        Self(Arc::new(Mutex::new(State {
            inodes,
            durable_names: names.clone(),
            names,
            unsynced_names: Vec::new(),
            fault: None,
            stopped: false,
            capacity_bytes: None,
            refusals_left: None,
            short_writes: None,
            wrote_short: false,
            threads: false,
            locked: false,
            handles_refused: None,
            syncs: 0,
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// After `operations` more writes, syncs and renames of that kind, `fault` happens.
    pub(crate) fn fail_after(&self, operations: u64, fault: Fault) {
        self.state().fault = Some((operations, fault));
    }

    pub(crate) fn set_capacity(&self, bytes: Option<usize>) {
        self.state().capacity_bytes = bytes;
    }

    /// Nothing new finds space, until that many attempts were refused.
    pub(crate) fn be_full_for(&self, refusals: u32) {
        let mut state = self.state();
        state.capacity_bytes = Some(0);
        state.refusals_left = Some(refusals);
    }

    /// The next this many files are not opened, with this error of the system.
    pub(crate) fn refuse_handles(&self, errno: i32, times: u32) {
        self.state().handles_refused = Some((errno, times));
    }

    pub(crate) fn handles_are_refused(&self) -> bool {
        self.state().handles_refused.is_some()
    }

    pub(crate) fn fault_is_pending(&self) -> bool {
        self.state().fault.is_some()
    }

    /// Lets some writes write less than they were given, never two in a row.
    pub(crate) fn write_short(&self, seed: u64) {
        self.state().short_writes = Some(Random::new(seed));
    }

    pub(crate) fn run_threads(&self) {
        self.state().threads = true;
    }

    pub(crate) fn used_bytes(&self) -> usize {
        let state = self.state();
        state.names.values().map(|inode| state.inodes[*inode].current.len()).sum()
    }

    pub(crate) fn syncs(&self) -> u64 {
        self.state().syncs
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.state().names.keys().map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect()
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        let state = self.state();
        state.inodes[state.names[&Path::new(DIR).join(name)]].current.clone()
    }

    /// Replaces a file, durably.
    pub(crate) fn write(&self, name: &str, content: Vec<u8>) {
        let mut state = self.state();
        let inode = Inode { current: content.clone(), durable: content, ..Inode::default() };
        state.inodes.push(inode);
        let number = state.inodes.len() - 1;
        state.names.insert(Path::new(DIR).join(name), number);
        state.durable_names = state.names.clone();
    }

    /// From now on the device does not read the sector of a file that holds this byte.
    pub(crate) fn lose_sector(&self, name: &str, offset: usize) {
        let mut state = self.state();
        let number = state.names[&Path::new(DIR).join(name)];
        state.inodes[number].unreadable.insert(offset / SECTOR);
    }

    pub(crate) fn delete(&self, name: &str) {
        let mut state = self.state();
        state.names.remove(&Path::new(DIR).join(name)).unwrap();
        state.durable_names = state.names.clone();
    }

    /// The disk as another process finds it after this one was killed. This one works no more.
    pub(crate) fn kill(&self) -> Self {
        let mut state = self.state();
        state.stopped = true;
        let after = Self::of(state.inodes.clone(), state.names.clone());
        after.state().durable_names.clone_from(&state.durable_names);
        after.state().unsynced_names.clone_from(&state.unsynced_names);
        after
    }

    /// A copy that does not share anything with this one; this one continues.
    pub(crate) fn copy(&self) -> Self {
        let state = self.state();
        Self::of(state.inodes.clone(), state.names.clone())
    }

    /// The disk as it is found after the power went off. This one works no more.
    pub(crate) fn cut_power(&self, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut state = self.state();
        state.stopped = true;
        let kept = random.below(state.unsynced_names.len() as u64 + 1);
        let names = match kept {
            0 => state.durable_names.clone(),
            kept => state.unsynced_names[kept as usize - 1].clone(),
        };
        let inodes = state.inodes.iter().map(|inode| inode.after_power_cut(&mut random)).collect();
        Self::of(inodes, names)
    }
}

impl Inode {
    fn after_power_cut(&self, random: &mut Random) -> Self {
        let mut durable = self.durable.clone();
        let keeps_most = random.below(2) == 0;
        for &sector in &self.dirty {
            if random.below(if keeps_most { 8 } else { 2 }) == 0 {
                continue;
            }
            self.copy_sector(sector, &mut durable);
        }
        Self { current: durable.clone(), durable, ..Self::default() }
    }

    fn copy_sector(&self, sector: usize, target: &mut Vec<u8>) {
        let start = sector * SECTOR;
        let end = (start + SECTOR).min(self.current.len());
        if start >= end {
            return;
        }
        if target.len() < end {
            target.resize(end, 0);
        }
        target[start..end].copy_from_slice(&self.current[start..end]);
    }
}

fn device_error() -> io::Error {
    io::Error::other("injected fault")
}

impl State {
    /// Counts an operation; whether the planned fault, if of one of these kinds, is due now.
    fn step(&mut self, kinds: &[Fault]) -> io::Result<bool> {
        if self.stopped {
            return Err(device_error());
        }
        let Some((left, fault)) = &mut self.fault else { return Ok(false) };
        if !kinds.contains(fault) {
            return Ok(false);
        }
        if *left > 0 {
            *left -= 1;
            return Ok(false);
        }
        self.stopped = *fault == Fault::Stop;
        self.fault = None;
        Ok(true)
    }

    fn names_changed(&mut self) {
        let names = self.names.clone();
        self.unsynced_names.push(names);
    }

    fn take_space(&mut self, more: usize) -> io::Result<()> {
        let used: usize = self.names.values().map(|inode| self.inodes[*inode].current.len()).sum();
        if self.capacity_bytes.is_none_or(|capacity| used + more <= capacity) {
            return Ok(());
        }
        if let Some(left) = &mut self.refusals_left {
            *left -= 1;
            if *left == 0 {
                self.capacity_bytes = None;
            }
        }
        Err(ErrorKind::StorageFull.into())
    }
}

impl System for Disk {
    fn create_dir(&self, _dir: &Path) -> io::Result<()> {
        Ok(())
    }

    fn list(&self, _dir: &Path) -> io::Result<Vec<String>> {
        Ok(self.names())
    }

    fn open(&self, path: &Path, access: Access, _direct: bool) -> io::Result<Box<dyn FileHandle>> {
        let mut state = self.state();
        if let Some((errno, left)) = &mut state.handles_refused {
            let errno = *errno;
            *left -= 1;
            if *left == 0 {
                state.handles_refused = None;
            }
            return Err(io::Error::from_raw_os_error(errno));
        }
        if access == Access::Create {
            if state.step(&[Fault::Stop])? {
                return Err(device_error());
            }
            state.inodes.push(Inode::default());
            let number = state.inodes.len() - 1;
            state.names.insert(path.to_owned(), number);
            state.names_changed();
        }
        let inode = *state.names.get(path).ok_or(ErrorKind::NotFound)?;
        Ok(Box::new(DiskFile { disk: self.clone(), inode }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        if state.step(&[Fault::Stop])? {
            return Err(device_error());
        }
        let inode = state.names.remove(from).ok_or(ErrorKind::NotFound)?;
        state.names.insert(to.to_owned(), inode);
        state.names_changed();
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        if state.step(&[Fault::Stop])? {
            return Err(device_error());
        }
        state.names.remove(path).ok_or(ErrorKind::NotFound)?;
        state.names_changed();
        Ok(())
    }

    fn sync_dir(&self, _dir: &Path) -> io::Result<()> {
        let mut state = self.state();
        if state.step(&[Fault::Stop])? {
            return Err(device_error());
        }
        state.durable_names = state.names.clone();
        state.unsynced_names.clear();
        Ok(())
    }

    fn lock(&self, _path: &Path) -> io::Result<Option<Box<dyn Any + Send + Sync>>> {
        let mut state = self.state();
        if std::mem::replace(&mut state.locked, true) {
            return Ok(None);
        }
        Ok(Some(Box::new(Lock(self.clone()))))
    }

    fn random(&self) -> io::Result<u64> {
        Ok(0x0123_4567_89ab_cdef)
    }

    fn leads_to(&self, _path: &Path, _file: &dyn FileHandle) -> io::Result<bool> {
        Ok(true)
    }

    fn spawn(&self, _name: &str, work: Box<dyn FnOnce() + Send>) -> io::Result<Option<JoinHandle<()>>> {
        if self.state().threads { Ok(Some(std::thread::spawn(work))) } else { Ok(None) }
    }
}

struct Lock(Disk);

impl Drop for Lock {
    fn drop(&mut self) {
        self.0.state().locked = false;
    }
}

struct DiskFile {
    disk: Disk,
    inode: usize,
}

impl FileHandle for DiskFile {
    fn identity(&self) -> io::Result<Option<(u64, u64)>> {
        Ok(None)
    }

    fn len_bytes(&self) -> io::Result<u64> {
        Ok(self.disk.state().inodes[self.inode].current.len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let state = self.disk.state();
        let inode = &state.inodes[self.inode];
        let sectors = offset as usize / SECTOR..(offset as usize + buffer.len()).div_ceil(SECTOR);
        if inode.unreadable.range(sectors).next().is_some() {
            return Err(device_error());
        }
        let rest = inode.current.get(offset as usize..).unwrap_or_default();
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        Ok(length)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        assert_eq!(bytes.len() % 4096, 0, "whole blocks");
        assert_eq!(offset % 4096, 0, "at block boundaries");
        let mut state = self.disk.state();
        let due = state.step(&[Fault::Stop, Fault::Write])?;
        if due && !state.stopped {
            return Err(device_error());
        }
        let may_be_short = !state.wrote_short;
        let length = match &mut state.short_writes {
            Some(random) if may_be_short => 1 + random.below(bytes.len() as u64) as usize,
            _ => bytes.len(),
        };
        state.wrote_short = length < bytes.len();
        let (start, end) = (offset as usize, offset as usize + length);
        let grown = end.saturating_sub(state.inodes[self.inode].current.len());
        if grown > 0 {
            state.take_space(grown)?;
        }
        let inode = &mut state.inodes[self.inode];
        if inode.current.len() < end {
            inode.current.resize(end, 0);
        }
        inode.current[start..end].copy_from_slice(&bytes[..length]);
        inode.dirty.extend(start / SECTOR..end.div_ceil(SECTOR));
        if due { Err(device_error()) } else { Ok(length) }
    }

    fn reserve(&self, bytes: u64) -> io::Result<()> {
        self.disk.state().take_space(bytes as usize)
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.disk.state();
        let due = state.step(&[Fault::Stop, Fault::Sync])?;
        if due && state.stopped {
            return Err(device_error());
        }
        state.syncs += 1;
        let inode = &mut state.inodes[self.inode];
        let dirty = std::mem::take(&mut inode.dirty);
        if due {
            return Err(device_error());
        }
        let mut durable = std::mem::take(&mut inode.durable);
        for sector in dirty {
            inode.copy_sector(sector, &mut durable);
        }
        inode.durable = durable;
        Ok(())
    }
}

pub(crate) fn options() -> LogOptions {
    LogOptions {
        extent_bytes: EXTENT_BYTES,
        spare_extents: 2,
        direct_io: DirectIo::Auto,
        max_record_bytes: 8 << 10,
        queue_bytes: 1 << 20,
        clock: scrinium_clock::Clock::manual(1_700_000_000_000).clock(),
        ..LogOptions::new(DIR)
    }
}

pub(crate) fn open(disk: &Disk) -> Result<(Log, Recovery), LogError> {
    Log::open_on(Arc::new(disk.clone()), options())
}

/// A record whose content says which one it is, and fills `length` bytes.
pub(crate) fn record(number: u64, length: usize) -> Bytes {
    let mut random = Random::new(number.wrapping_add(77));
    let mut bytes = number.to_le_bytes().to_vec();
    while bytes.len() < length {
        bytes.extend_from_slice(&random.next().to_le_bytes());
    }
    bytes.truncate(length);
    Bytes::from(bytes)
}

pub(crate) fn read_all(log: &Log, from: Sequence) -> Result<Vec<(u64, Bytes)>, LogError> {
    log.read_from(from)?.map(|record| record.map(|record| (record.sequence.0, record.bytes))).collect()
}
