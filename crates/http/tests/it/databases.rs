//! Databases as wholes, and the server's own pages.

use crate::common::Server;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn a_database_is_made_described_listed_and_dropped() {
    let server = Server::start().await;
    let made = server.ask("PUT", "/mail%2Fada", ()).await.expect_text(201, "{\"ok\":true}\n");
    assert_eq!(made.header("location"), Some("/mail%2Fada"));
    server.ask("PUT", "/mail%2Fada", ()).await.expect_error(
        412,
        "file_exists",
        "The database could not be created, the file already exists.",
    );
    server.ask("PUT", "/people", ()).await.expect(201);
    server.ask("PUT", "/people/ada", json!({"name": "Ada"})).await.expect(201);

    let info = server.ask("GET", "/people", ()).await.expect(200).json();
    assert_eq!(
        (&info["db_name"], &info["doc_count"], &info["doc_del_count"]),
        (&json!("people"), &json!(1), &json!(0))
    );
    assert!(info["update_seq"].as_str().unwrap().starts_with("1-"));
    assert!(info["sizes"]["file"].is_u64() && info["instance_start_time"].is_string());
    let head = server.ask("HEAD", "/people", ()).await.expect_text(200, "");
    assert!(head.header("content-length").is_some());

    server.ask("GET", "/_all_dbs", ()).await.expect_text(200, "[\"mail/ada\",\"people\"]\n");
    server.ask("GET", "/_all_dbs?startkey=%22n%22", ()).await.expect_text(200, "[\"people\"]\n");
    server.ask("GET", "/_all_dbs?descending=true&limit=1", ()).await.expect_text(200, "[\"people\"]\n");
    let infos =
        server.ask("POST", "/_dbs_info", json!({"keys": ["people", "none"]})).await.expect(200).json();
    assert_eq!(infos[0]["info"]["db_name"], "people");
    assert_eq!(infos[1], json!({"key": "none", "error": "not_found"}));

    server.ask("DELETE", "/people", ()).await.expect_text(200, "{\"ok\":true}\n");
    server.ask("GET", "/people", ()).await.expect_error(404, "not_found", "Database does not exist.");
    server.ask("HEAD", "/people", ()).await.expect_text(404, "");
    server.ask("DELETE", "/people", ()).await.expect_error(404, "not_found", "Database does not exist.");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_names_are_listed_in_pieces() {
    let server = Server::start().await;
    let names: Vec<String> = (0..1100).map(|number| format!("d{number:05}")).collect();
    for name in &names {
        server.databases.create(name, &scrinium_database::InitialAccess::Everybody).unwrap();
    }
    let listed = server.ask("GET", "/_all_dbs", ()).await.expect(200).json();
    assert_eq!(listed, json!(names));
    let mut backwards = names;
    backwards.reverse();
    let listed = server.ask("GET", "/_all_dbs?descending=true&skip=2&limit=900", ()).await.expect(200).json();
    assert_eq!(listed, json!(backwards[2..902]));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_describes_itself() {
    let server = Server::start().await;
    let welcome = server.ask_as("", "GET", "/", ()).await.expect(200);
    assert_eq!(welcome.json()["couchdb"], "Welcome");
    assert_eq!(welcome.header("content-type"), Some("application/json"));
    assert_eq!(welcome.header("cache-control"), Some("must-revalidate"));
    assert_eq!(welcome.header("server"), Some("Scrinium"));
    assert_eq!(welcome.header("x-couch-request-id").unwrap().len(), 10);
    server.ask_as("", "GET", "/_up", ()).await.expect_text(200, "{\"status\":\"ok\",\"seeds\":{}}\n");
    let uuids = server.ask("GET", "/_uuids?count=3", ()).await.expect(200).json();
    let uuids = uuids["uuids"].as_array().unwrap();
    assert!(uuids.len() == 3 && uuids.iter().all(|uuid| uuid.as_str().unwrap().len() == 32));
    assert!(uuids.is_sorted_by(|one, other| one.as_str() < other.as_str()));
    server.ask("GET", "/_active_tasks", ()).await.expect_text(200, "[]\n");
    assert!(server.ask("GET", "/_membership", ()).await.expect(200).json()["all_nodes"].is_array());
    server.ask("GET", "/_node/_local/_stats", ()).await.expect(200);
    let metrics = server.ask("GET", "/_node/_local/_prometheus", ()).await.expect(200).text();
    assert!(metrics.contains("http_requests"), "{metrics}");
    let answer = server.ask("POST", "/_console", json!({"command": "show who"})).await.expect(200).json();
    assert_eq!(answer, json!({"ok": true, "text": "admin\n", "data": null}));
    server.ask("POST", "/_console", json!({"command": "x"})).await.expect_error(
        400,
        "bad_request",
        "unknown command: x",
    );
}
