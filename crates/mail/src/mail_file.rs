//! Mail databases: each is made for its owner, here and nowhere else.

use scrinium_catalog::Databases;
use scrinium_database::{DatabaseError, InitialAccess, LegalHold, Level, Properties};
use scrinium_directory::{Person, mail_editors_group, mail_readers_group};
use scrinium_views::OpenDatabase;

/// A person's mail database; made, for the person alone, if it is missing. Its words can be searched for.
///
/// # Errors
/// What the database reports.
pub fn open_mail_file(databases: &Databases, person: &Person) -> Result<OpenDatabase, DatabaseError> {
    let database = match databases.get(&person.mail_file) {
        Err(DatabaseError::NotFound { .. }) => {
            let access = mail_file_access(Some(&person.short_name));
            match databases.create(&person.mail_file, &access) {
                // Somebody else made it in this moment.
                Err(DatabaseError::Exists { .. }) => databases.get(&person.mail_file),
                created => created,
            }
        }
        found => found,
    }?;
    let properties = database.properties();
    if !properties.full_text {
        database.change_properties(Properties { full_text: true, ..properties })?;
    }
    Ok(database)
}

/// The legal holds on a person's mail database: while there are any, nothing of theirs may go.
///
/// # Errors
/// What the database reports.
pub fn legal_holds_of(databases: &Databases, person: &Person) -> Result<Vec<LegalHold>, DatabaseError> {
    match databases.get(&person.mail_file) {
        Ok(database) => database.legal_holds(),
        Err(DatabaseError::NotFound { .. }) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Lets those into a person's mail database whom the person names in the directory: its access control list gets entries for their
/// groups, [`mail_readers_group`] and [`mail_editors_group`], unless it has some. Who is in these follows the directory. The database is
/// made if it is missing. Gives whether it has such a list.
///
/// # Errors
/// What the database reports.
pub fn let_delegates_in(databases: &Databases, person: &Person) -> Result<bool, DatabaseError> {
    let (readers, editors) = (mail_readers_group(&person.mail_file), mail_editors_group(&person.mail_file));
    open_mail_file(databases, person)?.change_access_list(|list| {
        list.with_group(&readers, Level::Reader).with_group(&editors, Level::Editor)
    })
}

/// Who may do what in a mail database: its owner everything, others nothing.
#[must_use]
pub fn mail_file_access(owner: Option<&str>) -> InitialAccess {
    owner.map_or(InitialAccess::Closed, |owner| InitialAccess::Owner(owner.to_owned()))
}
