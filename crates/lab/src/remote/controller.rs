//! The controller's side: drivers are greeted, told what to do, and listened to.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::io::BufReader;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::clock::{ClockReading, Exchange};
use super::critical::SharedRegion;
use super::frame::{self, FrameError, LONGEST_BYTES, SHORT_BYTES};
use super::local::LocalDriver;
use super::login::{Side, challenge, is_proof, proof};
use super::message::{Answer, Assignment, Greeting, Job, Login, Order, Word};
use super::version;
use crate::crew::{CrewOutcome, CrewSecond, Share, Stop};
use crate::driver::Ledger;
use crate::error::LabError;

/// How long a driver may take for an answer that needs no work.
const TO_ANSWER: Duration = Duration::from_secs(10);

/// How long it may take to look at the server and its own machine, and to hand over what it measured.
const TO_PREPARE: Duration = Duration::from_secs(60);

/// A driver that has said nothing for this many of the controller's seconds is lost. They are the controller's
/// own, so that a machine that was stopped as a whole loses nobody.
const SILENT_SECONDS: u32 = 10;

/// Orders that wait to be sent; there are a handful in a run, and one for each critical region.
const ORDERS: usize = 256;

/// The clocks are compared this many times, and the quickest counts.
const PINGS: u32 = 10;

/// Drivers that have logged in, and what they are to do.
pub(crate) struct Team {
    members: Vec<Member>,
    job: Job,
    /// When the controller's clock began.
    origin: Instant,
}

type Reading = BufReader<OwnedReadHalf>;

/// A driver that has logged in.
struct Member {
    name: String,
    read: Reading,
    write: OwnedWriteHalf,
    clock: ClockReading,
    machine_identity: String,
    child: Option<LocalDriver>,
}

impl Team {
    /// Starts this many drivers on this machine.
    pub(crate) async fn here(count: usize, job: Job) -> Result<Self, LabError> {
        let origin = Instant::now();
        let token = challenge();
        let mut members = Vec::new();
        for _ in 0..count {
            let token_of_driver = token.clone();
            let started = tokio::task::spawn_blocking(move || LocalDriver::start(&token_of_driver)).await;
            let child = started.map_err(|error| LabError::Usage(error.to_string()))??;
            let name = format!("driver {} (process {})", members.len() + 1, child.pid());
            let mut member = Member::greet(name, &child.address, &token, origin).await?;
            member.child = Some(child);
            members.push(member);
        }
        Ok(Self { members, job, origin })
    }

    /// Logs in at drivers on other machines.
    pub(crate) async fn at(addresses: &[String], token: &str, job: Job) -> Result<Self, LabError> {
        let origin = Instant::now();
        let mut members = Vec::new();
        for address in addresses {
            members.push(Member::greet(format!("driver {address}"), address, token, origin).await?);
        }
        Ok(Self { members, job, origin })
    }

    /// For people.
    pub(crate) fn names(&self) -> String {
        self.members.iter().map(|member| member.name.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// Gives each its share, and waits until all are ready. What they note of messages comes into the ledger.
    pub(crate) async fn assigned(mut self, ledger: Option<&Arc<Ledger>>) -> Result<Vec<Remote>, LabError> {
        let of = self.members.len();
        let users = usize::try_from(self.job.arguments.users).unwrap_or(usize::MAX);
        let shares: Vec<(String, usize)> = self
            .members
            .iter()
            .enumerate()
            .map(|(index, member)| (member.machine_identity.clone(), Share { index, of }.count(users)))
            .collect();
        for (index, member) in self.members.iter_mut().enumerate() {
            let same = shares.iter().filter(|(machine, _)| *machine == member.machine_identity);
            let together = same.map(|(_, count)| count).sum();
            let noted_run = ledger.map(|ledger| ledger.run());
            let share = Share { index, of };
            let assignment = Assignment { job: self.job.clone(), share, together, noted_run };
            member.assign(assignment).await?;
        }
        let region = Arc::new(SharedRegion::default());
        let remote = |member| Remote::new(member, &region, self.origin, ledger.cloned());
        Ok(self.members.into_iter().map(remote).collect())
    }
}

impl Member {
    async fn greet(name: String, address: &str, token: &str, origin: Instant) -> Result<Self, LabError> {
        match timeout(TO_ANSWER, Self::log_in(&name, address, token, origin)).await {
            Ok(Ok(member)) => Ok(member),
            Ok(Err(why)) => Err(LabError::Driver { name, why }),
            Err(_) => Err(LabError::Driver {
                name,
                why: format!(
                    "no greeting in {} s; it may be busy with another run, or no driver",
                    TO_ANSWER.as_secs()
                ),
            }),
        }
    }

    async fn log_in(name: &str, address: &str, token: &str, origin: Instant) -> Result<Self, String> {
        let words = |error: FrameError| error.to_string();
        let stream = TcpStream::connect(address)
            .await
            .map_err(|error| format!("{error}; is `lab drive --listen {address}` running there?"))?;
        stream.set_nodelay(true).map_err(|error| error.to_string())?;
        let (read, mut write) = stream.into_split();
        let mut read = BufReader::new(read);
        let greeting: Greeting = frame::read(&mut read, SHORT_BYTES).await.map_err(words)?;
        if greeting.version != version() {
            return Err(format!(
                "it is version {}, and this is {}: use the same program",
                greeting.version,
                version()
            ));
        }
        let ours = challenge();
        let login = Login {
            version: version(),
            proof: proof(token, Side::Controller, &greeting.challenge, &ours),
            challenge: ours.clone(),
        };
        frame::write(&mut write, &login).await.map_err(words)?;
        let machine_identity = match frame::read(&mut read, SHORT_BYTES).await.map_err(words)? {
            Answer::Refused(why) => return Err(why),
            Answer::Welcome { proof, machine_identity, .. } => {
                if !is_proof(&proof, token, Side::Driver, &greeting.challenge, &ours) {
                    return Err("it does not know the token".to_owned());
                }
                machine_identity
            }
        };
        let clock = read_clock(&mut read, &mut write, origin).await.map_err(words)?;
        let name = name.to_owned();
        Ok(Self { name, read, write, clock, machine_identity, child: None })
    }

    async fn assign(&mut self, assignment: Assignment) -> Result<(), LabError> {
        let answer = timeout(TO_PREPARE, async {
            frame::write(&mut self.write, &Order::Assign(Box::new(assignment))).await?;
            frame::read::<Word>(&mut self.read, LONGEST_BYTES).await
        });
        let why = match answer.await {
            Ok(Ok(Word::Ready)) => return Ok(()),
            Ok(Ok(Word::Refused(why))) => why,
            Ok(Ok(_)) => "it said something out of turn".to_owned(),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("it was not ready after {} s", TO_PREPARE.as_secs()),
        };
        Err(LabError::Driver { name: self.name.clone(), why })
    }
}

/// Asks a driver for its clock some times.
async fn read_clock(
    read: &mut Reading,
    write: &mut OwnedWriteHalf,
    origin: Instant,
) -> Result<ClockReading, FrameError> {
    let mut exchanges = Vec::new();
    for ping in 0..PINGS {
        let asked_us = microseconds(origin, Instant::now());
        frame::write(write, &Order::Ping(ping)).await?;
        // What it said before the question is no answer.
        let there_us = loop {
            if let Word::Pong { number, clock_us } = frame::read(read, LONGEST_BYTES).await?
                && number == ping
            {
                break clock_us;
            }
        };
        let answered_us = microseconds(origin, Instant::now());
        exchanges.push(Exchange { asked_us, there_us, answered_us });
    }
    Ok(ClockReading::of(&exchanges).unwrap_or_default())
}

fn microseconds(origin: Instant, at: Instant) -> u64 {
    u64::try_from(at.saturating_duration_since(origin).as_micros()).unwrap_or(u64::MAX)
}

/// A driver at work.
pub(crate) struct Remote {
    name: String,
    orders: mpsc::Sender<Order>,
    shared: Arc<SharedController>,
    reader: JoinHandle<Option<Reading>>,
    writer: JoinHandle<Option<OwnedWriteHalf>>,
    clock: ClockReading,
    origin: Instant,
    /// How it stood when it last told anything, without what it had measured.
    at_last: CrewSecond,
    silent_seconds: u32,
    _child: Option<LocalDriver>,
}

#[derive(Default)]
struct SharedController {
    heard: Mutex<Heard>,
    changed: Notify,
}

/// What the driver has said since somebody last asked.
#[derive(Default)]
struct Heard {
    second: Option<CrewSecond>,
    left: Option<usize>,
    outcome: Option<CrewOutcome>,
    lost: Option<String>,
}

impl Remote {
    fn new(member: Member, region: &Arc<SharedRegion>, origin: Instant, ledger: Option<Arc<Ledger>>) -> Self {
        let (orders, waiting) = mpsc::channel(ORDERS);
        let shared = Arc::new(SharedController::default());
        let number = region.join(orders.clone());
        let ears = Ears { shared: Arc::clone(&shared), region: Arc::clone(region), number, ledger };
        let reader = tokio::spawn(ears.listen(member.read));
        let writer = tokio::spawn(tell(member.write, waiting, Arc::clone(&shared)));
        Self {
            name: member.name,
            orders,
            shared,
            reader,
            writer,
            clock: member.clock,
            origin,
            at_last: CrewSecond { left: 1, ..CrewSecond::default() },
            silent_seconds: 0,
            _child: member.child,
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn begin(&self, at: Instant, spread: Duration) {
        self.order(Order::Begin { at_us: self.there_us(at), spread });
    }

    pub(crate) fn hold(&self, from: Instant, to: Instant) {
        self.order(Order::Hold { from_us: self.there_us(from), to_us: self.there_us(to) });
    }

    pub(crate) fn end_hold(&self, at: Instant) {
        self.order(Order::EndHold { at_us: self.there_us(at) });
    }

    pub(crate) fn stop(&self, stop: Stop) {
        self.order(Order::Stop { from_us: self.there_us(stop.from), spread: stop.spread });
    }

    /// Whether it has users that have not ended, and is there to tell of it.
    pub(crate) fn has_users(&self) -> bool {
        let heard = self.shared.heard.lock();
        heard.lost.is_none() && heard.left.is_none_or(|left| left > 0)
    }

    /// What it has told since the last call.
    pub(crate) fn second(&mut self) -> Result<CrewSecond, String> {
        let mut heard = self.shared.heard.lock();
        if let Some(why) = &heard.lost {
            return Err(format!("{}: {why}", self.name));
        }
        let Some(second) = heard.second.take() else {
            self.silent_seconds += 1;
            if self.silent_seconds > SILENT_SECONDS {
                return Err(format!("{}: it said nothing for {SILENT_SECONDS} s", self.name));
            }
            return Ok(self.at_last.clone());
        };
        self.silent_seconds = 0;
        let CrewSecond { active, first_rounds, left, .. } = second;
        self.at_last = CrewSecond { active, first_rounds, left, ..CrewSecond::default() };
        Ok(second)
    }

    /// Everything that it measured, and its clock at the beginning and at the end.
    pub(crate) async fn finish(self) -> Result<(CrewOutcome, (ClockReading, ClockReading)), String> {
        // A process that was started for this run is kept until it has told everything.
        let Self { name, orders, shared, reader, writer, clock, origin, _child: child, .. } = self;
        let told = async {
            let outcome = match orders.send(Order::Finish).await {
                Ok(()) => timeout(TO_PREPARE, shared.outcome()).await.map_err(|_| {
                    format!("it did not give its measurements in {} s", TO_PREPARE.as_secs())
                })??,
                Err(_) => return Err(shared.why_lost()),
            };
            let gone = || "its connection is gone".to_owned();
            let mut read = reader.await.ok().flatten().ok_or_else(gone)?;
            let mut write = writer.await.ok().flatten().ok_or_else(gone)?;
            let at_end = timeout(TO_ANSWER, read_clock(&mut read, &mut write, origin))
                .await
                .map_err(|_| "it did not tell its clock".to_owned())?
                .map_err(|error| error.to_string())?;
            Ok((outcome, (clock, at_end)))
        };
        let told = told.await;
        drop(child);
        told.map_err(|why: String| format!("{name}: {why}"))
    }

    fn there_us(&self, at: Instant) -> u64 {
        self.clock.there_us(microseconds(self.origin, at))
    }

    fn order(&self, order: Order) {
        if self.orders.try_send(order).is_err() {
            self.shared.lose("it takes no more orders".to_owned());
        }
    }
}

impl SharedController {
    fn lose(&self, why: String) {
        self.heard.lock().lost.get_or_insert(why);
        self.changed.notify_waiters();
    }

    fn why_lost(&self) -> String {
        self.heard.lock().lost.clone().unwrap_or_else(|| "it takes no orders".to_owned())
    }

    async fn outcome(&self) -> Result<CrewOutcome, String> {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            {
                let mut heard = self.heard.lock();
                if let Some(outcome) = heard.outcome.take() {
                    return Ok(outcome);
                }
                if let Some(why) = &heard.lost {
                    return Err(why.clone());
                }
            }
            changed.await;
        }
    }
}

/// Where goes what one driver says.
struct Ears {
    shared: Arc<SharedController>,
    region: Arc<SharedRegion>,
    /// The driver, as the region knows it.
    number: usize,
    ledger: Option<Arc<Ledger>>,
}

impl Ears {
    /// Takes what the driver says until it is done; then its connection is handed back.
    async fn listen(self, mut read: Reading) -> Option<Reading> {
        let Self { shared, region, number, ledger } = self;
        loop {
            match frame::read(&mut read, LONGEST_BYTES).await {
                Ok(Word::Second(second)) => {
                    let mut heard = shared.heard.lock();
                    heard.left = Some(second.left);
                    match &mut heard.second {
                        Some(pending) => pending.follow(&second),
                        pending => *pending = Some(*second),
                    }
                }
                Ok(Word::Enter) => region.enter(number),
                Ok(Word::Leave) => region.leave(number),
                Ok(Word::Noted(noted)) => {
                    if let Some(ledger) = &ledger {
                        ledger.add(&noted);
                    }
                }
                Ok(Word::Done(outcome)) => {
                    region.leave(number);
                    shared.heard.lock().outcome = Some(*outcome);
                    shared.changed.notify_waiters();
                    return Some(read);
                }
                Ok(Word::Pong { .. } | Word::Ready) => {}
                Ok(Word::Refused(why)) => {
                    region.leave(number);
                    shared.lose(why);
                    return None;
                }
                Err(error) => {
                    region.leave(number);
                    shared.lose(error.to_string());
                    return None;
                }
            }
        }
    }
}

/// Sends orders up to the last one; then the connection is handed back.
async fn tell(
    mut write: OwnedWriteHalf,
    mut waiting: mpsc::Receiver<Order>,
    shared: Arc<SharedController>,
) -> Option<OwnedWriteHalf> {
    while let Some(order) = waiting.recv().await {
        let last = matches!(order, Order::Finish);
        match timeout(TO_ANSWER, frame::write(&mut write, &order)).await {
            Ok(Ok(())) if last => return Some(write),
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                shared.lose(error.to_string());
                return None;
            }
            Err(_) => {
                shared.lose(format!("it took no orders for {} s", TO_ANSWER.as_secs()));
                return None;
            }
        }
    }
    None
}

impl CrewSecond {
    /// The same driver's next second.
    fn follow(&mut self, next: &Self) {
        self.kept.merge(&next.kept);
        (self.active, self.first_rounds, self.left) = (next.active, next.first_rounds, next.left);
        self.usage = match (self.usage, next.usage) {
            (Some(mut before), Some(after)) => {
                let resident_bytes = after.resident_bytes;
                before.add(after);
                before.resident_bytes = resident_bytes;
                Some(before)
            }
            (before, after) => after.or(before),
        };
    }
}
