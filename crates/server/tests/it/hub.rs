//! The workload of a replication hub, between two servers.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::common::{Client, PASSWORD, SMALL, Server, small_with, start_with};

fn ask(client: &mut Client, path: &str) -> Value {
    let answer = client.get(path).unwrap();
    serde_json::from_slice(&answer.expect(200).body).unwrap()
}

/// Ids and revisions of all documents that are no design documents.
fn documents(client: &mut Client, database: &str) -> Vec<(String, String)> {
    let all = ask(client, &format!("/{database}/_all_docs"));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let rows = all["rows"].as_array().unwrap().iter();
    let rows = rows.map(|row| (text(&row["id"]), text(&row["value"]["rev"])));
    rows.filter(|(id, _)| !id.starts_with("_design/")).collect()
}

#[test]
fn servers_at_the_edge_bring_their_documents_to_the_hub_and_take_those_of_others() {
    let folders = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let hub = Server::start(folders[0].path(), &SMALL);
    let allowed = small_with([("SCRINIUM_REPLICATION__ALLOWED_NETWORKS", "127.0.0.0/8".to_owned())]);
    let edge = start_with(folders[1].path(), &allowed);
    let (target, at_edge) = (format!("http://{}", hub.address()), format!("http://{}", edge.address()));
    let loaded = Command::new(env!("CARGO_BIN_EXE_scrinium"))
        .current_dir(folders[2].path())
        .stdin(Stdio::null())
        .env("SCRINIUM_LAB_PASSWORD", PASSWORD)
        .args(["lab", "load", "replication-hub", "--users", "3", "--target", &target, "--edge", &at_edge])
        .args(["--admin", "admin", "--speedup", "600", "--ramp-up", "4s", "--duration", "4s", "--no-report"])
        .args([
            "--set",
            "NumSharedNotes=40",
            "--set",
            "NormalMessageSize=1000",
            "--json",
            "--max-errors",
            "0",
        ])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&loaded.stderr);
    // A busy machine may make the run invalid, which is 99; what was done was done.
    assert!(matches!(loaded.status.code(), Some(0 | 99)), "{said}");
    let report: Value = serde_json::from_slice(&loaded.stdout).unwrap();
    assert_eq!(report["failures"], json!([]), "{said}");

    let (mut hub, mut edge) = (hub.client(), edge.client());
    let at_hub = documents(&mut hub, "discussion");
    let brought = at_hub.len() - 40;
    assert!(brought >= 60 && brought.is_multiple_of(10), "{brought} documents came: {said}");
    for user in ["user0001", "user0002", "user0003"] {
        let replica = format!("replica/{user}/discussion");
        let url = format!(
            "http://admin:{}@{}/discussion",
            PASSWORD.replace(' ', "%20"),
            target.trim_start_matches("http://")
        );
        edge.json("POST", "/_replicate", &json!({"source": url, "target": replica})).unwrap().expect(200);
        assert_eq!(documents(&mut edge, &replica.replace('/', "%2F")), at_hub, "{user}");
    }
}
