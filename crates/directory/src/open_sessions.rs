//! Which sessions people have, as they were used since the server started: for the people themselves, so that they see where they are
//! signed in. It decides nothing; what is too much is forgotten.

use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use quick_cache::sync::Cache;

use crate::session::{Session, SessionName};

/// People whose sessions are remembered.
const PEOPLE_MAX: usize = 10_000;

/// Sessions of one person that are remembered: those that were used last.
const OF_PERSON_MAX: usize = 16;

/// Kept of what a program calls itself.
const AGENT_BYTES_MAX: usize = 120;

/// A session, as it was used last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenSession {
    /// Which it is.
    pub name: SessionName,
    /// When it began, in seconds since 1970.
    pub begun_s: u64,
    /// When it was used last.
    pub used_s: u64,
    /// When it ends at the latest.
    pub ends_s: u64,
    /// From where.
    pub address: IpAddr,
    /// What the program calls itself; its beginning.
    pub agent: Box<str>,
}

impl OpenSession {
    /// Its name as texts have it.
    #[must_use]
    pub fn id(&self) -> String {
        self.name.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

type OfPerson = Arc<Mutex<Vec<OpenSession>>>;

/// Sessions of everybody, by the ids of people.
pub struct OpenSessions {
    people: Cache<String, OfPerson>,
}

impl Default for OpenSessions {
    fn default() -> Self {
        Self { people: Cache::new(PEOPLE_MAX) }
    }
}

impl OpenSessions {
    /// A session that still holds was used.
    pub fn note(&self, session: &Session, now_s: u64, (address, agent): (IpAddr, &str)) {
        let made = || Ok::<_, std::convert::Infallible>(OfPerson::default());
        let Ok(sessions) = self.people.get_or_insert_with(session.person_id.as_str(), made);
        let mut sessions = sessions.lock();
        if let Some(known) = sessions.iter_mut().find(|known| known.name == session.name) {
            known.used_s = now_s;
            known.address = address;
            if !known.agent.starts_with(cut(agent)) || agent.is_empty() != known.agent.is_empty() {
                known.agent = cut(agent).into();
            }
            return;
        }
        if sessions.len() >= OF_PERSON_MAX
            && let Some(oldest) =
                sessions.iter().enumerate().min_by_key(|(_, known)| known.used_s).map(|(at, _)| at)
        {
            sessions.swap_remove(oldest);
        }
        let Session { name, begun_s, ends_s, .. } = *session;
        sessions.push(OpenSession {
            name,
            begun_s,
            used_s: now_s,
            ends_s,
            address,
            agent: cut(agent).into(),
        });
    }

    /// The sessions of somebody, the one that was used last first. Those that are over are among them until they are forgotten.
    #[must_use]
    pub fn of(&self, person_id: &str) -> Vec<OpenSession> {
        let Some(sessions) = self.people.get(person_id) else { return Vec::new() };
        let mut all = sessions.lock().clone();
        all.sort_by_key(|session| std::cmp::Reverse(session.used_s));
        all
    }

    /// Leaves those of somebody for which this says so.
    pub fn retain(&self, person_id: &str, holds: impl Fn(&OpenSession) -> bool) {
        if let Some(sessions) = self.people.get(person_id) {
            sessions.lock().retain(holds);
        }
    }
}

/// Its beginning, and no control characters in it.
fn cut(agent: &str) -> &str {
    let sound = agent.split(char::is_control).next().unwrap_or_default();
    let mut end = sound.len().min(AGENT_BYTES_MAX);
    while !sound.is_char_boundary(end) {
        end -= 1;
    }
    sound.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

    use super::*;
    use crate::SessionOrigin;

    fn session(number: u8, begun_s: u64) -> Session {
        let by = SessionOrigin::default();
        let (person_id, name) = ("person:ada".to_owned(), [number; 16]);
        Session { person_id, name, begun_s, issued_s: begun_s, by, ends_s: begun_s + 1000, renew: false }
    }

    #[test]
    fn the_sessions_that_were_used_last_are_remembered_with_where_they_were_used() {
        let open = OpenSessions::default();
        let (home, away) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        for number in 0..=u8::try_from(OF_PERSON_MAX).unwrap() {
            open.note(&session(number, 100), 200 + u64::from(number), (home, "Browser/1"));
        }
        open.note(&session(1, 100), 900, (away, &"ä".repeat(AGENT_BYTES_MAX)));
        let all = open.of("person:ada");
        assert_eq!(all.len(), OF_PERSON_MAX);
        assert_eq!((all[0].name, all[0].address, all[0].used_s), ([1; 16], away, 900));
        assert_eq!(all[0].agent.len(), AGENT_BYTES_MAX);
        assert_eq!(all[0].id(), "01".repeat(16));
        assert!(
            !all.iter().any(|one| one.name == [0; 16]),
            "the one that was not used for longest is forgotten"
        );
        open.note(&session(2, 100), 901, (home, "evil\r\nX: y"));
        assert_eq!(&*open.of("person:ada")[0].agent, "evil");
        open.retain("person:ada", |one| one.name == [1; 16]);
        assert_eq!(open.of("person:ada").len(), 1);
        assert!(open.of("person:bob").is_empty());
    }
}
