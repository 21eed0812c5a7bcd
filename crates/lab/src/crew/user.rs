//! One simulated user: runs the script, statement by statement.

mod mail;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use scrinium_lab_script::{Ability, Command, LoopName, Operation, Script, TimeRange, UserText};

use super::context::Context;
use super::critical::InCritical;
use super::desk::UserState;
use super::groupware::Remembered;
use crate::content::{Form, Writer};
use crate::driver::{Failure, From, Ledger, Person, Session, database_named};
use crate::measure::Sample;
use crate::schedule::{Begin, Schedule};

/// Entries of the page that is read when a view is opened.
pub(super) const FIRST_PAGE: u64 = 30;

/// What comes after a statement.
enum Next {
    Statement,
    Jump(usize),
    End,
}

/// An action failed, and has been recorded; or the run is over.
pub(super) struct Stopped {
    run_is_over: bool,
}

pub(super) type Acted = Result<(), Stopped>;

pub(super) struct User<S> {
    pub(super) context: Arc<Context>,
    pub(super) person: Person,
    pub(super) session: S,
    pub(super) random: SmallRng,
    pub(super) writer: Writer,
    schedule: Schedule,
    woken: bool,
    /// Rounds done of each loop, and of the main loop since the beginning.
    rounds: [u64; 2],
    pub(super) round: u64,
    /// The loop whose rounds those are: the one that is repeated for ever, or else the outer one.
    main_loop: LoopName,
    pub(super) desk: UserState,
    pub(super) remembered: Remembered,
    error_delay: Option<TimeRange>,
    errors: u64,
    errors_allowed: Option<u64>,
    critical: Option<InCritical>,
    pub(super) mail_seen: String,
    /// Where what is sent as documents, or as mail, is noted.
    ledger: Option<(Ability, Arc<Ledger>)>,
}

impl<S: Session> User<S> {
    pub(super) fn new(context: Arc<Context>, person: Person, session: S, start: Instant) -> Self {
        let seed = context.seed;
        let main_loop = main_loop(&context.script);
        let ledger = session.ledger();
        let run = ledger.as_ref().map_or(context.run, |(_, ledger)| ledger.run());
        Self {
            random: SmallRng::seed_from_u64(seed ^ (person.number as u64).rotate_left(32)),
            writer: Writer::new(&person, seed, run),
            schedule: Schedule::new(context.model, start),
            desk: UserState::default(),
            remembered: Remembered::default(),
            context,
            person,
            session,
            woken: true,
            rounds: [0; 2],
            round: 0,
            main_loop,
            error_delay: None,
            errors: 0,
            errors_allowed: None,
            critical: None,
            mail_seen: String::new(),
            ledger,
        }
    }

    /// Runs the script until it ends or the run is over. Returns how far behind the timetable the user was.
    pub(super) async fn run(mut self: Box<Self>) -> Duration {
        let script = Arc::clone(&self.context.script);
        let mut next = 0;
        self.sleep_until_due().await;
        while let Some(statement) = script.statements.get(next) {
            if self.is_over() {
                break;
            }
            next = match self.step(&statement.command).await {
                Next::Statement => next + 1,
                Next::Jump(target) => target,
                Next::End => break,
            };
        }
        self.round_done();
        self.schedule.behind(Instant::now())
    }

    fn is_over(&self) -> bool {
        self.context.stop_of(self.person.number).is_some_and(|stop| Instant::now() >= stop)
    }

    async fn step(&mut self, command: &Command) -> Next {
        match command {
            Command::Pause(range) => self.pause(*range).await,
            Command::ErrorDelay(range) => self.error_delay = Some(*range),
            Command::Break(errors) => self.errors_allowed = *errors,
            Command::Close | Command::CloseCollection => self.desk.close_view(),
            Command::ProfileClose => self.desk.profile = None,
            Command::CloseDatabase => self.desk.close_database(),
            Command::Drop => {
                self.desk.close_database();
                self.session.disconnect();
            }
            Command::BeginLoop(name) => self.rounds_of(*name, |rounds| *rounds = 0),
            Command::Rewind { name, times, target } => return self.rewind(*name, *times, *target).await,
            Command::BeginCritical => self.enter_critical().await,
            Command::EndCritical => self.critical = None,
            Command::SkipUnless { holds, target } if !holds => return Next::Jump(*target),
            Command::SkipUnlessChance { percent, target } if !self.random.random_bool(percent.fraction()) => {
                return Next::Jump(*target);
            }
            Command::SkipUnlessNth { nth, target } if !self.is_nth(*nth) => return Next::Jump(*target),
            Command::Jump { target } => return Next::Jump(*target),
            Command::SkipUnless { .. }
            | Command::SkipUnlessChance { .. }
            | Command::SkipUnlessNth { .. }
            | Command::Known(_) => {}
            action => return self.try_action(action).await,
        }
        Next::Statement
    }

    fn rounds_of(&mut self, name: LoopName, change: impl FnOnce(&mut u64)) {
        let [first, second] = &mut self.rounds;
        change(match name {
            LoopName::First => first,
            LoopName::Second => second,
        });
    }

    async fn rewind(&mut self, name: LoopName, times: Option<u64>, target: usize) -> Next {
        // A loop that neither pauses nor sends anything must not keep others from running.
        tokio::task::yield_now().await;
        let mut done = 0;
        self.rounds_of(name, |rounds| {
            *rounds += 1;
            done = *rounds;
        });
        if name == self.main_loop {
            self.round_done();
        }
        if times.is_some_and(|times| done >= times) { Next::Statement } else { Next::Jump(target) }
    }

    /// Counts a round of the main loop; the run waits for everyone's first.
    fn round_done(&mut self) {
        self.round += 1;
        if self.round == 1 {
            self.context.first_rounds.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) async fn pause(&mut self, range: TimeRange) {
        let think = range.at(self.random.random(), self.context.speedup);
        self.schedule.think(think, Instant::now());
        self.sleep_until_due().await;
    }

    async fn sleep_until_due(&mut self) {
        let wake_at = self.schedule.wake_at(Instant::now());
        self.woken = wake_at.is_some();
        let Some(wake_at) = wake_at else { return };
        let closes_at = self.context.keep_alive.and_then(|idle| Instant::now().checked_add(idle));
        if let Some(closes_at) = closes_at.filter(|closes_at| *closes_at < wake_at) {
            self.context.sleep_until(closes_at, self.person.number).await;
            self.session.close_idle();
        }
        self.context.sleep_until(wake_at, self.person.number).await;
    }

    async fn enter_critical(&mut self) {
        let from = Instant::now();
        self.critical = self.context.critical.enter().await;
        self.schedule.shift(from.elapsed());
    }

    /// Acts, and once more after a failure if the script has an ErrorDelay.
    async fn try_action(&mut self, action: &Command) -> Next {
        for try_number in 0..2 {
            // A user who pauses, as nearly all do at any moment, does not hold the room that a request takes.
            match Box::pin(self.act(action)).await {
                Ok(()) => return Next::Statement,
                Err(Stopped { run_is_over: true }) => return Next::End,
                Err(Stopped { run_is_over: false }) => {}
            }
            self.errors += 1;
            if self.errors_allowed.is_some_and(|allowed| self.errors >= allowed) {
                return Next::End;
            }
            match self.error_delay {
                Some(delay) if try_number == 0 => self.pause(delay).await,
                _ => break,
            }
        }
        Next::Statement
    }

    async fn act(&mut self, action: &Command) -> Acted {
        match action {
            Command::ChangeTo { database, .. } => {
                let database = self.database(database);
                self.open_database(database).await
            }
            Command::Open { view } => {
                let view = self.view(view.as_ref());
                self.read_entries(Operation::Open, view, From::Position(0), FIRST_PAGE).await
            }
            Command::Entries { start, count } => self.entries(*start, *count).await,
            Command::Navigate { count, step } => self.navigate(*count, *step).await,
            Command::Read { count } => self.read_some(*count).await,
            Command::Add { count, size, folder } => {
                let folder = folder.as_ref().map(|folder| self.text(folder));
                self.add(*count, size, folder).await
            }
            Command::Update { count, stamp } => self.update(*count, *stamp).await,
            Command::Delete { count } => self.delete(*count).await,
            Command::Populate { count, size, folder } => {
                let folder = folder.as_ref().map(|folder| self.text(folder));
                self.populate(*count, size, folder).await
            }
            Command::SendMessage { size, sending } => self.send(Form::Memo, size, *sending).await,
            Command::Calendar { kind, sending } if self.has_calendar() => {
                self.add_event(*kind, *sending).await
            }
            Command::Calendar { kind, sending } => {
                let size = self.context.normal_message_size.clone();
                self.send(Form::Calendar(*kind), &size, *sending).await
            }
            Command::CheckForNewMail { database } => {
                let database = self.mail_or(database.as_ref());
                self.ask_for_mail(Operation::CheckForNewMail, &database).await.map(drop)
            }
            Command::Mail(command) => self.mail(command).await,
            other => self.act_in_groupware(other).await,
        }
    }

    /// Text as it is for this user.
    pub(super) fn text(&self, text: &UserText) -> String {
        text.of(self.person.number, &self.person.name)
    }

    pub(super) fn database(&self, name: &UserText) -> String {
        database_named(&self.text(name), &self.person)
    }

    /// The database of that name, or the user's mail database.
    pub(super) fn mail_or(&self, name: Option<&UserText>) -> String {
        name.map_or_else(|| self.person.mail_database.clone(), |name| self.database(name))
    }

    /// The view of that name, or the open database's default one.
    pub(super) fn view(&self, name: Option<&UserText>) -> String {
        match name {
            Some(name) => self.text(name),
            None if self.desk.database == self.person.mail_database => "$Inbox".to_owned(),
            None => "Topics".to_owned(),
        }
    }

    /// The next request may be sent, and counts from when it was due.
    pub(super) fn begin(&mut self) -> (Begin, Instant) {
        let now = Instant::now();
        let begin = self.schedule.begin(now, self.woken);
        self.woken = false;
        if let Some(lag) = begin.lag {
            self.context.recorder.lag(lag, now);
        }
        (begin, now)
    }

    /// Records an answer, or a failure.
    pub(super) fn end<T>(
        &mut self,
        operation: Operation,
        (begin, sent): (Begin, Instant),
        answer: Result<T, Failure>,
    ) -> Result<T, Stopped> {
        let sample = Sample { operation, due: begin.due, sent, answered: Instant::now() };
        match answer {
            Ok(answer) => {
                self.context.recorder.answered(&sample);
                Ok(answer)
            }
            Err(failure) => {
                self.context.recorder.failed(&sample, &failure);
                Err(Stopped { run_is_over: self.is_over() })
            }
        }
    }

    /// In every nth round, beginning with a round that differs from user to user.
    pub(super) fn is_nth(&self, nth: u64) -> bool {
        (self.round + self.person.number as u64).is_multiple_of(nth.max(1))
    }
}

fn main_loop(script: &Script) -> LoopName {
    let mut commands = script.statements.iter().map(|statement| &statement.command);
    let endless = commands.find_map(|command| match command {
        Command::Rewind { name, times: None, .. } => Some(*name),
        _ => None,
    });
    endless.unwrap_or(LoopName::First)
}
