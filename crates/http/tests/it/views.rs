//! Rows: of all documents, and of views.

use serde_json::{Value, json};

use crate::common::Server;

fn keys(rows: &Value) -> Vec<&Value> {
    rows["rows"].as_array().unwrap().iter().map(|row| &row["key"]).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn all_documents_are_listed() {
    let server = Server::start().await;
    server
        .fill(
            "db",
            &[json!({"_id": "a"}), json!({"_id": "b"}), json!({"_id": "c"}), json!({"_id": "_design/d"})],
        )
        .await;
    let revision = server.ask("GET", "/db/a", ()).await.json()["_rev"].as_str().unwrap().to_owned();
    let first = server.ask("GET", "/db/_all_docs?startkey=%22a%22&limit=1", ()).await;
    let expected = format!(
        "{{\"total_rows\":4,\"offset\":1,\"rows\":[\n\
         {{\"id\":\"a\",\"key\":\"a\",\"value\":{{\"rev\":\"{revision}\"}}}}\n]}}\n"
    );
    assert_eq!(first.text(), expected);
    let listed =
        async |query: &str| server.ask("GET", &format!("/db/_all_docs?{query}"), ()).await.expect(200).json();
    assert_eq!(keys(&listed("startkey=%22b%22").await), ["b", "c"]);
    assert_eq!(keys(&listed("startkey=%22b%22&descending=true").await), ["b", "a", "_design/d"]);
    assert_eq!(keys(&listed("end_key=%22b%22&inclusive_end=false").await), ["_design/d", "a"]);
    assert_eq!(keys(&listed("skip=1&limit=2").await), ["a", "b"]);
    assert_eq!(keys(&listed("key=%22b%22").await), ["b"]);
    for (query, offset) in [
        ("skip=1", json!(1)),
        ("skip=9", json!(4)),
        ("key=%22b%22", json!(2)),
        ("startkey=%22b%22&skip=1", json!(3)),
        ("startkey=%22b%22&descending=true", json!(1)),
        ("startkey=%22z%22", json!(4)),
        ("keys=[%22a%22]", json!(null)),
    ] {
        assert_eq!(listed(query).await["offset"], offset, "{query}");
    }
    let keyed = listed("keys=[%22c%22,%22none%22]&include_docs=true").await;
    assert_eq!(keyed["rows"][0]["doc"]["_id"], "c");
    assert_eq!(keyed["rows"][1], json!({"key": "none", "error": "not_found"}));
    let posted = server.ask("POST", "/db/_all_docs", json!({"keys": ["b"], "include_docs": true})).await;
    assert_eq!(posted.expect(200).json()["rows"][0]["doc"]["_id"], "b");
    assert_eq!(keys(&server.ask("GET", "/db/_design_docs", ()).await.expect(200).json()), ["_design/d"]);
    let queries = json!({"queries": [{"keys": ["a"]}, {"limit": 1, "descending": true}]});
    let several = server.ask("POST", "/db/_all_docs/queries", queries).await.expect(200).json();
    assert_eq!(keys(&several["results"][0]), ["a"]);
    assert_eq!(keys(&several["results"][1]), ["c"]);
    server.ask("GET", "/db/_all_docs?limit=x", ()).await.expect_error(
        400,
        "query_parse_error",
        "Invalid value for integer: \"x\"",
    );
    server.ask("PUT", "/db/_all_docs", ()).await.expect_error(
        405,
        "method_not_allowed",
        "Only GET,HEAD,POST allowed",
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_formula_view_is_read_like_couchdbs() {
    let server = Server::start().await;
    let design = json!({"_id": "_design/mail", "language": "formula", "views": {"by_size": {
        "selection": "Form = \"Memo\"",
        "columns": [
            {"title": "From", "formula": "From", "sort": "asc", "category": true},
            {"title": "Size", "formula": "Size", "total": true}]}}});
    let memo =
        |id: &str, from: &str, size: u64| json!({"_id": id, "Form": "Memo", "From": from, "Size": size});
    let documents = [
        design,
        memo("1", "ada", 10),
        memo("2", "bob", 20),
        memo("3", "ada", 30),
        json!({"_id": "4", "Form": "Other"}),
    ];
    server.fill("db", &documents).await;
    let view = async |query: &str| {
        server.ask("GET", &format!("/db/_design/mail/_view/by_size?{query}"), ()).await.expect(200).json()
    };
    let rows = view("reduce=false").await;
    assert_eq!(rows["total_rows"], 3, "{rows}");
    let ids: Vec<&Value> = rows["rows"].as_array().unwrap().iter().map(|row| &row["id"]).collect();
    assert_eq!(ids, ["1", "3", "2"]);
    server.ask("PUT", "/db/5", memo("5", "bob", 1)).await.expect(201);
    assert_eq!(view("reduce=false").await["total_rows"], 4);
    let missing = server.ask("GET", "/db/_design/mail/_view/none", ()).await;
    missing.expect_error(404, "not_found", "missing_named_view");
    server.ask("GET", "/db/_design/none/_view/none", ()).await.expect(404);
    let info = server.ask("GET", "/db/_design/mail/_info", ()).await.expect(200).json();
    let index = &info["view_index"];
    assert_eq!(
        (&index["pending_changes"], &index["progress"], &index["eta_seconds"]),
        (&json!(0), &json!(100), &json!(0))
    );
    let posted = server.ask("POST", "/db/_design/mail/_view/by_size?reduce=false", json!({"limit": 1})).await;
    assert_eq!(posted.expect(200).json()["rows"].as_array().unwrap().len(), 1);
}

/// The example of docs/reference/http.md.
#[tokio::test(flavor = "multi_thread")]
async fn responses_come_beneath_their_parents() {
    let server = Server::start().await;
    let design = json!({"_id": "_design/forum", "language": "formula", "views": {"threads": {
        "selection": "SELECT Form = \"Topic\" | @AllDescendants",
        "responses": {"order": "PostedDate"},
        "columns": [
            {"title": "Subject", "formula": "Subject", "sort": "asc"},
            {"title": "From", "formula": "@Name([CN]; From)"}]}}});
    let topic = |id: &str, subject: &str, from: &str| json!({"_id": id, "Form": "Topic", "Subject": subject, "From": from});
    let response = |id: &str, parent: &str, date: &str, subject: &str, from: &str| json!({"_id": id, "$REF": parent, "PostedDate": date, "Subject": subject, "From": from});
    let documents = [
        response("r3", "r1", "2026-03-02", "Milk?", "CN=Ada/O=Acme"),
        response("r2", "t1", "2026-03-02", "Tea!", "Eve"),
        response("r1", "t1", "2026-03-01", "Re: Coffee", "Bob"),
        topic("t2", "Lunch", "Bob"),
        topic("t1", "Coffee", "Ada"),
        design,
    ];
    server.fill("db", &documents).await;
    let threads = async |query: &str| {
        server.ask("GET", &format!("/db/_design/forum/_view/threads?{query}"), ()).await.expect(200).text()
    };
    let expected = r#"{"total_rows":5,"offset":0,"rows":[
{"id":"t1","key":["Coffee"],"value":{"Subject":"Coffee","From":"Ada"},"level":0},
{"id":"r1","key":["Coffee"],"value":{"Subject":"Re: Coffee","From":"Bob"},"level":1},
{"id":"r3","key":["Coffee"],"value":{"Subject":"Milk?","From":"Ada"},"level":2},
{"id":"r2","key":["Coffee"],"value":{"Subject":"Tea!","From":"Eve"},"level":1},
{"id":"t2","key":["Lunch"],"value":{"Subject":"Lunch","From":"Bob"},"level":0}
]}
"#;
    assert_eq!(threads("").await, expected);
    let page: Value = serde_json::from_str(&threads("at=r3&limit=1").await).unwrap();
    assert_eq!((&page["offset"], &page["rows"][0]["id"]), (&json!(2), &json!("r3")));
    let total: Value = serde_json::from_str(&threads("group=true").await).unwrap();
    assert_eq!(total["rows"][0], json!({"key": ["Coffee"], "value": {"count": 4, "totals": {}}}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_is_read_in_another_order_on_request() {
    let server = Server::start().await;
    let design = json!({"_id": "_design/mail", "language": "formula", "views": {"all": {"columns": [
        {"title": "Size", "formula": "Size", "sort": "asc", "resort": "desc"},
        {"title": "From", "formula": "From", "resort": "both", "case": false, "accent": false}]}}});
    let memo = |id: &str, from: &str, size: u64| json!({"_id": id, "From": from, "Size": size});
    server.fill("db", &[design, memo("1", "Zoë", 10), memo("2", "ada", 20), memo("3", "Ada", 15)]).await;
    let ask = async |query: &str| server.ask("GET", &format!("/db/_design/mail/_view/all?{query}"), ()).await;
    let view = async |query: &str| ask(query).await.expect(200).json();
    assert_eq!(keys(&view("").await), [&json!([10]), &json!([15]), &json!([20])]);
    assert_eq!(keys(&view("resort=Size").await), [&json!([20]), &json!([15]), &json!([10])]);
    let by_name = [json!(["Ada", 15]), json!(["ada", 20]), json!(["Zoë", 10])];
    assert_eq!(keys(&view("resort=From&resort_order=asc").await), by_name.each_ref());
    let page = view("resort=From&resort_order=asc&find=zoe").await;
    assert_eq!((&page["offset"], &page["rows"][0]["id"]), (&json!(2), &json!("1")));
    let down = view("resort=From&resort_order=desc&startkey=[%22ADA%22]&limit=1&next=true").await;
    assert_eq!(keys(&down), [&by_name[0]]);
    let next = down["next"].as_str().unwrap();
    let rest = view(&format!("resort=From&resort_order=desc&from={next}")).await;
    assert_eq!(keys(&rest), [&by_name[1]]);
    let refused = async |query: &str, reason: &str| {
        ask(query).await.expect_error(400, "query_parse_error", reason);
    };
    let can = "available are `Size` (desc), `From` (asc), `From` (desc).";
    refused("resort=Day", &format!("View `all` cannot be sorted by `Day` in this order; {can}")).await;
    refused(
        "resort=Size&resort_order=asc",
        &format!("View `all` cannot be sorted by `Size` in this order; {can}"),
    )
    .await;
    refused(
        "resort=From",
        "Column `From` can be sorted both ways: `resort_order` must be \"asc\" or \"desc\".",
    )
    .await;
    refused("resort=From&resort_order=up", "Invalid value for `resort_order`.").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_with_unique_keys_has_one_row_for_each() {
    let server = Server::start().await;
    let design = json!({"_id": "_design/mail", "language": "formula", "views": {"people": {
        "unique": true,
        "columns": [
            {"title": "From", "formula": "From", "sort": "asc", "case": false},
            {"title": "Size", "formula": "Size", "total": true}]}}});
    let memo = |id: &str, from: &str, size: u64| json!({"_id": id, "From": from, "Size": size});
    server.fill("db", &[design, memo("2", "ada", 20), memo("3", "bob", 5), memo("4", "ADA", 30)]).await;
    let view = async |query: &str| {
        server.ask("GET", &format!("/db/_design/mail/_view/people?{query}"), ()).await.expect(200).json()
    };
    assert_eq!(keys(&view("").await), [&json!(["ada"]), &json!(["bob"])]);
    server.ask("PUT", "/db/1", memo("1", "Ada", 10)).await.expect(201);
    let rows = view("").await;
    assert_eq!((&rows["total_rows"], keys(&rows)[0]), (&json!(2), &json!(["Ada"])));
    let totals = view("reduce=true").await;
    assert_eq!(totals["rows"][0]["value"], json!({"count": 2, "totals": {"Size": 15.0}}));
    assert_eq!(view("key=%22ADA%22").await["rows"][0]["id"], "1");
}
