//! What the small keys hold.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use scrinium_log::{Chain, Sequence};

use crate::{Epoch, Incarnation, MemberId};

/// The most members of one group.
pub const MOST_MEMBERS: usize = 9;

const VERSION: u8 = 1;

/// Who leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Leadership {
    /// The number of the leadership.
    pub epoch: Epoch,
    /// Who.
    pub leader: MemberId,
}

/// A member and when it is its turn to lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Membership {
    /// Who.
    pub member: MemberId,
    /// Of several that could claim, those with a higher one wait less.
    pub priority: u8,
}

/// How far a member is, and with what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Report {
    /// All records that it has applied.
    pub applied: Chain,
}

pub(crate) fn encode_incarnation(incarnation: Incarnation) -> Bytes {
    Bytes::copy_from_slice(&incarnation.0)
}

pub(crate) fn decode_incarnation(bytes: &[u8]) -> Option<Incarnation> {
    bytes.try_into().ok().map(Incarnation)
}

impl Leadership {
    pub(crate) fn encode(self) -> Bytes {
        let mut bytes = BytesMut::with_capacity(13);
        bytes.put_u8(VERSION);
        bytes.put_u64_le(self.epoch.0);
        bytes.put_u32_le(self.leader.0);
        bytes.freeze()
    }

    pub(crate) fn decode(mut bytes: &[u8]) -> Option<Self> {
        if bytes.len() != 13 || bytes.get_u8() != VERSION {
            return None;
        }
        Some(Self { epoch: Epoch(bytes.get_u64_le()), leader: MemberId(bytes.get_u32_le()) })
    }
}

/// The leader's sign of life: its epoch and a count.
pub(crate) fn encode_beat(epoch: Epoch, count: u64) -> Bytes {
    let mut bytes = BytesMut::with_capacity(17);
    bytes.put_u8(VERSION);
    bytes.put_u64_le(epoch.0);
    bytes.put_u64_le(count);
    bytes.freeze()
}

impl Report {
    pub(crate) fn encode(self) -> Bytes {
        let mut bytes = BytesMut::with_capacity(41);
        bytes.put_u8(VERSION);
        bytes.put_u64_le(self.applied.last().0);
        bytes.put_slice(self.applied.digest());
        bytes.freeze()
    }

    pub(crate) fn decode(mut bytes: &[u8]) -> Option<Self> {
        if bytes.len() != 41 || bytes.get_u8() != VERSION {
            return None;
        }
        let last = Sequence(bytes.get_u64_le());
        Some(Self { applied: Chain::new(last, bytes.try_into().ok()?) })
    }
}

/// Who belongs to a group, in the form in which the engine holds it; `None` if there are none, too many, or one twice.
#[must_use]
pub fn encode_members(members: &[Membership]) -> Option<Bytes> {
    let mut bytes = BytesMut::with_capacity(1 + 5 * members.len());
    bytes.put_u8(VERSION);
    for Membership { member, priority } in members {
        bytes.put_u32_le(member.0);
        bytes.put_u8(*priority);
    }
    decode_members(&bytes).is_some().then(|| bytes.freeze())
}

pub(crate) fn decode_members(mut bytes: &[u8]) -> Option<Vec<Membership>> {
    if bytes.try_get_u8().ok()? != VERSION || !bytes.len().is_multiple_of(5) {
        return None;
    }
    let count = bytes.len() / 5;
    if !(1..=MOST_MEMBERS).contains(&count) {
        return None;
    }
    let members: Vec<Membership> = (0..count)
        .map(|_| Membership { member: MemberId(bytes.get_u32_le()), priority: bytes.get_u8() })
        .collect();
    let twice =
        |(at, one): (usize, &Membership)| members.iter().skip(at + 1).any(|other| other.member == one.member);
    (!members.iter().enumerate().any(twice)).then_some(members)
}
