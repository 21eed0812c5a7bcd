//! Filters, lists in DNS and greylisting, as clients meet them.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use scrinium_clock::Clock;
use scrinium_database::SpecialUse;
use scrinium_mail::Quarantine;
use scrinium_mail_filters::DnsList;
use scrinium_mail_filters::greylist::{GreyKey, GreyPolicy, GreyRecord, GreyStore};
use scrinium_sender_authentication::{Answer, DomainName, Question};
use scrinium_smtp::Service;
use scrinium_smtp_server::{FilterAddress, FilterOptions, GateOptions, ListOptions, SenderDns};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::common::{NOW_MS, Server, Setting};

/// What a filter answers to a kind of packet, in place of "go on": packets without their lengths.
type Script = HashMap<u8, Vec<Vec<u8>>>;

/// Kinds and data of packets that came.
type Seen = Arc<Mutex<Vec<(u8, Vec<u8>)>>>;

/// A filter that does what a test says, and what it has heard of each message.
struct Filter {
    address: SocketAddr,
    script: Arc<Mutex<Script>>,
    seen: Seen,
}

impl Filter {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let filter =
            Self { address: listener.local_addr().unwrap(), script: Arc::default(), seen: Arc::default() };
        let (script, seen) = (Arc::clone(&filter.script), Arc::clone(&filter.seen));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(talk(stream, Arc::clone(&script), Arc::clone(&seen)));
            }
        });
        filter
    }

    fn answers(&self, kind: u8, packets: &[&[u8]]) {
        self.seen.lock().clear();
        let packets = packets.iter().map(|packet| packet.to_vec()).collect();
        *self.script.lock() = HashMap::from([(kind, packets)]);
    }

    fn seen(&self, kind: u8) -> Vec<Vec<u8>> {
        self.seen.lock().iter().filter(|(known, _)| *known == kind).map(|(_, data)| data.clone()).collect()
    }
}

async fn talk(mut stream: TcpStream, script: Arc<Mutex<Script>>, seen: Seen) -> Option<()> {
    loop {
        let length = stream.read_u32().await.ok()?;
        let mut packet = vec![0; usize::try_from(length).unwrap()];
        stream.read_exact(&mut packet).await.ok()?;
        let (kind, data) = (packet[0], packet[1..].to_vec());
        seen.lock().push((kind, data.clone()));
        let scripted = script.lock().get(&kind).cloned();
        let answers = match (kind, scripted) {
            (_, Some(answers)) => answers,
            (b'O', None) => vec![[&b"O"[..], &data].concat()],
            (b'D' | b'Q' | b'A', None) => Vec::new(),
            _ => vec![b"c".to_vec()],
        };
        // What is offered is agreed upon, but for what would not be said or answered.
        for answer in answers {
            let answer =
                if answer[0] == b'O' { [&answer[..9], &0_u32.to_be_bytes()].concat() } else { answer };
            stream.write_u32(u32::try_from(answer.len()).unwrap()).await.ok()?;
            stream.write_all(&answer).await.ok()?;
        }
    }
}

fn with(addresses: &[SocketAddr], change: impl FnOnce(&mut FilterOptions)) -> Server {
    let options = options(addresses, change);
    Server::start_as(Service::Relay, |setting| setting.filters = Some(options))
}

fn options(addresses: &[SocketAddr], change: impl FnOnce(&mut FilterOptions)) -> FilterOptions {
    let milters = addresses.iter().map(|address| FilterAddress::parse(&address.to_string()).unwrap());
    let mut options = FilterOptions {
        milters: milters.collect(),
        rspamd: None,
        keeps_back: false,
        passes_unfiltered: false,
        timeout: Duration::from_secs(20),
        server: "mx.acme.example".to_owned(),
    };
    change(&mut options);
    options
}

const HEAD: &str = "From: eve@else.example\r\nSubject: one\r\nX-Old: a\r\n";

async fn deliver(server: &Server, body: &str) -> String {
    let mut client = server.connect().await;
    client.ask("EHLO mail.else.example").await;
    let text = format!("{HEAD}\r\n{body}");
    client.deliver("eve@else.example", &["ada@acme.example"], text.as_bytes()).await
}

/// The messages that ada has, from their From fields on.
fn mail(server: &Server) -> Vec<String> {
    server.deliver();
    let text = |source: Vec<u8>| {
        let text = String::from_utf8(source).unwrap();
        text.split_once("\r\nFrom: ").map_or_else(|| text.clone(), |(_, rest)| format!("From: {rest}"))
    };
    server.mail_of("ada").into_iter().map(|(_, source)| text(source)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_sees_the_whole_message_and_changes_it() {
    let filter = Filter::start().await;
    let server = with(&[filter.address], |_| {});
    // More than one piece, and more than there is memory for.
    let body = "line\r\n".repeat(40_000);
    assert!(deliver(&server, &body).await.starts_with("250"));
    assert_eq!(filter.seen(b'B').concat(), body.as_bytes());
    assert_eq!(filter.seen(b'M'), [b"<eve@else.example>\0".to_vec()]);
    assert_eq!(filter.seen(b'R'), [b"<ada@acme.example>\0".to_vec()]);
    assert_eq!(filter.seen(b'H'), [b"mail.else.example\0".to_vec()]);
    assert!(filter.seen(b'L').contains(&b"Subject\0one\0".to_vec()));
    assert!(filter.seen(b'C')[0].ends_with(b"127.0.0.1\0"));

    let changes: [&[u8]; 5] =
        [b"hX-Spam\0no\0", b"m\0\0\0\x01X-Old\0\0", b"m\0\0\0\x01Subject\0two\0", b"bother body\r\n", b"a"];
    filter.answers(b'E', &changes);
    assert!(deliver(&server, "body\r\n").await.starts_with("250"));
    filter.answers(b'E', &[b"qlooks odd\0", b"c"]);
    assert!(deliver(&server, "suspect\r\n").await.starts_with("250"));
    let mail = mail(&server);
    for wanted in [
        format!("{HEAD}\r\n{body}"),
        "From: eve@else.example\r\nSubject: two\r\nX-Spam: no\r\n\r\nother body\r\n".to_owned(),
        format!("{HEAD}\r\nsuspect\r\n"),
    ] {
        assert!(mail.contains(&wanted), "{wanted:.200}: {mail:.2000?}");
    }
    let junk = server.databases.get("mail/ada").unwrap().folder("Junk", None).unwrap();
    assert_eq!((junk.total, junk.special_use), (1, Some(SpecialUse::Junk)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_refuses_postpones_and_throws_away() {
    let (first, second) = (Filter::start().await, Filter::start().await);
    let server = with(&[first.address, second.address], |_| {});
    for (kind, answer, reply) in [
        (b'E', b"r".as_slice(), "550 5.7.1"),
        (b'C', b"t", "451 4.7.1"),
        (b'R', b"y550 5.7.9 no \x1b[31m such thing\0", "550 5.7.9 no [31m such thing"),
        (b'B', b"y451 later\0", "451 4.7.1 later"),
        (b'M', b"f", "451"),
        (b'L', b"d", "250"),
        // It needs to see no more, and the next one is asked.
        (b'H', b"a", "250"),
    ] {
        first.answers(kind, &[answer]);
        second.answers(b'E', &[if kind == b'H' { b"r" } else { b"c" }]);
        let told = deliver(&server, "text\r\n").await;
        let reply = if kind == b'H' { "550" } else { reply };
        assert!(told.starts_with(reply), "{reply}: {told}");
    }
    assert!(mail(&server).is_empty());
    assert_eq!((server.counted("SMTP.Filters.Refused"), server.counted("SMTP.Filters.Discarded")), (6, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_filter_a_message_waits_or_goes_on_as_it_is_set() {
    let filter = Filter::start().await;
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let quick = |options: &mut FilterOptions| options.timeout = Duration::from_millis(300);
    let strict = with(&[nobody], |_| {});
    assert!(deliver(&strict, "a\r\n").await.starts_with("451 4.3.0"));
    let strict = with(&[silent.local_addr().unwrap()], quick);
    let begun = Instant::now();
    assert!(deliver(&strict, "a\r\n").await.starts_with("451 4.3.0"));
    assert!(begun.elapsed() < Duration::from_secs(10), "it is not waited for");
    // What a filter must not say: to change before the end, to know what nobody knows, too much at once.
    let strict = with(&[filter.address], |_| {});
    let long = [&b"bx"[..], &vec![b'y'; 2 << 20]].concat();
    for (kind, answer) in [
        (b'M', b"hA\0b\0".as_slice()),
        (b'E', b"Z"),
        (b'E', b"hA\0b\r\n\r\nc\0"),
        (b'O', b"O\0\0"),
        (b'E', &long),
    ] {
        filter.answers(kind, &[answer]);
        assert!(deliver(&strict, "a\r\n").await.starts_with("451 4.3.0"), "{:?}", &answer[..2]);
    }
    assert!(mail(&strict).is_empty());
    assert_eq!(strict.counted("SMTP.Filters.Failed"), 5);
    let open = with(&[nobody, filter.address], |options| options.passes_unfiltered = true);
    filter.answers(b'E', &[b"hX-Seen\0yes\0", b"c"]);
    assert!(deliver(&open, "a\r\n").await.starts_with("250"));
    assert!(mail(&open)[0].contains("X-Seen: yes\r\n"));
}

/// Lists that know 127.0.0.1, which clients of these tests come from.
struct Lists(HashMap<&'static str, &'static str>);

impl SenderDns for Lists {
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer> {
        let answer = match question {
            Question::Addresses4(name) => match self.0.get(name.as_str()) {
                Some(&"") => Answer::Failed,
                Some(address) => Answer::Addresses(vec![address.parse().unwrap()]),
                None => Answer::NoSuchName,
            },
            Question::Texts(_) => Answer::Texts(vec![b"see https://bad.example".to_vec()]),
            _ => Answer::NoSuchName,
        };
        async move { answer }.boxed()
    }
}

fn gated(setting: &mut Setting, lists: &[(&'static str, i32, &'static str)], refused_from: i32) {
    let name = |zone: &str| format!("1.0.0.127.{zone}");
    let known =
        lists.iter().map(|(zone, _, answer)| (&*Box::leak(name(zone).into_boxed_str()), *answer)).collect();
    let all = ("127.0.0.0".parse().unwrap(), "127.255.255.255".parse().unwrap());
    let list = |(zone, weight, _): &(&str, i32, &str)| DnsList {
        zone: DomainName::parse(zone).unwrap(),
        weights: vec![(all, *weight)],
    };
    setting.gate = Some(GateOptions {
        dns: Arc::new(Lists(known)),
        lists: Some(ListOptions { lists: lists.iter().map(list).collect(), refused_from }),
        greylist: None,
        trusted: Vec::new(),
        clock: Clock::default(),
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_on_lists_is_refused_by_their_weight() {
    let bad = ("bad.example", 2, "127.0.0.2");
    for (lists, refused) in [
        (vec![bad], true),
        (vec![bad, ("good.example", -1, "127.0.0.5")], false),
        // One that does not answer, one that does not answer us, and one that is somebody else's now.
        (
            vec![
                ("down.example", 9, ""),
                ("shut.example", 9, "127.255.255.254"),
                ("gone.example", 9, "192.0.2.1"),
            ],
            false,
        ),
    ] {
        let server = Server::start_as(Service::Relay, |setting| gated(setting, &lists, 2));
        let mut client = server.connect().await;
        client.ask("EHLO mail.else.example").await;
        client.ask("MAIL FROM:<eve@else.example>").await;
        let reply = client.ask("RCPT TO:<ada@acme.example>").await;
        if refused {
            assert_eq!(reply, "550 5.7.1 127.0.0.1 is on the list bad.example see https://bad.example");
        } else {
            assert!(reply.starts_with("250"), "{lists:?}: {reply}");
        }
        // Who is refused may say so to the postmaster, and learns of nobody who is not here either way.
        assert!(client.ask("RCPT TO:<postmaster@acme.example>").await.starts_with("250"));
        assert!(client.ask("RCPT TO:<nobody@acme.example>").await.starts_with("550 5.1.1"));
    }
}

/// Who is known, in memory.
#[derive(Default)]
struct Known(Mutex<HashMap<GreyKey, GreyRecord>>);

impl GreyStore for Known {
    fn get(&self, key: &GreyKey) -> Option<GreyRecord> {
        self.0.lock().get(key).copied()
    }

    fn keep(&self, key: &GreyKey, record: GreyRecord, _until_seconds: u64) {
        self.0.lock().insert(key.clone(), record);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_unknown_comes_again_and_is_known_from_then_on() {
    let time = Clock::manual(NOW_MS);
    let server = Server::start_as(Service::Relay, |setting| {
        gated(setting, &[], 1);
        let gate = setting.gate.as_mut().unwrap();
        gate.clock = time.clock();
        gate.greylist = Some((GreyPolicy::default(), Arc::new(Known::default())));
    });
    let attempt = async |sender: &str, code: &str| {
        let mut client = server.connect().await;
        client.ask("EHLO mail.else.example").await;
        client.ask(&format!("MAIL FROM:<{sender}>")).await;
        let reply = client.ask("RCPT TO:<ada@acme.example>").await;
        assert!(reply.starts_with(code), "{sender}: {reply}");
        assert!(client.ask("RCPT TO:<postmaster@acme.example>").await.starts_with("250"));
    };
    attempt("eve@else.example", "451 4.7.1").await;
    time.advance(Duration::from_secs(299));
    attempt("eve@else.example", "451 4.7.1").await;
    time.advance(Duration::from_secs(1));
    attempt("eve@else.example", "250").await;
    attempt("eve@else.example", "250").await;
    attempt("other@else.example", "451 4.7.1").await;
    time.advance(Duration::from_secs(37 * 24 * 3600));
    attempt("eve@else.example", "451 4.7.1").await;
    assert_eq!(server.counted("SMTP.Greylisted"), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_filter_wants_aside_waits_for_an_administrator() {
    let filter = Filter::start().await;
    let server = with(&[filter.address], |options| options.keeps_back = true);
    let quarantine = Quarantine::new(&server.databases);
    assert_eq!(quarantine.list(10).unwrap(), (Vec::new(), false));
    filter.answers(b'E', &[b"qlooks odd\0", b"c"]);
    for _ in 0..2 {
        assert!(deliver(&server, "body\r\n").await.starts_with("250"));
    }
    assert!(mail(&server).is_empty());
    let (held, is_more) = quarantine.list(10).unwrap();
    let ids: Vec<&str> = held.iter().map(|held| held.id.as_str()).collect();
    assert_eq!((held.len(), is_more), (2, false));
    assert_eq!((held[0].reason.as_str(), held[0].subject.as_str()), ("looks odd", "one"));
    assert_eq!(
        (held[0].from.as_str(), &held[0].recipients[..]),
        ("eve@else.example", &["ada@acme.example".to_owned()][..])
    );
    assert!(!quarantine.release("no such").unwrap());
    assert!(quarantine.delete(ids[0]).unwrap() && !quarantine.delete(ids[0]).unwrap());
    assert!(quarantine.release(ids[1]).unwrap() && !quarantine.release(ids[1]).unwrap());
    assert_eq!(mail(&server).len(), 1);
    assert_eq!(quarantine.list(10).unwrap().0.len(), 0);
    assert!(server.waiting().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_sees_who_hands_a_message_in() {
    let filter = Filter::start().await;
    let options = options(&[filter.address], |_| {});
    let server = Server::start_as(Service::Submission, |setting| {
        (setting.filters, setting.trusts_loopback) = (Some(options), true);
    });
    let mut client = server.connect().await;
    client.ask("EHLO home.example").await;
    assert!(client.ask("AUTH PLAIN AGFkYQBzZWNyZXQgb2YgYWRh").await.starts_with("235"));
    let text = b"From: ada@acme.example\r\nSubject: one\r\n\r\nbody\r\n";
    assert!(client.deliver("ada@acme.example", &["bob@acme.example"], text).await.starts_with("250"));
    let told = filter.seen(b'D');
    let names = b"{auth_authen}\0ada\0";
    assert!(told.iter().any(|macros| macros.windows(names.len()).any(|part| part == names)));
    filter.answers(b'E', &[b"r"]);
    assert!(client.deliver("ada@acme.example", &["bob@acme.example"], text).await.starts_with("550"));
    assert_eq!(server.counted("Submission.Filters.Refused"), 1);
}
