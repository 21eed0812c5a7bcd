//! Names and texts of others, wherever they come in: on the console, in Prometheus' text, in the log database and in what
//! the server says they are a part of their own line, and no more.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use scrinium_server::console::COMMANDS;
use scrinium_statistics::breaks_line;
use serde_json::{Value, json};

use crate::common::{Client, SMALL, Server};

/// However loaded the machine is.
const WRITTEN_WITHIN: Duration = Duration::from_secs(60);

/// What each text would like to begin a line with.
const MARK: &str = "forged-line";

fn texts() -> Vec<String> {
    let long = format!("\r\n{MARK} {}", "y".repeat(30_000));
    [
        "a\r\nforged-line 1",
        "b\nscrinium_forged 1\nforged-line{x=\"1\"} 1",
        "\u{1b}[2J\u{1b}[31m\u{7}\r\u{1b}]0;title\u{7}",
        "\",\"Form\":\"Audit\",\"Forged\":\"yes\"}\n{\"",
        "\u{2028}forged-line\u{2029}\u{85}forged-line\u{7f}\u{9b}31m",
        "\u{202e}detrever\u{2066}\u{200f} 2026-01-01T00:00:00Z ERROR forged-line",
        &long,
    ]
    .map(str::to_owned)
    .into()
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

/// Sends `text` by every way that ends in a name, a message or a record somewhere. What becomes of it is not looked at: it
/// may be refused.
fn send_everywhere(client: &mut Client, server: &Server, number: usize, text: &str) {
    // A head has at most 64 KB.
    let short: String = text.chars().take(2000).collect();
    let (name, short_name) = (encoded(&short), short.as_str());
    let mut json = |method: &str, path: &str, body: Value| {
        let answer = client.json(method, path, &body).unwrap();
        assert!(answer.status < 500 || answer.status == 501, "{method} {path:.100}: {}", answer.text());
    };
    json("PUT", &format!("/{name}"), Value::Null);
    json("PUT", &format!("/db/{name}"), json!({"Subject": text, "Form": text}));
    json("PUT", &format!("/db/_folder/{name}"), json!({}));
    json("PUT", "/db/_local/x", json!({"text": text}));
    json("POST", "/db/_find", json!({"selector": {short_name: text}, "use_index": text}));
    json("PUT", &format!("/db/{name}/{name}"), Value::Null);
    let map = format!("function (doc) {{ log({0}); throw new Error({0}); }}", Value::from(short_name));
    let views = json!({short_name: {"map": map}});
    json("PUT", &format!("/db/_design/d{number}"), json!({"views": views}));
    json("GET", &format!("/db/_design/d{number}/_view/{name}"), Value::Null);
    json("GET", &format!("/db/_design/d{number}/_view/{name}?key={name}"), Value::Null);
    for (id, form) in [(format!("person:p{number}"), "Person"), (format!("group:{short}"), "Group")] {
        let entry = json!({"Form": form, "FullName": [text], "ShortName": format!("p{number}"), "ListName": text,
            "Members": [text], "Roles": [text], "InternetAddress": text, "password": "a long password"});
        json("PUT", &format!("/directory/{}", encoded(&id)), entry);
    }
    let memo = json!({"Form": "Memo", "From": text, "SendTo": [text, short_name], "Subject": text});
    json("POST", "/mail.box", memo);
    let memo = json!({"Form": "Memo", "SendTo": [text], "Subject": text});
    json("POST", "/mail.box", memo);
    json(
        "PUT",
        "/db/_acl",
        json!({"default": {"level": "manager"}, "roles": [short_name],
        "entries": [{"name": short_name, "level": "author", "roles": [short_name]}]}),
    );
    json("PUT", "/db/_security", json!({"admins": {"names": [text], "roles": [text]}}));
    for log_in in [json!({"name": text, "password": "x"}), json!({"name": "admin", "password": text})] {
        json("POST", "/_session", log_in);
    }
    for line in [
        "{}",
        "show {}",
        "show statistics {}",
        "show databases {}",
        "show database {}",
        "show configuration {}",
        "show log {}",
        "set configuration {}=1",
        "set configuration log_database.slow_after={}",
        "set database {} logged=true",
        "load updall {}",
        "load updall db -T {}",
        "load fixup {}",
        "load move db {}",
        "tell {} quit",
        "show aside {}",
    ] {
        json("POST", "/_console", json!({"command": line.replace("{}", &short)}));
    }
    let basic = STANDARD.encode(format!("{short}:wrong"));
    let mut stream = std::net::TcpStream::connect(server.address()).unwrap();
    let head = format!(
        "GET /db HTTP/1.1\r\nHost: x\r\nAuthorization: Basic {basic}\r\nConnection: close\r\n\
         X-Forwarded-For: {name}\r\nUser-Agent: {name}\r\n\r\n"
    );
    std::io::Write::write_all(&mut stream, head.as_bytes()).unwrap();
    drop(std::io::copy(&mut stream, &mut std::io::sink()));
}

/// No line begins as one of the texts would, and nothing moves a terminal's cursor.
fn check_lines(what: &str, text: &str) {
    for line in text.lines() {
        assert!(!line.chars().any(breaks_line), "{what}: {line:?}");
        assert!(!line.trim_start().starts_with(MARK), "{what}: {line:?}");
    }
}

/// Documents of the log database, of all kinds.
fn records(client: &mut Client) -> Vec<Value> {
    let listed = client.get("/log/_all_docs?include_docs=true").unwrap().expect(200).value();
    listed["rows"].as_array().unwrap().iter().map(|row| row["doc"].clone()).collect()
}

#[test]
fn names_of_others_forge_nothing_on_console_metrics_and_records() {
    let folder = tempfile::tempdir().unwrap();
    let settings = [&SMALL[..], &[("SCRINIUM_LOG_DATABASE__SLOW_AFTER", "1 ms")]].concat();
    let server = Server::start(folder.path(), &settings);
    let mut client = server.client();
    client.json("PUT", "/db", &Value::Null).unwrap().expect(201);
    for (number, text) in texts().iter().enumerate() {
        send_everywhere(&mut client, &server, number, text);
    }
    // The last of them is there once it was written.
    let began = Instant::now();
    let records = loop {
        let records = records(&mut client);
        let classes: BTreeSet<&str> = records.iter().filter_map(|record| record["Form"].as_str()).collect();
        if ["Event", "Login", "Audit", "MailRouting"].iter().all(|form| classes.contains(form)) {
            break records;
        }
        assert!(began.elapsed() < WRITTEN_WITHIN, "there are only {classes:?}");
        std::thread::sleep(Duration::from_millis(100));
    };
    let forms = [
        ("event", "Event"),
        ("mail", "MailRouting"),
        ("task", "TaskRun"),
        ("slow", "SlowOperation"),
        ("usage", "Usage"),
        ("login", "Login"),
        ("audit", "Audit"),
        ("statistics", "Statistics"),
        ("hourly", "HourlyStatistics"),
    ];
    for record in records.iter().filter(|record| !record["_id"].as_str().unwrap().starts_with('_')) {
        let kind = record["_id"].as_str().unwrap().split(':').next().unwrap();
        let form = forms.iter().find(|(known, _)| *known == kind).map(|(_, form)| *form);
        assert_eq!(record["Form"].as_str(), form, "{record:.500}");
        assert_eq!(record.get("Forged"), None, "{record:.500}");
        assert!(record.to_string().len() < 16 << 10, "{record:.500}");
    }
    let shown = COMMANDS.iter().filter(|command| command.words.first() == Some(&"show"));
    let classes = ["events", "mail", "tasks", "slow", "usage", "logins", "audit"];
    let lines = shown.map(|command| command.words.join(" "));
    let lines: Vec<String> =
        lines.chain(classes.map(|class| format!("show log {class} 1h -n 1000"))).collect();
    for line in lines.iter().map(String::as_str).chain(["show database db", "show fixup", "show aside db"]) {
        let answer = client.json("POST", "/_console", &json!({"command": line})).unwrap().value();
        let text = answer["text"].as_str().or_else(|| answer["reason"].as_str());
        check_lines(line, text.unwrap_or_else(|| panic!("{line}: {answer:.500}")));
    }
    for (number, text) in texts().iter().enumerate() {
        // An answer to what is not understood repeats what was typed.
        let line = format!("{number}{}", text.replace(['\r', '\n'], " "));
        let answer = client.json("POST", "/_console", &json!({"command": line})).unwrap().value();
        check_lines("what is refused", answer["reason"].as_str().unwrap());
    }
    let metrics = client.get("/metrics").unwrap().expect(200).text();
    check_lines("metrics", &metrics);
    for line in metrics.lines() {
        assert!(line.starts_with("# ") || line.starts_with("scrinium_"), "{line:?}");
        assert!(!line.starts_with("scrinium_forged"), "{line:?}");
    }
    let told = server.messages();
    check_lines("messages", &told);
    assert!(told.lines().all(|line| line.starts_with("20") || line.starts_with("listening")), "{told}");
}
