//! Three members in one process with logs of their own, on the simulated engine and on etcd.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use scrinium_cluster::{Engine, Freshness, GroupOptions, MemberId, Refusal, Role};
use scrinium_log::{Agree, Chain, LogError, NotAgreed, Sequence};
use scrinium_member::{LocalLog, Seat};
use tempfile::TempDir;

use crate::engines::{InMemory, Random, Unreliable};
use crate::etcd_server::{EtcdServer, block_on};
use crate::node::{Node, Sound, Told, beginning, keys, records, timing, wait_for};

const WRITERS: u64 = 4;

struct Three {
    folder: TempDir,
    nodes: Vec<Node>,
}

impl Three {
    fn start(engine: &Arc<impl Engine>) -> Self {
        let begun = wait_for("the group begins", || block_on(engine.transact(beginning())).ok());
        // One whose reply was lost has begun it.
        assert!(begun.succeeded || begun.found.is_empty());
        let folder = tempfile::tempdir().unwrap();
        let start = |id: u32| Node::start(&folder.path().join(id.to_string()), id, Arc::clone(engine));
        let nodes = (1..=3).map(start).collect();
        Self { folder, nodes }
    }

    fn leader(&self) -> &Node {
        wait_for("a leader", || self.nodes.iter().find(|node| node.member.status().takes_changes()))
    }

    /// Each writer stores this many records at whichever member leads.
    fn write(&self, name: &str, each: u64) -> Told {
        let told = Mutex::new(Told::default());
        std::thread::scope(|scope| {
            for writer in 0..WRITERS {
                let told = &told;
                scope.spawn(move || {
                    let mut stored = 0;
                    let mut tried = 0;
                    while stored < each {
                        let leader = self.leader();
                        tried += 1;
                        let length = if tried % 17 == 0 { 60_000 } else { 0 };
                        let record = Bytes::from(format!("{name} {writer} {tried} {}", "x".repeat(length)));
                        let outcome = if writer == 0 {
                            leader.committer.commit(record.clone())
                        } else {
                            leader.committer.submit(record.clone()).and_then(scrinium_log::Commit::wait)
                        };
                        stored += u64::from(outcome.is_ok());
                        told.lock().note(record, outcome);
                    }
                });
            }
        });
        told.into_inner()
    }

    /// Waits until all have the same, ends them, and holds what was told against their logs.
    fn end(self, told: &Told) {
        let newest = told.stored.iter().map(|(number, _)| *number).max().unwrap();
        for node in &self.nodes {
            node.wait("all that was stored", |status| status.applied >= newest);
        }
        let Self { folder, nodes } = self;
        nodes.into_iter().for_each(Node::stop);
        let logs: Vec<Vec<Bytes>> = (1..=3).map(|id| records(&folder.path().join(id.to_string()))).collect();
        told.check(&logs);
    }
}

/// Changes, readers, and handing over twice.
fn work_together(engine: &Arc<impl Engine>, name: &str) {
    let three = Three::start(engine);
    let mut told = three.write("before", 40);
    let newest = told.stored.iter().map(|(number, _)| *number).max().unwrap();
    block_on(read(&three, newest));
    for to in [2, 3] {
        let to = MemberId(to);
        wait_for("the other one leads", || {
            let leader = three.leader();
            if leader.id == to {
                return Some(());
            }
            let follower = three.nodes.iter().find(|node| node.id != leader.id).unwrap();
            follower.member.hand_over(to).unwrap();
            leader.member.hand_over(to).unwrap();
            std::thread::sleep(Duration::from_millis(200));
            None
        });
        told.add(three.write(&format!("led by {to:?}"), 20));
    }
    println!(
        "{name}: {} stored, {} refused, {} unknown",
        told.stored.len(),
        told.refused.len(),
        told.unknown
    );
    three.end(&told);
}

async fn read(three: &Three, newest: Sequence) {
    for node in &three.nodes {
        // Who lacks the record waits for it.
        let reader = node.member.begin_read(Freshness::Session(newest)).await.unwrap();
        assert!(node.member.status().applied >= newest);
        reader.confirmed().await.unwrap();
        node.member.begin_read(Freshness::Stale).await.unwrap().confirmed().await.unwrap();
        let latest = node.member.begin_read(Freshness::Latest).await;
        match (node.member.status().role, latest) {
            (Role::Leader(_), Ok(reader)) => match reader.confirmed().await {
                Ok(()) | Err(Refusal::NotConfirmed | Refusal::NotLeader { .. }) => {}
                Err(other) => panic!("{other}"),
            },
            (_, Ok(_) | Err(Refusal::NotLeader { .. })) => {}
            (_, Err(other)) => panic!("{other}"),
        }
    }
}

#[test]
fn members_agree_on_the_simulated_engine() {
    work_together(&Arc::new(InMemory::default()), "in memory");
}

#[test]
fn members_agree_on_an_engine_that_loses_calls_and_replies() {
    let engine = Arc::new(InMemory::default());
    let random = Mutex::new(Random::new(7));
    work_together(&Arc::new(Unreliable { engine, random }), "in memory, unreliable");
}

#[test]
fn members_agree_on_etcd() {
    let Some(server) = EtcdServer::start(&[]) else { return };
    work_together(&Arc::new(server.engine(Duration::from_millis(800))), "etcd");
}

#[test]
fn members_agree_on_an_etcd_that_loses_calls_and_replies() {
    let Some(server) = EtcdServer::start(&[]) else { return };
    let engine = Arc::new(server.engine(Duration::from_millis(800)));
    let random = Mutex::new(Random::new(8));
    work_together(&Arc::new(Unreliable { engine, random }), "etcd, unreliable");
}

#[test]
fn members_go_on_after_etcd_was_paused_and_killed() {
    let Some(mut server) = EtcdServer::start(&[]) else { return };
    let three = Three::start(&Arc::new(server.engine(Duration::from_millis(800))));
    let mut told = three.write("before", 10);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| {
            let mut told = Told::default();
            let mut round = 0;
            while !is_over.load(Ordering::SeqCst) {
                round += 1;
                told.add(three.write(&format!("round {round}"), 3));
            }
            told
        });
        server.pause();
        std::thread::sleep(Duration::from_millis(2_500));
        server.go_on();
        std::thread::sleep(Duration::from_millis(1_000));
        server.kill();
        std::thread::sleep(Duration::from_millis(500));
        assert!(server.run());
        std::thread::sleep(Duration::from_millis(1_500));
        is_over.store(true, Ordering::SeqCst);
        told.add(writing.join().unwrap());
    });
    told.add(three.write("after", 10));
    three.end(&told);
}

/// A log whose disk is gone.
struct Gone;

impl LocalLog for Gone {
    fn follow(&mut self, _: Sequence, _: &[Bytes], _: Chain) -> Result<(), LogError> {
        Err(LogError::Stopped)
    }

    fn failure(&self) -> Option<LogError> {
        Some(LogError::Stopped)
    }
}

#[test]
fn a_member_whose_log_takes_nothing_ends_and_says_so() {
    let engine = Arc::new(InMemory::default());
    block_on(engine.transact(beginning())).unwrap();
    let options = GroupOptions {
        me: MemberId(1),
        keys: keys(),
        timing: timing(),
        seed: 1,
        incarnation: None,
        applied: Chain::EMPTY,
    };
    let seat = Seat::new(options).unwrap();
    let mut agreement = seat.agreement();
    let member = seat.take::<Sound>(engine, Gone).unwrap();
    let status = wait_for("the end", || Some(member.status()).filter(|status| status.has_ended));
    assert!(status.sentence().contains("takes nothing any more"), "{}", status.sentence());
    let refused = agreement.agree(Sequence(1), &["late".into()]);
    assert!(matches!(refused, Err(NotAgreed::Refused(_))), "{refused:?}");
    assert_eq!(member.hand_over(MemberId(2)), Err(Refusal::Busy));
}
