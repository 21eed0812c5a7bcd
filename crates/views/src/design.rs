//! The views of a design document.
//!
//! ```json
//! { "_id": "_design/mail", "language": "formula", "views": {
//!     "inbox": { "selection": "SELECT Form = \"Memo\"",
//!                "columns": [
//!                  { "title": "Date", "formula": "PostedDate", "sort": "desc" },
//!                  { "title": "From", "formula": "From" },
//!                  { "title": "Size", "formula": "Size", "total": true } ] } } }
//! ```

use std::collections::HashSet;
use std::sync::Arc;

use scrinium_database::{DatabaseError, Result};
use scrinium_formula::Formula;
use scrinium_javascript::{MapEngine, Owner, Pool, ReduceEngine, Reducer, ScriptError, Validator};
use scrinium_mango::{IndexDefinition, SortField};
use serde_json::{Value, json};

use crate::compile::{compile, wrong};
use crate::definition::{
    Column, Definition, KeyOptions, Library, Script, ScriptOptions, Sort, Source, Total,
};
use crate::error::{OrDatabaseError as _, script_error};
use crate::hierarchy::{self, Hierarchy};
use crate::resort::Resort;
use crate::scripts::functions_of;
use crate::{options, policy, text};

/// Changes when entries are made in another way, so that indexes are rebuilt.
const ENTRY_VERSION: u8 = 4;

/// Changes when functions are run in another way, so that their indexes are rebuilt.
const SCRIPT_VERSION: u8 = 2;

/// A view has at most this many columns.
const MAX_COLUMNS: usize = 64;

/// Fields of a Mango index, each of which takes up to a kilobyte of a key.
const MAX_MANGO_FIELDS: usize = 56;

/// Columns with totals; each costs eight bytes in every entry.
const MAX_TOTALS: usize = 16;

/// A design document has at most this many views.
const MAX_VIEWS: usize = 256;

/// The views of a design document.
///
/// # Errors
/// `compilation_error`, naming the view and the column, with the formula's line and column.
pub(crate) fn parse(design: &Value) -> Result<Vec<Definition>> {
    let Some(views) = design.get("views") else { return Ok(Vec::new()) };
    let parse = match language(design) {
        Some("formula") => parse_formulas,
        Some("query") => parse_mango,
        None | Some("javascript") => return parse_scripts(views, design),
        _ => return Ok(Vec::new()),
    };
    let views = views.as_object().ok_or_else(|| wrong("`views` must be an object".to_owned()))?;
    if views.len() > MAX_VIEWS {
        return Err(wrong(format!("a design document has at most {MAX_VIEWS} views")));
    }
    let id = design.get("_id").and_then(Value::as_str).unwrap_or_default();
    views.iter().map(|(name, view)| parse(id, name, view)).collect()
}

/// The views of a design document as it is stored: it may have come from another server, where Mango indexes are
/// not checked when they are written, and those that are none are left out.
///
/// # Errors
/// As [`parse`], of formulas.
pub(crate) fn parse_stored(design: &Value) -> Result<Vec<Definition>> {
    if language(design) != Some("query") {
        return parse(design);
    }
    let id = design.get("_id").and_then(Value::as_str).unwrap_or_default();
    let views = design.get("views").and_then(Value::as_object).into_iter().flatten();
    let definitions = views.filter_map(|(name, view)| parse_mango(id, name, view).ok());
    Ok(definitions.take(MAX_VIEWS).collect())
}

/// The Mango indexes among the views of a stored design document.
pub(crate) fn mango_indexes(design: &Value) -> Vec<Arc<IndexDefinition>> {
    let definitions = match language(design) {
        Some("query") => parse_stored(design).unwrap_or_default(),
        _ => Vec::new(),
    };
    let index = |definition: Definition| match definition.source {
        Source::Mango(index) => Some(index),
        Source::Formulas { .. } | Source::Script(_) => None,
    };
    definitions.into_iter().filter_map(index).collect()
}

fn language(design: &Value) -> Option<&str> {
    design.get("language").and_then(Value::as_str)
}

/// Refuses, before it is stored, a design document of a database whose functions cannot be compiled.
///
/// # Errors
/// As [`parse`], and `compilation_error` for JavaScript; [`DatabaseError::Unavailable`] if that cannot be told now.
pub(crate) fn check(pool: &Pool, owner: Owner, design: &Value) -> Result<()> {
    let definitions = parse(design)?;
    policy::check(design, &definitions)?;
    text::check(pool, owner, design)?;
    compile_scripts(pool, owner, design, &definitions)
}

/// As [`check`] of a design document that comes from another server, which may have Mango indexes of kinds that are
/// not offered here: those are left out when it is read.
///
/// # Errors
/// As [`check`].
pub(crate) fn check_replicated(pool: &Pool, owner: Owner, design: &Value) -> Result<()> {
    text::compile_stored(pool, owner, design)?;
    compile_scripts(pool, owner, design, &parse_stored(design)?)
}

fn compile_scripts(pool: &Pool, owner: Owner, design: &Value, definitions: &[Definition]) -> Result<()> {
    let scripts = definitions.iter().filter_map(|definition| Some((definition, definition.script()?)));
    let (views, scripts): (Vec<&Definition>, Vec<&Arc<Script>>) = scripts.unzip();
    if let Some(script) = scripts.first() {
        let modules = script.library.as_ref().map(|library| &library.modules);
        let sources: Vec<&str> = scripts.iter().map(|script| script.map.as_str()).collect();
        let checked = MapEngine::new(pool, owner, &sources, modules).check().or_database_error()?;
        for (view, checked) in views.iter().zip(checked) {
            checked.map_err(|error| refused(&format!("view `{}`, map", view.name), &error))?;
        }
    }
    for (view, script) in views.iter().zip(&scripts) {
        let Some(reducer) = &script.reducer else { continue };
        let checked = ReduceEngine::new(pool, owner, Reducer::clone(reducer)).check();
        checked.map_err(|error| refused(&format!("view `{}`, reduce", view.name), &error))?;
    }
    let source = match design.get("validate_doc_update") {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::String(source)) => source,
        Some(_) => return Err(wrong("`validate_doc_update` must be the text of a function".to_owned())),
    };
    if language(design) == Some("formula") {
        let compiled = Formula::compile(source).map(drop);
        return compiled.map_err(|error| wrong(format!("validate_doc_update: {error}")));
    }
    // Of another language it is a text like any other.
    if !matches!(language(design), None | Some("javascript")) {
        return Ok(());
    }
    let checked = Validator::new(pool, owner, source, &design.to_string()).check();
    checked.map_err(|error| refused("validate_doc_update", &error))
}

/// A function that cannot be compiled, with its place in the design document.
pub(crate) fn refused(place: &str, error: &ScriptError) -> DatabaseError {
    match script_error(error) {
        DatabaseError::Invalid { input, reason } => {
            DatabaseError::Invalid { input, reason: format!("{place}: {reason}") }
        }
        unavailable => unavailable,
    }
}

/// CouchDB's views: a map function each, and perhaps a reduce function. `views.lib` holds modules.
fn parse_scripts(views: &Value, design: &Value) -> Result<Vec<Definition>> {
    let views = views.as_object().ok_or_else(|| wrong("`views` must be an object".to_owned()))?;
    if views.len() > MAX_VIEWS {
        return Err(wrong(format!("a design document has at most {MAX_VIEWS} views")));
    }
    let library = views.get("lib").map(|modules| {
        let functions = functions_of([modules.to_string().as_str()]);
        Arc::new(Library { modules: modules.clone(), functions })
    });
    let is_view = |(name, view): &(&String, &Value)| *name != "lib" || view.get("map").is_some();
    let flag = |name: &str| design.pointer(&format!("/options/{name}")) == Some(&Value::Bool(true));
    let options =
        ScriptOptions { includes_designs: flag("include_design"), tells_sequence: flag("local_seq") };
    let parse = |(name, view): (&String, &Value)| parse_script(name, view, library.as_ref(), options);
    views.iter().filter(is_view).map(parse).collect()
}

fn parse_script(
    name: &str,
    view: &Value,
    library: Option<&Arc<Library>>,
    options: ScriptOptions,
) -> Result<Definition> {
    let text = |member: &str| match view.get(member) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(wrong(format!("view `{name}`: `{member}` must be the text of a function"))),
    };
    let map = text("map")?.ok_or_else(|| wrong(format!("view `{name}` has no `map` function")))?;
    let reducer = text("reduce")?.filter(|source| !source.is_empty());
    let reducer =
        reducer.map(|source| Reducer::parse(&source).map(Arc::new)).transpose().or_database_error()?;
    let modules = library.map(|library| &library.modules);
    let version = SCRIPT_VERSION;
    let is_raw = view.pointer("/options/collation").and_then(Value::as_str) == Some("raw");
    let ScriptOptions { includes_designs, tells_sequence } = options;
    let identity = json!({
        "map": map, "reduce": view.get("reduce"), "lib": modules, "version": version,
        "options": [is_raw, includes_designs, tells_sequence],
    });
    let mut key = Column::new("key".to_owned(), Some(Sort::Ascending));
    key.is_raw = is_raw;
    Ok(Definition {
        name: name.to_owned(),
        columns: vec![key, Column::new("value".to_owned(), None)],
        responses: None,
        keys: KeyOptions::default(),
        is_time_variant: false,
        identity: identity_of(&identity),
        source: Source::Script(Arc::new(Script { map, library: library.cloned(), reducer, options })),
    })
}

/// A Mango index, as `POST /{db}/_index` puts it into a design document.
fn parse_mango(design: &str, name: &str, view: &Value) -> Result<Definition> {
    let definition = IndexDefinition::from_view(design, name, view)
        .map_err(|error| wrong(format!("index `{name}`: {}", error.reason())))?;
    if definition.fields().len() > MAX_MANGO_FIELDS {
        return Err(wrong(format!("index `{name}`: an index has at most {MAX_MANGO_FIELDS} fields")));
    }
    let column = |field: &SortField| Column::new(field.path.text().to_owned(), Some(Sort::Ascending));
    // Only what decides which entries there are, so that the same index under another name is not built again.
    let identity = json!({"fields": view.pointer("/map/fields"), "filter": definition.to_json().get("def")});
    Ok(Definition {
        name: name.to_owned(),
        columns: definition.fields().iter().map(column).collect(),
        responses: None,
        keys: KeyOptions::default(),
        is_time_variant: false,
        identity: identity_of(&identity),
        source: Source::Mango(Arc::new(definition)),
    })
}

/// The collection of a folder: its columns, over what is in it.
///
/// # Errors
/// As [`parse`].
pub(crate) fn of_folder(name: &str, folder: u32, columns: &Value) -> Result<Definition> {
    // With the folder's number, so that no two folders share an index.
    parse_formulas("", name, &json!({"folder": folder, "columns": columns}))
}

fn parse_formulas(_design: &str, name: &str, view: &Value) -> Result<Definition> {
    let selection = view.get("selection").map_or(Some("SELECT @All"), Value::as_str);
    let selection =
        selection.ok_or_else(|| wrong(format!("view `{name}`: `selection` must be a formula's text")))?;
    let columns = match view.get("columns") {
        None => Vec::new(),
        Some(Value::Array(columns)) if columns.len() <= MAX_COLUMNS => columns
            .iter()
            .enumerate()
            .map(|(index, column)| parse_column(name, index, column))
            .collect::<Result<Vec<(Column, Formula, Vec<Resort>)>>>()?,
        Some(Value::Array(_)) => {
            return Err(wrong(format!("view `{name}`: a view has at most {MAX_COLUMNS} columns")));
        }
        Some(_) => return Err(wrong(format!("view `{name}`: `columns` must be an array"))),
    };
    let place = format!("view `{name}`, selection");
    let selection = compile(selection, &place)?;
    let responses = Hierarchy::parse(name, view, &selection)?;
    if selection.uses_responses() && responses.is_none() {
        return Err(wrong(format!(
            "{place}: @AllChildren and @AllDescendants need a view that shows responses, with \
             `\"responses\": true`; else select the responses by their fields, such as `Form` or `$REF`"
        )));
    }
    let resorts = columns.iter().flat_map(|(_, _, resorts)| resorts).copied().collect();
    let (columns, formulas): (Vec<Column>, Vec<Formula>) =
        columns.into_iter().map(|(column, formula, _)| (column, formula)).unzip();
    let keys = options::keys(name, view, &columns, resorts)?;
    let order = responses.as_ref().and_then(|responses| responses.order.as_ref());
    let is_time_variant = formulas.iter().chain([&selection]).chain(order).any(Formula::is_time_variant);
    let definition = Definition {
        name: name.to_owned(),
        is_time_variant,
        responses,
        source: Source::Formulas { selection, columns: formulas },
        columns,
        keys,
        identity: identity_of(&options::without_resorts(view)),
    };
    let mut titles = HashSet::new();
    if let Some(twice) = definition.columns.iter().find(|column| !titles.insert(column.title.as_str())) {
        return Err(wrong(format!("view `{name}`: two columns are called `{}`", twice.title)));
    }
    if definition.responses.is_some() {
        hierarchy::check(&definition)?;
    }
    if definition.totals().count() > MAX_TOTALS {
        return Err(wrong(format!("view `{name}`: at most {MAX_TOTALS} columns have totals")));
    }
    Ok(definition)
}

fn parse_column(view: &str, index: usize, column_json: &Value) -> Result<(Column, Formula, Vec<Resort>)> {
    let place = format!("view `{view}`, column {}", index + 1);
    let text = |member: &str| column_json.get(member).and_then(Value::as_str);
    let flag = |member: &str| match column_json.get(member) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(_) => Err(wrong(format!("{place}: `{member}` must be true or false"))),
    };
    let formula = text("formula").ok_or_else(|| wrong(format!("{place}: `formula` is missing")))?;
    let category = flag("category")?;
    let sort = match column_json.get("sort") {
        None | Some(Value::Null) if category => Some(Sort::Ascending),
        None | Some(Value::Null) => None,
        Some(Value::String(sort)) if sort == "asc" => Some(Sort::Ascending),
        Some(Value::String(sort)) if sort == "desc" => Some(Sort::Descending),
        Some(_) => return Err(wrong(format!("{place}: `sort` must be \"asc\" or \"desc\""))),
    };
    let title = text("title").map_or_else(|| format!("Column {}", index + 1), str::to_owned);
    let mut column = Column::new(title, sort);
    column.category = category;
    let resorts = options::resorts(&place, index, column_json)?;
    column.sensitivity = options::sensitivity(&place, column_json, sort.is_some() || !resorts.is_empty())?;
    column.total = match column_json.get("total") {
        None | Some(Value::Null | Value::Bool(false)) => None,
        Some(Value::Bool(true)) => Some(Total::Sum),
        Some(Value::String(total)) => Some(parse_total(total, &place)?),
        Some(_) => return Err(wrong_total(&place)),
    };
    Ok((column, compile(formula, &place)?, resorts))
}

fn parse_total(total: &str, place: &str) -> Result<Total> {
    match total {
        "sum" => Ok(Total::Sum),
        "average" => Ok(Total::Average),
        "percent_of_parent" => Ok(Total::PercentOfParent),
        "percent_of_all" => Ok(Total::PercentOfAll),
        _ => Err(wrong_total(place)),
    }
}

fn wrong_total(place: &str) -> DatabaseError {
    wrong(format!(
        "{place}: `total` must be true, false, \"sum\", \"average\", \"percent_of_parent\" or \"percent_of_all\""
    ))
}

/// An index belongs to it.
pub(crate) fn identity_of(view: &Value) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&[ENTRY_VERSION]);
    let mut view = view.clone();
    // When it is brought up to date does not tell what it holds.
    if let Some(members) = view.as_object_mut() {
        members.shift_remove("update");
    }
    hasher.update(view.to_string().as_bytes());
    let mut identity = [0; 16];
    hasher.finalize_xof().fill(&mut identity);
    identity
}
