//! The keys of one group in the engine.

use bytes::Bytes;
use scrinium_log::Sequence;

use crate::MemberId;

/// The longest name of a cluster or group, in bytes.
pub const LONGEST_NAME: usize = 64;

/// A name has other letters than `a-z`, `0-9`, `-`, `_` and `.`, or is empty or too long.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} cannot name a cluster or a group: use 1 to {LONGEST_NAME} of a-z, 0-9, '-', '_' and '.'")]
pub struct NameError {
    /// The name, cut where it is very long.
    pub name: String,
}

/// The keys of a group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Keys {
    cluster: String,
    group: String,
}

impl Keys {
    /// Of a group in a cluster.
    ///
    /// # Errors
    /// [`NameError`].
    pub fn new(cluster: &str, group: &str) -> Result<Self, NameError> {
        Ok(Self { cluster: checked(cluster)?, group: checked(group)? })
    }

    /// What tells the engine's beginnings apart.
    #[must_use]
    pub fn incarnation(&self) -> Bytes {
        format!("s/{}/incarnation", self.cluster).into()
    }

    /// What is written to see whether the engine syncs what it is given; nobody reads it.
    #[must_use]
    pub fn probe(&self) -> Bytes {
        format!("s/{}/probe", self.cluster).into()
    }

    /// Who belongs to the group.
    #[must_use]
    pub fn group(&self) -> Bytes {
        self.of("group").into()
    }

    /// Who leads, and since which claim.
    #[must_use]
    pub fn epoch(&self) -> Bytes {
        self.of("epoch").into()
    }

    /// The leader's sign of life.
    #[must_use]
    pub fn beat(&self) -> Bytes {
        self.of("beat").into()
    }

    /// The entry whose first record has this number. Keys sort as the numbers do.
    #[must_use]
    pub fn entry(&self, first: Sequence) -> Bytes {
        format!("{}/{:016x}", self.of("log"), first.0).into()
    }

    /// After the key of every entry.
    #[must_use]
    pub fn after_entries(&self) -> Bytes {
        // '0' follows '/'.
        (self.of("log") + "0").into()
    }

    /// What a member says of itself.
    #[must_use]
    pub fn report(&self, member: MemberId) -> Bytes {
        format!("{}/{:08x}", self.of("report"), member.0).into()
    }

    /// After the key of every report.
    #[must_use]
    pub fn after_reports(&self) -> Bytes {
        (self.of("report") + "0").into()
    }

    /// Before the key of every report.
    #[must_use]
    pub fn before_reports(&self) -> Bytes {
        (self.of("report") + "/").into()
    }

    fn of(&self, what: &str) -> String {
        format!("s/{}/{what}/{}", self.cluster, self.group)
    }
}

fn checked(name: &str) -> Result<String, NameError> {
    let legal =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_' | b'.');
    if name.is_empty() || name.len() > LONGEST_NAME || !name.bytes().all(legal) {
        return Err(NameError { name: name.chars().take(LONGEST_NAME).collect() });
    }
    Ok(name.to_owned())
}
