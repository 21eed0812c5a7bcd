//! A discussion database of any size: documents, and seven views of them.

use http::Method;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

use crate::content::text;
use crate::driver::{Client, Failure, path_part};

/// Documents of one request.
const AT_ONCE: u64 = 500;

/// Requests that write many documents with views behind them may take long.
const STATUSES: &[u16] = &[200, 201, 202];

/// What is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Filling {
    pub(super) documents: u64,
    pub(super) body_bytes: usize,
    /// How often each document is written.
    pub(super) times: u32,
    pub(super) views: bool,
}

/// Makes a database and fills it; one that is there is filled up. `wrote` hears how many documents were written.
pub(super) async fn fill(
    client: &mut Client,
    database: &str,
    filling: Filling,
    wrote: impl Fn(u64),
) -> Result<(), Failure> {
    let path = format!("/{}", path_part(database));
    client.ask(Method::PUT, &path, None, &[201, 202, 412]).await?;
    if filling.views {
        client
            .ask(Method::PUT, &format!("{path}/_design/discussion"), Some(&design()), &[201, 202, 409])
            .await?;
    }
    let bulk = format!("{path}/_bulk_docs");
    let mut first = 0;
    while first < filling.documents {
        let end = filling.documents.min(first + AT_ONCE);
        let mut revisions: Vec<String> = Vec::new();
        for time in 0..filling.times.max(1) {
            let documents: Vec<Value> = (first..end)
                .enumerate()
                .map(|(index, number)| {
                    let mut document = document(number, time, filling.body_bytes);
                    if let (Some(revision), Some(fields)) = (revisions.get(index), document.as_object_mut()) {
                        fields.insert("_rev".to_owned(), json!(revision));
                    }
                    document
                })
                .collect();
            let answer = client.ask(Method::POST, &bulk, Some(&json!({"docs": documents})), STATUSES).await?;
            revisions =
                revisions_of(&answer).filter(|revisions| revisions.len() == documents.len()).ok_or_else(
                    || Failure::wrong(format!("POST {bulk}: not all were written: {}", shortened(&answer))),
                )?;
            wrote(end - first);
        }
        first = end;
    }
    Ok(())
}

fn revisions_of(answer: &Value) -> Option<Vec<String>> {
    let rows = answer.as_array()?;
    rows.iter().map(|row| row.get("rev").and_then(Value::as_str).map(str::to_owned)).collect()
}

fn shortened(answer: &Value) -> String {
    answer.to_string().chars().take(300).collect()
}

/// Id of document number `number`. Ids are scattered, as those of documents that many people write.
fn id(number: u64) -> String {
    let mut scattered = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    scattered = (scattered ^ (scattered >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    scattered = (scattered ^ (scattered >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    format!("{:016x}", scattered ^ (scattered >> 31))
}

/// A topic or a response. The same number is the same document on every run.
fn document(number: u64, time: u32, body_bytes: usize) -> Value {
    let mut random = SmallRng::seed_from_u64(number.wrapping_mul(31).wrapping_add(u64::from(time)));
    let text = text();
    let mut piece = |bytes: usize| {
        let from = random.random_range(0..text.len().saturating_sub(bytes).max(1));
        // The text is ASCII, so that it can be cut anywhere.
        text.get(from..from + bytes).unwrap_or_default().trim().replace('\n', " ")
    };
    let (subject, body) = (piece(40), piece(body_bytes));
    let person = random.random_range(0..400);
    let status = ["Open", "Closed", "Pending"].get(random.random_range(0..3_usize));
    let is_response = number > 0 && random.random_range(0..10) < 6;
    let mut document = json!({
        "_id": id(number),
        "Form": if is_response { "Response" } else { "MainTopic" },
        "Subject": subject,
        "From": format!("CN=Person {person}/O=Lab"),
        "Categories": format!("Category {}", random.random_range(0..40)),
        "Date": format!(
            "20{:02}-{:02}-{:02}T{:02}:{:02}:00Z",
            random.random_range(10..26), random.random_range(1..13), random.random_range(1..29),
            random.random_range(0..24), random.random_range(0..60)
        ),
        "Size": random.random_range(0..20_000),
        "Status": status,
        "Body": body,
    });
    if let (true, Some(fields)) = (is_response, document.as_object_mut()) {
        fields.insert("$REF".to_owned(), json!(id(number / 2)));
    }
    document
}

/// Seven views, as the source's discussion database has.
fn design() -> Value {
    let plain = |title: &str, formula: &str| json!({"title": title, "formula": formula});
    let sorted =
        |title: &str, formula: &str, sort: &str| json!({"title": title, "formula": formula, "sort": sort});
    let category = |title: &str, formula: &str| json!({"title": title, "formula": formula, "category": true});
    let total = json!({"title": "Size", "formula": "Size", "total": true});
    let view = |selection: &str, columns: Vec<Value>| json!({"selection": format!("SELECT {selection}"), "columns": columns});
    let author = "@Name([CN]; From)";
    json!({"_id": "_design/discussion", "language": "formula", "views": {
        "all": view("@All", vec![sorted("Date", "Date", "desc"), plain("Subject", "Subject"), total.clone()]),
        "author": view("@All", vec![category("Author", author), sorted("Date", "Date", "desc"), plain("Subject", "Subject")]),
        "category": view("@All", vec![category("Category", "Categories"), sorted("Date", "Date", "asc"), plain("Subject", "Subject"), total.clone()]),
        "topics": view("Form = \"MainTopic\"", vec![sorted("Subject", "@LowerCase(Subject)", "asc"), plain("Author", author)]),
        "responses": view("Form = \"Response\"", vec![sorted("Parent", "$REF", "asc"), sorted("Date", "Date", "asc"), plain("Author", author)]),
        "unfinished": view("Status != \"Closed\"", vec![sorted("Status", "Status", "asc"), sorted("Date", "Date", "desc"), plain("Subject", "Subject")]),
        "month": view("@All", vec![category("Month", "@Left(Date; 7)"), plain("Subject", "Subject"), total]),
    }})
}
