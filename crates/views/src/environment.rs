//! What formulas can ask besides the document that they are evaluated for.

use scrinium_database::Database;
use scrinium_formula::Environment;

/// The time, and the database.
pub(crate) fn environment(database: &Database) -> Environment {
    let mut environment = Environment::new(database.store().clock().timestamp(), jiff::tz::TimeZone::UTC);
    environment.database_name = Some(database.name().to_owned());
    environment
}
