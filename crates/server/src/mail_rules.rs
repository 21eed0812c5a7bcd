//! Mail rules as people and administrators set them by HTTP, and people's scripts.

use std::collections::BTreeMap;
use std::sync::Arc;

use scrinium_directory::{Directory, Found, NameLookup, Person};
use scrinium_http::{Identity, MailRules, MailRulesOf, MailRulesRefusal};
use scrinium_mail::{RuleBook, RuleOwner, RulesError, ScriptBook, ScriptsError, ScriptsKept};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::people::may_sort_mail;

/// All scripts of a person as they are set.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenScripts {
    active: String,
    scripts: BTreeMap<String, String>,
    /// That of the scripts that they take the place of.
    version: Option<String>,
}

/// Keeps rules in the directory, and scripts in mail files.
pub(crate) struct KeptRules {
    directory: Arc<Directory>,
    book: RuleBook,
    scripts: ScriptBook,
}

impl KeptRules {
    pub(crate) fn new(directory: &Arc<Directory>) -> Self {
        let databases = directory.databases();
        let (book, scripts) = (RuleBook::new(databases), ScriptBook::new(databases));
        Self { directory: Arc::clone(directory), book, scripts }
    }

    fn person(&self, by: &Identity) -> Result<Arc<Person>, MailRulesRefusal> {
        match by.name().map(|name| self.directory.find(name)) {
            Some(Found::Person(person)) => Ok(person),
            _ => Err(MailRulesRefusal::Forbidden("Who is not in the directory gets no mail.".to_owned())),
        }
    }
}

impl MailRules for KeptRules {
    fn show(&self, by: &Identity, whose: &MailRulesOf) -> Result<Value, MailRulesRefusal> {
        let shown = match whose {
            MailRulesOf::Server => self.book.show(RuleOwner::Server),
            MailRulesOf::Own => self.book.show(RuleOwner::Person(&self.person(by)?.id)),
            MailRulesOf::Scripts => {
                let person = self.person(by)?;
                let kept = self.scripts.kept(&person).map_err(scripts_refusal)?;
                let version = kept.version();
                return Ok(json!({"active": kept.active, "scripts": kept.scripts, "version": version}));
            }
        };
        shown.map_err(refusal)
    }

    fn set(&self, by: &Identity, whose: &MailRulesOf, rules: &Value) -> Result<(), MailRulesRefusal> {
        let person = match whose {
            MailRulesOf::Server => None,
            MailRulesOf::Own | MailRulesOf::Scripts => Some(self.person(by)?),
        };
        // A stolen cookie must not lead mail away from then on.
        let id = person.as_ref().map_or("", |person| person.id.as_str()).to_owned();
        may_sort_mail(by, &id, self.directory.databases().clock().now_s())?;
        if let (MailRulesOf::Scripts, Some(person)) = (whose, &person) {
            let WrittenScripts { active, scripts, version } = serde_json::from_value(rules.clone())
                .map_err(|error| MailRulesRefusal::Invalid(format!("Scripts have another form: {error}.")))?;
            let kept = ScriptsKept { active, scripts };
            return self.scripts.set(person, &kept, version.as_deref()).map_err(scripts_refusal);
        }
        let owner = if person.is_some() { RuleOwner::Person(&id) } else { RuleOwner::Server };
        self.book.set(owner, rules).map_err(refusal)
    }
}

fn scripts_refusal(error: ScriptsError) -> MailRulesRefusal {
    match error {
        ScriptsError::Database(error) => MailRulesRefusal::Database(error),
        error => MailRulesRefusal::Invalid(error.to_string()),
    }
}

fn refusal(error: RulesError) -> MailRulesRefusal {
    match error {
        RulesError::Rules(error) => MailRulesRefusal::Invalid(error.to_string()),
        RulesError::Database(error) => MailRulesRefusal::Database(error),
    }
}
