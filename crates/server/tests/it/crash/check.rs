//! Everything that the server has, against everything that the clients know.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

use serde_json::{Value, json};

use super::state::Document;
use super::writer::Writer;
use super::{DATABASES, PEOPLE};
use crate::common::Client;

/// Titles of the view's columns: category, order, total.
pub(crate) const TITLES: [&str; 3] = ["Client", "Version", "Size"];

/// Attachments are read whole up to this many in one check, each in its turn.
const ATTACHMENTS: usize = 300;

/// A view whose identity, and so its index, depends on the titles.
pub(crate) fn design(titles: [&str; 3]) -> Value {
    json!({"language": "formula", "views": {"notes": {
        "selection": "SELECT Form = \"Note\"",
        "columns": [
            {"title": titles[0], "formula": "Client", "sort": "asc", "category": true},
            {"title": titles[1], "formula": "Version", "sort": "desc"},
            {"title": titles[2], "formula": "Size", "total": true},
        ],
    }}})
}

/// A page of a view while others write: it must be in order, whatever is in it.
pub(crate) fn read_a_page(client: &mut Client) -> io::Result<()> {
    for database in DATABASES {
        let path = format!("/{database}/_design/views/_view/notes?reduce=false&limit=30&skip=10");
        let page = client.get(&path)?.expect(200).value();
        let places: Vec<(u64, Reverse<u64>)> = rows(&page).iter().map(place).collect();
        assert!(places.is_sorted(), "{database}: {page}");
    }
    Ok(())
}

/// Checks every database and mail file; what was there, in words.
pub(crate) fn all(client: &mut Client, writers: &[Writer], round: u64) -> String {
    let mut known: Vec<BTreeMap<&str, (u64, &Document)>> = vec![BTreeMap::new(); DATABASES.len()];
    for writer in writers {
        for (id, document) in &writer.documents {
            known[document.database].insert(id, (writer.number, document));
        }
    }
    let mut present = 0;
    for (name, known) in DATABASES.iter().zip(&known) {
        let documents = documents_are_those_known(client, name, known);
        changes_are_those_known(client, name, known);
        view_equals_its_documents(client, name, &documents, round);
        present += documents.len();
    }
    let attachments = attachments_are_whole(client, writers, round);
    let delivered: usize = PEOPLE.iter().map(|person| no_memo_came_twice(client, person, writers)).sum();
    let acknowledged =
        writers.iter().flat_map(|writer| &writer.memos).filter(|memo| memo.acknowledged).count();
    format!(
        "{present} documents and {attachments} attachments are as they should be; {acknowledged} memos were \
         deposited and {delivered} delivered"
    )
}

fn rows(listing: &Value) -> &[Value] {
    listing["rows"].as_array().unwrap()
}

fn place(row: &Value) -> (u64, Reverse<u64>) {
    (row["key"][0].as_u64().unwrap(), Reverse(row["key"][1].as_u64().unwrap()))
}

/// All documents of a database, which are exactly those that must be there.
fn documents_are_those_known(
    client: &mut Client,
    database: &str,
    known: &BTreeMap<&str, (u64, &Document)>,
) -> Vec<Value> {
    let listing =
        client.get(&format!("/{database}/_all_docs?include_docs=true")).unwrap().expect(200).value();
    let documents: Vec<Value> = rows(&listing)
        .iter()
        .map(|row| row["doc"].clone())
        .filter(|document| !document["_id"].as_str().unwrap().starts_with('_'))
        .collect();
    let mut missing: BTreeSet<&str> =
        known.iter().filter(|(_, (_, document))| document.settled.is_present()).map(|(id, _)| *id).collect();
    for document in &documents {
        let id = document["_id"].as_str().unwrap();
        let (client, known) = known[id];
        assert!(missing.remove(id), "{database} has {document}, which should be {:?}", known.settled);
        assert_eq!(document["_rev"].as_str(), known.settled.revision.as_deref(), "{id} of {database}");
        assert!(known.settled.has_content_of(document, client), "{document} should be {:?}", known.settled);
    }
    assert!(missing.is_empty(), "{database} lost {missing:?}");
    documents
}

/// The feed of changes has each document once, in order, and the counts fit it.
fn changes_are_those_known(client: &mut Client, database: &str, known: &BTreeMap<&str, (u64, &Document)>) {
    let info = client.get(&format!("/{database}")).unwrap().expect(200).value();
    let feed = client.get(&format!("/{database}/_changes")).unwrap().expect(200).value();
    let mut last = 0;
    let mut seen = BTreeSet::new();
    let (mut present, mut deleted) = (0, 0);
    for change in feed["results"].as_array().unwrap() {
        let id = change["id"].as_str().unwrap();
        let number: u64 = change["seq"].as_str().unwrap().split('-').next().unwrap().parse().unwrap();
        assert!(number > last, "{database}: change {number} stands after {last}");
        last = number;
        assert!(seen.insert(id.to_owned()), "{database}: {id} changed twice");
        let is_deleted = change["deleted"] == true;
        *(if is_deleted { &mut deleted } else { &mut present }) += 1;
        if id.starts_with('_') {
            continue;
        }
        let settled = &known[id].1.settled;
        assert_eq!(is_deleted, settled.deleted, "{database}: {change} should be {settled:?}");
        let revision = change["changes"][0]["rev"].as_str();
        assert!(
            settled.revision.is_none() || revision == settled.revision.as_deref(),
            "{database}: {change}"
        );
    }
    let expected =
        known.iter().filter(|(_, (_, document))| document.settled.is_present() || document.settled.deleted);
    for (id, _) in expected {
        assert!(seen.contains(*id), "{database}: {id} is not among the changes");
    }
    assert_eq!(
        (&info["doc_count"], &info["doc_del_count"]),
        (&json!(present), &json!(deleted)),
        "{database}"
    );
    assert_eq!((&info["update_seq"], &feed["pending"]), (&feed["last_seq"], &json!(0)), "{database}");
}

/// The view that lived through all kills, the same view built this moment, and what the documents give.
fn view_equals_its_documents(client: &mut Client, database: &str, documents: &[Value], round: u64) {
    let category = format!("Client {round}");
    let again = [category.as_str(), "Version", "Size"];
    let path = format!("/{database}/_design/again");
    let built = client.json("PUT", &path, &design(again)).unwrap().expect(201).value();
    for (name, titles) in [("views", TITLES), ("again", again)] {
        let view = format!("/{database}/_design/{name}/_view/notes");
        let listing = client.get(&format!("{view}?reduce=false")).unwrap().expect(200).value();
        let expected = expected_rows(documents, titles);
        assert_eq!(listing["total_rows"], expected.len(), "{view}");
        for (row, expected) in rows(&listing).iter().zip(&expected) {
            assert_eq!(row, expected, "{view}");
        }
        assert_eq!(rows(&listing).len(), expected.len(), "{view}");
        let totals = client.get(&format!("{view}?group_level=1")).unwrap().expect(200).value();
        assert_eq!(rows(&totals), expected_totals(&expected), "{view}");
    }
    let revision = built["rev"].as_str().unwrap();
    client.ask("DELETE", &format!("{path}?rev={revision}"), "application/json", &[]).unwrap().expect(200);
}

fn expected_rows(documents: &[Value], titles: [&str; 3]) -> Vec<Value> {
    let mut rows: Vec<Value> = documents
        .iter()
        .filter(|document| document["Form"] == "Note")
        .map(|document| {
            let values = [&document["Client"], &document["Version"], &document["Size"]];
            let value = json!({titles[0]: values[0], titles[1]: values[1], titles[2]: values[2]});
            json!({"id": document["_id"], "key": [values[0], values[1]], "value": value})
        })
        .collect();
    rows.sort_by_key(place);
    rows
}

/// Count and sum of each category.
fn expected_totals(rows: &[Value]) -> Vec<Value> {
    let mut totals: BTreeMap<u64, (u64, f64)> = BTreeMap::new();
    for row in rows {
        let total = totals.entry(place(row).0).or_default();
        total.0 += 1;
        total.1 += row["value"]["Size"].as_f64().unwrap();
    }
    let row = |(category, (count, size)): (u64, (u64, f64))| json!({"key": [category], "value": {"count": count, "totals": {"Size": size}}});
    totals.into_iter().map(row).collect()
}

/// Some attachments, others each time, byte for byte; how many.
fn attachments_are_whole(client: &mut Client, writers: &[Writer], round: u64) -> usize {
    let mut all = Vec::new();
    for document in writers.iter().flat_map(|writer| &writer.documents) {
        all.extend(document.1.settled.attachments.iter().map(|attachment| (document, attachment)));
    }
    let turn = usize::try_from(round).unwrap();
    let step = all.len().div_ceil(ATTACHMENTS).max(1);
    let mut whole = 0;
    for ((id, document), (name, attachment)) in all.iter().skip(turn % step).step_by(step) {
        let path = format!("/{}/{id}/{name}", DATABASES[document.database]);
        let answer = client.get(&path).unwrap().expect(200);
        assert!(answer.body == attachment.bytes(), "{path} is not what was written");
        whole += 1;
    }
    whole
}

/// The names of all mail.box databases.
pub(crate) fn mailboxes(client: &mut Client) -> Vec<String> {
    let all = client.get("/_all_dbs").unwrap().expect(200).value();
    let names = all.as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned());
    names.filter(|name| name.ends_with(".box")).collect()
}

/// How often a person has each memo.
fn memos_of(client: &mut Client, person: &str) -> BTreeMap<u64, usize> {
    let answer = client.get(&format!("/mail%2F{person}/_all_docs?include_docs=true")).unwrap();
    let mut memos = BTreeMap::new();
    if answer.status == 404 {
        return memos;
    }
    for row in rows(&answer.expect(200).value()) {
        let number = row["doc"]["Number"].as_u64().unwrap_or_else(|| panic!("{person} got {row}"));
        *memos.entry(number).or_default() += 1;
    }
    memos
}

fn no_memo_came_twice(client: &mut Client, person: &str, writers: &[Writer]) -> usize {
    let memos = memos_of(client, person);
    for (number, times) in &memos {
        let (writer, place) = (number / 1_000_000, number % 1_000_000);
        let memo = &writers[usize::try_from(writer).unwrap()].memos[usize::try_from(place).unwrap()];
        assert_eq!(*times, 1, "{person} got memo {number} several times");
        assert!(memo.recipients.contains(person), "{person} got memo {number} for {:?}", memo.recipients);
    }
    memos.len()
}

/// Every memo that was acknowledged has reached everybody; one that was not, all or nobody.
pub(crate) fn mail_is_complete(client: &mut Client, writers: &[Writer]) {
    let delivered: BTreeMap<&str, BTreeMap<u64, usize>> =
        PEOPLE.iter().map(|person| (*person, memos_of(client, person))).collect();
    for memo in writers.iter().flat_map(|writer| &writer.memos) {
        let reached: Vec<&str> = memo
            .recipients
            .iter()
            .copied()
            .filter(|name| delivered[name].contains_key(&memo.number))
            .collect();
        let complete = reached.len() == memo.recipients.len() || (reached.is_empty() && !memo.acknowledged);
        assert!(complete, "memo {} for {:?} reached {reached:?}", memo.number, memo.recipients);
    }
}
