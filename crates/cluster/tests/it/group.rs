//! What a group does when nothing goes wrong but one thing.

use scrinium_cluster::{
    Freshness, Input, MemberId, Membership, Output, ReadId, Refusal, Role, SubmissionId, SubmissionOutcome,
};
use scrinium_log::Sequence;

use crate::world::{Plan, Sound, World};

fn calm(seed: u64) -> World<Sound> {
    let mut world = World::new(Plan::calm(seed));
    world.run_for_ms(15_000);
    assert!(world.leader().is_some(), "a leader after some seconds");
    world
}

fn equal_stores(world: &World<Sound>) {
    let shortest = world.members.iter().map(|member| member.disk.chains.len()).min().unwrap();
    assert!(shortest > 0);
    for member in &world.members {
        assert_eq!(member.disk.chains[shortest - 1], world.members[0].disk.chains[shortest - 1]);
    }
}

#[test]
fn the_member_with_the_highest_priority_leads_first() {
    for seed in 1..=5 {
        assert_eq!(calm(seed).leader(), Some(0));
    }
}

#[test]
fn handing_over_takes_less_than_a_second() {
    for seed in 1..=10 {
        let mut world = calm(seed);
        let since_us = world.now_us();
        world.input(0, Input::HandOver { to: MemberId(3) });
        world.run_for_ms(4_000);
        assert_eq!(world.leader(), Some(2));
        assert!(world.longest_gap_ms(since_us) < 1_000, "seed {seed}: {} ms", world.longest_gap_ms(since_us));
        equal_stores(&world);
    }
}

#[test]
fn handing_over_to_nobody_changes_nothing() {
    let mut world = calm(1);
    world.input(0, Input::HandOver { to: MemberId(1) });
    world.input(0, Input::HandOver { to: MemberId(99) });
    world.run_for_ms(4_000);
    assert_eq!(world.leader(), Some(0));
}

#[test]
fn a_dead_leader_is_replaced_within_eight_seconds() {
    for seed in 1..=10 {
        let mut world = calm(seed);
        let since_us = world.now_us();
        world.crash(0);
        world.run_for_ms(12_000);
        assert!(world.longest_gap_ms(since_us) < 8_000, "seed {seed}: {} ms", world.longest_gap_ms(since_us));
        assert!(world.leader().is_some());
        world.start(0);
        world.run_for_ms(3_000);
        equal_stores(&world);
        assert!(world.tally.leaders.len() == 2, "who comes back follows: {:?}", world.tally.leaders);
    }
}

#[test]
fn entries_that_all_have_are_let_go_of_and_a_member_that_needs_them_asks_another() {
    let mut world = calm(1);
    world.crash(2);
    world.run_for_ms(600_000);
    let (entries, kept) = (world.tally.entries, world.engine.count(b"s/test/log/main/") as u64);
    assert!(entries > 2_000 && kept < 1_100, "{kept} of {entries} entries are in the engine");
    assert_eq!(world.tally.copies, 0);
    world.start(2);
    world.run_for_ms(5_000);
    assert_eq!(world.tally.copies, 1);
    equal_stores(&world);
    let lag = world.members[0].disk.last().0 - world.members[2].disk.last().0;
    assert!(lag < 60, "{lag} records behind");
}

#[test]
fn a_member_that_is_removed_serves_nothing() {
    let mut world = calm(1);
    let two: Vec<Membership> = (1..=2).map(|id| Membership { member: MemberId(id), priority: 0 }).collect();
    let group = world.members[0].group.as_ref().unwrap();
    let without_leader = [Membership { member: MemberId(2), priority: 0 }];
    assert!(group.change_members(&without_leader).is_none(), "the leader is handed over from first");
    let change = group.change_members(&two).unwrap();
    assert!(world.engine.transact(&change).succeeded && !world.engine.transact(&change).succeeded);
    world.run_for_ms(3_000);
    let removed = world.members[2].group.as_mut().unwrap();
    assert_eq!(removed.role(), Role::Removed);
    let asked = removed
        .step(0, Input::ReadBegun { read: ReadId(u64::MAX), freshness: Freshness::Session(Sequence(1)) });
    let refused = |output: &Output| matches!(output, Output::RefuseRead { refusal: Refusal::Removed, .. });
    assert!(asked.iter().any(refused), "{asked:?}");
    world.crash(0);
    world.run_for_ms(12_000);
    assert_eq!(world.leader(), Some(1), "only a member claims");
}

#[test]
fn nothing_is_written_after_a_seal() {
    let mut world = calm(1);
    world.input(0, Input::Seal);
    world.run_for_ms(10_000);
    assert_eq!(world.leader(), None);
    let lasts: Vec<Sequence> = world.members.iter().map(|member| member.disk.last()).collect();
    world.run_for_ms(10_000);
    for (member, last) in world.members.iter_mut().zip(lasts) {
        assert_eq!(member.disk.last(), last);
        let group = member.group.as_mut().unwrap();
        assert!(group.is_sealed());
        let submission = SubmissionId(u64::MAX);
        let outputs = group.step(0, Input::Submit { submission, records: vec!["late".into()] });
        let outcome = SubmissionOutcome::Refused(Refusal::Sealed);
        assert!(outputs.contains(&Output::Submitted { submission, outcome }), "{outputs:?}");
    }
    equal_stores(&world);
}

#[test]
fn a_batch_that_no_entry_holds_is_refused_and_the_group_goes_on() {
    let mut world = calm(1);
    let at = &mut world.members[0];
    let submission = SubmissionId(u64::MAX);
    let records = vec![vec![0; 300 << 10].into()];
    let outputs = at.group.as_mut().unwrap().step(0, Input::Submit { submission, records });
    let refused = |output: &Output| {
        matches!(
            output,
            Output::Submitted {
                outcome: SubmissionOutcome::Refused(Refusal::TooLarge { .. } | Refusal::Busy),
                ..
            }
        )
    };
    assert!(outputs.iter().any(refused), "{outputs:?}");
    world.run_for_ms(2_000);
    equal_stores(&world);
}

#[test]
fn readers_that_wait_are_bounded() {
    let mut world = calm(1);
    let group = world.members[1].group.as_mut().unwrap();
    let far = Freshness::Session(Sequence(u64::MAX));
    for read in 0..scrinium_cluster::MOST_READS as u64 {
        assert!(
            group.step(0, Input::ReadBegun { read: ReadId(1_000_000 + read), freshness: far }).is_empty()
        );
    }
    let read = ReadId(u64::MAX);
    let outputs = group.step(0, Input::ReadBegun { read, freshness: far });
    assert_eq!(outputs, [Output::RefuseRead { read, refusal: Refusal::Busy }]);
}
