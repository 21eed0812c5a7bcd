//! The scheduler alone: turns, concurrency, connections, networks, and the bounds of its window.

use std::net::IpAddr;
use std::sync::Arc;

use proptest::prelude::*;
use scrinium_mail_queue::{
    Concurrency, ConnectionId, ConnectionUse, Destination, Dispatch, DueIndex, DueRow, Effect, Lane,
    MemoryDueIndex, Network, Priority, Random, Scheduler, SchedulerOptions, SenderLane,
};

use crate::kit::{SECOND_MS, START_MS};

fn row(id: &str, priority: Priority, sender: &str, host: &str, due_ms: u64) -> DueRow {
    let lane = Lane {
        sender: SenderLane { priority, sender: sender.into() },
        destination: Destination::domain(host).into(),
    };
    DueRow { id: id.into(), lane, due_ms: Some(due_ms), deadline_ms: Some(due_ms + 1_000_000) }
}

fn add(index: &mut MemoryDueIndex, row: DueRow) {
    let id = Arc::clone(&row.id);
    index.set(&id, Some(row));
}

/// Refills and takes the next, as a caller does.
fn next(scheduler: &mut Scheduler, index: &mut MemoryDueIndex, now_ms: u64) -> Option<Dispatch> {
    loop {
        let has_more = scheduler.refill(now_ms, index).unwrap();
        let dispatch = scheduler.next(now_ms);
        if let Some(dispatch) = &dispatch {
            index.set(&dispatch.entry, None);
            scheduler.connected(dispatch.attempt);
        }
        if dispatch.is_some() || !has_more {
            return dispatch;
        }
    }
}

#[test]
fn a_sender_of_thousands_does_not_hold_up_another() {
    let mut index = MemoryDueIndex::default();
    for number in 0..100_000 {
        let host = format!("d{}.example", number % 5_000);
        add(&mut index, row(&format!("big{number}"), Priority::Normal, "big", &host, START_MS));
    }
    // Later, and to a host that the big sender uses as well.
    add(&mut index, row("small", Priority::Normal, "small", "d7.example", START_MS + 5));
    let options = SchedulerOptions { attempts: 10, ..SchedulerOptions::default() };
    let mut scheduler = Scheduler::new(options, 1);
    let mut place = 0;
    loop {
        let dispatch = next(&mut scheduler, &mut index, START_MS + 10).expect("there is always more");
        if &*dispatch.entry == "small" {
            break;
        }
        place += 1;
        scheduler.finish(dispatch.attempt, Effect::Delivered, ConnectionUse::Closed, START_MS + 10);
        assert!(scheduler.window_entries() <= 20_000);
    }
    assert!(place <= 50, "the small sender is number {place}");
}

#[test]
fn senders_share_a_destination() {
    let mut index = MemoryDueIndex::default();
    for number in 0..1_000 {
        add(&mut index, row(&format!("a{number}"), Priority::Normal, "a", "d.example", START_MS));
    }
    for number in 0..20 {
        add(&mut index, row(&format!("b{number}"), Priority::Normal, "b", "d.example", START_MS + 1));
    }
    let mut scheduler = Scheduler::new(SchedulerOptions::default(), 1);
    let mut of_b = 0;
    for _ in 0..60 {
        let dispatch = next(&mut scheduler, &mut index, START_MS + 10).unwrap();
        of_b += usize::from(dispatch.entry.starts_with('b'));
        scheduler.finish(dispatch.attempt, Effect::Delivered, ConnectionUse::Closed, START_MS + 10);
    }
    assert_eq!(of_b, 20, "all of b are among the first 60");
}

#[test]
fn priorities_take_turns_and_none_starves() {
    let mut index = MemoryDueIndex::default();
    for (priority, name) in [(Priority::High, "h"), (Priority::Normal, "n"), (Priority::Low, "l")] {
        for number in 0..100 {
            add(&mut index, row(&format!("{name}{number}"), priority, "s", "d.example", START_MS));
        }
    }
    let mut scheduler = Scheduler::new(SchedulerOptions::default(), 1);
    let mut counts = std::collections::BTreeMap::new();
    for _ in 0..70 {
        let dispatch = next(&mut scheduler, &mut index, START_MS).unwrap();
        *counts.entry(dispatch.entry.chars().next().unwrap()).or_insert(0) += 1;
        scheduler.finish(dispatch.attempt, Effect::Delivered, ConnectionUse::Closed, START_MS);
    }
    assert!(counts[&'h'] > counts[&'n'] && counts[&'n'] > counts[&'l'], "{counts:?}");
    assert!(counts[&'l'] >= 8, "{counts:?}");
}

#[test]
fn concurrency_is_learnt() {
    let mut concurrency = Concurrency::new(5, 20);
    assert_eq!(concurrency.limit(), 1, "the first attempt finds out");
    concurrency.reached();
    assert_eq!(concurrency.limit(), 5);
    for _ in 0..5 {
        assert_eq!(concurrency.learn(Effect::Delivered, 0, 0), None);
    }
    assert_eq!(concurrency.limit(), 6, "a full round adds one");
    for _ in 0..1_000 {
        concurrency.learn(Effect::Delivered, 0, 0);
    }
    assert_eq!(concurrency.limit(), 20);
    // Ten that were under way together are refused: that is one refusal.
    for _ in 0..10 {
        assert_eq!(concurrency.learn(Effect::Throttled, 50, 100), None);
    }
    assert_eq!(concurrency.limit(), 10);
    concurrency.learn(Effect::Throttled, 150, 200);
    assert_eq!(concurrency.limit(), 5);
    // One that is not reached may be chance; as many as were under way are not.
    assert_eq!(concurrency.learn(Effect::Unreachable, 250, 300), None);
    assert_eq!(concurrency.learn(Effect::Delivered, 250, 301), None);
    for _ in 0..concurrency.limit() - 1 {
        assert_eq!(concurrency.learn(Effect::Unreachable, 400, 500), None);
    }
    assert_eq!(concurrency.learn(Effect::Unreachable, 400, 500), Some(1));
}

#[test]
fn a_connection_is_used_again_until_its_time_is_over() {
    let mut index = MemoryDueIndex::default();
    for number in 0..10 {
        add(&mut index, row(&format!("m{number}"), Priority::Normal, "s", "d.example", START_MS));
    }
    let mut other = row("tls", Priority::Normal, "s", "d.example", START_MS);
    other.lane.destination = Destination { require_tls: true, ..Destination::domain("d.example") }.into();
    add(&mut index, other);
    let options = SchedulerOptions { connection_messages: 3, ..SchedulerOptions::default() };
    let mut scheduler = Scheduler::new(options, 1);
    let (mut used, mut number) = (Vec::new(), 0);
    while let Some(dispatch) = next(&mut scheduler, &mut index, START_MS) {
        let connection = dispatch.connection.unwrap_or_else(|| {
            number += 1;
            ConnectionId(number)
        });
        used.push((dispatch.destination.require_tls, connection.0));
        scheduler.finish(dispatch.attempt, Effect::Delivered, ConnectionUse::Open(connection), START_MS);
    }
    let of_tls: Vec<_> = used.iter().filter(|(tls, _)| *tls).collect();
    let plain: Vec<_> = used.iter().filter(|(tls, _)| !tls).map(|(_, connection)| *connection).collect();
    assert_eq!(of_tls.len(), 1);
    assert!(!plain.contains(&of_tls[0].1), "no connection is shared with a message that requires TLS");
    assert!(plain.iter().all(|connection| plain.iter().filter(|other| *other == connection).count() <= 3));
    assert_eq!(plain.iter().collect::<std::collections::BTreeSet<_>>().len(), 4);
    // Three were used up, and the others end when they were idle for long enough.
    assert_eq!(scheduler.stale_connections(START_MS).len(), 3);
    assert_eq!(scheduler.stale_connections(START_MS + 31 * SECOND_MS).len(), 2);
}

#[test]
fn a_network_bears_so_much_at_once() {
    let mut index = MemoryDueIndex::default();
    for number in 0..10 {
        let host = format!("d{number}.example");
        add(&mut index, row(&format!("m{number}"), Priority::Normal, "s", &host, START_MS));
    }
    let options = SchedulerOptions { network_connections: 3, ..SchedulerOptions::default() };
    let mut scheduler = Scheduler::new(options, 1);
    let mut open = Vec::new();
    let mut served = 0;
    loop {
        scheduler.refill(START_MS, &mut index).unwrap();
        while let Some(dispatch) = scheduler.next(START_MS) {
            let address: IpAddr = format!("192.0.2.{}", served + open.len()).parse().unwrap();
            if scheduler.claim_network(dispatch.attempt, address.into(), START_MS) {
                open.push(dispatch);
            }
        }
        assert!(open.len() <= 3);
        let Some(dispatch) = open.pop() else { break };
        index.set(&dispatch.entry, None);
        served += 1;
        scheduler.finish(dispatch.attempt, Effect::Delivered, ConnectionUse::Closed, START_MS);
    }
    assert_eq!(served, 10);
    let mapped: IpAddr = "::ffff:192.0.2.1".parse().unwrap();
    let plain: IpAddr = "192.0.2.200".parse().unwrap();
    assert_eq!(Network::from(mapped), Network::from(plain));
    let (one, other): (IpAddr, IpAddr) =
        ("2001:db8:1:2::1".parse().unwrap(), "2001:db8:1:3::1".parse().unwrap());
    assert_eq!(Network::from(one), Network::from(other));
    let far: IpAddr = "2001:db8:2::1".parse().unwrap();
    assert_ne!(Network::from(one), Network::from(far));
}

#[test]
fn what_waits_takes_no_memory_of_the_scheduler() {
    let mut index = MemoryDueIndex::default();
    for number in 0..100_000 {
        let due_ms = START_MS + 3_600_000 + number;
        let host = format!("d{}.example", number % 1_000);
        add(
            &mut index,
            row(&format!("m{number}"), Priority::Normal, &format!("s{}", number % 100), &host, due_ms),
        );
    }
    let mut scheduler = Scheduler::new(SchedulerOptions::default(), 1);
    assert!(next(&mut scheduler, &mut index, START_MS).is_none());
    assert_eq!(scheduler.window_entries(), 0);
    assert_eq!(scheduler.wake_ms(START_MS, &mut index).unwrap(), Some(START_MS + 3_600_000));
    // All are due, nothing is finished: the window and the attempts are full, and no more is taken.
    let later_ms = START_MS + 10_000_000;
    while next(&mut scheduler, &mut index, later_ms).is_some() {}
    let options = SchedulerOptions::default();
    assert!(scheduler.window_entries() <= options.window_entries + options.attempts);
    assert!(scheduler.open_attempts() <= options.attempts);
}

#[test]
fn a_retry_by_an_administrator_opens_a_closed_destination() {
    let mut index = MemoryDueIndex::default();
    add(&mut index, row("a", Priority::Normal, "s", "d.example", START_MS));
    let mut scheduler = Scheduler::new(SchedulerOptions::default(), 1);
    scheduler.refill(START_MS, &mut index).unwrap();
    let dispatch = scheduler.next(START_MS).unwrap();
    scheduler.finish(dispatch.attempt, Effect::Unreachable, ConnectionUse::Closed, START_MS);
    let destination = Destination::domain("d.example");
    assert!(scheduler.destination(&destination).unwrap().closed_until_ms.is_some());
    assert!(next(&mut scheduler, &mut index, START_MS + 1).is_none());
    scheduler.reopen(&destination, START_MS + 2);
    // The record of the retry sets the row, which ends the pause of its lane.
    add(&mut index, row("a", Priority::Normal, "s", "d.example", START_MS + 2));
    assert_eq!(&*next(&mut scheduler, &mut index, START_MS + 2).unwrap().entry, "a");
}

#[test]
fn the_wait_after_an_attempt_follows_the_schedule() {
    let policy = scrinium_mail_queue::QueuePolicy::default();
    let mut random = Random::new(1);
    for (attempt, minutes) in [(1, 5), (2, 10), (3, 20), (4, 40), (5, 60), (6, 120), (7, 240), (30, 240)] {
        for _ in 0..100 {
            let wait_ms = policy.next_due_ms(attempt, START_MS, &mut random) - START_MS;
            let middle_ms = minutes * 60_000;
            assert!((middle_ms * 9 / 10..=middle_ms * 11 / 10).contains(&wait_ms), "{attempt}: {wait_ms}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(scrinium_fault::cases(64)))]

    /// Whatever happens in whatever order, each entry that is due is tried, and none twice at once.
    #[test]
    fn every_due_entry_gets_its_turn(
        entries in prop::collection::vec((0_u8..6, 0_u8..4, 0_u64..5_000), 1..80),
        effects in prop::collection::vec(0_u8..8, 1..40),
        small in any::<bool>(),
    ) {
        let mut index = MemoryDueIndex::default();
        for (number, (sender, host, due)) in entries.iter().enumerate() {
            let (sender, host) = (format!("s{sender}"), format!("d{host}.example"));
            add(&mut index, row(&format!("m{number}"), Priority::Normal, &sender, &host, START_MS + due));
        }
        let options = SchedulerOptions {
            attempts: if small { 2 } else { 50 },
            window_entries: if small { 5 } else { 1_000 },
            destinations: if small { 2 } else { 100 },
            network_connections: 2,
            ..SchedulerOptions::default()
        };
        let mut scheduler = Scheduler::new(options, 7);
        let (mut now_ms, mut open, mut tried) = (START_MS, Vec::<Dispatch>::new(), 0);
        let mut effects = effects.into_iter().cycle();
        for _ in 0..20_000 {
            let has_more = scheduler.refill(now_ms, &mut index).unwrap();
            if let Some(dispatch) = scheduler.next(now_ms) {
                prop_assert!(open.iter().all(|other| other.entry != dispatch.entry));
                let network: IpAddr = "192.0.2.1".parse().unwrap();
                if scheduler.claim_network(dispatch.attempt, network.into(), now_ms) {
                    index.set(&dispatch.entry, None);
                    open.push(dispatch);
                }
                continue;
            }
            if let Some(dispatch) = open.pop() {
                let effect = match effects.next().unwrap() {
                    0 => Effect::Unreachable,
                    1 => Effect::Throttled,
                    2 => Effect::Reached,
                    3 => Effect::Nothing,
                    _ => Effect::Delivered,
                };
                if effect == Effect::Delivered {
                    scheduler.connected(dispatch.attempt);
                }
                tried += 1;
                scheduler.finish(dispatch.attempt, effect, ConnectionUse::Closed, now_ms);
                continue;
            }
            if has_more {
                continue;
            }
            match scheduler.wake_ms(now_ms, &mut index).unwrap() {
                Some(wake_ms) if tried < entries.len() => now_ms = wake_ms,
                _ => break,
            }
        }
        prop_assert_eq!(tried, entries.len());
        prop_assert_eq!(scheduler.window_entries(), 0);
    }

    /// The index in memory gives what a list that is sorted each time does.
    #[test]
    fn an_index_gives_what_a_list_does(
        steps in prop::collection::vec((0_u8..20, 0_u8..3, 0_u8..3, prop::option::of(0_u64..20)), 1..60),
        now in 0_u64..20,
    ) {
        let mut index = MemoryDueIndex::default();
        let mut list = std::collections::BTreeMap::new();
        for (id, sender, host, due) in steps {
            let id = format!("m{id:02}");
            let row = due.map(|due| row(&id, Priority::Normal, &format!("s{sender}"), &format!("d{host}"), due));
            index.set(&id, row.clone());
            match row {
                Some(row) => drop(list.insert(id, row)),
                None => drop(list.remove(&id)),
            }
        }
        let mut expected: Vec<_> =
            list.values().filter(|row| row.due_ms <= Some(now)).map(|row| (row.due_ms, Arc::clone(&row.id))).collect();
        expected.sort();
        let mut found = Vec::new();
        for (_, sender) in index.due_senders(now, None, 100).unwrap() {
            for destination in index.due_lanes(&sender, now, 100).unwrap() {
                let lane = Lane { sender: sender.clone(), destination };
                found.extend(index.due_entries(&lane, now, 100).unwrap().into_iter().map(|id| (list[&*id].due_ms, id)));
            }
        }
        found.sort();
        prop_assert_eq!(found, expected);
        let next = list.values().filter_map(|row| row.due_ms).filter(|due| *due > now).min();
        let deadline = list.values().filter_map(|row| row.deadline_ms).filter(|due| *due > now).min();
        prop_assert_eq!(index.next_ms(now).unwrap(), next.into_iter().chain(deadline).min());
    }
}
