//! A zone, messages, keys, and an end to waiting.

use std::collections::HashMap;
use std::future::Future;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};

use scrinium_sender_authentication::dkim::{BodyDigests, KeyKind, Signer, SigningKey};
use scrinium_sender_authentication::spf::SpfRequest;
use scrinium_sender_authentication::{
    Answer, Authentication, Dns, DomainName, Head, MessageToCheck, Question, authenticate, split_message,
};

/// The time of all tests.
pub const NOW_SECONDS: u64 = 1_795_708_800;

/// A future that never waits.
pub fn finish<T>(future: impl Future<Output = T>) -> T {
    let mut context = Context::from_waker(Waker::noop());
    match pin!(future).poll(&mut context) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("a test's resolver answers at once"),
    }
}

pub fn name(text: &str) -> DomainName {
    DomainName::parse(text).unwrap()
}

/// What DNS has: lines of `NAME KIND VALUE`. `FAIL` as a kind is a name of which nothing can be said.
#[derive(Default)]
pub struct Zone {
    answers: HashMap<(String, &'static str), Answer>,
    names: HashMap<IpAddr, Answer>,
    aliases: HashMap<String, String>,
    pub asked: Mutex<Vec<Question>>,
}

impl Zone {
    pub fn of(lines: &str) -> Self {
        let mut zone = Self::default();
        for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let mut words = line.splitn(3, ' ');
            let (name, kind, value) =
                (words.next().unwrap(), words.next().unwrap(), words.next().unwrap_or(""));
            zone.add(name, kind, value);
        }
        zone
    }

    pub fn add(&mut self, name: &str, kind: &str, value: &str) {
        let key = |kind| (name.to_ascii_lowercase(), kind);
        match kind {
            "TXT" => {
                let answer = self.answers.entry(key("TXT")).or_insert_with(|| Answer::Texts(Vec::new()));
                let Answer::Texts(texts) = answer else { return };
                texts.push(value.as_bytes().to_vec());
            }
            "A" | "AAAA" => {
                let kind = if kind == "A" { "A" } else { "AAAA" };
                let answer = self.answers.entry(key(kind)).or_insert_with(|| Answer::Addresses(Vec::new()));
                let Answer::Addresses(addresses) = answer else { return };
                addresses.push(value.parse().unwrap());
            }
            "MX" => {
                let answer = self.answers.entry(key("MX")).or_insert_with(|| Answer::MailHosts(Vec::new()));
                let Answer::MailHosts(hosts) = answer else { return };
                hosts.push((10, value.to_owned()));
            }
            "PTR" => {
                let answer =
                    self.names.entry(name.parse().unwrap()).or_insert_with(|| Answer::Names(Vec::new()));
                let Answer::Names(names) = answer else { return };
                names.push(value.to_owned());
            }
            "CNAME" => _ = self.aliases.insert(name.to_ascii_lowercase(), value.to_ascii_lowercase()),
            "FAIL" => {
                for kind in ["TXT", "A", "AAAA", "MX"] {
                    self.answers.insert(key(kind), Answer::Failed);
                }
            }
            other => panic!("there is no kind {other}"),
        }
    }

    fn answer(&self, name: &DomainName, kind: &'static str) -> Answer {
        // A resolver follows aliases.
        let name = self.aliases.get(name.as_str()).map_or(name.as_str(), String::as_str);
        if let Some(answer) = self.answers.get(&(name.to_owned(), kind)) {
            return answer.clone();
        }
        let is_there =
            self.answers.keys().any(|(known, _)| known == name || known.ends_with(&format!(".{name}")));
        if is_there { Answer::NoRecords } else { Answer::NoSuchName }
    }
}

impl Dns for Zone {
    async fn ask(&self, question: &Question) -> Answer {
        self.asked.lock().unwrap().push(question.clone());
        match question {
            Question::Texts(name) => self.answer(name, "TXT"),
            Question::Addresses4(name) => self.answer(name, "A"),
            Question::Addresses6(name) => self.answer(name, "AAAA"),
            Question::MailHosts(name) => self.answer(name, "MX"),
            Question::Names(address) => self.names.get(address).cloned().unwrap_or(Answer::NoSuchName),
        }
    }
}

pub fn request<'a>(address: &str, mail_from: &'a str, helo: &'a str) -> SpfRequest<'a> {
    SpfRequest {
        address: address.parse().unwrap(),
        mail_from,
        helo,
        receiver: "mx.example.org",
        now_seconds: NOW_SECONDS,
    }
}

pub fn authenticated(zone: &Zone, message: &str, sender: SpfRequest<'_>) -> Authentication {
    let (head, body) = split_message(message.as_bytes());
    let (head, digests) = (Head::parse(head), BodyDigests::of(body));
    finish(authenticate(zone, &MessageToCheck { head: &head, digests: &digests, sender }))
}

/// A key that signs for a domain, with its record in the zone.
pub fn signer(zone: &mut Zone, domain: &str) -> Signer {
    let pkcs8 = SigningKey::make(KeyKind::Ed25519).unwrap();
    let key = SigningKey::from_pkcs8(KeyKind::Ed25519, &pkcs8).unwrap();
    zone.add(&format!("s1._domainkey.{domain}"), "TXT", &key.record());
    Signer { domain: name(domain), selector: "s1".to_owned(), key, expires_after_seconds: None }
}

pub fn signed(signer: &Signer, message: &str) -> String {
    let (head, body) = split_message(message.as_bytes());
    let field = signer.sign(&Head::parse(head), &BodyDigests::of(body), NOW_SECONDS - 60).unwrap();
    format!("{field}{message}")
}
