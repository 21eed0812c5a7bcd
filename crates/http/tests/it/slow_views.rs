//! A view that takes long keeps nobody waiting but those who read it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;

use crate::common::Server;

/// More than the server has threads for requests.
const READERS: usize = 130;

/// Each document takes some time, and the view as a whole seconds.
const SLOW: &str =
    "function (doc) { var until = Date.now() + 100; while (Date.now() < until) {} emit(doc._id, 1) }";

#[tokio::test(flavor = "multi_thread")]
async fn readers_of_a_slow_view_hold_no_threads() {
    let server = Arc::new(Server::start().await);
    server.fill("other", &[json!({"_id": "x"})]).await;
    // A machine that is busy may take longer to ask than the view takes to be built.
    for documents in [30, 60, 120, 240] {
        if reads_while_built(&server, documents).await {
            return;
        }
    }
    panic!("the view was built before all had asked, however large it was");
}

/// Asks for much else while all readers of a view of this many documents wait. False if it was built before they all did.
async fn reads_while_built(server: &Arc<Server>, documents: usize) -> bool {
    let name = format!("slow{documents}");
    let ids: Vec<_> = (0..documents).map(|number| json!({"_id": format!("d{number:03}")})).collect();
    server.fill(&name, &ids).await;
    let views = json!({"views": {"all": {"map": SLOW}}});
    server.ask("PUT", &format!("/{name}/_design/d"), views).await.expect(201);
    let answered = Arc::new(AtomicUsize::new(0));
    let read = || {
        let (server, answered, name) = (Arc::clone(server), Arc::clone(&answered), name.clone());
        async move {
            let rows =
                server.ask("GET", &format!("/{name}/_design/d/_view/all"), ()).await.expect(200).json();
            answered.fetch_add(1, Ordering::Relaxed);
            assert_eq!(rows["total_rows"], documents);
        }
    };
    let readers: Vec<_> = (0..READERS).map(|_| tokio::spawn(read())).collect();
    let database = server.databases.get(&name).unwrap();
    while database.waiting_readers() < READERS && answered.load(Ordering::Relaxed) == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // Whatever else is asked is answered first: documents, other views, the same database.
    server.ask("GET", "/other/x", ()).await.expect(200);
    server.ask("POST", "/other", json!({})).await.expect(201);
    server.ask("POST", &format!("/{name}"), json!({})).await.expect(201);
    server.ask("GET", &format!("/{name}/_all_docs"), ()).await.expect(200);
    let formula =
        json!({"language": "formula", "views": {"all": {"selection": "SELECT @All", "columns": []}}});
    server.ask("PUT", &format!("/other/_design/{name}"), formula).await.expect(201);
    server.ask("GET", &format!("/other/_design/{name}/_view/all"), ()).await.expect(200);
    server.ask("POST", "/other/_find", json!({"selector": {"a": 1}})).await.expect(200);
    let all_waited = answered.load(Ordering::Relaxed) == 0;
    for reader in readers {
        reader.await.unwrap();
    }
    assert_eq!(database.waiting_readers(), 0);
    all_waited
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_who_has_waited_sees_all_there_was_when_they_asked() {
    let server = Server::start().await;
    server.fill("db", &[json!({"_id": "a"})]).await;
    let views = json!({"views": {"all": {"map": "function (doc) { emit(doc._id, null) }"}}});
    server.ask("PUT", "/db/_design/d", views).await.expect(201);
    let index = json!({"index": {"fields": ["n"]}, "name": "n", "ddoc": "n"});
    server.ask("POST", "/db/_index", index).await.expect(200);
    for number in 0..20 {
        let id = format!("n{number:02}");
        server.ask("PUT", &format!("/db/{id}"), json!({"n": number})).await.expect(201);
        let path = format!("/db/_design/d/_view/all?key=%22{id}%22");
        let rows = server.ask("GET", &path, ()).await.expect(200).json();
        assert_eq!(rows["rows"][0]["id"], json!(id));
        let found =
            server.ask("POST", "/db/_find", json!({"selector": {"n": number}})).await.expect(200).json();
        assert_eq!(found["docs"][0]["_id"], json!(id));
    }
    let queries = json!({"queries": [{"key": "a"}, {"key": "n03"}, {"limit": 1}]});
    let answers = server.ask("POST", "/db/_design/d/_view/all/queries", queries).await.expect(200).json();
    let ids: Vec<_> =
        answers["results"].as_array().unwrap().iter().map(|rows| rows["rows"][0]["id"].clone()).collect();
    assert_eq!(ids, ["a", "n03", "a"]);
}
