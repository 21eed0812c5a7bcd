//! The queue in simulated time against servers that fail, hang, throttle and die, and through crashes at any step.

use scrinium_mail_queue::{NoticeKind, Queue, Random, SchedulerOptions};

use crate::kit::{DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, START_MS, by_domain, message, seed, to};
use crate::world::{Behaviour, World};

fn behaviour(random: &mut Random) -> Behaviour {
    match random.below(10) {
        0 => Behaviour::DeadUntil(u64::MAX),
        1 => Behaviour::DeadUntil(START_MS + random.below(3 * DAY_MS)),
        2 => Behaviour::Hanging,
        3 => Behaviour::Throttling(2),
        4 => Behaviour::Flaky(2),
        5 => Behaviour::LosesAnswers(3),
        6 => Behaviour::Greylisting,
        7 => Behaviour::HalfUnknown,
        _ => Behaviour::Healthy,
    }
}

/// Messages of some senders to some destinations, all of them in the first hours.
fn fill(world: &mut World, random: &mut Random, messages: u64, destinations: u64) {
    for number in 0..destinations {
        let behaviour = behaviour(random);
        world.behaviours.insert(format!("d{number}.example"), behaviour);
    }
    for number in 0..messages {
        let sender = match random.below(8) {
            0 => None,
            sender => Some(format!("s{sender}@example.org")),
        };
        let arrived_ms = START_MS + random.below(HOUR_MS);
        let mut message = message(&format!("m{number}"), sender.as_deref(), arrived_ms);
        if random.below(10) == 0 {
            message.release_ms = Some(arrived_ms + random.below(DAY_MS));
        }
        let recipients = (0..=random.below(4))
            .map(|recipient| to(&format!("r{recipient}@d{}.example", random.below(destinations))));
        for entry in message.split(recipients.collect(), by_domain).unwrap() {
            world.queue(entry);
        }
    }
}

fn run(seed: u64, crash_steps: Option<u64>) -> World {
    let mut random = Random::new(seed);
    let options = SchedulerOptions { attempts: 40, probes: 20, ..SchedulerOptions::default() };
    let mut world = World::new(seed, options);
    fill(&mut world, &mut random, 60, 12);
    // At any time all of it holds, and after the longest lifetime nothing is left but what is dead.
    let cut_ms = START_MS + random.below(5 * DAY_MS);
    world.run_crashing_until(cut_ms, crash_steps);
    world.check();
    world.run_crashing_until(START_MS + 8 * DAY_MS, crash_steps);
    world.check();
    for entry in world.entries.values() {
        assert_eq!(entry.queue(), Queue::Dead, "{} is left", entry.id);
        assert!(entry.envelope.sender.is_none());
    }
    world.run_crashing_until(START_MS + 50 * DAY_MS, None);
    assert!(world.entries.is_empty());
    assert!(world.most_open <= 40);
    world
}

#[test]
fn every_message_is_delivered_or_bounced_once_or_still_queued() {
    let seed = seed();
    for case in 0..u64::from(scrinium_fault::cases(3)) {
        let world = run(seed + case, None);
        let delays = world.notices.values().filter(|(_, plan)| plan.kind == NoticeKind::Delay).count();
        assert!(delays > 0, "somebody waits longer than four hours for the dead");
    }
}

#[test]
fn a_crash_at_any_step_loses_nothing_and_repeats_only_what_is_unknown() {
    let seed = seed();
    let mut crashes = 0;
    for case in 0..u64::from(scrinium_fault::cases(3)) {
        crashes += run(seed + 1_000 + case, Some(400)).crashes;
    }
    assert!(crashes > 20, "{crashes} crashes");
}

#[test]
fn a_dead_destination_costs_one_probe_and_slows_no_other() {
    let mut world = World::new(seed(), SchedulerOptions::default());
    world.behaviours.insert("dead.example".to_owned(), Behaviour::DeadUntil(u64::MAX));
    for number in 0..2_000 {
        let sender = format!("s{}@example.org", number % 50);
        let message = message(&format!("dead{number}"), Some(&sender), START_MS);
        message
            .split(vec![to("r@dead.example")], by_domain)
            .unwrap()
            .into_iter()
            .for_each(|entry| world.queue(entry));
    }
    for number in 0..200 {
        let message = message(&format!("live{number}"), Some("s1@example.org"), START_MS + number * 100);
        message
            .split(vec![to("r@live.example")], by_domain)
            .unwrap()
            .into_iter()
            .for_each(|entry| world.queue(entry));
    }
    world.run_until(START_MS + HOUR_MS).unwrap();
    world.check();
    // At first, and after about 1, 2, 4, 8, 16 and 32 minutes, each of which ends half a minute later.
    let probes = world.attempts["dead.example"];
    assert!((4..=8).contains(&probes), "{probes} attempts at a dead destination");
    assert!(world.removed.len() == 200, "{} of the live ones are delivered", world.removed.len());
    assert!(world.lateness_ms["live.example"].iter().all(|late| *late <= SECOND_MS));
}

#[test]
fn a_destination_that_comes_back_gets_all_that_waits() {
    let mut world = World::new(seed(), SchedulerOptions::default());
    world.behaviours.insert("back.example".to_owned(), Behaviour::DeadUntil(START_MS + 3 * HOUR_MS));
    for number in 0..500 {
        let message = message(&format!("m{number}"), Some(&format!("s{number}@example.org")), START_MS);
        message
            .split(vec![to("r@back.example")], by_domain)
            .unwrap()
            .into_iter()
            .for_each(|entry| world.queue(entry));
    }
    world.run_until(START_MS + 5 * HOUR_MS).unwrap();
    world.check();
    assert!(world.entries.is_empty(), "{} still wait", world.entries.len());
}

#[test]
fn due_entries_are_tried_within_a_second() {
    let mut world = World::new(seed(), SchedulerOptions::default());
    let mut random = Random::new(seed());
    for number in 0..1_000 {
        let arrived_ms = START_MS + random.below(10 * MINUTE_MS);
        let message = message(&format!("m{number}"), Some("s@example.org"), arrived_ms);
        let recipient = to(&format!("r@d{}.example", random.below(100)));
        message.split(vec![recipient], by_domain).unwrap().into_iter().for_each(|entry| world.queue(entry));
    }
    world.run_until(START_MS + HOUR_MS).unwrap();
    let mut late: Vec<u64> = world.lateness_ms.values().flatten().copied().collect();
    late.sort_unstable();
    assert_eq!(late.len(), 1_000);
    assert!(late[990] <= SECOND_MS, "the 99th of 100 is {} ms late", late[990]);
}

#[test]
fn a_restart_serves_at_once() {
    let mut world = World::new(seed(), SchedulerOptions::default());
    for number in 0..300 {
        let message = message(&format!("m{number}"), Some("s@example.org"), START_MS);
        let recipient = to(&format!("r@d{}.example", number % 30));
        message.split(vec![recipient], by_domain).unwrap().into_iter().for_each(|entry| world.queue(entry));
    }
    world.run_until(START_MS + 200).unwrap();
    world.restart();
    let restarted_ms = world.now_ms;
    world.run_until(restarted_ms + 10 * SECOND_MS).unwrap();
    world.check();
    assert!(world.entries.is_empty(), "{} still wait", world.entries.len());
}

#[test]
fn a_second_attempt_comes_when_greylisting_wants_it() {
    let mut world = World::new(seed(), SchedulerOptions::default());
    world.behaviours.insert("grey.example".to_owned(), Behaviour::Greylisting);
    let message = message("m", Some("s@example.org"), START_MS);
    message
        .split(vec![to("r@grey.example")], by_domain)
        .unwrap()
        .into_iter()
        .for_each(|entry| world.queue(entry));
    world.run_until(START_MS + 6 * MINUTE_MS).unwrap();
    assert!(world.entries.is_empty());
    assert_eq!(world.attempts["grey.example"], 2);
}
