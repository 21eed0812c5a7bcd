//! Variables (RFC 5229) and those that scripts share (RFC 6609, section 3.4).

use std::collections::{BTreeMap, BTreeSet};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::Run;
use crate::action::cut;
use crate::error::RunFault;
use crate::program::Modifier;
use crate::template::{Piece, Template, VariableName, variable_name};

/// The variables of one script.
#[derive(Debug, Default)]
pub(super) struct Frame {
    own: BTreeMap<String, String>,
    /// Names that mean global variables here.
    imported: BTreeSet<String>,
    /// `${0}`, `${1}` of the last match.
    pub(super) captures: Vec<String>,
}

impl Frame {
    /// `global` (RFC 6609, section 3.4.1).
    pub(super) fn import(&mut self, names: &[String]) {
        self.imported.extend(names.iter().cloned());
    }
}

/// What `:encodeurl` leaves as it is (RFC 5435, section 6; RFC 3986, section 2.3).
const URL: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

impl Run<'_> {
    pub(super) fn variable(&self, name: &VariableName) -> &str {
        let found = match name {
            VariableName::Own(name) if !self.frame.imported.contains(name) => self.frame.own.get(name),
            VariableName::Own(name) | VariableName::Global(name) => self.globals.get(name),
        };
        found.map_or("", String::as_str)
    }

    pub(super) fn store_variable(&mut self, name: &VariableName, value: String) -> Result<(), RunFault> {
        let value = cut(value, self.limits.variable_bytes);
        let (name, variables) = match name {
            VariableName::Own(name) if !self.frame.imported.contains(name) => (name, &mut self.frame.own),
            VariableName::Own(name) | VariableName::Global(name) => (name, &mut self.globals),
        };
        if variables.len() >= self.limits.variables && !variables.contains_key(name) {
            return Err(RunFault::TooMany { what: "variables", limit: self.limits.variables });
        }
        variables.insert(name.clone(), value);
        Ok(())
    }

    /// The variable that a command names by a string.
    pub(super) fn named(&mut self, name: &Template) -> Result<VariableName, RunFault> {
        let text = self.expand(name)?;
        variable_name(&text, true).ok_or(RunFault::Value { expected: "the name of a variable", found: text })
    }

    /// A string with its variables put in.
    pub(super) fn expand(&mut self, template: &Template) -> Result<String, RunFault> {
        let mut text = String::new();
        for piece in &template.pieces {
            let part = match piece {
                Piece::Text(text) => text.as_str(),
                Piece::Variable(name) => self.variable(name),
                Piece::Capture(number) => self.frame.captures.get(*number).map_or("", String::as_str),
            };
            text.push_str(part);
            if text.len() > self.limits.expanded_bytes {
                text = cut(text, self.limits.expanded_bytes);
                break;
            }
        }
        self.budget.work(text.len())?;
        Ok(text)
    }

    pub(super) fn expand_all(&mut self, templates: &[Template]) -> Result<Vec<String>, RunFault> {
        templates.iter().map(|template| self.expand(template)).collect()
    }

    pub(super) fn expand_option(&mut self, template: Option<&Template>) -> Result<Option<String>, RunFault> {
        template.map(|template| self.expand(template)).transpose()
    }

    /// `set` (RFC 5229, section 4).
    pub(super) fn set(
        &mut self,
        name: &VariableName,
        modifiers: &[Modifier],
        value: &Template,
    ) -> Result<(), RunFault> {
        let mut value = self.expand(value)?;
        for modifier in modifiers {
            value = modified(*modifier, &value);
            self.budget.work(value.len())?;
        }
        self.store_variable(name, value)
    }
}

fn modified(modifier: Modifier, value: &str) -> String {
    let first = |change: fn(char) -> String| {
        let mut characters = value.chars();
        let first = characters.next().map(change).unwrap_or_default();
        first + characters.as_str()
    };
    // Only letters of ASCII change (RFC 5229, section 4.1.1).
    match modifier {
        Modifier::Lower => value.to_ascii_lowercase(),
        Modifier::Upper => value.to_ascii_uppercase(),
        Modifier::LowerFirst => first(|c| c.to_ascii_lowercase().to_string()),
        Modifier::UpperFirst => first(|c| c.to_ascii_uppercase().to_string()),
        Modifier::QuoteWildcard => {
            let is_wild = |c: char| matches!(c, '*' | '?' | '\\');
            value.chars().flat_map(|c| is_wild(c).then_some('\\').into_iter().chain([c])).collect()
        }
        Modifier::QuoteRegex => regex::escape(value),
        Modifier::EncodeUrl => utf8_percent_encode(value, URL).to_string(),
        Modifier::Length => value.chars().count().to_string(),
    }
}
