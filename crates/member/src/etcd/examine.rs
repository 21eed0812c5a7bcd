//! Whether etcd keeps what it answers for, as far as it can be seen from outside: looked at before a member relies on it.

use std::time::Duration;

use bytes::Bytes;
use scrinium_cluster::{Operation, Transaction};
use tokio::time::Instant;

use super::connection::{Connection, page};
use super::messages::{
    AlarmResponse, AuthStatusResponse, CORRUPT, MemberListResponse, NO_SPACE, Nothing, StatusResponse,
};
use super::{EtcdAddress, EtcdEngine, EtcdError};

/// The oldest release. 3.5 has lost records (its issue 13766), and earlier ones know less of themselves.
const OLDEST: (u32, u32) = (3, 6);

/// The smallest quota of a database: what a minute's load of one group takes, several times.
const SMALLEST_QUOTA_BYTES: u64 = 1 << 30;

/// A database that is fuller is warned of, in percent of its quota.
const FILLED_PERCENT: u64 = 60;

/// What etcd counts each sync of its log by.
const SYNCS: &str = "etcd_disk_wal_fsync_duration_seconds_count";

/// How long a write may take until each server has synced it.
const SYNCED_WITHIN: Duration = Duration::from_secs(3);
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(50);

/// One server of etcd, as it describes itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdNode {
    /// Where it was asked.
    pub address: EtcdAddress,
    /// Its release.
    pub version: String,
    /// Which etcd it belongs to.
    pub cluster_id: u64,
    /// Its own number in that.
    pub member_id: u64,
    /// The size of its database's file, in bytes.
    pub database_bytes: u64,
    /// What of that is in use, in bytes.
    pub used_bytes: u64,
    /// The largest size that the file may have, in bytes; 0 if it does not say.
    pub quota_bytes: u64,
}

/// What a member does not rely on. Nothing is stored in an etcd of which one of these holds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EtcdFinding {
    /// It answers before anything is on its disk.
    #[error(
        "etcd at {address} has stored a write without a sync of its log: start it without --unsafe-no-fsync, or acknowledged changes \
         are lost with its machine's power"
    )]
    DoesNotSync {
        /// Where.
        address: EtcdAddress,
    },
    /// It does not show whether it syncs.
    #[error(
        "whether etcd at {address} syncs cannot be seen, since it does not show {SYNCS} at /metrics ({reason}); let its client \
         address serve it"
    )]
    SyncsNotShown {
        /// Where.
        address: EtcdAddress,
        /// What was found instead.
        reason: String,
    },
    /// Its release is too old.
    #[error("etcd at {address} is release {version}; use {}.{} or newer", OLDEST.0, OLDEST.1)]
    TooOld {
        /// Where.
        address: EtcdAddress,
        /// Its release.
        version: String,
    },
    /// It asks for names and passwords.
    #[error(
        "etcd at {address} has users switched on, which members do not log in as; certificates on both sides say who may \
         connect (--client-cert-auth), so switch them off with `etcdctl auth disable`"
    )]
    HasUsers {
        /// Where.
        address: EtcdAddress,
    },
    /// It has found out that its servers hold different things.
    #[error(
        "etcd at {address} has an alarm: its servers hold different data; replace the server that the alarm names"
    )]
    Corrupt {
        /// Where.
        address: EtcdAddress,
    },
    /// It takes no writes.
    #[error(
        "etcd at {address} has an alarm: its database has reached its quota; compact, defragment, then `etcdctl alarm disarm`"
    )]
    NoSpace {
        /// Where.
        address: EtcdAddress,
    },
    /// Its database may not grow as the cluster needs.
    #[error(
        "etcd at {address} has a quota of {bytes} bytes; start it with --quota-backend-bytes of at least {SMALLEST_QUOTA_BYTES}"
    )]
    SmallQuota {
        /// Where.
        address: EtcdAddress,
        /// Its quota, in bytes.
        bytes: u64,
    },
    /// It does not take part in decisions.
    #[error("etcd at {address} is a learner; promote it with `etcdctl member promote`")]
    Learner {
        /// Where.
        address: EtcdAddress,
    },
    /// Two addresses belong to two different ones.
    #[error("{address} and {other} belong to two different etcds: all addresses must be those of one")]
    TwoEtcds {
        /// Where.
        address: EtcdAddress,
        /// The other one.
        other: EtcdAddress,
    },
}

/// What is unwise, but can be relied on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EtcdWarning {
    /// A server could not be looked at.
    #[error("not examined: {0}")]
    NotExamined(EtcdError),
    /// There is no majority without each server.
    #[error("etcd has {servers} servers: without one of them nothing can be stored; use three")]
    NoSpareServer {
        /// How many take part in decisions.
        servers: usize,
    },
    /// Its database fills up.
    #[error("the database of etcd at {address} has {percent} % of its quota")]
    Filling {
        /// Where.
        address: EtcdAddress,
        /// How much, in percent.
        percent: u64,
    },
}

/// What was found at all addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Examination {
    /// The servers that answered.
    pub nodes: Vec<EtcdNode>,
    /// What is not relied on.
    pub findings: Vec<EtcdFinding>,
    /// What is unwise.
    pub warnings: Vec<EtcdWarning>,
}

impl EtcdEngine {
    /// Looks at each server, and writes the key `probe` to see whether all of them sync.
    ///
    /// # Errors
    /// [`EtcdError`] if no server answers, or the probe cannot be written.
    pub async fn examine(&self, probe: Bytes) -> Result<Examination, EtcdError> {
        let mut examination = Examination::default();
        let (mut counted, mut last) = (Vec::new(), None);
        for address in &self.addresses {
            match self.examine_one(address, &mut examination).await {
                Ok(()) => counted.push((address, self.syncs(address).await)),
                Err(error) => {
                    last = Some(error.clone());
                    examination.warnings.push(EtcdWarning::NotExamined(error));
                }
            }
        }
        if let Some(error) = last.filter(|_| counted.is_empty()) {
            return Err(error);
        }
        let put = Operation::Put { key: probe, value: Bytes::from_static(b"1") };
        self.ask(&Transaction { then: vec![put], ..Transaction::default() }).await?;
        let until = Instant::now() + SYNCED_WITHIN;
        for (address, before) in counted {
            examination.findings.extend(self.check_synced(address, before, until).await);
        }
        Ok(examination)
    }

    async fn examine_one(
        &self,
        address: &EtcdAddress,
        examination: &mut Examination,
    ) -> Result<(), EtcdError> {
        let (status, alarms, users, members) = self.described(address).await?;
        let findings = &mut examination.findings;
        let address = || address.clone();
        let node = EtcdNode {
            address: address(),
            version: status.version.chars().take(40).collect(),
            cluster_id: status.header.cluster_id,
            member_id: status.header.member_id,
            database_bytes: status.db_bytes,
            used_bytes: status.db_used_bytes,
            quota_bytes: status.quota_bytes,
        };
        if release_of(&node.version).is_none_or(|release| release < OLDEST) {
            findings.push(EtcdFinding::TooOld { address: address(), version: node.version.clone() });
        }
        if users.enabled {
            findings.push(EtcdFinding::HasUsers { address: address() });
        }
        if alarms.alarms.contains(&CORRUPT) {
            findings.push(EtcdFinding::Corrupt { address: address() });
        }
        if alarms.alarms.contains(&NO_SPACE) {
            findings.push(EtcdFinding::NoSpace { address: address() });
        }
        if status.is_learner {
            findings.push(EtcdFinding::Learner { address: address() });
        }
        if (1..SMALLEST_QUOTA_BYTES).contains(&node.quota_bytes) {
            findings.push(EtcdFinding::SmallQuota { address: address(), bytes: node.quota_bytes });
        }
        if let Some(other) = examination.nodes.iter().find(|other| other.cluster_id != node.cluster_id) {
            findings.push(EtcdFinding::TwoEtcds { address: address(), other: other.address.clone() });
        }
        let warnings = &mut examination.warnings;
        let percent = node.used_bytes.saturating_mul(100).checked_div(node.quota_bytes).unwrap_or(0);
        if percent >= FILLED_PERCENT {
            warnings.push(EtcdWarning::Filling { address: address(), percent });
        }
        let servers = members.voters;
        if servers < 3 && examination.nodes.is_empty() {
            warnings.push(EtcdWarning::NoSpareServer { servers });
        }
        examination.nodes.push(node);
        Ok(())
    }

    /// All that one server says of itself, within the time of one call.
    async fn described(
        &self,
        address: &EtcdAddress,
    ) -> Result<(StatusResponse, AlarmResponse, AuthStatusResponse, MemberListResponse), EtcdError> {
        let within = self.call_within;
        let asked = tokio::time::timeout(within, async {
            let mut connection = Connection::open(address, self.calls_tls.as_ref()).await?;
            Ok((
                connection.call("/etcdserverpb.Maintenance/Status", &Nothing, within).await?,
                connection.call("/etcdserverpb.Maintenance/Alarm", &Nothing, within).await?,
                connection.call("/etcdserverpb.Auth/AuthStatus", &Nothing, within).await?,
                connection.call("/etcdserverpb.Cluster/MemberList", &Nothing, within).await?,
            ))
        });
        asked.await.unwrap_or_else(|_| Err(EtcdError::Late { address: address.clone(), within }))
    }

    /// How often it has synced its log since it was started.
    async fn syncs(&self, address: &EtcdAddress) -> Result<u64, EtcdError> {
        let within = self.call_within;
        let late = EtcdError::Late { address: address.clone(), within };
        let asked = tokio::time::timeout(within, page(address, self.pages_tls.as_ref(), "/metrics"));
        let text = asked.await.unwrap_or(Err(late))?;
        figure(&text, SYNCS).ok_or_else(|| EtcdError::Malformed {
            address: address.clone(),
            problem: "its figures lack this one".to_owned(),
        })
    }

    async fn check_synced(
        &self,
        address: &EtcdAddress,
        before: Result<u64, EtcdError>,
        until: Instant,
    ) -> Option<EtcdFinding> {
        let not_shown = |error: EtcdError| {
            let (address, reason) = (address.clone(), error.to_string());
            Some(EtcdFinding::SyncsNotShown { address, reason })
        };
        let before = match before {
            Ok(before) => before,
            Err(error) => return not_shown(error),
        };
        loop {
            match self.syncs(address).await {
                Ok(after) if after > before => return None,
                Ok(_) if Instant::now() < until => tokio::time::sleep(LOOK_AGAIN_AFTER).await,
                Ok(_) => return Some(EtcdFinding::DoesNotSync { address: address.clone() }),
                Err(error) => return not_shown(error),
            }
        }
    }
}

/// The first two numbers of a release.
fn release_of(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// A count on a page of Prometheus' text, which is a line of its own.
fn figure(text: &[u8], name: &str) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    let mut found = text.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    found.next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_and_releases_are_read() {
        let page = b"# HELP x y\netcd_disk_wal_fsync_duration_seconds_count 12\nother_count 3\n";
        assert_eq!(figure(page, SYNCS), Some(12));
        assert_eq!(figure(page, "other"), None);
        assert_eq!(figure(b"\xff", SYNCS), None);
        assert_eq!(release_of("3.7.3"), Some((3, 7)));
        assert_eq!(release_of("3.10.0-rc.1"), Some((3, 10)));
        assert_eq!(release_of("three"), None);
    }
}
