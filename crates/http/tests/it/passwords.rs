//! Passwords that are set are hashed where those of log-ins are: while that takes, nobody else waits.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::join_all;
use scrinium_database::{DatabaseError, Guard, Guarded, Secret, Submission};
use serde_json::{Value, json};

use crate::common::{PEOPLE, Server};

/// Takes the `password` out of a document, and keeps only what was made of it elsewhere.
struct Keeper;

fn password_of(submission: &Submission<'_>) -> Option<String> {
    submission.document.get("password")?.as_str().map(str::to_owned)
}

impl Guard for Keeper {
    fn guards(&self, database: &str) -> bool {
        database == PEOPLE
    }

    fn check(&self, submission: Submission<'_>) -> Result<Guarded, DatabaseError> {
        let secret = match (password_of(&submission), submission.hash) {
            (Some(_), None) => {
                return Err(DatabaseError::Forbidden { reason: "hashed too late".to_owned() });
            }
            (Some(_), Some(hash)) => Secret::Set(hash),
            (None, _) => Secret::Keep,
        };
        let mut document = submission.document;
        document.shift_remove("password");
        Ok(Guarded { document, secret })
    }

    fn clear_secret(&self, submission: &Submission<'_>) -> Result<Option<String>, DatabaseError> {
        Ok(password_of(submission))
    }
}

async fn server() -> Server {
    let server = Server::start().await;
    server.databases.set_guard(Arc::new(Keeper));
    server.ask("PUT", "/people", ()).await.expect(201);
    let list = json!({"default": {"level": "author"}});
    server.ask("PUT", "/people/_acl", list).await.expect(201);
    server.ask("PUT", "/db", ()).await.expect(201);
    server
}

fn secret(server: &Server, id: &str) -> Option<String> {
    let kept = server.databases.get(PEOPLE).unwrap().secret(id).unwrap();
    kept.map(|kept| String::from_utf8_lossy(&kept).into_owned())
}

/// More than there are threads for work on databases, in every way of writing.
async fn set_many(server: &Server) -> Vec<u16> {
    let one = |number: usize| async move {
        let document = json!({"_id": format!("p{number}"), "password": format!("word {number}")});
        let answer = match number % 3 {
            0 => server.ask("POST", "/people", document).await,
            1 => server.ask("POST", "/people/_bulk_docs", json!({"docs": [document]})).await,
            _ => server.ask("PUT", &format!("/people/p{number}"), document).await,
        };
        answer.status.as_u16()
    };
    join_all((0..30).map(one)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_waits_for_passwords_that_are_set() {
    let server = server().await;
    let held = server.people.hashing.lock().await;
    let setting = set_many(&server);
    let others = async {
        for number in 0..20 {
            tokio::time::sleep(Duration::from_millis(10)).await;
            server.ask("PUT", &format!("/db/{number}"), json!({})).await.expect(201);
            server.ask("PUT", &format!("/people/other{number}"), json!({})).await.expect(201);
        }
        assert_eq!(secret(&server, "p2"), None, "nothing is kept that is not hashed");
        drop(held);
    };
    let (statuses, ()) = tokio::join!(setting, others);
    assert_eq!(statuses, [201; 30]);
    for number in 0..30 {
        let kept: String = format!("word {number}").chars().rev().collect();
        assert_eq!(secret(&server, &format!("p{number}")), Some(kept));
        let shown = server.ask("GET", &format!("/people/p{number}"), ()).await.expect(200).json();
        assert_eq!(shown.get("password"), None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_passwords_at_once_are_refused_before_anything_is_stored() {
    let server = server().await;
    server.people.hashing_is_busy.store(true, Ordering::SeqCst);
    let document = json!({"_id": "p", "password": "word"});
    for (method, path, body) in [
        ("PUT", "/people/p", document.clone()),
        ("POST", "/people", document.clone()),
        ("POST", "/people/_bulk_docs", json!({"docs": [{"_id": "q"}, document]})),
    ] {
        let refused = server.ask(method, path, body).await;
        assert_eq!(refused.status, 429, "{}", refused.text());
        assert_eq!(refused.header("retry-after"), Some("1"));
    }
    for id in ["p", "q"] {
        server.ask("GET", &format!("/people/{id}"), ()).await.expect(404);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_sets_their_own_password_sets_one() {
    let server = server().await;
    let person = |id: &str| json!({"_id": id, "password": "word"});
    let body = json!({"docs": [person("a"), person("b")]});
    server.ask_as("ada", "POST", "/people/_bulk_docs", body.clone()).await.expect_error(
        400,
        "bad_request",
        "A request can set one password, your own.",
    );
    server.ask_as("ada", "POST", "/people/_bulk_docs", json!({"docs": [person("a"), {}]})).await.expect(201);
    assert_eq!(secret(&server, "a").as_deref(), Some("drow"));
    let all = server.ask("POST", "/people/_bulk_docs", body).await.expect(201).json();
    assert_eq!((&all[0]["error"], &all[1]["ok"]), (&json!("conflict"), &Value::Bool(true)), "{all}");
}
