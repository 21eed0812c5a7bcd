//! The key of results: what they were measured of, as it is written next to them. An experiment continues only where the key
//! is its own.
//!
//! ```text
//! {"format": "scrinium-lab-resume/1",
//!  "experiment": name, "form": "quick" | "full", "server_command": text,
//!  "parameters": {name: value},
//!  "factors": [{"name", "turns", "levels": [{"label", "settings", "values"}]}],
//!  "steps": [{"name", "action": {"does": kind, "with": ...}}]}
//! ```
//!
//! It holds all that is measured, and nothing that is only said of it: titles, columns and objectives may change. What has
//! its default is left out.

use scrinium_lab_report::experiment::Form;
use serde_json::{Value, json};

use super::cells::Plan;
use super::definition::{Factor, Level};
use super::step::{CellStep, written};

/// The form of the key. It is raised when the same experiment is written otherwise, or is measured otherwise.
const FORMAT: &str = "scrinium-lab-resume/1";

/// What results are of.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ResumeKey(Value);

impl ResumeKey {
    /// The key of an experiment's results, measured with servers that `server_command` starts.
    pub(super) fn of(name: &str, form: Form, plan: &Plan, server_command: &str, steps: &[CellStep]) -> Self {
        let factor = |(factor, levels): &(Factor, Vec<Level>)| json!({"name": factor.name, "turns": factor.turns, "levels": levels});
        Self(written(&json!({
            "format": FORMAT,
            "experiment": name,
            "form": form,
            "server_command": server_command,
            "parameters": plan.parameters,
            "factors": plan.factors.iter().map(factor).collect::<Vec<Value>>(),
            "steps": steps.iter().map(CellStep::written).collect::<Vec<Value>>(),
        })))
    }

    /// As it lies on disk.
    pub(super) fn text(&self) -> String {
        format!("{:#}\n", self.0)
    }

    /// The members in which a key that was read differs, by name; none if it is the same.
    pub(super) fn differences(&self, text: &str) -> Vec<String> {
        let other: Value = serde_json::from_str(text).unwrap_or_default();
        let (Some(ours), Some(theirs)) = (self.0.as_object(), other.as_object()) else {
            return vec!["format".to_owned()];
        };
        let mut names: Vec<&String> = ours.keys().chain(theirs.keys()).collect();
        names.sort();
        names.dedup();
        names.into_iter().filter(|name| ours.get(*name) != theirs.get(*name)).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::library::Experiment;
    use super::*;

    const TEXT: &str = r#"
title = "Small"
hypothesis = "It runs."
source = "Nobody, 2000"
parameters.documents = { quick = 40, full = 80 }

[[factor]]
name = "users"
title = "Users"
turns = { quick = 2, full = 2 }
quick = [2]
full = [2, 4]

[[step]]
start.settings = { "log.style" = "circular" }

[[step]]
name = "work"
load.workload = "R5Mail"
load.users = "$users"
load.duration = "1s"

[[step]]
kill = true

[[column]]
title = "Average response"
value = "work.mean_ms"
"#;

    fn key(text: &str) -> ResumeKey {
        let experiment = Experiment::parse("small", "small.toml", text).unwrap();
        let plan = Plan::new(&experiment.definition, Form::Quick, &[], &[]).unwrap();
        ResumeKey::of("small", Form::Quick, &plan, "server {data}", &experiment.definition.steps)
    }

    /// A key of another form would make every experiment that was broken off start over.
    #[test]
    fn the_key_is_written_as_it_was() {
        let wanted = json!({
            "format": "scrinium-lab-resume/1",
            "experiment": "small",
            "form": "quick",
            "server_command": "server {data}",
            "parameters": {"documents": "40"},
            "factors": [
                {"name": "users", "turns": {"quick": 2, "full": 2}, "levels": [{"label": "2", "values": {"users": "2"}}]}
            ],
            "steps": [
                {"action": {"does": "start", "with": {"settings": {"log.style": "circular"}}}},
                {"name": "work", "action": {"does": "load", "with": {"workload": "R5Mail", "users": "$users", "duration": "1s"}}},
                {"action": {"does": "kill"}},
            ],
        });
        assert_eq!(key(TEXT).0, wanted);
        assert!(key(TEXT).differences(&key(TEXT).text()).is_empty());
    }

    #[test]
    fn what_is_said_of_results_is_no_part_of_their_key() {
        let said = TEXT
            .replace("It runs.", "It runs well.")
            .replace("Average", "Mean")
            .replace("\"Users\"", "\"People\"");
        assert_ne!(said, TEXT);
        assert_eq!(key(&said), key(TEXT));
        let differs = |from: &str, to: &str| key(&TEXT.replace(from, to)).differences(&key(TEXT).text());
        assert_eq!(differs("quick = 40", "quick = 41"), ["parameters"]);
        assert_eq!(differs("quick = [2]", "quick = [3]"), ["factors"]);
        assert_eq!(differs("kill = true", "stop = true"), ["steps"]);
        assert_eq!(differs("\"1s\"", "\"2s\""), ["steps"]);
        assert_eq!(key(TEXT).differences("no JSON"), ["format"]);
    }
}
