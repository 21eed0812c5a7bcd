//! One simulated user: runs the script, statement by statement.

mod mail;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use super::context::Context;
use super::critical::InCritical;
use super::desk::Desk;
use crate::content::{Form, Message, Writer};
use crate::driver::{Ability, Change, Failure, FailureKind, Fetched, From, Ledger, Person, Session};
use crate::measure::{Operation, Sample};
use crate::schedule::{Begin, Schedule};
use crate::script::{CalendarKind, Command, Direction, LoopName, MessageSize, Sending, TimeRange};

/// Entries of the page that is read when a view is opened.
const FIRST_PAGE: u64 = 30;

/// How often a user reads a document again that someone else has changed in the meantime.
const CONFLICT_TRIES: usize = 3;

/// What comes after a statement.
enum Next {
    Statement,
    Jump(usize),
    End,
}

/// An action failed, and has been recorded; or the run is over.
struct Stopped {
    run_is_over: bool,
}

type Acted = Result<(), Stopped>;

pub(super) struct User<S> {
    context: Arc<Context>,
    person: Person,
    session: S,
    random: SmallRng,
    writer: Writer,
    schedule: Schedule,
    woken: bool,
    /// Rounds done of each loop, and of the main loop since the beginning.
    rounds: [u64; 2],
    round: u64,
    desk: Desk,
    error_delay: Option<TimeRange>,
    errors: u64,
    errors_allowed: Option<u64>,
    critical: Option<InCritical>,
    mail_seen: String,
    /// Where what is sent as documents, or as mail, is noted.
    ledger: Option<(Ability, Arc<Ledger>)>,
}

impl<S: Session> User<S> {
    pub(super) fn new(context: Arc<Context>, person: Person, session: S, start: Instant) -> Self {
        let seed = context.seed;
        let ledger = session.ledger();
        let run = ledger.as_ref().map_or(context.run, |(_, ledger)| ledger.run());
        Self {
            random: SmallRng::seed_from_u64(seed ^ (person.number as u64).rotate_left(32)),
            writer: Writer::new(&person, seed, run),
            schedule: Schedule::new(context.model, start),
            desk: Desk::default(),
            context,
            person,
            session,
            woken: true,
            rounds: [0; 2],
            round: 0,
            error_delay: None,
            errors: 0,
            errors_allowed: None,
            critical: None,
            mail_seen: String::new(),
            ledger,
        }
    }

    /// Runs the script until it ends or the run is over. Returns how far behind the timetable the user was.
    pub(super) async fn run(mut self) -> Duration {
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
            Command::Close => self.desk.close_view(),
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
            Command::Jump { target } => return Next::Jump(*target),
            Command::SkipUnless { .. } | Command::Known(_) => {}
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
        if times.is_none() {
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

    async fn pause(&mut self, range: TimeRange) {
        let think = range.at(self.random.random(), self.context.speedup);
        self.schedule.think(think, Instant::now());
        self.sleep_until_due().await;
    }

    async fn sleep_until_due(&mut self) {
        let wake_at = self.schedule.wake_at(Instant::now());
        self.woken = wake_at.is_some();
        if let Some(wake_at) = wake_at {
            self.context.sleep_until(wake_at, self.person.number).await;
        }
    }

    async fn enter_critical(&mut self) {
        let from = Instant::now();
        self.critical = self.context.critical.enter().await;
        self.schedule.shift(from.elapsed());
    }

    /// Acts, and once more after a failure if the script has an ErrorDelay.
    async fn try_action(&mut self, action: &Command) -> Next {
        for try_number in 0..2 {
            match self.act(action).await {
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
                let database = self.database_named(&database.of(self.person.number, &self.person.name));
                self.open_database(database).await
            }
            Command::Open { view } => {
                let view = view.of(self.person.number, &self.person.name);
                let (from, count) = (From::Position(0), FIRST_PAGE);
                self.read_entries(Operation::Open, view, from, count).await
            }
            Command::Entries { start, count } => self.entries(*start, *count).await,
            Command::Navigate { count, direction, circular } => {
                self.navigate(*count, *direction, *circular).await
            }
            Command::Read { count } => self.read_some(*count).await,
            Command::Add { count, body } => self.add(*count, *body).await,
            Command::Update { count, stamp } => self.update(*count, *stamp).await,
            Command::Delete { count } => self.delete(*count).await,
            Command::Populate { count, body } => self.populate(*count, *body).await,
            Command::SendMessage { size, sending } => self.send(Form::Memo, *size, *sending).await,
            Command::Calendar { kind, sending } if self.has_calendar() => {
                self.add_event(*kind, *sending).await
            }
            Command::Calendar { kind, sending } => {
                let size = MessageSize::Bytes { body: self.context.normal_message_bytes, attachment: 0 };
                self.send(Form::Calendar(*kind), size, *sending).await
            }
            Command::CheckForNewMail { database } => {
                let database = database.as_ref().map(|name| name.of(self.person.number, &self.person.name));
                self.check_for_new_mail(database).await
            }
            Command::Mail(command) => self.mail(command).await,
            _ => Ok(()),
        }
    }

    /// The next request may be sent, and counts from when it was due.
    fn begin(&mut self) -> (Begin, Instant) {
        let now = Instant::now();
        let begin = self.schedule.begin(now, self.woken);
        self.woken = false;
        if let Some(lag) = begin.lag {
            self.context.recorder.lag(lag, now);
        }
        (begin, now)
    }

    /// Records an answer, or a failure.
    fn end<T>(
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

    /// A script's name for a database: `server!!path`, an ending `.nsf`, `MAIL` or `mail1` for the user's
    /// own mail database.
    fn database_named(&self, name: &str) -> String {
        let path = name.rsplit("!!").next().unwrap_or(name).replace('\\', "/");
        let path = path.strip_suffix(".nsf").unwrap_or(&path);
        let last = path.rsplit('/').next().unwrap_or(path);
        let own = path.eq_ignore_ascii_case("mail")
            || last.strip_prefix("mail").is_some_and(|number| number == self.person.number.to_string());
        if own { self.person.mail_database.clone() } else { path.to_owned() }
    }

    async fn open_database(&mut self, database: String) -> Acted {
        let begin = self.begin();
        let answer = self.session.open_database(&database).await;
        let state = self.end(Operation::ChangeTo, begin, answer)?;
        self.mail_seen = state.change;
        self.desk.open_database(database);
        Ok(())
    }

    async fn check_for_new_mail(&mut self, database: Option<String>) -> Acted {
        let database = match database {
            Some(name) => self.database_named(&name),
            None => self.person.mail_database.clone(),
        };
        let begin = self.begin();
        let answer = self.session.open_database(&database).await;
        self.mail_seen = self.end(Operation::CheckForNewMail, begin, answer)?.change;
        Ok(())
    }

    async fn read_entries(&mut self, operation: Operation, view: String, from: From, count: u64) -> Acted {
        let begin = self.begin();
        let answer = self.session.read_entries(&self.desk.database, &view, from, count).await;
        let page = self.end(operation, begin, answer)?;
        self.desk.show(view, page);
        Ok(())
    }

    async fn entries(&mut self, start: Option<u64>, count: u64) -> Acted {
        let Some((view, next)) = self.desk.next_page() else { return Ok(()) };
        let from = start.map_or(next, |start| From::Position(start - 1));
        self.read_entries(Operation::Entries, view, from, count).await
    }

    async fn navigate(&mut self, count: u64, direction: Direction, circular: bool) -> Acted {
        for _ in 0..count {
            let Some(id) = self.desk.turn(direction, circular) else { return Ok(()) };
            self.fetch(Operation::Navigate, &id).await?;
        }
        Ok(())
    }

    async fn read_some(&mut self, count: u64) -> Acted {
        for _ in 0..count {
            let Some(id) = self.desk.shown().choose(&mut self.random).cloned() else { return Ok(()) };
            self.fetch(Operation::Read, &id).await?;
        }
        Ok(())
    }

    async fn fetch(&mut self, operation: Operation, id: &str) -> Result<Fetched, Stopped> {
        let known = self.desk.revision(id);
        let begin = self.begin();
        let answer = self.session.fetch(&self.desk.database, id, known.as_deref()).await;
        let fetched = self.end(operation, begin, answer)?;
        self.desk.know(id, &fetched.revision);
        Ok(fetched)
    }

    async fn add(&mut self, count: u64, body: usize) -> Acted {
        for _ in 0..count {
            let recipients = vec![self.person.name.clone()];
            let posted = jiff::Timestamp::now().as_second();
            let mut message = self.writer.write(Form::Memo, body, 0, recipients, posted);
            message.delivered = true;
            let begin = self.begin();
            let answer = self.session.add(&self.desk.database, &message).await;
            let revision = self.end(Operation::Add, begin, answer)?;
            self.desk.know(&message.id, &revision);
        }
        Ok(())
    }

    /// Changes documents that were opened before, no document twice.
    async fn update(&mut self, count: u64, stamp: bool) -> Acted {
        let (fetching, writing) = if stamp {
            (Operation::StampFetch, Operation::Stamp)
        } else {
            (Operation::UpdateFetch, Operation::Update)
        };
        for id in self.desk.choose(count, &mut self.random) {
            for try_number in 1..=CONFLICT_TRIES {
                let fetched = self.fetch(fetching, &id).await?;
                let text = format!("round {}", self.round);
                let change = if stamp { Change::Category(&text) } else { Change::Subject(&text) };
                let begin = self.begin();
                let answer = self.session.update(&self.desk.database, fetched, change).await;
                if self.is_conflict(&answer, try_number) {
                    continue;
                }
                let revision = self.end(writing, begin, answer)?;
                self.desk.know(&id, &revision);
                break;
            }
        }
        Ok(())
    }

    async fn delete(&mut self, count: u64) -> Acted {
        for id in self.desk.choose(count, &mut self.random) {
            let mut known = self.desk.revision(&id);
            for try_number in 1..=CONFLICT_TRIES {
                let revision = match known.take() {
                    Some(revision) => revision,
                    None => self.fetch(Operation::DeleteFetch, &id).await?.revision,
                };
                let found = self.session.message_of(&id);
                self.deleting(found.as_ref());
                let begin = self.begin();
                let answer = self.session.delete(&self.desk.database, &id, &revision).await;
                if self.is_conflict(&answer, try_number) {
                    continue;
                }
                self.end(Operation::Delete, begin, answer)?;
                self.deleted(found.as_ref());
                self.desk.forget(&id);
                break;
            }
        }
        Ok(())
    }

    /// Someone else was faster; that is no failure of the server unless it goes on.
    fn is_conflict<T>(&self, answer: &Result<T, Failure>, try_number: usize) -> bool {
        let conflict = answer.as_ref().is_err_and(|failure| failure.kind == FailureKind::Conflict);
        let again = conflict && try_number < CONFLICT_TRIES;
        if again {
            self.context.recorder.conflict();
        }
        again
    }

    async fn populate(&mut self, count: u64, body: usize) -> Acted {
        let begin = self.begin();
        let database = self.desk.database.clone();
        let answer = self.session.open_database(&database).await;
        let state = self.end(Operation::ChangeTo, begin, answer)?;
        // The design document is counted too.
        let missing = count.saturating_sub(state.documents.saturating_sub(1));
        for _ in 0..missing {
            let posted = jiff::Timestamp::now().as_second();
            let mut message = self.writer.write(Form::Memo, body, 0, vec![self.person.name.clone()], posted);
            message.delivered = true;
            let begin = self.begin();
            let answer = self.session.add(&database, &message).await;
            self.end(Operation::Populate, begin, answer)?;
        }
        Ok(())
    }

    /// In every nth round, beginning with a round that differs from user to user.
    fn is_nth(&self, nth: u64) -> bool {
        (self.round + self.person.number as u64).is_multiple_of(nth.max(1))
    }

    async fn send(&mut self, form: Form, size: MessageSize, sending: Sending) -> Acted {
        if !self.is_nth(sending.nth) {
            return Ok(());
        }
        let message = self.compose(form, size, sending);
        let operation = match form {
            Form::Memo => Operation::SendMessage,
            Form::Calendar(CalendarKind::Appointment) => Operation::Appointment,
            Form::Calendar(CalendarKind::Invitation) => Operation::Invitation,
        };
        let begin = self.begin();
        let answer = self.session.send(&message).await;
        self.sent(Ability::Documents, &message, &answer);
        self.end(operation, begin, answer)
    }

    /// A message to people chosen at random.
    fn compose(&mut self, form: Form, size: MessageSize, sending: Sending) -> Message {
        let people = &self.context.people;
        let recipients: Vec<String> =
            people.choose_multiple(&mut self.random, sending.recipients).cloned().collect();
        let (body, attachment) = self.writer.sizes(size);
        let posted = jiff::Timestamp::now().as_second();
        self.writer.write(form, body, attachment, recipients, posted)
    }
}
