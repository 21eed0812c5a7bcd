//! Earlier bodies of documents, where a database keeps them.

use serde_json::json;

use crate::common::Server;

const JSON: [(&str, &str); 1] = [("accept", "application/json")];

#[tokio::test(flavor = "multi_thread")]
async fn earlier_revisions_are_listed_read_copied_and_purged() {
    let server = Server::start().await;
    server.ask("PUT", "/db", ()).await.expect(201);
    server.ask("PUT", "/db/_properties", json!({"history_revisions": 2})).await.expect(200);
    let mut revisions: Vec<String> = Vec::new();
    for number in 0..4 {
        let data = ["QUFB", "QUJC", "QUND", "QURE"][number];
        let attachment = json!({"a.txt": {"content_type": "text/plain", "data": data}});
        let rev = revisions.last().map_or_else(String::new, |rev| format!("?rev={rev}"));
        let body = json!({"n": number, "_attachments": attachment});
        let answer = server.ask("PUT", &format!("/db/a{rev}"), body).await.expect(201).json();
        revisions.push(answer["rev"].as_str().unwrap().to_owned());
    }
    let info = server.ask("GET", "/db/a?revs_info=true", ()).await.expect(200).json();
    let status = |place: usize| info["_revs_info"][place]["status"].as_str().unwrap().to_owned();
    assert_eq!(
        (0..4).map(status).collect::<Vec<_>>(),
        ["available", "available", "available", "missing"],
        "{info}"
    );
    for (place, revision) in revisions.iter().enumerate() {
        let path = format!("/db/a?rev={revision}&attachments=true");
        let answer = server.ask("GET", &path, (&JSON[..], String::new())).await;
        if place == 0 {
            assert_eq!(answer.status, 404);
            continue;
        }
        let document = answer.expect(200).json();
        assert_eq!((&document["n"], &document["_rev"]), (&json!(place), &json!(revision)));
        let attached = server.ask("GET", &format!("/db/a/a.txt?rev={revision}"), ()).await.expect(200);
        assert_eq!(attached.text().len(), 3);
    }
    let open = format!("/db/a?open_revs=%5B%22{}%22,%22{}%22%5D", revisions[1], revisions[0]);
    let open = server.ask("GET", &open, (&JSON[..], String::new())).await.expect(200).json();
    assert_eq!((&open[0]["ok"]["n"], &open[1]["missing"]), (&json!(1), &json!(revisions[0])));
    // Back to what it was.
    let path = format!("/db/a?rev={}", revisions[1]);
    let headers = [("destination", format!("a?rev={}", revisions[3]))];
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    server.ask("COPY", &path, (&headers[..], String::new())).await.expect(201);
    let now = server.ask("GET", "/db/a", ()).await.expect(200).json();
    assert_eq!(now["n"], 1);
    server.ask("POST", "/db/_purge", json!({"a": [now["_rev"]]})).await.expect(201);
    for revision in &revisions {
        assert_eq!(server.ask("GET", &format!("/db/a?rev={revision}"), ()).await.status, 404);
    }
}

/// Who may read a document now was not always named by it, and its earlier bodies stay closed to them in every way of asking.
#[tokio::test(flavor = "multi_thread")]
async fn an_earlier_body_is_closed_to_whom_it_did_not_name() {
    let server = Server::start().await;
    server.ask("PUT", "/db", ()).await.expect(201);
    server.ask("PUT", "/db/_acl", json!({"default": {"level": "editor"}})).await.expect(201);
    server.ask("PUT", "/db/_properties", json!({"history_revisions": 10})).await.expect(200);
    let attachments = json!({"a.txt": {"content_type": "text/plain", "data": "cm9zZWJ1ZA=="}});
    let mut revisions: Vec<String> = Vec::new();
    for readers in [json!(["ada"]), json!(["bob"]), json!([])] {
        let rev = revisions.last().map_or_else(String::new, |rev| format!("?rev={rev}"));
        let body = json!({"Readers": readers, "word": "rosebud", "_attachments": attachments});
        revisions.push(server.ask("PUT", &format!("/db/a{rev}"), body).await.expect(201).revision());
    }
    let last = json!({"word": "nothing", "_rev": revisions[2]});
    server.ask("PUT", "/db/a", last).await.expect(201);
    let tells = async |name: &str, revision: &str| {
        let mut told = Vec::new();
        for path in [
            format!("/db/a?rev={revision}"),
            format!("/db/a?rev={revision}&attachments=true&revs=true"),
            format!("/db/a?open_revs=%5B%22{revision}%22%5D&attachments=true"),
            format!("/db/a/a.txt?rev={revision}"),
        ] {
            for accept in ["application/json", "multipart/mixed", "multipart/related", "*/*"] {
                let answer = server.ask_as(name, "GET", &path, [("accept", accept)]).await;
                let text = answer.text();
                told.push(text.contains("rosebud") || text.contains("cm9zZWJ1ZA"));
            }
        }
        let asked = json!({"docs": [{"id": "a", "rev": revision}]});
        let answer = server.ask_as(name, "POST", "/db/_bulk_get?attachments=true", asked).await;
        told.push(answer.text().contains("rosebud"));
        let copy = format!("copy-{name}-{revision}");
        let headers = [("destination", &*copy)];
        let path = format!("/db/a?rev={revision}");
        drop(server.ask_as(name, "COPY", &path, (&headers[..], String::new())).await);
        told.push(server.ask("GET", &format!("/db/{copy}"), ()).await.text().contains("rosebud"));
        told
    };
    for (name, may_read) in [("ada", [true, false, true]), ("bob", [false, true, true])] {
        for (revision, may_read) in revisions.iter().zip(may_read) {
            let told = tells(name, revision).await;
            let is_right = |told: &bool| *told == may_read;
            assert!(told.iter().all(is_right), "{name} {revision}: {told:?}");
        }
    }
}
