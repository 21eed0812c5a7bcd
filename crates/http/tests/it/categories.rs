//! Pages in which categories are rows.

use serde_json::{Value, json};

use crate::common::Server;

async fn filled() -> Server {
    let server = Server::start().await;
    let column = |title: &str| json!({"title": title, "formula": title, "category": true});
    let design = json!({"_id": "_design/mail", "language": "formula", "views": {
        "topics": {"columns": [
            column("Area"), column("Topic"),
            {"title": "Name", "formula": "Name", "sort": "asc", "resort": "desc"},
            {"title": "Size", "formula": "Size", "total": true}]},
        "names": {"columns": [{"title": "Name", "formula": "Name", "sort": "asc"}]}}});
    let note = |id: &str, area: Value, topic: &str, size: u32| json!({"_id": id, "Area": area, "Topic": topic, "Name": id, "Size": size});
    server
        .fill(
            "db",
            &[
                design,
                note("a", json!("home"), "garden", 1),
                note("b", json!("home"), "garden", 2),
                note("c", json!("home"), "kitchen", 4),
                note("d", json!(["home", "work"]), "garden", 8),
                note("e", json!(""), "", 16),
            ],
        )
        .await;
    server
}

const TOPICS: &str = "/db/_design/mail/_view/topics";

/// A row in few words: of a category its level, key, count and sign, of an entry its level and id.
fn short(row: &Value) -> String {
    let (level, key) = (&row["level"], &row["key"]);
    match row["id"].as_str() {
        Some(id) => format!("{level} {id}"),
        None => format!(
            "{level} {key} {}{}",
            row["value"]["count"],
            if row["expanded"] == true { " -" } else { " +" }
        ),
    }
}

async fn outline(server: &Server, query: &str) -> Vec<String> {
    let answer = server.ask("GET", &format!("{TOPICS}?{query}"), ()).await.expect(200).json();
    answer["rows"].as_array().unwrap().iter().map(short).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn categories_are_rows() {
    let server = filled().await;
    server.ask("GET", &format!("{TOPICS}?categories=true&startkey=[%22home%22]&limit=3"), ()).await.expect_text(
        200,
        "{\"total_rows\":6,\"offset\":1,\"rows\":[\n\
         {\"category\":true,\"level\":0,\"key\":[\"home\"],\"value\":{\"count\":4,\"totals\":{\"Size\":15.0},\"children\":2},\"expanded\":true},\n\
         {\"category\":true,\"level\":1,\"key\":[\"home\",\"garden\"],\"value\":{\"count\":3,\"totals\":{\"Size\":11.0},\"children\":3},\"expanded\":true},\n\
         {\"id\":\"a\",\"key\":[\"home\",\"garden\",\"a\"],\"value\":{\"Area\":\"home\",\"Topic\":\"garden\",\"Name\":\"a\",\"Size\":1},\"level\":2}\n\
         ]}\n",
    );
    assert_eq!(
        outline(&server, "categories=true").await,
        [
            "0 [null] 1 -",
            "1 [null,null] 1 -",
            "2 e",
            r#"0 ["home"] 4 -"#,
            r#"1 ["home","garden"] 3 -"#,
            "2 a",
            "2 b",
            "2 d",
            r#"1 ["home","kitchen"] 1 -"#,
            "2 c",
            r#"0 ["work"] 1 -"#,
            r#"1 ["work","garden"] 1 -"#,
            "2 d",
        ]
    );
    // In the order of another column first, what is in one category lies apart.
    assert_eq!(outline(&server, "level=0&resort=Name").await, ["0 e", "0 d", "0 d", "0 c", "0 b", "0 a"]);
    // A folder and a view without categories.
    let folder = json!({"columns": [{"title": "Area", "formula": "Area", "category": true}]});
    server.ask("PUT", "/db/_folder/Kept", folder).await.expect(201);
    server.ask("POST", "/db/_folder/Kept", json!({"add": ["a", "c"]})).await.expect(200);
    let kept = server.ask("GET", "/db/_folder/Kept?level=1", ()).await.expect(200).json();
    let kept = kept["rows"].as_array().unwrap().clone();
    assert_eq!(kept.iter().map(short).collect::<Vec<String>>(), [r#"0 ["home"] 2 -"#, "1 a", "1 c"]);
    assert_eq!((&kept[0]["uid"], &kept[1]["uid"]), (&Value::Null, &json!(1)));
    let plain = server.ask("GET", "/db/_design/mail/_view/names?categories=true&limit=1", ()).await;
    assert_eq!(short(&plain.expect(200).json()["rows"][0]), "0 a");
}

#[tokio::test(flavor = "multi_thread")]
async fn categories_are_expanded_and_collapsed() {
    let server = filled().await;
    let top = ["0 [null] 1 +", r#"0 ["home"] 4 +"#, r#"0 ["work"] 1 +"#];
    assert_eq!(outline(&server, "level=0").await, top);
    assert_eq!(outline(&server, "level=0&descending=true").await, [top[2], top[1], top[0]]);
    let garden = "expand=[[%22home%22],[%22home%22,%22garden%22]]";
    let expanded = [
        r#"0 ["home"] 4 -"#,
        r#"1 ["home","garden"] 3 -"#,
        "2 a",
        "2 b",
        "2 d",
        r#"1 ["home","kitchen"] 1 +"#,
        top[2],
    ];
    assert_eq!(outline(&server, &format!("level=0&{garden}&skip=1")).await, expanded);
    assert_eq!(
        outline(&server, "collapse=[[%22home%22]]&skip=3&limit=2").await,
        [top[1], r#"0 ["work"] 1 -"#]
    );
    let body = json!({"level": 0, "expand": [["home"], ["home", "garden"]], "key": ["home", "garden"]});
    let posted = server.ask("POST", TOPICS, body).await.expect(200).json();
    assert_eq!(posted["rows"].as_array().unwrap().iter().map(short).collect::<Vec<String>>(), expanded[1..5]);

    // A page continues in the middle of a category, without its row.
    let page = async |query: &str| {
        let answer = server.ask("GET", &format!("{TOPICS}?{query}"), ()).await.expect(200).json();
        let rows: Vec<String> = answer["rows"].as_array().unwrap().iter().map(short).collect();
        (rows, answer["offset"].as_u64(), answer["next"].as_str().map(str::to_owned))
    };
    let (_, _, next) = page(&format!("level=0&{garden}&limit=4&next=true")).await;
    let (rows, offset, next) =
        page(&format!("level=0&{garden}&limit=4&next=true&from={}", next.unwrap())).await;
    assert_eq!(rows, expanded[3..7]);
    assert_eq!((offset, next), (Some(2), None));
    // At a document: what it lies in is open.
    let (rows, offset, _) = page("level=0&at=c").await;
    assert_eq!(rows, ["2 c", top[2]]);
    assert_eq!(offset, Some(4));
    let (rows, offset, _) = page("level=0&find=wo&limit=0").await;
    assert_eq!((rows.len(), offset), (0, Some(5)));
    let with =
        server.ask("GET", &format!("{TOPICS}?categories=true&include_docs=true&limit=3"), ()).await.json();
    assert_eq!((&with["rows"][0]["doc"], &with["rows"][2]["doc"]["_id"]), (&Value::Null, &json!("e")));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_have_categories_says_so() {
    let server = filled().await;
    let script = json!({"_id": "_design/js", "views": {"v": {"map": "function (doc) { emit(doc.Area); }"}}});
    server.ask("PUT", "/db/_design/js", script).await.expect(201);
    let index = json!({"index": {"fields": ["Area"]}, "ddoc": "mango", "name": "areas"});
    server.ask("POST", "/db/_index", index).await.expect(200);
    let many: Vec<Value> = (0..1001).map(|number| json!([number])).collect();
    for (path, body, reason) in [
        (
            "/db/_design/js/_view/v",
            json!({"categories": true}),
            "A JavaScript view has no categories: `group_level` gives its totals.",
        ),
        ("/db/_design/mango/_view/areas", json!({"level": 0}), "A Mango index has no categories."),
        (
            TOPICS,
            json!({"categories": true, "group_level": 1}),
            "Categories bring their totals: `reduce` and `group` cannot be combined with them.",
        ),
        (
            TOPICS,
            json!({"expand": [["a"], ["b"]], "collapse": [["b"]]}),
            "A category is in both `expand` and `collapse`.",
        ),
        (TOPICS, json!({"expand": many}), "`expand` and `collapse` take at most 1000 keys each."),
    ] {
        server.ask("POST", path, body).await.expect_error(400, "query_parse_error", reason);
    }
    // Of very many categories within one, the number is not told.
    let notes: Vec<Value> = (0..101).map(|topic| json!({"Area": "wide", "Topic": topic})).collect();
    server.ask("POST", "/db/_bulk_docs", json!({"docs": notes})).await.expect(201);
    let wide = server.ask("GET", &format!("{TOPICS}?level=0&key=%22wide%22"), ()).await.json();
    assert_eq!(wide["rows"][0]["value"], json!({"count": 101, "totals": {"Size": 0.0}, "children": null}));
}
