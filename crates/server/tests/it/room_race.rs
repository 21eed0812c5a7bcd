//! One room, one hour, 64 programs of 8 people who invite it at once: by CalDAV, by mail, and by a document. In each round exactly one gets
//! it, whenever the server is killed.
//!
//! `SCRINIUM_SEED=…` repeats a run as far as the moments of kills can be repeated; `SCRINIUM_ROUNDS` is how many rounds there are. The server
//! is killed in each twentieth.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use scrinium_fault::{Kills, wait_until};
use serde_json::{Value, json};

use crate::common::{SMALL, Server, read_answer};

/// Programs that invite at once.
const CLIENTS: usize = 64;

/// Whose they are, in turn.
const PEOPLE: usize = 8;
const KILLED_EVERY: usize = 20;

/// Rounds before the first kill.
const KILLED_AFTER: usize = 2;

/// So long somebody tries to invite the room, and waits for its answer.
const WITHIN: Duration = Duration::from_secs(120);

/// Rounds are hours of months of this many days, from 1 January 2027 on.
const DAYS_OF_A_MONTH: usize = 28;

/// A server that comes back at the same ports.
struct Place<'f> {
    folder: &'f Path,
    http: u16,
    submission: u16,
}

impl Place<'_> {
    fn start(&self) -> Server {
        let [http, submission] = [self.http, self.submission].map(|port| format!("127.0.0.1:{port}"));
        let own = [
            ("SCRINIUM_HTTP__LISTEN", http.as_str()),
            ("SCRINIUM_MAIL__DOMAINS", "acme.example"),
            ("SCRINIUM_SUBMISSION__LISTEN", &submission),
            ("SCRINIUM_SUBMISSION__LOOPBACK_WITHOUT_TLS", "true"),
        ];
        Server::start(self.folder, &[&SMALL[..], &own].concat())
    }

    /// One request of somebody; an error where the server has gone.
    fn ask(
        &self,
        who: &Person,
        (method, path): (&str, &str),
        headers: &str,
        body: &str,
    ) -> io::Result<(u16, String)> {
        let stream = TcpStream::connect(("127.0.0.1", self.http))?;
        stream.set_read_timeout(Some(WITHIN))?;
        let login = STANDARD.encode(format!("{}:{}", who.name, who.password));
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Basic {login}\r\n{headers}\
             Content-Length: {}\r\n\r\n",
            body.len()
        );
        (&stream).write_all(format!("{head}{body}").as_bytes())?;
        let answer = read_answer(&mut BufReader::new(stream))?;
        Ok((answer.status, answer.text()))
    }
}

struct Person {
    name: String,
    password: String,
}

/// The room, and people with app passwords, which cost nothing to look at.
fn with_people(server: &Server, place: &Place<'_>) -> Vec<Person> {
    let mut client = server.client();
    let old = "a password of old";
    let person = |name: &str, more: Value| {
        let mut person = json!({"_id": format!("person:{name}"), "Form": "Person", "ShortName": name, "FullName": [name],
            "InternetAddress": format!("{name}@acme.example"), "password": old});
        person.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        person
    };
    let mut docs = vec![person("room", json!({"MailReaders": ["p0"]}))];
    docs.extend((0..PEOPLE).map(|number| person(&format!("p{number}"), json!({}))));
    client.json("POST", "/directory/_bulk_docs", &json!({"docs": docs})).unwrap().expect(201);
    let with_app_password = |name: String| {
        let asked = json!({"name": "all", "protocols": ["http", "submission", "calendars"]}).to_string();
        let own = Person { name, password: old.to_owned() };
        let headers = "Content-Type: application/json\r\n";
        let (status, made) =
            place.ask(&own, ("POST", "/_credentials/app_passwords"), headers, &asked).unwrap();
        assert_eq!(status, 200, "{made}");
        let made: Value = serde_json::from_str(&made).unwrap();
        Person { name: own.name, password: made["password"].as_str().unwrap().to_owned() }
    };
    let room = with_app_password("room".to_owned());
    let (status, said) = place.ask(&room, ("PROPFIND", "/_dav/calendars/room/"), "Depth: 1\r\n", "").unwrap();
    assert_eq!(status, 207, "{said}");
    let profile = json!({"Resource": "room", "BookingAheadDays": 4_000});
    client.json("PUT", "/mail%2Froom/calendarprofile", &profile).unwrap().expect(201);
    (0..PEOPLE).map(|number| with_app_password(format!("p{number}"))).collect()
}

/// Begin and end of a round's hour.
fn hour(round: usize) -> [String; 2] {
    let at = |hours: usize| {
        let (days, hour) = (hours / 24, hours % 24);
        let (months, day) = (days / DAYS_OF_A_MONTH, 1 + days % DAYS_OF_A_MONTH);
        format!("{}{:02}{day:02}T{hour:02}0000Z", 2027 + months / 12, 1 + months % 12)
    };
    [at(round), at(round + 1)]
}

fn uid(round: usize, who: usize) -> String {
    format!("round-{round}-by-{who}")
}

fn meeting((round, who): (usize, usize), method: &str) -> String {
    let [from, to] = hour(round);
    format!(
        "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//race//EN\r\n{method}BEGIN:VEVENT\r\nUID:{}\r\nDTSTAMP:20260101T000000Z\r\n\
         DTSTART:{from}\r\nDTEND:{to}\r\nSUMMARY:Round {round}\r\nORGANIZER:mailto:p{}@acme.example\r\n\
         ATTENDEE;CUTYPE=ROOM;PARTSTAT=NEEDS-ACTION;RSVP=TRUE:mailto:room@acme.example\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n",
        uid(round, who),
        who % PEOPLE
    )
}

/// Invites the room in one of the three ways; an error where it is to be tried again.
fn invite(place: &Place<'_>, people: &[Person], (round, who): (usize, usize)) -> io::Result<()> {
    let person = &people[who % PEOPLE];
    match who % 3 {
        0 => {
            let path = own_copy(round, who);
            let (status, said) = place.ask(
                person,
                ("PUT", &path),
                "Content-Type: text/calendar\r\n",
                &meeting((round, who), ""),
            )?;
            taken(status, &[201, 204], &said)
        }
        1 => submit(place, person, &message((round, who))),
        _ => {
            let data = STANDARD.encode(meeting((round, who), "METHOD:REQUEST\r\n"));
            let memo = json!({"Form": "Memo", "SendTo": ["room@acme.example"], "Subject": format!("Round {round}"),
                "From": format!("{}@acme.example", person.name), "$FileTypes": ["text/calendar"],
                "_attachments": {"invite.ics": {"content_type": "text/calendar; method=REQUEST", "data": data}}});
            let path = format!("/mail.box/{}", uid(round, who));
            let headers = "Content-Type: application/json\r\n";
            let (status, said) = place.ask(person, ("PUT", &path), headers, &memo.to_string())?;
            // What was stored before the answer was lost conflicts.
            taken(status, &[201, 409], &said)
        }
    }
}

fn own_copy(round: usize, who: usize) -> String {
    format!("/_dav/calendars/p{}/calendar/{}.ics", who % PEOPLE, uid(round, who))
}

/// A server that has just begun may be busy.
fn taken(status: u16, good: &[u16], said: &str) -> io::Result<()> {
    assert!(good.contains(&status) || [429, 503].contains(&status), "{status}: {said}");
    if good.contains(&status) { Ok(()) } else { Err(io::Error::other("busy")) }
}

fn message((round, who): (usize, usize)) -> String {
    let calendar = meeting((round, who), "METHOD:REQUEST\r\n");
    format!(
        "From: p{}@acme.example\r\nTo: room@acme.example\r\nSubject: Round {round}\r\nMessage-ID: <{}@acme.example>\r\n\
         MIME-Version: 1.0\r\nContent-Type: multipart/alternative; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\n\
         Come.\r\n--b\r\nContent-Type: text/calendar; method=REQUEST; charset=utf-8\r\n\r\n{calendar}--b--\r\n",
        who % PEOPLE,
        uid(round, who)
    )
}

fn submit(place: &Place<'_>, person: &Person, message: &str) -> io::Result<()> {
    let stream = TcpStream::connect(("127.0.0.1", place.submission))?;
    stream.set_read_timeout(Some(WITHIN))?;
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let mut expect = |code: &str| -> io::Result<()> {
        loop {
            let line = lines.next().ok_or(io::ErrorKind::UnexpectedEof)??;
            if line.as_bytes().get(3) != Some(&b'-') {
                let is_temporary = line.starts_with('4');
                assert!(is_temporary || line.starts_with(code), "{line}");
                return if is_temporary { Err(io::Error::other(line)) } else { Ok(()) };
            }
        }
    };
    expect("220")?;
    let login = STANDARD.encode(format!("\0{}\0{}", person.name, person.password));
    let from = format!("MAIL FROM:<{}@acme.example>", person.name);
    for (command, code) in [
        ("EHLO home.example".to_owned(), "250"),
        (format!("AUTH PLAIN {login}"), "235"),
        (from, "250"),
        ("RCPT TO:<room@acme.example>".to_owned(), "250"),
        ("DATA".to_owned(), "354"),
        (format!("{message}."), "250"),
    ] {
        (&stream).write_all(format!("{command}\r\n").as_bytes())?;
        expect(code)?;
    }
    Ok(())
}

/// What the room has in a round's hour: UIDs of meetings.
fn booked(place: &Place<'_>, reader: &Person, round: usize) -> Vec<String> {
    let [from, to] = hour(round);
    let query = format!(
        "<C:calendar-query xmlns:C=\"urn:ietf:params:xml:ns:caldav\" xmlns:D=\"DAV:\"><D:prop><C:calendar-data/></D:prop><C:filter>\
         <C:comp-filter name=\"VCALENDAR\"><C:comp-filter name=\"VEVENT\"><C:time-range start=\"{from}\" end=\"{to}\"/>\
         </C:comp-filter></C:comp-filter></C:filter></C:calendar-query>"
    );
    let path = "/_dav/calendars/room/calendar/";
    let (status, found) = place.ask(reader, ("REPORT", path), "Depth: 1\r\n", &query).unwrap();
    assert_eq!(status, 207, "{found}");
    let found = found.replace("\r\n ", "");
    let uids = found.lines().filter_map(|line| line.strip_prefix("UID:"));
    uids.map(|uid| uid.trim_end_matches("&#13;").trim().to_owned()).collect()
}

/// Messages that have been delivered to the room.
fn delivered(server: &Server) -> u64 {
    let answer = server.client().get("/mail%2Froom/_folder").unwrap().expect(200).value();
    let folders = answer["folders"].as_array().unwrap();
    let inbox = folders.iter().find(|folder| folder["name"] == "Inbox");
    inbox.map_or(0, |inbox| inbox["total"].as_u64().unwrap())
}

/// A round: all invite at once, and the server may be killed meanwhile. Gives who has the room.
fn race(
    place: &Place<'_>,
    server: &mut Server,
    people: &[Person],
    round: usize,
    kill_after: Option<Duration>,
) -> usize {
    std::thread::scope(|scope| {
        for who in 0..CLIENTS {
            scope.spawn(move || {
                let began = Instant::now();
                while let Err(error) = invite(place, people, (round, who)) {
                    assert!(began.elapsed() < WITHIN, "p{who} cannot invite in round {round}: {error}");
                    std::thread::sleep(Duration::from_millis(30));
                }
            });
        }
        if let Some(after) = kill_after {
            std::thread::sleep(after);
            server.kill();
            *server = place.start();
        }
    });
    let wanted = (CLIENTS * (round + 1)) as u64;
    wait_until("all invitations are delivered", WITHIN, || delivered(server) >= wanted);
    let found = booked(place, &people[0], round);
    assert_eq!(found.len(), 1, "round {round}: {found:?}");
    let winner: usize = found[0].rsplit('-').next().unwrap().parse().unwrap();
    assert_eq!(found[0], uid(round, winner));
    // Those who invited by a program see the answer in their own copies.
    for who in (0..CLIENTS).step_by(3) {
        let answer = if who == winner { "PARTSTAT=ACCEPTED" } else { "PARTSTAT=DECLINED" };
        wait_until("the answer is there", WITHIN, || {
            let (_, own) = place.ask(&people[who % PEOPLE], ("GET", &own_copy(round, who)), "", "").unwrap();
            own.replace("\r\n ", "").contains(answer)
        });
    }
    winner
}

/// How many messages somebody has with a subject that begins so.
fn told(server: &Server, who: usize, beginning: &str) -> usize {
    let answer = server.client().get(&format!("/mail%2Fp{who}/_all_docs?include_docs=true")).unwrap();
    if answer.status == 404 {
        return 0;
    }
    let answer = answer.expect(200).value();
    let subject =
        |row: &Value| row["doc"]["Subject"].as_str().is_some_and(|text| text.starts_with(beginning));
    answer["rows"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["doc"]["Form"] == "Memo" && subject(row))
        .count()
}

#[test]
fn one_of_all_who_want_a_room_at_once_gets_it() {
    let usual = if std::env::var_os("SCRINIUM_TIMES").is_some() { 1_000 } else { 4 };
    let rounds =
        std::env::var("SCRINIUM_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(usual);
    let kills = Kills::from_environment(0);
    println!("{kills} SCRINIUM_ROUNDS={rounds}");
    let mut random = StdRng::seed_from_u64(kills.seed);
    let folder = tempfile::tempdir().unwrap();
    let free = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let place = Place { folder: folder.path(), http: free(), submission: free() };
    let mut server = place.start();
    let people = with_people(&server, &place);
    let mut won = [0; PEOPLE];
    for round in 0..rounds {
        let is_killed = round % KILLED_EVERY == KILLED_AFTER;
        let kill_after = is_killed.then(|| Duration::from_millis(random.random_range(0..600)));
        won[race(&place, &mut server, &people, round, kill_after) % PEOPLE] += 1;
    }
    println!("won: {won:?}");
    // Each invitation was answered by a message.
    for (who, won) in won.into_iter().enumerate() {
        let asked = rounds * CLIENTS / PEOPLE;
        // Who invites once more, since a kill has taken the answer, is answered once more.
        let answers = || ["Accepted:", "Declined:"].map(|word| told(&server, who, word));
        wait_until("all are answered", WITHIN, || {
            let [accepted, declined] = answers();
            accepted >= won && declined >= asked - won
        });
        let [accepted, declined] = answers();
        assert_eq!(accepted == 0, won == 0, "p{who} was told of {accepted} bookings, and has {won}");
        let is_killed = rounds > KILLED_AFTER;
        assert!(is_killed || accepted + declined == asked, "p{who} was answered more than once");
    }
}
