//! Many power losses in one recorded run, each disk looked at by a check.

use std::any::Any;
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::{Disk, Event, Image, Journal};

/// Where the power goes in a recorded run. The same journal and the same numbers give the same disks.
#[derive(Clone, Copy, Debug)]
pub struct Cuts<'a> {
    /// The run.
    pub journal: &'a Journal,
    /// What lay in the folder before it; `None` for nothing.
    pub before: Option<&'a Path>,
    /// Chooses the calls before which the power goes, and what survives.
    pub seed: u64,
    /// How many disks are made.
    pub images: u64,
    /// Only this one of them.
    pub only: Option<u64>,
    /// A folder for disks, best one in memory. Nothing is left there but the disk that did not pass.
    pub scratch: &'a Path,
}

/// One power loss.
#[derive(Debug)]
pub struct Cut {
    /// Its number.
    pub number: u64,
    /// How many calls came before it.
    pub calls: usize,
    /// What the program had said by then.
    pub marks: Vec<String>,
    /// The folder with what the device held.
    pub folder: PathBuf,
}

/// A disk that did not pass.
#[derive(Debug)]
pub struct Broken {
    /// Its number, for [`Cuts::only`].
    pub number: u64,
    /// How many calls came before the loss, and the last of them.
    pub calls: (usize, String),
    /// Where it is kept, as it was before the check if it was rewritten.
    pub folder: PathBuf,
    /// What the check said.
    pub reason: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, calls: (calls, last), folder, reason } = self;
        write!(
            formatter,
            "disk {number}, after {calls} calls, the last {last}: {reason}; it is kept in {}",
            folder.display()
        )
    }
}

impl std::error::Error for Broken {}

struct Order {
    cut: Cut,
    image: Image,
    last: String,
}

impl Cuts<'_> {
    /// Calls `check` with every disk, several at once. A check fails by panicking.
    ///
    /// # Errors
    /// The first disk that did not pass, or an error of the file system as a reason.
    pub fn check(&self, check: impl Fn(&Cut) + Sync) -> Result<(), Box<Broken>> {
        let threads = std::thread::available_parallelism().map_or(2, std::num::NonZeroUsize::get);
        let broken = Mutex::new(None);
        let (orders, waiting) = sync_channel(threads);
        let waiting = Mutex::new(waiting);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| work(&waiting, &broken, &check));
            }
            if let Err(error) = self.make(&orders, &broken) {
                note(&broken, 0, (0, String::new()), self.scratch, error.to_string());
            }
            drop(orders);
        });
        broken.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }

    fn make(&self, orders: &SyncSender<Order>, broken: &Mutex<Option<Box<Broken>>>) -> io::Result<()> {
        let events = self.journal.events();
        let mut disk = match self.before {
            Some(folder) => Disk::holding(folder, self.seed)?,
            None => Disk::new(self.seed),
        };
        let mut played = 0;
        for (at, number) in self.places(&events) {
            for event in events.get(played..at).unwrap_or_default() {
                disk.play(event);
            }
            played = at;
            if self.only.is_some_and(|only| only != number) {
                continue;
            }
            let image = disk.image(&mut self.random(number, 1));
            let marks = disk.marks().iter().map(|mark| (*mark).to_owned()).collect();
            let folder = self.scratch.join(format!("disk-{number}"));
            let last = at.checked_sub(1).and_then(|last| events.get(last)).map(describe).unwrap_or_default();
            let order = Order { cut: Cut { number, calls: at, marks, folder }, image, last };
            if broken.lock().is_ok_and(|broken| broken.is_some()) || orders.send(order).is_err() {
                break;
            }
        }
        Ok(())
    }

    fn random(&self, number: u64, purpose: u64) -> StdRng {
        StdRng::seed_from_u64(self.seed.wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15)) ^ purpose)
    }

    /// Half of them are anywhere, half are close behind a change of names or the end of a sync, ascending.
    fn places(&self, events: &[Event<'_>]) -> Vec<(usize, u64)> {
        let turns: Vec<usize> = (1..)
            .zip(events)
            .filter(|(_, event)| {
                !matches!(event, Event::Write { .. } | Event::Mark(_) | Event::SyncBegun { .. })
            })
            .map(|(after, _)| after)
            .collect();
        let mut places: Vec<(usize, u64)> = (0..self.images)
            .map(|number| {
                let mut random = self.random(number, 0);
                let anywhere = random.random_range(0..=events.len());
                let behind = random.random_range(0..3);
                let turn = turns.get(random.random_range(0..turns.len().max(1)));
                let place = turn.filter(|_| number.is_multiple_of(2)).map_or(anywhere, |turn| turn + behind);
                (place.min(events.len()), number)
            })
            .collect();
        places.sort_unstable();
        places
    }
}

/// A call in a few words.
fn describe(event: &Event<'_>) -> String {
    match event {
        Event::Write { file, offset, data } => format!("write of {} bytes to {file} at {offset}", data.len()),
        event => format!("{event:?}"),
    }
}

fn work(
    waiting: &Mutex<Receiver<Order>>,
    broken: &Mutex<Option<Box<Broken>>>,
    check: &(impl Fn(&Cut) + Sync),
) {
    loop {
        let order = match waiting.lock() {
            Ok(waiting) => waiting.recv(),
            Err(_) => return,
        };
        let Ok(Order { cut, image, last }) = order else { return };
        let reason = match image.write(&cut.folder) {
            Err(error) => error.to_string(),
            Ok(()) => match catch_unwind(AssertUnwindSafe(|| check(&cut))) {
                Ok(()) => {
                    let _ = std::fs::remove_dir_all(&cut.folder);
                    continue;
                }
                Err(panic) => said(panic.as_ref()),
            },
        };
        // For anyone who looks into it: as the device held it, not as the check left it.
        let _ = std::fs::remove_dir_all(&cut.folder).and_then(|()| image.write(&cut.folder));
        note(broken, cut.number, (cut.calls, last), &cut.folder, reason);
    }
}

fn note(
    broken: &Mutex<Option<Box<Broken>>>,
    number: u64,
    calls: (usize, String),
    folder: &Path,
    reason: String,
) {
    let folder = folder.to_path_buf();
    let mut broken = broken.lock().unwrap_or_else(PoisonError::into_inner);
    broken.get_or_insert_with(|| Box::new(Broken { number, calls, folder, reason }));
}

fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked").to_owned()
}
