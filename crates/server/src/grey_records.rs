//! Who is known to greylisting, in the store.
//!
//! | key behind number `FFFFFFFB` | value |
//! |---|---|
//! | `k` digest of network, sender and recipient (16 bytes) | first seen, last passed or 0, kept until: seconds since 1970, 8 bytes each |
//! | `u` kept until (8 bytes), digest | |
//!
//! It is written past the log: what a crash loses costs a sender one more attempt. What is over goes as others come, two for each, and so
//! does what would be over first when there are too many.

use parking_lot::Mutex;
use scrinium_clock::Clock;
use scrinium_mail_filters::greylist::{GreyKey, GreyRecord, GreyStore};
use scrinium_store::{Batch, Direction, Family, KeyRange, Store, StoreError, prefix_end};

const FAMILY: Family = Family::DerivedChurn;

/// Apart from all indexes of a database.
const APART: [u8; 4] = [0xff, 0xff, 0xff, 0xfb];

/// Records in all: some 100 MB. With more, those go that would be over first.
const RECORDS_MAX: usize = 1_000_000;

/// Records that go with one that comes.
const REMOVED_AT_ONCE: usize = 2;

/// Who is known.
pub(crate) struct GreyRecords {
    store: Store,
    prefix: Vec<u8>,
    clock: Clock,
    most: usize,
    order: Mutex<Order>,
}

/// Where the first key of the order by time may be: what was removed leaves marks that a cursor would pass each time.
struct Order {
    front: Vec<u8>,
    count: usize,
}

impl GreyRecords {
    /// The records in the database of this number.
    ///
    /// # Errors
    /// What the store reports.
    pub(crate) fn open(store: Store, database: u32, clock: Clock) -> Result<Self, StoreError> {
        Self::with_room(store, database, (clock, RECORDS_MAX))
    }

    fn with_room(store: Store, database: u32, (clock, most): (Clock, usize)) -> Result<Self, StoreError> {
        let prefix = [&database.to_be_bytes()[..], &APART].concat();
        let order = Mutex::new(Order { front: Vec::new(), count: 0 });
        let records = Self { store, prefix, clock, most, order };
        let count = records.count()?;
        *records.order.lock() = Order { front: records.key(b'u', &[]), count };
        Ok(records)
    }

    fn count(&self) -> Result<usize, StoreError> {
        let prefix = self.key(b'k', &[]);
        let Some(end) = prefix_end(&prefix) else { return Ok(0) };
        let snapshot = self.store.snapshot();
        let mut cursor = snapshot.cursor(FAMILY, KeyRange::new(&prefix, &end), Direction::Forward);
        let mut count = 0;
        while cursor.next()?.is_some() {
            count += 1;
        }
        Ok(count)
    }

    fn key(&self, kind: u8, rest: &[u8]) -> Vec<u8> {
        [&self.prefix[..], &[kind], rest].concat()
    }

    fn row(&self, digest: &[u8]) -> Result<Option<Row>, StoreError> {
        Ok(self.store.get(FAMILY, &self.key(b'k', digest))?.and_then(|stored| Row::decode(&stored)))
    }

    fn write(&self, digest: &[u8], row: &Row) -> Result<(), StoreError> {
        let mut order = self.order.lock();
        let mut batch = Batch::new();
        match self.row(digest)? {
            Some(old) => batch.delete(FAMILY, &self.timed(old.until_seconds, digest)),
            None => order.count += 1,
        }
        batch.put(FAMILY, &self.key(b'k', digest), &row.encode());
        batch.put(FAMILY, &self.timed(row.until_seconds, digest), &[]);
        let new = self.timed(row.until_seconds, digest);
        if new < order.front {
            order.front = new;
        }
        self.remove_what_is_over(&mut batch, &mut order, digest)?;
        self.store.derived().write(batch)
    }

    fn remove_what_is_over(
        &self,
        batch: &mut Batch,
        order: &mut Order,
        new: &[u8],
    ) -> Result<(), StoreError> {
        let prefix = self.key(b'u', &[]);
        let Some(end) = prefix_end(&prefix) else { return Ok(()) };
        let now_seconds = self.clock.now_ms() / 1000;
        let snapshot = self.store.snapshot();
        let mut cursor = snapshot.cursor(FAMILY, KeyRange::new(&order.front, &end), Direction::Forward);
        for _ in 0..REMOVED_AT_ONCE {
            let Some((key, _)) = cursor.next()? else { break };
            let rest = key.get(prefix.len()..).unwrap_or_default();
            let Some((time, digest)) = rest.split_first_chunk::<8>() else { break };
            let is_over = u64::from_be_bytes(*time) < now_seconds || order.count > self.most;
            // Its time is written in the same batch.
            if !is_over || digest == new {
                break;
            }
            order.front = key.to_vec();
            order.count = order.count.saturating_sub(1);
            batch.delete(FAMILY, key);
            batch.delete(FAMILY, &self.key(b'k', digest));
        }
        Ok(())
    }

    fn timed(&self, until_seconds: u64, digest: &[u8]) -> Vec<u8> {
        self.key(b'u', &[&until_seconds.to_be_bytes()[..], digest].concat())
    }
}

impl GreyStore for GreyRecords {
    fn get(&self, key: &GreyKey) -> Option<GreyRecord> {
        match self.row(&digest(key)) {
            Ok(row) => row.map(|row| row.record),
            Err(error) => {
                tracing::warn!(%error, "it cannot be seen who is known to greylisting");
                None
            }
        }
    }

    fn keep(&self, key: &GreyKey, record: GreyRecord, until_seconds: u64) {
        if let Err(error) = self.write(&digest(key), &Row { record, until_seconds }) {
            tracing::warn!(%error, "it cannot be kept who is known to greylisting");
        }
    }
}

struct Row {
    record: GreyRecord,
    until_seconds: u64,
}

impl Row {
    fn encode(&self) -> Vec<u8> {
        let passed = self.record.passed_seconds.unwrap_or(0);
        [self.record.first_seconds, passed, self.until_seconds].map(u64::to_be_bytes).concat()
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (first, rest) = bytes.split_first_chunk::<8>()?;
        let (passed, rest) = rest.split_first_chunk::<8>()?;
        let (until, _) = rest.split_first_chunk::<8>()?;
        let [first_seconds, passed, until_seconds] =
            [first, passed, until].map(|bytes| u64::from_be_bytes(*bytes));
        let passed_seconds = Some(passed).filter(|passed| *passed > 0);
        Some(Self { record: GreyRecord { first_seconds, passed_seconds }, until_seconds })
    }
}

fn digest(key: &GreyKey) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new_derive_key("scrinium 2026 who is known to greylisting");
    for part in [key.network.to_string().as_str(), &key.sender, &key.recipient] {
        hasher.update(part.as_bytes());
        hasher.update(&[0]);
    }
    let mut digest = [0; 16];
    hasher.finalize_xof().fill(&mut digest);
    digest
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use scrinium_mail_filters::greylist::{GreyDecision, GreyPolicy, decide};
    use scrinium_statistics::Registry;
    use scrinium_store::StoreOptions;

    use super::*;

    #[test]
    fn no_more_are_kept_than_there_is_room_for_and_who_has_passed_stays_longest() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(StoreOptions::new(folder.path()), &Registry::new()).unwrap();
        let time = Clock::manual(1_800_000_000_000);
        let open = || GreyRecords::with_room(store.clone(), 7, (time.clock(), 3)).unwrap();
        let records = open();
        let attempt = |records: &GreyRecords, sender: &str| {
            let key = GreyKey::new("192.0.2.1".parse().unwrap(), sender, "ada@acme.example");
            decide(records, &key, &GreyPolicy::default(), time.clock().now_ms() / 1000)
        };
        assert_eq!(attempt(&records, "eve@else.example"), GreyDecision::Defer(300));
        time.advance(Duration::from_secs(300));
        assert_eq!(attempt(&records, "eve@else.example"), GreyDecision::Pass);
        for letter in "abcdefghij".chars() {
            assert_eq!(attempt(&records, &format!("{letter}@many.example")), GreyDecision::Defer(300));
            time.advance(Duration::from_secs(1));
        }
        let known = records.count().unwrap();
        assert!(known == records.order.lock().count && known <= 4, "{known}");
        // It is the same after a restart.
        let again = open();
        assert_eq!(again.order.lock().count, known);
        assert_eq!(attempt(&again, "eve@else.example"), GreyDecision::Pass);
        assert_eq!(attempt(&again, "a@many.example"), GreyDecision::Defer(300), "it had to make room");
        // What is over goes as others come, and no key of the order is left behind.
        time.advance(Duration::from_secs(60 * 24 * 3600));
        for letter in "klmno".chars() {
            attempt(&again, &format!("{letter}@many.example"));
        }
        let keys = |kind: u8| {
            let prefix = again.key(kind, &[]);
            let snapshot = store.snapshot();
            let end = prefix_end(&prefix).unwrap();
            let mut cursor = snapshot.cursor(FAMILY, KeyRange::new(&prefix, &end), Direction::Forward);
            let mut count = 0;
            while cursor.next().unwrap().is_some() {
                count += 1;
            }
            count
        };
        assert!(keys(b'k') == keys(b'u') && keys(b'k') <= 4, "{} {}", keys(b'k'), keys(b'u'));
    }
}
