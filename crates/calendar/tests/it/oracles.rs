//! The same questions to other programs: python-dateutil, libical, recurring-ical-events. Each difference has a reason here, by
//! the standard's word.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use scrinium_calendar::civil::{CivilTime, DAY_S};
use scrinium_calendar::rule::Rule;
use scrinium_dav_wire::recurrence::{Frequency, RecurrenceRule};
use scrinium_fault::skip;
use serde_json::{Value, json};

use crate::generator::{horizon_days, rule};
use crate::support::{calendar, cases, days, series, zone};

/// Answers that are compared of each rule.
const MOST: usize = 40;

/// The folder with other programs, or why there is none.
fn oracles() -> Result<PathBuf, String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/calendar-oracles");
    let output = Command::new(script).output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()));
    }
    Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
}

/// Questions to one program, and its answers; `None` where the test is skipped.
fn ask(oracle: &str, questions: &[Value]) -> Option<Vec<Value>> {
    let folder = match oracles() {
        Ok(folder) => folder,
        Err(why) => {
            skip(format!("{oracle} is not there to be asked: {why}"));
            return None;
        }
    };
    if oracle == "libical" && !folder.join("debian").is_dir() {
        skip("libical is not there to be asked: apt does not have it on this machine");
        return None;
    }
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle.py");
    let mut child = Command::new("python3")
        .args([program.as_os_str(), folder.as_os_str(), oracle.as_ref()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let text: String = questions.iter().map(|question| format!("{question}\n")).collect();
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    let answers: Vec<Value> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(answers.len(), questions.len(), "{oracle} answers each question");
    Some(answers)
}

/// Rules and starts, the same in each run unless `SCRINIUM_SEED` says otherwise.
fn samples(count: u32) -> Vec<(RecurrenceRule, CivilTime)> {
    let seed: u64 = std::env::var("SCRINIUM_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    println!("SCRINIUM_SEED={seed}");
    let bytes: Vec<u8> = seed.to_le_bytes().into_iter().cycle().take(32).collect();
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let strategy = (rule(), 0_i64..20_000, 0_i64..86_400);
    let sample = |runner: &mut TestRunner| {
        let (rule, day, second) = strategy.new_tree(runner).unwrap().current();
        let rule = permitted(rule);
        // Whole minutes are what libical and dateutil agree on most; seconds come by BYSECOND.
        (rule, CivilTime(CivilTime::new(1990, 1, 1, 0).0 + day * DAY_S + second / 60 * 60))
    };
    (0..count).map(|_| sample(&mut runner)).collect()
}

/// Without what RFC 5545 does not permit (section 3.3.10), which each program takes in a way of its own; and with lists in
/// order, since libical takes their numbers as they stand.
fn permitted(mut rule: RecurrenceRule) -> RecurrenceRule {
    use Frequency::{Daily, Monthly, Weekly, Yearly};
    if rule.frequency != Yearly {
        rule.by_week.clear();
    }
    if matches!(rule.frequency, Daily | Weekly | Monthly) {
        rule.by_year_day.clear();
    }
    if rule.frequency == Weekly {
        rule.by_month_day.clear();
    }
    if rule.frequency < Frequency::Hourly {
        // They look at each second of a year.
        rule.by_month.clear();
        rule.by_month_day.clear();
        rule.by_year_day.clear();
        rule.by_day.clear();
    }
    for (which, _) in &mut rule.by_day {
        let most = if rule.frequency == Monthly || !rule.by_month.is_empty() { 5 } else { 53 };
        if rule.frequency < Monthly || !rule.by_week.is_empty() || which.abs() > most {
            *which = 0;
        }
    }
    rule.by_day.sort_by_key(|(which, day)| (day.from_monday(), *which));
    rule.by_day.dedup();
    let lists = [
        &mut rule.by_month,
        &mut rule.by_month_day,
        &mut rule.by_year_day,
        &mut rule.by_week,
        &mut rule.by_hour,
        &mut rule.by_minute,
        &mut rule.by_second,
        &mut rule.by_position,
    ];
    for list in lists {
        list.sort_unstable();
        list.dedup();
    }
    let RecurrenceRule {
        by_month, by_month_day, by_year_day, by_week, by_hour, by_minute, by_second, ..
    } = &rule;
    let others = [by_month, by_month_day, by_year_day, by_week, by_hour, by_minute, by_second];
    if rule.by_day.is_empty() && others.iter().all(|list| list.is_empty()) {
        rule.by_position.clear();
    }
    rule
}

fn text(time: CivilTime) -> String {
    let (year, month, day) = time.date();
    let second = time.second_of_day();
    format!("{year:04}{month:02}{day:02}T{:02}{:02}{:02}", second / 3600, second / 60 % 60, second % 60)
}

/// Rules that give something within the horizon, for each program its answers, and those that differ without a reason.
fn compare(oracle: &str, count: u32, reason: impl Fn(&RecurrenceRule) -> Option<&'static str>) {
    let samples = samples(count);
    let horizon =
        |rule: &RecurrenceRule, start: CivilTime| CivilTime(start.0 + horizon_days(rule.frequency) * DAY_S);
    let questions: Vec<Value> = samples
        .iter()
        .map(|(rule, start)| {
            json!({"rule": rule.to_string(), "start": text(*start), "horizon": text(horizon(rule, *start)), "most": MOST})
        })
        .collect();
    let Some(answers) = ask(oracle, &questions) else { return };
    let mut compared = 0;
    let mut unexplained = Vec::new();
    for ((rule, start), answer) in samples.iter().zip(answers) {
        let Some(theirs) = answer.as_array() else { continue };
        let end = horizon(rule, *start);
        let is_within = |text: &String| *text < self::text(end);
        let theirs: Vec<String> =
            theirs.iter().map(|time| time.as_str().unwrap().to_owned()).filter(is_within).collect();
        let compiled = Rule::new(rule, *start, false).unwrap();
        let ours: Vec<String> =
            compiled.walk_from(*start).take_while(|time| *time < end).take(MOST).map(self::text).collect();
        compared += 1;
        if ours != theirs && reason(rule).is_none() {
            unexplained
                .push(format!("{rule} from {}\n  ours   {ours:?}\n  theirs {theirs:?}", self::text(*start)));
        }
    }
    println!("{oracle}: {compared} of {count} rules compared");
    assert!(compared * 3 > count, "{oracle} answers most rules: {compared} of {count}");
    assert!(unexplained.is_empty(), "{} differ:\n{}", unexplained.len(), unexplained.join("\n"));
}

/// Why dateutil differs.
fn dateutil_reason(rule: &RecurrenceRule) -> Option<&'static str> {
    let has_number = |numbered: bool| rule.by_day.iter().any(|(which, _)| (*which != 0) == numbered);
    if !rule.by_week.is_empty() && rule.by_day.is_empty() {
        return Some(
            "it takes all days of a week; what a rule does not say comes from DTSTART (section 3.3.10)",
        );
    }
    if has_number(true) && has_number(false) {
        return Some("of `MO,2TU` it takes days that are both; BYDAY is a list of days (section 3.3.10)");
    }
    if rule.frequency == Frequency::Weekly && !rule.by_position.is_empty() {
        return Some("of the first week it sees what follows DTSTART; BYSETPOS chooses from whole periods");
    }
    if rule.by_week.iter().any(|week| *week < -1) {
        return Some("of a week counted from the end it leaves out the days in another year");
    }
    None
}

/// Why libical differs.
fn libical_reason(rule: &RecurrenceRule) -> Option<&'static str> {
    use Frequency::{Hourly, Weekly, Yearly};
    if !rule.by_position.is_empty() {
        return Some(
            "it knows BYSETPOS for days alone; it chooses from all times of a period (section 3.3.10)",
        );
    }
    if [&rule.by_month_day, &rule.by_year_day, &rule.by_week].into_iter().flatten().any(|number| *number < 0)
    {
        return Some(
            "it forgets numbers from the end where they limit, and counts weeks as if they began on Monday",
        );
    }
    if rule.frequency == Yearly && !rule.by_month_day.is_empty() && rule.by_month.is_empty() {
        return Some("it takes the month of DTSTART; BYMONTHDAY expands a year (table in section 3.3.10)");
    }
    if !rule.by_week.is_empty() {
        return Some(
            "it does not take the day of DTSTART where there is no BYDAY, and weeks by its own count",
        );
    }
    let times = [&rule.by_hour, &rule.by_minute, &rule.by_second];
    if rule.frequency <= Hourly && times.iter().any(|list| !list.is_empty()) {
        return Some(
            "of rules finer than a day it loses the first times that fit, and INTERVAL where the same part limits",
        );
    }
    (rule.frequency == Weekly && rule.interval > 1 && rule.week_start.is_some())
        .then_some("it loses the first week where WKST makes it begin on the day of DTSTART")
}

#[test]
fn dateutil_gives_the_same() {
    compare("dateutil", cases(12), dateutil_reason);
}

#[test]
fn libical_gives_the_same() {
    compare("libical", cases(16), libical_reason);
}

/// Events of 2026, and why recurring-ical-events differs, where it does.
const EVENTS: &[(&str, Option<&str>)] = &[
    ("DTSTART;TZID=Europe/Berlin:20260105T090000\nRRULE:FREQ=WEEKLY;COUNT=30", None),
    ("DTSTART;TZID=Asia/Tokyo:20260105T090000\nRRULE:FREQ=DAILY;UNTIL=20260108T000000Z", None),
    ("DTSTART;TZID=America/New_York:20260105T200000\nRRULE:FREQ=DAILY;UNTIL=20260108T010000Z", None),
    (
        "DTSTART;TZID=America/New_York:20260105T200000\nRRULE:FREQ=DAILY;UNTIL=20260107",
        Some("it ends a day in UTC; a day is one of DTSTART's clocks (section 3.3.10)"),
    ),
    (
        "DTSTART;TZID=Europe/Berlin:20260327T023000\nRRULE:FREQ=DAILY;COUNT=5",
        Some("a time that clocks skip is not an instance, and is not counted (section 3.3.10)"),
    ),
    ("DTSTART;TZID=Europe/Berlin:20261024T023000\nRRULE:FREQ=DAILY;COUNT=3", None),
    ("DTSTART;TZID=Europe/Berlin:20260105T090000\nRRULE:FREQ=DAILY;COUNT=4\nEXDATE:20260106T080000Z", None),
    (
        "DTSTART;TZID=Europe/Berlin:20260105T090000\nRRULE:FREQ=DAILY;COUNT=4\nEXDATE;VALUE=DATE:20260106",
        None,
    ),
    (
        "DTSTART;TZID=Europe/Berlin:20260105T090000\nRDATE;TZID=Europe/Berlin:20260201T090000,20260301T090000\nEXDATE;TZID=Europe/Berlin:20260201T090000",
        None,
    ),
    ("DTSTART:20260105T090000Z\nDURATION:PT1H\nRDATE;VALUE=PERIOD:20260201T080000Z/PT3H", None),
    (
        "DTSTART;TZID=Europe/Berlin:20260105T090000\nSEQUENCE:3\nRRULE:FREQ=DAILY;COUNT=3\n+RECURRENCE-ID;TZID=Europe/Berlin:20260106T090000\nDTSTART;TZID=Europe/Berlin:20260301T120000\nSEQUENCE:1",
        None,
    ),
    (
        "DTSTART;TZID=Europe/Berlin:20260105T090000\nRRULE:FREQ=DAILY;COUNT=3\n+RECURRENCE-ID:20260106T080000Z\nDTSTART;TZID=Europe/Berlin:20260301T120000",
        None,
    ),
    (
        "RECURRENCE-ID:20260106T080000Z\nDTSTART:20260106T090000Z\n+RECURRENCE-ID:20260107T080000Z\nDTSTART:20260107T090000Z",
        None,
    ),
    (
        "DTSTART;TZID=Europe/Berlin:20260326T090000\nRRULE:FREQ=DAILY;COUNT=6\n+RECURRENCE-ID;RANGE=THISANDFUTURE;TZID=Europe/Berlin:20260328T090000\nDTSTART;TZID=Europe/Berlin:20260328T110000",
        None,
    ),
    ("DTSTART:20260101T090000Z\nRRULE:FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-2", None),
    (
        "DTSTART:20260101T090000Z\nRRULE:FREQ=WEEKLY;BYDAY=MO;COUNT=3",
        Some("DTSTART is the first of COUNT (section 3.3.10)"),
    ),
    ("DTSTART;TZID=W. Europe Standard Time:20260105T090000\nRRULE:FREQ=WEEKLY;COUNT=30", None),
];

#[test]
fn recurring_ical_events_gives_the_same() {
    let questions: Vec<Value> = EVENTS
        .iter()
        .map(|(lines, _)| {
            let text = String::from_utf8(calendar(lines).to_bytes()).unwrap();
            json!({"calendar": text, "from": "20251201T000000", "to": "20270101T000000"})
        })
        .collect();
    let Some(answers) = ask("recurring", &questions) else { return };
    let floating = zone("Europe/Berlin");
    for ((lines, reason), theirs) in EVENTS.iter().zip(answers) {
        let found =
            series(lines).occurrences(days((2025, 12, 1), (2027, 1, 1)), &floating, 1_000).occurrences;
        let ours: Vec<String> =
            found.iter().map(|found| text(CivilTime(found.instants(&floating).0.0))).collect();
        assert_eq!(json!(ours) != theirs, reason.is_some(), "{lines}\n  ours   {ours:?}\n  theirs {theirs}");
    }
}
