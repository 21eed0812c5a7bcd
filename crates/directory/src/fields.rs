//! Reading fields of a directory document, with errors that name the field.

use std::collections::HashSet;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde_json::{Map, Value};

use crate::DirectoryError;
use crate::names::fold_name;

/// A document's fields by name.
pub(crate) type Fields = Map<String, Value>;

/// Longest text of a name, address or member, in bytes.
pub(crate) const LONGEST_NAME: usize = 512;

/// The text of a field; `None` where it is absent, null or blank.
pub(crate) fn text(fields: &Fields, field: &'static str) -> Result<Option<String>, DirectoryError> {
    match fields.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(value)) => checked(field, value),
        Some(_) => Err(DirectoryError::Type { field, expected: "a text" }),
    }
}

/// The texts of a field that may be one text or a list, blanks left out.
pub(crate) fn texts(
    fields: &Fields,
    field: &'static str,
    limit: usize,
) -> Result<Vec<String>, DirectoryError> {
    let wrong = || DirectoryError::Type { field, expected: "a text or a list of texts" };
    let list = match fields.get(field) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::String(value)) => return Ok(checked(field, value)?.into_iter().collect()),
        Some(Value::Array(list)) => list,
        Some(_) => return Err(wrong()),
    };
    if list.len() > limit {
        return Err(DirectoryError::TooMany { field, count: list.len(), limit });
    }
    let mut values = Vec::with_capacity(list.len());
    for value in list {
        let value = value.as_str().ok_or_else(wrong)?;
        values.extend(checked(field, value)?);
    }
    Ok(values)
}

/// More addresses nobody has.
const MOST_ADDRESSES: usize = 64;

/// The Internet addresses of a field that may be one or a list, each once.
pub(crate) fn addresses(fields: &Fields, field: &'static str) -> Result<Vec<String>, DirectoryError> {
    let mut addresses = texts(fields, field, MOST_ADDRESSES)?;
    addresses.iter().try_for_each(|address| check_address(field, address))?;
    let mut seen = HashSet::new();
    addresses.retain(|address| seen.insert(fold_name(address)));
    Ok(addresses)
}

/// Whether a field says `true`.
pub(crate) fn flag(fields: &Fields, field: &'static str) -> Result<bool, DirectoryError> {
    match fields.get(field) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(value)) => Ok(*value),
        Some(_) => Err(DirectoryError::Type { field, expected: "true or false" }),
    }
}

/// The time of a field, in milliseconds since 1970: `2027-01-31T12:00:00Z` (RFC 3339), or `2027-01-31` for the beginning of that day
/// in UTC.
pub(crate) fn time_ms(fields: &Fields, field: &'static str) -> Result<Option<u64>, DirectoryError> {
    let Some(value) = text(fields, field)? else { return Ok(None) };
    let of_day = || value.parse::<Date>().ok()?.to_zoned(TimeZone::UTC).ok().map(|day| day.timestamp());
    let time = value.parse::<Timestamp>().ok().or_else(of_day);
    let time_ms = time.and_then(|time| u64::try_from(time.as_millisecond()).ok());
    time_ms.map(Some).ok_or_else(|| {
        refuse(field, &value, "a time is of the form 2027-01-31 or 2027-01-31T12:00:00Z, after 1970")
    })
}

fn checked(field: &'static str, value: &str) -> Result<Option<String>, DirectoryError> {
    let value = value.trim();
    if value.is_empty() {
        return Ok(None);
    }
    if value.len() > LONGEST_NAME {
        return Err(refuse(field, value, "it is longer than 512 bytes"));
    }
    if value.chars().any(char::is_control) {
        return Err(refuse(field, value, "it holds control characters"));
    }
    Ok(Some(value.to_owned()))
}

/// The error of a value that breaks `rule`, quoting no more of it than helps.
pub(crate) fn refuse(field: &'static str, value: &str, rule: &'static str) -> DirectoryError {
    const QUOTED: usize = 60;
    let shown: String = value.chars().take(QUOTED).collect();
    DirectoryError::Value { field, value: shown, rule }
}

/// Checks the id's prefix and fills in or checks the form.
pub(crate) fn check_identity(
    fields: &mut Fields,
    prefix: &'static str,
    form: &'static str,
) -> Result<String, DirectoryError> {
    let id = fields.get("_id").and_then(Value::as_str).unwrap_or_default().to_owned();
    if !id.starts_with(prefix) || id.len() == prefix.len() {
        return Err(DirectoryError::Id { id: id.chars().take(60).collect(), prefix });
    }
    match fields.get("Form") {
        Some(Value::String(found)) if found == form => {}
        None | Some(Value::Null) => drop(fields.insert("Form".to_owned(), Value::from(form))),
        Some(other) => {
            let found = other.as_str().map_or_else(|| other.to_string(), str::to_owned);
            return Err(DirectoryError::Form { expected: form, found: found.chars().take(60).collect() });
        }
    }
    Ok(id)
}

/// Checks an Internet address as far as a directory must: one `@` with something on both sides, no spaces.
pub(crate) fn check_address(field: &'static str, address: &str) -> Result<(), DirectoryError> {
    let well_formed = address.rsplit_once('@').is_some_and(|(local, domain)| {
        !local.is_empty()
            && !domain.is_empty()
            && !address.contains(|c: char| c.is_whitespace() || "<>,;\"".contains(c))
    });
    if well_formed {
        Ok(())
    } else {
        Err(refuse(field, address, "an Internet address is of the form name@domain"))
    }
}
