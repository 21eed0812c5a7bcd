//! Makes what a script needs besides the users' mail databases: shared databases, views, folders, an address book.

use http::Method;
use scrinium_lab_script::Needs;
use serde_json::{Map, Value, json};

use super::collections::{LAB_DESIGN, own_view, view_name};
use super::connection::Connection;
use super::documents::person_id;
use super::failure::{Failure, FailureKind};
use super::groupware::ADDRESS_BOOK;
use super::http::{HttpDriver, body, folders, part};
use super::{Person, check};

/// People of one `_bulk_docs` request.
const PEOPLE_AT_ONCE: usize = 1000;

/// A script's name for a database: `server!!path`, an ending `.nsf`, `MAIL` or `mail1` for the user's own mail
/// database.
#[must_use]
pub fn database_named(name: &str, person: &Person) -> String {
    let path = name.rsplit("!!").next().unwrap_or(name).replace('\\', "/");
    let path = path.strip_suffix(".nsf").unwrap_or(&path);
    let last = path.rsplit('/').next().unwrap_or(path);
    let own = path.eq_ignore_ascii_case("mail")
        || last.strip_prefix("mail").is_some_and(|number| number == person.number.to_string());
    if own { person.mail_database.clone() } else { path.to_ascii_lowercase() }
}

impl HttpDriver {
    /// Makes what all users share.
    pub(super) async fn make_surroundings(&self, needs: &Needs, people: &[Person]) -> Result<(), Failure> {
        let mut connection = self.preparer();
        if needs.address_book {
            self.make_shared(&mut connection, ADDRESS_BOOK, &[]).await?;
            fill_address_book(&mut connection, people).await?;
        }
        let Some(first) = people.first() else { return Ok(()) };
        let mut views = views_for(needs, first);
        if !views.iter().any(|view| view == "topics") {
            views.push("topics".to_owned());
        }
        for database in &needs.databases {
            let among = if database.personal { people } else { people.get(..1).unwrap_or_default() };
            for person in among {
                let name = database_named(&database.name.of(person.number, &person.name), person);
                if name != person.mail_database {
                    self.make_shared(&mut connection, &name, &views).await?;
                }
            }
        }
        for person in people {
            self.make_replicas(needs, person).await?;
        }
        self.refuse_what_is_missing(&mut connection, needs, first).await
    }

    /// Makes a user's replicas at the edge, if there is one.
    async fn make_replicas(&self, needs: &Needs, person: &Person) -> Result<(), Failure> {
        let Some(mut edge) = self.edge(&person.name) else { return Ok(()) };
        for database in &needs.replicated {
            let name = database.of(person.number, &person.name);
            edge.make(&database_named(&name, person)).await?;
        }
        Ok(())
    }

    /// Makes the views and folders of one user's mail database that the script needs.
    pub(super) async fn make_mail_surroundings(&self, needs: &Needs, person: &Person) -> Result<(), Failure> {
        let views = views_for(needs, person);
        let mut connection = self.preparer();
        self.make_own_views(&mut connection, &person.mail_database, &views).await?;
        if needs.folders.is_empty() || !self.has_folders(&mut connection, &person.mail_database).await? {
            return Ok(());
        }
        for folder in &needs.folders {
            let name = folder.of(person.number, &person.name);
            let path = format!("/{}/_folder/{}", part(&person.mail_database), part(&name));
            let answer = connection.exchange(Method::PUT, &path, Some(body(&json!({}))?)).await?;
            answer.expect(&[200, 201])?;
        }
        Ok(())
    }

    async fn has_folders(&self, connection: &mut Connection, database: &str) -> Result<bool, Failure> {
        Ok(folders(connection, &self.inbox_is_folder, database).await?.is_some())
    }

    async fn refuse_what_is_missing(
        &self,
        connection: &mut Connection,
        needs: &Needs,
        person: &Person,
    ) -> Result<(), Failure> {
        if needs.only_here.is_empty() || self.has_folders(connection, &person.mail_database).await? {
            return Ok(());
        }
        let commands: Vec<String> =
            needs.only_here.iter().map(|(line, name)| format!("{name} (line {line})")).collect();
        Err(Failure::new(
            FailureKind::Missing,
            format!(
                "only Scrinium has what these commands ask for, and this server is another one: {}",
                commands.join(", ")
            ),
        ))
    }

    /// A database that all users may read and write.
    async fn make_shared(
        &self,
        connection: &mut Connection,
        name: &str,
        views: &[String],
    ) -> Result<(), Failure> {
        if Self::make_database(connection, name).await? {
            let everybody =
                json!({"admins": {"names": [], "roles": ["_admin"]}, "members": {"names": [], "roles": []}});
            let path = format!("/{}/_security", part(name));
            let answer = connection.exchange(Method::PUT, &path, Some(body(&everybody)?)).await?;
            answer.expect(&[200, 201, 202, 404, 405, 501])?;
        }
        self.make_own_views(connection, name, views).await
    }

    /// Puts the views into the design document of the laboratory, besides those that it has.
    async fn make_own_views(
        &self,
        connection: &mut Connection,
        database: &str,
        views: &[String],
    ) -> Result<(), Failure> {
        let wanted: Vec<&String> = views.iter().filter(|view| own_view(view).is_some()).collect();
        if wanted.is_empty() {
            return Ok(());
        }
        let path = format!("/{}/{LAB_DESIGN}", part(database));
        let answer = connection.exchange(Method::GET, &path, None).await?.expect(&[200, 404])?;
        let mut design: Map<String, Value> =
            if answer.status.as_u16() == 200 { check::json(&answer)? } else { Map::new() };
        let mut known = match design.remove("views") {
            Some(Value::Object(views)) => views,
            _ => Map::new(),
        };
        if wanted.iter().all(|view| known.contains_key(*view)) {
            return Ok(());
        }
        let language = self.options.view_language;
        for view in wanted {
            if let Some(definition) = own_view(view).map(|view| view.definition(language)) {
                known.insert(view.clone(), definition);
            }
        }
        design.insert("_id".to_owned(), json!(LAB_DESIGN));
        design.insert("language".to_owned(), json!(language.name()));
        design.insert("views".to_owned(), Value::Object(known));
        let answer = connection.exchange(Method::PUT, &path, Some(body(&design)?)).await?;
        answer.expect(&[200, 201, 202, 409]).map(|_| ())
    }
}

/// The views that a user's databases need.
fn views_for(needs: &Needs, person: &Person) -> Vec<String> {
    needs.views.iter().map(|view| view_name(&view.of(person.number, &person.name))).collect()
}

/// Every user as a person whom everybody may look up, without a password.
async fn fill_address_book(connection: &mut Connection, people: &[Person]) -> Result<(), Failure> {
    let path = format!("/{}/_bulk_docs", part(ADDRESS_BOOK));
    for some in people.chunks(PEOPLE_AT_ONCE) {
        let documents: Vec<Value> = some
            .iter()
            .map(|person| {
                json!({"_id": person_id(person), "Form": "Person", "FullName": person.full_name,
                       "ShortName": person.name, "MailFile": person.mail_database})
            })
            .collect();
        let request = body(&json!({"docs": documents}))?;
        // Who is there already is a conflict in his row, and stays.
        connection.exchange(Method::POST, &path, Some(request)).await?.expect(&[201, 202])?;
    }
    Ok(())
}
