//! What a formula view says of its order: case, accents, unique keys, and other orders on request.

use scrinium_database::Result;
use scrinium_document::collation::Sensitivity;
use serde_json::Value;

use crate::compile::wrong;
use crate::definition::{Column, KeyOptions, Sort};
use crate::resort::Resort;

/// `case` and `accent` of a column: which differences of its texts count.
///
/// # Errors
/// `compilation_error`: they are neither true nor false, or the column never sorts.
pub(super) fn sensitivity(place: &str, column: &Value, sorts: bool) -> Result<Sensitivity> {
    let flag = |member: &str| match column.get(member) {
        None | Some(Value::Null) => Ok(true),
        Some(Value::Bool(_)) if !sorts => {
            Err(wrong(format!("{place}: `{member}` is of columns that sort, and this one does not")))
        }
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(_) => Err(wrong(format!("{place}: `{member}` must be true or false"))),
    };
    Ok(Sensitivity { case: flag("case")?, accent: flag("accent")? })
}

/// `resort` of the column number `column`: the orders by it that a reader may ask for.
///
/// # Errors
/// `compilation_error`: it is not one of its values.
pub(super) fn resorts(place: &str, column: usize, column_json: &Value) -> Result<Vec<Resort>> {
    let sorts: &[Sort] = match column_json.get("resort") {
        None | Some(Value::Null) => &[],
        Some(Value::String(resort)) if resort == "asc" => &[Sort::Ascending],
        Some(Value::String(resort)) if resort == "desc" => &[Sort::Descending],
        Some(Value::String(resort)) if resort == "both" => &[Sort::Ascending, Sort::Descending],
        Some(_) => return Err(wrong(format!("{place}: `resort` must be \"asc\", \"desc\" or \"both\""))),
    };
    Ok(sorts.iter().map(|sort| Resort { column, sort: *sort }).collect())
}

/// What a view says of its keys as a whole: `unique`, and the orders of its columns.
///
/// # Errors
/// `compilation_error`: `unique` is neither true nor false, without a column that sorts, or with other orders.
pub(super) fn keys(name: &str, view: &Value, columns: &[Column], resorts: Vec<Resort>) -> Result<KeyOptions> {
    let is_unique = match view.get("unique") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(unique)) => *unique,
        Some(_) => return Err(wrong(format!("view `{name}`: `unique` must be true or false"))),
    };
    if is_unique && columns.iter().all(|column| column.sort.is_none()) {
        return Err(wrong(format!("view `{name}`: `unique` needs a column that sorts, which makes the key")));
    }
    // Under another key other entries would be the first.
    if let Some(column) = resorts.first().filter(|_| is_unique).and_then(|resort| columns.get(resort.column))
    {
        return Err(wrong(format!(
            "view `{name}`, column `{}`: a view with `unique` has one order, so `resort` is not available in it",
            column.title
        )));
    }
    Ok(KeyOptions { is_unique, resorts, shown: None })
}

/// The view without what other orders it can be read in, which changes nothing in its own index.
pub(super) fn without_resorts(view: &Value) -> Value {
    let mut view = view.clone();
    let columns = view.get_mut("columns").and_then(Value::as_array_mut);
    for column in columns.into_iter().flatten().filter_map(Value::as_object_mut) {
        column.shift_remove("resort");
    }
    view
}
