//! Mail leaves a server that is killed again and again, and goes between two servers.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::common::{Client, SMALL, Server};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use scrinium_fault::Kills;
use serde_json::{Value, json};

const KILLS: u64 = 6;
const MESSAGES_A_ROUND: usize = 20;
const SETTLED_WITHIN: Duration = Duration::from_secs(60);

/// What was received is recorded and synced by the other side in a moment; a kill loses no more than that.
const MOMENT: Duration = Duration::from_secs(10);

/// A mail server that takes what is for `ok…`, and refuses the rest.
#[derive(Clone)]
struct Sink {
    address: SocketAddr,
    received: Arc<Mutex<HashMap<String, Vec<Instant>>>>,
}

impl Sink {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let sink = Self { address: listener.local_addr().unwrap(), received: Arc::default() };
        let serving = sink.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let sink = serving.clone();
                std::thread::spawn(move || drop(sink.serve(stream)));
            }
        });
        sink
    }

    fn serve(&self, stream: TcpStream) -> std::io::Result<()> {
        stream.set_read_timeout(Some(Duration::from_secs(120)))?;
        let mut reader = BufReader::new(stream.try_clone()?);
        let mut writer = stream;
        writer.write_all(b"220 sink\r\n")?;
        let mut recipients = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let reply: &[u8] = match line.get(..4).unwrap_or_default() {
                "EHLO" => b"250-sink\r\n250 PIPELINING\r\n",
                "RCPT" if line.contains("<ok") => {
                    recipients.push(line.split(['<', '>']).nth(1).unwrap_or_default().to_owned());
                    b"250 ok\r\n"
                }
                "RCPT" => b"550 5.1.1 no such user\r\n",
                "DATA" if recipients.is_empty() => b"554 nobody\r\n",
                "DATA" => {
                    writer.write_all(b"354 go on\r\n")?;
                    loop {
                        let mut line = String::new();
                        if reader.read_line(&mut line)? == 0 {
                            return Ok(());
                        }
                        if line == ".\r\n" {
                            break;
                        }
                    }
                    let mut received = self.received.lock().unwrap();
                    for recipient in recipients.drain(..) {
                        received.entry(recipient).or_default().push(Instant::now());
                    }
                    b"250 taken\r\n"
                }
                "QUIT" => return writer.write_all(b"221 bye\r\n"),
                _ => b"250 ok\r\n",
            };
            writer.write_all(reply)?;
        }
    }
}

fn settings(sink: SocketAddr) -> Vec<(&'static str, String)> {
    let mut settings: Vec<(&'static str, String)> =
        SMALL.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    settings.extend([
        ("SCRINIUM_MAIL__DOMAINS", "acme.example".to_owned()),
        ("SCRINIUM_OUTBOUND__ROUTE", "relay".to_owned()),
        ("SCRINIUM_OUTBOUND__RELAY", sink.to_string()),
        ("SCRINIUM_QUEUE__FIRST_RETRY", "1 s".to_owned()),
        ("SCRINIUM_QUEUE__LONGEST_RETRY", "2 s".to_owned()),
    ]);
    settings
}

fn start(folder: &std::path::Path, settings: &[(&'static str, String)]) -> Server {
    let settings: Vec<(&str, &str)> = settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
    Server::start(folder, &settings)
}

fn add_person(client: &mut Client, name: &str, domain: &str) {
    let person = json!({"_id": format!("person:{name}"), "Form": "Person", "FullName": [name], "ShortName": name,
        "InternetAddress": format!("{name}@{domain}"), "password": "a long password"});
    client.json("PUT", &format!("/directory/person:{name}"), &person).unwrap().expect(201);
}

/// A client of somebody who has logged in: what they post is theirs, and they hear what becomes of it.
fn log_in(server: &Server, name: &str) -> Client {
    let log_in = json!({"name": name, "password": "a long password"});
    let answer = server.client().json("POST", "/_session", &log_in).unwrap().expect(200);
    let cookie = answer.header("set-cookie").unwrap().split(';').next().unwrap();
    server.client_with(cookie)
}

fn memos_of(client: &mut Client, name: &str) -> Vec<Value> {
    let answer = client.get(&format!("/mail%2F{name}/_all_docs?include_docs=true")).unwrap();
    if answer.status == 404 {
        return Vec::new();
    }
    let rows = answer.expect(200).value()["rows"].as_array().unwrap().clone();
    rows.into_iter().map(|row| row["doc"].clone()).filter(|memo| memo.get("Subject").is_some()).collect()
}

fn queued(client: &mut Client) -> u64 {
    client.get("/smtp.box").unwrap().expect(200).value()["doc_count"].as_u64().unwrap()
}

fn wait(what: &str, mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < SETTLED_WITHIN, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn what_leaves_a_server_that_is_killed_arrives_and_failures_are_told_once() {
    let kills = Kills::from_environment(KILLS);
    println!("{kills}");
    let mut random = StdRng::seed_from_u64(kills.seed);
    let sink = Sink::start();
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(sink.address);
    let mut server = start(folder.path(), &settings);
    add_person(&mut server.client(), "ada", "acme.example");
    let (mut wanted, mut refused, mut killed) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..kills.count {
        let mut ada = log_in(&server, "ada");
        for number in 0..MESSAGES_A_ROUND {
            let is_refused = number % 5 == 0;
            let to =
                format!("{}-{round}-{number}@d{}.example", if is_refused { "no" } else { "ok" }, number % 3);
            let memo = json!({"Form": "Memo", "From": "ada", "SendTo": [to], "Subject": to, "Body": "x"});
            ada.json("POST", "/mail.box", &memo).unwrap().expect(201);
            if is_refused { refused.push(to) } else { wanted.push(to) }
        }
        std::thread::sleep(Duration::from_millis(random.random_range(0..400)));
        server.kill();
        killed.push(Instant::now());
        server = start(folder.path(), &settings);
    }
    let mut client = server.client();
    wait("the queue becomes empty", || {
        queued(&mut client) == 0 && client.get("/mail.box").unwrap().value()["doc_count"] == 0
    });
    wait("each failure is reported", || memos_of(&mut client, "ada").len() >= refused.len());
    let notices = memos_of(&mut client, "ada");
    assert_eq!(notices.len(), refused.len(), "each failure is reported once");
    for to in &refused {
        let about = notices.iter().filter(|notice| notice["Body"].as_str().unwrap().contains(to.as_str()));
        assert_eq!(about.count(), 1, "{to}");
    }
    let received = sink.received.lock().unwrap();
    for to in &wanted {
        let times = received.get(to).unwrap_or_else(|| panic!("{to} got nothing"));
        for pair in times.windows(2) {
            let is_cut = |kill: &&Instant| pair[0] < **kill && **kill - pair[0] < MOMENT && **kill < pair[1];
            assert!(killed.iter().any(|kill| is_cut(&kill)), "{to} came twice, and no kill was between");
        }
    }
    assert_eq!(received.len(), wanted.len());
}

#[test]
fn two_servers_exchange_mail_and_a_message_can_be_traced() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let port = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
    let free = || TcpListener::bind(port(0)).unwrap().local_addr().unwrap();
    let (first, second) = (free(), free());
    let settings_of = |own: SocketAddr, other: SocketAddr, domain: &str| {
        let mut settings = settings(other);
        settings[SMALL.len()].1 = domain.to_owned();
        settings.push(("SCRINIUM_SMTP__LISTEN", own.to_string()));
        settings.push(("SCRINIUM_SERVER__NAME", format!("mx.{domain}")));
        settings
    };
    let server = start(here.path(), &settings_of(first, second, "here.example"));
    let other = start(there.path(), &settings_of(second, first, "there.example"));
    let (mut client, mut friend) = (server.client(), other.client());
    add_person(&mut client, "ada", "here.example");
    add_person(&mut friend, "bob", "there.example");
    let memo = json!({"Form": "Memo", "From": "ada", "SendTo": ["bob@there.example", "nobody@there.example"],
        "Subject": "Gr\u{fc}\u{df}e", "Body": "Hello\n.\nGr\u{fc}\u{df}e"});
    let mut ada = log_in(&server, "ada");
    ada.json("POST", "/mail.box", &memo).unwrap().expect(201);
    wait("bob has it", || !memos_of(&mut friend, "bob").is_empty());
    let [memo] = <[Value; 1]>::try_from(memos_of(&mut friend, "bob")).unwrap();
    assert_eq!(
        (&memo["Subject"], &memo["From"]),
        (&json!("Gr\u{fc}\u{df}e"), &json!("ada <ada@here.example>"))
    );
    assert_eq!(memo["Body"].as_str().unwrap().trim_end(), "Hello\n.\nGr\u{fc}\u{df}e");
    wait("ada hears of the other", || !memos_of(&mut client, "ada").is_empty());
    assert_eq!(memos_of(&mut client, "ada")[0]["Subject"], "Your message was not delivered");
    let reply = json!({"Form": "Memo", "From": "bob", "SendTo": ["Ada <ada@here.example>"], "Subject": "Re", "Body": "x"});
    friend.json("POST", "/mail.box", &reply).unwrap().expect(201);
    wait("ada has the answer", || memos_of(&mut client, "ada").iter().any(|memo| memo["Subject"] == "Re"));
    let id = memo["$MessageID"].as_str().unwrap();
    let ask = |client: &mut Client, command: &str| {
        client.json("POST", "/_console", &json!({"command": command})).unwrap().expect(200).value()
    };
    wait("the trace is written", || {
        let text = ask(&mut client, &format!("show message {id}"))["text"].as_str().unwrap().to_owned();
        let words =
            ["queued for 2 recipients", "attempt 1 began", "has taken the message", "removed from the queue"];
        words.iter().all(|words| text.contains(words))
    });
    assert_eq!(ask(&mut client, "show queue")["text"], "Nothing waits.\n");
    // Only administrators see the queue.
    for path in ["/smtp.box", "/smtp.box/_all_docs", "/smtp.box/_changes"] {
        assert_eq!(ada.get(path).unwrap().status, 404, "{path}: as if there were none");
    }
    assert_eq!(ada.json("POST", "/_console", &json!({"command": "show queue"})).unwrap().status, 401);
    // What a memo says of its envelope is the server's.
    let forged = json!({"Form": "Memo", "SendTo": ["bob@there.example"], "Subject": "forged", "Body": "x",
        "$ReturnPath": "victim@there.example", "$Envelope": {"release_ms": 9_999_999_999_999_u64, "submitter": "bob"}});
    ada.json("POST", "/mail.box", &forged).unwrap().expect(201);
    wait("it is sent as hers", || {
        memos_of(&mut friend, "bob").iter().any(|memo| memo["Subject"] == "forged")
    });
    let memos = memos_of(&mut friend, "bob");
    let forged = memos.iter().find(|memo| memo["Subject"] == "forged").unwrap();
    assert_eq!(forged["$ReturnPath"], "ada@here.example");
}
