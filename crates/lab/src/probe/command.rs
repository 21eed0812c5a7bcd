//! The probe at work: rounds when they are due, what was seen told as it comes, and an exit code.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use scrinium_lab_report::milliseconds;
use scrinium_lab_report::run::{Subject, SubjectSummary};
use scrinium_terminal::{CommandOutcome, OutputError, print, say};
use serde_json::json;

use super::arguments::ProbeArguments;
use super::prometheus;
use super::record::{Point, ProbeObjectives, Record};
use super::rounds::{DatabaseRounds, MailRounds, Operations};
use super::timetable::Timetable;
use crate::driver::{Client, Failure};
use crate::error::LabError;

enum Rounds {
    Database(DatabaseRounds),
    Mail(MailRounds),
}

impl Rounds {
    fn subject(&self) -> Subject {
        match self {
            Self::Database(_) => Subject::Database,
            Self::Mail(_) => Subject::Mail,
        }
    }

    async fn round(&mut self) -> Result<Operations, Failure> {
        match self {
            Self::Database(rounds) => rounds.round().await,
            Self::Mail(rounds) => rounds.round().await,
        }
    }
}

/// `lab probe`.
pub(crate) async fn run(arguments: ProbeArguments) -> Result<CommandOutcome, LabError> {
    let users = users(&arguments)?;
    let objectives = ProbeObjectives {
        average_ms: arguments.max_average,
        p99_ms: arguments.max_p99,
        mail_p99_ms: arguments.max_mail_p99,
        errors_percent: arguments.max_errors,
    };
    let record = Arc::new(Mutex::new(Record::default()));
    if let Some(port) = arguments.prometheus {
        let address = prometheus::serve(port, Arc::clone(&record), objectives)
            .await
            .map_err(|error| LabError::Usage(format!("cannot listen on port {port}: {error}")))?;
        say(&format!("The probe\u{2019}s figures are at http://{address}/metrics"));
    }
    let begin = Instant::now();
    let end = arguments.length.map(|length| begin + length);
    let json = arguments.json;
    let printed = Mutex::new(Ok(()));
    let tell = |points: &[Point]| {
        let mut record = record.lock();
        let mut printed = printed.lock();
        for point in points {
            record.add(point);
            if let Err(error) = print_line(&if json { json!(point).to_string() } else { line(point) }) {
                *printed = Err(error);
            }
        }
        // Nobody sees any more what it finds: anyone who had it begun is gone, killed perhaps. Where there is no room for a
        // line there may be some for the next one.
        !matches!(*printed, Err(OutputError::NobodyReads)) || arguments.prometheus.is_some()
    };
    let works = users.into_iter().map(|user| work(user, begin, end, arguments.interval, &tell));
    let all = futures_of(works);
    tokio::select! {
        () = all => {}
        _ = tokio::signal::ctrl_c() => {}
    }
    let summaries = record.lock().summaries();
    let found = objectives.judge(&summaries);
    printed.into_inner()?;
    if json {
        print_line(&json!({"summary": summaries, "objectives": found}).to_string())?;
    } else {
        print_line(&table(&summaries))?;
        for missed in found.iter().filter(|found| !found.reached) {
            print_line(&format!(
                "MISSED: {} ({}) {:.2} {}, where at most {} was wanted.",
                missed.objective,
                missed.subject.name(),
                missed.value,
                missed.unit,
                missed.limit
            ))?;
        }
    }
    let answered = summaries.values().any(|summary| summary.rounds > summary.failed);
    Ok(match found.iter().all(|found| found.reached) && answered {
        true => CommandOutcome::Done,
        false => CommandOutcome::Missed,
    })
}

/// Who probes: one user for the database, one for mail, each with a connection of his own.
fn users(arguments: &ProbeArguments) -> Result<Vec<Rounds>, LabError> {
    if arguments.interval.is_zero() {
        return Err(LabError::Usage("the interval is longer than nothing".to_owned()));
    }
    let client = || {
        let account = (arguments.user.as_str(), arguments.password.as_str());
        Client::new(&arguments.target, Some(account), arguments.time_out).map_err(LabError::Usage)
    };
    let mut users = Vec::new();
    if let (Some(database), Some(view)) = (&arguments.database, &arguments.view) {
        users.push(Rounds::Database(DatabaseRounds::new(client()?, database, view, &arguments.user)));
    }
    if arguments.mail {
        let own = format!("mail/{}", arguments.user);
        let database = arguments.mail_database.as_ref().unwrap_or(&own);
        users.push(Rounds::Mail(MailRounds::new(
            client()?,
            &arguments.user,
            &arguments.mail_box,
            database,
            arguments.time_out,
        )));
    }
    if users.is_empty() {
        return Err(LabError::Usage(
            "say what is to be probed: --database DB --view VIEW, --mail, or both".to_owned(),
        ));
    }
    Ok(users)
}

/// One user's rounds until the end, or until nobody hears about them.
async fn work(
    mut user: Rounds,
    begin: Instant,
    end: Option<Instant>,
    interval: Duration,
    tell: &impl Fn(&[Point]) -> bool,
) {
    let mut timetable = Timetable::new(begin, interval);
    while end.is_none_or(|end| timetable.due() < end) {
        tokio::time::sleep_until(timetable.due().into()).await;
        let outcome = user.round().await;
        let points = timetable.done(user.subject(), outcome, Instant::now());
        if !tell(&points) {
            return;
        }
    }
}

/// Waits for all of a few.
async fn futures_of(works: impl Iterator<Item = impl Future<Output = ()>>) {
    let mut works: Vec<_> = works.map(Box::pin).collect();
    std::future::poll_fn(|context| {
        works.retain_mut(|work| work.as_mut().poll(context).is_pending());
        if works.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
}

/// Lines for standard output.
fn print_line(text: &str) -> Result<(), OutputError> {
    print(&format!("{}\n", text.trim_end()))
}

/// One round for people.
fn line(point: &Point) -> String {
    let at = jiff::Timestamp::from_millisecond(point.at_unix_ms).unwrap_or_default();
    let mut text = format!("{at:.1}  {:<9}", point.subject.name());
    if let Some(failure) = &point.failure {
        text.push_str(&format!("FAILED after {}: {failure}", milliseconds(point.response_ms)));
        return text;
    }
    text.push_str(&format!("{:>10}  ", milliseconds(point.response_ms)));
    if point.operations.is_empty() {
        text.push_str("waited for the round before");
    }
    let parts: Vec<String> =
        point.operations.iter().map(|(operation, ms)| format!("{operation} {ms:.1}")).collect();
    text.push_str(&parts.join(" \u{b7} "));
    text
}

/// The summary for people.
fn table(summaries: &std::collections::BTreeMap<Subject, SubjectSummary>) -> String {
    let mut text = format!(
        "\n{:<22}{:>8}{:>8}{:>11}{:>11}{:>11}{:>11}\n",
        "", "Rounds", "Failed", "Average", "Median", "p99", "Slowest"
    );
    let mut row = |name: &str, rounds: String, failed: String, times: &scrinium_lab_report::TimesSummary| {
        text.push_str(&format!(
            "{name:<22}{rounds:>8}{failed:>8}{:>11}{:>11}{:>11}{:>11}\n",
            milliseconds(times.mean_ms),
            milliseconds(times.p50_ms),
            milliseconds(times.p99_ms),
            milliseconds(times.max_ms)
        ));
    };
    for (subject, summary) in summaries {
        row(subject.name(), summary.rounds.to_string(), summary.failed.to_string(), &summary.response);
        for (operation, times) in &summary.operations {
            row(&format!("  {operation}"), String::new(), String::new(), times);
        }
    }
    text
}
