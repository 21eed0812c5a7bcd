//! Turns by priority.

use std::collections::VecDeque;

use crate::message::Priority;

/// The order in which priorities take their turns: of seven, four, two and one. Each has a turn, so none starves.
const TURNS: [Priority; 7] = [
    Priority::High,
    Priority::Normal,
    Priority::High,
    Priority::Low,
    Priority::High,
    Priority::Normal,
    Priority::High,
];

/// Who waits, first come, first served within a priority.
#[derive(Debug)]
pub(super) struct PriorityRing<T> {
    high: VecDeque<T>,
    normal: VecDeque<T>,
    low: VecDeque<T>,
    turn: usize,
}

impl<T> Default for PriorityRing<T> {
    fn default() -> Self {
        Self { high: VecDeque::new(), normal: VecDeque::new(), low: VecDeque::new(), turn: 0 }
    }
}

impl<T> PriorityRing<T> {
    fn queue(&mut self, priority: Priority) -> &mut VecDeque<T> {
        match priority {
            Priority::High => &mut self.high,
            Priority::Normal => &mut self.normal,
            Priority::Low => &mut self.low,
        }
    }

    pub(super) fn push(&mut self, priority: Priority, item: T) {
        self.queue(priority).push_back(item);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.high.is_empty() && self.normal.is_empty() && self.low.is_empty()
    }

    pub(super) fn pop(&mut self) -> Option<T> {
        for _ in 0..TURNS.len() {
            let priority = TURNS.get(self.turn).copied().unwrap_or_default();
            self.turn = (self.turn + 1) % TURNS.len();
            let item = self.queue(priority).pop_front();
            if item.is_some() {
                return item;
            }
        }
        None
    }

    /// Takes all of them out.
    pub(super) fn drain(&mut self) -> Vec<T> {
        self.high.drain(..).chain(self.normal.drain(..)).chain(self.low.drain(..)).collect()
    }
}
