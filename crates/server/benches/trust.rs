//! What it costs to sign a message of 10 KB (DKIM, RSA of 2,048 bits) and to verify one (SPF, DKIM, DMARC, with DNS that answers at
//! once), and how many messages come in over 256 connections with a filter that takes 50 ms for each, and without.
//!
//! `cargo bench -p scrinium-server --bench trust`; `SCRINIUM_MESSAGES` is how many are signed and verified in a round,
//! `SCRINIUM_SECONDS` how long each round of the filter sends, `SCRINIUM_ROUNDS` how many rounds there are.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    reason = "a benchmark stops at the first error"
)]

mod mail;

use std::collections::HashMap;
use std::io::{BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use mail::ours::Ours;
use mail::sender::{Dialect, send_for};
use mail::{message, until_delivered};
use scrinium_bench::{Against, Line, report, setting};
use scrinium_sender_authentication::dkim::{KeyKind, Signer, SigningKey};
use scrinium_sender_authentication::dmarc::DmarcResult;
use scrinium_sender_authentication::spf::SpfRequest;
use scrinium_sender_authentication::{
    Answer, Dns, DomainName, Head, MessageReader, MessageToCheck, Question, authenticate,
};

const CONNECTIONS: u64 = 256;
const MESSAGE_BYTES: usize = 10 << 10;
const FILTER_TAKES: Duration = Duration::from_millis(50);
const NOW_S: u64 = 1_800_000_000;

fn main() {
    let rounds = setting("SCRINIUM_ROUNDS", 3_u64);
    cryptography(rounds, setting("SCRINIUM_MESSAGES", 2_000));
    filtered(rounds, Duration::from_secs(setting("SCRINIUM_SECONDS", 5)));
}

/// A zone in memory.
struct Zone(HashMap<Question, Answer>);

impl Dns for Zone {
    async fn ask(&self, question: &Question) -> Answer {
        self.0.get(question).cloned().unwrap_or(Answer::NoSuchName)
    }
}

fn name(text: &str) -> DomainName {
    DomainName::parse(text).unwrap()
}

fn cryptography(rounds: u64, messages: u64) {
    let pkcs8 = SigningKey::make(KeyKind::Rsa).unwrap();
    let key = SigningKey::from_pkcs8(KeyKind::Rsa, &pkcs8).unwrap();
    let texts = |text: &str| Answer::Texts(vec![text.as_bytes().to_vec()]);
    let zone = Zone(HashMap::from([
        (Question::Texts(name("r1._domainkey.elsewhere.example")), texts(&key.record())),
        (Question::Texts(name("elsewhere.example")), texts("v=spf1 ip4:192.0.2.0/24 -all")),
        (Question::Texts(name("_dmarc.elsewhere.example")), texts("v=DMARC1; p=reject")),
    ]));
    let domain = name("elsewhere.example");
    let signer = Signer { domain, selector: "r1".to_owned(), key, expires_after_seconds: None };
    let plain: Vec<Vec<u8>> = (0..64).map(|number| message(number, MESSAGE_BYTES)).collect();
    let signed: Vec<Vec<u8>> =
        plain.iter().map(|text| [sign(&signer, text).as_bytes(), text].concat()).collect();
    let (mut signing, mut verifying) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let each = |texts: &[Vec<u8>], work: &dyn Fn(&[u8])| {
            let began = Instant::now();
            (0..messages).for_each(|number| work(&texts[usize::try_from(number % 64).unwrap()]));
            began.elapsed().as_secs_f64() * 1_000.0 / messages as f64
        };
        signing.push(each(&plain, &|text| drop(sign(&signer, text))));
        verifying.push(each(&signed, &|text| verify(&zone, text)));
    }
    for (case, values, limit) in
        [("signed, CPU more", &signing, 1.0), ("verified, CPU more", &verifying, 0.2)]
    {
        let against = Against::Given("asked for at most", limit);
        report(&Line { name: "trust", case, values, unit: "ms", against });
    }
}

fn sign(signer: &Signer, text: &[u8]) -> String {
    let mut reader = MessageReader::default();
    reader.update(text);
    let read = reader.finish();
    signer.sign(&Head::parse(&read.head), &read.digests, NOW_S).unwrap()
}

fn verify(zone: &Zone, text: &[u8]) {
    let mut reader = MessageReader::default();
    reader.update(text);
    let read = reader.finish();
    let sender = SpfRequest {
        address: Ipv4Addr::new(192, 0, 2, 1).into(),
        mail_from: "eve@elsewhere.example",
        helo: "mail.elsewhere.example",
        receiver: "mx.bench.invalid",
        now_seconds: NOW_S,
    };
    let head = Head::parse(&read.head);
    let to_check = MessageToCheck { head: &head, digests: &read.digests, sender };
    let found = authenticate(zone, &to_check).now_or_never().unwrap();
    assert_eq!(found.dmarc.result, DmarcResult::Pass, "{found:?}");
    assert!(found.field("mx.bench.invalid", &sender).contains("dkim=pass"));
}

/// Speaks milter's protocol, as rspamd does: it answers nothing but the end, and takes its time there.
fn filter() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || drop(look(stream)));
        }
    });
    address
}

fn look(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::with_capacity(64 << 10, stream.try_clone()?);
    loop {
        let mut length = [0; 4];
        reader.read_exact(&mut length)?;
        let mut packet = vec![0; usize::try_from(u32::from_be_bytes(length)).unwrap()];
        reader.read_exact(&mut packet)?;
        let answer: Vec<u8> = match packet[0] {
            // Version and actions as they were offered; no steps are left out, and none but the end is answered (`SMFIP_NR_*`).
            b'O' => [&b"O"[..], &packet[1..9], &0x000d_f080_u32.to_be_bytes()].concat(),
            b'Q' => return Ok(()),
            b'E' => {
                std::thread::sleep(FILTER_TAKES);
                b"c".to_vec()
            }
            _ => continue,
        };
        let length = u32::try_from(answer.len()).unwrap().to_be_bytes();
        stream.write_all(&[&length[..], &answer].concat())?;
    }
}

fn filtered(rounds: u64, lasts: Duration) {
    let address = filter().to_string();
    let mut without = Ours::start(&[]);
    let mut with = Ours::start(&[("SCRINIUM_FILTERS__MILTERS", &address)]);
    let number = AtomicU64::new(0);
    let mut rates: [Vec<f64>; 2] = Default::default();
    for round in 0..=rounds {
        for (place, ours) in [&mut with, &mut without].into_iter().enumerate() {
            let before = ours.delivered();
            let sent = send_for((ours.smtp, Dialect::Smtp), CONNECTIONS, lasts, (&number, MESSAGE_BYTES));
            let took = until_delivered(sent.began, before + sent.messages, || ours.delivered());
            let rate = sent.messages as f64 / took.as_secs_f64();
            eprintln!("round {round}: {} messages in {took:.2?}: {rate:.0}/s", sent.messages);
            // The first round makes mailboxes and fills caches.
            if round > 0 {
                rates[place].push(rate);
            }
        }
    }
    let [with, without] = &rates;
    let case = "filter of 50 ms, 256 connections";
    let against = Against::Measured("without a filter (asked for: 0.8)", without);
    report(&Line { name: "trust", case, values: with, unit: "messages/s", against });
}
