//! A server whose clock of the day jumps by days, forwards and back: it continues answering, sessions begin again, views
//! of the time follow, mail is delivered, and it ends when asked to.
//!
//! `SCRINIUM_SEED` repeats the times that the clock jumps to.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::common::{Answer, Client, SMALL, Server};
use scrinium_fault::{ClockJumps, Faults, Plan};
use serde_json::{Value, json};

const ROUNDS: u64 = 20;
const DELIVERED_WITHIN: Duration = Duration::from_secs(60);

/// Asks, and logs in again where the session has ended because of the time.
fn ask(server: &mut Server, client: &mut Client, method: &str, path: &str, body: &Value) -> Answer {
    for _ in 0..50 {
        let answer = client.json(method, path, body).unwrap();
        if ![401, 403].contains(&answer.status) {
            return answer;
        }
        server.log_in();
        *client = server.client();
    }
    panic!("{method} {path}: no session lasts for one request");
}

#[test]
fn a_server_goes_on_when_its_clock_jumps_by_days() {
    let plan = Plan::from_environment(0);
    println!("SCRINIUM_SEED={}", plan.seed);
    let jumps = ClockJumps { seed: plan.seed, every: Duration::from_millis(300) };
    let mut variables = Command::new("");
    Faults { clock: Some(jumps), ..Faults::default() }.interpose_clock(&mut variables);
    let text = |text: &std::ffi::OsStr| text.to_str().unwrap().to_owned();
    let variables: Vec<(String, String)> =
        variables.get_envs().map(|(name, value)| (text(name), text(value.unwrap()))).collect();
    let mut settings = SMALL.to_vec();
    settings.extend(variables.iter().map(|(name, value)| (name.as_str(), value.as_str())));

    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path(), &settings);
    let mut client = server.client();
    let (server, client) = (&mut server, &mut client);
    for name in ["ada", "bob"] {
        let person = json!({"Form": "Person", "FullName": [format!("{name}/Acme")], "ShortName": name,
            "MailFile": format!("mail/{name}"), "password": "secret enough"});
        ask(server, client, "PUT", &format!("/directory/person:{name}"), &person).expect(201);
    }
    ask(server, client, "PUT", "/notes", &Value::Null).expect(201);
    let column = |formula: &str| json!([{"title": "T", "formula": formula, "sort": "asc"}]);
    let design = json!({"language": "formula", "options": {"update": {"every_seconds": 1}}, "views": {
        "now": {"columns": column("@Now")}, "numbers": {"columns": column("N")}}});
    ask(server, client, "PUT", "/notes/_design/d", &design).expect(201);
    for round in 0..ROUNDS {
        let note = json!({"N": round});
        ask(server, client, "PUT", &format!("/notes/{round:02}"), &note).expect(201);
        let memo = json!({"Form": "Memo", "From": "ada/Acme", "SendTo": ["ada", "bob"], "Number": round});
        ask(server, client, "POST", "/mail.box", &memo).expect(201);
        for path in [
            "/notes/_design/d/_view/now",
            "/notes/_design/d/_view/numbers?update=lazy",
            "/notes/_changes?feed=longpoll&timeout=50&since=now",
            "/_active_tasks",
            "/_node/_local/_stats",
        ] {
            ask(server, client, "GET", path, &Value::Null).expect(200);
        }
        let rows = ask(server, client, "GET", "/notes/_design/d/_view/numbers?update=true", &Value::Null)
            .expect(200);
        assert_eq!(rows.value()["total_rows"], round + 1);
    }
    let began = Instant::now();
    for name in ["ada", "bob"] {
        let path = format!("/mail%2F{name}/_all_docs?include_docs=true");
        loop {
            let answer = ask(server, client, "GET", &path, &Value::Null);
            let value = if answer.status == 404 { Value::Null } else { answer.expect(200).value() };
            let rows = value["rows"].as_array().cloned().unwrap_or_default();
            let mut numbers: Vec<u64> = rows.iter().filter_map(|row| row["doc"]["Number"].as_u64()).collect();
            numbers.sort_unstable();
            if numbers.iter().copied().eq(0..ROUNDS) {
                break;
            }
            assert!(began.elapsed() < DELIVERED_WITHIN, "{name} has {numbers:?} of {ROUNDS} memos");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    let ended = server.terminate(Duration::from_secs(60));
    assert!(ended.success(), "{ended}");
    assert!(!server.messages().contains("panicked"));
}
