//! What a server takes of memory and of the disk.

use super::Seen;
use crate::calibration::Device;
use crate::range::Range;

/// Memory of the server's process, without what its budget for databases will hold.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Memory {
    /// With nobody connected.
    pub base_bytes: Range,
    /// For each who is connected.
    pub user_bytes: Range,
    pub source: String,
}

/// No connection takes less than its buffers.
const LEAST_USER_BYTES: f64 = 4096.0;

impl Memory {
    /// The slope between few and many users who are connected. Users at work take more, of which most is blocks of their
    /// databases: the high end is the slope of the ladder.
    pub(super) fn of(connected: &[Seen<'_>], ladder: &[Seen<'_>]) -> Option<Self> {
        let all = if connected.is_empty() { ladder } else { connected };
        let (base, user) = line(all)?;
        let resident = |seen: &Seen<'_>| seen.run.resident_bytes;
        let least = all.iter().map(resident).fold(f64::INFINITY, f64::min);
        let user = user.max(LEAST_USER_BYTES);
        let at_work = line(ladder).map_or(user, |(_, slope)| slope).max(user);
        let base = base.clamp(least / 2.0, least);
        Some(Self {
            base_bytes: Range::of(base.min(least / 2.0), base, least),
            user_bytes: Range::of(user / 2.0, user, at_work),
            source: "connected-1, connected-2; high end: the ladder".to_owned(),
        })
    }
}

/// The straight line through memory against users: at 0, and for each user.
fn line(seen: &[Seen<'_>]) -> Option<(f64, f64)> {
    #[allow(clippy::cast_precision_loss, reason = "a few runs")]
    let count = seen.len() as f64;
    if seen.is_empty() {
        return None;
    }
    let users = |seen: &Seen<'_>| f64::from(seen.point.users);
    let (mean_users, mean_bytes) = (
        seen.iter().map(users).sum::<f64>() / count,
        seen.iter().map(|seen| seen.run.resident_bytes).sum::<f64>() / count,
    );
    let square: f64 = seen.iter().map(|seen| (users(seen) - mean_users).powi(2)).sum();
    let product: f64 =
        seen.iter().map(|seen| (users(seen) - mean_users) * (seen.run.resident_bytes - mean_bytes)).sum();
    let slope = if square > 0.0 { (product / square).max(0.0) } else { 0.0 };
    Some((mean_bytes - slope * mean_users, slope))
}

/// What databases take on disk, and what the device does in a second.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Disk {
    /// Bytes on disk for one byte of text in mail, with its indexes; without the log.
    pub text_ratio: Range,
    pub write_bytes_per_s: Range,
    pub sync_ms: Range,
    pub source: String,
}

/// Where no data was left to look at.
const UNSEEN_RATIO: Range = Range { value: 1.0, low: 0.5, high: 1.5 };

impl Disk {
    pub(super) fn of(ladder: &[Seen<'_>], device: &Device) -> Self {
        let ratio = |seen: &Seen<'_>| {
            let put = (seen.run.documents_added + seen.run.documents_grown) * seen.point.message_bytes;
            (put > 0.0 && seen.run.data_bytes > 0.0).then(|| seen.run.data_bytes / put)
        };
        // The largest loads: what a server has of its own counts least there.
        let most = ladder.iter().map(|seen| seen.point.users).max().unwrap_or(0);
        let ratios: Vec<f64> =
            ladder.iter().filter(|seen| seen.point.users * 2 > most).filter_map(ratio).collect();
        let measured = Range::over(&ratios);
        let source =
            if measured.is_some() { "the larger half of the ladder" } else { "assumed: no run has shown it" };
        Self {
            text_ratio: measured.unwrap_or(UNSEEN_RATIO),
            write_bytes_per_s: device.write_bytes_per_s,
            sync_ms: device.sync_ms,
            source: source.to_owned(),
        }
    }
}
