//! What can be typed behind `scrinium formula`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// What to do with formulas.
#[derive(Clone, Debug, Subcommand)]
pub enum FormulaCommand {
    /// Say whether a formula is well formed, and what it depends on; exit code 1 if it is not
    Check(FormulaCheckArguments),
    /// Evaluate a formula for a document
    Eval(FormulaEvalArguments),
    /// The functions of the language
    List {
        /// Only functions with this in their name or description, in any case
        #[arg(value_name = "PATTERN")]
        pattern: Option<String>,
    },
    /// All about one function
    Help {
        /// Its name, in any case, with or without its @
        #[arg(value_name = "@FUNCTION")]
        function: String,
    },
}

/// Where the text of a formula is.
#[derive(Clone, Debug, Args)]
#[group(required = true, multiple = false)]
pub struct FormulaText {
    /// The formula; - reads it from standard input
    #[arg(value_name = "FORMULA", allow_hyphen_values = true)]
    pub formula: Option<String>,
    /// A file that holds the formula
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
}

/// Arguments of `formula check`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples: scrinium formula check 'SELECT Form = \"Memo\" & Status != \"Closed\"'
          scrinium formula check --file inbox.formula --json")]
pub struct FormulaCheckArguments {
    /// The formula.
    #[command(flatten)]
    pub text: FormulaText,
}

/// Arguments of `formula eval`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
The time zone is UTC, as in views. A list is printed an element a line; --json prints the value as
an index keeps it. What comes to an error, or is not well formed, ends with exit code 1.

Examples: scrinium formula eval '@Text(@Year(@Today))'
          scrinium formula eval '@Name([CN]; From)' --document memo.json
          curl -s http://127.0.0.1:5984/notes/1 |
              scrinium formula eval --file inbox.formula --document -")]
pub struct FormulaEvalArguments {
    /// The formula.
    #[command(flatten)]
    pub text: FormulaText,
    /// A JSON document; - reads it from standard input [default: one without fields]
    #[arg(long, value_name = "FILE")]
    pub document: Option<PathBuf>,
    /// What @Now answers, such as 2026-11-21T10:00:00Z [default: the time]
    #[arg(long, value_name = "RFC3339", value_parser = moment)]
    pub now: Option<jiff::Timestamp>,
    /// For whom the formula runs, such as "CN=Ann Smith/O=Acme" [default: nobody]
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// What to tell [default: selection if the formula has a SELECT statement, else column]
    #[arg(long = "as", value_name = "USE", value_enum)]
    pub purpose: Option<FormulaPurpose>,
}

fn moment(text: &str) -> Result<jiff::Timestamp, String> {
    text.parse().map_err(|_| "write a moment as 2026-11-21T10:00:00Z".to_owned())
}

/// What a formula is evaluated for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FormulaPurpose {
    /// Whether it selects the document
    Selection,
    /// Its value
    Column,
}
