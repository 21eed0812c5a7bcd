//! A view against a client that keeps the whole list.

use std::collections::BTreeMap;

use proptest::prelude::*;
use scrinium_imap_wire::SequenceSet;
use scrinium_mailbox::{
    FolderIndex, FolderState, FolderView, Messages, NumberSet, Picked, Selection, select,
};

/// A folder and its history: UIDs that are there, and when each one left.
#[derive(Default)]
struct Folder {
    there: Vec<u32>,
    left: BTreeMap<u32, u64>,
    change: u64,
    uid_next: u32,
}

impl FolderIndex for Folder {
    fn position(&self, uid: u32) -> u32 {
        u32::try_from(self.there.partition_point(|known| *known < uid)).unwrap()
    }

    fn uids_at(&self, position: u32, count: u32) -> Vec<u32> {
        self.there.iter().skip(position as usize).take(count as usize).copied().collect()
    }
}

impl Folder {
    fn state(&self) -> FolderState {
        FolderState {
            change: self.change,
            uid_next: self.uid_next,
            count: u32::try_from(self.there.len()).unwrap(),
            last_uid: self.there.last().copied().unwrap_or(0),
        }
    }

    fn add(&mut self, skipped: u32) {
        self.change += 1;
        self.uid_next += skipped;
        self.there.push(self.uid_next);
        self.uid_next += 1;
    }

    fn remove(&mut self, at: usize) {
        if self.there.is_empty() {
            return;
        }
        self.change += 1;
        let uid = self.there.remove(at % self.there.len());
        self.left.insert(uid, self.change);
    }

    fn catch_up(&self, view: &mut FolderView) {
        let since = view.state().change;
        let left = self.left.iter().filter(|(_, change)| **change > since).map(|(uid, _)| *uid);
        view.catch_up(self.state(), left, |uid| self.position(uid));
    }
}

#[derive(Clone, Debug)]
enum Action {
    Add(u32),
    Remove(usize),
    Look,
    TellOne,
    TellRanges(usize),
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        (0_u32..3).prop_map(Action::Add),
        (0_usize..1000).prop_map(Action::Remove),
        Just(Action::Look),
        Just(Action::TellOne),
        (1_usize..3).prop_map(Action::TellRanges),
    ]
}

proptest! {
    #[test]
    fn numbers_are_those_of_a_client_that_keeps_the_list(
        begin in 0_u32..20,
        actions in prop::collection::vec(action(), 0..60),
    ) {
        let mut folder = Folder { uid_next: 1, ..Folder::default() };
        (0..begin).for_each(|_| folder.add(0));
        let mut view = FolderView::new(1, 7, folder.state());
        let mut client = folder.there.clone();
        for action in actions {
            match action {
                Action::Add(skipped) => folder.add(skipped),
                Action::Remove(at) => folder.remove(at),
                Action::Look => {
                    let known = view.state().uid_next;
                    folder.catch_up(&mut view);
                    client.extend(folder.there.iter().filter(|uid| **uid >= known));
                }
                Action::TellOne => {
                    if let Some(number) = view.take_last_ghost() {
                        client.remove(number as usize - 1);
                    }
                }
                Action::TellRanges(most) => {
                    let gone = view.take_last_ranges(most);
                    client.retain(|uid| !gone.contains(*uid));
                }
            }
            prop_assert_eq!(view.exists() as usize, client.len());
        }
        let known = view.state().uid_next;
        folder.catch_up(&mut view);
        client.extend(folder.there.iter().filter(|uid| **uid >= known));
        for (number, uid) in (1..).zip(&client) {
            let expected = folder.there.contains(uid).then_some(number);
            prop_assert_eq!(view.number_of(*uid, folder.position(*uid)), expected);
        }
        for (from, to) in [(1, u32::MAX), (2, 4), (3, 3), (5, 1000)] {
            let numbers = Selection::Numbers(NumberSet::of_ranges([(from, to)]));
            let expected: Vec<Picked> = (1..)
                .zip(&client)
                .filter(|(number, uid)| (from..=to).contains(number) && folder.there.contains(uid))
                .map(|(number, uid)| Picked { uid: *uid, number })
                .collect();
            prop_assert_eq!(select(&folder, &view, &numbers, 1000), expected.clone());
            let mut in_pieces = Vec::new();
            let mut rest = numbers;
            while let Some(last) = { in_pieces.extend(select(&folder, &view, &rest, 2)); in_pieces.last().copied() } {
                rest = rest.behind(last);
                if rest.is_empty() || select(&folder, &view, &rest, 1).is_empty() {
                    break;
                }
            }
            prop_assert_eq!(in_pieces, expected);
            let gone = (1..).zip(&client).filter(|(number, uid)| {
                (from..=to).contains(number) && !folder.there.contains(uid)
            });
            prop_assert_eq!(view.ghosts_between(from, to) as usize, gone.count());
        }
    }

    #[test]
    fn sets_are_sets(numbers in prop::collection::vec((1_u32..60, 1_u32..60), 0..30), at in 1_u32..60) {
        let ranges = numbers.iter().map(|(one, other)| (*one.min(other), *one.max(other)));
        let all: std::collections::BTreeSet<u32> = ranges.clone().flat_map(|(from, to)| from..=to).collect();
        let at_once = NumberSet::of_ranges(ranges.clone());
        let mut one_by_one = NumberSet::default();
        for (from, to) in ranges {
            one_by_one.insert_range(from, to, 100).unwrap();
        }
        prop_assert_eq!(&at_once, &one_by_one);
        prop_assert_eq!(at_once.numbers().collect::<Vec<_>>(), all.iter().copied().collect::<Vec<_>>());
        prop_assert_eq!(at_once.contains(at), all.contains(&at));
        prop_assert_eq!(at_once.above(at).numbers().count(), all.iter().filter(|number| **number > at).count());
        prop_assert_eq!(at_once.up_to(at).numbers().count(), all.iter().filter(|number| **number <= at).count());
    }
}

#[test]
fn a_client_that_hears_nothing_is_lost_before_it_takes_memory() {
    let mut folder = Folder { uid_next: 1, ..Folder::default() };
    (0..40_000).for_each(|_| folder.add(0));
    let mut view = FolderView::new(1, 7, folder.state());
    folder.there.retain(|uid| uid % 2 == 0);
    folder.change += 1;
    let left: Vec<u32> = (1..40_000).step_by(2).collect();
    view.catch_up(folder.state(), left, |uid| folder.position(uid));
    assert!(view.is_lost() && view.held_bytes() < 1 << 20);
}

#[test]
fn the_last_one_is_in_a_set_that_begins_behind_it() {
    let mut folder = Folder { uid_next: 1, ..Folder::default() };
    (0..5).for_each(|_| folder.add(10));
    let view = FolderView::new(1, 7, folder.state());
    let named = |text: &str, by_uid| {
        let messages = Messages::Named(SequenceSet::parse(text).unwrap(), by_uid).resolve(&view);
        select(&folder, &view, &messages, 10).iter().map(|picked| picked.number).collect::<Vec<_>>()
    };
    assert_eq!(named("900:*", true), [5]);
    assert_eq!(named("9:*", false), [5]);
    assert_eq!(named("*:4,1", false), [1, 4, 5]);
    assert_eq!(named("6", false), [0; 0]);
}
