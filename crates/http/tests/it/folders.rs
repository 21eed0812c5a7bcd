//! Folders and unread marks, which CouchDB does not have.

use serde_json::{Value, json};

use crate::common::Server;

fn columns() -> Value {
    json!([{"title": "Date", "formula": "Date", "sort": "desc"}, {"title": "Size", "formula": "Size", "total": true}])
}

async fn filled() -> Server {
    let server = Server::start().await;
    let memo = |id: &str, date: u32| json!({"_id": id, "Date": date, "Size": 10 * date});
    server.fill("mail", &[memo("a", 1), memo("b", 2), memo("c", 3), memo("d", 4)]).await;
    // Open to everybody, since somebody says so.
    server.ask("PUT", "/mail/_security", json!({})).await.expect(200);
    server.ask("PUT", "/mail/_folder/Inbox", json!({"columns": columns()})).await.expect(201);
    let add = json!({"add": ["b", "a", "c"]});
    server.ask("POST", "/mail/_folder/inbox", add).await.expect(200);
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_is_made_filled_read_and_dropped() {
    let server = filled().await;
    let added = server
        .ask("POST", "/mail/_folder/Inbox", json!({"add": ["a", "d", "none"], "remove": ["b", "b"]}))
        .await;
    added.expect_text(
        200,
        "[{\"ok\":true,\"id\":\"a\",\"uid\":2,\"changed\":false},\n\
         {\"ok\":true,\"id\":\"d\",\"uid\":4,\"changed\":true},\n\
         {\"id\":\"none\",\"error\":\"not_found\",\"reason\":\"missing\"},\n\
         {\"ok\":true,\"id\":\"b\",\"uid\":1,\"changed\":true},\n\
         {\"ok\":true,\"id\":\"b\",\"changed\":false}]\n",
    );
    let page = server.ask("GET", "/mail/_folder/Inbox?limit=2&skip=1", ()).await;
    page.expect_text(
        200,
        "{\"total_rows\":3,\"offset\":1,\"rows\":[\n\
         {\"id\":\"c\",\"key\":[3],\"value\":{\"Date\":3,\"Size\":30},\"uid\":3,\"unread\":true},\n\
         {\"id\":\"a\",\"key\":[1],\"value\":{\"Date\":1,\"Size\":10},\"uid\":2,\"unread\":true}\n]}\n",
    );
    let with = server.ask("GET", "/mail/_folder/INBOX?startkey=[3]&endkey=[3]&include_docs=true", ()).await;
    assert_eq!(with.expect(200).json()["rows"][0]["doc"]["_id"], "c");
    let total = server.ask("GET", "/mail/_folder/Inbox?reduce=true", ()).await.expect(200).json();
    assert_eq!(total["rows"][0]["value"], json!({"count": 3, "totals": {"Size": 80.0}}));

    let made = server.ask("PUT", "/mail/_folder/Projects%5COld", ()).await.expect(201);
    assert!(made.header("location").unwrap().ends_with("/mail/_folder/Projects%5COld"));
    server.ask("PUT", "/mail/_folder/projects%5Cold", ()).await.expect_text(200, "{\"ok\":true}\n");
    let moved = json!({"move": {"to": "Projects\\Old", "ids": ["a", "b"]}});
    server.ask("POST", "/mail/_folder/Inbox", moved).await.expect_text(
        200,
        "[{\"ok\":true,\"id\":\"a\",\"uid\":1,\"changed\":true},\n\
         {\"id\":\"b\",\"error\":\"not_found\",\"reason\":\"The document is not in the folder `Inbox`.\"}]\n",
    );
    let list = server.ask_as("ada", "GET", "/mail/_folder", ()).await.expect(200).json();
    let short: Vec<Value> = list["folders"]
        .as_array()
        .unwrap()
        .iter()
        .map(|folder| json!([folder["name"], folder["total"], folder["unread"], folder["next_uid"]]))
        .collect();
    assert_eq!(short, [json!(["Inbox", 2, 2, 5]), json!(["Projects\\Old", 1, 1, 2])]);
    assert_eq!(list["folders"][0]["columns"], columns());
    assert_eq!(list["folders"][1]["columns"][3]["title"], "Size");

    server.ask("PUT", "/mail/_folder/Projects%5COld", json!({"name": "Done"})).await.expect(200);
    server.ask("DELETE", "/mail/_folder/done", ()).await.expect_text(200, "{\"ok\":true}\n");
    server.ask("GET", "/mail/_folder/done", ()).await.expect_error(
        404,
        "not_found",
        "There is no folder `done`.",
    );
    server.ask("GET", "/mail/a", ()).await.expect(200);
    for operation in ["FOLDER_DEFINE", "FOLDER_ADD", "FOLDER_MOVE", "FOLDER_DELETE", "OPEN_COLLECTION"] {
        assert!(server.statistics.snapshot().operations[operation].count > 0, "{operation}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_was_away_learns_what_came_and_left() {
    let server = filled().await;
    let changes = async |since: &str, more: &str| {
        let path = format!("/mail/_folder/Inbox/_changes?since={since}{more}");
        server.ask("GET", &path, ()).await.expect(200).json()
    };
    let first = changes("0", "&limit=2").await;
    assert_eq!((&first["more"], first["results"].as_array().unwrap().len()), (&json!(true), 2));
    let rest = changes(first["last_seq"].as_str().unwrap(), "").await;
    assert_eq!((&rest["more"], rest["results"].as_array().unwrap().len()), (&json!(false), 1));
    let since = rest["last_seq"].as_str().unwrap();
    let members =
        server.ask("GET", "/mail/_folder/Inbox/_members?since_uid=1&limit=1", ()).await.expect(200).json();
    let [member] = members["members"].as_array().unwrap().as_slice() else { panic!("{members}") };
    assert_eq!((&member["uid"], &member["id"], &member["unread"]), (&json!(2), &json!("a"), &json!(true)));
    assert_eq!((&members["total"], &members["next_uid"]), (&json!(3), &json!(4)));

    let rev = server.ask("GET", "/mail/a", ()).await.json()["_rev"].as_str().unwrap().to_owned();
    server.ask("DELETE", &format!("/mail/a?rev={rev}"), ()).await.expect(200);
    server.ask("POST", "/mail/_folder/Inbox", json!({"remove": ["b"]})).await.expect(200);
    server.ask("POST", "/mail/_folder/Inbox", json!({"add": ["b"]})).await.expect(200);
    let since = changes(since, "").await;
    let found: Vec<Value> = since["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| json!([row["uid"], row["id"], row["removed"]]))
        .collect();
    assert_eq!(found, [json!([2, "a", true]), json!([1, "b", true]), json!([4, "b", null])]);
    // Documents alone are in CouchDB's feed.
    let feed = server.ask("GET", "/mail/_changes", ()).await.expect(200).json();
    let ids: Vec<&Value> = feed["results"].as_array().unwrap().iter().map(|row| &row["id"]).collect();
    assert_eq!(ids, ["b", "c", "d", "a"]);
    assert_eq!(feed["last_seq"], since["last_seq"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_comes_into_a_folder_as_it_is_stored() {
    let server = filled().await;
    server.ask("PUT", "/mail/e?folder=Inbox", json!({"Date": 9})).await.expect(201);
    server.ask("POST", "/mail?folder=inbox", json!({"_id": "f", "Date": 8})).await.expect(201);
    let documents =
        json!({"docs": [{"_id": "g", "Date": 7}, {"_id": "_design/x", "views": {}}, {"_id": "a"}]});
    let stored = server.ask("POST", "/mail/_bulk_docs?folder=Inbox", documents).await.expect(201).json();
    assert_eq!(
        (&stored[0]["ok"], &stored[1]["ok"], &stored[2]["error"]),
        (&json!(true), &json!(true), &json!("conflict"))
    );
    let page = server.ask("GET", "/mail/_folder/Inbox", ()).await.expect(200).json();
    let ids: Vec<&Value> = page["rows"].as_array().unwrap().iter().map(|row| &row["id"]).collect();
    assert_eq!(ids, ["e", "f", "g", "c", "b", "a"]);
    let of_ada = server.ask_as("ada", "GET", "/mail/_unread", ()).await.json();
    assert_eq!(of_ada, json!({"database": 7, "folders": {"Inbox": 6}}));
    server.ask_as("ada", "PUT", "/mail/i?folder=Inbox&read_by=ada", json!({})).await.expect(201);
    let documents = json!({"docs": [{"_id": "j"}]});
    server.ask("POST", "/mail/_bulk_docs?read_by=ada", documents).await.expect(201);
    assert_eq!(server.ask_as("ada", "GET", "/mail/_unread", ()).await.json(), of_ada);
    server.ask_as("bob", "PUT", "/mail/k?read_by=ada", json!({})).await.expect(403);
    server.ask("PUT", "/mail/h?folder=Nowhere", json!({})).await.expect_error(
        404,
        "not_found",
        "There is no folder `Nowhere`.",
    );
    server.ask("GET", "/mail/h", ()).await.expect(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn everybody_has_unread_marks_of_their_own() {
    let server = filled().await;
    let unread = async |name: &str| server.ask_as(name, "GET", "/mail/_unread", ()).await.expect(200).json();
    assert_eq!(unread("ada").await, json!({"database": 4, "folders": {"Inbox": 3}}));
    let marks = json!({"read": ["a", "d", "none"], "unread": ["b"]});
    server.ask_as("ada", "POST", "/mail/_unread", marks).await.expect_text(
        200,
        "[{\"ok\":true,\"id\":\"a\",\"changed\":true},\n{\"ok\":true,\"id\":\"d\",\"changed\":true},\n\
         {\"id\":\"none\",\"error\":\"not_found\",\"reason\":\"missing\"},\n\
         {\"ok\":true,\"id\":\"b\",\"changed\":false}]\n",
    );
    assert_eq!(unread("ada").await, json!({"database": 2, "folders": {"Inbox": 2}}));
    assert_eq!(unread("bob").await, json!({"database": 4, "folders": {"Inbox": 3}}));
    let page = server.ask_as("ada", "GET", "/mail/_folder/Inbox", ()).await.expect(200).json();
    let marked: Vec<Value> =
        page["rows"].as_array().unwrap().iter().map(|row| json!([row["id"], row["unread"]])).collect();
    assert_eq!(marked, [json!(["c", true]), json!(["b", true]), json!(["a", null])]);

    // Bob's edit is unread for Ada, and what Bob has read he has.
    server
        .ask_as("bob", "POST", "/mail/_unread", json!({"folder": "Inbox", "read": true}))
        .await
        .expect_text(200, "{\"ok\":true,\"changed\":3}\n");
    let rev = server.ask("GET", "/mail/a", ()).await.json()["_rev"].clone();
    server.ask_as("bob", "PUT", "/mail/a", json!({"_rev": rev, "Date": 1})).await.expect(201);
    assert_eq!(unread("ada").await, json!({"database": 3, "folders": {"Inbox": 3}}));
    assert_eq!(unread("bob").await, json!({"database": 1, "folders": {"Inbox": 0}}));

    let changes = async |name: &str, since: &str| {
        let path = format!("/mail/_unread/_changes?since={since}");
        let found = server.ask_as(name, "GET", &path, ()).await.expect(200).json();
        let rows = found["results"].as_array().unwrap().iter().map(|row| json!([row["id"], row["unread"]]));
        (rows.collect::<Vec<Value>>(), found["last_seq"].as_str().unwrap().to_owned())
    };
    let (rows, last) = changes("ada", "0").await;
    assert_eq!(rows, [json!(["d", false]), json!(["a", true])]);
    assert_eq!(changes("ada", &last).await.0, Vec::<Value>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_asked_wrongly_of_folders_is_refused() {
    let server = filled().await;
    for (method, path, body, status, error) in [
        ("PUT", "/mail/_folder/%5Cx", json!({}), 400, "illegal_folder_name"),
        ("PUT", "/mail/_folder/x", json!({"columns": 1}), 400, "bad_request"),
        ("PUT", "/mail/_folder/x", json!({"columns": [{"formula": "@No("}]}), 400, "compilation_error"),
        ("PUT", "/mail/_folder/x", json!({"name": "y"}), 404, "not_found"),
        ("POST", "/mail/_folder/Inbox", json!({"ad": []}), 400, "bad_request"),
        ("POST", "/mail/_folder/Inbox", json!({"move": {"to": "x", "ids": []}}), 404, "not_found"),
        ("POST", "/mail/_folder/x", json!({"add": ["a"]}), 404, "not_found"),
        ("POST", "/mail/_unread", json!({"folder": "Inbox"}), 400, "bad_request"),
        ("POST", "/mail/_unread", json!({"folder": "x", "read": true}), 404, "not_found"),
        ("GET", "/mail/_folder/Inbox/_members?limit=x", json!({}), 400, "query_parse_error"),
        ("GET", "/mail/_folder/Inbox/_changes?since=x", json!({}), 400, "bad_request"),
        ("GET", "/mail/_folder/Inbox/x", json!({}), 404, "not_found"),
        ("PATCH", "/mail/_folder/Inbox", json!({}), 405, "method_not_allowed"),
        ("PUT", "/mail/_folder", json!({}), 405, "method_not_allowed"),
        ("DELETE", "/mail/_unread", json!({}), 405, "method_not_allowed"),
    ] {
        let answer = server.ask(method, path, body).await.expect(status);
        assert_eq!(answer.json()["error"], error, "{method} {path}");
    }
    server.ask("PUT", "/mail/_security", json!({"members": {"names": ["ada"]}})).await.expect(200);
    for path in ["/mail/_folder", "/mail/_folder/Inbox", "/mail/_unread"] {
        server.ask_as("bob", "GET", path, ()).await.expect(404);
        server.ask_as("", "GET", path, ()).await.expect(401);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_says_what_it_is_for() {
    let server = filled().await;
    let inbox = || async {
        let list = server.ask("GET", "/mail/_folder", ()).await.expect(200).json();
        let folder = &list["folders"][0];
        json!([folder["name"], folder["kind"], folder["special_use"], folder["total"]])
    };
    assert_eq!(inbox().await, json!(["Inbox", "plain", null, 3]));
    let mail = json!({"kind": "mail", "special_use": "sent", "name": "Sent"});
    server.ask("PUT", "/mail/_folder/inbox", mail).await.expect(200);
    assert_eq!(inbox().await, json!(["Sent", "mail", "sent", 3]));
    // What is not named stays as it is.
    server.ask("PUT", "/mail/_folder/sent", json!({"special_use": null})).await.expect(200);
    server.ask("PUT", "/mail/_folder/sent", json!({"columns": columns()})).await.expect(200);
    assert_eq!(inbox().await, json!(["Sent", "mail", null, 3]));
    for refused in [
        json!({"kind": "Mail"}),
        json!({"kind": null}),
        json!({"special_use": "inbox"}),
        json!({"special_use": 1}),
        json!({"keep_days": -1}),
        json!({"keep_days": 36_501}),
        json!({"keep_days": "30"}),
    ] {
        server.ask("PUT", "/mail/_folder/sent", refused.clone()).await.expect(400);
        server.ask("PUT", "/mail/_folder/new", refused).await.expect(400);
    }
    assert_eq!(inbox().await, json!(["Sent", "mail", null, 3]));
}
