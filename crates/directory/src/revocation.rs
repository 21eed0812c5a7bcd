//! Sessions that are over before their time, also after a restart.
//!
//! They are kept in one file to which a record of 64 bytes is added and synced for each; a record is forgotten when the
//! session would have ended anyhow. All numbers are little endian:
//!
//! | bytes | what |
//! |---|---|
//! | 0 | 1: one session; 2: all sessions of a person that began by then |
//! | 1..8 | zeros |
//! | 8..24 | 1: the session's name; 2: zeros |
//! | 24..40 | the person: the beginning of the id's BLAKE3 |
//! | 40..48 | 1: when the session ends anyhow; 2: sessions that began by then are over; seconds since 1970 |
//! | 48..56 | when the record may be forgotten; seconds since 1970 |
//! | 56..64 | the beginning of the BLAKE3 of the bytes before |
//!
//! A record that is not whole is of a crash, and was not acknowledged.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};
use scrinium_assertion::never;

use crate::session::{Session, SessionName};

const RECORD_BYTES: usize = 64;

/// Sessions of one person that may be on the list; with one more, all that began before are over, and the list
/// is one line again. So nobody makes it long by logging in and out.
const OF_PERSON_MOST: usize = 256;

/// The file is rewritten when it has this many more records than are needed.
const GARBAGE_MOST: usize = 4096;

/// More records than any file has: it must be rewritten.
const UNSURE: usize = usize::MAX;

type PersonPrint = [u8; 16];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Record {
    One { session: SessionName, person: PersonPrint, ends_s: u64 },
    All { person: PersonPrint, begun_by_s: u64, forget_s: u64 },
}

impl Record {
    fn encode(self) -> [u8; RECORD_BYTES] {
        let (kind, session, person, time_s, forget_s) = match self {
            Self::One { session, person, ends_s } => (1, session, person, ends_s, ends_s),
            Self::All { person, begun_by_s, forget_s } => (2, [0; 16], person, begun_by_s, forget_s),
        };
        let mut bytes = [0; RECORD_BYTES];
        let mut place = bytes.iter_mut();
        let head = [kind, 0, 0, 0, 0, 0, 0, 0];
        let body = head.into_iter().chain(session).chain(person);
        let body: Vec<u8> = body.chain(time_s.to_le_bytes()).chain(forget_s.to_le_bytes()).collect();
        let check = blake3::hash(&body);
        for (byte, place) in body.iter().chain(check.as_bytes()).zip(&mut place) {
            *place = *byte;
        }
        bytes
    }

    fn decode(bytes: &[u8; RECORD_BYTES]) -> Option<Self> {
        let (body, check) = bytes.split_last_chunk::<8>()?;
        if !blake3::hash(body).as_bytes().starts_with(check) {
            return None;
        }
        let (kind, body) = (body.first()?, body.get(8..)?);
        let (session, body) = body.split_first_chunk::<16>()?;
        let (person, body) = body.split_first_chunk::<16>()?;
        let (time, forget) = body.split_first_chunk::<8>()?;
        let (time_s, forget_s) = (u64::from_le_bytes(*time), u64::from_le_bytes(*forget.first_chunk()?));
        match kind {
            1 => Some(Self::One { session: *session, person: *person, ends_s: time_s }),
            2 => Some(Self::All { person: *person, begun_by_s: time_s, forget_s }),
            _ => None,
        }
    }
}

/// What is over.
#[derive(Default)]
struct Over {
    /// Each session with the time when it ends anyhow.
    sessions: HashMap<SessionName, (PersonPrint, u64)>,
    people: HashMap<PersonPrint, OfPerson>,
}

#[derive(Default)]
struct OfPerson {
    sessions: Vec<SessionName>,
    begun_by_s: Option<u64>,
    forget_s: u64,
}

impl Over {
    fn add(&mut self, record: Record) {
        match record {
            Record::One { session, person, ends_s } => {
                if self.sessions.insert(session, (person, ends_s)).is_none() {
                    self.people.entry(person).or_default().sessions.push(session);
                }
            }
            Record::All { person, begun_by_s, forget_s } => {
                let of_person = self.people.entry(person).or_default();
                for session in of_person.sessions.drain(..) {
                    self.sessions.remove(&session);
                }
                of_person.begun_by_s = of_person.begun_by_s.max(Some(begun_by_s));
                of_person.forget_s = of_person.forget_s.max(forget_s);
            }
        }
    }

    /// What need not be known any more goes.
    fn forget(&mut self, now_s: u64) {
        self.sessions.retain(|_, (_, ends_s)| *ends_s > now_s);
        for of_person in self.people.values_mut() {
            of_person.sessions.retain(|session| self.sessions.contains_key(session));
            if of_person.forget_s <= now_s {
                of_person.begun_by_s = None;
            }
        }
        self.people.retain(|_, of_person| !of_person.sessions.is_empty() || of_person.begun_by_s.is_some());
    }

    fn records(&self) -> impl Iterator<Item = Record> {
        let ones = self.sessions.iter().map(|(session, (person, ends_s))| Record::One {
            session: *session,
            person: *person,
            ends_s: *ends_s,
        });
        let alls = self.people.iter().filter_map(|(person, of_person)| {
            let forget_s = of_person.forget_s;
            of_person.begun_by_s.map(|begun_by_s| Record::All { person: *person, begun_by_s, forget_s })
        });
        ones.chain(alls)
    }

    fn len(&self) -> usize {
        self.records().count()
    }
}

/// The sessions that are over before their time.
pub struct Revocations {
    path: PathBuf,
    over: RwLock<Over>,
    /// The file and how many records it has; held while one is added.
    file: Mutex<(File, usize)>,
    changes: AtomicU64,
}

impl Revocations {
    /// Opens the list in the file, which is made if there is none.
    ///
    /// # Errors
    /// The system's.
    pub fn open(path: &Path, now_s: u64) -> io::Result<Self> {
        let mut over = Over::default();
        match File::open(path) {
            Ok(mut file) => {
                let mut bytes = [0; RECORD_BYTES];
                while file.read_exact(&mut bytes).is_ok() {
                    if let Some(record) = Record::decode(&bytes) {
                        over.add(record);
                    }
                }
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        over.forget(now_s);
        // Written again each time, so that what a crash left half never stands before a whole record.
        let file = rewrite(path, &over)?;
        let records = over.len();
        let path = path.to_owned();
        Ok(Self {
            path,
            over: RwLock::new(over),
            file: Mutex::new((file, records)),
            changes: AtomicU64::new(0),
        })
    }

    /// Whether this session is over.
    #[must_use]
    pub fn holds(&self, session: &SessionName, person_id: &str, begun_s: u64) -> bool {
        let over = self.over.read();
        if over.sessions.is_empty() && over.people.is_empty() {
            return false;
        }
        let all_by_s = || over.people.get(&print(person_id)).and_then(|of_person| of_person.begun_by_s);
        over.sessions.contains_key(session) || all_by_s().is_some_and(|by_s| begun_s <= by_s)
    }

    /// Ends a session; it is over at once, and for good when this returns without an error. Blocks.
    ///
    /// # Errors
    /// The system's; then the session is over until the next restart.
    pub fn add(&self, session: &Session, now_s: u64) -> io::Result<()> {
        let person = print(&session.person_id);
        let mut file = self.file.lock();
        let record = {
            let over = self.over.read();
            if over.sessions.contains_key(&session.name) && file.1 != UNSURE {
                return Ok(());
            }
            let listed = over.people.get(&person).map_or(0, |of_person| of_person.sessions.len());
            if listed >= OF_PERSON_MOST {
                let forget_s = now_s.saturating_add(session.ends_s.saturating_sub(session.begun_s));
                Record::All { person, begun_by_s: now_s, forget_s }
            } else {
                Record::One { session: session.name, person, ends_s: session.ends_s }
            }
        };
        self.enter(&mut file, record, now_s)
    }

    fn enter(&self, (writer, records): &mut (File, usize), record: Record, now_s: u64) -> io::Result<()> {
        self.over.write().add(record);
        self.changes.fetch_add(1, Ordering::Release);
        if *records > self.over.read().len().saturating_add(GARBAGE_MOST) {
            self.over.write().forget(now_s);
            let over = self.over.read();
            *writer = rewrite(&self.path, &over)?;
            *records = over.len();
            return Ok(());
        }
        let written = writer.write_all(&record.encode()).and_then(|()| writer.sync_data());
        // After a failure nobody knows what stands in the file: the next record writes all of it again.
        *records = if written.is_ok() { *records + 1 } else { UNSURE };
        written
    }

    /// Ends all sessions of somebody that have begun by `now_s`; they are over for good when this returns without an error. Blocks.
    ///
    /// # Errors
    /// The system's; then they are over until the next restart.
    pub fn add_all(&self, person_id: &str, now_s: u64, forget_s: u64) -> io::Result<()> {
        let record = Record::All { person: print(person_id), begun_by_s: now_s, forget_s };
        let mut file = self.file.lock();
        self.enter(&mut file, record, now_s)
    }

    /// When a session of somebody can begin at the earliest, so that it is not one of those that are over.
    #[must_use]
    pub fn begins_after(&self, person_id: &str) -> u64 {
        let begun_by_s =
            self.over.read().people.get(&print(person_id)).and_then(|of_person| of_person.begun_by_s);
        begun_by_s.map_or(0, |begun_by_s| begun_by_s.saturating_add(1))
    }

    /// How many sessions were ended since the start.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }
}

fn print(person_id: &str) -> PersonPrint {
    blake3::hash(person_id.as_bytes()).as_bytes().first_chunk().copied().unwrap_or_else(|| {
        never!("a hash has 32 bytes");
        PersonPrint::default()
    })
}

/// Writes the whole list next to the file and puts it in its place; gives it open at its end.
fn rewrite(path: &Path, over: &Over) -> io::Result<File> {
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    let part = PathBuf::from(part);
    match std::fs::remove_file(&part) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(&part)?;
    let bytes: Vec<u8> = over.records().flat_map(Record::encode).collect();
    file.write_all(&bytes)?;
    file.sync_all()?;
    std::fs::rename(&part, path)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or_else(|| Path::new(".")))?.sync_all()?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use proptest::prelude::*;

    use super::*;

    fn session(number: u64, person: &str, begun_s: u64) -> Session {
        let mut name = [0; 16];
        name[..8].copy_from_slice(&number.to_le_bytes());
        let (person_id, ends_s) = (person.to_owned(), begun_s + 1000);
        let by = crate::SessionOrigin::default();
        Session { person_id, name, begun_s, issued_s: begun_s, by, ends_s, renew: false }
    }

    #[test]
    fn what_is_over_stays_over_until_it_would_have_ended_and_a_torn_record_does_no_harm() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sessions.revoked");
        let revocations = Revocations::open(&path, 0).unwrap();
        let (ada, bob) = (session(1, "person:ada", 100), session(2, "person:bob", 100));
        revocations.add(&ada, 200).unwrap();
        let over = |revocations: &Revocations, session: &Session| {
            revocations.holds(&session.name, &session.person_id, session.begun_s)
        };
        assert!(over(&revocations, &ada) && !over(&revocations, &bob));
        drop(revocations);
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(&[7; 30]).unwrap();
        let revocations = Revocations::open(&path, 300).unwrap();
        assert!(over(&revocations, &ada) && !over(&revocations, &bob));
        revocations.add(&bob, 300).unwrap();
        let revocations = Revocations::open(&path, 301).unwrap();
        assert!(over(&revocations, &ada) && over(&revocations, &bob));
        let revocations = Revocations::open(&path, 1100).unwrap();
        assert!(!over(&revocations, &ada), "its cookie is too old by itself");
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 0);
    }

    #[test]
    fn nobody_makes_the_list_long_by_logging_in_and_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sessions.revoked");
        let revocations = Revocations::open(&path, 0).unwrap();
        let other = session(u64::MAX, "person:bob", 100);
        let sessions: Vec<Session> =
            (0..600).map(|number| session(number, "person:ada", 100 + number)).collect();
        for session in &sessions {
            revocations.add(session, session.begun_s + 1).unwrap();
        }
        for revocations in [revocations, Revocations::open(&path, 800).unwrap()] {
            assert!(revocations.over.read().sessions.len() <= OF_PERSON_MOST);
            for session in &sessions {
                assert!(revocations.holds(&session.name, "person:ada", session.begun_s));
            }
            assert!(!revocations.holds(&[9; 16], "person:ada", 900), "one that begins later is good");
            assert!(!revocations.holds(&other.name, "person:bob", 100));
        }
    }

    proptest! {
        #[test]
        fn a_record_is_read_as_it_was_written(
            session: [u8; 16], person: [u8; 16], time_s: u64, forget_s: u64, flip in 0..RECORD_BYTES * 8,
        ) {
            for record in [
                Record::One { session, person, ends_s: time_s },
                Record::All { person, begun_by_s: time_s, forget_s },
            ] {
                let mut bytes = record.encode();
                prop_assert_eq!(Record::decode(&bytes), Some(record));
                bytes[flip / 8] ^= 1 << (flip % 8);
                prop_assert_eq!(Record::decode(&bytes), None);
            }
        }
    }
}
