//! What a server tells at one moment, by console commands.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::observation::{DatabaseUse, Operation};

/// Why a console command has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// The server answers and does not do it, for this reason.
    #[error("{0}")]
    Refused(String),
    /// There is no answer.
    #[error("{0}")]
    Failed(String),
}

/// Carries out console commands on the server that is looked at.
pub trait Source {
    /// The data of the answer to one command.
    ///
    /// # Errors
    /// [`AskError`].
    fn ask(&mut self, command: &str) -> Result<Value, AskError>;
}

/// What is counted since the server's start.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Moment {
    pub(crate) statistics: BTreeMap<String, f64>,
    pub(crate) operations: BTreeMap<String, Operation>,
    pub(crate) databases: Vec<DatabaseUse>,
}

impl Moment {
    /// Asks for it.
    ///
    /// # Errors
    /// [`AskError`]; a server that is about to stop refuses.
    pub fn read(source: &mut dyn Source) -> Result<Self, AskError> {
        let statistics = source.ask("show statistics")?;
        let transactions = source.ask("show transactions")?;
        let databases = source.ask("show databases")?;
        Ok(Self {
            statistics: numbers(statistics.get("statistics")),
            operations: items(&transactions, "transactions").filter_map(operation).collect(),
            databases: items(&databases, "databases").map(database).collect(),
        })
    }
}

/// The elements of a list in an answer.
pub(crate) fn items<'a>(answer: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    answer.get(name).and_then(Value::as_array).into_iter().flatten()
}

pub(crate) fn text(value: &Value, name: &str) -> String {
    value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

pub(crate) fn number(value: &Value, name: &str) -> f64 {
    value.get(name).and_then(Value::as_f64).unwrap_or_default()
}

fn numbers(values: Option<&Value>) -> BTreeMap<String, f64> {
    let values = values.and_then(Value::as_object).into_iter().flatten();
    values.filter_map(|(name, value)| Some((name.clone(), value.as_f64()?))).collect()
}

fn operation(told: &Value) -> Option<(String, Operation)> {
    let name = told.get("function")?.as_str()?.to_owned();
    Some((name, Operation { count: number(told, "count"), total_ms: number(told, "total_ms") }))
}

fn database(told: &Value) -> DatabaseUse {
    DatabaseUse {
        name: text(told, "name"),
        volume: text(told, "volume"),
        documents: number(told, "documents"),
        file_bytes: number(told, "file_bytes"),
        index_bytes: number(told, "index_bytes"),
        blocks_from_files: number(told, "blocks_from_files"),
        writes: number(told, "writes"),
        written_bytes: number(told, "written_bytes"),
    }
}
