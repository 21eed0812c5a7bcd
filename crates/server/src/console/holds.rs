//! `set hold`, `lift hold` and `show holds`.

use scrinium_catalog::Databases;
use scrinium_database::{DatabaseError, LegalHold};
use scrinium_directory::{Found, NameLookup};
use scrinium_mail::open_mail_file;
use serde_json::{Value, json};

use super::queue::time;
use super::table::{Align, table};
use super::{ConsoleError, Reply};

pub(super) const ARGUMENTS: &str = "PERSON or database=NAME MATTER";

pub(super) const SET_HELP: &str = "Legal hold: nothing in a person's mail file, or in a database, is lost until the hold for the MATTER is lifted";

pub(super) const LIFT_HELP: &str = "Lifts the legal hold for a MATTER; what it alone has kept goes";

pub(super) const SHOW_HELP: &str = "Legal holds: where, why, by whom and since when";

/// What a hold is on.
const DATABASE_PREFIX: &str = "database=";

/// `set hold` and `lift hold`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HoldOrder {
    /// A person, as the directory knows them, or `database=` and a name.
    pub what: String,
    /// The case that it is for.
    pub matter: String,
}

pub(super) fn parse(rest: &str) -> Option<HoldOrder> {
    let (what, matter) = rest.trim().split_once(char::is_whitespace)?;
    let matter = matter.trim();
    (!matter.is_empty()).then(|| HoldOrder { what: what.to_owned(), matter: matter.to_owned() })
}

/// Carries out what only an administrator of the server may order; `by` is who that is.
///
/// # Errors
/// In words: there is no such person, database or hold, or it could not be stored.
pub fn change_hold(
    databases: &Databases,
    people: &dyn NameLookup,
    (order, sets): (&HoldOrder, bool),
    by: &str,
) -> Result<Reply, ConsoleError> {
    let wrong = |error: DatabaseError| ConsoleError::NotFound(error.to_string());
    let (database, person) = match order.what.strip_prefix(DATABASE_PREFIX) {
        Some(name) => (databases.get(name).map_err(wrong)?, None),
        None => match people.find(&order.what) {
            Found::Person(person) => {
                (open_mail_file(databases, &person).map_err(wrong)?, Some(person.short_name.clone()))
            }
            _ => return Err(ConsoleError::NotFound(format!("{} is no person of the directory", order.what))),
        },
    };
    let matter = order.matter.clone();
    let data = json!({"database": database.name(), "person": person, "matter": matter});
    let (changed, text) = if sets {
        let since_ms = databases.clock().now_ms();
        let hold = LegalHold { matter, person, by: by.to_owned(), since_ms };
        (database.set_legal_hold(hold).map_err(wrong)?, "is under legal hold for")
    } else {
        (database.lift_legal_hold(&matter).map_err(wrong)?, "is not any more under legal hold for")
    };
    if !changed && !sets {
        return Err(ConsoleError::NotFound(format!(
            "{} is under no legal hold for {:?}; show holds lists them",
            database.name(),
            order.matter
        )));
    }
    Ok(Reply { text: format!("{} {text} {}.\n", database.name(), order.matter), data })
}

/// A console that knows nobody changes no hold.
pub(super) fn of_nobody() -> ConsoleError {
    ConsoleError::NotFound("legal holds are set and lifted by somebody who has logged in".to_owned())
}

/// All holds.
pub(super) fn show(databases: &Databases) -> Result<Reply, ConsoleError> {
    let held = databases.legal_holds().map_err(|error| ConsoleError::NotFound(error.to_string()))?;
    let lines: Vec<(String, LegalHold)> = held
        .into_iter()
        .flat_map(|(name, holds)| holds.into_iter().map(move |hold| (name.clone(), hold)))
        .collect();
    if lines.is_empty() {
        return Ok(Reply { text: "There are no legal holds.\n".to_owned(), data: json!({"holds": []}) });
    }
    let row = |(name, hold): &(String, LegalHold)| {
        let person = hold.person.clone().unwrap_or_default();
        vec![name.clone(), person, hold.matter.clone(), hold.by.clone(), time(Some(hold.since_ms))]
    };
    let rows: Vec<Vec<String>> = lines.iter().map(row).collect();
    let titles = ["Database", "Person", "Matter", "By", "Since"].map(|title| (title, Align::Left));
    let data: Vec<Value> = lines
        .iter()
        .map(|(name, hold)| {
            json!({"database": name, "person": hold.person, "matter": hold.matter, "by": hold.by,
                "since": time(Some(hold.since_ms))})
        })
        .collect();
    Ok(Reply { text: table(&titles, &rows), data: json!({"holds": data}) })
}
