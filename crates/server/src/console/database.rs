//! `show database` and `set database`.

use scrinium_database::Properties;
use serde_json::{Map, Value, json};

use super::{ConsoleError, Reply, ServerParts};

/// `set database`: a property and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetProperty {
    /// The database.
    pub database: String,
    /// The property.
    pub name: String,
    /// Its value, as in JSON.
    pub value: String,
}

pub(super) fn show_database(parts: &dyn ServerParts, name: &str) -> Result<Reply, ConsoleError> {
    let properties = parts.properties(name).map_err(ConsoleError::NotFound)?;
    Ok(reply(name, properties))
}

pub(super) fn set_database(parts: &dyn ServerParts, order: &SetProperty) -> Result<Reply, ConsoleError> {
    let value = serde_json::from_str(&order.value).unwrap_or_else(|_| Value::String(order.value.clone()));
    let wish = Map::from_iter([(order.name.clone(), value)]);
    let properties = parts.set_properties(&order.database, &wish).map_err(ConsoleError::NotFound)?;
    Ok(reply(&order.database, properties))
}

fn reply(name: &str, properties: Properties) -> Reply {
    let properties = properties.to_json();
    let lines = properties.as_object().into_iter().flatten();
    let lines: String = lines.map(|(property, value)| format!("  {property} = {value}\n")).collect();
    Reply { text: format!("{name}\n{lines}"), data: json!({"database": name, "properties": properties}) }
}
