//! Each rule speaks at its threshold and not just below it, names what it looks at, and rests on something that is there.

use std::collections::BTreeSet;
use std::path::Path;

use crate::cases::{CASES, Case, now, well_set_up};
use scrinium_advise::{
    Advice, AdvisedStep, Judgement, Observation, Rule, Support, Verdict, judge, needs_restart, rules,
};

fn rule(name: &str) -> &'static Rule {
    rules().find(|rule| rule.name == name).unwrap_or_else(|| panic!("there is no rule {name}"))
}

fn asked(case: &Case, change: fn(&mut Observation)) -> Judgement {
    let mut seen = well_set_up();
    change(&mut seen);
    (rule(case.rule).check)(&seen)
}

fn given() -> impl Iterator<Item = (&'static Rule, Advice)> {
    CASES.iter().filter_map(|case| match asked(case, case.speaks) {
        Ok(Verdict::Change(advice)) => Some((rule(case.rule), *advice)),
        _ => None,
    })
}

#[test]
fn a_server_that_is_set_up_well_gets_no_advice_and_all_rules_can_judge_it() {
    let report = judge(&well_set_up());
    let advice: Vec<&str> = report.advice.iter().map(|given| given.rule.name).collect();
    let unjudged: Vec<String> =
        report.unjudged.iter().map(|(rule, why)| format!("{}: {why}", rule.name)).collect();
    assert_eq!((advice, unjudged), (Vec::new(), Vec::<String>::new()));
    assert_eq!(report.fine.len(), rules().count());
}

#[test]
fn each_rule_speaks_at_its_threshold_and_not_below() {
    let cases: BTreeSet<&str> = CASES.iter().map(|case| case.rule).collect();
    let names: BTreeSet<&str> = rules().map(|rule| rule.name).collect();
    assert_eq!(cases, names, "each rule has a case, and each case a rule");
    assert_eq!(names.len(), rules().count(), "a name is there twice");
    for case in CASES {
        let spoken = asked(case, case.speaks);
        assert!(matches!(spoken, Ok(Verdict::Change(_) | Verdict::Note(_))), "{}: {spoken:?}", case.rule);
        assert_eq!(asked(case, case.is_silent), Ok(Verdict::Fine), "{}", case.rule);
    }
}

#[test]
fn advice_says_what_was_seen_what_to_do_and_what_it_brings() {
    for (rule, advice) in given() {
        let name = rule.name;
        assert!((0.0..=1.0).contains(&advice.weight) && advice.weight > 0.0, "{name}: {}", advice.weight);
        assert!(!advice.seen.is_empty() && !advice.steps.is_empty() && advice.means.ends_with('.'), "{name}");
        for figure in &advice.seen {
            let known = rule.looks_at.contains(&figure.name) || rule.keys.contains(&figure.name);
            assert!(known, "{name} does not say that it looks at {}", figure.name);
        }
        for step in &advice.steps {
            match step {
                AdvisedStep::Set { key, value } => {
                    assert!(rule.keys.contains(&key.as_str()), "{name} does not say that it changes {key}");
                    assert!(!value.contains('\''), "{name}: {value} cannot be pasted");
                }
                AdvisedStep::Console(command) => {
                    assert!(!command.contains('\''), "{name}: {command} cannot be pasted");
                }
                AdvisedStep::ByHand(what) => {
                    assert!(what.ends_with('.') || what.ends_with(':'), "{name}: {what}");
                }
            }
        }
        if let Some([least, most]) = advice.expected_percent {
            assert!(0.0 <= least && least <= most && most <= 100.0, "{name}: {least} to {most}");
        }
    }
}

#[test]
fn what_rules_rest_on_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let contributing = std::fs::read_to_string(root.join("CONTRIBUTING.md")).unwrap();
    for rule in rules() {
        assert!(!rule.support.is_empty(), "{} rests on nothing", rule.name);
        for support in rule.support {
            let is_there = match support {
                Support::Experiment(name) => root.join(format!("experiments/{name}.toml")).is_file(),
                Support::Benchmark(name) => {
                    contributing.contains(&format!("| `{name}` |")) && root.join("scripts/bench").is_file()
                }
                Support::Page(path) => root.join(path).is_file(),
            };
            assert!(is_there, "{} rests on {support:?}, which is not there", rule.name);
        }
    }
}

#[test]
fn what_could_not_be_judged_says_why() {
    // Nothing happened.
    let mut seen = well_set_up();
    seen.operations.clear();
    seen.before = seen.after.clone();
    seen.seconds = 5.0;
    now(&mut seen, "Server.ElapsedTime", 5.0);
    now(&mut seen, "Database.RM.Sys.Log.Type", 0.0);
    seen.databases.clear();
    seen.events = None;
    let report = judge(&seen);
    assert!(report.advice.is_empty());
    let unjudged: Vec<String> =
        report.unjudged.iter().map(|(rule, why)| format!("{}: {why}", rule.name)).collect();
    let expected = [
        "log-off: 0 changes were seen; it takes 100",
        "pool-small: 0 blocks were read; it takes 2000",
        "pool-tasks: 0 jobs were seen; it takes 500",
        "processors-busy: 5 seconds were looked at; it takes 10",
        "garbage: 5 seconds has the server run; it takes 120",
        "repeated-warnings: no log database is kept (log_database.name)",
    ];
    assert_eq!(unjudged, expected);
    // An older server tells less.
    let nothing = judge(&Observation::default());
    assert!(nothing.advice.is_empty());
    let why =
        nothing.unjudged.iter().find(|(rule, _)| rule.name == "dead-mail").map(|(_, why)| why.to_string());
    assert_eq!(why.as_deref(), Some("the server does not report Mail.Dead"));
}

#[test]
fn the_most_effective_comes_first_and_a_key_is_changed_once() {
    let mut seen = well_set_up();
    for name in ["restart-long", "pool-small", "writes-held", "log-off", "disk-full"] {
        let case = CASES.iter().find(|case| case.rule == name).unwrap();
        (case.speaks)(&mut seen);
    }
    crate::cases::grew(&mut seen, "Database.WriteStalls.Microseconds", 30e6);
    let report = judge(&seen);
    let order: Vec<&str> = report.advice.iter().map(|given| given.rule.name).collect();
    assert_eq!(order, ["disk-full", "writes-held", "pool-small", "log-off"]);
    let weights: Vec<f64> = report.advice.iter().map(|given| given.advice.weight).collect();
    assert!(weights.is_sorted_by(|left, right| left >= right), "{weights:?}");
    let steps: Vec<&AdvisedStep> = report.advice[1..3].iter().flat_map(|given| &given.advice.steps).collect();
    let set = AdvisedStep::Set { key: "memory.budget".to_owned(), value: "8 GB".to_owned() };
    assert_eq!(steps, [&set, &AdvisedStep::ByHand("memory.budget: as number 2 says.".to_owned())]);
    assert!(needs_restart("log.style") && !needs_restart("memory.budget"));
}
