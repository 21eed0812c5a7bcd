//! Engines that tests ask: the simulated one in memory, and one that loses and repeats.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use scrinium_cluster::simulated::SimulatedEngine;
use scrinium_cluster::{Engine, NoAnswer, Reply, Revision, Transaction};

/// Random numbers that a seed repeats.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.next() as usize % end
    }

    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }
}

/// The simulated engine, as several members ask it. What it forgets changes nothing of what it holds.
#[derive(Clone, Debug, Default)]
pub(crate) struct InMemory(Arc<Mutex<SimulatedEngine>>);

impl Engine for InMemory {
    async fn transact(&self, transaction: Transaction) -> Result<Reply, NoAnswer> {
        Ok(self.0.lock().transact(&transaction))
    }

    async fn changed(&self, _: Bytes, _: Bytes) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    async fn forget_before(&self, _: Revision) -> Result<(), NoAnswer> {
        Ok(())
    }
}

/// Some calls never reach the engine, some replies never come back, and some calls are carried out once more later.
pub(crate) struct Unreliable<E> {
    pub(crate) engine: Arc<E>,
    pub(crate) random: Mutex<Random>,
}

impl<E: Engine> Engine for Unreliable<E> {
    async fn transact(&self, transaction: Transaction) -> Result<Reply, NoAnswer> {
        let (lost, repeated, unanswered) = {
            let mut random = self.random.lock();
            (random.chance(4), random.chance(4), random.chance(6))
        };
        if lost {
            return Err(NoAnswer);
        }
        if repeated {
            let (engine, transaction) = (Arc::clone(&self.engine), transaction.clone());
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(30)).await;
                drop(engine.transact(transaction).await);
            });
        }
        let reply = self.engine.transact(transaction).await;
        if unanswered { Err(NoAnswer) } else { reply }
    }

    async fn changed(&self, from: Bytes, to: Bytes) {
        self.engine.changed(from, to).await;
    }

    async fn forget_before(&self, through: Revision) -> Result<(), NoAnswer> {
        self.engine.forget_before(through).await
    }
}
