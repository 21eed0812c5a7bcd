//! Locks of files (RFC 4918, sections 6 and 7). They are in memory: who held one when the server ended locks again.

use std::collections::HashMap;

use parking_lot::Mutex;
use scrinium_dav_wire::DAV;
use scrinium_dav_wire::header::{IfHeader, StateCondition, Timeout};
use scrinium_dav_wire::xml::Element;

use super::path::FilePath;

/// Locks of one person's files, and of all together.
const LOCKS_OF_ONE_MAX: usize = 200;
const LOCKS_MAX: usize = 100_000;

/// What a client says of itself in a lock, as XML.
pub(super) const OWNER_BYTES_MAX: usize = 2_000;

/// How long a lock lasts that is not asked for again.
const TIMEOUT_S: u32 = 600;
const TIMEOUT_MAX_S: u32 = 3_600;

/// A lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lock {
    pub(super) token: String,
    pub(super) path: FilePath,
    /// With all that is in it.
    pub(super) is_deep: bool,
    pub(super) is_exclusive: bool,
    /// The login name of who has made it.
    pub(super) holder: String,
    /// What that client says of itself.
    pub(super) owner: Option<Element>,
    pub(super) expires_ms: u64,
}

impl Lock {
    fn covers(&self, path: &FilePath) -> bool {
        if self.is_deep { self.path.holds(path) } else { self.path == *path }
    }

    /// `DAV:activelock` (RFC 4918, section 14.1).
    pub(super) fn element(&self, is_collection: bool, now_ms: u64) -> Element {
        let empty = |name: &str| Element::new(DAV, name);
        let href = |text: &str| empty("href").with_text(text);
        let scope = empty(if self.is_exclusive { "exclusive" } else { "shared" });
        let depth = if self.is_deep { "infinity" } else { "0" };
        let left_s = self.expires_ms.saturating_sub(now_ms).div_ceil(1_000);
        empty("activelock")
            .with(empty("locktype").with(empty("write")))
            .with(empty("lockscope").with(scope))
            .with(empty("depth").with_text(depth))
            .with_all(self.owner.clone())
            .with(empty("timeout").with_text(&format!("Second-{left_s}")))
            .with(empty("locktoken").with(href(&self.token)))
            .with(empty("lockroot").with(href(&self.path.href(is_collection))))
    }
}

/// What a client may have as a timeout of what it asks for.
pub(super) fn timeout_s(asked: &[Timeout]) -> u32 {
    match asked.first() {
        None => TIMEOUT_S,
        Some(Timeout::Infinite) => TIMEOUT_MAX_S,
        Some(Timeout::Seconds(seconds)) => (*seconds).clamp(1, TIMEOUT_MAX_S),
    }
}

/// Why there is no lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unlocked {
    /// Another one is in the way, there.
    Conflict(FilePath),
    TooMany,
}

/// The locks that are held.
#[derive(Default)]
pub(crate) struct Locks {
    by_person: Mutex<HashMap<String, Vec<Lock>>>,
}

impl Locks {
    /// The locks that hold for a resource.
    pub(super) fn of(&self, path: &FilePath, now_ms: u64) -> Vec<Lock> {
        self.those(path, now_ms, |lock| lock.covers(path))
    }

    /// The locks of what lies below a collection.
    pub(super) fn below(&self, path: &FilePath, now_ms: u64) -> Vec<Lock> {
        self.those(path, now_ms, |lock| path.holds(&lock.path) && lock.path != *path)
    }

    fn those(&self, path: &FilePath, now_ms: u64, is_meant: impl Fn(&Lock) -> bool) -> Vec<Lock> {
        let all = self.by_person.lock();
        let of_person = all.get(&path.person).into_iter().flatten();
        of_person.filter(|lock| lock.expires_ms > now_ms && is_meant(lock)).cloned().collect()
    }

    /// Adds a lock, unless another one is in its way.
    pub(super) fn add(&self, lock: &Lock, now_ms: u64) -> Result<(), Unlocked> {
        let mut all = self.by_person.lock();
        let meets = |other: &Lock| other.covers(&lock.path) || (lock.is_deep && lock.path.holds(&other.path));
        if let Some(locks) = all.get_mut(&lock.path.person) {
            locks.retain(|lock| lock.expires_ms > now_ms);
            let in_the_way =
                locks.iter().find(|other| (other.is_exclusive || lock.is_exclusive) && meets(other));
            if let Some(other) = in_the_way {
                return Err(Unlocked::Conflict(other.path.clone()));
            }
            if locks.len() >= LOCKS_OF_ONE_MAX {
                return Err(Unlocked::TooMany);
            }
        }
        if all.values().map(Vec::len).sum::<usize>() >= LOCKS_MAX {
            for locks in all.values_mut() {
                locks.retain(|lock| lock.expires_ms > now_ms);
            }
            all.retain(|_, locks| !locks.is_empty());
            if all.values().map(Vec::len).sum::<usize>() >= LOCKS_MAX {
                return Err(Unlocked::TooMany);
            }
        }
        all.entry(lock.path.person.clone()).or_default().push(lock.clone());
        Ok(())
    }

    /// Has a lock last longer; gives it as it is then.
    pub(super) fn refresh(
        &self,
        path: &FilePath,
        token: &str,
        (timeout_s, now_ms): (u32, u64),
    ) -> Option<Lock> {
        let mut all = self.by_person.lock();
        let locks = all.get_mut(&path.person)?;
        let is_it = |lock: &&mut Lock| lock.token == token && lock.expires_ms > now_ms && lock.covers(path);
        let lock = locks.iter_mut().find(is_it)?;
        lock.expires_ms = now_ms.saturating_add(u64::from(timeout_s) * 1_000);
        Some(lock.clone())
    }

    /// Takes a lock away.
    pub(super) fn remove(&self, person: &str, token: &str) {
        let mut all = self.by_person.lock();
        if let Some(locks) = all.get_mut(person) {
            locks.retain(|lock| lock.token != token);
            if locks.is_empty() {
                all.remove(person);
            }
        }
    }

    /// What is gone has no locks: those of a path and of all below it.
    pub(super) fn remove_all(&self, path: &FilePath) {
        if let Some(locks) = self.by_person.lock().get_mut(&path.person) {
            locks.retain(|lock| !path.holds(&lock.path));
        }
    }
}

/// The tokens that a header If names, wherever: those that the client knows of.
pub(super) fn submitted(header: Option<&IfHeader>) -> Vec<&str> {
    let conditions = header.into_iter().flat_map(|header| &header.0).flat_map(|list| &list.conditions);
    let tokens = conditions.filter_map(|(_, condition)| match condition {
        StateCondition::Token(token) => Some(token.as_str()),
        StateCondition::Tag(_) => None,
    });
    tokens.collect()
}

/// Whether one of the lists of a header If is so (RFC 4918, section 10.4.3). `tag_of` gives the tag of a resource, if it is there.
pub(super) fn holds<E>(
    header: &IfHeader,
    asked: &FilePath,
    (locks, now_ms): (&Locks, u64),
    mut tag_of: impl FnMut(&FilePath) -> Result<Option<String>, E>,
) -> Result<bool, E> {
    for list in &header.0 {
        let path = match &list.resource {
            None => Some(asked.clone()),
            Some(address) => FilePath::of_address(address),
        };
        let (tokens, tag) = match &path {
            Some(path) => (locks.of(path, now_ms), tag_of(path)?),
            None => (Vec::new(), None),
        };
        let is_so = list.conditions.iter().all(|(is_negated, condition)| {
            let is_so = match condition {
                StateCondition::Token(token) => tokens.iter().any(|lock| lock.token == *token),
                StateCondition::Tag(wanted) => !wanted.weak && tag.as_deref() == Some(&wanted.tag),
            };
            is_so != *is_negated
        });
        if is_so {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    fn path(text: &str) -> FilePath {
        FilePath::parse(&format!("/_dav/files/ada/{text}")).unwrap()
    }

    fn lock(token: &str, at: &str, is_deep: bool, is_exclusive: bool) -> Lock {
        Lock {
            token: token.to_owned(),
            path: path(at),
            is_deep,
            is_exclusive,
            holder: "ada".to_owned(),
            owner: None,
            expires_ms: 10_000,
        }
    }

    #[test]
    fn locks_meet_where_they_hold_for_the_same() {
        let locks = Locks::default();
        locks.add(&lock("deep", "a", true, true), 0).unwrap();
        for (at, is_deep) in [("a", false), ("a/b", false), ("", true)] {
            assert!(locks.add(&lock("other", at, is_deep, false), 0).is_err(), "{at}");
        }
        locks.add(&lock("above", "", false, false), 0).unwrap();
        locks.add(&lock("shared", "b", false, false), 0).unwrap();
        locks.add(&lock("shared too", "b", false, false), 0).unwrap();
        assert_eq!(locks.of(&path("a/b/c"), 0).len(), 1);
        assert_eq!(locks.below(&path(""), 0).len(), 3);
        assert!(locks.refresh(&path("a/b"), "deep", (100, 5_000)).is_some());
        assert!(locks.refresh(&path("b"), "deep", (100, 5_000)).is_none());
        // What is not asked for again ends.
        assert_eq!((locks.of(&path("b"), 10_000).len(), locks.of(&path("a"), 10_000).len()), (0, 1));
        locks.remove_all(&path("a"));
        locks.add(&lock("new", "a", true, true), 10_000).unwrap();
    }

    #[test]
    fn the_number_of_locks_has_a_limit() {
        let locks = Locks::default();
        for number in 0..LOCKS_OF_ONE_MAX {
            locks.add(&lock(&number.to_string(), &number.to_string(), false, true), 0).unwrap();
        }
        assert_eq!(locks.add(&lock("more", "more", false, true), 0), Err(Unlocked::TooMany));
        locks.add(&lock("more", "more", false, true), 10_000).unwrap();
    }

    #[test]
    fn a_condition_holds_for_the_resource_that_it_names() {
        let locks = Locks::default();
        locks.add(&lock("urn:t", "a", true, true), 0).unwrap();
        let tag = |asked: &FilePath| Ok::<_, ()>((*asked == path("a/b")).then(|| "tag".to_owned()));
        for (header, is_so) in [
            ("(<urn:t>)", true),
            ("(<urn:t> [\"tag\"])", true),
            ("(<urn:t> [W/\"tag\"])", false),
            ("(<urn:other>) (Not <DAV:no-lock>)", true),
            ("(<DAV:no-lock> [\"tag\"])", false),
            ("(Not <DAV:no-lock> [\"other\"])", false),
            ("</_dav/files/ada/a/> (<urn:t>)", true),
            ("<http://x/_dav/files/ada/c> (<urn:t>)", false),
            ("<http://x/elsewhere> (Not <urn:t>)", true),
        ] {
            let header = IfHeader::parse(header).unwrap();
            assert_eq!(holds(&header, &path("a/b"), (&locks, 0), tag), Ok(is_so), "{header}");
        }
    }
}
