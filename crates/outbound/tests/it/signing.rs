//! Messages are signed with keys that DNS has, and others can verify it.

use std::net::SocketAddr;
use std::path::Path;

use scrinium_clock::Clock;
use scrinium_outbound::{Dns, KeyFolder, KeyKeeper};
use scrinium_sender_authentication::dkim::{
    BodyHasher, DkimResult, KeyState, KeyStore, RotationPolicy, verify,
};
use scrinium_sender_authentication::{
    Answer, Answers, Dns as Ask, DomainName, Head, Question, settle, split_message,
};
use serde_json::json;

use crate::common::START_MS;
use crate::sink::{Manner, Sink, Zone, name_server};
use crate::wire::{Wish, world, zone};

const DAY_MS: u64 = 24 * 3600 * 1000;

struct Asks(Dns);

impl Ask for Asks {
    async fn ask(&self, question: &Question) -> Answer {
        self.0.answer(question).await
    }
}

fn keeper(folder: &Path, dns: &Dns, clock: &Clock) -> KeyKeeper {
    // Names that DNS cannot know have no keys.
    let domains = ["acme.example".to_owned(), "localhost".to_owned()];
    KeyKeeper::new(
        KeyFolder::new(folder.to_owned()),
        dns.clone(),
        &domains,
        (RotationPolicy::default(), clock.clone()),
    )
}

/// A name server that has what there is to publish, and the ways to others.
async fn server_with(keeper: &KeyKeeper) -> SocketAddr {
    let leak = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
    let mut zones = vec![
        ("two.example", zone(&[(1, "mx.two.example")], &[])),
        ("mx.two.example", zone(&[], &["127.0.0.2"])),
    ];
    for key in keeper.published() {
        let strings =
            key.record.as_bytes().chunks(200).map(|part| leak(String::from_utf8(part.to_vec()).unwrap()));
        zones.push((leak(key.name.clone()), Zone { txt: vec![strings.collect()], ..Zone::default() }));
    }
    name_server(&zones).await
}

fn states(keeper: &KeyKeeper) -> Vec<(String, &'static str)> {
    let kind = |name: &str| name.split('-').next().unwrap().to_owned();
    keeper.published().iter().map(|key| (kind(&key.name), key.state)).collect()
}

async fn results(dns: &Dns, message: &str, now_ms: u64) -> Vec<DkimResult> {
    let (head, body) = split_message(message.as_bytes());
    let mut hasher = BodyHasher::default();
    hasher.update(body);
    let (head, digests) = (Head::parse(head), hasher.finish());
    let check = |answers: &Answers| verify(&head, &digests, now_ms / 1000, answers);
    let outcomes = settle(&Asks(dns.clone()), &mut Answers::default(), check).await;
    outcomes.iter().map(|outcome| outcome.result).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_is_signed_once_dns_has_the_keys_and_verifies() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Clock::system();
    let empty = Dns::new(&[name_server(&[]).await]).unwrap();
    let first = keeper(folder.path(), &empty, &clock);
    first.round().await;
    let waiting = |kind: &str| (kind.to_owned(), "waiting");
    assert_eq!(states(&first), [waiting("ed25519"), waiting("rsa")]);
    let address = server_with(&first).await;
    let dns = Dns::new(&[address]).unwrap();
    // The same keys, after a restart.
    let second = keeper(folder.path(), &dns, &clock);
    second.round().await;
    assert!(states(&second).iter().all(|(_, state)| *state == "signing"), "{:?}", states(&second));

    let sink = Sink::start("127.0.0.2", 0, Manner::Friendly).await;
    let wish = Wish { signing: Some(second.signing()), ..Wish::port(sink.address.port()) };
    let world = world(address, wish);
    world.send(&["a@two.example"]);
    world.until("it is taken", |world| world.entries().is_empty()).await;
    // A long one comes from the store in pieces; one whose author is somebody else is not ours to sign.
    let long = "one long line of many\n".repeat(20_000);
    for (author, body) in [("ada", long.as_str()), ("eve@else.example", "short")] {
        let memo = json!({"Form": "Memo", "From": author, "SendTo": ["a@two.example"], "Subject": "s", "Body": body});
        world.server.deposit(memo);
        world.server.route_all(&mut world.server.router());
        world.until("it is taken", |world| world.entries().is_empty()).await;
    }
    let messages = sink.messages();
    for message in &messages[..2] {
        let passed = results(&dns, &message.text, clock.now_ms()).await;
        assert_eq!(
            passed,
            [DkimResult::Pass, DkimResult::Pass],
            "{}",
            &message.text[..2000.min(message.text.len())]
        );
    }
    assert!(!messages[2].text.contains("DKIM-Signature"), "{}", messages[2].text);
    let forged = messages[0].text.replace("Subject: s", "Subject: t");
    assert!(results(&dns, &forged, clock.now_ms()).await.iter().all(|result| *result == DkimResult::Fail));
    world.handle.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_change_in_time_and_nothing_goes_unsigned_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let time = Clock::manual(START_MS);
    let clock = time.clock();
    let empty = Dns::new(&[name_server(&[]).await]).unwrap();
    let first = keeper(folder.path(), &empty, &clock);
    first.round().await;
    let old = keeper(folder.path(), &Dns::new(&[server_with(&first).await]).unwrap(), &clock);
    old.round().await;
    time.advance(std::time::Duration::from_millis(183 * DAY_MS));
    old.round().await;
    let count =
        |keeper: &KeyKeeper, state: &str| keeper.published().iter().filter(|key| key.state == state).count();
    assert_eq!((count(&old, "signing"), count(&old, "waiting")), (2, 2), "the old ones sign on");
    let new = keeper(folder.path(), &Dns::new(&[server_with(&old).await]).unwrap(), &clock);
    new.round().await;
    assert_eq!((count(&new, "signing"), count(&new, "retired")), (2, 2));
    time.advance(std::time::Duration::from_millis(15 * DAY_MS));
    new.round().await;
    assert_eq!((count(&new, "signing"), count(&new, "retired")), (2, 0));
}

#[test]
fn keys_are_their_owners_alone_and_names_are_no_paths() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let keys = KeyFolder::new(folder.path().join("dkim"));
    let domain = DomainName::parse("acme.example").unwrap();
    let key = scrinium_sender_authentication::dkim::StoredKey {
        domain: domain.clone(),
        selector: "ed25519-1".to_owned(),
        kind: scrinium_sender_authentication::dkim::KeyKind::Ed25519,
        state: KeyState::Waiting,
        since_seconds: 7,
        pkcs8: vec![1, 2, 3],
    };
    keys.keep(&key).unwrap();
    assert_eq!(keys.keys(&domain).unwrap(), std::slice::from_ref(&key));
    let file = folder.path().join("dkim/acme.example/ed25519-1.json");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o077, 0);
    for selector in ["../x", "", "a/b", "a.b"] {
        keys.keep(&scrinium_sender_authentication::dkim::StoredKey {
            selector: selector.to_owned(),
            ..key.clone()
        })
        .unwrap_err();
    }
    for name in ["a/b.example", ".hidden"] {
        if let Some(domain) = DomainName::parse(name) {
            keys.keys(&domain).unwrap_err();
        }
    }
    std::fs::write(&file, "no key").unwrap();
    assert!(keys.keys(&domain).unwrap_err().to_string().contains("ed25519-1.json"));
    keys.remove(&domain, "ed25519-1").unwrap();
    keys.remove(&domain, "ed25519-1").unwrap();
    assert!(keys.keys(&domain).unwrap().is_empty());
}
