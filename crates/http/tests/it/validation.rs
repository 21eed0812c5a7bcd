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

#[tokio::test(flavor = "multi_thread")]
async fn a_formula_refuses_with_its_words() {
    let server = Server::start().await;
    server.ask("PUT", "/db", ()).await.expect(201);
    let design = |formula: &str| json!({"language": "formula", "validate_doc_update": formula});
    let broken = server.ask("PUT", "/db/_design/broken", design("@If(")).await.expect(400);
    assert!(broken.text().contains("validate_doc_update"), "{}", broken.text());
    let formula = "@If($Deleted; @If(@UserName = \"admin\"; @Success; @Failure(\"kept\"));
        Form != \"Memo\"; @Success;
        Subject = \"\"; @Failure(\"A memo has a subject.\");
        @IsAvailable(n) & !@IsNumber(n); @Failure(\"n is a number, \" + @UserName);
        !$IsNew & @GetField(\"$Old.Status\") = \"closed\"; @Failure(\"It is closed.\");
        Odd = \"error\"; 1 / 0;
        Odd = \"nothing\"; \"\";
        @Success)";
    server.ask("PUT", "/db/_design/rules", design(formula)).await.expect(201);
    let put = async |document: Value| server.ask("PUT", "/db/a", document).await;
    put(json!({"Form": "Memo"})).await.expect_error(403, "forbidden", "A memo has a subject.");
    let typed = json!({"form": "Memo", "subject": "x", "N": "seven"});
    put(typed).await.expect_error(403, "forbidden", "n is a number, admin");
    for odd in ["error", "nothing"] {
        put(json!({"Form": "Memo", "Subject": "x", "Odd": odd})).await.expect(403);
    }
    put(json!({"Form": "Note"})).await.expect(201);
    let closed = json!({"Form": "Memo", "Subject": "x", "Status": "closed"});
    let revision = server.ask("PUT", "/db/b", closed.clone()).await.expect(201).revision();
    let mut again = closed;
    again["_rev"] = json!(revision);
    server.ask("PUT", "/db/b", again).await.expect_error(403, "forbidden", "It is closed.");
    server.ask("DELETE", &format!("/db/b?rev={revision}"), ()).await.expect(200);
    // It holds for what replication brings, and for many at once.
    let docs = json!({"docs": [{"_id": "c", "_rev": "1-a", "Form": "Memo"}, {"_id": "d", "_rev": "1-a"}],
        "new_edits": false});
    let told = server.ask("POST", "/db/_bulk_docs", docs).await.expect(201).json();
    assert_eq!(told.as_array().unwrap().len(), 1, "{told}");
    assert_eq!(told[0]["reason"], "A memo has a subject.");
}
