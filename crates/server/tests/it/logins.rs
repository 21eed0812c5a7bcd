//! Log-ins, sessions, limits and records of a server as a process.

use std::io::{BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
use scrinium_fault::wait_until;
use serde_json::{Value, json};

use crate::common::{Answer, Client, PASSWORD, SMALL, Server, command, read_answer};

/// However loaded the machine is.
const SOON: Duration = Duration::from_secs(60);

const LOCKED: &str = "Account is temporarily locked due to multiple authentication failures";

/// A connection from another address of this machine.
fn connect_from(last: u8, to: SocketAddr) -> TcpStream {
    let from = SocketAddr::from((Ipv4Addr::new(127, 0, 1, last), 0));
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&socket, &from).unwrap();
    connect(&socket, &to).unwrap();
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(SOON)).unwrap();
    stream
}

fn log_in_from(last: u8, server: &Server, name: &str, password: &str) -> Answer {
    let mut stream = connect_from(last, server.address());
    let body = json!({"name": name, "password": password}).to_string();
    let head = format!(
        "POST /_session HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(&[head.as_bytes(), body.as_bytes()].concat()).unwrap();
    read_answer(&mut BufReader::new(stream)).unwrap()
}

fn ask_with(cookie: &str, server: &Server, method: &str, path: &str) -> Answer {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    let head =
        format!("{method} {path} HTTP/1.1\r\nHost: x\r\nCookie: {cookie}\r\nContent-Length: 0\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    read_answer(&mut BufReader::new(stream)).unwrap()
}

fn cookie_of(answer: &Answer) -> String {
    answer.header("set-cookie").unwrap().split(';').next().unwrap().to_owned()
}

fn user_of(cookie: &str, server: &Server) -> Value {
    ask_with(cookie, server, "GET", "/_session").expect(200).value()["userCtx"]["name"].clone()
}

/// Writes a person, and gives the document's revision.
fn write_person(client: &mut Client, name: &str, more: &Value) -> String {
    let mut person = json!({
        "_id": format!("person:{name}"), "Form": "Person", "FullName": [format!("{name} Someone")],
        "ShortName": name, "MailFile": format!("mail/{name}"),
    });
    person.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let written = client.json("PUT", &format!("/directory/person:{name}"), &person).unwrap();
    assert_eq!(written.status, 201, "{}", written.text());
    written.value()["rev"].as_str().unwrap().to_owned()
}

fn records(client: &mut Client, kind: &str) -> Vec<Value> {
    let path = format!("/log/_all_docs?include_docs=true&startkey=%22{kind}:%22&endkey=%22{kind};%22");
    let rows = client.get(&path).unwrap().expect(200).value()["rows"].take();
    rows.as_array().unwrap().iter().map(|row| row["doc"].clone()).collect()
}

#[test]
fn a_name_is_locked_where_it_was_guessed_and_nowhere_else_and_all_of_it_is_on_record() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &SMALL);
    let mut client = server.client();
    write_person(&mut client, "ada", &json!({"password": "the right one"}));
    for number in 0..5 {
        log_in_from(7, &server, "ada", &format!("wrong {number}")).expect(401);
    }
    // Whichever of her names is used.
    for (name, password) in [("ada", "wrong"), ("ada", "the right one"), ("Ada Someone", "the right one")] {
        let refused = log_in_from(7, &server, name, password).expect(403).value();
        assert_eq!(refused, json!({"error": "forbidden", "reason": LOCKED}));
    }
    let cookie = cookie_of(&log_in_from(8, &server, "ada", "the right one").expect(200));
    assert_eq!(user_of(&cookie, &server), "ada");
    log_in_from(7, &server, "admin", PASSWORD).expect(200);
    // Names of nobody lock in the same way, so that nobody learns which there are.
    (0..5).for_each(|_| drop(log_in_from(9, &server, "nobody", "wrong").expect(401)));
    log_in_from(9, &server, "nobody", "wrong").expect(403);

    let told = client.json("POST", "/_console", &json!({"command": "show statistics Auth"})).unwrap().value();
    let figures = &told["data"]["statistics"];
    assert_eq!(figures["Auth.Failed"], 10.0);
    assert_eq!(figures["Auth.Locked"], 4.0);
    let outcomes = |client: &mut Client, outcome: &str| {
        let of = |record: &&Value| record["Outcome"] == outcome && record["Address"] == "127.0.1.7";
        records(client, "login")
            .iter()
            .filter(of)
            .map(|record| record["Count"].as_u64().unwrap())
            .sum::<u64>()
    };
    wait_until("record of a locked log-in", SOON, || outcomes(&mut client, "locked") > 0);
    assert_eq!(outcomes(&mut client, "refused and locked"), 1);
    assert!(records(&mut client, "login").iter().any(|record| record["Person"] == "ada"
        && record["Outcome"] == "accepted"
        && record["Address"] == "127.0.1.8"));
    assert!(!client.get("/log/_all_docs?include_docs=true").unwrap().text().contains("the right one"));
}

#[test]
fn a_session_that_was_ended_stays_ended_after_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path(), &SMALL);
    let (ended, kept) = (
        cookie_of(&log_in_from(1, &server, "admin", PASSWORD).expect(200)),
        cookie_of(&log_in_from(1, &server, "admin", PASSWORD).expect(200)),
    );
    assert_ne!(ended, kept);
    ask_with(&ended, &server, "DELETE", "/_session").expect(200);
    server.kill();
    server = Server::start(folder.path(), &SMALL);
    assert_eq!(user_of(&ended, &server), Value::Null);
    assert_eq!(user_of(&kept, &server), "admin");
}

/// Reads a feed to its end.
fn feed(cookie: &str, server: &Server) -> TcpStream {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    let path = "/open/_changes?feed=continuous&heartbeat=60000&since=now";
    stream
        .write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\nCookie: {cookie}\r\n\r\n").as_bytes())
        .unwrap();
    let mut head = [0; 12];
    stream.read_exact(&mut head).unwrap();
    assert_eq!(&head, b"HTTP/1.1 200");
    stream
}

fn ends(mut stream: TcpStream) {
    let mut text = String::new();
    loop {
        let mut bytes = [0; 4096];
        match stream.read(&mut bytes) {
            Ok(0) => return,
            Ok(length) => text.push_str(&String::from_utf8_lossy(&bytes[..length])),
            Err(error) => panic!("the feed goes on: {error}; {text}"),
        }
        if text.ends_with("0\r\n\r\n") {
            return;
        }
    }
}

#[test]
fn other_roles_another_password_and_leaving_end_cookies_and_feeds() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &SMALL);
    let mut client = server.client();
    client.json("PUT", "/open", &json!({})).unwrap().expect(201);
    let members = json!({"members": {"names": ["ada"], "roles": ["clerk"]}});
    client.json("PUT", "/open/_security", &members).unwrap().expect(200);
    let mut revision = write_person(&mut client, "ada", &json!({"password": "password 1"}));
    let mut password = "password 1".to_owned();
    for change in [json!({"Roles": ["clerk"]}), json!({"password": "password 2", "Roles": ["clerk"]})] {
        let cookie = cookie_of(&log_in_from(1, &server, "ada", &password).expect(200));
        let open = feed(&cookie, &server);
        let mut more = json!({"_rev": revision});
        more.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        revision = write_person(&mut client, "ada", &more);
        ends(open);
        assert_eq!(user_of(&cookie, &server), Value::Null, "{change}");
        password = change["password"].as_str().map_or(password, str::to_owned);
    }
    let cookie = cookie_of(&log_in_from(1, &server, "ada", &password).expect(200));
    let open = feed(&cookie, &server);
    client
        .ask("DELETE", &format!("/directory/person:ada?rev={revision}"), "application/json", b"")
        .unwrap()
        .expect(200);
    ends(open);
    assert_eq!(user_of(&cookie, &server), Value::Null);

    let actions = |client: &mut Client| -> Vec<String> {
        let records = records(client, "audit");
        records.iter().map(|record| record["Action"].as_str().unwrap().to_owned()).collect()
    };
    client
        .json("POST", "/_console", &json!({"command": "set config log_database.slow_after=2s"}))
        .unwrap()
        .expect(200);
    client.ask("DELETE", "/open", "application/json", b"").unwrap().expect(200);
    wait_until("audit", SOON, || actions(&mut client).contains(&"database deleted".to_owned()));
    let actions = actions(&mut client);
    for action in [
        "database created",
        "security changed",
        "person created",
        "roles changed",
        "password changed",
        "person deleted",
        "configuration set",
    ] {
        assert!(actions.iter().any(|told| told == action), "{action} is not among {actions:?}");
    }
    let all = records(&mut client, "audit");
    assert!(
        all.iter().all(|record| record["Person"] == "admin" && record["Address"] == "127.0.0.1"),
        "{all:?}"
    );
    assert!(!json!(all).to_string().contains("argon2"));
}

#[test]
fn short_passwords_are_not_taken() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &SMALL);
    let mut client = server.client();
    let person = |password: &str| {
        json!({
            "_id": "person:bob", "Form": "Person", "FullName": ["Bob"], "ShortName": "bob", "password": password
        })
    };
    let refused = client.json("PUT", "/directory/person:bob", &person("7 bytes")).unwrap();
    assert_eq!(refused.status, 403);
    assert!(refused.text().contains("between 8 and 1024 bytes"), "{}", refused.text());
    client
        .json("POST", "/_console", &json!({"command": "set config login.password_bytes=7"}))
        .unwrap()
        .expect(400);
    client.json("PUT", "/directory/person:bob", &person("7 bytes")).unwrap().expect(403);
    client.json("PUT", "/directory/person:bob", &person("8 octets")).unwrap().expect(201);
}

#[test]
fn the_first_password_stands_in_no_journal() {
    let folder = tempfile::tempdir().unwrap();
    let messages = folder.path().join("messages");
    let mut child = command(folder.path())
        .env_remove("SCRINIUM_ADMIN_PASSWORD")
        .envs(SMALL)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(&messages).unwrap())
        .spawn()
        .unwrap();
    let told = || std::fs::read_to_string(&messages).unwrap();
    wait_until("port", SOON, || told().contains("listening"));
    child.kill().unwrap();
    child.wait().unwrap();
    let path = folder.path().join("data").join("admin.credentials");
    let kept = std::fs::read_to_string(&path).unwrap();
    let password = kept.trim().strip_prefix("admin:").unwrap();
    assert!(password.len() >= 20 && !told().contains(password));
    assert!(told().contains("admin.credentials"), "{}", told());
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_crowd_that_holds_all_connections_keeps_nobody_out_and_stops_no_write() {
    for files in [256, 1024] {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::start_limited(folder.path(), &SMALL, files);
        let mut client = server.client();
        client.json("PUT", "/db", &json!({})).unwrap().expect(201);
        let mut crowd: Vec<TcpStream> = Vec::new();
        for number in 0..500_u16 {
            crowd.push(connect_from(u8::try_from(number % 100).unwrap(), server.address()));
        }
        // More than an extent of the log, so that it needs further ones meanwhile.
        let text = "x".repeat(64 << 10);
        for number in 0..40 {
            let path = format!("/db/{number}");
            server.client().json("PUT", &path, &json!({"text": text})).unwrap().expect(201);
        }
        drop(crowd);
        server.client().get("/db/39").unwrap().expect(200);
        server.client().json("PUT", "/db/last", &json!({})).unwrap().expect(201);
    }
}

#[test]
fn honest_clients_work_through_a_storm_of_wrong_log_ins() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &SMALL);
    let mut client = server.client();
    client.json("PUT", "/db", &json!({})).unwrap().expect(201);
    write_person(&mut client, "ada", &json!({"password": "the right one"}));
    log_in_from(200, &server, "ada", "the right one").expect(200);
    let until = Instant::now() + Duration::from_secs(3);
    let refused = std::thread::scope(|scope| {
        let storm: Vec<_> = (0..40_u8)
            .map(|number| {
                let server = &server;
                scope.spawn(move || {
                    let mut answers = [0_usize; 3];
                    let mut tries = 0;
                    while Instant::now() < until {
                        tries += 1;
                        let name = format!("name{number}");
                        let status = log_in_from(number, server, &name, &format!("wrong {tries}")).status;
                        let index = [401, 403, 429].iter().position(|known| *known == status);
                        answers[index.unwrap_or_else(|| panic!("status {status}"))] += 1;
                    }
                    answers
                })
            })
            .collect();
        let mut worked = 0;
        while Instant::now() < until {
            client.json("PUT", &format!("/db/{worked}"), &json!({})).unwrap().expect(201);
            worked += 1;
        }
        assert!(worked > 3, "an honest client with a session hardly works");
        log_in_from(200, &server, "ada", "the right one").expect(200);
        storm.into_iter().map(|thread| thread.join().unwrap()).fold([0; 3], |mut sum, answers| {
            sum.iter_mut().zip(answers).for_each(|(sum, answer)| *sum += answer);
            sum
        })
    });
    // Five of each were looked at, at most.
    assert!(refused[0] <= 200 && refused.iter().sum::<usize>() > 40, "{refused:?}");
    // A storm leaves some hundred records.
    assert!(records(&mut client, "login").len() < 400);
}
