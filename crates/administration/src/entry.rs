//! The document of the person or group that a request is about.

use scrinium_catalog::Databases;
use scrinium_database::{Access, DatabaseError, Edit, EditMode, ReadOptions, Result, Secret};
use scrinium_directory::{DIRECTORY_DATABASE, OTHER_NAMES, fold_name};
use scrinium_views::OpenDatabase;
use serde_json::{Map, Value};

use crate::request::Request;

/// The field with further addresses of a person.
const ADDRESSES: &str = "Addresses";

/// A document that somebody else changes each time is given up after this number of attempts, until later.
const ATTEMPTS: usize = 8;

static ENTRY: Access = Access::of_the_server("renaming and removing people and groups");

type Document = Map<String, Value>;

/// The document of the directory with this id.
pub(crate) struct Entry<'a> {
    databases: &'a Databases,
    id: &'a str,
}

impl<'a> Entry<'a> {
    pub(crate) const fn new(databases: &'a Databases, id: &'a str) -> Self {
        Self { databases, id }
    }

    /// Takes the new name, so that nobody else gets it.
    pub(crate) fn reserve(&self, new_name: &str) -> Result<()> {
        self.change(|document| add(document, OTHER_NAMES, &[new_name]))
    }

    /// Who goes may not log in any more.
    pub(crate) fn disable(&self) -> Result<()> {
        self.change(|document| {
            document.insert("Disabled".to_owned(), Value::from(true));
        })
    }

    /// The document as a request would leave it; `None` where it is gone.
    pub(crate) fn renamed(&self, request: &Request) -> Result<Option<Document>> {
        let Some(new_name) = &request.new_name else { return Ok(None) };
        let found = match self.database()?.read(self.id, &ReadOptions::default(), &ENTRY) {
            Err(DatabaseError::NotFound { .. }) => return Ok(None),
            found => found?,
        };
        let mut document = found.json.to_object();
        if let Some(document) = &mut document {
            rename_entry(document, request, new_name);
        }
        Ok(document)
    }

    /// The new names take the place of the old ones, which stay as further ones. `false`: the document is gone.
    pub(crate) fn rename(&self, request: &Request) -> Result<bool> {
        let Some(new_name) = &request.new_name else { return Ok(true) };
        let changed = self.change(|document| rename_entry(document, request, new_name));
        match changed {
            Ok(()) => Ok(true),
            Err(DatabaseError::NotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Removes the document, and with it what lets the person in.
    pub(crate) fn remove(&self) -> Result<()> {
        for _ in 0..ATTEMPTS {
            let database = self.database()?;
            let found = match database.read(self.id, &ReadOptions::default(), &ENTRY) {
                Err(DatabaseError::NotFound { .. }) => return Ok(()),
                found => found?,
            };
            let json = serde_json::json!({"_id": self.id, "_rev": found.revision, "_deleted": true});
            let edit = Edit { json: json.to_string().into(), secret: Secret::Remove, ..Edit::default() };
            match database.update_one(edit, EditMode::Interactive, &ENTRY) {
                Err(DatabaseError::Conflict) => {}
                Err(error) => return Err(error),
                Ok(_) => return Ok(()),
            }
        }
        Err(DatabaseError::Conflict)
    }

    fn database(&self) -> Result<OpenDatabase> {
        self.databases.get(DIRECTORY_DATABASE)
    }

    fn change(&self, change: impl Fn(&mut Document)) -> Result<()> {
        for _ in 0..ATTEMPTS {
            let database = self.database()?;
            let found = database.read(self.id, &ReadOptions::default(), &ENTRY)?;
            let unreadable = || DatabaseError::Internal { reason: format!("{} is no object", self.id) };
            let before = found.json.to_object().ok_or_else(unreadable)?;
            let mut after = before.clone();
            change(&mut after);
            if after == before {
                return Ok(());
            }
            let edit = Edit { json: Value::Object(after).to_string().into(), ..Edit::default() };
            match database.update_one(edit, EditMode::Interactive, &ENTRY) {
                Err(DatabaseError::Conflict) => {}
                Err(error) => return Err(error),
                Ok(_) => return Ok(()),
            }
        }
        Err(DatabaseError::Conflict)
    }
}

fn rename_entry(document: &mut Document, request: &Request, new_name: &str) {
    if request.kind.is_of_person() {
        rename_person(document, request, new_name);
    } else {
        rename_group(document, request, new_name);
    }
}

fn rename_person(document: &mut Document, request: &Request, new_name: &str) {
    let old = [text(document, "ShortName")].into_iter().chain(texts(document, "FullName"));
    let mut former: Vec<String> = old.collect();
    document.insert("ShortName".to_owned(), Value::from(new_name));
    let mut full_names = request.new_full_names.clone();
    if full_names.is_empty() {
        let renamed = |name: String| if is_same(&name, &request.name) { new_name.to_owned() } else { name };
        full_names = texts(document, "FullName").into_iter().map(renamed).collect();
    }
    document.insert("FullName".to_owned(), Value::from(full_names.clone()));
    if let Some(new_address) = &request.new_address {
        let old = text(document, "InternetAddress");
        if !old.is_empty() && !old.eq_ignore_ascii_case(new_address) {
            add(document, ADDRESSES, &[&old]);
            former.push(old);
        }
        document.insert("InternetAddress".to_owned(), Value::from(new_address.as_str()));
    }
    let present =
        |name: &str| is_same(name, new_name) || full_names.iter().any(|full_name| is_same(name, full_name));
    keep_former(document, &former, present);
}

fn rename_group(document: &mut Document, request: &Request, new_name: &str) {
    let mut former = vec![text(document, "ListName")];
    document.insert("ListName".to_owned(), Value::from(new_name));
    if let Some(new_address) = &request.new_address {
        former.push(text(document, "InternetAddress"));
        document.insert("InternetAddress".to_owned(), Value::from(new_address.as_str()));
    }
    keep_former(document, &former, |name| is_same(name, new_name));
}

/// Former names stay, and present ones are no former ones.
fn keep_former(document: &mut Document, former: &[String], is_present: impl Fn(&str) -> bool) {
    let former: Vec<&str> =
        former.iter().map(String::as_str).filter(|name| !name.is_empty() && !is_present(name)).collect();
    add(document, OTHER_NAMES, &former);
    let mut names = texts(document, OTHER_NAMES);
    names.retain(|name| !is_present(name));
    document.insert(OTHER_NAMES.to_owned(), Value::from(names));
}

/// Adds texts to a list, unless they stand there.
fn add(document: &mut Document, field: &str, new: &[&str]) {
    let mut list = texts(document, field);
    for text in new {
        if !list.iter().any(|present| is_same(present, text)) {
            list.push((*text).to_owned());
        }
    }
    document.insert(field.to_owned(), Value::from(list));
}

fn text(document: &Document, field: &str) -> String {
    document.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The texts of a field that is a text or a list of texts.
fn texts(document: &Document, field: &str) -> Vec<String> {
    match document.get(field) {
        Some(Value::String(text)) => vec![text.clone()],
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

fn is_same(one: &str, other: &str) -> bool {
    fold_name(one) == fold_name(other)
}
