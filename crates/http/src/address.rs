//! What an address names, once its route is known.

use crate::error::{HttpError, Result};
use crate::routes::Route;

/// What an address names. Texts are decoded.
#[derive(Clone, Debug)]
pub(crate) struct Address {
    pub(crate) route: &'static Route,
    values: Vec<(&'static str, String)>,
    /// It ends with a slash, which otherwise counts for nothing.
    pub(crate) is_folder: bool,
}

impl Address {
    pub(crate) const fn new(route: &'static Route, values: Vec<(&'static str, String)>) -> Self {
        Self { route, values, is_folder: false }
    }

    /// All parameters with what they stand for.
    #[cfg(test)]
    pub(crate) fn values(&self) -> &[(&'static str, String)] {
        &self.values
    }

    /// What a parameter of the route's pattern stands for.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.values.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    /// As [`Self::get`], for a parameter that the route has.
    ///
    /// # Errors
    /// 500 where it has none: the table of routes and the handler disagree.
    pub(crate) fn value(&self, name: &str) -> Result<&str> {
        self.get(name).ok_or_else(|| HttpError::internal("The address is incomplete."))
    }

    /// The id of the document that it names, with `_design/` or `_local/` before it.
    ///
    /// # Errors
    /// As [`Self::value`].
    pub(crate) fn document_id(&self) -> Result<String> {
        if let Some(name) = self.get("ddoc") {
            return Ok(format!("_design/{name}"));
        }
        match self.get("localid") {
            Some(name) => Ok(format!("_local/{name}")),
            None => Ok(self.value("docid")?.to_owned()),
        }
    }
}
