//! What a view is: its selection and its columns, from a design document.
//!
//! ```json
//! { "_id": "_design/mail", "language": "formula", "views": {
//!     "inbox": { "selection": "SELECT Form = \"Memo\"",
//!                "columns": [
//!                  { "title": "Date", "formula": "PostedDate", "sort": "desc" },
//!                  { "title": "From", "formula": "From" },
//!                  { "title": "Size", "formula": "Size", "total": true } ] } } }
//! ```

use scrinium_document::collation::COLLATION_VERSION;
use scrinium_formula::Formula;
use serde_json::Value;

use crate::error::{DatabaseError, Result};

/// Changes when entries are made in another way, so that indexes are built anew.
const ENTRY_VERSION: u8 = 1;

/// A view has at most so many columns.
const MAX_COLUMNS: usize = 64;

/// Columns with totals; each costs eight bytes in every entry.
const MAX_TOTALS: usize = 16;

/// A design document has at most so many views.
const MAX_VIEWS: usize = 256;

/// In which direction a column sorts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    Ascending,
    Descending,
}

/// A column of a view.
pub(crate) struct Column {
    pub(crate) title: String,
    pub(crate) formula: Formula,
    pub(crate) sort: Option<Sort>,
    /// Each element of a list is an entry of its own.
    pub(crate) category: bool,
    pub(crate) total: bool,
}

/// A view as its design document describes it.
pub(crate) struct Definition {
    pub(crate) name: String,
    pub(crate) selection: Formula,
    pub(crate) columns: Vec<Column>,
    /// The same for the same view in any design document; an index belongs to it.
    pub(crate) identity: [u8; 16],
}

impl Definition {
    /// The columns that sort, in the order of the view's columns.
    pub(crate) fn sorted(&self) -> impl Iterator<Item = (&Column, Sort)> {
        self.columns.iter().filter_map(|column| column.sort.map(|sort| (column, sort)))
    }

    /// The columns with totals.
    pub(crate) fn totals(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(|column| column.total)
    }
}

/// The views of a design document.
///
/// # Errors
/// `compilation_error`, naming the view and the column, with the formula's line and column.
pub(crate) fn parse(design: &Value) -> Result<Vec<Definition>> {
    let Some(views) = design.get("views") else { return Ok(Vec::new()) };
    if design.get("language").and_then(Value::as_str) != Some("formula") {
        return Ok(Vec::new());
    }
    let views = views.as_object().ok_or_else(|| wrong("`views` must be an object".to_owned()))?;
    if views.len() > MAX_VIEWS {
        return Err(wrong(format!("a design document has at most {MAX_VIEWS} views")));
    }
    views.iter().map(|(name, view)| parse_view(name, view)).collect()
}

/// The collection of a folder: its columns, over what is in it.
///
/// # Errors
/// As [`parse`].
pub(crate) fn of_folder(name: &str, folder: u32, columns: &Value) -> Result<Definition> {
    // With the folder's number, so that no two folders share an index.
    parse_view(name, &serde_json::json!({"folder": folder, "columns": columns}))
}

fn parse_view(name: &str, view: &Value) -> Result<Definition> {
    let selection = view.get("selection").map_or(Some("SELECT @All"), Value::as_str);
    let selection =
        selection.ok_or_else(|| wrong(format!("view `{name}`: `selection` must be a formula's text")))?;
    let columns = match view.get("columns") {
        None => Vec::new(),
        Some(Value::Array(columns)) if columns.len() <= MAX_COLUMNS => columns
            .iter()
            .enumerate()
            .map(|(index, column)| parse_column(name, index, column))
            .collect::<Result<Vec<Column>>>()?,
        Some(Value::Array(_)) => {
            return Err(wrong(format!("view `{name}`: a view has at most {MAX_COLUMNS} columns")));
        }
        Some(_) => return Err(wrong(format!("view `{name}`: `columns` must be an array"))),
    };
    let definition = Definition {
        name: name.to_owned(),
        selection: compile(selection, &format!("view `{name}`, selection"))?,
        columns,
        identity: identity(view),
    };
    if definition.totals().count() > MAX_TOTALS {
        return Err(wrong(format!("view `{name}`: at most {MAX_TOTALS} columns have totals")));
    }
    Ok(definition)
}

fn parse_column(view: &str, index: usize, column: &Value) -> Result<Column> {
    let place = format!("view `{view}`, column {}", index + 1);
    let text = |member: &str| column.get(member).and_then(Value::as_str);
    let flag = |member: &str| match column.get(member) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(_) => Err(wrong(format!("{place}: `{member}` must be true or false"))),
    };
    let formula = text("formula").ok_or_else(|| wrong(format!("{place}: `formula` is missing")))?;
    let category = flag("category")?;
    let sort = match column.get("sort") {
        None | Some(Value::Null) if category => Some(Sort::Ascending),
        None | Some(Value::Null) => None,
        Some(Value::String(sort)) if sort == "asc" => Some(Sort::Ascending),
        Some(Value::String(sort)) if sort == "desc" => Some(Sort::Descending),
        Some(_) => return Err(wrong(format!("{place}: `sort` must be \"asc\" or \"desc\""))),
    };
    Ok(Column {
        title: text("title").map_or_else(|| format!("Column {}", index + 1), str::to_owned),
        formula: compile(formula, &place)?,
        sort,
        category,
        total: flag("total")?,
    })
}

fn compile(source: &str, place: &str) -> Result<Formula> {
    Formula::compile(source).map_err(|error| wrong(format!("{place}: {error}")))
}

fn identity(view: &Value) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&[ENTRY_VERSION]);
    hasher.update(&COLLATION_VERSION.to_be_bytes());
    hasher.update(view.to_string().as_bytes());
    let mut identity = [0; 16];
    hasher.finalize_xof().fill(&mut identity);
    identity
}

fn wrong(reason: String) -> DatabaseError {
    DatabaseError::BadRequest { error: "compilation_error", reason }
}
