//! People in CouchDB's form: documents of its database `_users`, whose ids begin with `org.couchdb.user:`.
//!
//! ```json
//! {"_id": "org.couchdb.user:ada", "type": "user", "name": "ada", "roles": ["engineers"], "password": "…"}
//! ```
//!
//! Such a document is a person of the directory like any other: the fields of that form are filled in from these, each time
//! it is written, and the password is kept where those of all people are.

use serde_json::Value;

use crate::DirectoryError;
use crate::fields::{Fields, refuse};
use crate::person::PERSON_FORM;

/// What the ids of CouchDB's users begin with.
pub const USERS_PREFIX: &str = "org.couchdb.user:";

/// What CouchDB makes of a password. It cannot be used here, and is not kept.
const DERIVED: [&str; 7] =
    ["password_scheme", "pbkdf2_prf", "derived_key", "salt", "iterations", "password_sha", "simple"];

/// Fills in what a person has, where a document is of CouchDB's form.
///
/// # Errors
/// What is wrong with the document, as CouchDB's own `_design/_auth` sees it.
pub(crate) fn complete(document: &mut Fields) -> Result<(), DirectoryError> {
    let text = |member: &str| document.get(member).and_then(Value::as_str);
    let Some(of_id) = text("_id").and_then(|id| id.strip_prefix(USERS_PREFIX)).map(str::to_owned) else {
        return Ok(());
    };
    if document.get("_deleted").and_then(Value::as_bool) == Some(true) {
        return Ok(());
    }
    match text("type") {
        Some("user") => {}
        Some(other) => return Err(refuse("type", other, "of a document of `_users` it is \"user\"")),
        None => return Err(DirectoryError::Missing { field: "type" }),
    }
    let name = text("name").ok_or(DirectoryError::Missing { field: "name" })?;
    if name != of_id {
        return Err(refuse("name", name, "the document's id is \"org.couchdb.user:\" and the name"));
    }
    let roles = document.get("roles").ok_or(DirectoryError::Missing { field: "roles" })?.clone();
    let texts: Option<Vec<&str>> =
        roles.as_array().and_then(|roles| roles.iter().map(Value::as_str).collect());
    let texts = texts.ok_or(DirectoryError::Type { field: "roles", expected: "a list of texts" })?;
    if let Some(role) = texts.iter().find(|role| role.starts_with('_')) {
        let rule = "no role of a document of `_users` begins with an underscore; an administrator has a document of the \
                    directory's form";
        return Err(refuse("roles", role, rule));
    }
    DERIVED.iter().for_each(|member| drop(document.shift_remove(*member)));
    document.insert("Form".to_owned(), PERSON_FORM.into());
    document.insert("FullName".to_owned(), Value::from(vec![of_id.clone()]));
    document.insert("ShortName".to_owned(), of_id.into());
    document.insert("Roles".to_owned(), roles);
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::prepare;

    fn completed(document: Value) -> Result<Value, DirectoryError> {
        let Value::Object(document) = document else { panic!("not an object") };
        prepare(document).map(|prepared| Value::Object(prepared.document))
    }

    #[test]
    fn a_user_of_couchdb_becomes_a_person() {
        let user = json!({"_id": "org.couchdb.user:ada", "type": "user", "name": "ada", "roles": ["a"],
            "password": "a long password", "derived_key": "00", "salt": "00", "hobby": "engines"});
        let person = completed(user).unwrap();
        let expected = json!({"_id": "org.couchdb.user:ada", "type": "user", "name": "ada", "roles": ["a"],
            "hobby": "engines", "Form": "Person", "FullName": ["ada"], "ShortName": "ada", "Roles": ["a"],
            "MailFile": "mail/ada"});
        assert_eq!(person, expected);
        let gone = json!({"_id": "org.couchdb.user:ada", "_deleted": true});
        assert_eq!(completed(gone.clone()).unwrap(), gone);
    }

    #[test]
    fn what_couchdb_refuses_is_refused() {
        let user = json!({"_id": "org.couchdb.user:ada", "type": "user", "name": "ada", "roles": []});
        completed(user.clone()).unwrap();
        for (member, value) in [
            ("_id", json!("org.couchdb.user:")),
            ("_id", json!("org.couchdb.user:bob")),
            ("type", json!("admin")),
            ("type", Value::Null),
            ("name", json!(7)),
            ("roles", Value::Null),
            ("roles", json!("a")),
            ("roles", json!([7])),
            ("roles", json!(["_admin"])),
            ("Form", json!("Group")),
        ] {
            let mut wrong = user.clone();
            wrong[member] = value.clone();
            // A form of another kind is put right.
            assert_eq!(completed(wrong).is_err(), member != "Form", "{member} {value}");
        }
        for name in ["a b", "ada@example.com"] {
            let id = format!("org.couchdb.user:{name}");
            let wrong = json!({"_id": id, "type": "user", "name": name, "roles": []});
            assert!(completed(wrong).is_err(), "{name}");
        }
    }
}
