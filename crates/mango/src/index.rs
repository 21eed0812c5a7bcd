//! Definitions of indexes: as clients ask for them, as design documents have them, and the keys that they give.

mod design;

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use crate::document::{Document, lookup};
use crate::error::{MangoError, shown};
use crate::name::{Named, automatic_name};
use crate::path::PathFinding;
use crate::request::Request;
use crate::selector::{Selector, check_nesting};
use crate::sort::{SortField, parse_members, parse_sort, to_array, to_members};

/// What the id of every design document begins with.
const DESIGN: &str = "_design/";

/// An index of type `json`: the documents that have all its fields, in the order of their values.
///
/// As in CouchDB the direction given with the fields is kept and shown but does not matter: the index ascends, and
/// a query that sorts the other way reads it backward.
#[derive(Clone, Debug)]
pub struct IndexDefinition {
    design: String,
    name: String,
    fields: Vec<SortField>,
    filter: Option<Filter>,
    partitioned: Option<bool>,
    /// As the client sent it, which the design document keeps with the normal form.
    sent: Value,
}

/// Which documents a partial index has.
#[derive(Clone, Debug)]
struct Filter {
    /// `partial_filter_selector`, or `selector` in design documents of old.
    member: &'static str,
    selector: Selector,
    /// As the design document has it.
    json: Value,
}

impl IndexDefinition {
    /// Reads the body of `POST /{db}/_index`.
    ///
    /// An index without a name, or without a design document, is given the name that CouchDB 3.4 gives it.
    ///
    /// # Errors
    /// What CouchDB refuses; also `type` `text` and `nouveau`, for which there is no service, as CouchDB answers
    /// without one, and `partitioned` `true`, since no database here has partitions.
    pub fn parse(body: &Value) -> Result<Self, MangoError> {
        let mut request = Request::new(body)?;
        let definition = request.required("index")?;
        let index_type = request.text("type")?.unwrap_or("json");
        let name = not_empty(request.text("name")?)?;
        let design = not_empty(request.text("ddoc")?)?;
        let quorum = request.positive("w", 2)?;
        let partitioned = match request.take("partitioned") {
            None => None,
            Some(Value::Bool(partitioned)) => Some(*partitioned),
            Some(other) => return Err(MangoError::InvalidBoolean(shown(other))),
        };
        request.finish()?;
        check_type(index_type)?;
        if partitioned == Some(true) {
            return Err(MangoError::NotPartitioned("An index cannot be partitioned: the database is not."));
        }
        let (fields, filter) = parse_definition(definition)?;
        let automatic = || automatic_name(definition, &Named { design, name, partitioned, quorum });
        Ok(Self {
            design: design
                .map_or_else(|| design_id(&automatic()).into_owned(), |id| design_id(id).into_owned()),
            name: name.map_or_else(automatic, str::to_owned),
            fields,
            filter,
            partitioned,
            sent: definition.clone(),
        })
    }

    /// Reads a view of a design document whose language is `query`.
    ///
    /// # Errors
    /// [`MangoError::InvalidIndex`] if it is no index, and what is wrong with its fields or its filter.
    pub fn from_view(design: &str, name: &str, view: &Value) -> Result<Self, MangoError> {
        check_nesting(view)?;
        let member = |name: &str| view.get(name).and_then(Value::as_object);
        let no_index =
            |what: &str| MangoError::InvalidIndex(format!("View {name} has no {what} of an index."));
        let map = member("map").ok_or_else(|| no_index("map"))?;
        let fields = map.get("fields").and_then(Value::as_object).ok_or_else(|| no_index("fields"))?;
        let options = member("options").ok_or_else(|| no_index("options"))?;
        let fields = parse_members(fields)?;
        let sent = options.get("def").cloned();
        let sent = sent.unwrap_or_else(|| json!({ "fields": to_array(&fields) }));
        let filter = Filter::of_view(map)?;
        Ok(Self {
            design: design_id(design).into_owned(),
            name: name.to_owned(),
            fields,
            filter,
            partitioned: None,
            sent,
        })
    }

    /// The id of the design document, with `_design/`.
    #[must_use]
    pub fn design(&self) -> &str {
        &self.design
    }

    /// The name of the index in its design document.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The fields whose values make the key, in order.
    #[must_use]
    pub fn fields(&self) -> &[SortField] {
        &self.fields
    }

    /// Which documents a partial index has; none if it has all.
    #[must_use]
    pub fn partial_filter(&self) -> Option<&Selector> {
        self.filter.as_ref().map(|filter| &filter.selector)
    }

    /// The document's key: the value of each field. None if it lacks one, if a partial index leaves it out, and if
    /// it is a design document.
    #[must_use]
    pub fn keys(&self, document: &dyn Document) -> Option<Vec<Value>> {
        let is_design =
            document.field("_id").is_some_and(|id| id.as_str().is_some_and(|id| id.starts_with(DESIGN)));
        if is_design || self.partial_filter().is_some_and(|filter| !filter.matches(document)) {
            return None;
        }
        let value = |field: &SortField| match lookup(document, &field.path) {
            PathFinding::Value(value) => Some(value.into_owned()),
            PathFinding::Missing | PathFinding::Unreachable => None,
        };
        self.fields.iter().map(value).collect()
    }

    /// As `GET /{db}/_index` and `_explain` show it.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut definition = Map::new();
        definition.insert("fields".to_owned(), to_array(&self.fields));
        if let Some(filter) = &self.filter {
            definition.insert(filter.member.to_owned(), filter.json.clone());
        }
        json!({
            "ddoc": self.design,
            "name": self.name,
            "type": "json",
            "partitioned": false,
            "def": definition,
        })
    }

    /// As the design document has it, below its name in `views`.
    #[must_use]
    pub fn view(&self) -> Value {
        let mut map = Map::new();
        map.insert("fields".to_owned(), to_members(&self.fields));
        match &self.filter {
            Some(filter) => map.insert(filter.member.to_owned(), filter.json.clone()),
            None => map.insert("partial_filter_selector".to_owned(), json!({})),
        };
        json!({ "map": map, "reduce": "_count", "options": { "def": self.sent } })
    }

    pub(crate) fn has_column(&self, name: &str) -> bool {
        self.fields.iter().any(|field| field.path.text() == name)
    }
}

/// The index of all documents by their ids, which every database has, as [`IndexDefinition::to_json`] shows others.
#[must_use]
pub fn all_documents_to_json() -> Value {
    json!({
        "ddoc": null,
        "name": "_all_docs",
        "type": "special",
        "def": { "fields": [{ "_id": "asc" }] },
    })
}

/// The id of a design document that may be named without `_design/`.
#[must_use]
pub fn design_id(name: &str) -> Cow<'_, str> {
    if name.starts_with(DESIGN) { Cow::Borrowed(name) } else { Cow::Owned(format!("{DESIGN}{name}")) }
}

impl Filter {
    fn of_view(map: &Map<String, Value>) -> Result<Option<Self>, MangoError> {
        let of = |member: &'static str| map.get(member).map(|selector| (member, selector));
        match of("partial_filter_selector").or_else(|| of("selector")) {
            Some((member, json)) => {
                let selector = Selector::parse(json)?;
                Ok((!selector.is_empty()).then(|| Self { member, selector, json: json.clone() }))
            }
            None => Ok(None),
        }
    }
}

fn parse_definition(definition: &Value) -> Result<(Vec<SortField>, Option<Filter>), MangoError> {
    if !definition.is_object() {
        let reason = format!("JSON indexes must be an object, not: {}", shown(definition));
        return Err(MangoError::InvalidIndex(reason));
    }
    let mut members = Request::new(definition)?;
    let fields = parse_sort(members.required("fields")?)?;
    let selector = members.take("partial_filter_selector").map(Selector::parse).transpose()?;
    members.finish()?;
    let Some(selector) = selector.filter(|selector| !selector.is_empty()) else { return Ok((fields, None)) };
    let json = selector.to_json();
    // The design document is read again, and the normal form may be nested deeper than what was sent.
    check_nesting(&json!({ "map": { "partial_filter_selector": json } }))?;
    Ok((fields, Some(Filter { member: "partial_filter_selector", selector, json })))
}

fn check_type(index_type: &str) -> Result<(), MangoError> {
    match index_type {
        "json" => Ok(()),
        "text" => Err(MangoError::ServiceUnavailable("text")),
        "nouveau" => Err(MangoError::ServiceUnavailable("nouveau")),
        other => Err(MangoError::InvalidIndex(format!("Invalid type for index: {other}"))),
    }
}

/// A design document and a view need names.
fn not_empty(name: Option<&str>) -> Result<Option<&str>, MangoError> {
    match name {
        Some("") => Err(MangoError::InvalidString("\"\"".to_owned())),
        name => Ok(name),
    }
}
