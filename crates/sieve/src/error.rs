//! What is wrong with a script, for the person who wrote it.

use std::fmt;

use thiserror::Error;

/// A place in a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line, from 1.
    pub line: u32,
    /// The character of the line, from 1.
    pub column: u32,
}

impl fmt::Display for Position {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "line {}, column {}", self.line, self.column)
    }
}

/// A script that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{position}: {fault}")]
pub struct ScriptError {
    /// Where.
    pub position: Position,
    /// What.
    pub fault: ScriptFault,
}

/// What is wrong with a script. Texts name what was written, in quotation marks.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ScriptFault {
    /// More bytes than the limit.
    #[error(
        "the script has more than {0} bytes; shorten it or split it into scripts that include each other"
    )]
    ScriptTooLong(usize),
    /// Not UTF-8, or a NUL.
    #[error("the script is not plain UTF-8 text from here on; save it as UTF-8")]
    NotText,
    /// A character that begins nothing.
    #[error("the character {0:?} cannot stand here")]
    Character(char),
    /// `"` without its end.
    #[error("a string begins here and has no end; close it with a quotation mark")]
    OpenString,
    /// `text:` without its end.
    #[error("a text begins here and has no end; end it with a line of one dot")]
    OpenText,
    /// `/*` without its end.
    #[error("a comment begins here and has no end; close it with */")]
    OpenComment,
    /// More bytes than the limit.
    #[error("a string of more than {0} bytes")]
    StringTooLong(usize),
    /// A number that does not fit.
    #[error("the number is too large")]
    Number,
    /// Something else was expected.
    #[error("{found} stands where {expected} is expected")]
    Expected {
        /// What should stand here.
        expected: String,
        /// What stands here.
        found: String,
    },
    /// Blocks or tests inside each other.
    #[error("blocks and tests stand inside each other more than {0} deep")]
    TooDeep(usize),
    /// More commands and tests than the limit.
    #[error("the script has more than {0} commands and tests")]
    TooManyCommands(usize),
    /// More strings than the limit.
    #[error("a list of more than {0} strings")]
    ListTooLong(usize),
    /// No such command.
    #[error("there is no command \"{0}\"")]
    UnknownCommand(String),
    /// No such test.
    #[error("there is no test \"{0}\"")]
    UnknownTest(String),
    /// No such argument of this command or test.
    #[error("\"{owner}\" has no argument \":{tag}\"")]
    UnknownTag {
        /// The command or test.
        owner: String,
        /// The argument, without its colon.
        tag: String,
    },
    /// An argument that excludes another one, or the same one again.
    #[error("\":{0}\" cannot stand together with what is written before it")]
    Conflict(String),
    /// The script does not require what it uses.
    #[error("{what} needs: require \"{extension}\"; at the beginning of the script")]
    NotRequired {
        /// What is used.
        what: String,
        /// The extension's name.
        extension: &'static str,
    },
    /// No such extension.
    #[error("this server does not know the extension \"{0}\"")]
    UnknownExtension(String),
    /// `require` behind another command (RFC 5228, section 3.2).
    #[error("\"require\" can only stand before all other commands")]
    LateRequire,
    /// `elsif` or `else` without `if`.
    #[error("\"{0}\" must follow the block of \"if\" or \"elsif\"")]
    NoIf(String),
    /// An argument is missing.
    #[error("\"{owner}\" lacks {what}")]
    Missing {
        /// The command or test.
        owner: String,
        /// What is missing.
        what: String,
    },
    /// More than there may be.
    #[error("\"{owner}\" cannot have {what} here")]
    Superfluous {
        /// The command or test.
        owner: String,
        /// What is too much.
        what: String,
    },
    /// An argument of the wrong kind or with a value that cannot be.
    #[error("{found} is not {expected}")]
    Value {
        /// What it should be.
        expected: String,
        /// What was written.
        found: String,
    },
    /// A comparator that does not know how to search in a string.
    #[error("the comparator \"{comparator}\" cannot be used with \":{matching}\"")]
    Comparator {
        /// The comparator.
        comparator: String,
        /// The way to match.
        matching: String,
    },
    /// A regular expression that is wrong or too large.
    #[error("the regular expression is not valid: {0}")]
    Regex(String),
    /// More regular expressions than the limit.
    #[error("the script has more than {0} regular expressions")]
    TooManyRegexes(usize),
    /// More variables than the limit.
    #[error("the script has more than {0} variables")]
    TooManyVariables(usize),
}

impl ScriptFault {
    pub(crate) fn at(self, position: Position) -> ScriptError {
        ScriptError { position, fault: self }
    }

    /// Whether another server may know what is meant, so that `ihave` puts the fault off until the place is reached
    /// (RFC 5463, section 4).
    pub(crate) fn is_unknown(&self) -> bool {
        matches!(
            self,
            Self::UnknownCommand(_)
                | Self::UnknownTest(_)
                | Self::UnknownTag { .. }
                | Self::NotRequired { .. }
                | Self::UnknownExtension(_)
        )
    }
}

/// Why a run ended early. The message is kept as if there were no script (RFC 5228, section 2.10.6), and its owner
/// should learn of it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{position}: {fault}")]
pub struct RunError {
    /// The command that was executed.
    pub position: Position,
    /// What went wrong.
    pub fault: RunFault,
}

/// What went wrong in a run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RunFault {
    /// More steps or bytes than the limit.
    #[error("the script takes too much work for this message")]
    TooMuchWork,
    /// More of something than the limit.
    #[error("the script makes more than {limit} {what}")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// Two actions exclude each other.
    #[error("\"{0}\" cannot be done together with \"{1}\"")]
    Conflict(&'static str, &'static str),
    /// An address, mailbox or other value, made of variables, is not valid.
    #[error("{found} is not {expected}")]
    Value {
        /// What it should be.
        expected: &'static str,
        /// What it is.
        found: String,
    },
    /// A script that is included is missing or wrong.
    #[error("the script \"{name}\" cannot be included: {reason}")]
    Include {
        /// The script.
        name: String,
        /// Why.
        reason: String,
    },
    /// The script ran into what this server does not know.
    #[error("{0}")]
    Unknown(ScriptFault),
    /// `error` of `ihave` (RFC 5463, section 5).
    #[error("the script ends itself: {0}")]
    Asked(String),
}
