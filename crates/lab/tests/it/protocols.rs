//! What the clients of mail and calendars make of servers that answer rightly, wrongly, slowly and not at all.

use std::io::Write as _;
use std::time::Duration;

use crate::scripted::{Hear, Scripted, Stay, Step, say, session};
use proptest::prelude::*;
use scrinium_lab::driver::{
    Driver, Failure, FailureKind, HttpDriver, HttpOptions, Letter, MessageNumber, Pop3Entry, Session,
    TargetOptions, Targets,
};
use scrinium_lab::{Form, Message};

fn message(number: u32, body: &str) -> Message {
    Message {
        id: format!("lab-user0001-{number}"),
        number: MessageNumber { run: 7, sender: 1, sequence: number },
        form: Form::Memo,
        from: "user0001".to_owned(),
        recipients: vec!["user0002".to_owned(), "user0003".to_owned()],
        subject: "figures of the quarter".to_owned(),
        body: body.to_owned().into(),
        attachment_bytes: 0,
        posted: 1_800_000_000,
        delivered: false,
    }
}

fn letter() -> Letter {
    Letter::of(&message(1, "Dear colleague,\n.a line with a point\nregards\n"), "lab.invalid")
}

const PATIENT: Duration = Duration::from_secs(60);
const IMPATIENT: Duration = Duration::from_millis(300);

const IMAP_LOGIN: &str = "* CAPABILITY IMAP4rev1 UIDPLUS\r\nL1 OK Logged in\r\n";
const IMAP_SELECT: &str = "* FLAGS (\\Seen)\r\n* 2 EXISTS\r\n* OK [UIDVALIDITY 9] (\"a text that is no value\r\n* OK [UIDNEXT 13] \r\nL2 OK [READ-WRITE] Selected\r\n";

/// A server with an open inbox, which answers the third command so.
async fn imap_answering(answer: Vec<Step>) -> Scripted {
    let mut steps =
        vec![say("* OK ready\r\n"), Hear("L1 LOGIN"), say(IMAP_LOGIN), Hear("L2 SELECT"), say(IMAP_SELECT)];
    steps.push(Hear("L3 "));
    steps.push(Hear("\r\n"));
    steps.extend(answer);
    Scripted::start(steps).await
}

async fn imap_fetch(answer: Vec<Step>, time_out: Duration) -> Result<u64, Failure> {
    let server = imap_answering(answer).await;
    let mut session = session(format!("imap://127.0.0.1:{}", server.port), time_out, None);
    let imap = session.protocols().unwrap().imap.as_mut().unwrap();
    imap.log_in().await.unwrap();
    assert_eq!(imap.select("INBOX").await, Ok(2));
    imap.fetch(12).await.map(|scan| scan.bytes())
}

fn fetched(uid: u32, size: usize, text: &[u8]) -> Vec<u8> {
    let mut answer =
        format!("* 2 FETCH (UID {uid} RFC822.SIZE {size} BODY[] {{{}}}\r\n", text.len()).into_bytes();
    answer.extend_from_slice(text);
    answer.extend_from_slice(b" FLAGS (\\Seen))\r\n");
    answer
}

#[tokio::test]
async fn an_imap_message_comes_slowly_and_between_other_responses() {
    let text = letter().text;
    let mut answer = b"* 3 EXISTS\r\n* 1 FETCH (FLAGS (\\Seen \"x\\\"y\") X {4}\r\na(\"b)\r\n".to_vec();
    answer.extend(fetched(12, text.len(), &text));
    answer.extend(b"* 4 RECENT\r\n* OK still here (\"\r\nL3 OK Done\r\n");
    let read = imap_fetch(vec![Step::SaySlowly(answer)], PATIENT).await;
    assert_eq!(read, Ok(text.len() as u64));
}

#[tokio::test]
async fn imap_answers_that_are_not_right_are_failures() {
    let text = letter().text;
    let size = text.len();
    let mut altered = text.clone();
    let last = altered.len() - 3;
    altered[last] ^= 1;
    let done = b"L3 OK Done\r\n".to_vec();
    let with = |answer: Vec<u8>| [answer, done.clone()].concat();
    let twice = [fetched(12, size, &text), fetched(12, size, &text)].concat();
    let wrong = FailureKind::WrongAnswer;
    let cases: Vec<(Vec<u8>, FailureKind, &str)> = vec![
        (with(fetched(13, size, &text)), wrong, "UID Some(13)"),
        (with(fetched(12, size + 1, &text)), wrong, "the size is"),
        (with(fetched(12, size, &altered)), wrong, "digest"),
        (with(fetched(12, size - 5, &text[..size - 5])), wrong, "bytes and was sent with"),
        (with(twice), wrong, "twice"),
        (done.clone(), FailureKind::Missing, "no message came"),
        (b"L3 NO [EXPUNGEISSUED] gone\r\n".to_vec(), FailureKind::Refused, "NO"),
        (b"L3 BAD what\r\n".to_vec(), FailureKind::Refused, "BAD"),
        (b"L2 OK an old one\r\n".to_vec(), wrong, "the tag L2"),
        (b"* BYE shutting down\r\n".to_vec(), FailureKind::Connection, "BYE"),
        (b"+ go on\r\n".to_vec(), wrong, "wants more"),
        (b"* 2 FETCH (UID 12 BODY[] {99999999999}\r\n".to_vec(), wrong, "a literal of 99999999999"),
        (b"* 2 FETCH (UID 12 X {9999999}\r\n".to_vec(), wrong, "a literal of 9999999"),
        (b"* 2 FETCH (UID 12\r\n".to_vec(), wrong, "no end"),
        (b"* 2 FETCH UID 12)\r\n".to_vec(), wrong, "not opened"),
        (b"* \r\n".to_vec(), wrong, "without a word"),
        (b"nonsense\r\n".to_vec(), wrong, "no response of IMAP"),
        ([b"* 2 FETCH ".as_slice(), &[b'('; 100], b"\r\n"].concat(), wrong, "too many lists"),
        ([b"* X ".as_slice(), &vec![b'x'; 2 << 20]].concat(), wrong, "a line of more than"),
        (fetched(12, size, &text)[..200].to_vec(), FailureKind::Connection, "closed"),
        (Vec::new(), FailureKind::Connection, "closed"),
    ];
    for (answer, kind, words) in cases {
        let shown = String::from_utf8_lossy(&answer[..answer.len().min(60)]).into_owned();
        let failure = imap_fetch(vec![Step::Say(answer)], PATIENT).await.unwrap_err();
        assert_eq!(failure.kind, kind, "{shown}: {failure}");
        assert!(failure.detail.contains(words), "{shown}: {failure}");
    }
    let silent = imap_fetch(vec![Stay], IMPATIENT).await.unwrap_err();
    assert_eq!(silent.kind, FailureKind::TimeOut);
}

#[tokio::test]
async fn an_imap_page_must_be_whole_and_in_order() {
    let row = |number: u32, uid: u32| {
        format!(
            "* {number} FETCH (UID {uid} FLAGS () INTERNALDATE \"x\" RFC822.SIZE 5 BODY[HEADER.FIELDS (DATE FROM SUBJECT)] {{2}}\r\n\r\n)\r\n"
        )
    };
    for (rows, right) in [
        (row(1, 10) + &row(2, 12), true),
        (row(1, 10), false),
        (row(2, 10) + &row(1, 12), false),
        (row(1, 12) + &row(2, 12), false),
        (row(1, 10) + &row(2, 12) + &row(3, 13), false),
    ] {
        let server = imap_answering(vec![say(&rows), say("L3 OK\r\n")]).await;
        let mut session = session(format!("imap://127.0.0.1:{}", server.port), PATIENT, None);
        let imap = session.protocols().unwrap().imap.as_mut().unwrap();
        imap.log_in().await.unwrap();
        imap.select("INBOX").await.unwrap();
        let read = imap.last_entries(20).await;
        assert_eq!(read.is_ok(), right, "{rows}: {read:?}");
        assert!(right || read.unwrap_err().kind == FailureKind::WrongAnswer);
    }
}

#[tokio::test]
async fn a_password_stands_in_no_failure() {
    let server =
        Scripted::start(vec![say("* OK\r\n"), Hear("LOGIN"), say("L1 NO \"word\" is wrong\r\n")]).await;
    let mut session = session(format!("imap://127.0.0.1:{}", server.port), PATIENT, None);
    let failure = session.protocols().unwrap().imap.as_mut().unwrap().log_in().await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Refused);
    assert!(!failure.detail.contains("word"), "{failure}");
}

const EHLO: &str = "250-mail.invalid\r\n250-PIPELINING\r\n250 8BITMIME\r\n";

async fn smtp(scheme: &str, steps: Vec<Step>, time_out: Duration) -> (Result<(), Failure>, String) {
    let server = Scripted::start(steps).await;
    let mut session = session(format!("{scheme}://127.0.0.1:{}", server.port), time_out, None);
    let sent = session.protocols().unwrap().sender.as_ref().unwrap().send(&letter()).await;
    (sent, server.heard())
}

fn smtp_steps(hello: &str, envelope: &str, after: &str) -> Vec<Step> {
    let mut steps =
        vec![say("220-hello\r\n220 there\r\n"), Hear("LO lab.invalid\r\n"), say(hello), Hear("DATA\r\n")];
    steps.extend([say(envelope), Hear("\r\n.\r\n"), say(after), Hear("QUIT\r\n")]);
    steps
}

#[tokio::test]
async fn a_message_is_handed_in_with_its_points_doubled() {
    let (sent, heard) = smtp(
        "smtp",
        smtp_steps(EHLO, "250 a\r\n250 b\r\n250 c\r\n354 go\r\n", "250 queued as 4F\r\n"),
        PATIENT,
    )
    .await;
    assert_eq!(sent, Ok(()));
    assert!(heard.starts_with("EHLO lab.invalid\r\nMAIL FROM:<user0001@lab.invalid>\r\nRCPT TO:<user0002@lab.invalid>\r\nRCPT TO:<user0003@lab.invalid>\r\nDATA\r\n"), "{heard}");
    assert!(heard.contains("\r\n..a line with a point\r\n"), "{heard}");

    // Without PIPELINING each command waits for its reply.
    let steps = vec![
        say("220 x\r\n"),
        Hear("EHLO lab.invalid\r\n"),
        say("250 x\r\n"),
        Hear("MAIL FROM:<user0001@lab.invalid>\r\n"),
        Step::SaySlowly(b"250 x\r\n".to_vec()),
        Hear("user0002@lab.invalid>\r\n"),
        say("250 x\r\n"),
        Hear("user0003@lab.invalid>\r\n"),
        say("250 x\r\n"),
        Hear("DATA\r\n"),
        say("354 x\r\n"),
        Hear("\r\n.\r\n"),
        say("250 x\r\n"),
    ];
    assert_eq!(smtp("smtp", steps, PATIENT).await.0, Ok(()));
}

#[tokio::test]
async fn smtp_answers_that_are_not_right_are_failures() {
    let good = "250 a\r\n250 b\r\n250 c\r\n354 go\r\n";
    let cases = [
        (
            "smtp",
            EHLO,
            "250 a\r\n550 no such user\r\n250 c\r\n354 go\r\n",
            "",
            FailureKind::Status(550),
            "user0002",
        ),
        ("smtp", EHLO, "250 a\r\n250 b\r\n250 c\r\n250 go\r\n", "", FailureKind::WrongAnswer, "DATA"),
        ("smtp", EHLO, good, "451 disk full\r\n", FailureKind::Status(451), "disk full"),
        ("smtp", EHLO, good, "", FailureKind::Connection, "closed"),
        ("smtp", EHLO, good, "abc\r\n", FailureKind::WrongAnswer, "no reply of SMTP"),
        ("smtp", EHLO, good, "999 x\r\n", FailureKind::WrongAnswer, "no reply of SMTP"),
        ("smtp", "250-a\r\n251 b\r\n", good, "", FailureKind::WrongAnswer, "251 b"),
        ("smtp", "500 what\r\n", good, "", FailureKind::Status(500), "EHLO"),
        ("lmtp", EHLO, good, "250 a\r\n552 full\r\n", FailureKind::Status(552), "user0003"),
        ("lmtp", EHLO, good, "250 a\r\n", FailureKind::Connection, "closed"),
    ];
    for (scheme, hello, envelope, after, kind, words) in cases {
        let mut steps = smtp_steps(hello, envelope, after);
        steps.pop();
        let (sent, heard) = smtp(scheme, steps, PATIENT).await;
        let failure = sent.unwrap_err();
        assert_eq!(failure.kind, kind, "{envelope}{after}: {failure}");
        assert!(failure.detail.contains(words), "{envelope}{after}: {failure}");
        // Of a message that was refused no text is sent.
        assert!(!after.is_empty() || envelope == good || !heard.contains("Subject"), "{heard}");
    }
    let (silent, _) = smtp("smtp", vec![say("220 x\r\n"), Stay], IMPATIENT).await;
    assert_eq!(silent.unwrap_err().kind, FailureKind::TimeOut);
}

async fn pop3(answers: &[(&'static str, Vec<u8>)]) -> Result<u64, Failure> {
    let mut steps = vec![
        say("+OK ready\r\n"),
        Hear("USER user0002\r\n"),
        say("+OK\r\n"),
        Hear("PASS word\r\n"),
        say("+OK\r\n"),
    ];
    for (heard, answer) in answers {
        steps.extend([Hear(heard), Step::SaySlowly(answer.clone())]);
    }
    let server = Scripted::start(steps).await;
    let mut session = session(format!("pop3://127.0.0.1:{}", server.port), PATIENT, None);
    let pop3 = session.protocols().unwrap().pop3.as_mut().unwrap();
    pop3.log_in().await?;
    let entry: Pop3Entry = pop3.list().await?.first().copied().unwrap();
    let scan = pop3.retrieve(entry).await?;
    pop3.delete(entry).await?;
    pop3.quit().await?;
    Ok(scan.bytes())
}

#[tokio::test]
async fn pop3_messages_are_read_as_they_were_sent() {
    let text = letter().text;
    let listed = format!("+OK 1\r\n1 {}\r\n.\r\n", text.len()).into_bytes();
    let stuffed = String::from_utf8(text.clone()).unwrap().replace("\r\n.", "\r\n..");
    let sent = format!("+OK\r\n{stuffed}.\r\n").into_bytes();
    let short = stuffed.replace("regards\r\n", "");
    let ok = b"+OK\r\n".to_vec();
    let end = [("DELE 1\r\n", ok.clone()), ("QUIT\r\n", ok)];
    let all = |list: &[u8], message: &[u8]| {
        let mut answers = vec![("LIST\r\n", list.to_vec()), ("RETR 1\r\n", message.to_vec())];
        answers.extend(end.clone());
        answers
    };
    assert_eq!(pop3(&all(&listed, &sent)).await, Ok(text.len() as u64));
    let cases: [(Vec<u8>, Vec<u8>, FailureKind); 6] = [
        (b"-ERR no\r\n".to_vec(), sent.clone(), FailureKind::Refused),
        (b"+OK\r\n1 x\r\n.\r\n".to_vec(), sent.clone(), FailureKind::WrongAnswer),
        (b"+OK\r\n1 5\r\n1 5\r\n.\r\n".to_vec(), sent.clone(), FailureKind::WrongAnswer),
        (b"+OK\r\n1 5\r\n.\r\n".to_vec(), sent, FailureKind::WrongAnswer),
        (listed.clone(), b"-ERR gone\r\n".to_vec(), FailureKind::Refused),
        (listed, format!("+OK\r\n{short}.\r\n").into_bytes(), FailureKind::WrongAnswer),
    ];
    for (list, message, kind) in cases {
        let failure = pop3(&all(&list, &message)).await.unwrap_err();
        assert_eq!(failure.kind, kind, "{failure}");
    }
}

fn http(status: &str, headers: &str, body: &str) -> Step {
    say(&format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len()))
}

#[tokio::test]
async fn events_are_checked_by_tag_and_content() {
    let steps = vec![
        Hear("END:VCALENDAR\r\n"),
        http("201 Created", "ETag: \"1\"\r\n", ""),
        Hear("GET "),
        Hear("\r\n\r\n"),
        http("200 OK", "ETag: \"1\"\r\n", "BEGIN:VEVENT\r\nUID:another\r\nEND:VEVENT\r\n"),
        Hear("REPORT "),
        Hear("calendar-query>"),
        http(
            "207 Multi-Status",
            "",
            "<multistatus><response><href>/user0002/calendar/lab-user0001-1.ics</href><getetag>&quot;2&quot;</getetag></response></multistatus>",
        ),
        Hear("If-Match: \"1\""),
        Hear("END:VCALENDAR\r\n"),
        http("412 Precondition Failed", "", ""),
        Hear("DELETE "),
        Hear("\r\n\r\n"),
        http("404 Not Found", "", ""),
    ];
    // hyper writes names of headers in small letters.
    let steps = steps.into_iter().map(|step| match step {
        Hear("If-Match: \"1\"") => Hear("if-match: \"1\""),
        step => step,
    });
    let server = Scripted::start(steps.collect()).await;
    let target = format!("caldav://127.0.0.1:{}/{{user}}/calendar/", server.port);
    let mut session = session(target, PATIENT, None);
    let calendar = session.protocols().unwrap().calendar.as_mut().unwrap();
    let event = message(1, "agenda, minutes; \\ and\nquestions");
    calendar.add(&event).await.unwrap();
    let read = calendar.read(&event.id).await.unwrap_err();
    assert!(read.kind == FailureKind::WrongAnswer && read.detail.contains("another"), "{read}");
    let listed = calendar.list(0, 1).await.unwrap_err();
    assert!(listed.detail.contains("another tag"), "{listed}");
    let updated = calendar.update(&event.id, &event).await.unwrap_err();
    assert_eq!(updated.kind, FailureKind::Conflict);
    assert_eq!(calendar.delete(&event.id).await.unwrap_err().kind, FailureKind::Missing);
}

/// What a client that asks for compressed answers, or does not, makes of one; and what it asked.
async fn described(asks: bool, encoding: &str, body: &[u8]) -> (Result<String, Failure>, String) {
    let head =
        format!("HTTP/1.1 200 OK\r\nContent-Encoding: {encoding}\r\nContent-Length: {}\r\n\r\n", body.len());
    let answer = Step::Say([head.as_bytes(), body].concat());
    let server = Scripted::start(vec![Hear("\r\n\r\n"), answer]).await;
    let target = format!("http://127.0.0.1:{}", server.port);
    let driver = HttpDriver::new(HttpOptions { target, compressed: asks, ..http_options() }).unwrap();
    (driver.describe().await.map(|server| server.name), server.heard())
}

#[tokio::test]
async fn compressed_answers_are_taken_where_they_were_asked_for_and_right() {
    let gzip = |text: &[u8]| {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        out.write_all(text).unwrap();
        out.finish().unwrap()
    };
    let answer = gzip(br#"{"couchdb":"Welcome","vendor":{"name":"Somebody","version":"1"}}"#);
    let (named, heard) = described(true, "gzip", &answer).await;
    assert_eq!(named.unwrap(), "Somebody");
    assert!(heard.contains("accept-encoding: gzip\r\n"), "{heard}");
    let mut altered = answer.clone();
    altered[12] ^= 0x55;
    let bomb = gzip(&vec![b' '; (64 << 20) + 1]);
    for (asks, encoding, body, words) in [
        (false, "gzip", &answer, "not asked for"),
        (true, "zstd", &answer, "not asked for"),
        (true, "gzip", &altered, "cannot be read"),
        (true, "gzip", &answer[..answer.len() - 9].to_vec(), "cannot be read"),
        (true, "gzip", &bomb, "stands for more than"),
    ] {
        let (failed, heard) = described(asks, encoding, body).await;
        let failed = failed.unwrap_err();
        assert!(failed.kind == FailureKind::WrongAnswer && failed.detail.contains(words), "{failed}");
        assert_eq!(heard.contains("accept-encoding"), asks, "{heard}");
    }
}

fn http_options() -> HttpOptions {
    HttpOptions { time_out: PATIENT, ..HttpOptions::new(String::new()) }
}

#[test]
fn targets_are_named_by_ability_and_never_twice() {
    let new = |targets: &[&str]| {
        let options = TargetOptions {
            targets: targets.iter().map(|target| (*target).to_owned()).collect(),
            http: http_options(),
            domain: String::new(),
            login_name: String::new(),
            authority: None,
            check_deliveries: None,
            users: 1,
            recipients: 1,
            delivery_wait: PATIENT,
        };
        Targets::new(&options).map(|targets| targets.hosts_and_ports())
    };
    let ports = new(&[
        "smtp://a",
        "imaps://b:1993",
        "pop3+starttls://c",
        "caldav://d:8/{user}/c/",
        "postgres://x@e/y",
    ]);
    let ports: Vec<u16> = ports.unwrap().into_iter().map(|(_, port)| port).collect();
    assert_eq!(ports, [5432, 25, 1993, 110, 8]);
    for (targets, words) in [
        (vec!["smtp://a", "lmtp://b"], "already"),
        (vec!["gopher://a"], "no address of a server"),
        (vec!["imap://a/INBOX"], "nothing stands after the port"),
        (vec!["caldav://a/calendar/"], "{user}"),
    ] {
        let wrong = new(&targets).unwrap_err();
        assert!(wrong.contains(words), "{wrong}");
    }
}

/// Pieces that IMAP's responses are made of, in any order.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let words = prop::sample::select(vec![
        "* ",
        "L3 ",
        "OK ",
        "NO ",
        "2 ",
        "FETCH ",
        "(",
        ")",
        "UID 12 ",
        "BODY[] ",
        "{3}\r\n",
        "{",
        "}",
        "\r\n",
        "\"",
        "\\",
        "[",
        "]",
        "NIL ",
        "abc",
        "EXISTS",
        "BYE",
        "+ ",
        "RFC822.SIZE 3 ",
        " ",
    ]);
    let word = words.prop_map(|word| word.as_bytes().to_vec());
    let bytes = prop::collection::vec(any::<u8>(), 0..4);
    prop::collection::vec(prop_oneof![8 => word, 1 => bytes], 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever a server says is an answer or a failure, and never the end of the driver.
    #[test]
    fn no_answer_of_imap_is_too_strange(answer in pieces()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            if let Ok(bytes) = imap_fetch(vec![Step::Say(answer)], PATIENT).await {
                assert_eq!(bytes, 3);
            }
        });
    }
}
