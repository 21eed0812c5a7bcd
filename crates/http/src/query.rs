//! Parameters, from the address or from a POST body, read as CouchDB reads them.

use std::borrow::Cow;

use scrinium_database::{Freshness, ReadOptions, RowQuery};
use serde_json::{Map, Value};

use crate::encoding::{decode, push_segment};
use crate::error::{HttpError, Result};
use crate::response::READ_AT_ONCE_BYTES;

/// More parameters than any client has; the rest of a longer query is refused.
const MOST_PARAMETERS: usize = 256;

/// The parameters of an address, decoded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// Reads what stands behind the `?`.
    ///
    /// # Errors
    /// 400 where it is not UTF-8 once decoded, or holds more than 256 parameters.
    pub(crate) fn parse(text: Option<&str>) -> Result<Self> {
        let mut parameters = Vec::new();
        for pair in text.unwrap_or("").split('&').filter(|pair| !pair.is_empty()) {
            if parameters.len() == MOST_PARAMETERS {
                return Err(HttpError::query_parse("Too many parameters."));
            }
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            parameters.push((decode(name)?.into_owned(), decode(value)?.into_owned()));
        }
        Ok(Self(parameters))
    }

    /// The value of the first parameter called `name`.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Whether `name=true` stands there; CouchDB takes every other value for no.
    pub(crate) fn is_true(&self, name: &str) -> bool {
        self.get(name) == Some("true")
    }

    /// The parameters as a query again.
    pub(crate) fn encoded(&self) -> String {
        let mut text = String::new();
        for (name, value) in &self.0 {
            if !text.is_empty() {
                text.push('&');
            }
            push_segment(&mut text, name);
            text.push('=');
            push_segment(&mut text, value);
        }
        text
    }

    /// All parameters in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, Given<'_>)> {
        self.0.iter().map(|(name, value)| (name.as_str(), Given::Text(value)))
    }
}

/// A parameter's value: text of the address, or JSON of a body.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Given<'a> {
    Text(&'a str),
    Json(&'a Value),
}

impl Given<'_> {
    /// A value that is JSON in the address too (`key="a"`).
    pub(crate) fn json(self) -> Result<Value> {
        match self {
            Self::Text(text) => serde_json::from_str(text).map_err(|_| HttpError::invalid_json()),
            Self::Json(value) => Ok(value.clone()),
        }
    }

    pub(crate) fn text(self) -> Cow<'static, str> {
        match self {
            Self::Text(text) => Cow::Owned(text.to_owned()),
            Self::Json(Value::String(text)) => Cow::Owned(text.clone()),
            Self::Json(other) => Cow::Owned(other.to_string()),
        }
    }

    pub(crate) fn boolean(self) -> Result<bool> {
        match self.text().as_ref() {
            "true" => Ok(true),
            "false" => Ok(false),
            other => Err(HttpError::query_parse(format!("Invalid boolean parameter: {}", quoted(other)))),
        }
    }

    /// A whole number not below zero. Numbers past 64 bits count as the largest.
    pub(crate) fn count(self) -> Result<u64> {
        let text = self.text();
        let digits = text.strip_prefix('-').unwrap_or(&text);
        let negative = digits.len() < text.len();
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(HttpError::query_parse(format!("Invalid value for integer: {}", quoted(&text))));
        }
        let value = digits.parse().unwrap_or(u64::MAX);
        if negative && value > 0 {
            let reason = format!("Invalid value for positive integer: {}", quoted(&text));
            return Err(HttpError::query_parse(reason));
        }
        Ok(value)
    }
}

fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}

/// What to read of `_all_docs` or a view: from the body's members first, then from the address, which wins.
pub(crate) fn row_query(query: &Query, body: Option<&Map<String, Value>>) -> Result<RowQuery> {
    read_row_query(body.into_iter().flat_map(members).chain(query.iter()))
}

/// One of several queries in a body, which has the address's parameters where it does not say otherwise.
pub(crate) fn row_query_of_several(query: &Query, one: &Map<String, Value>) -> Result<RowQuery> {
    read_row_query(query.iter().chain(members(one)))
}

pub(crate) fn members(members: &Map<String, Value>) -> impl Iterator<Item = (&str, Given<'_>)> {
    members.iter().map(|(name, value)| (name.as_str(), Given::Json(value)))
}

/// The last of two parameters of one name counts.
fn read_row_query<'a>(parameters: impl Iterator<Item = (&'a str, Given<'a>)>) -> Result<RowQuery> {
    let mut rows = RowQuery { piece_bytes: Some(READ_AT_ONCE_BYTES), ..RowQuery::default() };
    let (mut range_given, mut categories, mut group) = (false, None, None);
    for (name, value) in parameters {
        match name {
            "categories" => categories = Some(value.boolean()?),
            "group" => group = Some(value.boolean()?),
            "level" | "expand" | "collapse" => apply_to_categories(&mut rows, name, value)?,
            _ => range_given |= apply(&mut rows, name, value)?,
        }
    }
    match categories {
        None => {}
        Some(true) => drop(rows.categories.get_or_insert_default()),
        Some(false) => rows.categories = None,
    }
    rows.group = group == Some(true);
    if group == Some(false) && rows.group_level.is_some_and(|level| level > 0) {
        let reason = "Can't specify group=false and group_level>0 at the same time";
        return Err(HttpError::query_parse(reason));
    }
    if range_given && rows.keys.as_ref().is_some_and(|keys| !keys.is_empty()) {
        let reason = "`keys` is incompatible with `key`, `start_key` and `end_key`";
        return Err(HttpError::query_parse(reason));
    }
    Ok(rows)
}

/// Says which categories are expanded, which asks for categories as rows.
fn apply_to_categories(rows: &mut RowQuery, name: &str, value: Given<'_>) -> Result<()> {
    let categories = rows.categories.get_or_insert_default();
    if name == "level" {
        categories.level = Some(u32::try_from(value.count()?).unwrap_or(u32::MAX));
        return Ok(());
    }
    let Value::Array(keys) = value.json()? else {
        return Err(HttpError::bad_request(format!("`{name}` must be an array of categories' keys.")));
    };
    if name == "expand" {
        categories.expand = keys;
    } else {
        categories.collapse = keys;
    }
    Ok(())
}

/// Sets one parameter; true if it is a bound of the range of keys.
fn apply(rows: &mut RowQuery, name: &str, value: Given<'_>) -> Result<bool> {
    match name {
        "key" => {
            let key = value.json()?;
            rows.start_key = Some(key.clone());
            rows.end_key = Some(key);
            return Ok(true);
        }
        "startkey" | "start_key" => {
            rows.start_key = Some(value.json()?);
            return Ok(true);
        }
        "endkey" | "end_key" => {
            rows.end_key = Some(value.json()?);
            return Ok(true);
        }
        "startkey_docid" | "start_key_doc_id" => rows.start_id = Some(value.text().into_owned()),
        "endkey_docid" | "end_key_doc_id" => rows.end_id = Some(value.text().into_owned()),
        "keys" => match value.json()? {
            Value::Array(keys) => rows.keys = Some(keys),
            _ if matches!(value, Given::Text(_)) => {
                return Err(HttpError::query_parse("`keys` must be an array of strings."));
            }
            _ => return Err(HttpError::bad_request("`keys` body member must be an array.")),
        },
        "limit" => rows.limit = Some(value.count()?),
        "skip" | "start" => rows.skip = value.count()?,
        "find" => rows.find = Some(value.text().into_owned()),
        "at" => rows.at = Some(value.text().into_owned()),
        "next" => rows.next_page = value.boolean()?,
        "from" => rows.from = Some(value.text().into_owned()),
        "resort" => rows.resort = Some(value.text().into_owned()),
        "resort_order" => rows.resort_descending = Some(is_descending(&value.text())?),
        "descending" => rows.descending = value.boolean()?,
        "inclusive_end" => rows.inclusive_end = value.boolean()?,
        "include_docs" => rows.include_documents = value.boolean()?,
        "conflicts" => rows.conflicts = value.boolean()?,
        "attachments" => rows.attachments = value.boolean()?,
        "update_seq" => rows.update_sequence = value.boolean()?,
        "reduce" => rows.reduce = Some(value.boolean()?),
        "group_level" => {
            rows.group_level = Some(u32::try_from(value.count()?).unwrap_or(u32::MAX));
        }
        "update" | "stale" => rows.freshness = freshness(name, &value.text())?,
        "sorted" | "stable" | "att_encoding_info" => drop(value.boolean()?),
        _ => {}
    }
    Ok(false)
}

fn is_descending(order: &str) -> Result<bool> {
    match order {
        "asc" => Ok(false),
        "desc" => Ok(true),
        _ => Err(HttpError::query_parse("Invalid value for `resort_order`.")),
    }
}

fn freshness(name: &str, value: &str) -> Result<Freshness> {
    match (name, value) {
        ("update", "true") => Ok(Freshness::UpToDate),
        ("update", "false") | ("stale", "ok") => Ok(Freshness::AsItStands),
        ("update", "lazy") | ("stale", "update_after") => Ok(Freshness::UpToDateSoon),
        _ => Err(HttpError::query_parse(format!("Invalid value for `{name}`."))),
    }
}

/// What to say of a document besides its fields.
pub(crate) fn read_options(query: &Query) -> Result<ReadOptions> {
    let meta = query.is_true("meta");
    Ok(ReadOptions {
        revision: query.get("rev").map(str::to_owned),
        revisions: query.is_true("revs"),
        revisions_info: meta || query.is_true("revs_info"),
        conflicts: meta || query.is_true("conflicts"),
        deleted_conflicts: meta || query.is_true("deleted_conflicts"),
        local_sequence: query.is_true("local_seq"),
        latest: query.is_true("latest"),
        attachments: query.is_true("attachments"),
        attachments_since: query.get("atts_since").map(revision_list).transpose()?,
        encoding_info: query.is_true("att_encoding_info"),
    })
}

/// A JSON array of revisions, as `open_revs` and `atts_since` take it.
pub(crate) fn revision_list(text: &str) -> Result<Vec<String>> {
    serde_json::from_str(text).map_err(|_| HttpError::bad_request("invalid UTF-8 JSON"))
}

#[cfg(test)]
mod tests {
    use scrinium_database::CategoryQuery;

    use super::*;

    fn refused(text: &str) -> String {
        row_query(&Query::parse(Some(text)).unwrap(), None).unwrap_err().to_string()
    }

    #[test]
    fn parameters_are_read_with_couchdbs_words_for_bad_ones() {
        let query =
            Query::parse(Some("startkey=%22a+b%22&limit=99999999999999999999&descending=true")).unwrap();
        let rows = row_query(&query, None).unwrap();
        assert_eq!(rows.start_key, Some(Value::from("a b")));
        assert_eq!(rows.limit, Some(u64::MAX));
        assert!(rows.descending && rows.inclusive_end);
        assert_eq!(refused("limit=x"), "query_parse_error: Invalid value for integer: \"x\"");
        assert_eq!(refused("skip=-1"), "query_parse_error: Invalid value for positive integer: \"-1\"");
        assert_eq!(refused("descending=1"), "query_parse_error: Invalid boolean parameter: \"1\"");
        assert_eq!(refused("resort_order=up"), "query_parse_error: Invalid value for `resort_order`.");
        assert_eq!(refused("key=a"), "bad_request: invalid UTF-8 JSON");
        assert_eq!(refused("expand=%22a%22"), "bad_request: `expand` must be an array of categories' keys.");
        assert_eq!(refused("level=all"), "query_parse_error: Invalid value for integer: \"all\"");
    }

    #[test]
    fn what_is_expanded_asks_for_categories() {
        let asked = |text| row_query(&Query::parse(Some(text)).unwrap(), None).unwrap().categories;
        assert_eq!(asked("limit=1"), None);
        assert_eq!(asked("categories=true"), Some(CategoryQuery::default()));
        let level = CategoryQuery { level: Some(0), ..CategoryQuery::default() };
        assert_eq!(asked("level=0"), Some(level));
        assert_eq!(asked("categories=false&level=0"), None);
    }
}
