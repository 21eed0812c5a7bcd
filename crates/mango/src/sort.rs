//! The syntax that `sort` and the fields of an index share.

use serde_json::{Map, Value};

use crate::error::{MangoError, shown};
use crate::path::FieldPath;

/// Which way values go.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Direction {
    /// From the lowest on.
    #[default]
    Ascending,
    /// From the highest on.
    Descending,
}

/// A field and the direction given with it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SortField {
    /// The field.
    pub path: FieldPath,
    /// The direction; all fields of a sort have one.
    pub direction: Direction,
}

impl Direction {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "asc" => Some(Self::Ascending),
            "desc" => Some(Self::Descending),
            _ => None,
        }
    }

    /// `asc` or `desc`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ascending => "asc",
            Self::Descending => "desc",
        }
    }
}

/// The most fields of a sort, of an index, and of a result.
pub const MAX_FIELDS: usize = 1000;

pub(crate) fn check_count(fields: usize) -> Result<(), MangoError> {
    if fields > MAX_FIELDS {
        return Err(MangoError::TooMany {
            what: "fields; name the objects that they lie in.",
            limit: MAX_FIELDS,
        });
    }
    Ok(())
}

/// Reads an array of names and of objects of one name and direction. A field that comes again is left out.
pub(crate) fn parse_sort(sort: &Value) -> Result<Vec<SortField>, MangoError> {
    let Value::Array(elements) = sort else { return Err(MangoError::InvalidSort(shown(sort))) };
    check_count(elements.len())?;
    let fields = elements.iter().map(parse_field).collect::<Result<Vec<_>, _>>()?;
    let mut distinct: Vec<SortField> = Vec::with_capacity(fields.len());
    for field in fields {
        if distinct.first().is_some_and(|first| first.direction != field.direction) {
            return Err(MangoError::MixedSort);
        }
        if distinct.iter().all(|known| known.path.text() != field.path.text()) {
            distinct.push(field);
        }
    }
    Ok(distinct)
}

fn parse_field(element: &Value) -> Result<SortField, MangoError> {
    let (name, direction) = match element {
        Value::String(name) => (name, Some(Direction::Ascending)),
        Value::Object(members) if members.len() == 1 => match members.iter().next() {
            Some((name, Value::String(direction))) => (name, Direction::parse(direction)),
            _ => return Err(MangoError::InvalidSortField(shown(element))),
        },
        other => return Err(MangoError::InvalidSortField(shown(other))),
    };
    match direction {
        Some(direction) if !name.is_empty() => Ok(SortField { path: FieldPath::parse(name)?, direction }),
        _ => Err(MangoError::InvalidSortField(shown(element))),
    }
}

/// Reads fields as a design document has them: an object of names and directions.
pub(crate) fn parse_members(members: &Map<String, Value>) -> Result<Vec<SortField>, MangoError> {
    check_count(members.len())?;
    let field = |(name, direction): (&String, &Value)| {
        let refused = || MangoError::InvalidSortField(shown(direction));
        let direction = direction.as_str().and_then(Direction::parse).ok_or_else(refused)?;
        Ok(SortField { path: FieldPath::parse(name)?, direction })
    };
    members.iter().map(field).collect()
}

/// As an object of names and directions.
pub(crate) fn to_members(fields: &[SortField]) -> Value {
    let member = |field: &SortField| (field.path.text().to_owned(), Value::from(field.direction.name()));
    Value::Object(fields.iter().map(member).collect())
}

/// As an array of objects of one name and direction each.
pub(crate) fn to_array(fields: &[SortField]) -> Value {
    fields.iter().map(|field| to_members(std::slice::from_ref(field))).collect()
}
