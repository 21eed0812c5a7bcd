//! What lets changes pass: a Mango selector, a filter function, or a view. And update functions, which are found in the same
//! way. All of them are run for one reader, with documents that this reader may read.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use scrinium_database::access::readable::ReadableLeaf;
use scrinium_database::read::Renderer;
use scrinium_database::{Access, ChangesFilter, Database, DatabaseError, ReadOptions, Result};
use scrinium_document::DESIGN_PREFIX;
use scrinium_document::json::{JsonText, stored_value};
use scrinium_formula::{Environment, Formula};
use scrinium_javascript::{DesignFunction, MapEngine, ScriptError, UpdateAnswer};
use scrinium_mango::{IndexDefinition, Selector};
use serde_json::Value;

use crate::definition::Source;
use crate::design::parse_stored;
use crate::document::Document;
use crate::environment::environment;
use crate::error::{OrDatabaseError as _, script_error};
use crate::open::OpenDatabase;

/// A filter that lets documents pass which match a selector.
#[must_use]
pub fn selector_filter(selector: Selector) -> Arc<dyn ChangesFilter> {
    Arc::new(SelectorFilter(selector))
}

#[derive(Debug)]
struct SelectorFilter(Selector);

impl ChangesFilter for SelectorFilter {
    fn lets_pass(&self, database: &Database, leaf: ReadableLeaf<'_>) -> Result<bool> {
        let document = Document::new(database, leaf)?;
        let matches = self.0.matches(&document);
        document.check()?;
        Ok(matches)
    }
}

/// A function of `filters` in a design document, for one request.
struct FunctionFilter {
    /// `design/name`, for those who read an error.
    name: String,
    function: Mutex<DesignFunction>,
    request: String,
}

impl fmt::Debug for FunctionFilter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("FunctionFilter").field(&self.name).finish()
    }
}

impl ChangesFilter for FunctionFilter {
    /// A function that fails on a document ends the feed: nobody knows whether the document was wanted.
    fn lets_pass(&self, database: &Database, leaf: ReadableLeaf<'_>) -> Result<bool> {
        let text = text_of(database, &leaf)?;
        let mut function = self.function.lock();
        let passes = function.lets_pass(text.as_str(), &self.request);
        for line in function.take_log() {
            tracing::debug!(database = database.name(), filter = self.name, line, "a filter function says");
        }
        passes.map_err(|error| failed(&format!("filter `{}`, document `{}`", self.name, leaf.id()), &error))
    }
}

/// A view: what it has an entry of passes.
enum ViewFilter {
    Script(Box<Mutex<MapEngine>>),
    /// Responses that such a view shows for their topic's sake do not pass for it.
    Formula(Box<Formula>, Box<Environment>),
    Mango(Arc<IndexDefinition>),
}

impl fmt::Debug for ViewFilter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ViewFilter")
    }
}

impl ChangesFilter for ViewFilter {
    fn lets_pass(&self, database: &Database, leaf: ReadableLeaf<'_>) -> Result<bool> {
        if let Self::Script(engine) = self {
            let text = text_of(database, &leaf)?;
            // As in the view: a document that its function fails on is not in it.
            return match engine.lock().map(text.as_str()).or_database_error()?.pop() {
                Some(Err(error @ (ScriptError::Unavailable { .. } | ScriptError::SwitchedOff { .. }))) => {
                    Err(script_error(&error))
                }
                mapped => Ok(mapped.is_some_and(|mapped| mapped.is_ok_and(|entries| !entries.is_empty()))),
            };
        }
        let document = Document::new(database, leaf)?;
        let passes = match self {
            Self::Formula(selection, environment) => {
                selection.selects(&document, environment).unwrap_or(false)
            }
            Self::Mango(index) => index.keys(&document).is_some(),
            Self::Script(_) => false,
        };
        document.check()?;
        Ok(passes)
    }
}

/// An update function of a design document.
pub struct UpdateFunction {
    name: String,
    function: DesignFunction,
}

impl UpdateFunction {
    /// What it makes of a document, or of `null`, for a request; both are JSON.
    ///
    /// # Errors
    /// [`DatabaseError::Forbidden`] and [`DatabaseError::Unauthorized`] where it refuses the request; what it threw, or why
    /// it was stopped.
    pub fn answer(&mut self, document_json: &str, request_json: &str) -> Result<String> {
        match self.function.update(document_json, request_json) {
            Ok(UpdateAnswer::Given { json }) => Ok(json),
            Ok(UpdateAnswer::Forbidden { reason }) => Err(DatabaseError::Forbidden { reason }),
            Ok(UpdateAnswer::Unauthorized { reason }) => Err(DatabaseError::Unauthorized { reason }),
            Err(error) => Err(failed(&format!("update function `{}`", self.name), &error)),
        }
    }
}

impl OpenDatabase {
    /// The filter function `name` of a design document that the one who asks may read. `request` is what it is given, as
    /// JSON.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`] if there is none.
    pub fn function_filter(
        &self,
        design: &str,
        name: &str,
        request: String,
        access: &Access,
    ) -> Result<Arc<dyn ChangesFilter>> {
        let function = Mutex::new(self.design_function("filters", design, name, access)?);
        Ok(Arc::new(FunctionFilter { name: format!("{design}/{name}"), function, request }))
    }

    /// The update function `name` of a design document that the one who asks may read.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`] if there is none.
    pub fn update_function(&self, design: &str, name: &str, access: &Access) -> Result<UpdateFunction> {
        let function = self.design_function("updates", design, name, access)?;
        Ok(UpdateFunction { name: format!("{design}/{name}"), function })
    }

    /// The view `name` of a design document that the one who asks may read, as a filter.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`] if there is none.
    pub fn view_filter(&self, design: &str, name: &str, access: &Access) -> Result<Arc<dyn ChangesFilter>> {
        let json = self.read(&format!("{DESIGN_PREFIX}{design}"), &ReadOptions::default(), access)?.json;
        let parsed = stored_value(json.as_str()).unwrap_or_default();
        let views = parse_stored(&parsed)?;
        let view = views.into_iter().find(|view| view.name == name);
        let view = view.ok_or_else(|| DatabaseError::NotFound { reason: "missing_named_view".to_owned() })?;
        Ok(Arc::new(match view.source {
            Source::Script(script) => {
                let modules = script.library.as_ref().map(|library| &library.modules);
                let scripts = &self.server.scripts;
                let engine = MapEngine::new(scripts, self.uuid(), &[script.map.as_str()], modules);
                ViewFilter::Script(Box::new(Mutex::new(engine)))
            }
            Source::Formulas { selection, .. } => {
                ViewFilter::Formula(Box::new(selection), Box::new(environment(self)))
            }
            Source::Mango(index) => ViewFilter::Mango(index),
        }))
    }

    fn design_function(
        &self,
        kind: &str,
        design: &str,
        name: &str,
        access: &Access,
    ) -> Result<DesignFunction> {
        let json = self.read(&format!("{DESIGN_PREFIX}{design}"), &ReadOptions::default(), access)?.json;
        let parsed = stored_value(json.as_str()).unwrap_or_default();
        if !matches!(parsed.get("language").and_then(Value::as_str), None | Some("javascript")) {
            let reason = format!("`{kind}` are JavaScript; `{DESIGN_PREFIX}{design}` is in another language");
            return Err(DatabaseError::NotFound { reason });
        }
        let functions = parsed.get(kind).and_then(Value::as_object);
        let source = functions.and_then(|functions| functions.get(name)).and_then(Value::as_str);
        // As CouchDB says it.
        let missing = || {
            let key = if functions.is_none() { kind } else { name };
            DatabaseError::NotFound { reason: format!("missing json key: {key}") }
        };
        let source = source.ok_or_else(missing)?;
        Ok(DesignFunction::new(&self.server.scripts, self.uuid(), source, json.as_str()))
    }
}

/// A document as functions get it.
fn text_of(database: &Database, leaf: &ReadableLeaf<'_>) -> Result<JsonText> {
    Ok(Renderer::new(database, &ReadOptions::default()).render(leaf, None)?.json)
}

/// A function that failed, with its name and what it failed on.
fn failed(place: &str, error: &ScriptError) -> DatabaseError {
    match script_error(error) {
        DatabaseError::Invalid { input, reason } => {
            DatabaseError::Invalid { input, reason: format!("{place}: {reason}") }
        }
        unavailable => unavailable,
    }
}
