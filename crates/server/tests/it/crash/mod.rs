//! The server's promise across kills: what was acknowledged is there, no memo comes twice, and views equal
//! what is rebuilt.
//!
//! Sixteen clients write documents and deposit memos into a server that is killed at random moments, while
//! starting too, again and again. Now and then it has no log, and databases are taken out of it and put back, and moved
//! between volumes all the time. `SCRINIUM_SEED=… SCRINIUM_KILLS=… cargo test -p scrinium-server --test it
//! crash` repeats a run, as far as the moments of kills can be repeated, or makes it longer.

mod check;
mod state;
mod writer;

use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::{Client, SMALL, Server};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use scrinium_fault::Kills;
use serde_json::json;
use writer::Writer;

pub(crate) const DATABASES: [&str; 3] = ["notes", "papers", "projects"];
pub(crate) const PEOPLE: [&str; 6] = ["p0", "p1", "p2", "p3", "p4", "p5"];
/// Groups with their members, as places in [`PEOPLE`].
pub(crate) const GROUPS: [(&str, &[usize]); 2] = [("everybody", &[0, 1, 2, 3, 4, 5]), ("few", &[1, 2])];

/// The small server with a second store.
const WITH_VOLUME: [(&str, &str); 5] = {
    let [budget, extent, checkpoint, reserve] = SMALL;
    [budget, extent, checkpoint, reserve, ("SCRINIUM_VOLUME__FAST__DIR", "volume-fast")]
};

const CLIENTS: u64 = 16;
const KILLS: u64 = 10;

/// All is checked after this many kills, and at the end; what was written last after each.
const CHECK_EVERY: u64 = 10;

const FIRST_STARTS: u64 = 10;

const ROUTED_WITHIN: Duration = Duration::from_secs(60);
const MOVED_WITHIN: Duration = Duration::from_secs(30);

#[test]
fn nothing_acknowledged_is_lost_whenever_the_server_is_killed() {
    let kills = Kills::from_environment(KILLS);
    println!("{kills}");
    let mut random = StdRng::seed_from_u64(kills.seed);
    let kills = kills.count;
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut writers: Vec<Writer> = (0..CLIENTS).map(|number| Writer::new(number, random.random())).collect();
    // The very first start is killed too, before there is anything.
    for _ in 0..2 {
        die_while_starting(folder, &mut random);
    }
    let mut server = Server::start(folder, &WITH_VOLUME);
    prepare(&mut server.client());
    for kill in 2..kills {
        if random.random_ratio(1, 8) {
            server.kill();
            die_while_starting(folder, &mut random);
        } else {
            write_until_killed(&mut server, &mut writers, &mut random);
        }
        server = Server::start(folder, &settings(&mut random));
        settle(&server, &mut writers);
        if kill % CHECK_EVERY == 0 {
            println!("kill {kill}: {}", check::all(&mut server.client(), &writers, kill));
        }
    }
    check_in_the_end(server, folder, &mut writers, kills);
}

/// Whatever of a new folder is there when the server dies, the next start makes the rest.
#[test]
fn a_first_start_may_be_killed_at_any_moment() {
    let kills = Kills::from_environment(FIRST_STARTS);
    println!("{kills}");
    let mut random = StdRng::seed_from_u64(kills.seed);
    for _ in 0..kills.count {
        let folder = tempfile::tempdir().unwrap();
        let mut server = Server::spawn(folder.path(), &SMALL);
        std::thread::sleep(Duration::from_millis(random.random_range(5..150)));
        server.kill();
        let server = Server::start(folder.path(), &SMALL);
        prepare(&mut server.client());
    }
}

fn check_in_the_end(mut server: Server, folder: &Path, writers: &mut [Writer], kills: u64) {
    settle(&server, writers);
    let mut client = server.client();
    wait_until_routed(&mut client);
    println!("in the end: {}", check::all(&mut client, writers, kills));
    check::mail_is_complete(&mut client, writers);
    assert_eq!(server.terminate(Duration::from_secs(60)).code(), Some(0));
    let server = Server::start(folder, &WITH_VOLUME);
    volumes_are_in_order(&mut server.client());
    println!("after an orderly end: {}", check::all(&mut server.client(), writers, kills + 1));
    check::mail_is_complete(&mut server.client(), writers);
}

fn prepare(client: &mut Client) {
    for name in PEOPLE {
        let person = json!({"Form": "Person", "FullName": [format!("{name}/Acme")], "ShortName": name,
            "MailFile": format!("mail/{name}"), "password": "secret enough"});
        client.json("PUT", &format!("/directory/person:{name}"), &person).unwrap().expect(201);
    }
    for (name, members) in GROUPS {
        let members: Vec<&str> = members.iter().map(|place| PEOPLE[*place]).collect();
        let group = json!({"Form": "Group", "ListName": name, "Members": members});
        client.json("PUT", &format!("/directory/group:{name}"), &group).unwrap().expect(201);
    }
    for database in DATABASES {
        client.ask("PUT", &format!("/{database}"), "application/json", &[]).unwrap().expect(201);
        let path = format!("/{database}/_design/views");
        client.json("PUT", &path, &check::design(check::TITLES)).unwrap().expect(201);
    }
}

/// Some lives have no log, and some a small one.
fn settings(random: &mut StdRng) -> Vec<(&'static str, &'static str)> {
    let mut settings = WITH_VOLUME.to_vec();
    if random.random_ratio(1, 6) {
        settings.push(("SCRINIUM_LOG__STYLE", "off"));
    }
    if random.random_ratio(1, 3) {
        settings.push(("SCRINIUM_LOG__MAX_SIZE", "3 MB"));
    }
    settings
}

/// Switches logging of one of the databases on or off, while it is written to.
fn change_logging(client: &mut Client, random: &mut StdRng) -> std::io::Result<()> {
    let (database, logged) = (DATABASES[random.random_range(0..DATABASES.len())], random.random_ratio(1, 2));
    let path = format!("/{database}/_properties");
    client.json("PUT", &path, &json!({"logged": logged}))?.expect(200);
    std::thread::sleep(Duration::from_millis(random.random_range(0..200)));
    Ok(())
}

/// Moves a database or a mail file to another volume, whatever becomes of it.
fn move_a_database(client: &mut Client, random: &mut StdRng) -> std::io::Result<()> {
    let mail = PEOPLE.map(|person| format!("mail/{person}"));
    let movable: Vec<&str> = DATABASES.into_iter().chain(mail.iter().map(String::as_str)).collect();
    let database = movable[random.random_range(0..movable.len())];
    let volume = if random.random_ratio(1, 2) { "main" } else { "fast" };
    // It may lie there, be on its way, or not be there yet.
    client.json("POST", "/_console", &json!({"command": format!("load move {database} {volume}")}))?;
    std::thread::sleep(Duration::from_millis(random.random_range(0..60)));
    Ok(())
}

/// No volume is missing, and a database can still be moved. None may be left on the second one: kills end moves.
fn volumes_are_in_order(client: &mut Client) {
    let began = Instant::now();
    loop {
        let mut shown =
            client.json("POST", "/_console", &json!({"command": "show volumes"})).unwrap().value();
        let volumes = shown["data"]["volumes"].take();
        let names: Vec<&str> =
            volumes.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["main", "fast"], "{volumes}");
        assert!(volumes.as_array().unwrap().iter().all(|volume| volume["missing"].is_null()), "{volumes}");
        if volumes[1]["databases"].as_u64().unwrap() > 0 {
            return;
        }
        assert!(began.elapsed() < MOVED_WITHIN, "nothing can be moved: {volumes}");
        let command = format!("load move {} fast", DATABASES[0]);
        client.json("POST", "/_console", &json!({"command": command})).unwrap();
        std::thread::sleep(Duration::from_millis(200));
    }
}

fn die_while_starting(folder: &Path, random: &mut StdRng) {
    let mut server = Server::spawn(folder, &WITH_VOLUME);
    std::thread::sleep(Duration::from_millis(random.random_range(0..400)));
    server.kill();
}

/// Every client makes sure of what it knows, side by side.
fn settle(server: &Server, writers: &mut [Writer]) {
    std::thread::scope(|scope| {
        for writer in writers {
            let mut client = server.client();
            scope.spawn(move || writer.settle(&mut client));
        }
    });
}

fn write_until_killed(server: &mut Server, writers: &mut [Writer], random: &mut StdRng) {
    // Seldom long enough for a checkpoint to be made in peace.
    let longest_ms = if random.random_ratio(1, 8) { 2_000 } else { 400 };
    let life = Duration::from_millis(random.random_range(50..longest_ms));
    std::thread::scope(|scope| {
        for writer in writers {
            let mut client = server.client();
            // It ends when the server does.
            scope.spawn(move || while writer.write(&mut client).is_ok() {});
        }
        let mut reader = server.client();
        scope.spawn(move || while check::read_a_page(&mut reader).is_ok() {});
        let (mut administrator, mut choices) = (server.client(), StdRng::seed_from_u64(random.random()));
        scope.spawn(move || while change_logging(&mut administrator, &mut choices).is_ok() {});
        let (mut mover, mut choices) = (server.client(), StdRng::seed_from_u64(random.random()));
        scope.spawn(move || while move_a_database(&mut mover, &mut choices).is_ok() {});
        std::thread::sleep(life);
        server.kill();
    });
}

fn wait_until_routed(client: &mut Client) {
    let began = Instant::now();
    loop {
        let waiting: u64 = check::mailboxes(client)
            .iter()
            .map(|name| client.get(&format!("/{name}")).unwrap().value()["doc_count"].as_u64().unwrap())
            .sum();
        if waiting == 0 {
            return;
        }
        assert!(began.elapsed() < ROUTED_WITHIN, "{waiting} memos still wait for the router");
        std::thread::sleep(Duration::from_millis(50));
    }
}
