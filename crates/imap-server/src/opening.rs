//! Who may open the mail of somebody else in that one's name.

use std::sync::Arc;

use scrinium_credentials::{Answer as Denial, Protocol};
use scrinium_directory::{ADMINISTRATOR_ROLE, Found, LoginError, NameLookup, Person};

/// The role of a person who may. An administrator of the server gives it; it is in no other role.
pub const OPENING_ROLE: &str = "_open_mail";

/// Who opens whose mail, by this name. `None`: their own.
///
/// # Errors
/// The same whether there is nobody of this name or only nobody whose mail they may open.
pub(crate) fn opened(
    directory: &impl NameLookup,
    by: &Person,
    name: &str,
) -> Result<Option<Arc<Person>>, LoginError> {
    match directory.find(name) {
        Found::Person(of) if of.id == by.id => Ok(None),
        Found::Person(of) if may_open(by, &of) => Ok(Some(of)),
        _ => {
            tracing::warn!(by = by.short_name, ?name, "somebody may not open the mail of somebody else");
            Err(LoginError::Denied(Denial::NotAsOther, Protocol::Imap))
        }
    }
}

/// Who reads the mail of an administrator can become one: that is for administrators alone.
pub(crate) fn may_open(by: &Person, of: &Person) -> bool {
    let is_privileged = of.roles.iter().any(|role| role.starts_with('_'));
    by.has_role(OPENING_ROLE) && (!is_privileged || by.has_role(ADMINISTRATOR_ROLE))
}
