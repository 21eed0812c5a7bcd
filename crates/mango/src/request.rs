//! The members of a request's body, taken one by one in CouchDB's order, so that of several mistakes the same is reported.

use serde_json::Value;

use crate::error::{MangoError, shown};
use crate::selector::check_nesting;

/// What is left of a body.
pub(crate) struct Request<'a> {
    left: Vec<(&'a str, &'a Value)>,
}

impl<'a> Request<'a> {
    pub(crate) fn new(body: &'a Value) -> Result<Self, MangoError> {
        check_nesting(body)?;
        let Value::Object(members) = body else { return Err(MangoError::BodyNotObject) };
        Ok(Self { left: members.iter().map(|(name, value)| (name.as_str(), value)).collect() })
    }

    pub(crate) fn take(&mut self, name: &str) -> Option<&'a Value> {
        let at = self.left.iter().position(|(known, _)| *known == name)?;
        Some(self.left.remove(at).1)
    }

    pub(crate) fn required(&mut self, name: &'static str) -> Result<&'a Value, MangoError> {
        self.take(name).ok_or(MangoError::MissingKey(name))
    }

    pub(crate) fn boolean(&mut self, name: &str, otherwise: bool) -> Result<bool, MangoError> {
        match self.take(name) {
            None => Ok(otherwise),
            Some(Value::Bool(value)) => Ok(*value),
            Some(other) => Err(MangoError::InvalidBoolean(shown(other))),
        }
    }

    pub(crate) fn non_negative(&mut self, name: &str, otherwise: u64) -> Result<u64, MangoError> {
        match self.take(name) {
            None => Ok(otherwise),
            Some(value) => value.as_u64().ok_or_else(|| MangoError::InvalidNonNegativeInteger(shown(value))),
        }
    }

    pub(crate) fn positive(&mut self, name: &str, otherwise: u64) -> Result<u64, MangoError> {
        match self.take(name) {
            None => Ok(otherwise),
            Some(value) => value
                .as_u64()
                .filter(|number| *number > 0)
                .ok_or_else(|| MangoError::InvalidPositiveInteger(shown(value))),
        }
    }

    pub(crate) fn text(&mut self, name: &str) -> Result<Option<&'a str>, MangoError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(MangoError::InvalidString(shown(other))),
        }
    }

    /// Refuses what nobody took.
    pub(crate) fn finish(&self) -> Result<(), MangoError> {
        match self.left.first() {
            None => Ok(()),
            Some((name, _)) => Err(MangoError::InvalidKey((*name).to_owned())),
        }
    }
}
