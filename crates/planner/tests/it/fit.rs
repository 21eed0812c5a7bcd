//! Fits give back what a machine was made of, through the noise of a measurement.

use crate::common::{ALONE_MS, COMMITS, CPU_S, ENCRYPTION, SYNC_CPU_S, WAITING, calibration};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use scrinium_planner::check::{Check, Forecast};
use scrinium_planner::fit::{Model, Observation, Scalability, non_negative};
use scrinium_planner::{Case, Class};

fn near(value: f64, wanted: f64, part: f64) -> bool {
    (value / wanted - 1.0).abs() <= part
}

#[test]
fn the_scalability_law_is_found_again() {
    let law = Scalability { one_per_s: 950.0, contention: 0.06, coherency: 0.000_8 };
    let exact: Vec<(f64, f64)> =
        [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0].map(|asking| (asking, law.per_s(asking))).to_vec();
    let found = Scalability::fit(&exact).unwrap();
    assert!(near(found.one_per_s, 950.0, 1e-6) && near(found.contention, 0.06, 1e-5), "{found:?}");
    assert!(near(found.coherency, 0.000_8, 1e-5), "{found:?}");
    for seed in 0..20 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let noisy: Vec<(f64, f64)> =
            exact.iter().map(|(asking, per_s)| (*asking, per_s * rng.random_range(0.98..=1.02))).collect();
        let found = Scalability::fit(&noisy).unwrap();
        assert!(near(found.contention, 0.06, 0.25), "seed {seed}: {found:?}");
        assert!(near(found.coherency, 0.000_8, 0.25), "seed {seed}: {found:?}");
        assert!(near(found.most().1, law.most().1, 0.05), "seed {seed}: {found:?}");
    }
    // What only grows has neither, and no end; two points are no curve.
    let straight = Scalability::fit(&[(1.0, 10.0), (2.0, 20.0), (8.0, 80.0)]).unwrap();
    assert!(straight.contention.abs() < 1e-9 && straight.per_s(1000.0) > 9_999.0);
    assert_eq!(Scalability::fit(&[(1.0, 10.0), (2.0, 19.0), (2.0, 19.5)]), None);
}

#[test]
fn costs_are_never_negative() {
    // Without the bound the second would be -1.
    let observations = [
        Observation { parts: vec![1.0, 1.0], seen: 1.0, weight: 1.0 },
        Observation { parts: vec![1.0, 0.0], seen: 2.0, weight: 1.0 },
    ];
    let found = non_negative(&observations, 2);
    assert!(near(found[0], 1.5, 1e-9) && found[1].abs() < 1e-12, "{found:?}");
}

#[test]
fn one_run_that_used_nothing_does_not_draw_all_costs_down() {
    let mut calibration = calibration(1000, 0.0, 1);
    let ladder = calibration.points.iter_mut().find(|point| point.name == "ladder-3").unwrap();
    ladder.runs[0].user_cpus = 0.001;
    ladder.runs[0].system_cpus = 0.0;
    let model = Model::of(&calibration).unwrap();
    for class in [Class::Page, Class::Write, Class::Send] {
        let cost = model.costs.cpu_s.get(class).value;
        assert!(near(cost, *CPU_S.get(class), 0.35), "{class:?}: {cost}");
    }
}

#[test]
fn what_a_machine_is_made_of_is_found_again() {
    let model = Model::of(&calibration(1000, 0.0, 1)).unwrap();
    for class in Class::ALL {
        let cost = model.costs.cpu_s.get(class);
        assert!(near(cost.value, *CPU_S.get(class), 0.05), "{class:?}: {cost:?}");
        let alone = *model.response.alone_ms.get(class);
        assert!(near(alone, *ALONE_MS.get(class), 0.05), "{class:?}: {alone}");
    }
    assert!(near(model.costs.sync_cpu_s.value, SYNC_CPU_S, 0.05), "{:?}", model.costs.sync_cpu_s);
    assert!(model.response.error < 0.03 && model.costs.cpu_error < 0.03);
    // Through noise what a mix costs is found, if not always which class of it.
    for seed in 1..=10 {
        let mix = calibration(1000, 0.0, 1).points[4].runs[0].clone();
        let model = Model::of(&calibration(1000, 0.03, seed)).unwrap();
        let cpus = model.costs.cpus(&mix.per_s, Case::Expected);
        assert!(near(cpus, mix.server_cpus(), 0.05), "seed {seed}: {cpus} and {}", mix.server_cpus());
        let ms =
            model.response.mean_ms(&mix.per_s, &model.costs, model.cores, mix.driver_cpus, Case::Expected);
        assert!(near(ms, mix.mean_ms, 0.05), "seed {seed}: {ms} and {}", mix.mean_ms);
        for class in [Class::Write, Class::Send] {
            let commits = model.costs.commits.get(class);
            assert!(near(commits.value, *COMMITS.get(class), 0.25), "seed {seed}, {class:?}: {commits:?}");
        }
        let encryption = model.encryption.as_ref().unwrap().cpu.value;
        assert!(near(encryption, ENCRYPTION, 0.1), "seed {seed}: {encryption}");
    }
}

#[test]
fn the_wait_is_told_by_a_busy_ladder_and_taken_for_granted_of_an_idle_one() {
    let busy = Model::of(&calibration(7000, 0.02, 1)).unwrap();
    assert!(near(busy.response.waiting, WAITING, 0.15), "{}", busy.response.waiting);
    let idle = Model::of(&calibration(100, 0.02, 1)).unwrap();
    assert!(near(idle.response.waiting, 1.0, 0.05), "{}", idle.response.waiting);
}

#[test]
fn four_times_the_load_is_forecast() {
    for seed in 1..=10 {
        let calibration = calibration(1000, 0.02, seed);
        let model = Model::of(&calibration).unwrap();
        let forecast = Forecast::of(&calibration, &model, 4).unwrap();
        let mut rng = SmallRng::seed_from_u64(seed);
        let largest = calibration.points.iter().find(|point| point.name == "ladder-5").unwrap();
        let mut point = largest.clone();
        point.users = forecast.users;
        point.runs = vec![crate::common::run(largest.kind, &largest.workload, 4000.0, 20.0, &mut rng, 0.0)];
        assert_eq!(forecast.users, 4000);
        let check = Check::of(&calibration, &forecast, &point, String::new()).unwrap();
        for comparison in &check.comparisons[..3] {
            assert!(comparison.error_percent.abs() < 15.0, "seed {seed}: {comparison:?}");
        }
        assert!(check.response_error_percent() < 15.0);
    }
}

#[test]
fn more_load_never_takes_less() {
    let model = Model::of(&calibration(1000, 0.03, 4)).unwrap();
    let one = model.ladder.last().unwrap();
    let mix = calibration(1000, 0.0, 4).points[4].runs[0].per_s;
    let (mut before_ms, mut before_cpus) = (0.0, 0.0);
    for step in 1..400 {
        let per_s = mix.times(f64::from(step) / 20.0);
        let ms = model.response.mean_ms(&per_s, &model.costs, model.cores, 0.0, Case::Expected);
        let cpus = model.costs.cpus(&per_s, Case::Expected);
        assert!(ms >= before_ms && cpus >= before_cpus, "{step} after {}: {ms} ms, {cpus}", one.name);
        (before_ms, before_cpus) = (ms, cpus);
    }
    assert!(before_ms.is_infinite(), "twenty times the ladder is more than the processors do");
}
