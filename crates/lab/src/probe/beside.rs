//! A probe alongside a load run: a process of its own, whose points come onto the run's time axis.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::Duration;

use clap::Args;
use scrinium_lab_report::run::{ProbePart, ProbePoint};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

use super::record::{Point, Record};
use crate::error::LabError;
use crate::values::duration;

/// More points than this are not kept: a day of one each second.
const MOST_POINTS: usize = 100_000;

/// The probe of a load run.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct ProbeBesideArguments {
    /// Have a probe, a process of its own, be one more user of a shared database (see lab probe)
    #[arg(long)]
    pub probe: bool,
    /// The shared database [default: the first user's mail database]
    #[arg(long, value_name = "DB", requires_all = ["probe", "probe_view"])]
    pub probe_database: Option<String>,
    /// What to read there: DESIGN/VIEW, or the name of a folder
    #[arg(long, value_name = "VIEW", requires = "probe_database")]
    pub probe_view: Option<String>,
    /// The probe also sends messages to itself
    #[arg(long, requires = "probe")]
    pub probe_mail: bool,
    /// From one round of the probe to the next
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    pub probe_interval: Duration,
}

/// Who probes, and where.
pub(crate) struct Account<'a> {
    /// Empty: there is none that is spoken to over HTTP.
    pub(crate) target: &'a str,
    pub(crate) user: &'a str,
    pub(crate) password: &'a str,
    pub(crate) mail_box: &'a str,
    /// Where the first user's mail lies.
    pub(crate) first_mail_database: String,
}

/// A probe at work.
pub(crate) struct ProbeBeside {
    child: Child,
    points: JoinHandle<Vec<Point>>,
    part: ProbePart,
}

impl ProbeBeside {
    /// Begins a probe if there is to be one. It ends with this process; if that is killed, with its next round.
    ///
    /// # Errors
    /// It cannot be started.
    pub(crate) fn start(
        arguments: &ProbeBesideArguments,
        account: &Account<'_>,
    ) -> Result<Option<Self>, LabError> {
        if !arguments.probe {
            return Ok(None);
        }
        if account.target.is_empty() {
            return Err(LabError::Usage(
                "--probe works on documents over HTTP: add --target http://HOST:PORT, or leave it out"
                    .to_owned(),
            ));
        }
        let database =
            arguments.probe_database.clone().unwrap_or_else(|| account.first_mail_database.clone());
        let view = arguments.probe_view.clone().unwrap_or_else(|| "mail/inbox".to_owned());
        let interval = format!("{}s", arguments.probe_interval.as_secs_f64());
        let (program, first) = crate::program::laboratory()?;
        let mut command = Command::new(program);
        command
            .args(first)
            .args(["probe", "--json", "--target", account.target, "--user", account.user])
            .args(["--database", &database, "--view", &view, "--interval", &interval])
            .args(["--mail-box", account.mail_box])
            .env("SCRINIUM_LAB_PASSWORD", account.password)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true);
        if arguments.probe_mail {
            command.arg("--mail");
        }
        let failed = |why: String| LabError::Usage(format!("the probe cannot be started: {why}"));
        let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
        let output = child.stdout.take().ok_or_else(|| failed("it has no output".to_owned()))?;
        let points = tokio::spawn(async move {
            let mut lines = BufReader::new(output).lines();
            let mut points: Vec<Point> = Vec::new();
            while let Ok(Some(line)) = lines.next_line().await {
                if let Some(point) = serde_json::from_str(&line).ok().filter(|_| points.len() < MOST_POINTS) {
                    points.push(point);
                }
            }
            points
        });
        let part = ProbePart {
            database,
            view,
            mail: arguments.probe_mail,
            interval_s: arguments.probe_interval.as_secs_f64(),
            summary: BTreeMap::new(),
            points: Vec::new(),
        };
        Ok(Some(Self { child, points, part }))
    }

    /// Ends the probe. `began` is when the run did; `hold_s` the hold phase on its time axis. What was due before
    /// the run does not count: then databases were still being made.
    pub(crate) async fn end(mut self, began: jiff::Timestamp, hold_s: (f64, f64)) -> ProbePart {
        // One that has ended by itself needs no signal.
        let _ = self.child.start_kill();
        let _ = self.child.wait().await;
        let points = self.points.await.unwrap_or_default();
        let mut record = Record::default();
        let began_ms = began.as_millisecond();
        for point in &points {
            #[allow(clippy::cast_precision_loss, reason = "a run takes no more than 2^53 ms")]
            let at_s = point.at_unix_ms.saturating_sub(began_ms) as f64 / 1000.0;
            if at_s >= hold_s.0 && at_s < hold_s.1 {
                record.add(point);
            }
            if at_s >= 0.0 {
                let failed = point.failure.is_some();
                let (subject, response_ms) = (point.subject, point.response_ms);
                self.part.points.push(ProbePoint { at_s, subject, response_ms, failed });
            }
        }
        self.part.points.sort_by(|one, other| one.at_s.total_cmp(&other.at_s));
        self.part.summary = record.summaries();
        self.part
    }
}
