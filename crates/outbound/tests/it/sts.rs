//! Policies of other domains: fetched from web servers, kept, and kept to.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use scrinium_clock::Clock;
use scrinium_mail_discovery::sts::{StsMode, StsPolicy};
use scrinium_mail_queue::route::TargetOptions;
use scrinium_outbound::{Dns, StsPolicies, TlsClient};
use scrinium_sender_authentication::DomainName;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::common::{START_MS, Server};
use crate::sink::{Manner, Sink, Zone, name_server};
use crate::wire::{Wish, world, zone};

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Authority {
    let mut parameters = CertificateParams::new(Vec::new()).unwrap();
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(parameters, KeyPair::generate().unwrap()).unwrap()
}

/// A server's certificate for a name; without an authority, its own.
fn acceptor(name: &str, authority: Option<&Authority>) -> TlsAcceptor {
    let key = KeyPair::generate().unwrap();
    let parameters = CertificateParams::new(vec![name.to_owned()]).unwrap();
    let certificate = match authority {
        Some(authority) => parameters.signed_by(&key, authority).unwrap(),
        None => parameters.self_signed(&key).unwrap(),
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let chain = vec![certificate.der().clone()];
    TlsAcceptor::from(Arc::new(builder.with_no_client_auth().with_single_cert(chain, key).unwrap()))
}

/// Serves connections until the test ends. Where it is, and how many came.
async fn serve<F: Future<Output = ()> + Send + 'static>(
    address: (IpAddr, u16),
    with: impl Fn(TcpStream) -> F + Send + 'static,
) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind(address).await.unwrap();
    let (at, count) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&count);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(with(stream));
        }
    });
    (at, count)
}

/// A web server that gives this answer to everything.
async fn web(
    address: &str,
    port: u16,
    tls: TlsAcceptor,
    answer: Arc<Mutex<String>>,
) -> (u16, Arc<AtomicUsize>) {
    let (at, count) = serve((address.parse().unwrap(), port), move |stream| {
        let (tls, answer) = (tls.clone(), answer.lock().clone());
        async move {
            let Ok(stream) = tls.accept(stream).await else { return };
            let mut stream = BufReader::new(stream);
            let mut line = String::new();
            while stream.read_line(&mut line).await.is_ok_and(|count| count > 2) {
                line.clear();
            }
            drop(stream.write_all(answer.as_bytes()).await);
            drop(stream.shutdown().await);
        }
    })
    .await;
    (at.port(), count)
}

fn page(policy: &str) -> String {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length";
    format!("{head}: {}\r\n\r\n{policy}", policy.len())
}

fn policy(mode: &str, host: &str) -> String {
    format!("version: STSv1\nmode: {mode}\nmx: {host}\nmax_age: 864000\n")
}

fn txt(text: &'static str) -> Zone {
    Zone { txt: vec![vec![text]], ..Zone::default() }
}

/// A mail server with STARTTLS. What it was brought, and how often a connection was made.
async fn mail_host(
    address: &str,
    port: u16,
    tls: TlsAcceptor,
) -> (u16, Arc<Mutex<Vec<bool>>>, Arc<AtomicUsize>) {
    let taken = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&taken);
    let (at, count) = serve((address.parse().unwrap(), port), move |stream| {
        let (tls, log) = (tls.clone(), Arc::clone(&log));
        async move {
            let mut stream = BufReader::new(stream);
            drop(stream.write_all(b"220 host ESMTP\r\n").await);
            if let Some(plain) = converse(stream, &log, false).await
                && let Ok(encrypted) = tls.accept(plain.into_inner()).await
            {
                converse(BufReader::new(encrypted), &log, true).await;
            }
        }
    })
    .await;
    (at.port(), taken, count)
}

/// Until the end, or until it is to be encrypted.
async fn converse<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: BufReader<S>,
    log: &Mutex<Vec<bool>>,
    is_encrypted: bool,
) -> Option<BufReader<S>> {
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        let word = line.split([' ', '\r']).next().unwrap().to_ascii_uppercase();
        match word.as_str() {
            "EHLO" if is_encrypted => stream.write_all(b"250 host\r\n").await.ok()?,
            "EHLO" => stream.write_all(b"250-host\r\n250 STARTTLS\r\n").await.ok()?,
            "STARTTLS" => {
                stream.write_all(b"220 go on\r\n").await.ok()?;
                return Some(stream);
            }
            "DATA" => {
                stream.write_all(b"354 go on\r\n").await.ok()?;
                let mut line = String::new();
                while line != ".\r\n" {
                    line.clear();
                    stream.read_line(&mut line).await.ok()?;
                }
                log.lock().push(is_encrypted);
                stream.write_all(b"250 ok\r\n").await.ok()?;
            }
            "QUIT" => return None,
            _ => stream.write_all(b"250 ok\r\n").await.ok()?,
        }
    }
}

fn policies(server: &Server, dns: &Dns, (tls, clock): (&TlsClient, &Clock), port: u16) -> StsPolicies {
    let targets = TargetOptions { allow_loopback: true, ..TargetOptions::default() };
    StsPolicies::new(server.queue.database(), (dns.clone(), tls, clock.clone()), targets, port)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_is_kept_for_its_time_whatever_becomes_of_dns_and_web_server() {
    let folder = tempfile::tempdir().unwrap();
    let time = Clock::manual(START_MS);
    let clock = time.clock();
    let server = Server::open(folder.path(), &clock);
    let authority = authority();
    let tls = TlsClient::new(vec![authority.der().clone()]).unwrap();
    let answer = Arc::new(Mutex::new(page(&policy("enforce", "mx.two.example"))));
    let (port, asked) =
        web("127.0.0.2", 0, acceptor("mta-sts.two.example", Some(&authority)), Arc::clone(&answer)).await;
    let there =
        [("_mta-sts.two.example", txt("v=STSv1; id=1;")), ("mta-sts.two.example", zone(&[], &["127.0.0.2"]))];
    let dns = Dns::new(&[name_server(&there).await]).unwrap();
    let gone = Dns::new(&[name_server(&[]).await]).unwrap();
    let domain = DomainName::parse("two.example").unwrap();
    let wanted = StsPolicy::parse(policy("enforce", "mx.two.example").as_bytes()).ok();

    let first = policies(&server, &dns, (&tls, &clock), port);
    let all = futures_util::future::join_all((0..20).map(|_| first.of(&domain))).await;
    assert!(all.iter().all(|found| *found == wanted), "{all:?}");
    assert_eq!(asked.load(Ordering::SeqCst), 1, "one asks for all");
    // After a restart, without DNS: RFC 8461 §3.3 has the policy hold until its age is over.
    let second = policies(&server, &gone, (&tls, &clock), port);
    time.advance(Duration::from_secs(864_000));
    assert_eq!(second.of(&domain).await, wanted);
    // A web server that is not right any more takes nothing back, however it is wrong, and is left alone for a while.
    "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".clone_into(&mut answer.lock());
    assert_eq!(first.of(&domain).await, wanted, "what is kept, though it was to be fetched again");
    assert_eq!(first.of(&domain).await, wanted);
    assert_eq!(asked.load(Ordering::SeqCst), 2);
    time.advance(Duration::from_secs(1));
    assert_eq!((second.of(&domain).await, first.of(&domain).await), (None, None), "its age is over");
    time.advance(Duration::from_secs(300));
    *answer.lock() = page(&policy("none", "mx.two.example"));
    assert_eq!(first.of(&domain).await, None);
    assert_eq!(asked.load(Ordering::SeqCst), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_policy_is_none_and_a_stranger_leads_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Clock::system();
    let server = Server::open(folder.path(), &clock);
    let authority = authority();
    let tls = TlsClient::new(vec![authority.der().clone()]).unwrap();
    let fine = policy("enforce", "mx.two.example");
    let long = page(&format!("{fine}x: {}\n", "y".repeat(70_000)));
    let html = page(&fine).replace("text/plain", "text/html");
    let moved = "HTTP/1.1 301 Moved\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n".to_owned();
    let head = format!("HTTP/1.1 200 OK\r\nA: {}\r\n\r\n", "b".repeat(40_000));
    let answers = [long, html, moved, head, page("version: STSv1\n"), "garbage".to_owned(), String::new()];
    let answer = Arc::new(Mutex::new(String::new()));
    let tls_of_web = acceptor("mta-sts.two.example", Some(&authority));
    let (port, asked) = web("127.0.0.2", 0, tls_of_web, Arc::clone(&answer)).await;
    let record = || txt("v=STSv1; id=1;");
    let zones = [
        ("_mta-sts.two.example", record()),
        ("mta-sts.two.example", zone(&[], &["127.0.0.2"])),
        // Its certificate is for another name.
        ("_mta-sts.other.example", record()),
        ("mta-sts.other.example", zone(&[], &["127.0.0.2"])),
        ("_mta-sts.inside.example", record()),
        ("mta-sts.inside.example", zone(&[], &["10.0.0.1"])),
    ];
    let dns = Dns::new(&[name_server(&zones).await]).unwrap();
    let name = |text: &str| DomainName::parse(text).unwrap();
    for (number, wrong) in answers.into_iter().enumerate() {
        answer.lock().clone_from(&wrong);
        // Another one has not failed yet.
        let fresh = policies(&server, &dns, (&tls, &clock), port);
        assert_eq!(fresh.of(&name("two.example")).await, None, "{wrong:.60}");
        assert_eq!(asked.load(Ordering::SeqCst), number + 1);
    }
    *answer.lock() = page(&fine);
    let fresh = policies(&server, &dns, (&tls, &clock), port);
    for domain in ["other.example", "inside.example", "nowhere.example"] {
        assert_eq!(fresh.of(&name(domain)).await, None, "{domain}");
    }
    let strict = TargetOptions { allow_loopback: false, ..TargetOptions::default() };
    let strict = StsPolicies::new(server.queue.database(), (dns, &tls, clock.clone()), strict, port);
    assert_eq!(strict.of(&name("two.example")).await, None, "it would lead to this machine");
    assert_eq!(fresh.of(&name("two.example")).await.map(|policy| policy.mode), Some(StsMode::Enforce));
}

/// Hosts as policies want them, and others: who gets the message, and whether it was encrypted.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn mail_goes_only_where_a_policy_lets_it() {
    let authority = authority();
    let proven = |name: &str| acceptor(name, Some(&authority));
    let (port, good, _) = mail_host("127.0.0.2", 0, proven("mx.good.example")).await;
    let (_, forged, _) = mail_host("127.0.0.3", port, acceptor("mx.forged.example", None)).await;
    let (_, tested, _) = mail_host("127.0.0.4", port, acceptor("mx.tested.example", None)).await;
    let (_, unnamed, unnamed_connections) = mail_host("127.0.0.5", port, proven("mx.unnamed.example")).await;
    let plain = Sink::start("127.0.0.6", port, Manner::Friendly).await;
    let policies = [
        ("good", "enforce", "*.good.example"),
        ("forged", "enforce", "mx.forged.example"),
        ("tested", "testing", "mx.tested.example"),
        ("unnamed", "enforce", "mx.good.example"),
        ("plain", "enforce", "mx.plain.example"),
    ];
    let mut zones: Vec<(&str, Zone)> = Vec::new();
    let leak = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
    let mut web_port = 0;
    for (number, (name, mode, host)) in policies.into_iter().enumerate() {
        let (web_host, mx) = (leak(format!("mta-sts.{name}.example")), leak(format!("mx.{name}.example")));
        let address = leak(format!("127.0.0.{}", number + 20));
        let answer = Arc::new(Mutex::new(page(&policy(mode, host))));
        (web_port, _) = web(address, web_port, proven(web_host), answer).await;
        zones.push((leak(format!("{name}.example")), zone(&[(1, mx)], &[])));
        zones.push((mx, zone(&[], &[leak(format!("127.0.0.{}", number + 2))])));
        zones.push((web_host, zone(&[], &[address])));
        zones.push((leak(format!("_mta-sts.{name}.example")), txt("v=STSv1; id=7;")));
    }
    // The hosts' numbers are those of the policies, in another order.
    let dns = name_server(&zones).await;
    let authorities = vec![CertificateDer::clone(authority.der())];
    let world = world(dns, Wish { sts: Some((web_port, authorities)), ..Wish::port(port) });
    for name in ["good", "tested"] {
        world.send(&[&format!("a@{name}.example")]);
        world.until("it is taken", |world| world.entries().is_empty()).await;
    }
    assert_eq!((good.lock().as_slice(), tested.lock().as_slice()), ([true].as_slice(), [true].as_slice()));
    for name in ["forged", "unnamed", "plain"] {
        world.send(&[&format!("a@{name}.example")]);
    }
    world.until("all three wait", |world| world.reasons() == 3).await;
    assert_eq!((forged.lock().len(), unnamed.lock().len(), plain.messages().len()), (0, 0, 0));
    assert_eq!(unnamed_connections.load(Ordering::SeqCst), 0, "it is not even asked");
    assert_eq!(world.breaches(), 4);
    world.handle.stop().await;
}
