//! A whole group as the engine shows it at one moment: for those who look at it from outside.

use bytes::Bytes;
use scrinium_log::{Chain, Sequence};

use crate::value::{MOST_MEMBERS, decode_incarnation, decode_members};
use crate::{
    Entry, Incarnation, Keys, Leadership, Membership, Operation, Reply, Report, StopReason, StoredKey,
    Transaction,
};

/// What the engine holds of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overview {
    /// Which beginning of the engine it is; `None` if it has none of that cluster.
    pub incarnation: Option<Incarnation>,
    /// Who leads.
    pub leader: Option<Leadership>,
    /// Who belongs to the group, in the order in which they came.
    pub members: Vec<MemberOverview>,
    /// All records that were agreed on.
    pub newest: Option<Chain>,
}

/// A member, and what it has said of itself last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberOverview {
    /// Who, and with which priority.
    pub membership: Membership,
    /// How far it is; `None` if it has never said so.
    pub report: Option<Report>,
}

impl MemberOverview {
    /// How many records it lacks.
    #[must_use]
    pub fn lag(&self, newest: Chain) -> Option<u64> {
        Some(newest.last().0.saturating_sub(self.report?.applied.last().0))
    }
}

impl Overview {
    /// What is asked of the engine.
    #[must_use]
    pub fn transaction(keys: &Keys) -> Transaction {
        let get = |key| Operation::Get { key };
        let range = |from, to, limit, descending| Operation::Range { from, to, limit, descending };
        let then = vec![
            get(keys.incarnation()),
            get(keys.epoch()),
            get(keys.group()),
            range(keys.before_reports(), keys.after_reports(), MOST_MEMBERS * 2, false),
            range(keys.entry(Sequence(0)), keys.after_entries(), 1, true),
        ];
        Transaction { then, ..Transaction::default() }
    }

    /// From the engine's answer to that.
    ///
    /// # Errors
    /// [`StopReason`]: what the engine holds cannot be read.
    pub fn of(keys: &Keys, reply: Reply) -> Result<Self, StopReason> {
        let mut found = reply.found.into_iter();
        let mut next = || found.next().ok_or(StopReason::Contradiction("an answer lacks a part"));
        let (incarnation, epoch, group, reports, newest) = (next()?, next()?, next()?, next()?, next()?);
        let members = group.first().map_or(Ok(Vec::new()), |stored| {
            decode_members(&stored.value).ok_or(StopReason::Damaged { key: "group" })
        });
        let with_report = |membership: Membership| {
            let key = keys.report(membership.member);
            let stored = reports.iter().find(|stored| stored.key == key);
            let report = stored
                .map(|stored| Report::decode(&stored.value).ok_or(StopReason::Damaged { key: "report" }));
            Ok(MemberOverview { membership, report: report.transpose()? })
        };
        let newest = newest.first().map(|stored| {
            let entry = Entry::decode(&stored.value);
            entry.map(|entry| entry.chain()).map_err(|error| StopReason::Entry { at: Sequence(0), error })
        });
        Ok(Self {
            incarnation: read(&incarnation, "incarnation", decode_incarnation)?,
            leader: read(&epoch, "epoch", Leadership::decode)?,
            members: members?.into_iter().map(with_report).collect::<Result<_, StopReason>>()?,
            newest: newest.transpose()?,
        })
    }
}

fn read<T>(
    found: &[StoredKey],
    key: &'static str,
    decode: impl Fn(&[u8]) -> Option<T>,
) -> Result<Option<T>, StopReason> {
    let value = found.first().map(|stored| -> &Bytes { &stored.value });
    value.map(|value| decode(value).ok_or(StopReason::Damaged { key })).transpose()
}
