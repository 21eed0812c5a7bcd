//! The part of the server in memory that mail files and shared databases need: folders, marks, changes, replicas.

use std::collections::BTreeMap;

use hyper::Method;
use serde_json::{Value, json};

use super::{Answer, Faults, State, error, field};

impl State {
    /// `None` for what is no matter of this part.
    pub(super) fn groupware(
        &mut self,
        method: &Method,
        parts: &[String],
        query: &BTreeMap<String, String>,
        body: &Value,
        faults: &Faults,
    ) -> Option<Answer> {
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        Some(match parts.as_slice() {
            ["_console"] if faults.folders => (200, json!({"text": "done", "data": body["command"]})),
            ["_up"] => (200, json!({"status": "ok"})),
            [name] if *method == Method::DELETE => match self.databases.remove(*name) {
                Some(_) => (200, json!({"ok": true})),
                None => error(404, "not_found", "Database does not exist."),
            },
            [_, rest] if (rest.starts_with("_unread") || rest.starts_with("_folder")) && !faults.folders => {
                error(404, "not_found", "missing")
            }
            [name, "_unread"] if *method == Method::GET => {
                (200, json!({"database": self.databases.get(*name)?.documents.len(), "folders": {}}))
            }
            [_, "_unread"] => marked(body),
            [name, "_folder/Inbox"] if *method == Method::POST => self.move_to(name, body),
            [_, rest]
                if rest.starts_with("_folder/") && *method == Method::PUT && *rest != "_folder/Inbox" =>
            {
                (201, json!({"ok": true}))
            }
            [name, "_folder/Inbox/_changes"] => {
                (200, json!({"results": [], "last_seq": self.databases.get(*name)?.changes}))
            }
            [name, "_changes"] => self.changes(name, query),
            [name, "_bulk_get"] => {
                let _ = self.databases.get(*name)?;
                let results: Vec<Value> = body["docs"]
                    .as_array()?
                    .iter()
                    .map(|asked| json!({"id": asked["id"], "docs": [{}]}))
                    .collect();
                (200, json!({"results": results}))
            }
            [name, "_revs_diff"] => {
                let known = &self.databases.get(*name)?.documents;
                let missing: serde_json::Map<String, Value> = body
                    .as_object()?
                    .iter()
                    .filter(|(id, _)| !known.contains_key(*id))
                    .map(|(id, revisions)| (id.clone(), json!({"missing": revisions})))
                    .collect();
                (200, Value::Object(missing))
            }
            [name, "_bulk_docs"] if body["new_edits"] == json!(false) => {
                for document in body["docs"].as_array()?.clone() {
                    let id = field(&document, "_id").to_owned();
                    self.store(name, &id, document);
                }
                (201, json!([]))
            }
            [name, "_all_docs"] => self.rows_of(name, body),
            [name, rest] if rest.starts_with("_local/") => self.local(name, rest, body),
            [name, rest] if rest.starts_with("_design/lab/_view/") => {
                let form = (rest.ends_with("invitations")).then_some("Invitation");
                self.view_of(name, query, form)
            }
            _ => return None,
        })
    }

    fn move_to(&mut self, name: &str, body: &Value) -> Answer {
        let ids = body["move"]["ids"].as_array().cloned().unwrap_or_default();
        let Some(database) = self.databases.get_mut(name) else { return error(404, "not_found", "missing") };
        let results: Vec<Value> = ids
            .iter()
            .map(|id| {
                database.elsewhere.insert(id.as_str().unwrap_or_default().to_owned());
                json!({"ok": true, "id": id, "changed": true})
            })
            .collect();
        (200, json!(results))
    }

    fn changes(&self, name: &str, query: &BTreeMap<String, String>) -> Answer {
        let Some(database) = self.databases.get(name) else { return error(404, "not_found", "missing") };
        let limit = query.get("limit").and_then(|limit| limit.parse().ok()).unwrap_or(usize::MAX);
        let since = match query.get("since").map(String::as_str) {
            Some("now") => database.changes,
            since => since.unwrap_or("0").split('-').next().unwrap_or_default().parse().unwrap_or(0),
        };
        let mut changed: Vec<(u64, &String)> = database
            .last
            .iter()
            .map(|(id, change)| (*change, id))
            .filter(|(change, _)| *change > since)
            .collect();
        changed.retain(|(_, id)| database.documents.contains_key(*id));
        changed.sort();
        changed.truncate(limit);
        let last = changed.last().map_or(since, |(change, _)| *change);
        let results: Vec<Value> = changed
            .iter()
            .map(|(change, id)| json!({"id": id, "seq": change, "changes": [], "doc": database.documents.get(*id)}))
            .collect();
        (200, json!({"results": results, "last_seq": format!("{last}-x")}))
    }

    fn rows_of(&self, name: &str, body: &Value) -> Answer {
        let Some(database) = self.databases.get(name) else { return error(404, "not_found", "missing") };
        let keys = body["keys"].as_array().cloned().unwrap_or_default();
        let rows: Vec<Value> = keys
            .iter()
            .map(|key| match database.documents.get(key.as_str().unwrap_or_default()) {
                Some(document) => json!({"id": key, "key": key, "doc": document}),
                None => json!({"key": key, "error": "not_found"}),
            })
            .collect();
        (200, json!({"total_rows": database.documents.len(), "rows": rows}))
    }

    fn local(&mut self, name: &str, id: &str, body: &Value) -> Answer {
        let Some(database) = self.databases.get_mut(name) else { return error(404, "not_found", "missing") };
        let known = database.locals.entry(id.to_owned()).or_default();
        let before = if *known == 0 { String::new() } else { format!("0-{known}") };
        if field(body, "_rev") != before {
            return error(409, "conflict", "Document update conflict.");
        }
        *known += 1;
        (201, json!({"ok": true, "id": id, "rev": format!("0-{known}")}))
    }

    /// Documents of one form, or all, as the inbox shows them.
    fn view_of(&self, name: &str, query: &BTreeMap<String, String>, form: Option<&str>) -> Answer {
        let Some(database) = self.databases.get(name) else { return error(404, "not_found", "missing") };
        let rows = database
            .documents
            .iter()
            .filter(|(id, _)| !id.starts_with('_') && !id.starts_with("profile:"))
            .filter(|(_, document)| form.is_none_or(|form| field(document, "Form") == form));
        let mut rows: Vec<(&str, &String)> =
            rows.map(|(id, document)| (field(document, "PostedDate"), id)).collect();
        rows.sort();
        rows.reverse();
        let number = |name: &str, default: usize| {
            query.get(name).and_then(|value| value.parse().ok()).unwrap_or(default)
        };
        let mut offset = number("skip", 0);
        if let (Some(key), Some(id)) = (query.get("startkey"), query.get("startkey_docid")) {
            let key: Value = serde_json::from_str(key).unwrap();
            let from = (key[0].as_str().unwrap_or_default(), id);
            offset += rows.iter().position(|row| *row <= from).unwrap_or(rows.len());
        }
        let page = rows.iter().skip(offset).take(number("limit", usize::MAX));
        let page: Vec<Value> = page.map(|(date, id)| json!({"id": id, "key": [date], "value": {}})).collect();
        (200, json!({"total_rows": rows.len(), "offset": offset, "rows": page}))
    }
}

fn marked(body: &Value) -> Answer {
    let all = ["read", "unread"].iter().flat_map(|kind| body[kind].as_array().cloned().unwrap_or_default());
    let results: Vec<Value> = all.map(|id| json!({"ok": true, "id": id, "changed": true})).collect();
    (200, json!(results))
}
