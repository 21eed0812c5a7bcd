//! How much background work may read and write: a rate for each class, and giving way to the one who waits for an answer.
//!
//! Work comes in pieces. After each one the worker says how many bytes it was and how long it took, and is held until the
//! next one may begin: until the rate of its class is kept, which all who work in it share, and, while requests wait, for
//! at most some times as long as the piece took. So background work always gets a fifth of the time, and a build of
//! views, for which those who wait may be waiting, half of it.
//!
//! Work that nobody waits for, and that writes much in little pieces, has a further rule. Requests that come one after the
//! other hardly ever wait, and still each of them is slower while a piece is written: it shares the processors, the log's
//! syncs and the disk. So as long as requests come at all such work rests until it has had a tenth of the time. When none
//! came for half a second it goes on at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};
use scrinium_statistics::Registry;

/// A look at whether to go on, while nothing is done.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A rate lets as much through at once as it does in this time.
const BURST: Duration = Duration::from_millis(250);

/// While requests wait, so much at most is left to them after a piece.
const YIELD_MAX: Duration = Duration::from_secs(2);

/// Requests are at work for so long after the last one came.
const AT_WORK: Duration = Duration::from_millis(500);

/// While requests are at work, so much at most is left to them after a piece.
const REST_MAX: Duration = Duration::from_secs(10);

/// What background work is for. Requests are in no class: they are never held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoClass {
    /// Views that are built.
    ViewUpdate,
    /// Files that are merged.
    Compact,
    /// Backups that are made.
    Backup,
    /// Databases that are moved to another volume.
    Move,
    /// Attachments that are moved to another store, or back.
    Attachments,
    /// Names that are changed in all databases, for people and groups that are renamed or removed.
    Names,
}

impl IoClass {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 6] =
        [Self::ViewUpdate, Self::Compact, Self::Backup, Self::Move, Self::Attachments, Self::Names];

    /// The part of its statistics' names, as in `IO.Compact.Bytes`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ViewUpdate => "ViewUpdate",
            Self::Compact => "Compact",
            Self::Backup => "Backup",
            Self::Move => "Move",
            Self::Attachments => "Attachments",
            Self::Names => "Names",
        }
    }

    /// While requests wait it is looked so often whether they still do. Most are answered within a millisecond; what copies
    /// 2 MB from device to device in three hardly takes a processor from them, while what computes does.
    const fn look_while_pressed(self) -> Duration {
        match self {
            Self::ViewUpdate | Self::Compact | Self::Names => Duration::from_millis(5),
            Self::Backup | Self::Move | Self::Attachments => Duration::from_millis(1),
        }
    }

    /// While requests come, whether they wait or not, this many times what a piece took is left to them.
    const fn rest_times(self) -> u32 {
        match self {
            Self::ViewUpdate | Self::Compact | Self::Backup | Self::Move | Self::Attachments => 0,
            Self::Names => 9,
        }
    }

    /// While requests wait, this many times what a piece took is left to them.
    const fn yield_times(self) -> u32 {
        match self {
            Self::ViewUpdate => 1,
            Self::Compact | Self::Backup | Self::Move | Self::Attachments | Self::Names => 4,
        }
    }
}

type Pressure = Arc<dyn Fn() -> bool + Send + Sync>;
type Count = Arc<dyn Fn() -> u64 + Send + Sync>;

/// The limits of all classes. Clones share them.
#[derive(Clone, Default)]
pub struct IoLimits {
    shared: Arc<SharedLimiter>,
}

#[derive(Default)]
struct SharedLimiter {
    classes: [Class; IoClass::ALL.len()],
    /// Whether requests wait.
    pressure: RwLock<Option<Pressure>>,
    /// How many requests have come.
    requests: RwLock<Option<Count>>,
    /// What that said when it last was another number, and when that was.
    seen: Mutex<Option<(u64, Instant)>>,
}

#[derive(Default)]
struct Class {
    /// 0: no limit.
    rate_bytes: AtomicU64,
    /// When all that was let through is paid for.
    paid: Mutex<Option<Instant>>,
    bytes: AtomicU64,
    limited_us: AtomicU64,
    yielded_us: AtomicU64,
}

impl IoLimits {
    /// Lets a class have at most this many bytes a second from now on, also where work is under way; 0: no limit.
    pub fn set_rate(&self, class: IoClass, bytes_per_second: u64) {
        let class = self.class(class);
        let before = class.rate_bytes.swap(bytes_per_second, Ordering::Relaxed);
        if before != bytes_per_second {
            *class.paid.lock() = None;
        }
    }

    /// The rate of a class in bytes a second; 0: no limit.
    #[must_use]
    pub fn rate(&self, class: IoClass) -> u64 {
        self.class(class).rate_bytes.load(Ordering::Relaxed)
    }

    /// Asks `pressed` whether requests wait, from now on.
    pub fn yield_while(&self, pressed: impl Fn() -> bool + Send + Sync + 'static) {
        *self.shared.pressure.write() = Some(Arc::new(pressed));
    }

    /// Asks `requests` how many have come so far, from now on.
    pub fn rest_while_more(&self, requests: impl Fn() -> u64 + Send + Sync + 'static) {
        *self.shared.requests.write() = Some(Arc::new(requests));
    }

    /// A piece of this many bytes is done and has taken so long: waits until the next one may begin. False: `go_on` has
    /// said that there is to be none.
    #[must_use]
    pub fn pace(&self, class: IoClass, bytes: u64, took: Duration, mut go_on: impl FnMut() -> bool) -> bool {
        let (yield_times, look_while_pressed) = (class.yield_times(), class.look_while_pressed());
        let rest = took.saturating_mul(class.rest_times()).min(REST_MAX);
        let class = self.class(class);
        class.bytes.fetch_add(bytes, Ordering::Relaxed);
        class.charge(bytes);
        let begun = Instant::now();
        while let Some(left) = class.left() {
            if !go_on() {
                return false;
            }
            std::thread::sleep(left.min(LOOK_EVERY));
        }
        let limited = begun.elapsed();
        add(&class.limited_us, limited);
        let most = took.saturating_mul(yield_times).min(YIELD_MAX).saturating_sub(limited);
        let begun = Instant::now();
        while begun.elapsed() < most && self.is_pressed() {
            if !go_on() {
                return false;
            }
            std::thread::sleep(look_while_pressed.min(most));
        }
        let rest = rest.saturating_sub(limited);
        while begun.elapsed() < rest && self.is_at_work() {
            if !go_on() {
                return false;
            }
            std::thread::sleep(rest.saturating_sub(begun.elapsed()).min(LOOK_EVERY));
        }
        add(&class.yielded_us, begun.elapsed());
        go_on()
    }

    /// Whether requests came in the last moments.
    fn is_at_work(&self) -> bool {
        let Some(requests) = self.shared.requests.read().clone() else { return false };
        let (count, now) = (requests(), Instant::now());
        let mut seen = self.shared.seen.lock();
        match *seen {
            Some((before, since)) if before == count => now.saturating_duration_since(since) < AT_WORK,
            _ => {
                *seen = Some((count, now));
                true
            }
        }
    }

    /// Whether requests wait just now.
    #[must_use]
    pub fn is_pressed(&self) -> bool {
        let pressure = self.shared.pressure.read().clone();
        pressure.is_some_and(|pressed| pressed())
    }

    /// Registers for each class what it has read and written (`IO.Compact.Bytes`), its limit (`.Limit`), and how long it
    /// was held for the limit's sake (`.Limited.Milliseconds`) and for that of requests (`.Yielded.Milliseconds`).
    pub fn register(&self, statistics: &Registry) {
        for class in IoClass::ALL {
            let gauge = |name: &str, read: fn(&Class) -> u64| {
                let limits = self.clone();
                statistics.gauge(&format!("IO.{}.{name}", class.name()), move || {
                    crate::figures::float(read(limits.class(class)))
                });
            };
            gauge("Bytes", |class| class.bytes.load(Ordering::Relaxed));
            gauge("Limit", |class| class.rate_bytes.load(Ordering::Relaxed));
            gauge("Limited.Milliseconds", |class| class.limited_us.load(Ordering::Relaxed) / 1000);
            gauge("Yielded.Milliseconds", |class| class.yielded_us.load(Ordering::Relaxed) / 1000);
        }
    }

    fn class(&self, class: IoClass) -> &Class {
        let [view_update, compact, backup, moving, attachments, names] = &self.shared.classes;
        match class {
            IoClass::ViewUpdate => view_update,
            IoClass::Compact => compact,
            IoClass::Backup => backup,
            IoClass::Move => moving,
            IoClass::Attachments => attachments,
            IoClass::Names => names,
        }
    }
}

impl Class {
    fn charge(&self, bytes: u64) {
        let rate = self.rate_bytes.load(Ordering::Relaxed);
        if rate == 0 {
            return;
        }
        let micros = u128::from(bytes) * 1_000_000 / u128::from(rate);
        let costs = Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX));
        let mut paid = self.paid.lock();
        let now = Instant::now();
        let earliest = now.checked_sub(BURST).unwrap_or(now);
        *paid = paid.unwrap_or(earliest).max(earliest).checked_add(costs);
    }

    /// How much too early it is.
    fn left(&self) -> Option<Duration> {
        if self.rate_bytes.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let left = self.paid.lock().as_ref()?.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }
}

fn add(sum: &AtomicU64, time: Duration) {
    sum.fetch_add(u64::try_from(time.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
}

impl std::fmt::Debug for IoLimits {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let rates = IoClass::ALL.map(|class| (class.name(), self.rate(class)));
        formatter.debug_map().entries(rates).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_for_a_limit_goes_on_when_it_is_taken_away_or_stops_when_told() {
        let limits = IoLimits::default();
        limits.set_rate(IoClass::Compact, 1);
        // An hour's worth at this rate; the third look takes the limit away.
        let mut looks = 0;
        let goes_on = limits.pace(IoClass::Compact, 3600, Duration::ZERO, || {
            looks += 1;
            if looks == 3 {
                limits.set_rate(IoClass::Compact, 0);
            }
            true
        });
        assert!(goes_on && looks >= 3);
        limits.set_rate(IoClass::Backup, 1);
        assert!(!limits.pace(IoClass::Backup, 3600, Duration::ZERO, || false));
        // Another class has nothing to do with it.
        assert!(limits.pace(IoClass::Move, 1 << 40, Duration::ZERO, || true));
        let statistics = Registry::new();
        limits.register(&statistics);
        let gauges = statistics.snapshot().gauges;
        assert_eq!(gauges["IO.Compact.Bytes"], 3600.0);
        assert_eq!(gauges["IO.Backup.Limit"], 1.0);
        assert_eq!(gauges["IO.ViewUpdate.Bytes"], 0.0);
    }

    #[test]
    fn work_gives_way_while_requests_wait_and_no_longer_than_it_may() {
        let limits = IoLimits::default();
        let asked = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&asked);
        limits.yield_while(move || counted.fetch_add(1, Ordering::Relaxed) < 3);
        assert!(limits.pace(IoClass::Backup, 1, Duration::from_secs(3600), || true));
        assert!(asked.load(Ordering::Relaxed) >= 3, "it looks until nobody waits");
        // Somebody always waits: the piece took no time, so nothing is left to others.
        limits.yield_while(|| true);
        assert!(limits.pace(IoClass::Backup, 1, Duration::ZERO, || true));
        assert!(limits.pace(IoClass::Backup, 1, Duration::from_millis(1), || true));
    }

    #[test]
    fn what_nobody_waits_for_rests_while_requests_come_and_not_after_them() {
        let limits = IoLimits::default();
        let came = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&came);
        // Ten come, one at each look.
        limits.rest_while_more(move || counted.fetch_add(1, Ordering::Relaxed).min(10));
        let hour = Duration::from_secs(3600);
        let mut looks = 0;
        assert!(limits.pace(IoClass::Backup, 1, hour, || true), "other work does not rest");
        assert_eq!(came.load(Ordering::Relaxed), 0);
        assert!(limits.pace(IoClass::Names, 1, hour, || {
            looks += 1;
            true
        }));
        let goes_on_within = REST_MAX.as_millis() / LOOK_EVERY.as_millis();
        assert!(looks > 10 && looks < goes_on_within, "it goes on when no more come: {looks} looks");
        // They come all the time: who has to stop stops, and a piece that took nothing owes nothing.
        let counted = Arc::clone(&came);
        limits.rest_while_more(move || counted.fetch_add(1, Ordering::Relaxed));
        assert!(!limits.pace(IoClass::Names, 1, hour, || false));
        assert!(limits.pace(IoClass::Names, 1, Duration::ZERO, || true));
    }
}
