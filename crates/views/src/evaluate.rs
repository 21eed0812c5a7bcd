//! Evaluating documents for views: which rows each has, and with them its entries.

use std::time::{Duration, Instant};

use scrinium_assertion::never;
use scrinium_database::access::readable::ReadableLeaf;
use scrinium_database::access::readers::digests_of;
use scrinium_database::leaf::Leaf;
use scrinium_database::read::others::OtherLeaves;
use scrinium_database::read::render::Renderer;
use scrinium_database::{DatabaseError, ReadOptions, Result, keys};
use scrinium_document::is_design;
use scrinium_document::json::{JsonText, NESTING_MAX, parse_value};
use scrinium_document::raw_order::write_raw_key;
use scrinium_formula::{Environment, Formula};
use scrinium_javascript::{Emitted, MapEngine, Mapped, ScriptError};
use scrinium_store::Family;
use serde_json::Value;

use crate::definition::{Definition, Library, ScriptOptions, Source};
use crate::document::Document;
use crate::entries::{Entry, entries_of};
use crate::error::OrDatabaseError as _;
use crate::group::View;
use crate::open::OpenDatabase;
use crate::streams::for_readers;
use crate::yielding;

/// A document is under at most this many combinations of categories.
const MAX_ENTRIES: usize = 1000;

/// So often a build tries functions that cannot be run now, and how long it waits in between.
const BUILD_TRIES: usize = 5;
const BUILD_PAUSE: Duration = Duration::from_secs(1);

/// Evaluates documents for some views, on one thread.
pub(super) struct Evaluator<'a> {
    database: &'a OpenDatabase,
    views: Vec<&'a View>,
    environment: &'a Environment,
    scripts: Vec<Scripts>,
}

/// Map functions that share a library and therefore an engine.
struct Scripts {
    /// Which of the evaluator's views they belong to.
    views: Vec<usize>,
    options: ScriptOptions,
    engine: MapEngine,
}

/// The entries of one document in each of the views.
pub(super) type Evaluated = Vec<Vec<Entry>>;

impl<'a> Evaluator<'a> {
    pub(super) fn new(
        database: &'a OpenDatabase,
        views: Vec<&'a View>,
        environment: &'a Environment,
    ) -> Self {
        let scripts = engines(database, &views);
        Self { database, views, environment, scripts }
    }

    /// Whether design documents have entries in one of the views.
    pub(super) fn includes_designs(&self) -> bool {
        self.views.iter().any(|view| view.definition.includes_designs())
    }

    /// A document's record; `None` if it cannot be read, so that no view has it.
    pub(super) fn leaf<'b>(&self, id: &str, record: &'b [u8]) -> Result<Option<Leaf<'b>>> {
        self.database.pass_over(id, Leaf::decode(id, record))
    }

    /// The entries of a document in each of the views.
    pub(super) fn entries(&mut self, id: &str, leaf: &Leaf<'_>) -> Result<Evaluated> {
        let entries = self.entries_of_many(&[(id, leaf)])?.pop();
        entries.ok_or_else(|| never!("each document that is evaluated has its entries", "{id}").into())
    }

    /// As [`entries`](Self::entries) for several documents, which is faster where JavaScript is run. A document that
    /// cannot be read has none.
    pub(super) fn entries_of_many(&mut self, documents: &[(&str, &Leaf<'_>)]) -> Result<Vec<Evaluated>> {
        let many = self.entries_of_sound(documents);
        if !matches!(many, Err(DatabaseError::Damaged { .. })) {
            return many;
        }
        let mut all = Vec::with_capacity(documents.len());
        for (id, leaf) in documents {
            let entries = self.entries_of_sound(&[(*id, *leaf)]).map(|mut one| one.pop());
            let entries = self.database.pass_over(id, entries)?.flatten();
            all.push(entries.unwrap_or_else(|| vec![Vec::new(); self.views.len()]));
        }
        Ok(all)
    }

    fn entries_of_sound(&mut self, documents: &[(&str, &Leaf<'_>)]) -> Result<Vec<Evaluated>> {
        let mut all = Vec::with_capacity(documents.len());
        for (id, leaf) in documents {
            yielding::give_way();
            let document = Document::new(self.database, ReadableLeaf::for_index(id, **leaf))?;
            let of_view = |view: &&View| {
                if !self.may_hold(view, id)? {
                    return Ok(Vec::new());
                }
                let rows = rows(&view.definition, &document, self.environment);
                Ok(entries_of(&view.definition, id, &rows))
            };
            all.push(self.views.iter().map(of_view).collect::<Result<Evaluated>>()?);
        }
        if !self.scripts.is_empty() {
            self.run_scripts(documents, &mut all)?;
        }
        for ((id, leaf), evaluated) in documents.iter().zip(&mut all) {
            if let Some(readers) = digests_of(self.database, id, leaf)? {
                evaluated.iter_mut().for_each(|entries| {
                    *entries = for_readers(std::mem::take(entries), &readers);
                });
            }
        }
        Ok(all)
    }

    /// A folder's collection has what is in the folder; anyone who comes or leaves in this moment is looked at again
    /// for that.
    fn may_hold(&self, view: &View, id: &str) -> Result<bool> {
        if is_design(id) && !view.definition.includes_designs() {
            return Ok(false);
        }
        let Some(folder) = view.folder else { return Ok(true) };
        let key = keys::membership(self.database.number(), id, folder);
        Ok(self.database.store().contains(Family::Point, &key)?)
    }

    /// A document as map functions see it.
    fn text(
        &self,
        (id, leaf): (&str, &Leaf<'_>),
        has_losers: bool,
        tells_sequence: bool,
    ) -> Result<JsonText> {
        let options = ReadOptions::default();
        let leaves = if has_losers { self.database.other_leaves(id, leaf)? } else { OtherLeaves::default() };
        let sequence = if tells_sequence { self.database.change_number_of(id)? } else { None };
        let leaf = ReadableLeaf::for_index(id, *leaf);
        Renderer::new(self.database, &options).render_for_index(&leaf, &leaves, sequence)
    }

    fn run_scripts(&mut self, documents: &[(&str, &Leaf<'_>)], all: &mut [Evaluated]) -> Result<()> {
        let has_losers = self.database.has_losers()?;
        let tell = |tells_sequence: bool| {
            let is_wanted = self.scripts.iter().any(|one| one.options.tells_sequence == tells_sequence);
            let documents = if is_wanted { documents } else { &[] };
            let texts = documents.iter().map(|document| self.text(*document, has_losers, tells_sequence));
            texts.collect::<Result<Vec<JsonText>>>()
        };
        let (plain, numbered) = (tell(false)?, tell(true)?);
        for scripts in &mut self.scripts {
            let texts = if scripts.options.tells_sequence { &numbered } else { &plain };
            let is_given = |id: &str| scripts.options.includes_designs || !is_design(id);
            let given = documents.iter().zip(texts).filter(|((id, _), _)| is_given(id));
            let texts: Vec<&str> = given.map(|(_, text)| text.as_str()).collect();
            let begun = Instant::now();
            let mapped = map_patiently(&mut scripts.engine, &texts).or_database_error()?;
            self.database.server.view_counts.ran_scripts(begun.elapsed());
            for (function, line) in scripts.engine.take_log() {
                let view = scripts.views.get(function).and_then(|place| self.views.get(*place));
                if let Some(view) = view
                    && let Some(line) = view.index.failures.log(line)
                {
                    let (database, view) = (self.database.name(), &view.definition.name);
                    tracing::debug!(database, view, line, "a map function says");
                }
            }
            let given = all.iter_mut().zip(documents).filter(|(_, (id, _))| is_given(id));
            for (mapped, (evaluated, (id, _))) in mapped.into_iter().zip(given) {
                for (mapped, place) in mapped.into_iter().zip(&scripts.views) {
                    let (Some(view), Some(entries)) = (self.views.get(*place), evaluated.get_mut(*place))
                    else {
                        return Err(never!(
                            "the functions that are run are those of the views",
                            "view {place}"
                        )
                        .into());
                    };
                    let rows = mapped.and_then(|entries| emitted(&entries)).unwrap_or_else(|error| {
                        self.database.server.view_counts.script_failed();
                        view.index.failures.note(id, &error);
                        Vec::new()
                    });
                    *entries = entries_of(&view.definition, id, &rows);
                }
            }
        }
        Ok(())
    }
}

/// An engine for each library that the views' functions use, and for what their documents are to hold.
fn engines(database: &OpenDatabase, views: &[&View]) -> Vec<Scripts> {
    let mut by_library: Vec<(Option<&Library>, ScriptOptions, Vec<usize>)> = Vec::new();
    for (place, view) in views.iter().enumerate() {
        let Some(script) = view.definition.script() else { continue };
        let library = script.library.as_deref();
        let functions = |library: Option<&Library>| library.map(|library| library.functions);
        let is_same = |(other, options): (Option<&Library>, ScriptOptions)| {
            functions(other) == functions(library) && options == script.options
        };
        match by_library.iter_mut().find(|(other, options, _)| is_same((*other, *options))) {
            Some((.., places)) => places.push(place),
            None => by_library.push((library, script.options, vec![place])),
        }
    }
    let engine = |(library, options, places): (Option<&Library>, ScriptOptions, Vec<usize>)| {
        let views: Vec<&View> = places.iter().filter_map(|place| views.get(*place).copied()).collect();
        let scripts = views.iter().filter_map(|view| view.definition.script());
        let sources: Vec<&str> = scripts.map(|script| script.map.as_str()).collect();
        let modules = library.map(|library| &library.modules);
        let pool = &database.server.scripts;
        let mut engine = MapEngine::new(pool, database.uuid(), &sources, modules);
        for (function, view) in views.iter().enumerate() {
            engine.share_conduct(function, &view.index.failures.conduct());
        }
        Scripts { views: places, options, engine }
    };
    by_library.into_iter().map(engine).collect()
}

/// What functions give for documents. That they cannot be run now says nothing of the documents: anyone who wanted them tries
/// again, and a build, which has much to lose, does so itself for a while.
pub(crate) fn map_patiently(
    engine: &mut MapEngine,
    texts: &[&str],
) -> std::result::Result<Vec<Vec<Mapped>>, ScriptError> {
    let tries = if yielding::is_begun() { BUILD_TRIES } else { 1 };
    let mut mapped = engine.map_many(texts);
    for _ in 1..tries {
        if !matches!(mapped, Err(ScriptError::Unavailable { .. })) {
            break;
        }
        std::thread::sleep(BUILD_PAUSE);
        mapped = engine.map_many(texts);
    }
    mapped
}

/// The rows that a map function emitted, in the raw order of their values, in which CouchDB has those of one key. They
/// come from a process that is not believed.
fn emitted(entries: &[Emitted]) -> std::result::Result<Vec<Vec<Value>>, ScriptError> {
    let parse = |json: &str| {
        // What a function emits may be nested deeper than documents are; there is nothing that could be stored of it.
        parse_value(json, NESTING_MAX).map_err(|error| ScriptError::Json { message: error.to_string() })
    };
    let rows = entries.iter().map(|row| Ok(vec![parse(&row.key_json)?, parse(&row.value_json)?]));
    let mut rows = rows.collect::<std::result::Result<Vec<Vec<Value>>, ScriptError>>()?;
    let all_alike = rows.windows(2).all(|pair| matches!(pair, [one, other] if one.last() == other.last()));
    if !all_alike {
        rows.sort_by_cached_key(|row| {
            let mut key = Vec::new();
            row.last().into_iter().for_each(|value| write_raw_key(&mut key, value));
            key
        });
    }
    Ok(rows)
}

/// The rows of a document in a view, each a value for every column; none if the view does not have it.
fn rows(definition: &Definition, document: &Document<'_>, environment: &Environment) -> Vec<Vec<Value>> {
    match &definition.source {
        Source::Mango(index) => index.keys(document).into_iter().collect(),
        // What they emit comes from their engine.
        Source::Script(_) => Vec::new(),
        Source::Formulas { selection, columns } => {
            // A formula that fails on a document does not select it: one odd document must not stop a view.
            if !selection.selects(document, environment).unwrap_or(false) {
                return Vec::new();
            }
            let mut rows = exploded(definition, values(columns, document, environment));
            rows.iter_mut().for_each(|row| mark_uncategorized(definition, row));
            rows
        }
    }
}

/// What formulas come to for a document.
pub(super) fn values(formulas: &[Formula], document: &Document<'_>, environment: &Environment) -> Vec<Value> {
    let value = |formula: &Formula| {
        let value = formula.evaluate(document, environment);
        value.map_or(Value::Null, |value| value.to_json())
    };
    formulas.iter().map(value).collect()
}

/// A row for each combination of elements of lists in category columns.
pub(super) fn exploded(definition: &Definition, row: Vec<Value>) -> Vec<Vec<Value>> {
    let mut rows = vec![row];
    // In the order in which they are shown, so that a document has the same rows in whichever order they are read.
    for column in definition.shown() {
        let is_list = |row: &Vec<Value>| matches!(row.get(column), Some(Value::Array(_)));
        let category = definition.columns.get(column).is_some_and(|column| column.category);
        if category && rows.iter().any(is_list) {
            rows = rows.into_iter().flat_map(|row| explode(row, column)).take(MAX_ENTRIES).collect();
        }
    }
    rows
}

/// What has no value in a category column is all in one category, that of null.
pub(super) fn mark_uncategorized(definition: &Definition, row: &mut [Value]) {
    for (value, _) in row.iter_mut().zip(&definition.columns).filter(|(_, column)| column.category) {
        let is_empty = match value {
            Value::String(text) => text.is_empty(),
            Value::Array(elements) => elements.is_empty(),
            _ => false,
        };
        if is_empty {
            *value = Value::Null;
        }
    }
}

/// A row for each element of a list in a category column.
fn explode(mut row: Vec<Value>, column: usize) -> Vec<Vec<Value>> {
    let elements = match row.get_mut(column).map(Value::take) {
        Some(Value::Array(elements)) if !elements.is_empty() => elements,
        Some(other) => vec![other],
        None => return vec![row],
    };
    elements
        .into_iter()
        .map(|element| {
            let mut row = row.clone();
            if let Some(place) = row.get_mut(column) {
                *place = element;
            }
            row
        })
        .collect()
}
