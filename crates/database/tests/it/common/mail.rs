//! A small mail file and its design document with two views.

use scrinium_database::{Row, RowQuery};
use scrinium_views::OpenDatabase;
use serde_json::{Value, json};

use super::{Server, all_rows, put};
use crate::common::SERVER;

pub(crate) fn design() -> Value {
    json!({
        "_id": "_design/mail", "language": "formula",
        "views": {
            "inbox": {
                "selection": "SELECT Form = \"Memo\"",
                "columns": [
                    {"title": "Date", "formula": "Date", "sort": "desc"},
                    {"title": "From", "formula": "@LowerCase(From)"},
                    {"title": "Size", "formula": "Size", "total": true},
                ]
            },
            "by category": {
                "selection": "SELECT @All",
                "columns": [
                    {"title": "Category", "formula": "Categories", "category": true},
                    {"title": "From", "formula": "From", "sort": "asc"},
                    {"title": "Size", "formula": "Size", "total": true},
                ]
            },
        }
    })
}

pub(crate) fn read(database: &OpenDatabase, view: &str, query: RowQuery) -> Vec<Row> {
    all_rows(database.view("mail", view, query, &SERVER).unwrap())
}

pub(crate) fn ids(database: &OpenDatabase, view: &str, query: RowQuery) -> String {
    read(database, view, query).into_iter().filter_map(|row| row.id).collect::<Vec<_>>().join(" ")
}

pub(crate) fn memo(id: &str, date: &str, from: &str, size: u32, categories: &Value) -> Value {
    json!({"_id": id, "Form": "Memo", "Date": date, "From": from, "Size": size, "Categories": categories})
}

pub(crate) fn filled() -> (Server, OpenDatabase) {
    let server = Server::new();
    let database = server.databases.create("mail/ada", &scrinium_database::InitialAccess::Everybody).unwrap();
    put(&database, &design()).unwrap();
    put(&database, &memo("a", "2026-01-01", "Zoe", 10, &json!("work"))).unwrap();
    put(&database, &memo("b", "2026-01-03", "adam", 20, &json!(["work", "home"]))).unwrap();
    put(&database, &memo("c", "2026-01-02", "Bob", 30, &json!([]))).unwrap();
    put(&database, &json!({"_id": "d", "Form": "Note", "From": "Eve", "Size": 5})).unwrap();
    (server, database)
}
