//! What a recorder of requests learns about them.

use serde_json::json;

use crate::common::Server;

#[tokio::test(flavor = "multi_thread")]
async fn operations_and_bytes_are_told_with_their_person_and_database() {
    let server = Server::start().await;
    server.ask("PUT", "/mail%2Fada", ()).await.expect(201);
    let security = json!({"members": {"names": ["ada"], "roles": []}, "admins": {"names": [], "roles": []}});
    server.ask("PUT", "/mail%2Fada/_security", security).await.expect(200);
    server.observed.operations.lock().unwrap().clear();
    server.observed.usage.lock().unwrap().clear();

    let put = server.ask_as("ada", "PUT", "/mail%2Fada/a", json!({"n": 1})).await.expect(201);
    let read = server.ask_as("ada", "GET", "/mail%2Fada/a", ()).await.expect(200);
    let head = server.ask_as("ada", "HEAD", "/mail%2Fada/a", ()).await.expect(200);
    assert!(head.text().is_empty());
    let rows = json!({"keys": ["a"]});
    let listed = server.ask_as("ada", "POST", "/mail%2Fada/_all_docs", rows.clone()).await.expect(200);
    // What is refused is an operation, and used nothing.
    server.ask_as("bob", "GET", "/mail%2Fada/a", ()).await.expect(404);
    server.ask_as("ada", "GET", "/nothing/a", ()).await.expect(404);
    server.ask_as("ada", "GET", "/_session", ()).await.expect(200);

    let operations = server.observed.operations.lock().unwrap().clone();
    let expected = [
        "UPDATE_NOTE mail/ada ada",
        "OPEN_NOTE mail/ada ada",
        "OPEN_NOTE mail/ada ada",
        "READ_ENTRIES mail/ada ada",
        "OPEN_NOTE mail/ada bob",
        "OPEN_NOTE nothing ada",
    ];
    assert_eq!(operations, expected);
    // An answer counts when the connection has let go of it, which may be after the client has it.
    for _ in 0..500 {
        if server.observed.usage.lock().unwrap().len() >= 4 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    let mut usage = server.observed.usage.lock().unwrap().clone();
    let mut expected = [
        format!("ada writes mail/ada {} {}", json!({"n": 1}).to_string().len(), put.body.len()),
        format!("ada reads mail/ada 0 {}", read.body.len()),
        "ada reads mail/ada 0 0".to_owned(),
        format!("ada reads mail/ada {} {}", rows.to_string().len(), listed.body.len()),
    ];
    usage.sort();
    expected.sort();
    assert_eq!(usage, expected);
}

/// It was told as `UPDATE_NOTE`, so that a server at work never had a `MAIL_DEPOSIT`.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_into_a_mailbox_is_mail() {
    let server = Server::start().await;
    for database in ["mail.box", "mail2.box", "mailing"] {
        server.ask("PUT", &format!("/{database}"), ()).await.expect(201);
    }
    server.observed.operations.lock().unwrap().clear();
    let memo = json!({"Form": "Memo", "SendTo": ["ada"]});
    server.ask("PUT", "/mail.box/a", memo.clone()).await.expect(201);
    server.ask("POST", "/mail2.box", memo.clone()).await.expect(201);
    server.ask("POST", "/mail.box/_bulk_docs", json!({"docs": [memo.clone()]})).await.expect(201);
    server.ask("POST", "/mailing", memo).await.expect(201);
    let operations = server.observed.operations.lock().unwrap().clone();
    let names: Vec<&str> = operations.iter().filter_map(|told| told.split(' ').next()).collect();
    assert_eq!(names, ["MAIL_DEPOSIT", "MAIL_DEPOSIT", "MAIL_DEPOSIT", "UPDATE_NOTE"]);
}
