//! Where rules are: in the directory's database, a document for the server and one for each person, which the server alone writes.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use scrinium_catalog::Databases;
use scrinium_database::{Access, DatabaseError, Edit, EditMode, ReadOptions};
use scrinium_directory::DIRECTORY_DATABASE;
use scrinium_views::OpenDatabase;
use serde_json::{Map, Value, json};
use thiserror::Error;

use super::model::{RuleSet, RuleSetError, Verdict};

/// Who keeps rules.
static KEEPER: Access = Access::of_the_server("keeping mail rules");

/// What ids of documents with rules begin with.
const PREFIX: &str = "mailrules:";

/// The field `Form` of them.
const FORM: &str = "MailRules";

/// More sets are not kept in memory.
const CACHED_MAX: usize = 100_000;

/// Whose rules they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleOwner<'o> {
    /// Those for all messages.
    Server,
    /// Those for messages to a person, by the id of their document.
    Person(&'o str),
}

impl RuleOwner<'_> {
    fn id(self) -> String {
        match self {
            Self::Server => format!("{PREFIX}server"),
            Self::Person(id) => format!("{PREFIX}of:{id}"),
        }
    }
}

/// The document of the directory that says which scripts a person has set.
pub(crate) fn seal_id(person: &str) -> String {
    format!("{PREFIX}sieve:{person}")
}

/// Whether a document of the directory holds rules.
#[must_use]
pub fn is_rules_document(id: &str) -> bool {
    id.starts_with(PREFIX)
}

/// Why rules were not set or shown.
#[derive(Debug, Error)]
pub enum RulesError {
    /// They are none.
    #[error(transparent)]
    Rules(#[from] RuleSetError),
    /// They cannot be read or stored.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

/// All rules. Clones share what is known of them.
#[derive(Clone)]
pub struct RuleBook {
    databases: Databases,
    known: Arc<Mutex<Known>>,
}

/// Rules as the directory had them at one of its changes.
#[derive(Default)]
struct Known {
    /// The number of the database, and of its change.
    at: (u32, u64),
    sets: HashMap<String, Option<Arc<RuleSet>>>,
}

impl RuleBook {
    /// The rules of a server.
    #[must_use]
    pub fn new(databases: &Databases) -> Self {
        Self { databases: databases.clone(), known: Arc::default() }
    }

    /// Rules as their owner has written them.
    ///
    /// # Errors
    /// What the database reports.
    pub fn show(&self, owner: RuleOwner<'_>) -> Result<Value, RulesError> {
        let rules = self.rules(owner)?;
        Ok(rules.map_or_else(|| json!({"rules": []}), |rules| rules.to_value()))
    }

    /// Sets rules; they hold for messages that come from now on.
    ///
    /// # Errors
    /// [`RulesError`], in words for the owner.
    pub fn set(&self, owner: RuleOwner<'_>, rules: &Value) -> Result<(), RulesError> {
        let set = RuleSet::read(rules, owner == RuleOwner::Server)?;
        let database = self.databases.get(DIRECTORY_DATABASE)?;
        let id = owner.id();
        let stored = stored_revision(&database, &id)?;
        let mut document = json!({"_id": id, "Form": FORM, "Rules": set.to_value()});
        if let (Some(revision), Some(members)) = (stored, document.as_object_mut()) {
            members.insert("_rev".to_owned(), Value::from(revision));
        }
        let edit = Edit { json: document.to_string().into(), ..Edit::default() };
        database.update_one(edit, EditMode::Interactive, &KEEPER)?;
        Ok(())
    }

    /// Removes rules whose owner is no more, before somebody else gets the owner's id: they lead mail to where the owner wanted it.
    ///
    /// # Errors
    /// What the database reports.
    pub fn forget(&self, owner: RuleOwner<'_>) -> Result<(), DatabaseError> {
        let database = self.databases.get(DIRECTORY_DATABASE)?;
        let seal = match owner {
            RuleOwner::Server => None,
            RuleOwner::Person(id) => Some(seal_id(id)),
        };
        for id in seal.into_iter().chain([owner.id()]) {
            let Some(revision) = stored_revision(&database, &id)? else { continue };
            let json = json!({"_id": id, "_rev": revision, "_deleted": true}).to_string();
            let edit = Edit { json: json.into(), ..Edit::default() };
            database.update_one(edit, EditMode::Interactive, &KEEPER)?;
        }
        Ok(())
    }

    /// What an owner's rules make of a memo; nothing where there are none.
    ///
    /// # Errors
    /// What the database reports.
    pub(crate) fn judge(
        &self,
        owner: RuleOwner<'_>,
        memo: &Map<String, Value>,
    ) -> Result<Verdict, DatabaseError> {
        let rules = self.rules(owner)?;
        Ok(rules.map_or_else(Verdict::default, |rules| rules.judge(memo, self.databases.clock())))
    }

    fn rules(&self, owner: RuleOwner<'_>) -> Result<Option<Arc<RuleSet>>, DatabaseError> {
        let database = self.databases.get(DIRECTORY_DATABASE)?;
        let at = (database.number(), database.visible_change_number());
        let id = owner.id();
        {
            let mut known = self.known.lock();
            if known.at != at || known.sets.len() >= CACHED_MAX {
                *known = Known { at, sets: HashMap::new() };
            }
            if let Some(set) = known.sets.get(&id) {
                return Ok(set.clone());
            }
        }
        let set = read(&database, &id, owner)?;
        let mut known = self.known.lock();
        if known.at == at {
            known.sets.insert(id, set.clone());
        }
        Ok(set)
    }
}

fn stored_revision(database: &OpenDatabase, id: &str) -> Result<Option<String>, DatabaseError> {
    match database.read(id, &ReadOptions::default(), &KEEPER) {
        Ok(document) => Ok(Some(document.revision)),
        Err(DatabaseError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

fn read(
    database: &OpenDatabase,
    id: &str,
    owner: RuleOwner<'_>,
) -> Result<Option<Arc<RuleSet>>, DatabaseError> {
    let document = match database.read(id, &ReadOptions::default(), &KEEPER) {
        Ok(document) => document,
        Err(DatabaseError::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let rules = document.json.to_object().and_then(|mut members| members.shift_remove("Rules"));
    match RuleSet::read(&rules.unwrap_or_default(), owner == RuleOwner::Server) {
        Ok(set) if set.is_empty() => Ok(None),
        Ok(set) => Ok(Some(Arc::new(set))),
        Err(error) => {
            // Those that an earlier version took; messages go as without rules.
            tracing::warn!(id, %error, "mail rules cannot be obeyed");
            Ok(None)
        }
    }
}
