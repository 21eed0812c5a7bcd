//! A queue of outgoing mail at work is recorded, call by call; the power goes at any of them. What the device may hold is opened:
//! what was promised leaves, what has left does not leave again, an attempt was written down before the connection, and each
//! sender hears of a failure once.
//!
//! A failure says what repeats it. `SCRINIUM_IMAGES` makes it longer.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use scrinium_clock::{Clock, ManualClock};
use scrinium_fault::{
    Cut, Cuts, Event as Recorded, Faults, Journal, Plan, Slowness, quick_folder, rerun, run_bounded,
};
use scrinium_mail_queue::outcome::Outcome;
use scrinium_mail_queue::route::Target;
use scrinium_mail_queue::{Cause, ConnectionId, ConnectionUse, Effect, Ending, SchedulerOptions};
use scrinium_outbound::{AttemptReport, Courier, Event, QueueManager, SendJob, Way, WayJob};
use serde_json::json;

use crate::common::{START_MS, Server};

const KEPT: &str = env!("CARGO_TARGET_TMPDIR");

/// Disks that are made of one recorded run.
const IMAGES_OF_ONE: u64 = 200;

const LONGEST_LIFE: Duration = Duration::from_secs(100);

const LIVES: u64 = 3;
const HOUR_MS: u64 = 3_600_000;
const DAY_MS: u64 = 24 * HOUR_MS;

/// What becomes of mail, by the host that it is for.
const HOSTS: [&str; 4] = ["takes.example", "refuses.example", "down.example", "loses.example"];

/// The other side, which says what it has seen as soon as it has.
#[derive(Default)]
struct Remote {
    marks: Option<File>,
    events: Mutex<VecDeque<Event>>,
    taken: Mutex<Vec<String>>,
    /// Whom the attempts under way are for.
    under_way: Mutex<Vec<String>>,
    /// All but the one that refuses take everything.
    is_kind: bool,
}

impl Remote {
    fn say(&self, text: &str) {
        if let Some(mut marks) = self.marks.as_ref() {
            marks.write_all(format!("{text}\n").as_bytes()).unwrap();
        }
    }
}

impl Courier for Remote {
    fn find_way(&self, job: WayJob) {
        let target = Target { host: format!("mx.{}", job.domain), address: [192, 0, 2, 1].into() };
        let way = Ok(Way { targets: vec![target] });
        self.events.lock().push_back(Event::Way { attempt: job.attempt, way });
    }

    fn send(&self, job: SendJob) {
        let host = job.entry.destination.host.clone();
        let kind = if self.is_kind && host != HOSTS[1] { HOSTS[0] } else { host.as_str() };
        let places = job.entry.waiting();
        for place in &places {
            let to = job.entry.recipient(*place).unwrap().address.to_string();
            self.say(&format!("attempt {to} {}", job.entry.id));
            if kind == HOSTS[0] || kind == HOSTS[3] {
                self.say(&format!("taken {to}"));
                self.taken.lock().push(to.clone());
            }
            self.under_way.lock().push(to);
        }
        let (ending, cause, effect) = match kind {
            "takes.example" => (Ending::Relayed, Cause::Accepted, Effect::Delivered),
            "refuses.example" => (Ending::Failed, Cause::RecipientRefused, Effect::Reached),
            "down.example" => (Ending::Deferred, Cause::ConnectionRefused, Effect::Unreachable),
            _ => (Ending::Unknown, Cause::AnswerLost, Effect::Throttled),
        };
        let outcomes = places.into_iter().map(|place| (place, Outcome::new(ending, cause))).collect();
        let report = AttemptReport { outcomes, effect, connection: ConnectionUse::Closed };
        self.events.lock().push_back(Event::Ended { attempt: job.attempt, report });
    }

    fn close(&self, _: ConnectionId) {}
}

/// Rounds, and the clock moved to where something is due, until `end_ms`.
fn run_until(manager: &mut QueueManager, remote: &Remote, clock: &ManualClock, end_ms: u64) {
    loop {
        let events: Vec<Event> = remote.events.lock().drain(..).collect();
        let ended: Vec<String> = std::mem::take(&mut *remote.under_way.lock());
        let report = manager.round(events).unwrap();
        ended.iter().for_each(|to| remote.say(&format!("ended {to}")));
        if report.has_more || !remote.events.lock().is_empty() {
            continue;
        }
        let now_ms = clock.clock().now_ms();
        let next_ms = report.wake_ms.unwrap_or(u64::MAX).max(now_ms + 1);
        clock.advance(Duration::from_millis(next_ms.min(end_ms.max(now_ms)) - now_ms));
        if next_ms > end_ms {
            return;
        }
    }
}

/// The process that is recorded.
#[test]
#[ignore = "run by the test that records it"]
fn child() {
    let Some(dir) = std::env::var_os("SCRINIUM_CHILD_DIR") else { return };
    let number = |name: &str| std::env::var(name).unwrap().parse::<u64>().unwrap();
    let (dir, life) = (Path::new(&dir), number("SCRINIUM_CHILD_LIFE"));
    let mut random = StdRng::seed_from_u64(number("SCRINIUM_CHILD_SEED") ^ life);
    let clock = Clock::manual(START_MS + life * HOUR_MS);
    let marks = File::create(dir.join("marks")).unwrap();
    let server = Server::open(dir, &clock.clock());
    let remote = Arc::new(Remote { marks: Some(marks), ..Remote::default() });
    remote.say("prepared");
    let mut manager = server.manager(remote.clone(), SchedulerOptions::default());
    let mut router = server.router();
    for step in 0..random.random_range(4..14) {
        let host = HOSTS[random.random_range(0..HOSTS.len())];
        let to = format!("n{}@{host}", life * 1000 + step);
        server.deposit(json!({"Form": "Memo", "From": "ada", "SendTo": [to], "Subject": "x", "Body": "y"}));
        remote.say(&format!("sent {to}"));
        if random.random_bool(0.7) {
            server.route_all(&mut router);
            let end_ms = clock.clock().now_ms() + random.random_range(0..180_000);
            run_until(&mut manager, &remote, &clock, end_ms);
        }
    }
    remote.say("over");
}

/// Runs a life over what is in `dir`, and adds to the journal.
fn record(dir: &Path, journal: &Path, seed: u64, life: u64) {
    let mut command = rerun(module_path!(), "child").unwrap();
    command.env("SCRINIUM_CHILD_DIR", dir).env("SCRINIUM_CHILD_SEED", seed.to_string());
    command.env("SCRINIUM_CHILD_LIFE", life.to_string());
    let faults = Faults {
        slowness: Some(Slowness { seed: seed ^ life, one_in: 8, max_us: 400 }),
        ..Faults::default()
    };
    faults.interpose(&mut command, dir, journal);
    let output = run_bounded(command.stdout(Stdio::null()).stderr(Stdio::piped()), LONGEST_LIFE).unwrap();
    let read = Journal::read(journal).unwrap();
    let over = read.events().iter().filter(|event| **event == Recorded::Mark("over\n")).count() as u64;
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(over, life + 1, "life {life} of seed {seed}: {}: {errors}", output.status);
}

/// What was said of one message until the power went.
#[derive(Debug, Default)]
struct Said {
    sent: bool,
    taken: usize,
    /// The entry of an attempt whose end was not told.
    under_way: Option<String>,
}

fn said(marks: &[String]) -> BTreeMap<String, Said> {
    let mut all: BTreeMap<String, Said> = BTreeMap::new();
    for mark in marks {
        let words: Vec<&str> = mark.split_whitespace().collect();
        let &[what, to, ..] = words.as_slice() else { continue };
        let said = all.entry(to.to_owned()).or_default();
        match what {
            "sent" => said.sent = true,
            "taken" => said.taken += 1,
            "attempt" => said.under_way = Some(words[2].to_owned()),
            "ended" => said.under_way = None,
            _ => panic!("{mark}"),
        }
    }
    all
}

/// What is on the disk holds what was promised, and continues.
fn check_disk(cut: &Cut) {
    let said = said(&cut.marks);
    let clock = Clock::manual(START_MS + LIVES * HOUR_MS);
    let server = Server::open(&cut.folder, &clock.clock());
    let entries = server.documents("smtp.box");
    for (to, said) in &said {
        let Some(id) = &said.under_way else { continue };
        let entry = entries.iter().find(|entry| entry["_id"] == id.as_str());
        let is_known = entry.is_none_or(|entry| entry.contains_key("attempt") || entry["attempts"] != 0);
        // Without an entry its end is on the disk, and was not told any more.
        assert!(is_known, "an attempt for {to} is not written down: {entry:?}");
    }
    let remote = Arc::new(Remote { is_kind: true, ..Remote::default() });
    let mut manager = server.manager(remote.clone(), SchedulerOptions::default());
    let mut router = server.router();
    for day in 1..=6 {
        server.route_all(&mut router);
        run_until(&mut manager, &remote, &clock, START_MS + LIVES * HOUR_MS + day * DAY_MS);
    }
    server.route_all(&mut router);
    let notices = server.documents("mail/ada");
    let taken = remote.taken.lock();
    for (to, said) in &said {
        let again = taken.iter().filter(|taken| *taken == to).count();
        let is_about = |body: &str| body.contains(to.as_str());
        let told = notices
            .iter()
            .filter(|notice| notice["Subject"] == "Your message was not delivered")
            .filter(|notice| notice["Body"].as_str().is_some_and(is_about))
            .count();
        let all = said.taken + again;
        if to.ends_with(HOSTS[1]) {
            assert_eq!((all, told), (0, 1), "{to} was refused, and its sender heard of it once: {said:?}");
            continue;
        }
        assert!(told == 0 && all >= 1, "{to} has not left: {said:?}");
        // A second time only where the answer of the first was lost, or its end not written down.
        let may_repeat = to.ends_with(HOSTS[3]) || said.under_way.is_some();
        assert!(may_repeat || all == 1, "{to} has left {all} times: {said:?}");
    }
    assert!(server.documents("smtp.box").is_empty(), "something is left in the queue");
    server.close();
}

#[test]
fn what_was_promised_leaves_once_after_a_power_loss() {
    let all = Plan::from_environment(40);
    println!("{all}");
    for run in all.runs(all.images.div_ceil(IMAGES_OF_ONE)) {
        let plan = Plan { seed: all.seed.wrapping_add(run << 32), ..all.clone() };
        let folder = quick_folder();
        let (dir, journal) = (folder.path().join("store"), folder.path().join("journal"));
        if plan.journal.is_none() {
            std::fs::create_dir(&dir).unwrap();
            (0..LIVES).for_each(|life| record(&dir, &journal, plan.seed, life));
        }
        let path = plan.journal.clone().unwrap_or(journal);
        let (journal, images) = (Journal::read(&path).unwrap(), plan.images.min(IMAGES_OF_ONE));
        let scratch = folder.path();
        let cuts =
            Cuts { journal: &journal, before: None, seed: plan.seed, images, only: plan.only, scratch };
        if let Err(broken) = cuts.check(check_disk) {
            let message = plan.keep(&path, Path::new(KEPT), &broken);
            let _ = folder.keep();
            panic!("{message}");
        }
    }
}
