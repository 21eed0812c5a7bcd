//! All rules put to one observation, and the answer as data.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::advice::{Advice, AdvisedStep, Figure};
use crate::observation::Observation;
use crate::rule::{Rule, Support, Unjudged, Verdict};
use crate::rules::{needs_restart, rules};

/// Advice, and the rule that gives it.
pub struct Recommended {
    /// The rule.
    pub rule: &'static Rule,
    /// What it has to say.
    pub advice: Advice,
    /// Of the keys that it has changed, those that the environment or the command line sets, and by what.
    pub set_by: Vec<(String, String)>,
}

/// What the rules say.
pub struct Report {
    /// Seconds that were looked at.
    pub seconds: f64,
    /// These are all since the server's start.
    pub is_since_start: bool,
    /// Requests in this time.
    pub requests: f64,
    /// What one took on average.
    pub request_ms: f64,
    /// Parts of the processors (0 to 1) that the server had, where it is known.
    pub processors_busy: Option<f64>,
    /// What is best changed, in the order of effect.
    pub advice: Vec<Recommended>,
    /// What might be taken for a problem but is fine.
    pub notes: Vec<(&'static Rule, String)>,
    /// Rules that could say nothing, and why.
    pub unjudged: Vec<(&'static Rule, Unjudged)>,
    /// Rules that found nothing.
    pub fine: Vec<&'static Rule>,
}

/// Puts every rule to an observation.
#[must_use]
pub fn judge(observation: &Observation) -> Report {
    let requests = observation.requests();
    let mut report = Report {
        seconds: observation.seconds,
        is_since_start: observation.is_since_start,
        requests: requests.count,
        request_ms: requests.average_ms(),
        processors_busy: observation.processors_busy().ok(),
        advice: Vec::new(),
        notes: Vec::new(),
        unjudged: Vec::new(),
        fine: Vec::new(),
    };
    for rule in rules() {
        match (rule.check)(observation) {
            Ok(Verdict::Change(advice)) => {
                let set_by = set_by(observation, &advice);
                report.advice.push(Recommended { rule, advice: *advice, set_by });
            }
            Ok(Verdict::Fine) => report.fine.push(rule),
            Ok(Verdict::Note(text)) => report.notes.push((rule, text)),
            Err(unjudged) => report.unjudged.push((rule, unjudged)),
        }
    }
    // A stable sort: of equal weight, the order of the table.
    report.advice.sort_by(|left, right| right.advice.weight.total_cmp(&left.advice.weight));
    agree(&mut report.advice);
    report
}

/// A key is changed once, by the advice that counts most.
fn agree(advice: &mut [Recommended]) {
    let mut set: BTreeMap<String, usize> = BTreeMap::new();
    for (number, recommended) in (1..).zip(advice) {
        for step in &mut recommended.advice.steps {
            let AdvisedStep::Set { key, .. } = step else { continue };
            match set.get(key).filter(|before| **before != number) {
                Some(before) => *step = AdvisedStep::ByHand(format!("{key}: as number {before} says.")),
                None => drop(set.insert(key.clone(), number)),
            }
        }
    }
}

/// Keys that `set config` changes for the time until the next start only.
fn set_by(observation: &Observation, advice: &Advice) -> Vec<(String, String)> {
    let keys = advice.steps.iter().filter_map(|step| match step {
        AdvisedStep::Set { key, .. } => Some(key),
        _ => None,
    });
    let by = |key: &String| {
        let source = &observation.settings.get(key)?.source;
        let wins = source.starts_with("SCRINIUM_") || source.starts_with("--");
        wins.then(|| (key.clone(), source.clone()))
    };
    keys.filter_map(by).collect()
}

/// The command that carries out a step, to be pasted into a shell.
pub(crate) fn command(step: &AdvisedStep) -> Option<String> {
    match step {
        AdvisedStep::Set { key, value } => Some(format!("scrinium console 'set config {key}={value}'")),
        AdvisedStep::Console(command) => Some(format!("scrinium console '{command}'")),
        AdvisedStep::ByHand(_) => None,
    }
}

impl Report {
    /// Whether anything is to be changed.
    #[must_use]
    pub fn has_advice(&self) -> bool {
        !self.advice.is_empty()
    }

    /// Everything, for programs.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let advice: Vec<Value> = self.advice.iter().map(Recommended::to_json).collect();
        let notes = self.notes.iter().map(|(rule, text)| json!({"rule": rule.name, "text": text}));
        let unjudged =
            self.unjudged.iter().map(|(rule, why)| json!({"rule": rule.name, "reason": why.to_string()}));
        let fine = self.fine.iter().map(|rule| json!(rule.name));
        json!({
            "seconds": self.seconds,
            "since_start": self.is_since_start,
            "requests": self.requests,
            "request_ms": self.request_ms,
            "processors_busy_percent": self.processors_busy.map(|part| part * 100.0),
            "advice": advice,
            "notes": notes.collect::<Value>(),
            "not_judged": unjudged.collect::<Value>(),
            "fine": fine.collect::<Value>(),
        })
    }
}

impl Recommended {
    fn to_json(&self) -> Value {
        let Self { rule, advice, .. } = self;
        let expected = advice
            .expected_percent
            .map(|[least, most]| json!({"least_percent": least, "most_percent": most}));
        json!({
            "rule": rule.name,
            "subject": rule.subject.to_string(),
            "title": rule.title,
            "weight": advice.weight,
            "seen": advice.seen.iter().map(figure).collect::<Value>(),
            "means": advice.means,
            "change": advice.steps.iter().map(|step| self.step(step)).collect::<Value>(),
            "gain": advice.gain.name(),
            "expected": expected,
            "support": rule.support.iter().map(support).collect::<Value>(),
            "until": rule.until,
        })
    }

    fn step(&self, step: &AdvisedStep) -> Value {
        match step {
            AdvisedStep::Set { key, value } => json!({
                "kind": "set",
                "key": key,
                "value": value,
                "command": command(step),
                "used": if needs_restart(key) { "next start" } else { "now" },
                "set_by": self.set_by.iter().find(|(set, _)| set == key).map(|(_, by)| by),
            }),
            AdvisedStep::Console(_) => json!({"kind": "console", "command": command(step)}),
            AdvisedStep::ByHand(text) => json!({"kind": "by_hand", "text": text}),
        }
    }
}

fn figure(figure: &Figure) -> Value {
    json!({
        "name": figure.name,
        "of": figure.of,
        "value": figure.value,
        "unit": figure.value.map(|_| figure.unit.name()),
        "text": figure.text,
    })
}

fn support(support: &Support) -> Value {
    let (kind, name) = match support {
        Support::Experiment(name) => ("experiment", name),
        Support::Benchmark(name) => ("benchmark", name),
        Support::Page(path) => ("page", path),
    };
    json!({"kind": kind, "name": name, "see": support.to_string()})
}
