//! Replications that a server carries out, with other servers over HTTP: whole ones, some whose wire breaks, and some that
//! mean harm.

mod stranger;
mod wire;

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use self::stranger::{Harm, Stranger};
use self::wire::{Trouble, Wire};
use crate::attachments::compressed;
use crate::common::{PASSWORD, Server};

/// A database of a server, as another one names it.
fn url_of(address: std::net::SocketAddr, database: &str) -> String {
    format!("http://admin:{PASSWORD}@{address}/{database}")
}

async fn replicate(server: &Server, order: Value) -> Value {
    server.ask("POST", "/_replicate", order).await.expect(200).json()
}

/// All leaves of all documents, with their attachments.
pub(crate) async fn everything(server: &Server, database: &str) -> Vec<(String, Value)> {
    let changes = server.ask("GET", &format!("/{database}/_changes"), ()).await.expect(200).json();
    let mut all = Vec::new();
    for change in changes["results"].as_array().unwrap() {
        let id = change["id"].as_str().unwrap().to_owned();
        let encoded = utf8_percent_encode(&id, NON_ALPHANUMERIC).to_string();
        let address = format!("/{database}/{encoded}?open_revs=all&revs=true&attachments=true");
        let headers = [("accept", "application/json")];
        let mut leaves = server
            .ask("GET", &address, (&headers[..], String::new()))
            .await
            .expect(200)
            .json()
            .as_array()
            .unwrap()
            .clone();
        leaves.sort_by_key(|leaf| leaf["ok"]["_rev"].as_str().unwrap_or_default().to_owned());
        all.push((id, leaves.into()));
    }
    all.sort_by(|one, other| one.0.cmp(&other.0));
    all
}

/// Documents of all kinds.
pub(crate) async fn fill(server: &Server, database: &str) {
    server.ask("PUT", &format!("/{database}"), ()).await.expect(201);
    let plain: Vec<Value> = (0..60)
        .map(|number| json!({"_id": format!("doc {number:03}/ä"), "text": "x".repeat(number * 20)}))
        .collect();
    server.ask("POST", &format!("/{database}/_bulk_docs"), json!({"docs": plain})).await.expect(201);
    let long = STANDARD.encode((0..700_000_u32).map(|byte| byte as u8).collect::<Vec<u8>>());
    let attached = json!({"a": {"content_type": "text/plain", "data": "aGVsbG8="},
        "sub/long \"n\".bin": {"content_type": "application/octet-stream", "data": long}});
    let brought = json!({"new_edits": false, "docs": [
        {"_id": "twice", "_rev": "1-aa", "side": "left"},
        {"_id": "twice", "_rev": "1-bb", "side": "right"},
        {"_id": "gone", "_rev": "2-cc", "_deleted": true},
        {"_id": "attached", "_rev": "1-dd", "_attachments": attached},
        {"_id": "_design/d", "_rev": "1-ee", "views": {}},
    ]});
    server.ask("POST", &format!("/{database}/_bulk_docs"), brought).await.expect(201);
    // Kept as gzip, here and where it goes.
    let gzip = [("content-encoding", "gzip"), ("content-type", "text/plain")];
    let packed = compressed(PACKED.repeat(10_000).as_bytes());
    server.ask("PUT", &format!("/{database}/packed/f"), (&gzip[..], packed)).await.expect(201);
}

/// What stands again and again in an attachment that is kept as gzip.
pub(crate) const PACKED: &str = "packed ";

#[tokio::test(flavor = "multi_thread")]
async fn two_servers_replicate_both_ways() {
    let (ours, theirs) = (Server::start().await, Server::start().await);
    fill(&theirs, "far").await;
    let far = url_of(theirs.address, "far");
    let pulled = replicate(&ours, json!({"source": far, "target": "near", "create_target": true})).await;
    assert_eq!(
        (&pulled["ok"], &pulled["history"][0]["docs_written"]),
        (&json!(true), &json!(66)),
        "{pulled}"
    );
    assert!(!pulled.to_string().contains(PASSWORD));
    assert_eq!(everything(&ours, "near").await, everything(&theirs, "far").await);
    let again = replicate(&ours, json!({"source": far, "target": "near"})).await;
    assert_eq!((&again["no_changes"], &again["history"][0]["missing_checked"]), (&json!(true), &json!(0)));
    // Back, with what was edited here, under another login's form, into a database that has to be made.
    ours.ask("PUT", "/near/new", json!({"n": 1})).await.expect(201);
    let described = json!({"url": format!("http://{}/back", theirs.address),
        "auth": {"basic": {"username": "admin", "password": PASSWORD}}});
    replicate(&ours, json!({"source": "near", "target": described, "create_target": true})).await;
    assert_eq!(everything(&theirs, "back").await, everything(&ours, "near").await);
    // From one URL to another.
    let (from, to) = (url_of(theirs.address, "back"), url_of(theirs.address, "third"));
    replicate(&ours, json!({"source": from, "target": to, "create_target": true})).await;
    assert_eq!(everything(&theirs, "third").await, everything(&ours, "near").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn other_servers_filter_what_they_give() {
    let (ours, theirs) = (Server::start().await, Server::start().await);
    theirs.ask("PUT", "/far", ()).await.expect(201);
    for (id, kind) in [("a", "memo"), ("b", "note"), ("c", "memo")] {
        theirs.ask("PUT", &format!("/far/{id}"), json!({"kind": kind})).await.expect(201);
    }
    for (place, (more, expected)) in [
        (json!({"doc_ids": ["a", "b", "none"]}), vec!["a", "b"]),
        (json!({"selector": {"kind": "memo"}}), vec!["a", "c"]),
        (json!({"since_seq": "2"}), vec!["c"]),
    ]
    .into_iter()
    .enumerate()
    {
        let target = format!("near{place}");
        let mut order =
            json!({"source": url_of(theirs.address, "far"), "target": target, "create_target": true});
        order.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        replicate(&ours, order).await;
        let found: Vec<String> = everything(&ours, &target).await.into_iter().map(|(id, _)| id).collect();
        assert_eq!(found, expected, "{more}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_continuous_replication_goes_both_ways_is_shown_and_is_cancelled() {
    let (ours, theirs) = (Server::start().await, Server::start().await);
    ours.ask("PUT", "/near", ()).await.expect(201);
    theirs.ask("PUT", "/far", ()).await.expect(201);
    let far = url_of(theirs.address, "far");
    let pull = json!({"source": far, "target": "near", "continuous": true});
    let push = json!({"source": "near", "target": far, "continuous": true});
    let begun = ours.ask("POST", "/_replicate", pull.clone()).await.expect(202).json();
    ours.ask("POST", "/_replicate", push).await.expect(202);
    for number in 0..3 {
        theirs.ask("PUT", &format!("/far/f{number}"), json!({})).await.expect(201);
        ours.ask("PUT", &format!("/near/n{number}"), json!({})).await.expect(201);
        arrives(&ours, &format!("/near/f{number}")).await;
        arrives(&theirs, &format!("/far/n{number}")).await;
    }
    let jobs = ours.ask("GET", "/_scheduler/jobs", ()).await.expect(200).json();
    assert_eq!(jobs["total_rows"], 2, "{jobs}");
    let id = begun["_local_id"].as_str().unwrap();
    let job =
        ours.ask("GET", &format!("/_scheduler/jobs/{}", id.replace('+', "%2B")), ()).await.expect(200).json();
    assert_eq!(
        (&job["source"], &job["state"]),
        (&json!(format!("http://{}/far", theirs.address)), &json!("running"))
    );
    let tasks = ours.ask("GET", "/_active_tasks", ()).await.expect(200).json();
    assert!(tasks.as_array().unwrap().iter().any(|task| task["replication_id"] == id), "{tasks}");
    for shown in [jobs, job, tasks] {
        assert!(!shown.to_string().contains(PASSWORD), "{shown}");
    }
    for address in ["/_scheduler/jobs", "/_scheduler/docs", "/_active_tasks"] {
        assert_eq!(ours.ask_as("bob", "GET", address, ()).await.status, 401);
    }
    let mut cancel = pull;
    cancel["cancel"] = true.into();
    assert_eq!(
        ours.ask_as("bob", "POST", "/_replicate", json!({"cancel": true, "id": id})).await.status,
        404
    );
    ours.ask("POST", "/_replicate", cancel.clone()).await.expect(200);
    assert_eq!(ours.ask("POST", "/_replicate", cancel).await.status, 404);
}

pub(crate) async fn arrives(server: &Server, address: &str) {
    for _ in 0..1500 {
        if server.ask("GET", address, ()).await.status == 200 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{address} never came");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_replicated_is_answered_in_couchdbs_words() {
    let (ours, theirs) = (Server::start().await, Server::start().await);
    ours.ask("PUT", "/near", ()).await.expect(201);
    theirs.ask("PUT", "/far", ()).await.expect(201);
    let open = format!("http://{}/far", theirs.address);
    for (order, status, word) in [
        (json!({}), 400, "bad_request"),
        (json!({"source": "none", "target": "near"}), 404, "db_not_found"),
        (json!({"source": "near", "target": "none"}), 404, "db_not_found"),
        (json!({"source": url_of(theirs.address, "none"), "target": "near"}), 404, "db_not_found"),
        (json!({"source": open, "target": "near"}), 401, "unauthorized"),
        (json!({"source": "near", "target": "near"}), 400, "bad_request"),
        (
            json!({"source": "http://127.0.0.1:1/far", "target": "near", "retries_per_request": 1}),
            500,
            "replication_error",
        ),
        (json!({"source": "http://169.254.169.254/far", "target": "near"}), 403, "forbidden"),
        (json!({"source": "near", "target": "http://[::1]:5984/far"}), 403, "forbidden"),
        (json!({"cancel": true, "source": "near", "target": "other"}), 404, "db_not_found"),
    ] {
        let answer = ours.ask("POST", "/_replicate", order.clone()).await;
        let said = answer.text();
        assert_eq!(
            (answer.status.as_u16(), &answer.json()["error"]),
            (status, &json!(word)),
            "{order}: {said}"
        );
    }
    let order = json!({"source": url_of(theirs.address, "far"), "target": "near"});
    assert_eq!(ours.ask_as("bob", "POST", "/_replicate", order).await.status, 403);
    assert_eq!(ours.ask_as("", "POST", "/_replicate", json!({})).await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_the_wire_does_all_comes_in_the_end_and_once() {
    let (ours, theirs) = (Server::start().await, Server::start().await);
    fill(&theirs, "far").await;
    ours.ask("PUT", "/near", ()).await.expect(201);
    theirs.ask("PUT", "/back", ()).await.expect(201);
    let wire = Wire::to(theirs.address).await;
    for trouble in [
        Trouble::Cuts,
        Trouble::Refuses(500),
        Trouble::Refuses(429),
        Trouble::Refuses(503),
        Trouble::Garbles,
        Trouble::Delays,
        Trouble::Swallows,
    ] {
        wire.make(trouble);
        for (source, target) in [
            (url_of(wire.address, "far"), "near".to_owned()),
            ("near".to_owned(), url_of(wire.address, "back")),
        ] {
            // Each goes on where the one before was broken off.
            let order = json!({"source": source, "target": target, "worker_batch_size": 8, "checkpoint_interval": 1000,
                "retries_per_request": 8});
            for _ in 0..10 {
                let answer = ours.ask("POST", "/_replicate", order.clone()).await;
                assert!(!answer.text().contains(PASSWORD), "{}", answer.text());
                if answer.status == 200 {
                    break;
                }
            }
        }
    }
    wire.make(Trouble::None);
    replicate(&ours, json!({"source": url_of(wire.address, "far"), "target": "near"})).await;
    replicate(&ours, json!({"source": "near", "target": url_of(wire.address, "back")})).await;
    let whole = everything(&theirs, "far").await;
    assert_eq!(everything(&ours, "near").await, whole);
    assert_eq!(everything(&theirs, "back").await, whole);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_that_means_harm_costs_a_bounded_answer_and_is_named() {
    let ours = Server::start().await;
    ours.ask("PUT", "/near", ()).await.expect(201);
    for harm in stranger::HARMS {
        let stranger = Stranger::start(harm).await;
        let order = json!({"source": format!("http://{}/db", stranger.address), "target": "near",
            "retries_per_request": 1});
        let asked = ours.ask("POST", "/_replicate", order);
        let answer = tokio::time::timeout(Duration::from_secs(30), asked).await.expect(harm.name);
        assert_ne!(answer.status, 200, "{}: {}", harm.name, answer.text());
        assert!(answer.json()["reason"].as_str().unwrap().len() < 1000, "{}", harm.name);
    }
    // Nothing of what they sent was stored.
    assert_eq!(everything(&ours, "near").await, Vec::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_is_not_taken_along_to_another_server() {
    let ours = Server::start().await;
    ours.ask("PUT", "/near", ()).await.expect(201);
    let other = Stranger::start(stranger::HARMS[3]).await;
    let first = Stranger::start(Harm::leading_to(other.address)).await;
    let order = json!({"source": {"url": format!("http://ada:rosebud@{}/db", first.address),
        "headers": {"X-Key": "rosebud"}}, "target": "near", "retries_per_request": 1});
    assert_ne!(ours.ask("POST", "/_replicate", order).await.status, 200);
    let (told, told_other) = (first.heard(), other.heard());
    assert!(told.contains("rosebud") && told.to_lowercase().contains("authorization"), "{told}");
    assert!(told_other.contains("GET /db"), "{told_other}");
    assert!(
        !told_other.contains("rosebud") && !told_other.to_lowercase().contains("authorization"),
        "{told_other}"
    );
}
