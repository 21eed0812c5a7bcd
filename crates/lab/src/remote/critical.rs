//! The critical region of a run with several drivers: the controller lets one in at a time, in the order in
//! which they asked.

use std::collections::VecDeque;

use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::message::Order;

/// Who is in the region, and who waits. A driver asks for one user at a time.
#[derive(Default)]
pub(super) struct SharedRegion {
    state: Mutex<RegionState>,
}

#[derive(Default)]
struct RegionState {
    inside: Option<usize>,
    waiting: VecDeque<usize>,
    drivers: Vec<mpsc::Sender<Order>>,
}

impl SharedRegion {
    /// A driver takes part, and gets a number.
    pub(super) fn join(&self, orders: mpsc::Sender<Order>) -> usize {
        let mut state = self.state.lock();
        state.drivers.push(orders);
        state.drivers.len() - 1
    }

    pub(super) fn enter(&self, driver: usize) {
        let mut state = self.state.lock();
        if !state.waiting.contains(&driver) {
            state.waiting.push_back(driver);
        }
        state.let_in();
    }

    /// The driver's user has left; or the driver itself, with a user that was inside or waited.
    pub(super) fn leave(&self, driver: usize) {
        let mut state = self.state.lock();
        if state.inside == Some(driver) {
            state.inside = None;
        }
        state.waiting.retain(|waiting| *waiting != driver);
        state.let_in();
    }
}

impl RegionState {
    fn let_in(&mut self) {
        while self.inside.is_none()
            && let Some(next) = self.waiting.pop_front()
        {
            let told = self.drivers.get(next).is_some_and(|orders| orders.try_send(Order::Granted).is_ok());
            // A driver that takes no more orders is lost, and keeps nobody waiting.
            self.inside = told.then_some(next);
        }
    }
}
