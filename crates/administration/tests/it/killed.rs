//! A server that is killed while it renames somebody goes on, and nothing is half.
//!
//! `SCRINIUM_SEED=… SCRINIUM_KILLS=… cargo test -p scrinium-administration --test it killed` repeats a run, as far as the
//! moments of kills can be repeated, or makes it longer.

use std::time::Duration;

use scrinium_administration::{NewRequest, RequestKind, RequestState};
use scrinium_fault::{Kills, Victim, tell};
use serde_json::json;

use crate::common::{SERVER, Server};

const DATABASES: usize = 8;
const DOCUMENTS: usize = 400;

/// Runs until it is killed; only the test below starts it.
#[test]
#[ignore = "a child process of the other test"]
fn child() {
    let Some((folder, _)) = Victim::order() else { return };
    let server = Server::open(&folder);
    tell("ready");
    server.requests.carry_out_all().unwrap();
    server.store.close().unwrap();
}

#[test]
fn a_rename_goes_on_after_kills_and_leaves_nothing_half() {
    let kills = Kills::from_environment(6);
    println!("{kills}");
    let folder = tempfile::tempdir().unwrap();
    let server = Server::open(folder.path());
    server.people();
    for number in 0..DATABASES {
        let name = format!("db{number}");
        let ids: Vec<String> = (0..DOCUMENTS).map(|number| format!("d{number:04}")).collect();
        for (number, id) in ids.iter().enumerate() {
            let readers = if number % 3 == 0 { json!(["bob"]) } else { json!(["ada", "bob"]) };
            server.put(&name, &json!({"_id": id, "Readers": readers, "Number": number}));
        }
        server.database(&name).mark("ada", ids, true, &SERVER).unwrap().wait().unwrap();
    }
    let mut order = NewRequest::new(RequestKind::RenamePerson, "ada", "admin");
    order.new_name = Some("adele".to_owned());
    server.requests.order(&order).unwrap();
    server.store.clone().close().unwrap();
    drop(server);
    let mut moments = kills.seed;
    for _ in 0..kills.count {
        let child = Victim::start(module_path!(), folder.path(), 0).unwrap();
        child.wait_until_ready().unwrap();
        moments = moments.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        std::thread::sleep(Duration::from_millis(moments >> 57));
        child.kill().unwrap();
    }
    let server = Server::open(folder.path());
    let before = server.requests.list().unwrap().pop().unwrap();
    println!("after {} kills: {:?}", kills.count, before.progress);
    server.requests.carry_out_all().unwrap();
    let request = server.requests.list().unwrap().pop().unwrap();
    assert_eq!(request.state, RequestState::Done);
    for number in 0..DATABASES {
        let name = format!("db{number}");
        for (number, document) in server.documents(&name).values().enumerate() {
            let readers = if number % 3 == 0 { json!(["bob"]) } else { json!(["adele", "bob"]) };
            assert_eq!((&document["Readers"], &document["Number"]), (&readers, &json!(number)));
            let id = document["_id"].as_str().unwrap();
            // Nothing was written twice.
            let revision = server.get(&name, id).unwrap()["_rev"].as_str().unwrap().to_owned();
            assert_eq!(revision.starts_with("1-"), number % 3 == 0, "{name} {id} {revision}");
            assert!(revision.starts_with("1-") || revision.starts_with("2-"));
        }
        let database = server.database(&name);
        assert_eq!(database.unread("adele").unwrap().database, 0);
        assert_eq!(database.unread("ada").unwrap().database, DOCUMENTS as u64);
    }
    server.store.close().unwrap();
}
