//! `validate_doc_update` as a formula, in design documents whose language is `formula`.
//!
//! ```json
//! { "_id": "_design/rules", "language": "formula",
//!   "validate_doc_update": "@If(Form != \"Memo\"; @Success; Subject = \"\"; @Failure(\"A memo has a subject.\"); @Success)" }
//! ```
//!
//! It is evaluated for the document as it is to be stored. A text refuses the edit with these words, as `@Failure` gives it; a
//! number that is not 0 lets it pass, as `@Success` does. `@GetField("$Old.Subject")` is the field of the document that is
//! replaced; `$IsNew` and `$Deleted` are 1 where there is none, and where it is to be deleted. `@UserName` and the like say who
//! edits.

use scrinium_database::{Database, EditFunction, EditToValidate, Result, Verdict};
use scrinium_document::json::stored_value;
use scrinium_formula::{Environment, Fields, Formula, Text, Value as FormulaValue};
use scrinium_javascript::ScriptError;
use serde_json::{Map, Value};

use crate::environment::environment;

/// What fields of the document that is replaced begin with.
const OLD: &str = "$Old.";

/// A formula that edits have to pass.
pub(crate) struct FormulaValidator {
    formula: Formula,
}

impl FormulaValidator {
    /// `None`: the source is no formula, which stops nobody.
    pub(crate) fn new(source: &str) -> Option<Self> {
        Some(Self { formula: Formula::compile(source).ok()? })
    }

    /// What it says of an edit; `environment` has the time and the database.
    fn verdict(&self, edit: &EditToValidate<'_>, environment: &Environment) -> Verdict {
        let document = EditedDocument::read(edit);
        let environment = with_user(environment, edit.user_json);
        match self.formula.evaluate(&document, &environment) {
            Ok(FormulaValue::Number(numbers)) if numbers.iter().all(|number| *number != 0.0) => {
                Verdict::Allowed
            }
            Ok(FormulaValue::Text(texts)) => {
                let words: Vec<&str> =
                    texts.iter().map(Text::as_str).filter(|text| !text.is_empty()).collect();
                match words.as_slice() {
                    [] => refused(),
                    words => Verdict::Forbidden { reason: words.join("; ") },
                }
            }
            Ok(FormulaValue::Number(_) | FormulaValue::Time(_)) => refused(),
            Ok(FormulaValue::Error(error)) => failed(error.to_string()),
            Err(error) => failed(error.to_string()),
        }
    }
}

impl EditFunction for FormulaValidator {
    fn validate(&self, database: &Database, edits: &[EditToValidate<'_>]) -> Result<Vec<Verdict>> {
        let environment = environment(database);
        Ok(edits.iter().map(|edit| self.verdict(edit, &environment)).collect())
    }
}

fn failed(message: String) -> Verdict {
    Verdict::Failed { reason: ScriptError::Thrown { message }.to_string() }
}

fn refused() -> Verdict {
    Verdict::Forbidden { reason: "The formula that checks documents of this database refused it.".to_owned() }
}

/// The environment of the one who edits.
fn with_user(environment: &Environment, user_json: &str) -> Environment {
    let mut environment = environment.clone();
    let Some(user) = stored_value(user_json) else { return environment };
    environment.user_name = user.get("name").and_then(Value::as_str).map(str::to_owned);
    let roles = user.get("roles").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    (environment.user_roles, environment.user_groups) =
        roles.map(str::to_owned).partition(|role| role.starts_with('['));
    environment
}

/// A document as it is to be stored.
struct EditedDocument {
    new: Map<String, Value>,
    /// The one that it replaces.
    old: Option<Map<String, Value>>,
}

impl EditedDocument {
    fn read(edit: &EditToValidate<'_>) -> Self {
        let object = |json: &str| match stored_value(json) {
            Some(Value::Object(members)) => Some(members),
            _ => None,
        };
        Self { new: object(edit.new_json).unwrap_or_default(), old: object(edit.old_json) }
    }
}

impl Fields for EditedDocument {
    fn field(&self, name: &str) -> Option<FormulaValue> {
        let is_flag = |flag: &str| name.eq_ignore_ascii_case(flag);
        if is_flag("$IsNew") {
            return Some(FormulaValue::truth(self.old.is_none()));
        }
        if is_flag("$Deleted") {
            return Some(FormulaValue::truth(self.new.get("_deleted") == Some(&Value::Bool(true))));
        }
        let prefix = name.get(..OLD.len()).filter(|prefix| prefix.eq_ignore_ascii_case(OLD));
        let (document, name) = match prefix {
            Some(prefix) => (self.old.as_ref()?, name.get(prefix.len()..)?),
            None => (&self.new, name),
        };
        // What begins with an underscore is no field.
        let is_it =
            |(member, _): &(&String, &Value)| !member.starts_with('_') && member.eq_ignore_ascii_case(name);
        FormulaValue::from_json(document.iter().find(is_it)?.1)
    }

    fn id(&self) -> &str {
        self.new.get("_id").and_then(Value::as_str).unwrap_or_default()
    }

    fn field_names(&self) -> Option<Vec<Text>> {
        let names = self.new.keys().filter(|name| !name.starts_with('_'));
        Some(names.map(Text::new).collect())
    }
}
