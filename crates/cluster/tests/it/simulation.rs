//! A group of several members through crashes, pauses, partitions, drifting clocks and an engine that fails or lies.

use std::collections::BTreeSet;

use bytes::Bytes;
use scrinium_cluster::simulated::{LIES, Lie};
use scrinium_cluster::{Control, Rules};
use scrinium_fault::cases;

use crate::world::{Answer, Only, Plan, Sound, Tally, World, control_record};

/// Runs of these many seeds, or of the one that `SCRINIUM_SEED` names.
fn seeds(usual: u32) -> Vec<u64> {
    let named = std::env::var("SCRINIUM_SEED").ok().and_then(|seed| seed.parse().ok());
    named.map_or_else(|| (1..=u64::from(cases(usual))).collect(), |seed| vec![seed])
}

fn run_all(usual: u32, plan: impl Fn(u64) -> Plan) -> Vec<Tally> {
    let run = |seed| World::<Sound>::new(plan(seed)).run();
    seeds(usual).into_iter().map(|seed| run(seed).unwrap_or_else(|failure| panic!("{}", failure.0))).collect()
}

#[test]
fn nothing_answered_is_lost_and_nothing_is_read_too_old() {
    let tallies = run_all(6, Plan::new);
    let answered: usize =
        tallies.iter().map(|tally| tally.count(|answer| !matches!(answer, Answer::Unknown))).sum();
    let epochs: usize = tallies.iter().map(|tally| tally.leaders.len()).sum();
    assert!(
        answered > 300 * tallies.len() && epochs > 2 * tallies.len(),
        "{answered} answers, {epochs} epochs"
    );
}

#[test]
fn a_slow_engine_costs_time_alone() {
    run_all(4, |seed| Plan { slow_percent: 30, ..Plan::new(seed) });
}

#[test]
fn five_members_agree_as_three_do() {
    run_all(2, |seed| Plan { members: 5, fault_every_ms: 1_200, ..Plan::new(seed) });
}

#[test]
fn clocks_beyond_the_bound_lose_nothing() {
    run_all(3, |seed| Plan { drift_percent: 60, ..Plan::new(seed) });
}

#[test]
fn without_leases_reads_are_the_latest_whatever_clocks_do() {
    run_all(4, |seed| Plan { drift_percent: 60, leases: false, ..Plan::new(seed) });
}

/// A run with one lie: [`World::run`] fails where stores in use differ, or something answered is gone, and nobody has stopped.
fn lies(usual: u32, lies: &'static [Lie]) {
    let tallies = run_all(usual, |seed| Plan { lies, ..Plan::new(seed) });
    if tallies.len() < 16 {
        return;
    }
    let told: BTreeSet<String> =
        tallies.iter().filter_map(|tally| tally.lie.map(|lie| format!("{lie:?}"))).collect();
    assert!(told.len() * 2 > lies.len(), "{told:?}");
    let noticed = tallies.iter().filter(|tally| !tally.stopped.is_empty()).count();
    assert!(noticed > 0, "no lie was noticed");
}

#[test]
fn an_engine_that_lies_is_named_and_nothing_of_it_applied() {
    lies(16, &LIES);
}

#[test]
fn old_answers_and_forgotten_changes_stop_members_that_build_on_them() {
    let tallies = run_all(5, |seed| Plan { false_answers_percent: 2, ..Plan::new(seed) });
    let noticed = tallies.iter().filter(|tally| !tally.stopped.is_empty()).count();
    assert!(noticed > 0, "no false answer was noticed");
}

/// A core with a rule removed.
macro_rules! broken {
    ($name:ident, $rule:ident) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        struct $name;

        impl Rules for $name {
            const $rule: bool = false;

            fn record(control: Control) -> Bytes {
                control_record(control)
            }
        }
    };
}

broken!(WithoutParent, TESTS_PARENT);
broken!(LeasesWithoutEnd, LEASES_END);
broken!(RetriesOtherBytes, RETRIES_SAME_BYTES);
broken!(ClaimsWithoutBeat, CLAIM_TESTS_BEAT);

/// At most this many seeds until a checker finds it, in words that have one of these in them.
fn is_caught<R: Rules>(most_seeds: u64, by: &[&str], plan: impl Fn(u64) -> Plan) {
    let found = (1..=most_seeds).find_map(|seed| {
        let failure = World::<R>::new(plan(seed)).run().err()?;
        by.iter().any(|words| failure.0.contains(words)).then_some((seed, failure))
    });
    let Some((seed, failure)) = found else { panic!("{most_seeds} seeds have shown nothing") };
    println!("caught by seed {seed}: {}", failure.0);
}

/// What the checkers say of a read that is too old.
const TOO_OLD: [&str; 2] = ["does not follow", "Violated"];

#[test]
fn a_core_that_tests_no_parent_is_caught() {
    let lost = ["nobody has noticed", "is lost", "was to write from"];
    is_caught::<WithoutParent>(60, &lost, |seed| Plan { lies: &[Lie::LoseNewest], ..Plan::new(seed) });
}

#[test]
fn a_core_that_remembers_a_lease_is_caught() {
    let plan = |seed| Plan { clients: 8, only: Some(Only::Pause), writes_of_ten: 3, ..Plan::new(seed) };
    is_caught::<LeasesWithoutEnd>(60, &TOO_OLD, plan);
}

#[test]
fn a_core_that_retries_with_other_bytes_is_caught() {
    is_caught::<RetriesOtherBytes>(
        60,
        &["was refused, and is there", "differ from this member's"],
        Plan::new,
    );
}

#[test]
fn a_core_that_claims_without_the_beat_is_caught() {
    let plan = |seed| {
        let only = Some(Only::CutOff);
        Plan { clients: 8, slow_percent: 30, only, writes_of_ten: 3, ..Plan::new(seed) }
    };
    is_caught::<ClaimsWithoutBeat>(60, &TOO_OLD, plan);
}

#[test]
fn what_catches_broken_cores_passes_the_sound_one() {
    run_all(3, |seed| Plan { clients: 8, only: Some(Only::Pause), writes_of_ten: 3, ..Plan::new(seed) });
    run_all(3, |seed| {
        let only = Some(Only::CutOff);
        Plan { clients: 8, slow_percent: 30, only, writes_of_ten: 3, ..Plan::new(seed) }
    });
}
