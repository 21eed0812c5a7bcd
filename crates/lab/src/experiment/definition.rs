//! An experiment's file: `experiments/NAME.toml`, as data.
//!
//! Wherever a step or a setting has text, `$name` or `${name}` in it stands for a parameter of the experiment or
//! for what a level of a factor sets. Numbers of steps are written as text for that reason, or as numbers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The whole file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Definition {
    pub title: String,
    /// What is expected, before anything is measured.
    pub hypothesis: String,
    /// Who did it first, and what.
    pub source: String,
    /// What ours does otherwise than the source, and why.
    #[serde(default)]
    pub choices: Vec<String>,
    /// Values that the quick and the full form give, and `--set` changes.
    #[serde(default)]
    pub parameters: BTreeMap<String, Parameter>,
    /// How often each cell is measured.
    #[serde(default)]
    pub repeats: Repeats,
    /// What is varied; every combination of levels is a cell.
    #[serde(rename = "factor")]
    pub factors: Vec<Factor>,
    #[serde(rename = "step")]
    pub steps: Vec<Step>,
    /// What is shown of each cell.
    #[serde(rename = "column")]
    pub columns: Vec<Column>,
    /// Tables and charts of one value against one factor.
    #[serde(default, rename = "figure")]
    pub figures: Vec<Figure>,
    /// Tables of the source that belong to no figure.
    #[serde(default)]
    pub published: Vec<Published>,
    /// What it is asked to show.
    #[serde(default, rename = "objective")]
    pub objectives: Vec<Objective>,
}

/// A value that depends on the form.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Parameter {
    pub quick: Scalar,
    pub full: Scalar,
    #[serde(default)]
    pub about: String,
}

/// How often.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Repeats {
    pub quick: u32,
    pub full: u32,
}

impl Default for Repeats {
    fn default() -> Self {
        Self { quick: 2, full: 2 }
    }
}

/// A text, number or truth value, as text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Scalar(pub String);

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ScalarVisitor)
    }
}

struct ScalarVisitor;

impl serde::de::Visitor<'_> for ScalarVisitor {
    type Value = Scalar;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a text, a number, true or false")
    }

    fn visit_i64<E>(self, number: i64) -> Result<Scalar, E> {
        Ok(Scalar(number.to_string()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Scalar, E> {
        Ok(Scalar(number.to_string()))
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Scalar, E> {
        Ok(Scalar(truth.to_string()))
    }

    fn visit_str<E>(self, text: &str) -> Result<Scalar, E> {
        Ok(Scalar(text.to_owned()))
    }
}

/// What is varied. Either `levels`, or `quick` and `full`: values of a parameter of the factor's own name.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Factor {
    pub name: String,
    pub title: String,
    #[serde(default)]
    pub levels: Vec<Level>,
    #[serde(default)]
    pub quick: Vec<Scalar>,
    #[serde(default)]
    pub full: Vec<Scalar>,
    /// Its levels are measured in turn on the same servers, so often: what differs between two starts of a server
    /// meets all of them alike. Every second time in the other order.
    #[serde(default)]
    pub turns: Option<Repeats>,
}

/// One level of a factor.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Level {
    pub label: String,
    /// Settings of the server.
    #[serde(default)]
    pub settings: BTreeMap<String, Scalar>,
    /// Values of parameters.
    #[serde(default)]
    pub values: BTreeMap<String, Scalar>,
    /// Not part of the quick form.
    #[serde(default)]
    pub only_full: bool,
}

/// A step of a cell: one of its members says what it does. What it measures has its name before it: `load.mean_ms`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// By default what it does: `load`.
    pub name: Option<String>,
    /// Starts the server on the cell's data, and waits until it answers.
    pub start: Option<Start>,
    /// Makes databases and writes documents into them.
    pub fill: Option<Fill>,
    /// Users at work.
    pub load: Option<Load>,
    /// A probe alone.
    pub probe: Option<ProbeStep>,
    /// A command on the server's console; waits until its task is done.
    pub console: Option<String>,
    /// Requests, one after the other in each of some databases, in all of these at once.
    pub request: Option<RequestStep>,
    /// Waits until the servers neither work nor give memory back, for so many seconds at most.
    pub rest: Option<Scalar>,
    /// SIGKILL to all servers: the machine's power goes, as far as they can tell.
    pub kill: Option<bool>,
    /// SIGTERM, and waits for their end.
    pub stop: Option<bool>,
    /// Seconds in which nothing is done.
    pub pause: Option<Scalar>,
}

/// The server.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Start {
    #[serde(default)]
    pub settings: BTreeMap<String, Scalar>,
    /// Memory of the server's control group, such as `128 MB`; empty or left out: no limit.
    #[serde(default)]
    pub memory: Option<Scalar>,
    /// CPUs that it may use; 0 or left out: all.
    #[serde(default)]
    pub cpus: Option<Scalar>,
    /// Servers, each with data and a port of its own.
    #[serde(default)]
    pub servers: Option<Scalar>,
}

/// Documents.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Fill {
    pub database: String,
    /// Makes so many databases, called `database`, and `database` and a number from 2 on.
    #[serde(default)]
    pub databases: Option<Scalar>,
    pub documents: Scalar,
    #[serde(default)]
    pub body_bytes: Option<Scalar>,
    /// Every document is written so many times, each time as a new revision.
    #[serde(default)]
    pub times: Option<Scalar>,
    /// Puts the design document with the seven views of a discussion there, before the documents.
    #[serde(default)]
    pub views: bool,
}

/// Users at work: `lab load`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Load {
    pub workload: String,
    pub users: Scalar,
    pub duration: Scalar,
    #[serde(default)]
    pub ramp_up: Option<Scalar>,
    #[serde(default)]
    pub speedup: Option<Scalar>,
    #[serde(default)]
    pub messages_per_user: Option<Scalar>,
    #[serde(default)]
    pub user_prefix: Option<String>,
    /// Which of the servers, from 1.
    #[serde(default)]
    pub server: Option<Scalar>,
    /// Variables of the script.
    #[serde(default)]
    pub set: BTreeMap<String, Scalar>,
    /// Over the encrypted port.
    #[serde(default)]
    pub encrypted: Option<Scalar>,
    /// Asking for compressed answers.
    #[serde(default)]
    pub compressed: Option<Scalar>,
    /// Users close an HTTP connection that was idle for so long; "" where they keep it.
    #[serde(default)]
    pub keep_alive: Option<Scalar>,
    /// In the closed model: users think after each answer.
    #[serde(default)]
    pub closed: Option<Scalar>,
    /// A probe beside the users.
    #[serde(default)]
    pub probe: Option<ProbeStep>,
    /// Others at work meanwhile, who are not measured; none where their `users` are 0.
    #[serde(default)]
    pub beside: Vec<Load>,
    /// Searches for the largest number of users that reach an objective.
    #[serde(default)]
    pub search: Option<Search>,
}

/// Doubles the users from `Load::users` until the objective is missed, then halves the interval.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Search {
    pub most_users: Scalar,
    pub max_average_ms: Scalar,
    /// How often the interval is halved.
    pub halvings: Scalar,
}

/// `lab probe`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names say it")]
pub struct ProbeStep {
    #[serde(default)]
    pub database: Option<String>,
    #[serde(default)]
    pub view: Option<String>,
    #[serde(default)]
    pub mail: bool,
    pub interval: Scalar,
    /// Only for a probe alone.
    #[serde(default, rename = "for")]
    pub length: Option<Scalar>,
}

/// Requests whose time counts together.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names say it")]
pub struct RequestStep {
    #[serde(default = "get")]
    pub method: String,
    /// Paths; `$database` in them is the database.
    pub paths: Vec<String>,
    /// A JSON text.
    #[serde(default)]
    pub body: Option<String>,
    pub database: String,
    #[serde(default)]
    pub databases: Option<Scalar>,
}

fn get() -> String {
    "GET".to_owned()
}

/// In what a value is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the names say it")]
pub enum Unit {
    #[default]
    Count,
    Percent,
    Milliseconds,
    Seconds,
    Bytes,
    Ratio,
}

/// One value of a cell.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Column {
    pub title: String,
    /// Step and measurement: `load.mean_ms`.
    pub value: String,
    /// Divides by another measurement, or by a parameter: `$users`.
    #[serde(default)]
    pub per: Option<String>,
    #[serde(default)]
    pub unit: Unit,
}

/// One column against a factor.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Figure {
    /// Of a column.
    pub column: String,
    /// A factor: the rows.
    pub rows: String,
    /// Another factor: the lines of the chart.
    #[serde(default)]
    pub series: Option<String>,
    /// The source's table for it.
    #[serde(default)]
    pub published: Option<Published>,
}

/// A limit for a column, or for how a column changes from one level to another.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Objective {
    pub title: String,
    /// Of a column.
    pub column: String,
    /// Levels of factors, by their labels, or `first` or `last`; of the others all levels are looked at.
    #[serde(default)]
    pub of: BTreeMap<String, Scalar>,
    /// The limit is for the ratio to the cell with these levels in place of its own.
    #[serde(default)]
    pub against: Option<BTreeMap<String, Scalar>>,
    #[serde(default)]
    pub at_most: Option<f64>,
    #[serde(default)]
    pub at_least: Option<f64>,
    /// Not asked of the quick form.
    #[serde(default)]
    pub only_full: bool,
}

/// A table of the source. The first cell of a row says what the row is.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Published {
    pub title: String,
    pub columns: Vec<String>,
    pub rows: Vec<Vec<String>>,
    #[serde(default)]
    pub note: String,
}
