//! `validate_doc_update` over the wire: each way of writing gets CouchDB's answer.

use serde_json::{Value, json};

use crate::common::Server;

const FUNCTION: &str = "function (newDoc, oldDoc, userCtx) {
    if (newDoc.word === 'evil') throw { forbidden: 'no evil, ' + userCtx.name };
    if (newDoc.word === 'private') throw { unauthorized: 'log in' };
    if (newDoc._attachments && newDoc._attachments.bad) throw { forbidden: 'bad attachment' };
    if (newDoc._deleted && oldDoc.keep) throw { forbidden: 'kept' };
}";

#[tokio::test(flavor = "multi_thread")]
async fn each_way_of_writing_is_answered_as_by_couchdb() {
    let server = Server::start().await;
    server.ask("PUT", "/db", ()).await.expect(201);
    let broken = json!({"validate_doc_update": "function ("});
    server.ask("PUT", "/db/_design/broken", broken).await.expect(400);
    server.ask("PUT", "/db/_design/guard", json!({"validate_doc_update": FUNCTION})).await.expect(201);
    let evil = || json!({"_id": "a", "word": "evil"});
    let refused = "no evil, admin";
    server.ask("PUT", "/db/a", evil()).await.expect_error(403, "forbidden", refused);
    server.ask("POST", "/db", evil()).await.expect_error(403, "forbidden", refused);
    server.ask("PUT", "/db/a", json!({"word": "private"})).await.expect_error(401, "unauthorized", "log in");
    let replicated = json!({"_rev": "1-a", "word": "evil"});
    server.ask("PUT", "/db/a?new_edits=false", replicated).await.expect_error(403, "forbidden", refused);
    for new_edits in [true, false] {
        let docs = ["evil", "good"]
            .map(|word| json!({"_id": format!("b-{word}"), "_rev": Value::Null, "word": word}));
        let docs: Vec<Value> = docs
            .into_iter()
            .map(|mut document| {
                document.as_object_mut().unwrap().shift_remove("_rev");
                if !new_edits {
                    document["_rev"] = json!("1-b");
                }
                document
            })
            .collect();
        let answer =
            server.ask("POST", "/db/_bulk_docs", json!({"docs": docs, "new_edits": new_edits})).await;
        let told = answer.expect(201).json();
        let first = &told.as_array().unwrap()[0];
        assert_eq!((&first["error"], &first["reason"]), (&json!("forbidden"), &json!(refused)), "{told}");
    }
    let made = server.ask("PUT", "/db/c", json!({"keep": true})).await.expect(201);
    let revision = made.revision();
    let path = format!("/db/c/bad?rev={revision}");
    server.ask("PUT", &path, ([("content-type", "text/plain")], "hi")).await.expect_error(
        403,
        "forbidden",
        "bad attachment",
    );
    server.ask("DELETE", &format!("/db/c?rev={revision}"), ()).await.expect_error(403, "forbidden", "kept");
    // What was written before the function came cannot be copied past it.
    server.ask("PUT", "/other", ()).await.expect(201);
    server.ask("PUT", "/other/a", evil()).await.expect(201);
    server.ask("PUT", "/other/_design/guard", json!({"validate_doc_update": FUNCTION})).await.expect(201);
    let copied = server.ask("COPY", "/other/a", [("Destination", "b")]).await;
    copied.expect_error(403, "forbidden", refused);
    server.ask("GET", "/db/a", ()).await.expect(404);
}
