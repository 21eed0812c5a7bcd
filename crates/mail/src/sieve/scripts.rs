//! Scripts of people: a document of each mail file, and what is kept of it in memory.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use scrinium_catalog::Databases;
use scrinium_clock::Clock;
use scrinium_database::{Access, Database, DatabaseError, Edit, EditMode, ReadOptions};
use scrinium_directory::{DIRECTORY_DATABASE, Person};
use scrinium_sieve::{Limits, Script, ScriptError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use thiserror::Error;

use super::notice::{Leaving, tell_of_leaving};
use crate::mail_file::open_mail_file;
use crate::rules::seal_id;

/// Who keeps scripts.
static KEEPER: Access = Access::of_the_server("keeping Sieve scripts");

/// The document of a mail file that holds its scripts.
const DOCUMENT: &str = "sieve:scripts";

/// The field `Form` of it.
const FORM: &str = "SieveScripts";

/// The field `Form` of the document of the directory that says which scripts somebody has set who had logged in with a password.
const SEAL_FORM: &str = "SieveSeal";

/// A person has at most this many scripts.
pub const SCRIPTS_MAX: usize = 32;

/// All scripts of a person together have at most this many bytes: they are one document.
pub const TEXTS_MAX_BYTES: usize = 256 << 10;

/// Names of scripts are no longer (RFC 5804 §1.6 asks for 128 characters).
const NAME_MAX_CHARACTERS: usize = 128;

/// Mail files of which no more is kept in memory, and bytes of scripts.
const KNOWN_MAX: usize = 20_000;
const KNOWN_MAX_BYTES: usize = 64 << 20;

/// Two who change scripts at once meet once or twice.
const TRIES: usize = 5;

/// What scripts of people may cost.
#[must_use]
pub fn script_limits() -> Limits {
    Limits {
        script_bytes: TEXTS_MAX_BYTES,
        // A sender is answered once in an hour at most, whatever a script says.
        vacation_min_seconds: 3_600,
        ..Limits::default()
    }
}

/// The scripts of a person.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ScriptsKept {
    /// The name of the one that is run; empty where none is.
    #[serde(default)]
    pub active: String,
    /// Their texts by their names.
    #[serde(default)]
    pub scripts: BTreeMap<String, String>,
}

/// Why scripts were not changed or shown.
#[derive(Debug, Error)]
pub enum ScriptsError {
    /// It cannot be compiled.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// It has no name that a script may have.
    #[error("the name of a script has 1 to {NAME_MAX_CHARACTERS} characters, and none that controls")]
    Name,
    /// There is none of this name.
    #[error("there is no script of this name")]
    Missing,
    /// There is one of this name.
    #[error("there is a script of this name already")]
    Exists,
    /// It is the one that is run.
    #[error("this script is active; make another one or none active before it is deleted")]
    Active,
    /// There would be more than [`SCRIPTS_MAX`].
    #[error("there are {SCRIPTS_MAX} scripts already; delete one of them")]
    TooMany,
    /// They would have more than [`TEXTS_MAX_BYTES`].
    #[error("all scripts together may have {TEXTS_MAX_BYTES} bytes")]
    TooLarge,
    /// They cannot be read or stored.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

/// Scripts of a mail file, the active one compiled.
pub(crate) struct Ready {
    pub(crate) script: Arc<Script>,
    pub(crate) others: BTreeMap<String, String>,
    /// Its owner has set it by ManageSieve. One that was written into the document, with no more than a cookie, leads no mail away.
    pub(crate) is_sealed: bool,
}

/// All scripts. Clones share what is known of them.
#[derive(Clone)]
pub struct ScriptBook {
    databases: Databases,
    known: Arc<Mutex<Known>>,
}

#[derive(Default)]
struct Known {
    /// By the numbers of databases: the revision of the document, and what it says.
    files: HashMap<u32, (String, Option<Arc<Ready>>)>,
    bytes: usize,
}

impl ScriptBook {
    /// The scripts of a server's people.
    #[must_use]
    pub fn new(databases: &Databases) -> Self {
        Self { databases: databases.clone(), known: Arc::default() }
    }

    /// A person's scripts. Blocks.
    ///
    /// # Errors
    /// What the database reports.
    pub fn kept(&self, person: &Person) -> Result<ScriptsKept, ScriptsError> {
        let database = open_mail_file(&self.databases, person)?;
        Ok(read(&database)?.map(|(_, kept)| kept).unwrap_or_default())
    }

    /// Stores a script under a name, in the place of one of this name. Blocks.
    ///
    /// # Errors
    /// [`ScriptsError`], in words for the person.
    pub fn put(&self, person: &Person, name: &str, text: &str) -> Result<(), ScriptsError> {
        check_name(name)?;
        Script::compile(text.as_bytes(), &script_limits())?;
        self.change(person, |kept| {
            kept.scripts.insert(name.to_owned(), text.to_owned());
            check_room(kept)
        })
    }

    /// Sets all scripts, and which one is run, in the place of those whose [`ScriptsKept::version`] is this one. Blocks.
    ///
    /// # Errors
    /// [`ScriptsError`], in words for the person; [`DatabaseError::Conflict`] where there are others by now.
    pub fn set(
        &self,
        person: &Person,
        scripts: &ScriptsKept,
        version: Option<&str>,
    ) -> Result<(), ScriptsError> {
        for (name, text) in &scripts.scripts {
            check_name(name)?;
            Script::compile(text.as_bytes(), &script_limits())?;
        }
        check_room(scripts)?;
        if !scripts.active.is_empty() && !scripts.scripts.contains_key(&scripts.active) {
            return Err(ScriptsError::Missing);
        }
        self.change(person, |kept| {
            if version.is_some_and(|version| version != kept.version()) {
                return Err(DatabaseError::Conflict.into());
            }
            kept.clone_from(scripts);
            Ok(())
        })
    }

    /// Whether a script of so many bytes could be stored. Blocks.
    ///
    /// # Errors
    /// [`ScriptsError`], in words for the person.
    pub fn has_room(&self, person: &Person, name: &str, bytes: u64) -> Result<(), ScriptsError> {
        check_name(name)?;
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        if bytes > TEXTS_MAX_BYTES {
            return Err(ScriptsError::TooLarge);
        }
        let mut kept = self.kept(person)?;
        kept.scripts.insert(name.to_owned(), "x".repeat(bytes));
        check_room(&kept)
    }

    /// Runs the script of this name from now on; none, for an empty one. Blocks.
    ///
    /// # Errors
    /// [`ScriptsError`], in words for the person.
    pub fn set_active(&self, person: &Person, name: &str) -> Result<(), ScriptsError> {
        self.change(person, |kept| {
            if !name.is_empty() {
                let text = kept.scripts.get(name).ok_or(ScriptsError::Missing)?;
                // One that was written into the document, or that an earlier server took.
                Script::compile(text.as_bytes(), &script_limits())?;
            }
            name.clone_into(&mut kept.active);
            Ok(())
        })
    }

    /// Removes a script that is not active. Blocks.
    ///
    /// # Errors
    /// [`ScriptsError`], in words for the person.
    pub fn delete(&self, person: &Person, name: &str) -> Result<(), ScriptsError> {
        self.change(person, |kept| {
            if kept.active == name {
                return Err(ScriptsError::Active);
            }
            kept.scripts.remove(name).map(drop).ok_or(ScriptsError::Missing)
        })
    }

    /// Gives a script another name; the active one stays active. Blocks.
    ///
    /// # Errors
    /// [`ScriptsError`], in words for the person.
    pub fn rename(&self, person: &Person, name: &str, to: &str) -> Result<(), ScriptsError> {
        check_name(to)?;
        self.change(person, |kept| {
            if kept.scripts.contains_key(to) {
                return Err(ScriptsError::Exists);
            }
            let text = kept.scripts.remove(name).ok_or(ScriptsError::Missing)?;
            kept.scripts.insert(to.to_owned(), text);
            if kept.active == name {
                to.clone_into(&mut kept.active);
            }
            Ok(())
        })
    }

    fn change(
        &self,
        person: &Person,
        change: impl Fn(&mut ScriptsKept) -> Result<(), ScriptsError>,
    ) -> Result<(), ScriptsError> {
        let database = open_mail_file(&self.databases, person)?;
        for _ in 0..TRIES {
            let (revision, before) =
                read(&database)?.map_or((None, None), |(revision, kept)| (Some(revision), Some(kept)));
            let mut kept = before.clone().unwrap_or_default();
            change(&mut kept)?;
            if before.as_ref() == Some(&kept) {
                return Ok(());
            }
            self.seal(person, [Some(&kept), before.as_ref()])?;
            let document = json!({"Form": FORM, "Active": kept.active, "Scripts": kept.scripts});
            let edit = Edit {
                id: Some(DOCUMENT.to_owned()),
                revision,
                json: document.to_string().into(),
                // It is no news.
                read_by: Some(Arc::from(person.short_name.as_str())),
                ..Edit::default()
            };
            match database.update_one(edit, EditMode::Interactive, &KEEPER) {
                Ok(_) => {
                    self.tell(&database, person)?;
                    return Ok(());
                }
                Err(DatabaseError::Conflict) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(DatabaseError::Conflict.into())
    }

    /// Notes that a person has set these scripts: the new ones, and those before, until the new ones are stored.
    fn seal(&self, person: &Person, kept: [Option<&ScriptsKept>; 2]) -> Result<(), DatabaseError> {
        let directory = self.databases.get(DIRECTORY_DATABASE)?;
        let id = seal_id(&person.id);
        let revision = match directory.read(&id, &ReadOptions::default(), &KEEPER) {
            Ok(document) => Some(document.revision),
            Err(DatabaseError::NotFound { .. }) => None,
            Err(error) => return Err(error),
        };
        let before = self.sealed(person)?;
        let [new, old] = kept.map(|kept| kept.map(|kept| kept.digest(person)));
        let digests: Vec<String> = new.into_iter().chain(old.filter(|old| before.contains(old))).collect();
        let json = json!({"Form": SEAL_FORM, "Digests": digests}).to_string().into();
        let edit = Edit { id: Some(id), revision, json, ..Edit::default() };
        directory.update_one(edit, EditMode::Interactive, &KEEPER).map(drop)
    }

    /// Digests of scripts that a person has set.
    fn sealed(&self, person: &Person) -> Result<Vec<String>, DatabaseError> {
        let directory = self.databases.get(DIRECTORY_DATABASE)?;
        let document = match directory.read(&seal_id(&person.id), &ReadOptions::default(), &KEEPER) {
            Ok(document) => document,
            Err(DatabaseError::NotFound { .. }) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let digests = document.json.to_object().and_then(|mut members| members.shift_remove("Digests"));
        Ok(digests.and_then(|digests| serde_json::from_value(digests).ok()).unwrap_or_default())
    }

    /// Tells a person where the script that is active now sends mail to.
    fn tell(&self, database: &Arc<Database>, person: &Person) -> Result<(), DatabaseError> {
        let Some(ready) = self.active(database, person)? else { return Ok(()) };
        let addresses = ready.script.redirects().into_iter().flatten();
        addresses.into_iter().try_for_each(|address| {
            tell_of_leaving((database, person), (Leaving::Mail, &address), self.databases.clock())
        })
    }

    pub(crate) fn clock(&self) -> &Clock {
        self.databases.clock()
    }

    /// The script that is run for what comes into a mail file, if there is one. Blocks.
    ///
    /// # Errors
    /// What the database reports.
    pub(crate) fn active(
        &self,
        database: &Database,
        person: &Person,
    ) -> Result<Option<Arc<Ready>>, DatabaseError> {
        let document = match database.read(DOCUMENT, &ReadOptions::default(), &KEEPER) {
            Ok(document) => document,
            Err(DatabaseError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let number = database.number();
        if let Some((revision, ready)) = self.known.lock().files.get(&number)
            && *revision == document.revision
        {
            return Ok(ready.clone());
        }
        let kept: ScriptsKept =
            document.json.to_value().and_then(|value| serde_json::from_value(value).ok()).unwrap_or_default();
        let bytes = kept.bytes();
        let is_sealed = self.sealed(person)?.contains(&kept.digest(person));
        let ready = ready(database, kept, is_sealed).map(Arc::new);
        let mut known = self.known.lock();
        if known.files.len() >= KNOWN_MAX || known.bytes + bytes > KNOWN_MAX_BYTES {
            *known = Known::default();
        }
        known.bytes += bytes;
        known.files.insert(number, (document.revision, ready.clone()));
        Ok(ready)
    }
}

impl ScriptsKept {
    /// What tells these scripts from others.
    #[must_use]
    pub fn version(&self) -> String {
        self.digest_of("").chars().take(32).collect()
    }

    fn digest(&self, person: &Person) -> String {
        self.digest_of(&person.id)
    }

    fn digest_of(&self, person: &str) -> String {
        let mut hasher = blake3::Hasher::new_derive_key("scrinium 2026 scripts that a person has set");
        let texts = self.scripts.iter().flat_map(|(name, text)| [name.as_str(), text]);
        for part in [person, &self.active].into_iter().chain(texts) {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
        }
        hasher.finalize().to_hex().to_string()
    }

    fn bytes(&self) -> usize {
        self.scripts.iter().map(|(name, text)| name.len() + text.len()).sum()
    }
}

/// The active script, compiled. Mail goes as without it where it cannot be.
fn ready(database: &Database, kept: ScriptsKept, is_sealed: bool) -> Option<Ready> {
    if kept.active.is_empty() || kept.bytes() > TEXTS_MAX_BYTES {
        return None;
    }
    let text = kept.scripts.get(&kept.active)?;
    match Script::compile(text.as_bytes(), &script_limits()) {
        Ok(script) => Some(Ready { script: Arc::new(script), others: kept.scripts, is_sealed }),
        Err(error) => {
            tracing::warn!(database = database.name(), script = kept.active, %error, "a Sieve script is not run");
            None
        }
    }
}

fn read(database: &Database) -> Result<Option<(String, ScriptsKept)>, DatabaseError> {
    let document = match database.read(DOCUMENT, &ReadOptions::default(), &KEEPER) {
        Ok(document) => document,
        Err(DatabaseError::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let kept = document.json.to_value().unwrap_or(Value::Null);
    // What somebody has damaged counts as empty, and is written again with the next script.
    Ok(Some((document.revision, serde_json::from_value(kept).unwrap_or_default())))
}

fn check_name(name: &str) -> Result<(), ScriptsError> {
    let is_sound = !name.is_empty()
        && name.chars().count() <= NAME_MAX_CHARACTERS
        // RFC 5804 §1.6
        && !name.chars().any(|c| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}'));
    if is_sound { Ok(()) } else { Err(ScriptsError::Name) }
}

fn check_room(kept: &ScriptsKept) -> Result<(), ScriptsError> {
    if kept.scripts.len() > SCRIPTS_MAX {
        return Err(ScriptsError::TooMany);
    }
    if kept.bytes() > TEXTS_MAX_BYTES { Err(ScriptsError::TooLarge) } else { Ok(()) }
}
