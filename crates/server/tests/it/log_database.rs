//! The log database of a server that is killed, stopped and asked.

use std::time::Duration;

use crate::common::{Client, SMALL, Server};
use scrinium_fault::{wait_for, wait_until};
use serde_json::{Value, json};

/// However loaded the machine is.
const WRITTEN_WITHIN: Duration = Duration::from_secs(90);

fn told(client: &mut Client, command: &str) -> Value {
    client.json("POST", "/_console", &json!({"command": command})).unwrap().value()
}

/// The documents of a kind, in the order of time.
fn documents(client: &mut Client, kind: &str) -> Vec<Value> {
    let path = format!("/log/_all_docs?include_docs=true&startkey=%22{kind}:%22&endkey=%22{kind};%22");
    let rows = client.get(&path).unwrap().expect(200).value()["rows"].take();
    rows.as_array().unwrap().iter().map(|row| row["doc"].clone()).collect()
}

/// The numbers of the commands that were recorded: each leaves an event.
fn recorded(client: &mut Client) -> Vec<u64> {
    let events = documents(client, "event");
    let commands = events.iter().filter_map(|event| event["Fields"]["command"].as_str());
    commands.filter_map(|command| command.strip_prefix("load compact n")?.parse().ok()).collect()
}

#[test]
fn events_are_there_once_however_the_server_ends() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path(), &SMALL);
    let mut sent = 0_u64;
    for round in 0..4 {
        let mut client = server.client();
        for _ in 0..20 {
            told(&mut client, &format!("load compact n{sent}"));
            sent += 1;
        }
        if round < 3 {
            wait_until("first of the round", WRITTEN_WITHIN, || recorded(&mut client).contains(&(sent - 20)));
            server.kill();
            server = Server::start(folder.path(), &SMALL);
        } else {
            assert_eq!(server.terminate(WRITTEN_WITHIN).code(), Some(0));
            server = Server::start(folder.path(), &SMALL);
        }
        let found = recorded(&mut server.client());
        let mut once = found.clone();
        once.dedup();
        assert_eq!(found, once, "one is there twice, or out of order");
        assert!(found.is_sorted(), "{found:?}");
        // What is lost is the end of what was told before a kill.
        let lost: Vec<u64> = (0..sent).filter(|number| !found.contains(number)).collect();
        assert!(lost.iter().all(|number| number % 20 > 0), "{lost:?}");
        for pair in lost.windows(2).filter(|pair| pair[0] / 20 == pair[1] / 20) {
            assert_eq!(pair[0] + 1, pair[1], "a hole in {lost:?}");
        }
        assert!(
            round < 3 || lost.iter().all(|number| *number < sent - 20),
            "a stop in order loses nothing: {lost:?}"
        );
    }
    let starts = documents(&mut server.client(), "event");
    assert!(starts.iter().filter(|event| event["Text"] == "starting").count() >= 4);
}

#[test]
fn a_server_tells_what_happens_in_documents_and_on_the_console() {
    let folder = tempfile::tempdir().unwrap();
    let settings = [&SMALL[..], &[("SCRINIUM_LOG_DATABASE__SLOW_AFTER", "1 ms")]].concat();
    let mut server = Server::start(folder.path(), &settings);
    let mut client = server.client();
    client.get("/log").unwrap().expect(200);
    let person =
        json!({"Form": "Person", "FullName": ["Ada/Acme"], "ShortName": "ada", "MailFile": "mail/ada"});
    client.json("PUT", "/directory/person:ada", &person).unwrap().expect(201);
    for send_to in ["ada", "nobody"] {
        let memo = json!({"Form": "Memo", "From": "ada", "SendTo": [send_to], "Subject": "s"});
        client.json("POST", "/mail.box", &memo).unwrap().expect(201);
    }
    told(&mut client, "load updall directory");
    let states = |client: &mut Client| {
        let mail = documents(client, "mail");
        let mut states: Vec<String> =
            mail.iter().map(|memo| memo["State"].as_str().unwrap().to_owned()).collect();
        states.sort();
        // The word to the sender is a memo too.
        (states == ["delivered", "delivered", "returned"]).then_some(())
    };
    wait_for("mail", WRITTEN_WITHIN, || states(&mut client));
    let runs = wait_for("task", WRITTEN_WITHIN, || {
        Some(documents(&mut client, "task")).filter(|runs| !runs.is_empty())
    });
    let run = runs.iter().find(|run| run["Task"] == "updall").unwrap();
    assert_eq!(
        (&run["Database"], &run["Outcome"], &run["Done"]),
        (&json!("directory"), &json!("finished"), &json!(1))
    );
    // How long a write takes is the machine's: some take a millisecond.
    let mut round = 0;
    let slow = wait_for("slow one", WRITTEN_WITHIN, || {
        round += 1;
        let note = json!({"Form": "Note", "Body": "x".repeat(500_000)});
        client.json("PUT", &format!("/directory/note-{round}"), &note).unwrap().expect(201);
        let slow = documents(&mut client, "slow");
        let is_it = |slow: &Value| slow["Operation"] == "UPDATE_NOTE" && slow["Database"] == "directory";
        slow.iter().any(is_it).then_some(slow)
    });
    assert_eq!((&slow[0]["Person"], &slow[0]["Form"]), (&json!("admin"), &json!("SlowOperation")));
    for slow in &slow {
        assert!(slow["Milliseconds"].as_u64().unwrap() >= 1, "{slow}");
    }

    log_is_shown_on_the_console(&mut client);
    let minute =
        wait_for("minute's statistics", WRITTEN_WITHIN, || documents(&mut client, "statistics").pop());
    assert!(minute["HTTP.Requests"].as_u64().unwrap() > 5, "{minute}");
    assert!(minute["UPDATE_NOTE.Count"].as_u64().unwrap() >= 1, "{minute}");
    println!(
        "statistics of a minute: {} fields, {} bytes",
        minute.as_object().unwrap().len(),
        minute.to_string().len()
    );
    assert_eq!(server.terminate(WRITTEN_WITHIN).code(), Some(0));

    let server = Server::start(folder.path(), &SMALL);
    let usage = documents(&mut server.client(), "usage");
    let of = |database: &str| {
        usage.iter().find(|line| line["Database"] == database && line["Person"] == "admin").unwrap()
    };
    let writes = |database: &str| of(database)["Writes"].as_u64();
    assert_eq!((writes("directory"), writes("mail.box")), (Some(1 + round), Some(2)));
    assert!(of("log")["Reads"].as_u64().unwrap() > 3 && of("log")["SentBytes"].as_u64().unwrap() > 100);
}

fn log_is_shown_on_the_console(client: &mut Client) {
    let shown = told(client, "show log tasks 1h -n 5");
    assert!(shown["text"].as_str().unwrap().contains("updall"), "{shown}");
    let warned = told(client, "sh log 2020-01-01 -l warn");
    let levels: Vec<&Value> =
        warned["data"]["documents"].as_array().unwrap().iter().map(|event| &event["Level"]).collect();
    assert!(levels.iter().all(|level| **level != "info"), "{levels:?}");
    assert!(told(client, "show log mails").to_string().contains("type it like this: show log [events|mail"));
    told(client, "set config log_database.slow_after=0");
    assert!(told(client, "show log slow 1ms").to_string().contains("Nothing of this kind"));
}

#[test]
fn a_database_of_this_name_that_is_somebody_elses_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let off = [&SMALL[..], &[("SCRINIUM_LOG_DATABASE__NAME", "")]].concat();
    let mut server = Server::start(folder.path(), &off);
    let mut client = server.client();
    client.get("/log").unwrap().expect(404);
    assert!(told(&mut client, "show log").to_string().contains("no log database is kept"));
    client.ask("PUT", "/log", "application/json", b"").unwrap().expect(201);
    client.json("PUT", "/log/oak", &json!({"logs": 7})).unwrap().expect(201);
    server.terminate(WRITTEN_WITHIN);
    let mut server = Server::start(folder.path(), &SMALL);
    assert!(server.messages().contains("set log_database.name to another name"), "{}", server.messages());
    let info = server.client().get("/log").unwrap().expect(200).value();
    assert_eq!((&info["doc_count"], &info["update_seq"].as_str().unwrap()[..2]), (&json!(1), "1-"));
    server.terminate(WRITTEN_WITHIN);
    let server = Server::start(
        folder.path(),
        &[&SMALL[..], &[("SCRINIUM_LOG_DATABASE__NAME", "server/log")]].concat(),
    );
    server.client().get("/server%2Flog/_design/log").unwrap().expect(200);
}
