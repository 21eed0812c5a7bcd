//! Who drives the users of a run: this process, or others that this one steers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use scrinium_lab_report::TimesSummary;

use crate::crew::{CrewOutcome, CrewSecond, CriticalRegion, DriverUse, LocalUsers, Plan, Share, Stop};
use crate::driver::{Driver, Person};
use crate::measure::Recorder;
use crate::remote::{ClockReading, Remote};

/// Other processes are told so long before what is to begin at the same moment everywhere.
const LEAD: Duration = Duration::from_millis(250);

/// What is known of one driver at the end of a run.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "the names say it")]
pub struct DriverData {
    /// `None` when it is this process.
    pub name: Option<String>,
    pub used: DriverUse,
    /// How late its timers woke users, and its heart beat.
    pub lag: TimesSummary,
    pub beat: TimesSummary,
    /// Its clock compared with this process's: at the beginning and at the end.
    pub clocks: Option<(ClockReading, ClockReading)>,
}

/// What all drivers have to say at the end.
pub(super) struct Ended {
    pub(super) recorder: Arc<Recorder>,
    pub(super) behind: Vec<Duration>,
    pub(super) broken_off: usize,
    pub(super) drivers: Vec<DriverData>,
    /// A driver that did not give its measurements, and how that showed.
    pub(super) lost: Option<String>,
}

#[allow(clippy::large_enum_variant, reason = "there is one of it")]
pub(super) enum Drivers {
    Here(LocalUsers),
    There(Vec<Remote>),
}

impl Drivers {
    pub(super) fn here(plan: &Plan, people: &[Person]) -> Self {
        Self::Here(LocalUsers::new(plan, people, CriticalRegion::here()))
    }

    /// How many drivers there are.
    pub(super) fn count(&self) -> usize {
        match self {
            Self::Here(_) => 1,
            Self::There(remotes) => remotes.len(),
        }
    }

    pub(super) fn lead(&self) -> Duration {
        match self {
            Self::Here(_) => Duration::ZERO,
            Self::There(_) => LEAD,
        }
    }

    pub(super) fn begin<D: Driver>(
        &mut self,
        driver: &Arc<D>,
        people: &[Person],
        share: Share,
        at: Instant,
        spread: Duration,
    ) {
        match self {
            Self::Here(crew) => crew.begin(driver, people, share, at, spread),
            Self::There(remotes) => remotes.iter().for_each(|remote| remote.begin(at, spread)),
        }
    }

    pub(super) fn hold(&mut self, from: Instant, to: Instant) {
        match self {
            Self::Here(crew) => crew.hold(from, to),
            Self::There(remotes) => remotes.iter().for_each(|remote| remote.hold(from, to)),
        }
    }

    pub(super) fn end_hold(&mut self, at: Instant) {
        match self {
            Self::Here(crew) => crew.end_hold(at),
            Self::There(remotes) => remotes.iter().for_each(|remote| remote.end_hold(at)),
        }
    }

    pub(super) fn stop(&mut self, stop: Stop) {
        match self {
            Self::Here(crew) => crew.stop(stop),
            Self::There(remotes) => remotes.iter().for_each(|remote| remote.stop(stop)),
        }
    }

    pub(super) fn has_users(&mut self) -> bool {
        match self {
            Self::Here(crew) => crew.has_users(),
            Self::There(remotes) => remotes.iter().any(Remote::has_users),
        }
    }

    /// What all have done since the last call, or which of them is lost.
    pub(super) fn second(&mut self) -> Result<CrewSecond, String> {
        match self {
            Self::Here(crew) => Ok(crew.second()),
            Self::There(remotes) => {
                let mut sum = CrewSecond::default();
                for remote in remotes {
                    sum.add(&remote.second()?);
                }
                Ok(sum)
            }
        }
    }

    pub(super) async fn finish(self) -> Ended {
        match self {
            Self::Here(crew) => {
                let recorder = Arc::clone(crew.recorder());
                let mut ended = Ended::nothing(recorder);
                ended.take(crew.finish(), None, None);
                ended
            }
            Self::There(remotes) => {
                let recorder = Arc::new(Recorder::new());
                let mut ended = Ended::nothing(Arc::clone(&recorder));
                for remote in remotes {
                    let name = remote.name().to_owned();
                    match remote.finish().await {
                        Ok((outcome, clocks)) => {
                            recorder.add(&outcome.recorded);
                            ended.take(outcome, Some(name), Some(clocks));
                        }
                        Err(why) => {
                            ended.lost.get_or_insert(why);
                        }
                    }
                }
                ended
            }
        }
    }
}

impl Ended {
    fn nothing(recorder: Arc<Recorder>) -> Self {
        Self { recorder, behind: Vec::new(), broken_off: 0, drivers: Vec::new(), lost: None }
    }

    fn take(
        &mut self,
        outcome: CrewOutcome,
        name: Option<String>,
        clocks: Option<(ClockReading, ClockReading)>,
    ) {
        self.behind.extend(outcome.behind);
        self.broken_off += outcome.broken_off;
        self.drivers.push(DriverData {
            name,
            used: outcome.driver,
            lag: outcome.recorded.lag.summary(),
            beat: outcome.recorded.beat.summary(),
            clocks,
        });
    }
}
