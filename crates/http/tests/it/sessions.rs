//! Who asks, and what they may.

use http::StatusCode;
use scrinium_maintenance::{CompactOptions, Compactor};
use serde_json::json;

use crate::common::{PASSWORD, Server, basic};

const NOT_KNOWN: &str = "Name or password is incorrect.";

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_opened_used_and_closed() {
    let server = Server::start().await;
    let opened = server.ask_as("", "POST", "/_session", json!({"name": "bob", "password": PASSWORD})).await;
    let cookie = opened.header("set-cookie").unwrap().to_owned();
    opened.expect_text(200, "{\"ok\":true,\"name\":\"bob\",\"roles\":[\"editor\"]}\n");
    assert!(
        cookie.contains("; HttpOnly") && cookie.contains("; SameSite=") && !cookie.contains("Secure"),
        "{cookie}"
    );
    let token = cookie.split(';').next().unwrap();
    let shown = server.ask_as("", "GET", "/_session", [("cookie", token)]).await.expect(200).json();
    assert_eq!(shown["userCtx"], json!({"name": "bob", "roles": ["editor"]}));
    assert_eq!(shown["info"]["authenticated"], "cookie");
    let closed = server.ask_as("", "DELETE", "/_session", [("cookie", token)]).await;
    assert!(closed.header("set-cookie").unwrap().starts_with("AuthSession=; "));
    closed.expect_text(200, "{\"ok\":true}\n");
    let nobody = server.ask_as("", "GET", "/_session", [("cookie", token)]).await.expect(200).json();
    assert_eq!(nobody["userCtx"], json!({"name": null, "roles": []}));

    let form = ([("content-type", "application/x-www-form-urlencoded")], "name=ada&password=secret");
    server.ask_as("", "POST", "/_session", form).await.expect(200);
    server.ask_as("", "POST", "/_session", json!({"name": "ada", "password": "x"})).await.expect_error(
        401,
        "unauthorized",
        NOT_KNOWN,
    );
    let good = json!({"name": "ada", "password": PASSWORD});
    let led = server.ask_as("", "POST", "/_session?next=/db", good.clone()).await.expect(302);
    assert_eq!(led.header("location"), Some("/db"));
    server.ask_as("", "POST", "/_session?next=//evil.example", good).await.expect(400);
    server.ask_as("", "POST", "/_session", ([("content-type", "image/gif")], "x")).await.expect(415);
    server.ask_as("", "POST", "/_session", json!({"name": "ada"})).await.expect_error(
        400,
        "bad_request",
        "request body must contain a password",
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_reads_without_saying_who_they_are() {
    let server = Server::start().await;
    server.fill("db", &[json!({"_id": "a"})]).await;
    for path in ["/db", "/db/a", "/db/_changes", "/_all_dbs", "/_stats", "/none", "/metrics"] {
        let refused = server.ask_as("", "GET", path, ()).await;
        assert!(refused.header("www-authenticate").unwrap().starts_with("Basic realm="));
        refused.expect_error(401, "unauthorized", "Authentication required.");
    }
    let named = server.ask_as("", "GET", "/db", [("x-couchdb-www-authenticate", "Cookie")]).await;
    assert_eq!(named.header("www-authenticate"), Some("Cookie"));
    let wrong = server.ask_as("", "GET", "/db", [("authorization", basic("ada", "wrong").as_str())]).await;
    wrong.expect_error(401, "unauthorized", NOT_KNOWN);
    let broken = server.ask_as("", "GET", "/db", [("authorization", "Basic %%%")]).await;
    assert_eq!(broken.status, StatusCode::UNAUTHORIZED);
    // A page that has a browser ask for the password.
    server.ask_as("", "GET", "/_session", ()).await.expect(200);
    let asked = server.ask_as("", "GET", "/_session?basic=true", ()).await;
    asked.expect_error(401, "unauthorized", "Please login.");
    server.ask("GET", "/_session?basic=true", ()).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_databases_security_is_kept() {
    let server = Server::start().await;
    server.fill("db", &[json!({"_id": "a"})]).await;
    // Closed as it is made, to all but administrators of the server, in CouchDB's words.
    let closed = json!({"admins": {"roles": ["_admin"]}, "members": {"roles": ["_admin"]}});
    assert_eq!(server.ask("GET", "/db/_security", ()).await.expect(200).json(), closed);
    server.ask_as("ada", "GET", "/db/a", ()).await.expect(404);
    server.ask_as("ada", "PUT", "/db/c", json!({})).await.expect(404);
    // No members: everybody who is known.
    server.ask("PUT", "/db/_security", json!({})).await.expect(200);
    server.ask_as("ada", "GET", "/db/a", ()).await.expect(200);
    let security =
        json!({"admins": {"names": ["ada"], "roles": []}, "members": {"names": [], "roles": ["editor"]}});
    server.ask_as("ada", "PUT", "/db/_security", security.clone()).await.expect(401);
    server.ask("PUT", "/db/_security", security.clone()).await.expect_text(200, "{\"ok\":true}\n");
    assert_eq!(server.ask_as("ada", "GET", "/db/_security", ()).await.expect(200).json(), security);
    server.ask_as("bob", "PUT", "/db/b", json!({})).await.expect(201);
    let design = json!({"views": {}});
    let refused = server.ask_as("bob", "PUT", "/db/_design/d", design.clone()).await;
    refused.expect_error(401, "unauthorized", "You are not a db or server admin.");
    server.ask_as("ada", "PUT", "/db/_design/d", design).await.expect(201);
    let bulk = json!({"docs": [{"_id": "c"}, {"_id": "_design/e"}]});
    let rows = server.ask_as("bob", "POST", "/db/_bulk_docs", bulk).await.expect(201).json();
    assert_eq!(rows[0]["ok"], true);
    let refused =
        json!({"id": "_design/e", "error": "unauthorized", "reason": "You are not a db or server admin."});
    assert_eq!(rows[1], refused);
    server.ask_as("bob", "POST", "/db", json!({"_id": "_design/f"})).await.expect(401);

    let members = json!({"members": {"names": ["ada"]}});
    server.ask("PUT", "/db/_security", members).await.expect(200);
    let refused = server.ask_as("bob", "GET", "/db/a", ()).await;
    refused.expect_error(404, "not_found", "Database does not exist.");
    server.ask_as("bob", "GET", "/db", ()).await.expect(404);
    server.ask_as("ada", "GET", "/db/a", ()).await.expect(200);
    for wrong in [json!([]), json!({"admins": {"names": "x"}}), json!({"members": 1})] {
        server.ask("PUT", "/db/_security", wrong).await.expect(400);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn some_things_are_for_administrators() {
    let server = Server::start().await;
    server.ask("PUT", "/db", ()).await.expect(201);
    for (method, path) in [
        ("PUT", "/other"),
        ("DELETE", "/db"),
        ("GET", "/_all_dbs"),
        ("GET", "/_stats"),
        ("GET", "/metrics"),
        ("GET", "/_active_tasks"),
        ("POST", "/_console"),
    ] {
        let refused = server.ask_as("ada", method, path, ()).await;
        refused.expect_error(401, "unauthorized", "You are not a server admin.");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_are_kept() {
    let server = Server::start().await;
    server.ask("PUT", "/db", ()).await.expect(201);
    // Everybody edits, and nobody manages.
    server.ask("PUT", "/db/_security", json!({})).await.expect(200);
    server.ask("GET", "/db/_revs_limit", ()).await.expect_text(200, "1000\n");
    server.ask("PUT", "/db/_revs_limit", (&[][..], "7")).await.expect_text(200, "{\"ok\":true}\n");
    server.ask("GET", "/db/_revs_limit", ()).await.expect_text(200, "7\n");
    server.ask("PUT", "/db/_revs_limit", (&[][..], "0")).await.expect(400);
    server.ask_as("ada", "PUT", "/db/_revs_limit", (&[][..], "9")).await.expect(401);
    let logged = |server: &'static str| json!({"logged": server == "on", "full_text": false});
    assert_eq!(server.ask("GET", "/db/_properties", ()).await.expect(200).json(), logged("on"));
    assert_eq!(server.ask("PUT", "/db/_properties", logged("off")).await.expect(200).json(), logged("off"));
    server.ask("PUT", "/db/unlogged", json!({"a": 1})).await.expect(201);
    assert_eq!(server.ask("PUT", "/db/_properties", json!({})).await.expect(200).json(), logged("off"));
    server.ask("PUT", "/db/_properties", json!({"logged": 1})).await.expect(400);
    server.ask("PUT", "/db/_properties", json!({"logging": true})).await.expect(400);
    server.ask_as("ada", "PUT", "/db/_properties", logged("on")).await.expect(401);
    let committed = server.ask("POST", "/db/_ensure_full_commit", json!({})).await.expect(201).json();
    assert_eq!(committed["ok"], true);
    server.ask("POST", "/db/_compact", json!({})).await.expect_text(202, "{\"ok\":true}\n");
    server.ask("POST", "/db/_compact", ()).await.expect(415);
    server.ask("POST", "/db/_purge", json!({})).await.expect(201);
    server.ask_as("ada", "POST", "/db/_purge", json!({})).await.expect(401);
    server.ask("POST", "/db/_compact/none", json!({})).await.expect(404);
    let view = json!({"views": {"v": {"map": "function (doc) { emit(doc.n) }"}}});
    server.ask("PUT", "/db/_design/d", view).await.expect(201);
    server.ask("POST", "/db/_compact/d", json!({})).await.expect_text(202, "{\"ok\":true}\n");
    server.ask_as("ada", "POST", "/db/_compact/d", json!({})).await.expect(401);
}

#[tokio::test(flavor = "multi_thread")]
async fn compaction_purges_what_is_old_and_tells_of_it_as_couchdb_does() {
    let server = Server::start().await;
    let purge_after = std::time::Duration::from_millis(1);
    Compactor::of(&server.databases).set_options(CompactOptions { purge_after });
    server.ask("PUT", "/db", ()).await.expect(201);
    let made = server.ask("PUT", "/db/a", json!({"n": 1})).await.expect(201).json();
    let path = format!("/db/a?rev={}", made["rev"].as_str().unwrap());
    let gone = server.ask("DELETE", &path, ()).await.expect(200).json();
    let info = server.ask("GET", "/db", ()).await.expect(200).json();
    assert_eq!((&info["purge_seq"], &info["doc_del_count"]), (&json!("0"), &json!(1)));
    assert!(info["sizes"]["active"].as_u64().unwrap() <= info["sizes"]["file"].as_u64().unwrap());
    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    server.ask("POST", "/db/_compact", json!({})).await.expect(202);
    let info = loop {
        let info = server.ask("GET", "/db", ()).await.expect(200).json();
        if info["purge_seq"] == "1" && info["compact_running"] == false {
            break info;
        }
    };
    assert_eq!(info["doc_del_count"], 0);
    let purged = server.ask("GET", "/db/_purged_infos", ()).await.expect(200).json();
    assert_eq!(purged, json!({"purged_infos": [{"id": "a", "revs": [gone["rev"]]}]}));
    let changes = server.ask("GET", "/db/_changes", ()).await.expect(200).json();
    assert_eq!((&changes["results"], &changes["last_seq"]), (&json!([]), &info["update_seq"]));
}
