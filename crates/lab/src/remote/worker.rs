//! `lab drive`: users are simulated for a controller, one run after the other.

use std::io::Read;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use scrinium_lab_script::Workload;
use scrinium_terminal::{CommandOutcome, print, say};
use tokio::io::BufReader;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Interval, MissedTickBehavior, timeout};

use super::frame::{self, FrameError, LONGEST_BYTES, SHORT_BYTES};
use super::local::LISTENS_AT;
use super::login::{Side, challenge, is_proof, proof};
use super::message::{Answer, Assignment, Greeting, Login, Order, Word};
use super::version;
use crate::arguments::DriveArguments;
use crate::crew::{Asked, CriticalRegion, LocalUsers, Plan, Share, Stop, provide};
use crate::driver::{Driver, Person, Targets};
use crate::error::LabError;
use crate::monitor::{machine_identity, this_machine};
use crate::setup;

/// How long a controller may take to log in, and to take what is sent.
const TO_ANSWER: Duration = Duration::from_secs(10);

const TICK: Duration = Duration::from_secs(1);

/// Users that are on their way out are looked at so often, so that the end is reported as soon as it is there.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// Orders that are read ahead.
const ORDERS: usize = 16;

/// Listens, and serves one controller after the other.
pub(crate) async fn drive(arguments: &DriveArguments) -> Result<CommandOutcome, LabError> {
    let failed = |source| LabError::Listen { address: arguments.listen.clone(), source };
    let listener = TcpListener::bind(&arguments.listen).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let token = arguments.token.clone().unwrap_or_else(challenge);
    if arguments.local {
        print(&format!("{LISTENS_AT}{address}\n"))?;
        tokio::select! {
            ended = serve_next(&listener, &token, false) => drop(ended),
            () = parent_is_gone() => {}
        }
        return Ok(CommandOutcome::Done);
    }
    introduce(address, arguments.token.is_none().then_some(token.as_str()));
    loop {
        match serve_next(&listener, &token, true).await {
            Ok((controller, what)) => say(&format!("{controller}: {what}")),
            Err(error) => return Err(failed(error)),
        }
    }
}

fn introduce(address: SocketAddr, made_up: Option<&str>) {
    say(&format!("Listening at {address}. On the controller's machine:"));
    let token = made_up.unwrap_or("...");
    say(&format!(
        "  SCRINIUM_LAB_TOKEN={token} scrinium lab load WORKLOAD --driver HOST:{} ...",
        address.port()
    ));
    if !address.ip().is_loopback() {
        say(
            "Who knows the token can send requests from here; passwords of users go over this port as they are.",
        );
    }
}

/// Returns when standard input is closed: anyone who started this process holds it.
async fn parent_is_gone() {
    let (tell, told) = oneshot::channel::<()>();
    std::thread::spawn(move || {
        let mut nothing = [0; 64];
        while std::io::stdin().read(&mut nothing).is_ok_and(|read| read > 0) {}
        drop(tell);
    });
    let _ = told.await;
}

/// Serves the next controller; says who it was and how it went.
async fn serve_next(
    listener: &TcpListener,
    token: &str,
    talks: bool,
) -> std::io::Result<(SocketAddr, String)> {
    let (stream, controller) = listener.accept().await?;
    let what = match timeout(TO_ANSWER, log_in(stream, token)).await {
        Err(_) => "did not log in".to_owned(),
        Ok(Err(why)) => why,
        Ok(Ok((read, write))) => Serving::new(read, write, talks).serve(controller).await,
    };
    Ok((controller, what))
}

type Reading = BufReader<OwnedReadHalf>;

async fn log_in(stream: TcpStream, token: &str) -> Result<(Reading, OwnedWriteHalf), String> {
    let words = |error: FrameError| format!("no login: {error}");
    stream.set_nodelay(true).map_err(|error| error.to_string())?;
    let (read, mut write) = stream.into_split();
    let mut read = BufReader::new(read);
    let ours = challenge();
    frame::write(&mut write, &Greeting { version: version(), challenge: ours.clone() })
        .await
        .map_err(words)?;
    let login: Login = frame::read(&mut read, SHORT_BYTES).await.map_err(words)?;
    let refused = if login.version != version() {
        Some(format!("this driver is version {}, and the controller is {}", version(), login.version))
    } else if !is_proof(&login.proof, token, Side::Controller, &ours, &login.challenge) {
        Some("the token is another one (SCRINIUM_LAB_TOKEN, or --driver-token)".to_owned())
    } else {
        None
    };
    if let Some(why) = refused {
        frame::write(&mut write, &Answer::Refused(why.clone())).await.map_err(words)?;
        return Err(format!("refused: {why}"));
    }
    let welcome = Answer::Welcome {
        proof: proof(token, Side::Driver, &ours, &login.challenge),
        machine: Box::new(this_machine()),
        machine_identity: machine_identity(),
    };
    frame::write(&mut write, &welcome).await.map_err(words)?;
    Ok((read, write))
}

/// What was assigned.
struct Work {
    driver: Arc<Targets>,
    plan: Plan,
    people: Vec<Person>,
    share: Share,
    crew: LocalUsers,
    asked: mpsc::Receiver<Asked>,
    granted: Arc<Semaphore>,
}

impl Work {
    /// Makes ready what can be: nothing is sent but a question who the server is.
    async fn of(assignment: Assignment) -> Result<Self, LabError> {
        let Assignment { job, share, together, noted_run } = assignment;
        let (arguments, origin) = (job.arguments, job.origin);
        let workload = Workload::of(origin, job.text, &setup::variables(&arguments))?;
        let plan = setup::plan_of(&arguments, workload);
        let mut driver = setup::driver(&arguments, &plan)?;
        driver.note(noted_run);
        let driver = Arc::new(driver);
        let connected = plan.connected(share.count(plan.users));
        provide(plan.connections(connected), plan.connected(together))?;
        driver
            .describe()
            .await
            .map_err(|failure| LabError::NoServer { target: plan.target.clone(), failure })?;
        let people = plan.people();
        let (region, asked, granted) = CriticalRegion::shared();
        let crew = LocalUsers::new(&plan, &people, region);
        Ok(Self { driver, plan, people, share, crew, asked, granted })
    }
}

/// One controller's connection.
struct Serving {
    orders: mpsc::Receiver<Result<Order, FrameError>>,
    reader: JoinHandle<()>,
    write: OwnedWriteHalf,
    /// When this driver's clock began.
    origin: Instant,
    work: Option<Work>,
    ticks: Option<Interval>,
    stopping: bool,
    /// A driver that its controller has started leaves talking to it.
    talks: bool,
    what: String,
}

/// What happened next.
enum Event {
    Order(Option<Result<Order, FrameError>>),
    Asked(Asked),
    Tick,
    Look,
}

impl Serving {
    fn new(read: Reading, write: OwnedWriteHalf, talks: bool) -> Self {
        let (send, orders) = mpsc::channel(ORDERS);
        let reader = tokio::spawn(read_orders(read, send));
        let (origin, what) = (Instant::now(), "logged in, and assigned nothing".to_owned());
        Self { orders, reader, write, origin, work: None, ticks: None, stopping: false, talks, what }
    }

    /// Follows the controller until it goes.
    async fn serve(mut self, controller: SocketAddr) -> String {
        loop {
            let told = match self.next().await {
                Event::Order(None | Some(Err(FrameError::Closed))) => break,
                Event::Order(Some(Err(error))) => {
                    self.what.push_str(&format!("; {error}"));
                    break;
                }
                Event::Order(Some(Ok(order))) => self.obey(order, controller).await,
                Event::Asked(Asked::Enter) => self.tell(&Word::Enter).await,
                Event::Asked(Asked::Leave) => self.tell(&Word::Leave).await,
                Event::Tick => self.tell_second().await,
                Event::Look => self.look().await,
            };
            if let Err(error) = told {
                self.what.push_str(&format!("; {error}"));
                break;
            }
        }
        self.reader.abort();
        if self.work.is_some() {
            // Its users end with the crew.
            self.what.push_str("; interrupted: the controller is gone");
        }
        self.what
    }

    async fn next(&mut self) -> Event {
        let Self { orders, work, ticks, stopping, .. } = self;
        tokio::select! {
            order = orders.recv() => Event::Order(order),
            Some(asked) = next_asked(work) => Event::Asked(asked),
            () = next_tick(ticks) => Event::Tick,
            () = tokio::time::sleep(BETWEEN_LOOKS), if *stopping => Event::Look,
        }
    }

    async fn obey(&mut self, order: Order, controller: SocketAddr) -> Result<(), FrameError> {
        let origin = self.origin;
        let at =
            |microseconds: u64| origin.checked_add(Duration::from_micros(microseconds)).unwrap_or(origin);
        match order {
            Order::Ping(number) => {
                let clock_us = u64::try_from(origin.elapsed().as_micros()).unwrap_or(u64::MAX);
                return self.tell(&Word::Pong { number, clock_us }).await;
            }
            Order::Assign(assignment) => return self.assign(*assignment, controller).await,
            Order::Finish => return self.finish().await,
            _ => {}
        }
        let Some(work) = &mut self.work else { return Ok(()) };
        match order {
            Order::Begin { at_us, spread } => {
                work.crew.begin(&work.driver, &work.people, work.share, at(at_us), spread);
                let mut ticks = tokio::time::interval_at((at(at_us) + TICK).into(), TICK);
                ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
                self.ticks = Some(ticks);
            }
            Order::Hold { from_us, to_us } => work.crew.hold(at(from_us), at(to_us)),
            Order::EndHold { at_us } => work.crew.end_hold(at(at_us)),
            Order::Stop { from_us, spread } => {
                work.crew.stop(Stop { from: at(from_us), spread });
                self.stopping = true;
            }
            Order::Granted => work.granted.add_permits(1),
            Order::Ping(_) | Order::Assign(_) | Order::Finish => {}
        }
        Ok(())
    }

    async fn assign(&mut self, assignment: Assignment, controller: SocketAddr) -> Result<(), FrameError> {
        match Work::of(assignment).await {
            Ok(work) => {
                self.what = format!(
                    "{}, {} of {} users, against {}",
                    work.plan.workload,
                    work.share.count(work.plan.users),
                    work.plan.users,
                    work.plan.target
                );
                if self.talks {
                    say(&format!("{controller}: begins {}", self.what));
                }
                self.work = Some(work);
                self.tell(&Word::Ready).await
            }
            Err(error) => {
                self.what = format!("refused: {error}");
                self.tell(&Word::Refused(error.to_string())).await
            }
        }
    }

    async fn look(&mut self) -> Result<(), FrameError> {
        if self.work.as_mut().is_some_and(|work| work.crew.has_users()) {
            return Ok(());
        }
        self.stopping = false;
        self.tell_second().await
    }

    async fn tell_second(&mut self) -> Result<(), FrameError> {
        let Some(work) = &mut self.work else { return Ok(()) };
        let second = Box::new(work.crew.second());
        self.tell(&Word::Second(second)).await
    }

    async fn finish(&mut self) -> Result<(), FrameError> {
        self.tell_second().await?;
        (self.ticks, self.stopping) = (None, false);
        let mut noted = Vec::new();
        let outcome = self.work.take().map(|work| {
            let outcome = work.crew.finish();
            noted = work.driver.ledger().map(|(_, ledger)| ledger.noted()).unwrap_or_default();
            outcome
        });
        for piece in noted {
            self.tell(&Word::Noted(piece)).await?;
        }
        let outcome = outcome.unwrap_or_default();
        self.what.push_str("; done");
        self.tell(&Word::Done(Box::new(outcome))).await
    }

    async fn tell(&mut self, word: &Word) -> Result<(), FrameError> {
        timeout(TO_ANSWER, frame::write(&mut self.write, word)).await.unwrap_or(Err(FrameError::Closed))
    }
}

/// Reading a message cannot be broken off in the middle, so a task of its own does it.
async fn read_orders(mut read: Reading, send: mpsc::Sender<Result<Order, FrameError>>) {
    loop {
        let order = frame::read(&mut read, LONGEST_BYTES).await;
        let last = order.is_err();
        if send.send(order).await.is_err() || last {
            return;
        }
    }
}

async fn next_asked(work: &mut Option<Work>) -> Option<Asked> {
    match work {
        Some(work) => work.asked.recv().await,
        None => std::future::pending().await,
    }
}

async fn next_tick(ticks: &mut Option<Interval>) {
    match ticks {
        Some(ticks) => drop(ticks.tick().await),
        None => std::future::pending().await,
    }
}
