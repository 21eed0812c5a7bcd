//! Values from and to JSON, the form that documents have.

use serde_json::{Number, Value as Json};

use crate::number::shown;
use crate::value::{List, Text, Value};

impl Value {
    /// The value of a document's field.
    ///
    /// Texts, numbers and lists of them are taken as they are; true and false are 1 and 0; an empty list
    /// is the empty text; a list that mixes types becomes a list of texts. A date-time is a text here:
    /// functions and operators that ask for a time read it as one (see the crate's documentation).
    /// None for null, for an object, and for a list that contains either or another list.
    #[must_use]
    pub fn from_json(json: &Json) -> Option<Self> {
        match json {
            Json::Null | Json::Object(_) => None,
            Json::Bool(truth) => Some(Self::truth(*truth)),
            Json::Number(number) => number.as_f64().map(Self::number),
            Json::String(text) => Some(Self::text(text.as_str())),
            Json::Array(elements) => from_array(elements),
        }
    }

    /// The JSON that an index keeps: one element as itself, several as a list; whole numbers without a
    /// fraction; times as ISO 8601 texts, moments in UTC, which sort as they follow each other. An error
    /// is the object `{"error": "..."}`.
    #[must_use]
    pub fn to_json(&self) -> Json {
        fn list<T>(list: &List<T>, element: impl Fn(&T) -> Json) -> Json {
            list.single().map_or_else(|| Json::Array(list.iter().map(&element).collect()), &element)
        }
        match self {
            Self::Text(texts) => list(texts, |text| Json::String(text.to_string())),
            Self::Number(numbers) => list(numbers, |number| json_number(*number)),
            Self::Time(times) => list(times, |time| Json::String(time.to_string())),
            Self::Error(error) => serde_json::json!({ "error": error.to_string() }),
        }
    }
}

fn from_array(elements: &[Json]) -> Option<Value> {
    if elements.iter().any(|element| matches!(element, Json::Null | Json::Object(_) | Json::Array(_))) {
        return None;
    }
    if elements.iter().any(Json::is_string) {
        return Some(Value::texts(elements.iter().filter_map(as_text).collect()));
    }
    Some(Value::numbers(elements.iter().filter_map(as_number).collect()))
}

fn as_text(json: &Json) -> Option<Text> {
    json.as_str().map(Text::new).or_else(|| as_number(json).map(shown))
}

fn as_number(json: &Json) -> Option<f64> {
    json.as_bool().map(f64::from).or_else(|| json.as_f64())
}

/// Whole numbers up to this size are exact in both forms.
const LARGEST_WHOLE: f64 = 9_007_199_254_740_992.0;

fn json_number(number: f64) -> Json {
    if number.fract() == 0.0 && number.abs() <= LARGEST_WHOLE {
        #[allow(clippy::cast_possible_truncation, reason = "whole and within 53 bits")]
        return Json::Number(Number::from(number as i64));
    }
    Number::from_f64(number).map_or(Json::Null, Json::Number)
}
