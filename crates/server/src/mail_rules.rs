//! Mail rules as people and administrators set them by HTTP.

use std::sync::Arc;

use scrinium_directory::{Directory, Found, NameLookup, Person};
use scrinium_http::{Identity, MailRules, MailRulesOf, MailRulesRefusal};
use scrinium_mail::{RuleBook, RuleOwner, RulesError};
use serde_json::Value;

use crate::people::may_set_password;

/// Keeps rules in the directory.
pub(crate) struct KeptRules {
    directory: Arc<Directory>,
    book: RuleBook,
}

impl KeptRules {
    pub(crate) fn new(directory: &Arc<Directory>) -> Self {
        Self { directory: Arc::clone(directory), book: RuleBook::new(directory.databases()) }
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
        };
        shown.map_err(refusal)
    }

    fn set(&self, by: &Identity, whose: &MailRulesOf, rules: &Value) -> Result<(), MailRulesRefusal> {
        let person = match whose {
            MailRulesOf::Server => None,
            MailRulesOf::Own => Some(self.person(by)?),
        };
        // A stolen cookie must not lead mail away from then on.
        let id = person.as_ref().map_or("", |person| person.id.as_str()).to_owned();
        may_set_password(by, &id, self.directory.databases().clock().now_s()).map_err(|_| {
            MailRulesRefusal::Forbidden(
                "Mail rules are set by who has just signed in: sign in again, without an app password or token."
                    .to_owned(),
            )
        })?;
        let owner = if person.is_some() { RuleOwner::Person(&id) } else { RuleOwner::Server };
        self.book.set(owner, rules).map_err(refusal)
    }
}

fn refusal(error: RulesError) -> MailRulesRefusal {
    match error {
        RulesError::Rules(error) => MailRulesRefusal::Invalid(error.to_string()),
        RulesError::Database(error) => MailRulesRefusal::Database(error),
    }
}
