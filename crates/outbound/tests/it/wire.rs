//! Messages over sockets: to servers that DNS names, and to a relay host.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::pki_types::CertificateDer;
use scrinium_clock::Clock;
use scrinium_mail_queue::route::{OwnHosts, RelayHost, TargetOptions, TlsRule, Transport, TransportTable};
use scrinium_mail_queue::{Queue, SchedulerOptions};
use scrinium_outbound::{
    Dns, NetworkCourier, NetworkOptions, Outbound, OutboundHandle, Secrets, Signing, StsPolicies, TlsClient,
    queue_report,
};
use scrinium_smtp::client::ClientTimes;
use serde_json::{Value, json};

use crate::common::{Server, by_mx};
use crate::sink::{Manner, Sink, Zone, name_server};

struct NoSecrets;

impl Secrets for NoSecrets {
    fn password(&self, name: &str) -> Result<String, String> {
        if name == "relay" { Ok("secret".to_owned()) } else { Err("there is no such password".to_owned()) }
    }
}

pub struct World {
    pub server: Server,
    pub handle: OutboundHandle,
    policies: Option<StsPolicies>,
    _folder: tempfile::TempDir,
}

/// Which of a sink's surroundings a test wants otherwise.
pub struct Wish {
    pub transports: TransportTable,
    pub port: u16,
    pub allow_loopback: bool,
    pub session: Duration,
    pub command_ms: u64,
    pub scheduler: SchedulerOptions,
    pub signing: Option<Signing>,
    /// Domains have policies, which web servers have at this port; with authorities that are trusted.
    pub sts: Option<(u16, Vec<CertificateDer<'static>>)>,
}

impl Wish {
    pub fn port(port: u16) -> Self {
        Self {
            transports: by_mx(),
            port,
            allow_loopback: true,
            session: Duration::from_secs(20),
            command_ms: 10_000,
            scheduler: SchedulerOptions::default(),
            signing: None,
            sts: None,
        }
    }
}

pub fn world(dns: SocketAddr, wish: Wish) -> World {
    let folder = tempfile::tempdir().unwrap();
    let clock = Clock::system();
    let server = Server::with(folder.path(), &clock, wish.transports);
    let channel = Outbound::channel();
    let options = NetworkOptions {
        host: "mx.acme.example".to_owned(),
        own: OwnHosts { names: ["mx.acme.example".to_owned()].into(), addresses: [].into() },
        port: wish.port,
        targets: TargetOptions { allow_loopback: wish.allow_loopback, ..TargetOptions::default() },
        times: ClientTimes { command_ms: wish.command_ms, ..ClientTimes::default() },
        session: wish.session,
    };
    let (port, authorities) = wish.sts.map_or((None, Vec::new()), |(port, trusted)| (Some(port), trusted));
    let (dns, tls) = (Dns::new(&[dns]).unwrap(), TlsClient::new(authorities).unwrap());
    let policies = port.map(|port| {
        let targets = options.targets.clone();
        StsPolicies::new(server.queue.database(), (dns.clone(), &tls, clock.clone()), targets, port)
    });
    let asked = (wish.signing, policies.clone());
    let parts = (dns, tls, Box::new(NoSecrets) as _);
    let courier = NetworkCourier::new(options, parts, asked, channel.0.clone(), (clock.clone(), 3));
    let manager = server.manager(Arc::new(courier), wish.scheduler);
    let handle = Outbound::new(manager, channel, clock).start();
    World { server, handle, policies, _folder: folder }
}

impl World {
    pub fn send(&self, to: &[&str]) {
        self.server.deposit(
            json!({"Form": "Memo", "From": "ada", "SendTo": to, "Subject": "s", "Body": "one\n.two"}),
        );
        self.server.route_all(&mut self.server.router());
    }

    pub async fn until(&self, what: &str, done: impl Fn(&Self) -> bool) {
        let begun = Instant::now();
        while !done(self) {
            assert!(
                begun.elapsed() < Duration::from_secs(20),
                "{what}: {:?}",
                self.server.documents("smtp.box")
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub fn entries(&self) -> Vec<serde_json::Map<String, Value>> {
        self.server.documents("smtp.box")
    }

    /// How many destinations say why they wait.
    pub fn reasons(&self) -> usize {
        let report = queue_report(self.server.queue.database(), None, 0).unwrap();
        report.destinations.into_values().filter(|destination| destination.reason.is_some()).count()
    }

    /// Attempts that were not as a policy wants them.
    pub fn breaches(&self) -> u64 {
        self.policies.as_ref().map_or(0, StsPolicies::breaches)
    }

    /// Why the only entry waits.
    fn reason(&self) -> Option<String> {
        let report = queue_report(self.server.queue.database(), None, 0).unwrap();
        report.destinations.into_values().next()?.reason
    }

    fn notices(&self) -> Vec<String> {
        self.server.route_all(&mut self.server.router());
        let notices = self.server.documents("mail/ada");
        notices.iter().map(|notice| self.server.source("mail/ada", notice["_id"].as_str().unwrap())).collect()
    }
}

pub fn zone(mx: &[(u16, &'static str)], a: &[&'static str]) -> Zone {
    Zone { mx: mx.to_vec(), a: a.to_vec(), ..Zone::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mail_goes_to_the_hosts_of_a_domain_in_turn_and_connections_are_used_again() {
    let sink = Sink::start("127.0.0.2", 0, Manner::Friendly).await;
    // Nobody listens at the first host; the second one is the sink.
    let dns = name_server(&[
        ("two.example", zone(&[(20, "mx.two.example"), (10, "down.two.example")], &[])),
        ("down.two.example", zone(&[], &["127.0.0.3"])),
        ("mx.two.example", zone(&[], &["127.0.0.2"])),
        ("plain.example", zone(&[], &["127.0.0.2"])),
        ("null.example", zone(&[(0, "")], &["127.0.0.2"])),
        ("loop.example", zone(&[(5, "mx.acme.example")], &[])),
        ("fails.example", Zone { fails: true, ..Zone::default() }),
    ])
    .await;
    let world = world(dns, Wish::port(sink.address.port()));
    world.send(&["a@two.example", "b@two.example", "c@plain.example"]);
    world.until("three are taken", |world| world.entries().is_empty()).await;
    let mut messages = sink.messages();
    messages.sort_by(|one, other| one.to.cmp(&other.to));
    assert_eq!(messages.len(), 2);
    assert_eq!(messages[0].to, ["a@two.example", "b@two.example"]);
    assert_eq!(messages[0].from, "ada@acme.example");
    assert!(messages[0].text.contains("one\r\n.two\r\n"), "{}", messages[0].text);
    for _ in 0..5 {
        world.send(&["c@plain.example"]);
        world.until("another is taken", |world| world.entries().is_empty()).await;
    }
    assert_eq!(sink.messages().len(), 7);
    assert_eq!(sink.log.lock().connections, 2, "one for each destination");
    world.send(&["x@null.example"]);
    world.send(&["x@missing.example"]);
    world.send(&["x@loop.example"]);
    world.until("all three are given up", |world| world.entries().is_empty()).await;
    let notices = world.notices().join("\n");
    for status in ["5.1.10", "5.1.2", "5.4.6"] {
        assert!(notices.contains(&format!("Status: {status}")), "{status}: {notices}");
    }
    world.send(&["x@fails.example"]);
    world.until("it waits", |world| world.reason().is_some()).await;
    assert!(world.reason().unwrap().contains("could not be looked up"), "{:?}", world.reason());
    world.handle.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_longer_than_what_is_written_at_once_goes_out() {
    let sink = Sink::start("127.0.0.2", 0, Manner::Friendly).await;
    let dns = name_server(&[("plain.example", zone(&[], &["127.0.0.2"]))]).await;
    let world = world(dns, Wish::port(sink.address.port()));
    for lines in [3_000, 10_000, 40_000] {
        let body = "one long line of many\n".repeat(lines);
        let memo = json!({"Form": "Memo", "From": "ada", "SendTo": ["a@plain.example"], "Subject": "s", "Body": body});
        world.server.deposit(memo);
        world.server.route_all(&mut world.server.router());
        world.until("it is taken", |world| world.entries().is_empty()).await;
        let message = sink.messages().pop().unwrap();
        assert!(message.text.ends_with(&body.replace('\n', "\r\n")), "{lines} lines");
    }
    world.handle.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stranger_does_not_lead_mail_to_this_machine_or_its_network() {
    let sink = Sink::start("127.0.0.1", 0, Manner::Friendly).await;
    let dns = name_server(&[
        ("own.example", zone(&[(1, "localhost.own.example")], &[])),
        ("localhost.own.example", zone(&[], &["127.0.0.1"])),
        ("inside.example", zone(&[(1, "a.inside.example")], &[])),
        ("a.inside.example", zone(&[], &["10.0.0.1", "192.168.1.1", "169.254.169.254"])),
    ])
    .await;
    let wish = Wish { allow_loopback: false, ..Wish::port(sink.address.port()) };
    let world = world(dns, wish);
    world.send(&["x@own.example", "x@inside.example", "x@[127.0.0.1]"]);
    world.until("all are given up", |world| world.entries().is_empty()).await;
    assert_eq!(sink.log.lock().connections, 0);
    assert_eq!(world.notices().len(), 3);
    world.handle.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn servers_that_misbehave_hold_up_nobody_and_their_words_are_harmless() {
    let friendly = Sink::start("127.0.0.2", 0, Manner::Friendly).await;
    let port = friendly.address.port();
    let manners = [
        ("127.0.0.10", Manner::Refuses),
        ("127.0.0.11", Manner::Defers),
        ("127.0.0.12", Manner::Hangs),
        ("127.0.0.13", Manner::Dribbles),
        ("127.0.0.14", Manner::Garbage),
        ("127.0.0.15", Manner::Lies),
        ("127.0.0.16", Manner::LosesAnswer),
        ("127.0.0.17", Manner::Busy),
        ("127.0.0.18", Manner::Writes),
    ];
    let mut zones = vec![("good.example", zone(&[], &["127.0.0.2"]))];
    let mut sinks = Vec::new();
    let names = [
        "d0.example",
        "d1.example",
        "d2.example",
        "d3.example",
        "d4.example",
        "d5.example",
        "d6.example",
        "d7.example",
        "d8.example",
    ];
    for ((host, manner), name) in manners.into_iter().zip(names) {
        sinks.push(Sink::start(host, port, manner).await);
        zones.push((name, zone(&[], &[host])));
    }
    let dns = name_server(&zones).await;
    let wish = Wish { session: Duration::from_secs(2), command_ms: 1_500, ..Wish::port(port) };
    let world = world(dns, wish);
    for name in names {
        world.send(&[&format!("x@{name}")]);
    }
    for number in 0..20 {
        world.send(&[&format!("p{number}@good.example")]);
    }
    let begun = Instant::now();
    world.until("the friendly one has all", |_| friendly.messages().len() == 20).await;
    assert!(begun.elapsed() < Duration::from_secs(10));
    world
        .until("each has been tried", |world| {
            let entries = world.entries();
            entries.len() == 6
                && entries.iter().all(|entry| entry["attempts"] == 1 && entry.get("attempt").is_none())
        })
        .await;
    let report = queue_report(world.server.queue.database(), None, 0).unwrap();
    let why = |name: &str| {
        let found = report.destinations.iter().find(|(destination, _)| destination.host == name);
        let (_, summary) = found.unwrap_or_else(|| panic!("nothing for {name}"));
        assert_eq!(summary.counts.get(&Queue::Deferred), Some(&1), "{name}");
        summary.reason.clone().unwrap()
    };
    assert!(why("d1.example").contains("451 4.7.1 greylisted"), "{}", why("d1.example"));
    assert!(why("d2.example").contains("stopped answering"), "{}", why("d2.example"));
    assert!(why("d3.example").contains("stopped answering"), "{}", why("d3.example"));
    assert!(why("d4.example").contains("not SMTP"), "{}", why("d4.example"));
    assert!(why("d6.example").contains("its answer was lost"), "{}", why("d6.example"));
    assert!(why("d7.example").contains("421 4.3.2 come back later"), "{}", why("d7.example"));
    let notices = world.notices();
    assert_eq!(notices.len(), 2, "refusals are reported; the rest waits");
    for notice in &notices {
        assert!(notice.bytes().all(|byte| byte >= b' ' || matches!(byte, b'\r' | b'\n' | b'\t')), "{notice}");
        assert!(notice.lines().all(|line| line.len() < 998));
    }
    assert_eq!(sinks[6].log.lock().dots, 1, "an answer that was lost is no reason to hurry");
    world.handle.stop().await;
}

fn relay(port: u16, login: bool) -> TransportTable {
    let login = login
        .then(|| scrinium_mail_queue::route::Login { name: "acme".to_owned(), secret: "relay".to_owned() });
    let relay = RelayHost {
        host: "127.0.0.1".to_owned(),
        port,
        by_mx: false,
        implicit_tls: false,
        login,
        allow_plain_login: false,
    };
    TransportTable::new(Transport::Relay { relay, tls: TlsRule::Opportunistic })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_goes_to_a_relay_host() {
    let sink = Sink::start("127.0.0.1", 0, Manner::Friendly).await;
    let dns = name_server(&[]).await;
    let wish = Wish { transports: relay(sink.address.port(), false), allow_loopback: false, ..Wish::port(1) };
    let world = world(dns, wish);
    world.send(&["a@one.example", "b@two.example", "c@[192.0.2.1]"]);
    world.until("all are taken", |world| world.entries().is_empty()).await;
    let [message] = <[_; 1]>::try_from(sink.messages()).unwrap();
    assert_eq!(message.to, ["a@one.example", "b@two.example", "c@[192.0.2.1]"]);
    world.handle.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_password_goes_to_a_relay_host_in_the_clear() {
    let sink = Sink::start("127.0.0.1", 0, Manner::Friendly).await;
    let dns = name_server(&[]).await;
    let wish = Wish { transports: relay(sink.address.port(), true), ..Wish::port(1) };
    let world = world(dns, wish);
    world.send(&["a@one.example"]);
    world.until("it waits", |world| world.reason().is_some()).await;
    assert!(world.reason().unwrap().contains("offers no encryption"), "{:?}", world.reason());
    assert!(sink.messages().is_empty());
    world.handle.stop().await;
}
