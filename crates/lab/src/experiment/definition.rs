//! An experiment's file: `experiments/NAME.toml`, as data.
//!
//! Wherever a step or a setting has text, `$name` or `${name}` in it stands for a parameter of the experiment or
//! for what a level of a factor sets. Numbers of steps are written as text for that reason, or as numbers.

use std::collections::BTreeMap;

use scrinium_lab_report::experiment::{Published, Unit};
use serde::{Deserialize, Serialize};

use super::step::CellStep;

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
    pub steps: Vec<CellStep>,
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
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
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
#[derive(Clone, Debug, Deserialize, Serialize)]
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
