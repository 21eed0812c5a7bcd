//! What is taken as a request, and what is not.

use scrinium_administration::{NewRequest, RequestError, RequestKind, RequestState};
use scrinium_directory::{DIRECTORY_DATABASE, Found, NameLookup};
use serde_json::json;

use crate::common::Server;

fn rename(name: &str, new: &str) -> NewRequest {
    let mut order = NewRequest::new(RequestKind::RenamePerson, name, "admin");
    order.new_name = Some(new.to_owned());
    order
}

#[test]
fn what_cannot_be_done_is_refused_and_changes_nothing() {
    let folder = scrinium_fault::quick_folder();
    let server = Server::open(folder.path());
    server.people();
    server.put(
        DIRECTORY_DATABASE,
        &json!({"_id": "person:root", "Form": "Person", "ShortName": "root",
        "FullName": ["Root"], "Roles": ["_admin"]}),
    );
    server.put(
        DIRECTORY_DATABASE,
        &json!({"_id": "org.couchdb.user:cli", "type": "user", "name": "cli", "roles": []}),
    );
    let refused = |order: &NewRequest| server.requests.order(order).unwrap_err();
    assert!(matches!(refused(&rename("nobody", "x")), RequestError::Nobody(_)));
    assert!(matches!(refused(&rename("sales", "x")), RequestError::OtherKind { .. }));
    assert!(matches!(refused(&rename("ada", "bob")), RequestError::Taken(_)));
    assert!(matches!(refused(&rename("ada", "ada")), RequestError::Same(_)));
    assert!(matches!(refused(&rename("ada", " ")), RequestError::NoNewName));
    assert!(matches!(refused(&rename("cli", "x")), RequestError::UsersForm(_)));
    let removal = NewRequest::new(RequestKind::RemovePerson, "root", "admin");
    assert!(matches!(refused(&removal), RequestError::Administrator(_)));
    let mut field = rename("ada", "adele");
    field.fields = vec!["_id".to_owned()];
    assert!(matches!(refused(&field), RequestError::Field(_)));
    assert!(server.requests.list().unwrap().is_empty());

    // What the directory itself refuses has changed nothing.
    let before = server.get(DIRECTORY_DATABASE, "person:ada");
    assert!(matches!(refused(&rename("ada", "a b")), RequestError::Entry(_)));
    assert_eq!(server.get(DIRECTORY_DATABASE, "person:ada"), before);
    server.requests.order(&rename("ada", "adele")).unwrap();
    assert!(matches!(refused(&rename("ada", "c")), RequestError::UnderWay(_)));
    server.store.close().unwrap();
}

#[test]
fn a_former_name_is_nobody_elses_and_a_group_is_renamed_everywhere() {
    let folder = scrinium_fault::quick_folder();
    let server = Server::open(folder.path());
    server.people();
    server.put(
        "db",
        &json!({"_id": "d", "Readers": ["sales"], "Reviewers": ["Sales", "bob"], "Other": "sales"}),
    );
    let mut order = NewRequest::new(RequestKind::RenameGroup, "sales", "admin");
    order.new_name = Some("Field Sales".to_owned());
    order.fields = vec!["Reviewers".to_owned()];
    server.requests.order(&order).unwrap();
    server.requests.order(&rename("ada", "adele")).unwrap();
    let handle = server.requests.start().unwrap();
    let over = || server.requests.list().unwrap().iter().all(|request| request.state == RequestState::Done);
    scrinium_fault::wait_until("the requests", std::time::Duration::from_secs(60), over);
    handle.stop();
    let document = server.get("db", "d").unwrap();
    assert_eq!(document["Readers"], json!(["Field Sales"]));
    assert_eq!(document["Reviewers"], json!(["Field Sales", "bob"]));
    assert_eq!(document["Other"], json!("sales"));
    assert_eq!(server.get(DIRECTORY_DATABASE, "group:all").unwrap()["Members"][0], json!("Field Sales"));
    assert!(matches!(server.directory.find("sales"), Found::Group(_)));
    let taken =
        json!({"_id": "person:new", "Form": "Person", "ShortName": "ada", "FullName": ["Another Ada"]});
    let edit = scrinium_database::Edit { json: taken.to_string().into(), ..Default::default() };
    let database = server.database(DIRECTORY_DATABASE);
    let refused = database.update_one(edit, scrinium_database::EditMode::Interactive, &crate::common::SERVER);
    assert!(refused.is_err(), "somebody else got a former name");
    server.store.close().unwrap();
}
