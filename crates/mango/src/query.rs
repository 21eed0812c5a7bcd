//! The body of `_find` and `_explain`.

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::bookmark::Bookmark;
use crate::error::{MangoError, shown};
use crate::index::design_id;
use crate::projection::Projection;
use crate::request::Request;
use crate::selector::Selector;
use crate::sort::{Direction, SortField, parse_sort, to_members};

/// The operator that looks for words.
const TEXT: &str = "$text";
const AND: &str = "$and";

/// Results without `limit`.
const DEFAULT_LIMIT: u64 = 25;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Query {
    /// Which documents.
    pub selector: Selector,
    /// Words that are looked for, from `$text` at the top of the selector, which is none of its conditions then.
    pub text: Option<String>,
    /// At most this many; 25 if nothing is said.
    pub limit: u64,
    /// Without the first this many.
    pub skip: u64,
    /// In the order of these fields, all in one direction; documents that lack one are left out. Empty: in any order.
    pub sort: Vec<SortField>,
    /// What is answered of each.
    pub fields: Projection,
    /// The index that is wanted.
    pub use_index: Option<UseIndex>,
    /// Another index will do if that one cannot be used, and reading all documents if there is none.
    pub allow_fallback: bool,
    /// Where the page before ended.
    pub bookmark: Option<Bookmark>,
    /// With each document its conflicts.
    pub conflicts: bool,
    /// The index is brought up to date before it is read. `stale: "ok"` says no.
    pub update: bool,
    /// From the same shards every time; without meaning where there is one server. `stale: "ok"` says yes.
    pub stable: bool,
    /// With the answer what was read for it.
    pub execution_stats: bool,
    /// How many servers are asked; without meaning where there is one.
    pub read_quorum: u64,
    sent: Sent,
}

/// Options as they were sent, for `_explain`.
#[derive(Clone, Debug)]
struct Sent {
    bookmark: String,
    stale: bool,
    update: bool,
    stable: bool,
}

/// Takes `$text` out of a selector: from its top, and from a `$and` there.
fn take_text(selector: &Value) -> Result<(Option<String>, Cow<'_, Value>), MangoError> {
    let has_text = |value: &Value| value.as_object().is_some_and(|members| members.contains_key(TEXT));
    let in_and =
        |value: &Value| value.get(AND).and_then(Value::as_array).is_some_and(|all| all.iter().any(has_text));
    if !has_text(selector) && !in_and(selector) {
        return Ok((None, Cow::Borrowed(selector)));
    }
    let mut conditions = selector.clone();
    let mut words = Vec::new();
    let mut take = |value: &mut Value| {
        words.extend(value.as_object_mut().and_then(|members| members.shift_remove(TEXT)));
    };
    take(&mut conditions);
    let all = conditions.get_mut(AND).and_then(Value::as_array_mut);
    if let Some(all) = all {
        all.iter_mut().for_each(take);
        // What said nothing else says nothing now.
        all.retain(|value| value.as_object().is_none_or(|members| !members.is_empty()));
        if all.is_empty()
            && let Some(members) = conditions.as_object_mut()
        {
            members.shift_remove(AND);
        }
    }
    let mut texts = Vec::with_capacity(words.len());
    for value in &words {
        match value {
            Value::String(text) => texts.push(text.as_str()),
            other => return Err(MangoError::BadArgument { operator: TEXT, argument: shown(other) }),
        }
    }
    let text = match texts.as_slice() {
        [text] => (*text).to_owned(),
        texts => texts.iter().map(|text| format!("+({text})")).collect::<Vec<_>>().join(" "),
    };
    Ok((Some(text), Cow::Owned(conditions)))
}

/// How `use_index` names an index.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UseIndex {
    /// The id of the design document, with `_design/`.
    pub design: String,
    /// The index in it; none if any will do.
    pub name: Option<String>,
    /// As it was sent, one or two names.
    sent: Vec<String>,
}

impl Query {
    /// Reads the body of a request.
    ///
    /// # Errors
    /// What CouchDB refuses, of several mistakes the one that CouchDB finds first; `partition`, since no database
    /// here has any.
    pub fn parse(body: &Value) -> Result<Self, MangoError> {
        let mut request = Request::new(body)?;
        let (text, conditions) = take_text(request.required("selector")?)?;
        let selector = Selector::parse(&conditions)?;
        let use_index = request.take("use_index").map(UseIndex::parse).transpose()?.flatten();
        let bookmark = parse_bookmark(request.take("bookmark"))?;
        let limit = request.non_negative("limit", DEFAULT_LIMIT)?;
        let skip = request.non_negative("skip", 0)?;
        let sort = request.take("sort").map(parse_sort).transpose()?.unwrap_or_default();
        let fields = request.take("fields").map(Projection::parse).transpose()?.unwrap_or_default();
        check_partition(request.take("partition"))?;
        let read_quorum = request.positive("r", 1)?;
        let conflicts = request.boolean("conflicts", false)?;
        let stale = parse_stale(request.take("stale"))?;
        let update = request.boolean("update", true)?;
        let stable = request.boolean("stable", false)?;
        let execution_stats = request.boolean("execution_stats", false)?;
        let allow_fallback = request.boolean("allow_fallback", true)?;
        request.finish()?;
        Ok(Self {
            selector,
            text,
            limit,
            skip,
            sort,
            fields,
            use_index,
            allow_fallback,
            bookmark: Bookmark::decode(bookmark)?,
            conflicts,
            update: update && !stale,
            stable: stable || stale,
            execution_stats,
            read_quorum,
            sent: Sent { bookmark: bookmark.to_owned(), stale, update, stable },
        })
    }

    /// Which way the index is read.
    #[must_use]
    pub fn direction(&self) -> Direction {
        self.sort.first().map(|field| field.direction).unwrap_or_default()
    }

    pub(crate) fn sort_names(&self) -> Vec<&str> {
        self.sort.iter().map(|field| field.path.text()).collect()
    }

    /// The member `opts` of `_explain`.
    pub(crate) fn options_to_json(&self) -> Value {
        let bookmark = if self.sent.bookmark.is_empty() { "nil" } else { &self.sent.bookmark };
        json!({
            "use_index": self.use_index.as_ref().map(|index| index.sent.as_slice()).unwrap_or_default(),
            "bookmark": bookmark,
            "limit": self.limit,
            "skip": self.skip,
            "sort": to_members(&self.sort),
            "fields": self.fields.to_json(),
            "partition": "",
            "r": self.read_quorum,
            "conflicts": self.conflicts,
            "stale": if self.sent.stale { json!("ok") } else { json!(false) },
            "update": self.sent.update,
            "stable": self.sent.stable,
            "execution_stats": self.execution_stats,
            "allow_fallback": self.allow_fallback,
        })
    }
}

impl UseIndex {
    /// A text `design`, `design/name`, either with `_design/` before it; or an array of one or two texts.
    fn parse(value: &Value) -> Result<Option<Self>, MangoError> {
        let refused = || MangoError::InvalidIndexName(shown(value));
        let names: Vec<&str> = match value {
            Value::Null => Vec::new(),
            Value::String(text) => match text.split('/').collect::<Vec<_>>().as_slice() {
                ["_design", names @ ..] if !names.is_empty() => names.to_vec(),
                names => names.to_vec(),
            },
            Value::Array(names) => {
                names.iter().map(|name| name.as_str().ok_or_else(refused)).collect::<Result<_, _>>()?
            }
            _ => return Err(refused()),
        };
        let (design, name) = match names.as_slice() {
            [] => return Ok(None),
            [design] => (*design, None),
            [design, name] => (*design, Some((*name).to_owned())),
            _ => return Err(refused()),
        };
        let sent = names.iter().map(|name| (*name).to_owned()).collect();
        Ok(Some(Self { design: design_id(design).into_owned(), name, sent }))
    }

    /// As warnings and errors name it.
    pub(crate) fn shown(&self) -> String {
        match &self.name {
            Some(name) => format!("{}, {name}", self.design),
            None => self.design.clone(),
        }
    }
}

fn parse_bookmark(bookmark: Option<&Value>) -> Result<&str, MangoError> {
    match bookmark {
        None | Some(Value::Null) => Ok(""),
        Some(Value::String(text)) => Ok(text),
        Some(other) => Err(MangoError::InvalidBookmark(shown(other))),
    }
}

fn parse_stale(stale: Option<&Value>) -> Result<bool, MangoError> {
    match stale {
        None | Some(Value::Bool(false)) => Ok(false),
        Some(Value::String(text)) if text == "ok" => Ok(true),
        Some(Value::String(text)) if text == "false" => Ok(false),
        Some(other) => Err(MangoError::InvalidStale(shown(other))),
    }
}

fn check_partition(partition: Option<&Value>) -> Result<(), MangoError> {
    match partition {
        None => Ok(()),
        Some(Value::String(text)) if text.is_empty() => Ok(()),
        Some(_) => Err(MangoError::NotPartitioned("The database has no partitions to ask for.")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::take_text;

    #[test]
    fn words_are_no_condition_of_the_selector() {
        let taken = |selector| take_text(&selector).map(|(text, left)| (text, left.into_owned()));
        assert_eq!(taken(json!({"a": 1})), Ok((None, json!({"a": 1}))));
        assert_eq!(taken(json!({"$text": "x", "a": 1})), Ok((Some("x".to_owned()), json!({"a": 1}))));
        let both = json!({"$and": [{"$text": "x"}, {"$text": "y", "b": 2}]});
        assert_eq!(taken(both), Ok((Some("+(x) +(y)".to_owned()), json!({"$and": [{"b": 2}]}))));
        assert_eq!(taken(json!({"$and": [{"$text": "x"}]})), Ok((Some("x".to_owned()), json!({}))));
        assert!(taken(json!({"$text": 7})).is_err());
    }
}
