//! `/_openapi.json`: the table of routes as an OpenAPI 3.1 document, for tools that make clients and tests of it.

use std::sync::LazyLock;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Response, StatusCode};
use serde_json::{Map, Value, json};

use crate::response::{self, Body};
use crate::route_table::routes;
use crate::routes::{ANY_METHOD, BodyLimit, Limits, MethodRoute, Need, Route};

/// Made once: the table does not change.
static TEXT: LazyLock<Bytes> = LazyLock::new(|| format!("{}\n", document()).into());

/// `GET /_openapi.json`.
pub(crate) fn show() -> Response<Body> {
    let mut response = Response::new(Body::whole(TEXT.clone()));
    *response.status_mut() = StatusCode::OK;
    response.headers_mut().insert(CONTENT_TYPE, response::JSON);
    response
}

fn document() -> Value {
    let paths: Map<String, Value> = routes().iter().filter_map(described).collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Scrinium",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "CouchDB 3's HTTP interface, and what is added to it.",
        },
        "security": [{"basic": []}, {"session": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "basic": {"type": "http", "scheme": "basic"},
                "session": {"type": "apiKey", "in": "cookie", "name": "AuthSession"},
            },
            "schemas": {
                "Error": {
                    "type": "object",
                    "required": ["error", "reason"],
                    "properties": {"error": {"type": "string"}, "reason": {"type": "string"}},
                },
            },
        },
    })
}

/// A path and what may be asked there; `None` for addresses that are answered with a refusal alone.
fn described(route: &Route) -> Option<(String, Value)> {
    let names: Vec<&str> = route.path.split('/').filter_map(parameter_of).collect();
    let mut item = Map::new();
    if !names.is_empty() {
        item.insert("parameters".to_owned(), names.iter().map(|name| path_parameter(name)).collect());
    }
    for entry in route.methods.iter().filter(|entry| entry.method != ANY_METHOD) {
        let method = entry.method.to_ascii_lowercase();
        // OpenAPI knows no COPY.
        let member = if method == "copy" { "x-copy".to_owned() } else { method };
        item.insert(member, operation(route.path, entry));
    }
    let has_methods = item.keys().any(|member| member != "parameters");
    has_methods.then(|| (route.path.replace("...}", "}"), Value::Object(item)))
}

/// The name in a segment of a pattern.
fn parameter_of(segment: &str) -> Option<&str> {
    let name = segment.strip_prefix('{')?.strip_suffix('}')?;
    Some(name.strip_suffix("...").unwrap_or(name))
}

fn path_parameter(name: &str) -> Value {
    json!({"name": name, "in": "path", "required": true, "schema": {"type": "string", "minLength": 1}})
}

fn operation(path: &str, entry: &MethodRoute) -> Value {
    let queries: Vec<Value> = entry.parameters.iter().map(|name| query_parameter(name)).collect();
    let mut operation = json!({
        "operationId": operation_id(path, entry.method),
        "summary": needs(entry.need),
        "tags": [entry.operation.name()],
        "parameters": queries,
        "responses": {
            "200": {"description": "It was found, or done."},
            "201": {"description": "It was stored."},
            "default": {
                "description": "It was refused.",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
            },
        },
    });
    if let (Some(body), Some(members)) = (request_body(entry.limits), operation.as_object_mut()) {
        members.insert("requestBody".to_owned(), body);
    }
    if let (Need::Anonymous, Some(members)) = (entry.need, operation.as_object_mut()) {
        members.insert("security".to_owned(), json!([{}, {"basic": []}, {"session": []}]));
    }
    operation
}

/// `PUT /{db}/_security` is `put_db_security`.
fn operation_id(path: &str, method: &str) -> String {
    let mut id = method.to_ascii_lowercase();
    for part in path.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|part| !part.is_empty()) {
        id.push('_');
        id.push_str(part);
    }
    id
}

fn needs(need: Need) -> String {
    match need {
        Need::Anonymous => "For everybody.".to_owned(),
        Need::Person => "For people who have logged in.".to_owned(),
        Need::Database(level) => format!("Needs the level `{}` in the database.", level.text()),
        Need::Administrator => "For administrators of the server.".to_owned(),
        Need::Viewer => "For administrators of the server, and those who may look on.".to_owned(),
    }
}

fn query_parameter(name: &str) -> Value {
    let schema = match name {
        "descending" | "include_docs" | "inclusive_end" | "conflicts" | "deleted_conflicts"
        | "attachments" | "reduce" | "group" | "update_seq" | "revs" | "revs_info" | "local_seq"
        | "latest" | "meta" | "new_edits" | "categories" | "partitioned" | "basic" | "snippets"
        | "exact_total" | "all_words" => {
            json!({"type": "boolean"})
        }
        "limit" | "skip" | "group_level" | "timeout" | "level" | "count" | "since_uid" | "top_n" => {
            json!({"type": "integer", "minimum": 0})
        }
        "feed" => json!({"type": "string", "enum": ["normal", "longpoll", "continuous", "eventsource"]}),
        // JSON, or a text.
        _ => json!({"type": "string"}),
    };
    json!({"name": name, "in": "query", "required": false, "schema": schema})
}

fn request_body(limits: Limits) -> Option<Value> {
    let (kind, most) = match limits.body {
        BodyLimit::Nothing => return None,
        BodyLimit::Bytes(bytes) => ("application/json", format!("At most {bytes} bytes.")),
        BodyLimit::Document | BodyLimit::PlainDocument => {
            ("application/json", "A document, as long as `document.max_bytes` allows.".to_owned())
        }
        BodyLimit::Port => ("application/json", "As long as `http.max_request_bytes` allows.".to_owned()),
        BodyLimit::Attachment => {
            ("application/octet-stream", "As long as `attachment.max_bytes` allows.".to_owned())
        }
    };
    Some(json!({"description": most, "content": {kind: {"schema": {}}}}))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_route_that_does_something_is_described_once() {
        let document = document();
        let paths = document["paths"].as_object().unwrap();
        let mut ids = BTreeSet::new();
        for route in routes() {
            for entry in route.methods.iter().filter(|entry| entry.method != ANY_METHOD) {
                let item = &paths[&route.path.replace("...}", "}")];
                let method = entry.method.to_ascii_lowercase();
                let operation = &item[if method == "copy" { "x-copy" } else { method.as_str() }];
                let id = operation["operationId"].as_str().unwrap();
                assert!(ids.insert(id.to_owned()), "{id} stands twice");
                assert_eq!(operation["parameters"].as_array().unwrap().len(), entry.parameters.len(), "{id}");
                assert_eq!(operation.get("requestBody").is_some(), entry.limits.body != BodyLimit::Nothing);
                let declared = item.get("parameters").and_then(Value::as_array).map_or(0, Vec::len);
                assert_eq!(declared, route.path.matches('{').count(), "{id}");
            }
        }
        // Paths that differ in the names of their parts alone are one.
        let shapes: BTreeSet<String> = paths
            .keys()
            .map(|path| path.split('/').map(|part| if part.starts_with('{') { "{}" } else { part }).collect())
            .collect();
        assert_eq!(shapes.len(), paths.len());
    }
}
