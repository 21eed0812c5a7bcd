//! The thread that runs the state machine. It waits for nothing but what it hears; calls of the engine are tasks next to it.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::thread::JoinHandle;
use std::time::Duration;

use scrinium_assertion::never;
use scrinium_cluster::{
    CallId, Engine, Group, Input, Keys, NoAnswer, Output, Refusal, Reply, Revision, Role, Rules,
    SubmissionId, SubmissionOutcome, Timing, Transaction,
};
use scrinium_log::Sequence;
use tokio::runtime::Builder;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use super::following::Work;
use super::inbox::{Inbox, Order, Submission};
use super::member::MemberStatus;
use super::readers::Readers;
use crate::boot_clock::boot_ms;

/// How often time passes for the state machine.
const TICK: Duration = Duration::from_millis(50);

/// More answers than calls are under way, of which each kind has one, and some that were given up.
const MOST_ANSWERS: usize = 64;

/// How often the leader lets the engine forget what keys held before. At 40 MB a second its database then grows by 400 MB.
const FORGET_EVERY: Duration = Duration::from_secs(10);

pub(super) struct Running<R: Rules, E: Engine> {
    group: Group<R>,
    keys: Keys,
    call_within: Duration,
    engine: Arc<E>,
    inbox: Arc<Inbox>,
    answers: Option<mpsc::Sender<(CallId, Result<Reply, NoAnswer>)>>,
    work: SyncSender<Work>,
    status: watch::Sender<MemberStatus>,
    submissions: u64,
    submitted: Option<(SubmissionId, SyncSender<SubmissionOutcome>)>,
    readers: Readers,
    forgetting: Forgetting,
}

/// What the engine may forget: what was there when it was last told to.
struct Forgetting {
    newest: Revision,
    before: Revision,
    due: Instant,
}

impl<R: Rules, E: Engine> Running<R, E> {
    pub(super) fn new(
        (group, keys, timing): (Group<R>, Keys, Timing),
        engine: Arc<E>,
        inbox: Arc<Inbox>,
        (work, status): (SyncSender<Work>, watch::Sender<MemberStatus>),
    ) -> Self {
        Self {
            group,
            keys,
            call_within: Duration::from_millis(timing.call_ms),
            engine,
            inbox,
            answers: None,
            work,
            status,
            submissions: 0,
            submitted: None,
            readers: Readers::default(),
            forgetting: Forgetting {
                newest: Revision(0),
                before: Revision(0),
                due: Instant::now() + FORGET_EVERY,
            },
        }
    }

    async fn run(mut self, mut orders: mpsc::Receiver<Order>) {
        let (sender, mut answers) = mpsc::channel(MOST_ANSWERS);
        self.answers = Some(sender);
        let wakes = self.wake();
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let inbox = Arc::clone(&self.inbox);
        while !inbox.has_ended() {
            tokio::select! {
                () = inbox.bell.notified() => self.hear_bell(),
                Some((call, reply)) = answers.recv() => {
                    if let Ok(reply) = &reply {
                        self.forgetting.newest = self.forgetting.newest.max(reply.revision);
                    }
                    self.step(Input::Answered { call, reply });
                }
                Some(order) = orders.recv() => self.obey_order(order),
                () = wakes.notified() => self.step(Input::Wake),
                _ = ticks.tick() => self.step(Input::Tick),
            }
            self.forget_if_due();
        }
    }

    /// Rings whenever the engine may have something new.
    fn wake(&self) -> Arc<Notify> {
        let wakes = Arc::new(Notify::new());
        let (bell, engine) = (Arc::clone(&wakes), Arc::clone(&self.engine));
        let (from, to) = (self.keys.entry(Sequence(0)), self.keys.after_entries());
        // It ends with the runtime.
        tokio::spawn(async move {
            loop {
                engine.changed(from.clone(), to.clone()).await;
                bell.notify_one();
                // However often the engine says so, others have their turn.
                tokio::task::yield_now().await;
            }
        });
        wakes
    }

    fn step(&mut self, input: Input) {
        let outputs = self.group.step(boot_ms(), input);
        // Who is answered now finds the status that the answer is about.
        self.publish();
        for output in outputs {
            self.obey(output);
        }
    }

    fn obey(&mut self, output: Output) {
        match output {
            Output::Call { call, transaction } => self.call(call, transaction),
            Output::Apply { first, records, chain } => self.apply(Work { first, records, chain }),
            Output::Submitted { submission, outcome } => self.answer_submission(submission, outcome),
            Output::TakeSnapshot { read } => self.readers.take_snapshot(read),
            Output::AnswerRead { read } => self.readers.answer(read),
            Output::RefuseRead { read, refusal } => self.readers.refuse(read, refusal),
            Output::Role(role) => tracing::info!(?role, "this member of the cluster has another role"),
            Output::Behind { next, oldest } => {
                tracing::error!(
                    needs = next.0,
                    engine_begins_at = oldest.0,
                    "this member was away for too long: it needs a copy of another member"
                );
                self.status.send_modify(|status| status.behind = Some((next, oldest)));
            }
            Output::MemberDiffers { member, at } => {
                tracing::error!(
                    member = member.0,
                    record = at.0,
                    "a member holds other records than were agreed on; take it out and compare its store"
                );
                self.status.send_modify(|status| status.differing = Some((member, at)));
            }
            Output::Stopped(reason) => {
                tracing::error!(%reason, "this member of the cluster has stopped");
                self.status.send_modify(|status| status.stop_reason = Some(reason));
            }
        }
    }

    fn call(&self, call: CallId, transaction: Transaction) {
        let Some(answers) = self.answers.clone() else { return };
        // The engine ends a call by itself, and then takes the next server; one that does not is not waited for.
        let (engine, within) = (Arc::clone(&self.engine), self.call_within.saturating_mul(2));
        tokio::spawn(async move {
            let reply = timeout(within, engine.transact(transaction)).await.unwrap_or(Err(NoAnswer));
            // Nobody hears it once the member has ended.
            drop(answers.send((call, reply)).await);
        });
    }

    fn apply(&self, work: Work) {
        match self.work.try_send(work) {
            Ok(()) => {}
            Err(TrySendError::Full(work)) => {
                let _fault =
                    never!("nothing more is handed out before all is applied", "record {}", work.first.0);
                self.inbox.end();
            }
            // It has said why.
            Err(TrySendError::Disconnected(_)) => self.inbox.end(),
        }
    }

    fn hear_bell(&mut self) {
        let through = self.inbox.applied();
        if through > self.group.applied() {
            self.step(Input::Applied { through });
        }
        if let Some(submission) = self.inbox.take_submission() {
            self.submit(submission);
        }
    }

    fn submit(&mut self, Submission { first, records, answer }: Submission) {
        let (position, applied) = (self.group.position(), self.group.applied());
        if matches!(self.group.role(), Role::Leader(_))
            && applied == position.last()
            && first != position.next()
        {
            let _fault =
                never!("a leader's log ends where its group does", "record {} after {}", first.0, applied.0);
            let _answered = answer.try_send(SubmissionOutcome::Refused(Refusal::Busy));
            return;
        }
        self.submissions += 1;
        let submission = SubmissionId(self.submissions);
        self.submitted = Some((submission, answer));
        self.step(Input::Submit { submission, records });
    }

    fn answer_submission(&mut self, submission: SubmissionId, outcome: SubmissionOutcome) {
        if let Some((_, answer)) = self.submitted.take_if(|(waiting, _)| *waiting == submission) {
            // There is room for one answer, and one who does not wait any more needs none.
            let _answered = answer.try_send(outcome);
        }
    }

    fn obey_order(&mut self, order: Order) {
        match order {
            Order::Read { freshness, begun } => {
                let read = self.readers.begin(begun);
                self.step(Input::ReadBegun { read, freshness });
            }
            Order::SnapshotTaken { read, confirmed } => {
                if self.readers.snapshot_taken(read, confirmed) {
                    self.step(Input::SnapshotTaken { read });
                }
            }
            Order::HandOver(to) => self.step(Input::HandOver { to }),
            Order::Seal => self.step(Input::Seal),
            Order::AllowClaims(allowed) => self.step(Input::AllowClaims(allowed)),
            Order::Restored(applied) => {
                self.status.send_modify(|status| status.behind = None);
                self.inbox.note_applied(applied.last());
                self.step(Input::Restored { applied });
            }
        }
    }

    /// Nothing that is asked of the engine is about what keys held before.
    fn forget_if_due(&mut self) {
        let now = Instant::now();
        if now < self.forgetting.due {
            return;
        }
        let through = std::mem::replace(&mut self.forgetting.before, self.forgetting.newest);
        self.forgetting.due = now + FORGET_EVERY;
        if matches!(self.group.role(), Role::Leader(_)) && through > Revision(0) {
            let engine = Arc::clone(&self.engine);
            tokio::spawn(async move {
                if engine.forget_before(through).await.is_err() {
                    tracing::debug!(
                        through = through.0,
                        "the engine was not told what to forget; it is, later"
                    );
                }
            });
        }
    }

    fn publish(&self) {
        let group = &self.group;
        self.status.send_if_modified(|status| {
            let mut now = status.clone();
            (now.role, now.leader, now.incarnation) = (group.role(), group.leader(), group.incarnation());
            (now.position, now.applied) = (group.position(), group.applied());
            now.lease_until_ms = group.lease_until_ms();
            let is_new = now != *status;
            *status = now;
            is_new
        });
    }
}

impl<R: Rules, E: Engine> Drop for Running<R, E> {
    fn drop(&mut self) {
        self.inbox.end();
        // What waits in the inbox would wait for its whole time. Nobody was asked about it.
        if let Some(submission) = self.inbox.take_submission() {
            let _answered = submission.answer.try_send(SubmissionOutcome::Refused(Refusal::Busy));
        }
        self.status.send_modify(|status| status.has_ended = true);
    }
}

pub(super) fn start<R: Rules, E: Engine>(
    running: Running<R, E>,
    orders: mpsc::Receiver<Order>,
) -> io::Result<JoinHandle<()>> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new().name("cluster-member".to_owned()).spawn(move || {
        runtime.block_on(running.run(orders));
    })
}
