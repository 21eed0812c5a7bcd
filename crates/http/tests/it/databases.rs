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
async fn an_administrator_makes_a_database_for_somebody() {
    let server = Server::start().await;
    for name in ["ada", "bob", ""] {
        server.ask_as(name, "PUT", "/films?owner=ada", ()).await.expect(401);
    }
    let long = "a".repeat(257);
    for wrong in ["", "%20ada", "_admin", "%5BHR%5D", "*", "a%0Ab", &long] {
        server.ask("PUT", &format!("/films?owner={wrong}"), ()).await.expect(400);
    }
    server.ask("GET", "/films", ()).await.expect(404);
    server.ask("PUT", "/films?owner=ada", ()).await.expect(201);
    let list = server.ask_as("ada", "GET", "/films/_acl", ()).await.expect(200).json();
    assert_eq!((&list["you"]["level"], &list["default"]["level"]), (&json!("manager"), &json!("no_access")));
    server.ask_as("ada", "PUT", "/films/a", json!({})).await.expect(201);
    server.ask_as("bob", "GET", "/films/a", ()).await.expect(404);
    server.ask_as("ada", "DELETE", "/films", ()).await.expect(401);
    server.ask("DELETE", "/films", ()).await.expect(200);
    let audited = server.observed.audited.lock().unwrap().clone();
    assert_eq!(
        audited,
        [r#"admin: database created films {"owner":"ada"}"#, "admin: database deleted films"]
    );
}

/// What is closed to somebody is as what is not there, whatever they ask, and also to those who have not logged in.
#[tokio::test(flavor = "multi_thread")]
async fn a_closed_database_is_answered_as_one_that_is_not_there() {
    let server = Server::start().await;
    server.ask("PUT", "/mail%2Fada?owner=ada", ()).await.expect(201);
    server.ask("PUT", "/mail%2Fada/a", json!({})).await.expect(201);
    server.ask("PUT", "/closed", ()).await.expect(201);
    for (closed, missing) in [("mail%2Fada", "mail%2Fbea"), ("closed", "absent")] {
        for (name, status) in [("bob", 404), ("", 401)] {
            for route in scrinium_http::routes().iter().filter(|route| route.path.starts_with("/{db}")) {
                for method in route.methods {
                    let verb = if method.method == "*" { "GET" } else { method.method };
                    for verb in [verb, "HEAD"].into_iter().take(if verb == "GET" { 2 } else { 1 }) {
                        let ask = async |database: &str| {
                            let path = crate::matrix::address_of(route.path, database);
                            if verb == "GET" || verb == "HEAD" || verb == "DELETE" {
                                server.ask_as(name, verb, &path, ()).await
                            } else if verb == "COPY" {
                                server.ask_as(name, verb, &path, [("destination", "copied")]).await
                            } else {
                                server.ask_as(name, verb, &path, json!({"docs": []})).await
                            }
                        };
                        let (one, other) = (ask(closed).await, ask(missing).await);
                        let shown = |answer: &crate::common::Answer, database: &str| {
                            let mut headers = answer.headers.clone();
                            headers.remove("date");
                            headers.remove("x-couch-request-id");
                            format!("{} {headers:?} {}", answer.status, answer.text()).replace(database, "DB")
                        };
                        let path = route.path;
                        assert_eq!(shown(&one, closed), shown(&other, missing), "{name:?} {verb} {path}");
                        if path == "/{db}" && verb == "GET" {
                            assert_eq!(one.status, status);
                        }
                    }
                }
            }
        }
    }
    // Who administers the server sees which is which.
    server.ask("GET", "/mail%2Fada", ()).await.expect(200);
    server.ask("GET", "/mail%2Fbea", ()).await.expect(404);
    let asked = json!({"keys": ["mail/ada", "mail/bea"]});
    let infos = server.ask_as("bob", "POST", "/_dbs_info", asked).await.expect(200).json();
    assert_eq!((&infos[0]["error"], &infos[1]["error"]), (&json!("not_found"), &json!("not_found")));
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

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_is_not_offered_is_not_taken_for_a_local_document() {
    let server = Server::start().await;
    for path in ["/_node/_local", "/_node/_local/_system", "/_node/_local/_stats/couchdb"] {
        server.ask("GET", path, ()).await.expect_error(404, "not_found", "Database does not exist.");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partitioned_database_is_not_made_as_another_one() {
    let server = Server::start().await;
    server.ask("PUT", "/db?partitioned=true", ()).await.expect_error(
        501,
        "not_implemented",
        "Partitioned databases are not supported.",
    );
    server.ask("PUT", "/db?partitioned=maybe", ()).await.expect_error(
        400,
        "bad_request",
        "Invalid `partitioned` parameter",
    );
    server.ask("GET", "/db", ()).await.expect(404);
    server.ask("PUT", "/db?partitioned=false", ()).await.expect(201);
    for number in 0..2 {
        server.ask("PUT", &format!("/db/_design/{number}"), serde_json::json!({})).await.expect(201);
    }
    server.ask("PUT", "/db/x", serde_json::json!({})).await.expect(201);
    for (path, total) in
        [("_design_docs", 2), ("_design_docs?limit=0", 2), ("_design_docs?keys=[]", 2), ("_all_docs", 3)]
    {
        let listed = server.ask("GET", &format!("/db/{path}"), ()).await.expect(200).json();
        assert_eq!(listed["total_rows"], total, "{path}");
    }
}
