//! The table of routes, and the page of the documents that shows it.

use scrinium_http::{BodyLimit, MethodRoute, Need, routes};

use crate::common::Server;

const BEGIN: &str =
    "<!-- Made of the table of routes; `UPDATE=1 cargo test -p scrinium-http routes` writes it. -->\n";
const END: &str = "<!-- End of the table of routes. -->\n";

fn need(need: Need) -> String {
    match need {
        Need::Anonymous => "everybody".to_owned(),
        Need::Person => "a person".to_owned(),
        Need::Database(level) => format!("`{}`", level.text()),
        Need::Administrator => "server administrator".to_owned(),
        Need::Viewer => "server administrator, or `_viewer`".to_owned(),
    }
}

fn size(bytes: usize) -> String {
    if bytes >= 1 << 20 { format!("{} MB", bytes >> 20) } else { format!("{} KB", bytes >> 10) }
}

fn body(entry: &MethodRoute) -> String {
    let text = match entry.limits.body {
        BodyLimit::Nothing => return "none".to_owned(),
        BodyLimit::Bytes(bytes) => size(bytes),
        BodyLimit::PlainDocument => "`document.max_bytes`".to_owned(),
        BodyLimit::Document => "`document.max_bytes`, with attachments `http.max_request_bytes`".to_owned(),
        BodyLimit::Port => "`http.max_request_bytes`".to_owned(),
        BodyLimit::Attachment => "`attachment.max_bytes`".to_owned(),
    };
    let values = match entry.limits.elements {
        0 => String::new(),
        values => format!(", {values} values"),
    };
    format!("{text}{values}{}", if entry.limits.gzip { "" } else { ", never compressed" })
}

fn table() -> String {
    let mut text = String::from("| address | method | operation | needs | body |\n|---|---|---|---|---|\n");
    for route in routes() {
        for entry in route.methods {
            let method = if entry.method == "*" { "any" } else { entry.method };
            text.push_str(&format!(
                "| `{}` | {method} | {} | {} | {} |\n",
                route.path,
                entry.operation.name(),
                need(entry.need),
                body(entry)
            ));
        }
    }
    text
}

#[test]
fn the_documents_show_the_table_of_routes() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/http.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (before, rest) =
        page.split_once(BEGIN).expect("docs/reference/http.md has no place for the table of routes");
    let (shown, after) =
        rest.split_once(END).expect("the table of routes in docs/reference/http.md has no end");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, format!("{before}{BEGIN}{}{END}{after}", table())).unwrap();
        return;
    }
    assert!(
        shown == table(),
        "docs/reference/http.md is not what the table of routes says; see the comment there"
    );
}

/// A method that the table has is answered or refused by its need; one that it has not is 405 with what there is.
#[tokio::test(flavor = "multi_thread")]
async fn every_route_refuses_strangers_and_other_methods() {
    let server = Server::start().await;
    for route in routes() {
        let address = route.path.replace("...", "").replace("{special}", "_x").replace("{function}", "_x");
        let address = address.replace("{db}", "nowhere").replace(['{', '}'], "");
        for entry in route.methods.iter().filter(|entry| entry.method != "*") {
            let answer = server.ask_as("", entry.method, &address, ()).await;
            if entry.need == Need::Anonymous {
                assert_ne!(answer.status, 401, "{} {address}", entry.method);
            } else {
                assert_eq!(answer.status, 401, "{} {address}", entry.method);
            }
            if matches!(entry.need, Need::Administrator | Need::Viewer) {
                let answer = server.ask_as("ada", entry.method, &address, ()).await;
                assert_eq!(answer.status, 401, "{} {address}", entry.method);
            }
            // Who looks on has what everybody has who has logged in, and those pages.
            let usual = server.ask_as("ada", entry.method, &address, ()).await.status;
            let answer = server.ask_as("viewer", entry.method, &address, ()).await;
            if entry.need == Need::Viewer {
                assert_ne!(answer.status, 401, "{} {address}", entry.method);
            } else {
                assert_eq!(answer.status, usual, "{} {address}", entry.method);
            }
            // What a domain's administrators and delegates may follows from access lists, not from routes.
            for name in ["dora", "deputy"] {
                let answer = server.ask_as(name, entry.method, &address, ()).await;
                assert_eq!(answer.status, usual, "{name} {} {address}", entry.method);
            }
        }
        let refused = server.ask("BREW", &address, ()).await;
        if route.methods.iter().all(|entry| entry.method != "*") {
            assert_eq!(refused.header("allow"), Some(route.allow().as_str()), "{address}");
            refused.expect(405);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_looks_on_gives_commands_that_show() {
    let server = Server::start().await;
    let command = |command: &str| serde_json::json!({"command": command});
    server.ask_as("viewer", "POST", "/_console", command("show who")).await.expect(200);
    for changing in ["set configuration log.level=debug", "restart", "show who; restart", ""] {
        server.ask_as("viewer", "POST", "/_console", command(changing)).await.expect(403);
    }
}
