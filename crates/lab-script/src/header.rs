//! The header of a workload: comments of the form `**Key: text**`, which Server.Load reads as comments.

use std::collections::BTreeMap;

use crate::error::{Problem, ScriptError, ScriptPlace};
use crate::words::{Comment, is_variable_name};

/// A variable that the header gives a value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Variable {
    pub name: String,
    pub value: String,
    pub about: String,
}

/// What a workload's header says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// `**Workload: R5Mail**`
    pub name: Option<String>,
    /// `**Title: ...**`: one line for a list.
    pub title: Option<String>,
    /// `**Source: ...**`: where the workload was published.
    pub source: Vec<String>,
    /// `**Choice: ...**`: what the source leaves open, and what was chosen.
    pub choices: Vec<String>,
    /// `**Published: ...**`: results that others have published for it.
    pub published: Vec<String>,
    /// `**Variable: Name = value (what it means)**`
    pub variables: Vec<Variable>,
}

/// The values of a script's variables. Names are the same in any case, as in NOTES.INI.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variables(BTreeMap<String, (String, String)>);

impl Variables {
    /// Gives a variable a value, in place of any that it had.
    pub fn set(&mut self, name: &str, value: &str) {
        self.0.insert(name.to_ascii_lowercase(), (name.to_owned(), value.to_owned()));
    }

    /// Gives a variable a value unless it has one.
    pub fn set_default(&mut self, name: &str, value: &str) {
        self.0.entry(name.to_ascii_lowercase()).or_insert_with(|| (name.to_owned(), value.to_owned()));
    }

    /// The value of a variable.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(&name.to_ascii_lowercase()).map(|(_, value)| value.as_str())
    }

    /// Names, as they were first written, and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.values().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

pub(super) fn read(comments: &[Comment], errors: &mut Vec<ScriptError>) -> Header {
    let mut header = Header::default();
    for comment in comments {
        let Some((key, text)) = comment.text.split_once(':') else { continue };
        let text = text.trim();
        match key.trim() {
            "Workload" => header.name = Some(text.to_owned()),
            "Title" => header.title = Some(text.to_owned()),
            "Source" => header.source.push(text.to_owned()),
            "Published" => header.published.push(text.to_owned()),
            "Choice" => header.choices.push(text.to_owned()),
            "Variable" => match variable(text) {
                Some(variable) => header.variables.push(variable),
                None => errors.push(ScriptError {
                    place: ScriptPlace { line: comment.line, column: 1 },
                    word: comment.text.clone(),
                    problem: Problem::VariableLine,
                }),
            },
            _ => {}
        }
    }
    header
}

fn variable(text: &str) -> Option<Variable> {
    let (name, rest) = text.split_once('=')?;
    let (value, about) = match rest.split_once('(') {
        Some((value, about)) => (value, about.strip_suffix(')')?),
        None => (rest, ""),
    };
    let name = name.trim();
    is_variable_name(name).then(|| Variable {
        name: name.to_owned(),
        value: value.trim().to_owned(),
        about: about.trim().to_owned(),
    })
}
