//! Formulas of design documents, and what is said of wrong ones.

use scrinium_database::{DatabaseError, InvalidInput, Result};
use scrinium_formula::Formula;

pub(crate) fn compile(source: &str, place: &str) -> Result<Formula> {
    let formula = Formula::compile(source).map_err(|error| wrong(format!("{place}: {error}")))?;
    if formula.is_user_dependent() {
        let reason =
            "a view is the same for everybody who reads it, so @UserName and the like are not available";
        return Err(wrong(format!("{place}: {reason}")));
    }
    Ok(formula)
}

pub(crate) fn wrong(reason: String) -> DatabaseError {
    DatabaseError::Invalid { input: InvalidInput::Design, reason }
}
