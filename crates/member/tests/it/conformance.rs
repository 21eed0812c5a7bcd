//! Two engines, one behaviour: etcd answers each transaction as the simulated engine does, on which the core is tested.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use scrinium_cluster::{Compare, Engine, Operation, Reply, Revision, Transaction};

use crate::engines::{InMemory, Random};
use crate::etcd_server::{EtcdServer, block_on};

const KEYS: usize = 7;
const STEPS: usize = 400;

/// What an engine calls the moments at which transactions wrote.
#[derive(Default)]
struct Moments {
    of_step: HashMap<usize, Revision>,
    steps: HashMap<Revision, usize>,
}

/// A comparison, before an engine's own revisions are put in.
#[derive(Clone, Debug)]
enum Asked {
    Absent(Bytes),
    UnchangedSince(Bytes, usize),
}

#[derive(Clone, Debug)]
struct Planned {
    compares: Vec<Asked>,
    then: Vec<Operation>,
    otherwise: Vec<Operation>,
}

/// An answer, with steps in place of revisions.
#[derive(Debug, PartialEq, Eq)]
struct Told {
    succeeded: bool,
    found: Vec<Vec<(Bytes, Bytes, usize)>>,
}

impl Planned {
    fn transaction(&self, moments: &Moments) -> Transaction {
        let compare = |asked: &Asked| match asked {
            Asked::Absent(key) => Compare::Absent { key: key.clone() },
            Asked::UnchangedSince(key, step) => {
                // A step that did not write is a moment that no engine knows.
                let since = moments.of_step.get(step).copied().unwrap_or(Revision(1 << 40));
                Compare::Unchanged { key: key.clone(), since }
            }
        };
        Transaction {
            compares: self.compares.iter().map(compare).collect(),
            then: self.then.clone(),
            otherwise: self.otherwise.clone(),
        }
    }

    fn told(&self, step: usize, reply: &Reply, moments: &mut Moments) -> Told {
        let branch = if reply.succeeded { &self.then } else { &self.otherwise };
        if branch.iter().any(|operation| matches!(operation, Operation::Put { .. })) {
            moments.of_step.insert(step, reply.revision);
            moments.steps.insert(reply.revision, step);
        }
        let found = reply.found.iter().map(|found| {
            let stored = found
                .iter()
                .map(|stored| (stored.key.clone(), stored.value.clone(), moments.steps[&stored.revision]));
            stored.collect()
        });
        Told { succeeded: reply.succeeded, found: found.collect() }
    }
}

fn key(random: &mut Random) -> Bytes {
    format!("c/{}", random.below(KEYS)).into()
}

fn branch(random: &mut Random, step: usize) -> Vec<Operation> {
    let mut operations = Vec::new();
    match random.below(4) {
        0 => operations.push(Operation::Delete { from: key(random), to: key(random) }),
        1 => {}
        _ => {
            let (one, other) = (key(random), key(random));
            operations.push(Operation::Put { key: one.clone(), value: format!("{step}").into() });
            if other != one {
                operations
                    .push(Operation::Put { key: other, value: Bytes::from(vec![b'v'; random.below(5_000)]) });
            }
        }
    }
    for _ in 0..random.below(3) {
        operations.push(if random.chance(50) {
            Operation::Get { key: key(random) }
        } else {
            let (limit, descending) = (random.below(4), random.chance(50));
            Operation::Range { from: key(random), to: key(random), limit, descending }
        });
    }
    operations
}

fn planned(random: &mut Random, step: usize) -> Planned {
    let mut compares = Vec::new();
    for _ in 0..random.below(3) {
        compares.push(if random.chance(30) {
            Asked::Absent(key(random))
        } else {
            Asked::UnchangedSince(key(random), step.saturating_sub(1 + random.below(6)))
        });
    }
    Planned { compares, then: branch(random, step), otherwise: branch(random, step) }
}

#[test]
fn etcd_answers_as_the_simulated_engine_does() {
    let Some(server) = EtcdServer::start(&[]) else { return };
    let seed = std::env::var("SCRINIUM_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    block_on(async {
        let engines = (InMemory::default(), server.engine(Duration::from_secs(20)));
        let mut moments = (Moments::default(), Moments::default());
        let mut random = Random::new(seed);
        let mut succeeded = 0;
        for step in 0..STEPS {
            let planned = planned(&mut random, step);
            let simulated = engines.0.transact(planned.transaction(&moments.0)).await.unwrap();
            let real = engines.1.ask(&planned.transaction(&moments.1)).await.unwrap();
            let told = planned.told(step, &simulated, &mut moments.0);
            let really = planned.told(step, &real, &mut moments.1);
            assert_eq!(told, really, "SCRINIUM_SEED={seed}, step {step}: {planned:?}");
            succeeded += usize::from(told.succeeded);
            // What was there before is forgotten now and then, which changes nothing.
            if step % 40 == 39 {
                engines.1.forget_before(real.revision).await.unwrap();
                engines.1.forget_before(real.revision).await.unwrap();
            }
        }
        assert!((STEPS / 10..STEPS * 9 / 10).contains(&succeeded), "{succeeded} of {STEPS} held");
    });
}

#[test]
fn a_watch_wakes_when_an_entry_comes() {
    let Some(server) = EtcdServer::start(&[]) else { return };
    block_on(async {
        let engine = server.engine(Duration::from_secs(20));
        let (from, to) = (Bytes::from_static(b"w/"), Bytes::from_static(b"w0"));
        // The watch is there.
        engine.changed(from.clone(), to.clone()).await;
        for large in [false, true] {
            let value = Bytes::from(vec![7; if large { 256 << 10 } else { 10 }]);
            let put = Operation::Put { key: "w/1".into(), value };
            let changed = engine.changed(from.clone(), to.clone());
            let put = Transaction { then: vec![put], ..Transaction::default() };
            let (_, put) = tokio::join!(
                async { tokio::time::timeout(Duration::from_secs(20), changed).await.unwrap() },
                engine.ask(&put)
            );
            put.unwrap();
        }
        let other = Operation::Put { key: "x".into(), value: Bytes::new() };
        engine.ask(&Transaction { then: vec![other], ..Transaction::default() }).await.unwrap();
        let changed = engine.changed(from, to);
        assert!(tokio::time::timeout(Duration::from_millis(300), changed).await.is_err(), "nothing came");
    });
}
