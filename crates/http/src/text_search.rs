//! Questions to indexes of words: CouchDB's `_nouveau` of design documents, and `_fulltext` of a database.

use std::ops::Bound;

use http::{Response, StatusCode};
use scrinium_views::fulltext::{Fragment, Sort, SortKey, Total};
use scrinium_views::{FacetRange, Facets, Reading, TextAnswer, TextHit, TextSearch, TextTarget, analyzed};
use serde_json::{Map, Value, json};

use crate::body::RequestBody;
use crate::context::Context;
use crate::error::{HttpError, Result};
use crate::query::{Given, members};
use crate::response::{self, Body};

/// Hits without `limit`, as in CouchDB.
const LIMIT: usize = 25;
/// Values of a field that are shown without `top_n`, as in CouchDB, and at most.
const TOP: usize = 10;
const TOP_MAX: u64 = 1000;
/// Fields that results are sorted by.
const SORTS_MAX: usize = 8;

/// `GET` and `POST /{db}/_design/{ddoc}/_nouveau/{textindex}`.
pub(crate) async fn of_design(context: &Context, body: Option<&mut RequestBody>) -> Result<Response<Body>> {
    ask(context, target(context)?, body).await
}

/// `GET` and `POST /{db}/_fulltext`.
pub(crate) async fn of_documents(
    context: &Context,
    body: Option<&mut RequestBody>,
) -> Result<Response<Body>> {
    ask(context, TextTarget::Documents, body).await
}

/// `GET /{db}/_design/{ddoc}/_nouveau_info/{textindex}`.
pub(crate) async fn design_info(context: &Context) -> Result<Response<Body>> {
    info(context, target(context)?).await
}

/// `GET /{db}/_fulltext_info`.
pub(crate) async fn documents_info(context: &Context) -> Result<Response<Body>> {
    info(context, TextTarget::Documents).await
}

/// `POST /_nouveau_analyze`: what an analyzer makes of a text.
pub(crate) async fn analyze(context: &Context, body: &mut RequestBody) -> Result<Response<Body>> {
    context.require_json()?;
    let asked: Map<String, Value> = body.json().await?;
    let member = |name: &str| {
        let text = asked.get(name).and_then(Value::as_str);
        text.map(str::to_owned).ok_or_else(|| HttpError::bad_request(format!("`{name}` must be a text.")))
    };
    let (analyzer, text) = (member("analyzer")?, member("text")?);
    let tokens = context
        .state
        .run(move || {
            analyzed(&analyzer, &text).ok_or_else(|| {
                HttpError::bad_request(format!(
                    "There is no analyzer {analyzer:.60}: name one of Lucene's, such as standard."
                ))
            })
        })
        .await?;
    Ok(response::json_value(StatusCode::OK, &json!({"tokens": tokens})))
}

async fn info(context: &Context, target: TextTarget) -> Result<Response<Body>> {
    let info = context.with_database(move |database| Ok(database.text_info(&target)?)).await?;
    Ok(response::json_value(StatusCode::OK, &info))
}

fn target(context: &Context) -> Result<TextTarget> {
    let value = |name| context.address.value(name).map(str::to_owned);
    Ok(TextTarget::Design { design: value("ddoc")?, index: value("textindex")? })
}

async fn ask(
    context: &Context,
    target: TextTarget,
    body: Option<&mut RequestBody>,
) -> Result<Response<Body>> {
    let sent = match body {
        Some(body) => {
            context.require_json()?;
            Some(body.object_or_nothing().await?)
        }
        None => None,
    };
    let parameters = sent.iter().flat_map(members).chain(context.query.iter());
    let asked = parse(parameters)?;
    let answer = context
        .with_views(move |database, reached| match database.begin_text(&target, &asked, reached)? {
            Reading::Ready(answer) => Ok(Reading::Ready(shown(answer)?)),
            Reading::Behind(update) => Ok(Reading::Behind(update)),
        })
        .await?;
    Ok(response::json_value(StatusCode::OK, &answer))
}

fn parse<'a>(parameters: impl Iterator<Item = (&'a str, Given<'a>)>) -> Result<TextSearch> {
    let mut query = None;
    let mut search = TextSearch {
        query: String::new(),
        wants_all: false,
        sort: vec![Sort::Relevance],
        limit: LIMIT,
        bookmark: None,
        includes_documents: false,
        with_snippets: false,
        counts_all: false,
        update: true,
        facets: Facets { top: TOP, ..Facets::default() },
    };
    for (name, value) in parameters {
        match name {
            "q" | "query" => query = Some(value.text().into_owned()),
            "limit" => search.limit = usize::try_from(value.count()?).unwrap_or(usize::MAX),
            "sort" => search.sort = parse_sort(&lenient(value)?)?,
            "bookmark" => {
                search.bookmark = Some(value.text().into_owned())
                    .filter(|text| !matches!(text.as_str(), "" | "nil" | "null"));
            }
            "include_docs" => search.includes_documents = value.boolean()?,
            "snippets" => search.with_snippets = value.boolean()?,
            "exact_total" => search.counts_all = value.boolean()?,
            "all_words" => search.wants_all = value.boolean()?,
            "update" => search.update = value.boolean()?,
            "counts" => search.facets.counts = parse_counts(&value.json()?)?,
            "ranges" => search.facets.ranges = parse_ranges(&value.json()?)?,
            "top_n" => search.facets.top = usize::try_from(value.count()?.min(TOP_MAX)).unwrap_or(TOP),
            _ => {}
        }
    }
    search.query =
        query.ok_or_else(|| HttpError::bad_request("`q` is missing: the words that are looked for."))?;
    Ok(search)
}

/// JSON, or a text as it stands.
fn lenient(value: Given<'_>) -> Result<Value> {
    match value {
        Given::Text(text) => Ok(serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))),
        Given::Json(_) => value.json(),
    }
}

/// `"-date<double>"`, or several of these.
fn parse_sort(value: &Value) -> Result<Vec<Sort>> {
    let refused = || {
        HttpError::bad_request(format!(
            "`sort` must be the name of a field, with `-` before it for descending, or a list of at most {SORTS_MAX}."
        ))
    };
    let one = |value: &Value| {
        let text = value.as_str().ok_or_else(refused)?;
        let (name, is_descending) = match text.strip_prefix('-') {
            Some(name) => (name, true),
            None => (text, false),
        };
        let name = name.split_once('<').map_or(name, |(name, _)| name);
        Ok(match name {
            "" => return Err(refused()),
            "relevance" => Sort::Relevance,
            name => Sort::Field { name: name.to_owned(), is_descending },
        })
    };
    match value {
        Value::Null => Ok(vec![Sort::Relevance]),
        Value::Array(values) if values.len() <= SORTS_MAX => values.iter().map(one).collect(),
        Value::Array(_) => Err(refused()),
        value => Ok(vec![one(value)?]),
    }
}

fn parse_counts(value: &Value) -> Result<Vec<String>> {
    let refused = || HttpError::bad_request("`counts` must be a list of names of fields.");
    let names = value.as_array().ok_or_else(refused)?;
    names.iter().map(|name| name.as_str().map(str::to_owned).ok_or_else(refused)).collect()
}

fn parse_ranges(value: &Value) -> Result<Vec<(String, Vec<FacetRange>)>> {
    let refused = || {
        HttpError::bad_request(
            "`ranges` must be an object of lists: {\"price\": [{\"label\": \"cheap\", \"min\": 0, \"max\": 10}]}.",
        )
    };
    let fields = value.as_object().ok_or_else(refused)?;
    let range = |value: &Value| {
        let label = value.get("label").and_then(Value::as_str).ok_or_else(refused)?.to_owned();
        let bound = |end: &str, inclusive: &str| match value.get(end) {
            None | Some(Value::Null) => Ok::<Bound<f64>, HttpError>(Bound::Unbounded),
            Some(number) => {
                let number = number.as_f64().ok_or_else(refused)?;
                let is_inclusive = value.get(inclusive).is_none_or(|is| is == &Value::Bool(true));
                Ok(if is_inclusive { Bound::Included(number) } else { Bound::Excluded(number) })
            }
        };
        Ok(FacetRange { label, from: bound("min", "min_inclusive")?, to: bound("max", "max_inclusive")? })
    };
    let field = |(name, ranges): (&String, &Value)| {
        let ranges = ranges.as_array().ok_or_else(refused)?;
        Ok((name.clone(), ranges.iter().map(range).collect::<Result<Vec<FacetRange>>>()?))
    };
    fields.iter().map(field).collect()
}

/// As CouchDB answers.
fn shown(answer: TextAnswer) -> Result<Value> {
    let (relation, total) = match answer.total {
        Total::Exactly(total) => ("EQUAL_TO", total),
        Total::AtLeast(total) => ("GREATER_THAN_OR_EQUAL_TO", total),
    };
    let hits = answer.hits.into_iter().map(shown_hit).collect::<Result<Vec<Value>>>()?;
    Ok(json!({
        "total_hits_relation": relation,
        "total_hits": total,
        "update_seq": answer.reached,
        "bookmark": answer.bookmark,
        "hits": hits,
        "counts": answer.counts,
        "ranges": answer.ranges,
    }))
}

fn shown_hit(hit: TextHit) -> Result<Value> {
    let TextHit { id, score, keys, fields, document, snippet } = hit;
    let score = score.map(|score| json!({"@type": "float", "value": score}));
    let keys = keys.iter().map(|key| match key {
        None => Value::Null,
        Some(key @ SortKey::Number(_)) => json!({"@type": "double", "value": key.as_number()}),
        Some(key @ SortKey::Text(_)) => json!({"@type": "string", "value": key.as_text()}),
    });
    let order: Vec<Value> =
        score.into_iter().chain(keys).chain([json!({"@type": "string", "value": id})]).collect();
    let mut shown = Map::new();
    shown.insert("order".to_owned(), Value::from(order));
    shown.insert("id".to_owned(), Value::from(id));
    shown.insert("fields".to_owned(), Value::Object(fields));
    if let Some(document) = document {
        let document = serde_json::from_str(document.as_str()).map_err(|_| HttpError::invalid_json())?;
        shown.insert("doc".to_owned(), document);
    }
    if !snippet.is_empty() {
        let fragment = |fragment: Fragment| json!({"text": fragment.text, "match": fragment.is_match});
        shown.insert("snippet".to_owned(), snippet.into_iter().map(fragment).collect());
    }
    Ok(Value::Object(shown))
}
