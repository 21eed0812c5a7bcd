//! The steps that are about mail: messages that are sent until all have arrived, and a queue that is let go.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use scrinium_lab_report::run::Deliveries;
use serde_json::Value;

use super::{Stage, failed, make_folder, tell_console};
use crate::content::Person;
use crate::driver::{Dialect, FailureKind, Ledger};
use crate::experiment::cells::substitute;
use crate::experiment::definition::Scalar;
use crate::experiment::error::ExperimentError;
use crate::experiment::mail::{
    FAR_DOMAIN, Mailboxes, Manner, Peer, PeerKind, SINK_DOMAIN, SendOrder, Sink, domain, people, send_all,
};
use crate::experiment::server::free_ports;
use crate::experiment::step::{DrainStep, MailStep, Start};
use crate::experiment::usage::Measured;
use crate::measure::Times;
use crate::monitor::ProcessMeter;

/// Nothing arrives for so long: what is missing is lost.
const ARRIVES_WITHIN: Duration = Duration::from_secs(120);
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// Mailboxes are read again after this while messages are missing.
const READ_AGAIN: Duration = Duration::from_secs(2);
const READ_WITHIN: Duration = Duration::from_secs(60);

/// What a step says where it says nothing.
const CONNECTIONS: usize = 8;
const PEOPLE: usize = 20;
const BYTES: usize = 10_000;

/// More of either are a mistake.
const MOST_CONNECTIONS: usize = 1000;
const MOST_PEOPLE: usize = 100_000;
const MOST_MESSAGES: u64 = 10_000_000;

/// Where a server of ours listens for mail.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MailPorts {
    smtp: u16,
    lmtp: u16,
    submission: u16,
    imap: u16,
    imaps: u16,
}

impl MailPorts {
    /// Where mail is read, plain and encrypted.
    pub(super) fn imap_urls(&self) -> [String; 2] {
        [format!("imap://127.0.0.1:{}", self.imap), format!("imaps://127.0.0.1:{}", self.imaps)]
    }

    pub(super) fn smtp_url(&self) -> String {
        format!("smtp://127.0.0.1:{}", self.smtp)
    }
}

/// What waits for the sink.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    ledger: Arc<Ledger>,
    messages: u64,
}

/// Whom messages are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Goal {
    /// People of server N, from 1.
    People(usize),
    Sink(Manner),
}

/// A step, with its numbers.
struct MailPlan {
    goal: Goal,
    order: SendOrder,
    people: Vec<Person>,
    kills: u64,
}

/// What is to be done while messages are on their way.
struct Course<'t> {
    goal: Goal,
    messages: u64,
    people: &'t [Person],
    ledger: &'t Arc<Ledger>,
    tell: &'t (dyn Fn(&str) + Sync),
    name: &'t str,
}

impl Stage<'_> {
    /// The peer that a step wants, if it wants one.
    pub(super) fn peer_kind(&self, start: &Start, name: &str) -> Result<Option<PeerKind>, ExperimentError> {
        let product = match &start.product {
            Some(product) => self.text(product, name)?,
            None => String::new(),
        };
        match (PeerKind::of(&product), product.as_str()) {
            (None, "" | "scrinium") => Ok(None),
            (None, _) => Err(wrong(
                name,
                format!(
                    "{product} is no product that is known here: scrinium, postfix, dovecot, postfix+dovecot"
                ),
            )),
            (kind, _) => Ok(kind),
        }
    }

    /// Starts Postfix or Dovecot. Where they are not, the cell says so, and nothing of it is done.
    pub(super) async fn start_peer(
        &mut self,
        kind: PeerKind,
        name: &str,
    ) -> Result<Measured, ExperimentError> {
        let folder = self.data.join("peer");
        make_folder(&folder)?;
        if let Some(why) = kind.missing(&folder) {
            self.gathered.invalid.push(why);
            self.is_absent = true;
            return Ok(Measured::new());
        }
        self.start_sink(name).await?;
        let Some(sink) = self.sink.as_ref().map(|sink| sink.address) else { return Ok(Measured::new()) };
        let began = Instant::now();
        let peer = Peer::start(kind, &folder, sink, &self.command.password).await;
        let peer = peer.map_err(|why| wrong(name, why))?;
        self.gathered.server = Some((peer.name().to_owned(), peer.version.clone()));
        self.peer = Some(peer);
        Ok(Measured::from([("seconds".to_owned(), began.elapsed().as_secs_f64())]))
    }

    pub(super) async fn start_sink(&mut self, name: &str) -> Result<(), ExperimentError> {
        if self.sink.is_none() {
            self.sink = Some(Sink::start().await.map_err(|error| wrong(name, error.to_string()))?);
        }
        Ok(())
    }

    /// Has ports for this many servers.
    pub(super) fn take_ports(&mut self, servers: usize, name: &str) -> Result<(), ExperimentError> {
        while self.ports.len() < servers {
            let [smtp, lmtp, submission, imap, imaps] =
                free_ports().map_err(|error| wrong(name, error.to_string()))?;
            self.ports.push(MailPorts { smtp, lmtp, submission, imap, imaps });
        }
        Ok(())
    }

    /// What stands for `{name}` in the settings of server `number`.
    pub(super) fn mail_names(&self, number: usize) -> BTreeMap<String, String> {
        let mut names = BTreeMap::from([("number".to_owned(), number.to_string())]);
        let mut add = |name: &str, port: u16| names.insert(name.to_owned(), port.to_string());
        if let Some(own) = self.ports.get(number.saturating_sub(1)) {
            add("smtp_port", own.smtp);
            add("lmtp_port", own.lmtp);
            add("submission_port", own.submission);
            add("imap_port", own.imap);
            add("imaps_port", own.imaps);
        }
        if let Some(next) = self.ports.get(number).or_else(|| self.ports.first()) {
            add("next_smtp_port", next.smtp);
        }
        if let Some(sink) = &self.sink {
            add("sink_port", sink.address.port());
        }
        names
    }

    fn text(&self, scalar: &Scalar, name: &str) -> Result<String, ExperimentError> {
        substitute(&scalar.0, &self.values).map_err(|why| wrong(name, why))
    }

    /// Sends messages, waits until all are where they belong, and looks at each.
    pub(super) async fn mail(
        &mut self,
        step: &MailStep,
        name: &str,
        tell: &(dyn Fn(&str) + Sync),
    ) -> Result<Measured, ExperimentError> {
        let plan = self.mail_plan(step, name)?;
        let (goal, messages) = (plan.goal, plan.order.messages);
        let ledger = Arc::new(Ledger::new(rand::random(), plan.order.connections, 1, ARRIVES_WITHIN));
        self.enter_people(&plan, step, name).await?;
        if let (Goal::Sink(manner), Some(sink)) = (goal, &self.sink) {
            sink.behave(manner);
            sink.note(Arc::clone(&ledger));
            self.waiting = Some(Waiting { ledger: Arc::clone(&ledger), messages });
        }
        let course = Course { goal, messages, people: &plan.people, ledger: &ledger, tell, name };
        let before = self.arrived(&course).await?;
        let mut meter = ProcessMeter::of(&self.pids());
        let began = Instant::now();
        let acknowledged = Arc::new(AtomicU64::new(0));
        let mut sending = tokio::task::JoinSet::new();
        sending.spawn(send_all(plan.order, Arc::clone(&ledger), Arc::clone(&acknowledged)));
        let count = || acknowledged.load(Ordering::Relaxed);
        self.kill_meanwhile(plan.kills, &course, &count, None).await?;
        let sent = sending.join_next().await.map_or_else(
            || Err(wrong(name, "nobody sent anything".to_owned())),
            |sent| sent.map_err(|error| wrong(name, error.to_string())),
        )?;
        let times = sent.map_err(|failure| failed(name, failure))?;
        let sent_s = began.elapsed().as_secs_f64();
        self.await_arrival(&course, before).await?;
        let seconds = began.elapsed().as_secs_f64();
        let mut measured = measured_of(messages, sent_s, seconds, &times);
        if let Some(usage) = meter.as_mut().and_then(ProcessMeter::read) {
            measured.insert(
                "cpu_ms_per_message".to_owned(),
                (usage.user_s + usage.system_s) * 1000.0 / float(messages),
            );
        }
        if goal == Goal::Sink(Manner::Takes) || matches!(goal, Goal::People(_)) {
            let deliveries = self.look_at_each(&course).await?;
            self.add_deliveries(&deliveries, name, &mut measured);
        }
        Ok(measured)
    }

    /// Lets go what waits for the sink, until it has all of it.
    pub(super) async fn drain(
        &mut self,
        step: &DrainStep,
        name: &str,
        tell: &(dyn Fn(&str) + Sync),
    ) -> Result<Measured, ExperimentError> {
        let kills = self.number_or(step.kills.as_ref(), 0_u64, name)?;
        let (Some(Waiting { ledger, messages }), Some(sink)) = (self.waiting.take(), &self.sink) else {
            return Err(wrong(name, "nothing waits: a step before it sends mail to the sink".to_owned()));
        };
        sink.behave(Manner::Takes);
        let relay = format!("tell router retry relay:{}", sink.address);
        if let Some(peer) = &self.peer {
            peer.release().await.map_err(|why| wrong(name, why))?;
        }
        let mut meter = ProcessMeter::of(&self.pids());
        let began = Instant::now();
        match &self.peer {
            Some(peer) => peer.flush().map_err(|why| wrong(name, why))?,
            None => self.order_retry(&relay, name).await?,
        }
        let course =
            Course { goal: Goal::Sink(Manner::Takes), messages, people: &[], ledger: &ledger, tell, name };
        let count = || ledger.deliveries().delivered;
        self.kill_meanwhile(kills, &course, &count, Some(&relay)).await?;
        self.await_arrival(&course, 0).await?;
        let seconds = began.elapsed().as_secs_f64();
        let mut measured = Measured::from([
            ("seconds".to_owned(), seconds),
            ("messages".to_owned(), float(messages)),
            ("arrived_per_s".to_owned(), float(messages) / seconds.max(0.001)),
        ]);
        if let Some(usage) = meter.as_mut().and_then(ProcessMeter::read) {
            measured.insert(
                "cpu_ms_per_message".to_owned(),
                (usage.user_s + usage.system_s) * 1000.0 / float(messages),
            );
        }
        let deliveries = self.look_at_each(&course).await?;
        self.add_deliveries(&deliveries, name, &mut measured);
        Ok(measured)
    }

    async fn order_retry(&self, command: &str, name: &str) -> Result<(), ExperimentError> {
        let mut client = self.client(0)?;
        match tell_console(&mut client, command).await {
            // Nothing waits any more: all went out before. What is missing is found where what arrived is counted.
            Err(failure) if failure.kind == FailureKind::Status(400) => Ok(()),
            told => told.map(drop).map_err(|failure| failed(name, failure)),
        }
    }

    fn mail_plan(&self, step: &MailStep, name: &str) -> Result<MailPlan, ExperimentError> {
        let text = |scalar: Option<&Scalar>, otherwise: &str| {
            scalar.map_or_else(|| Ok(otherwise.to_owned()), |scalar| self.text(scalar, name))
        };
        let people_count = self.number_or(step.people.as_ref(), PEOPLE, name)?;
        let connections = self.number_or(step.connections.as_ref(), CONNECTIONS, name)?;
        let messages = self.number(&step.messages, name)?;
        let allowed = (1..=MOST_PEOPLE).contains(&people_count)
            && (1..=MOST_CONNECTIONS).contains(&connections)
            && (1..=MOST_MESSAGES).contains(&messages);
        if !allowed {
            return Err(wrong(
                name,
                format!(
                    "it has 1 to {MOST_PEOPLE} people, {MOST_CONNECTIONS} connections, {MOST_MESSAGES} messages"
                ),
            ));
        }
        let manner = text(step.sink.as_ref(), "takes")?.parse().map_err(|why| wrong(name, why))?;
        let goal = match text(step.to.as_ref(), "people")?.as_str() {
            "people" => Goal::People(1),
            "next" => Goal::People(2),
            "sink" => Goal::Sink(manner),
            other => {
                return Err(wrong(name, format!("mail goes to people, next or sink, and not to {other}")));
            }
        };
        let by = text(Some(&step.by), "")?;
        let (port, dialect) = self.entrance(&by, name)?;
        let authority = match &self.peer {
            Some(peer) => Some(peer.certificate.clone()),
            None => self.servers.first().map(|server| server.certificate.clone()),
        };
        let order = SendOrder {
            port,
            dialect,
            authority: authority
                .filter(|_| text(step.encrypted.as_ref(), "false").is_ok_and(|text| text == "true")),
            login: ("user0001".to_owned(), self.command.password.clone()),
            from_domain: if by == "submission" { domain(1) } else { FAR_DOMAIN.to_owned() },
            to_domain: match goal {
                Goal::People(server) => domain(server),
                Goal::Sink(_) => SINK_DOMAIN.to_owned(),
            },
            people: people_count,
            messages,
            bytes: self.number_or(step.bytes.as_ref(), BYTES, name)?,
            connections,
        };
        let kills = self.number_or(step.kills.as_ref(), 0_u64, name)?;
        if kills > 0 && self.peer.is_some() {
            return Err(wrong(name, "servers of ours alone are killed and started again".to_owned()));
        }
        Ok(MailPlan { goal, order, people: people(people_count), kills })
    }

    /// Where mail comes in at the first server.
    fn entrance(&self, by: &str, name: &str) -> Result<(u16, Dialect), ExperimentError> {
        let ports = match &self.peer {
            Some(peer) => {
                let ports = peer.ports();
                MailPorts {
                    smtp: ports.smtp,
                    lmtp: ports.lmtp,
                    submission: ports.smtp,
                    ..MailPorts::default()
                }
            }
            None => *self.ports.first().ok_or_else(|| wrong(name, "no server is running".to_owned()))?,
        };
        match by {
            "smtp" => Ok((ports.smtp, Dialect::Smtp)),
            "lmtp" => Ok((ports.lmtp, Dialect::Lmtp)),
            "submission" => Ok((ports.submission, Dialect::Smtp)),
            _ => Err(wrong(name, format!("mail is sent by smtp, lmtp or submission, and not by {by}"))),
        }
    }

    fn mailboxes(&self, server: usize, name: &str) -> Result<Mailboxes, ExperimentError> {
        if let Some(peer) = &self.peer {
            return Ok(Mailboxes::Imap { port: peer.ports().imap, password: self.command.password.clone() });
        }
        let found = self.servers.get(server.saturating_sub(1));
        let found = found.ok_or_else(|| wrong(name, format!("there is no server {server}")))?;
        let account = (self.command.admin.clone(), self.command.password.clone());
        Ok(Mailboxes::Http { url: found.url.clone(), account })
    }

    /// Those who get the mail, and the one who logs in to send it, are in the directories.
    async fn enter_people(
        &self,
        plan: &MailPlan,
        step: &MailStep,
        name: &str,
    ) -> Result<(), ExperimentError> {
        let mut entered = Vec::new();
        if self.text(&step.by, name)? == "submission" {
            let author = plan.people.get(..1).unwrap_or_default();
            entered.push((1, author, Some(self.command.password.as_str())));
        }
        if let Goal::People(server) = plan.goal {
            entered.push((server, plan.people.as_slice(), None));
        }
        for (server, people, password) in entered {
            let done = self.mailboxes(server, name)?.enter(people, server, password).await;
            done.map_err(|failure| failed(name, failure))?;
        }
        Ok(())
    }

    /// How many messages have arrived so far, or wait where they are to wait.
    async fn arrived(&self, course: &Course<'_>) -> Result<u64, ExperimentError> {
        match (course.goal, &self.peer) {
            (Goal::Sink(Manner::Takes), _) => Ok(course.ledger.deliveries().delivered),
            (Goal::Sink(_), Some(peer)) => Ok(peer.deferred()),
            (Goal::Sink(manner), None) => self.queued(manner, course.name).await,
            (Goal::People(_), Some(peer)) => Ok(peer.delivered()),
            (Goal::People(server), None) => {
                let count = self.mailboxes(server, course.name)?.count(course.people).await;
                Ok(count.map_err(|failure| failed(course.name, failure))?.unwrap_or(0))
            }
        }
    }

    /// Messages in the queue of the first server; where the other side defers them, those that it has deferred.
    async fn queued(&self, manner: Manner, name: &str) -> Result<u64, ExperimentError> {
        let mut client = self.client(0)?;
        let told = tell_console(&mut client, "show stat Outbound.Queue.*").await;
        let told = told.map_err(|failure| failed(name, failure))?;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it counts")]
        let count = |kind: &str| {
            let statistic = format!("Outbound.Queue.{kind}");
            let value = told.get("statistics").and_then(|all| all.get(&statistic)).and_then(Value::as_f64);
            value.unwrap_or(0.0) as u64
        };
        let deferred = count("Deferred");
        Ok(if manner == Manner::Defers { deferred } else { deferred + count("Incoming") + count("Active") })
    }

    /// Waits until all have arrived; gives up where nothing comes any more, and what is missing is found when each is looked at.
    async fn await_arrival(&self, course: &Course<'_>, before: u64) -> Result<(), ExperimentError> {
        let (mut most, mut last) = (0, Instant::now());
        loop {
            let arrived = self.arrived(course).await?.saturating_sub(before);
            (course.tell)(&format!("{}: {arrived} of {} messages", course.name, course.messages));
            if arrived >= course.messages {
                return Ok(());
            }
            if arrived > most {
                (most, last) = (arrived, Instant::now());
            }
            if last.elapsed() > ARRIVES_WITHIN {
                return Ok(());
            }
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
    }

    /// Kills the first server as often as is wished, evenly over the messages that `count` counts, and starts it again.
    async fn kill_meanwhile(
        &mut self,
        kills: u64,
        course: &Course<'_>,
        count: &(dyn Fn() -> u64 + Sync),
        again: Option<&str>,
    ) -> Result<(), ExperimentError> {
        for kill in 1..=kills {
            let due = course.messages * kill / (kills + 1);
            let began = Instant::now();
            while count() < due && began.elapsed() < ARRIVES_WITHIN {
                tokio::time::sleep(BETWEEN_LOOKS).await;
            }
            (course.tell)(&format!("{}: kill {kill} of {kills}", course.name));
            if self.servers.is_empty() {
                return Err(wrong(course.name, "no server is running".to_owned()));
            }
            let server = self.servers.remove(0);
            server.end(rustix::process::Signal::KILL).await;
            let server = self.start_one(1).await?;
            self.servers.insert(0, server);
            if let Some(command) = again {
                self.order_retry(command, course.name).await?;
            }
        }
        Ok(())
    }

    /// Reads what has arrived, and again while some is missing that may be on its way.
    async fn look_at_each(&self, course: &Course<'_>) -> Result<Deliveries, ExperimentError> {
        let Goal::People(server) = course.goal else { return Ok(course.ledger.deliveries()) };
        let began = Instant::now();
        loop {
            (course.tell)(&format!("{}: reading what has arrived", course.name));
            course.ledger.begin_reading();
            let mailboxes = self.mailboxes(server, course.name)?;
            let read = mailboxes.read(course.people, course.ledger).await;
            read.map_err(|failure| failed(course.name, failure))?;
            let deliveries = course.ledger.deliveries();
            if deliveries.missing == 0 || began.elapsed() > READ_WITHIN {
                return Ok(deliveries);
            }
            tokio::time::sleep(READ_AGAIN).await;
        }
    }

    fn add_deliveries(&mut self, deliveries: &Deliveries, name: &str, measured: &mut Measured) {
        let counts = [
            ("delivered", deliveries.delivered),
            ("missing", deliveries.missing),
            ("twice", deliveries.twice),
            ("altered", deliveries.altered + deliveries.strayed),
        ];
        measured.extend(counts.map(|(count, value)| (count.to_owned(), float(value))));
        let told = deliveries.examples.iter().map(|example| format!("{name}: {example}"));
        self.gathered.notes.extend(told);
    }
}

fn measured_of(messages: u64, sent_s: f64, seconds: f64, times: &Times) -> Measured {
    let summary = times.summary();
    Measured::from([
        ("seconds".to_owned(), seconds),
        ("messages".to_owned(), float(messages)),
        ("sent_per_s".to_owned(), float(messages) / sent_s.max(0.001)),
        ("arrived_per_s".to_owned(), float(messages) / seconds.max(0.001)),
        ("mean_ms".to_owned(), summary.mean_ms),
        ("p50_ms".to_owned(), summary.p50_ms),
        ("p99_ms".to_owned(), summary.p99_ms),
    ])
}

#[allow(clippy::cast_precision_loss, reason = "messages need no more than 53 bits")]
fn float(count: u64) -> f64 {
    count as f64
}

fn wrong(step: &str, why: String) -> ExperimentError {
    ExperimentError::Step { step: step.to_owned(), why }
}
