//! `_purge`, and what is remembered of it.

use serde_json::{Value, json};

use crate::common::Server;

#[tokio::test(flavor = "multi_thread")]
async fn purged_leaves_are_gone_everywhere_counted_and_remembered() {
    let server = Server::start().await;
    server.ask("PUT", "/db", ()).await.expect(201);
    server.ask("PUT", "/db/_folder/Inbox", json!({})).await.expect(201);
    let view = json!({"views": {"all": {"map": "function (doc) { emit(doc._id, doc.n); }"}}});
    server.ask("PUT", "/db/_design/d", view).await.expect(201);
    let docs: Vec<Value> = (0..4).map(|n| json!({"_id": format!("d{n}"), "_rev": "1-a", "n": n})).collect();
    let conflict = json!({"_id": "d0", "_rev": "1-b", "n": 10});
    let docs = [docs, vec![conflict]].concat();
    let docs = json!({"docs": docs, "new_edits": false});
    server.ask("POST", "/db/_bulk_docs?folder=Inbox", docs).await.expect(201);
    let rows = async |path: &str| {
        let rows = server.ask("GET", path, ()).await.expect(200).json();
        rows["rows"].as_array().unwrap().iter().map(|row| row["id"].clone()).collect::<Vec<Value>>()
    };
    let view = "/db/_design/d/_view/all";
    assert_eq!(rows(view).await, ["d0", "d1", "d2", "d3"]);
    let before = server.ask("GET", "/db", ()).await.json();

    let wanted = json!({"d0": ["1-b", "9-z"], "d1": ["1-a"], "d2": ["9-z"], "none": ["1-a"]});
    let purged = server.ask("POST", "/db/_purge", wanted).await.expect(201).json();
    let told = json!({"d0": ["1-b"], "d1": ["1-a"], "d2": [], "none": []});
    assert_eq!(purged, json!({"purge_seq": null, "purged": told}));
    // The leaf that is left wins, with what it says.
    assert_eq!(server.ask("GET", "/db/d0?conflicts=true", ()).await.expect(200).json()["n"], 0);
    server.ask("GET", "/db/d1", ()).await.expect(404);
    server.ask("GET", "/db/d1?rev=1-a", ()).await.expect(404);
    assert_eq!(rows(view).await, ["d0", "d2", "d3"]);
    assert_eq!(rows("/db/_folder/Inbox").await.len(), 3);
    let info = server.ask("GET", "/db", ()).await.json();
    let count = |info: &Value| info["doc_count"].as_u64().unwrap();
    assert_eq!((count(&info) + 1, &info["purge_seq"]), (count(&before), &json!("2")));
    let infos = server.ask("GET", "/db/_purged_infos", ()).await.expect(200).json();
    let expected = json!([{"id": "d1", "revs": ["1-a"]}, {"id": "d0", "revs": ["1-b"]}]);
    assert_eq!(infos, json!({"purged_infos": expected}));

    // Replication may bring it again.
    let again = json!({"docs": [{"_id": "d1", "_rev": "1-a", "n": 1}], "new_edits": false});
    server.ask("POST", "/db/_bulk_docs", again).await.expect(201);
    server.ask("GET", "/db/d1?rev=1-a", ()).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn as_many_purged_documents_are_remembered_as_is_set() {
    let server = Server::start().await;
    server.ask("PUT", "/db", ()).await.expect(201);
    let path = "/db/_purged_infos_limit";
    server.ask("GET", path, ()).await.expect_text(200, "1000\n");
    for wrong in ["0", "-1", "1.5", "\"a\"", "100001", "{}"] {
        server.ask("PUT", path, (&[][..], wrong)).await.expect(400);
    }
    server.ask_as("ada", "PUT", path, (&[][..], "5")).await.expect(404);
    let docs: Vec<Value> = (0..6).map(|n| json!({"_id": format!("d{n}"), "_rev": "1-a"})).collect();
    server.ask("POST", "/db/_bulk_docs", json!({"docs": docs, "new_edits": false})).await.expect(201);
    let remembered = async || {
        let infos = server.ask("GET", "/db/_purged_infos", ()).await.expect(200).json();
        infos["purged_infos"]
            .as_array()
            .unwrap()
            .iter()
            .map(|info| info["id"].clone())
            .collect::<Vec<Value>>()
    };
    let purge = async |ids: &[&str]| {
        let wanted: serde_json::Map<String, Value> =
            ids.iter().map(|id| ((*id).to_owned(), json!(["1-a"]))).collect();
        server.ask("POST", "/db/_purge", Value::Object(wanted)).await.expect(201);
    };
    purge(&["d0", "d1", "d2"]).await;
    server.ask("PUT", path, (&[][..], "2")).await.expect_text(200, "{\"ok\":true}\n");
    server.ask("GET", path, ()).await.expect_text(200, "2\n");
    assert_eq!(remembered().await, ["d2", "d1"]);
    purge(&["d3"]).await;
    purge(&["d4"]).await;
    assert_eq!(remembered().await, ["d4", "d3"]);
    server.ask("PUT", path, (&[][..], "3")).await.expect(200);
    purge(&["d5"]).await;
    assert_eq!(remembered().await, ["d5", "d4", "d3"]);
    assert_eq!(server.ask("GET", "/db", ()).await.json()["purge_seq"], "6");
}
