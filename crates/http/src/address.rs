//! What an address names, once its route is known.

use crate::error::{HttpError, Result};
use crate::routes::Route;

/// What an address in CouchDB's database of users means.
#[derive(Clone, Debug, Default)]
pub(crate) struct UsersAddress {
    /// The one who asks is no administrator, and asks for their own document.
    pub(crate) is_own: bool,
    /// The name of a person whose document is of the directory's form, and is shown in CouchDB's.
    pub(crate) translated: Option<String>,
}

/// What an address names. Texts are decoded.
#[derive(Clone, Debug)]
pub(crate) struct Address {
    pub(crate) route: &'static Route,
    values: Vec<(&'static str, String)>,
    /// How it is asked for CouchDB's database of users, if it is.
    pub(crate) users: Option<UsersAddress>,
    /// It ends with a slash, which otherwise counts for nothing.
    pub(crate) is_folder: bool,
}

impl Address {
    pub(crate) const fn new(route: &'static Route, values: Vec<(&'static str, String)>) -> Self {
        Self { route, values, users: None, is_folder: false }
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

    /// Puts something else in the place of what a parameter stands for.
    pub(crate) fn set(&mut self, name: &str, value: String) {
        if let Some((_, known)) = self.values.iter_mut().find(|(known, _)| *known == name) {
            *known = value;
        }
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
