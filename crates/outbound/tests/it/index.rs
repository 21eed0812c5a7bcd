//! The index on the disk answers as the one in memory does, whatever is done to it.

use std::sync::Arc;

use proptest::prelude::*;
use scrinium_mail_queue::{Destination, DueIndex, DueRow, Lane, MemoryDueIndex, Priority, Queue, SenderLane};
use scrinium_outbound::{DiskDueIndex, IndexedEntry};
use scrinium_statistics::Registry;
use scrinium_store::{Store, StoreOptions};

#[derive(Clone, Debug)]
enum Action {
    Set { entry: u8, sender: u8, destination: u8, due: Option<u16>, deadline: Option<u16> },
    Remove { entry: u8 },
    Postpone { sender: u8, destination: u8, until: u16 },
    Reopen,
}

fn action() -> impl Strategy<Value = Action> {
    let time = || 0_u16..60;
    prop_oneof![
        6 => (0_u8..12, 0_u8..3, 0_u8..3, prop::option::weighted(0.8, time()), prop::option::of(time()))
            .prop_map(|(entry, sender, destination, due, deadline)| {
                Action::Set { entry, sender, destination, due, deadline }
            }),
        3 => (0_u8..12).prop_map(|entry| Action::Remove { entry }),
        2 => (0_u8..3, 0_u8..3, time())
            .prop_map(|(sender, destination, until)| Action::Postpone { sender, destination, until }),
        1 => Just(Action::Reopen),
    ]
}

fn lane(sender: u8, destination: u8) -> Lane {
    let priority = [Priority::High, Priority::Normal, Priority::Low][usize::from(sender) % 3];
    Lane {
        sender: SenderLane { priority, sender: format!("sender {sender}").into() },
        destination: Arc::new(Destination::domain(&format!("{destination}.example"))),
    }
}

/// Both give the same.
fn compare(memory: &mut MemoryDueIndex, disk: &mut DiskDueIndex) {
    for now_ms in [0, 10, 25, 59, 100] {
        let senders = memory.due_senders(now_ms, None, 10).unwrap();
        assert_eq!(disk.due_senders(now_ms, None, 10).unwrap(), senders, "senders at {now_ms}");
        if let Some(first) = senders.first() {
            let rest = memory.due_senders(now_ms, Some(first), 10).unwrap();
            assert_eq!(disk.due_senders(now_ms, Some(first), 10).unwrap(), rest);
        }
        for sender in 0..3 {
            let lanes = memory.due_lanes(&lane(sender, 0).sender, now_ms, 10).unwrap();
            let found = disk.due_lanes(&lane(sender, 0).sender, now_ms, 10).unwrap();
            // Lanes of one time stand in any order.
            let sorted = |mut lanes: Vec<Arc<Destination>>| {
                lanes.sort();
                lanes
            };
            assert_eq!(sorted(found), sorted(lanes));
            for destination in 0..3 {
                let lane = lane(sender, destination);
                let entries = memory.due_entries(&lane, now_ms, 10).unwrap();
                assert_eq!(disk.due_entries(&lane, now_ms, 10).unwrap(), entries);
            }
        }
        let deadlines = memory.due_deadlines(now_ms, 10).unwrap();
        assert_eq!(disk.due_deadlines(now_ms, 10).unwrap(), deadlines);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn the_disk_and_memory_give_the_same(actions in prop::collection::vec(action(), 1..60)) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(StoreOptions::new(folder.path()), &Registry::new()).unwrap();
        let mut memory = MemoryDueIndex::default();
        let mut disk = DiskDueIndex::open(store.clone(), 7).unwrap();
        let mut now_ms = 0;
        for action in actions {
            match action {
                Action::Set { entry, sender, destination, due, deadline } => {
                    let id = format!("entry {entry}");
                    let lane = lane(sender, destination);
                    let row = DueRow {
                        id: id.as_str().into(),
                        lane: lane.clone(),
                        due_ms: due.map(u64::from),
                        deadline_ms: deadline.map(u64::from),
                    };
                    let has_times = due.is_some() || deadline.is_some();
                    let row = has_times.then_some(row);
                    memory.set(&id, row.clone());
                    let indexed =
                        IndexedEntry { row, lane, queue: Queue::Deferred, is_unsettled: !has_times };
                    disk.set(&id, Some(&indexed)).unwrap();
                }
                Action::Remove { entry } => {
                    let id = format!("entry {entry}");
                    memory.set(&id, None);
                    disk.set(&id, None).unwrap();
                }
                Action::Postpone { sender, destination, until } => {
                    memory.postpone(&lane(sender, destination), u64::from(until)).unwrap();
                    disk.postpone(&lane(sender, destination), u64::from(until)).unwrap();
                }
                Action::Reopen => {
                    disk.set_position(3).unwrap();
                    disk = DiskDueIndex::open(store.clone(), 7).unwrap();
                    prop_assert_eq!(disk.position().unwrap().reached, 3);
                }
            }
            compare(&mut memory, &mut disk);
            now_ms += 1;
            prop_assert!(disk.next_ms(now_ms).unwrap() <= memory.next_ms(now_ms).unwrap()
                || memory.next_ms(now_ms).unwrap().is_none());
        }
        drop(disk);
        store.close().unwrap();
    }
}
