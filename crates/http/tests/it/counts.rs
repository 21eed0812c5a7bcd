//! Numbers: a person who does not see all documents gets none that shows how many are hidden.

use serde_json::{Value, json};

use crate::common::Server;

const DESIGN: &str = "function (doc) { if (doc.n) { emit(doc.n, doc.n); } }";

/// A database with this many open documents and this many that only ada reads, and a list that lets all others read.
async fn filled(server: &Server, database: &str, open: usize, hidden: usize) {
    server.ask("PUT", &format!("/{database}"), ()).await.expect(201);
    let list = json!({"default": {"level": "manager"}});
    server.ask("PUT", &format!("/{database}/_acl"), list).await.expect(201);
    server.ask("PUT", &format!("/{database}/_folder/Inbox"), json!({})).await.expect(201);
    let design = json!({"views": {"n": {"map": DESIGN, "reduce": "_sum"}}});
    server.ask("PUT", &format!("/{database}/_design/d"), design).await.expect(201);
    let index = json!({"index": {"fields": ["n"]}, "ddoc": "m", "name": "n"});
    server.ask("POST", &format!("/{database}/_index"), index).await.expect(200);
    let shown = (0..open).map(|number| json!({"_id": format!("o{number}"), "n": number + 1}));
    let secret = (0..hidden).map(|number| json!({"_id": format!("h{number}"), "n": 100, "Readers": "ada"}));
    let gone = (0..hidden).map(|number| {
        json!({"_id": format!("g{number}"), "_rev": "1-ab", "_deleted": true, "n": 1, "Readers": "ada"})
    });
    let documents: Vec<Value> = secret.chain(shown).collect();
    let bulk = format!("/{database}/_bulk_docs");
    server.ask("POST", &format!("{bulk}?folder=Inbox"), json!({"docs": documents})).await.expect(201);
    let brought = json!({"docs": gone.collect::<Vec<Value>>(), "new_edits": false});
    server.ask("POST", &bulk, brought).await.expect(201);
}

/// All numbers that somebody gets, but for sequences, uids and times.
async fn numbers(server: &Server, database: &str, name: &str) -> Value {
    let get = async |path: &str| {
        server.ask_as(name, "GET", &format!("/{database}{path}"), ()).await.expect(200).json()
    };
    let post = async |path: &str, body: Value| {
        server.ask_as(name, "POST", &format!("/{database}{path}"), body).await.expect(200).json()
    };
    let info = get("").await;
    let of = |json: &Value, members: &[&str]| -> Vec<Value> {
        members.iter().map(|member| json[*member].clone()).collect()
    };
    let rows = |page: &Value| {
        let mut told = of(page, &["total_rows", "offset"]);
        told.push(page["rows"].as_array().unwrap().len().into());
        told
    };
    let listed = get("/_all_docs").await;
    let later = get("/_all_docs?startkey=%22h9%22").await;
    let named = post("/_all_docs", json!({"keys": ["h0", "g0", "o0", "none"]})).await;
    let view = get("/_design/d/_view/n?reduce=false").await;
    let sum = get("/_design/d/_view/n").await;
    let folder = get("/_folder/Inbox").await;
    let folders = get("/_folder").await["folders"][0].clone();
    let members = get("/_folder/Inbox/_members").await;
    let unread = get("/_unread").await;
    let find = json!({"selector": {"n": {"$gt": 0}}, "execution_stats": true});
    let mut found = post("/_find", find).await["execution_stats"].take();
    found.as_object_mut().unwrap().remove("execution_time_ms");
    let plain = json!({"selector": {"x": {"$exists": false}}, "execution_stats": true});
    let mut walked = post("/_find", plain).await["execution_stats"].take();
    walked.as_object_mut().unwrap().remove("execution_time_ms");
    let index = get("/_design/d/_info").await["view_index"].clone();
    let first = get("/_changes?limit=1").await;
    json!({
        "info": of(&info, &["doc_count", "doc_del_count", "sizes", "purge_seq"]),
        "listed": rows(&listed), "later": rows(&later), "named": rows(&named), "view": rows(&view), "sum": sum["rows"],
        "folder": rows(&folder), "folders": of(&folders, &["total", "unread"]),
        "members": members["total"], "unread": unread, "find": found, "walked": walked,
        "index": of(&index, &["entries", "sizes", "errors"]),
        "pending": first["pending"], "purged": get("/_purged_infos").await,
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_do_not_tell_how_many_documents_are_hidden() {
    let server = Server::start().await;
    filled(&server, "few", 3, 1).await;
    filled(&server, "many", 3, 5).await;
    let (few, many) = (numbers(&server, "few", "bob").await, numbers(&server, "many", "bob").await);
    assert_eq!(few, many);
    // What bob sees is counted as if there were nothing else.
    assert_eq!(few["info"], json!([null, null, null, null]));
    assert_eq!(few["listed"], json!([null, 0, 5]));
    assert_eq!(few["later"].as_array().unwrap()[..2], [json!(null), json!(null)]);
    assert_eq!((&few["view"], &few["sum"][0]["value"]), (&json!([3, 0, 3]), &json!(6)));
    assert_eq!((&few["folder"], &few["folders"]), (&json!([3, 0, 3]), &json!([null, null])));
    assert_eq!(few["unread"], json!({"database": null, "folders": null}));
    assert_eq!(few["walked"]["total_docs_examined"], 3);
    // The question is a good one: an administrator gets them all.
    let (few, many) = (numbers(&server, "few", "admin").await, numbers(&server, "many", "admin").await);
    for told in ["info", "listed", "view", "sum", "folder", "folders", "members", "find", "index"] {
        assert_ne!(few[told], many[told], "{told}");
    }
}

/// A mail file has a list, and no document that names readers: its owner gets all numbers, as long as that is so.
#[tokio::test(flavor = "multi_thread")]
async fn where_nothing_is_hidden_everybody_who_reads_is_told_all_numbers() {
    let server = Server::start().await;
    filled(&server, "mail", 4, 0).await;
    let told = numbers(&server, "mail", "bob").await;
    assert_eq!((&told["info"][0], &told["listed"][0]), (&json!(6), &json!(6)));
    assert_eq!((&told["folders"], &told["members"]), (&json!([4, 4]), &json!(4)));
    assert_eq!(told["unread"], json!({"database": 4, "folders": {"Inbox": 4}}));
    server.ask("PUT", "/mail/e", json!({"Readers": ["*"]})).await.expect(201);
    assert_eq!(numbers(&server, "mail", "bob").await["info"][0], 7);
    // Also one that everybody but its reader may not see, or that is gone again.
    let made = server.ask("PUT", "/mail/h", json!({"Readers": ["bob"]})).await.expect(201).json();
    assert_eq!(numbers(&server, "mail", "bob").await["info"][0], Value::Null);
    let revision = made["rev"].as_str().unwrap();
    server.ask("DELETE", &format!("/mail/h?rev={revision}"), ()).await.expect(200);
    assert_eq!(numbers(&server, "mail", "bob").await["info"][0], Value::Null);
    assert_eq!(numbers(&server, "mail", "admin").await["info"][0], 7);
}

/// A manager can do nothing about what is hidden from them; an administrator can, and that is on record.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_hidden_from_managers_is_for_administrators_and_that_is_on_record() {
    let server = Server::start().await;
    filled(&server, "db", 1, 0).await;
    let made = server.ask_as("ada", "PUT", "/db/h0", json!({"Readers": "ada"})).await.expect(201).json();
    let revision = made["rev"].as_str().unwrap();
    server.observed.audited.lock().unwrap().clear();
    for (method, path) in [("GET", "/db/h0".to_owned()), ("DELETE", format!("/db/h0?rev={revision}"))] {
        server.ask_as("bob", method, &path, ()).await.expect(404);
    }
    let purge = json!({"h0": [revision]});
    server.ask_as("bob", "POST", "/db/_purge", purge).await.expect(401);
    assert_eq!(*server.observed.audited.lock().unwrap(), Vec::<String>::new());
    server.ask("DELETE", &format!("/db/h0?rev={revision}"), ()).await.expect(200);
    server.ask_as("ada", "GET", "/db/h0", ()).await.expect(404);
    let audited = server.observed.audited.lock().unwrap().clone();
    assert_eq!(audited, [r#"admin: full access used db {"level":"manager"}"#]);
}
