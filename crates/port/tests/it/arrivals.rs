//! A protocol that says who comes, and encrypts when it is asked to.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use scrinium_accounting::{AccountOptions, Accounts};
use scrinium_port::{
    Arrival, Ending, Port, PortCounters, PortSettings, PortStream, Ports, Protocol, SocketPort, raised,
};
use scrinium_statistics::Registry;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio_rustls::TlsConnector;

const PATIENCE: Duration = Duration::from_millis(300);

/// Greets with the peer's address; answers a line with itself; `tls` encrypts and greets again.
struct Echo {
    tls: Arc<rustls::ServerConfig>,
}

impl Protocol for Echo {
    fn serve(&self, arrival: Arrival, mut ending: Ending) -> BoxFuture<'static, ()> {
        let tls = Arc::clone(&self.tls);
        async move {
            let link = Arc::clone(&arrival.link);
            tokio::select! {
                () = echo(arrival, tls) => {}
                () = link.shed() => {}
                () = raised(&mut ending.stopping) => {}
            }
        }
        .boxed()
    }
}

async fn greet(stream: &mut PortStream, arrival: &str) {
    let version = stream.session().and_then(|session| session.protocol_version());
    let line = format!("{arrival} {} {}\n", stream.is_encrypted(), version.is_some());
    stream.write_all(line.as_bytes()).await.unwrap();
    stream.flush().await.unwrap();
}

async fn echo(arrival: Arrival, tls: Arc<rustls::ServerConfig>) {
    let address = arrival.link.peer.address.to_string();
    let mut stream = arrival.stream;
    greet(&mut stream, &address).await;
    loop {
        let mut line = Vec::new();
        loop {
            match stream.read_u8().await {
                Ok(b'\n') => break,
                Ok(byte) => line.push(byte),
                Err(_) => return,
            }
        }
        if line == b"tls" {
            let Ok(encrypted) = stream.encrypt(&tls, PATIENCE).await else { return };
            stream = encrypted;
            greet(&mut stream, &address).await;
            continue;
        }
        line.push(b'\n');
        if stream.write_all(&line).await.is_err() || stream.flush().await.is_err() {
            return;
        }
    }
}

struct Served {
    registry: Registry,
    addresses: Vec<std::net::SocketAddr>,
    open: Arc<AtomicU64>,
    stop: oneshot::Sender<()>,
    running: tokio::task::JoinHandle<()>,
    connector: TlsConnector,
    tls: Arc<rustls::ServerConfig>,
}

/// Two ports of one protocol: one in plain text, and one with TLS from the start.
fn serve(options: AccountOptions) -> Served {
    serve_with(options, false)
}

fn serve_with(options: AccountOptions, proxy_header_required: bool) -> Served {
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der()));
    let certificate = certified.cert.der().clone();
    let tls = rustls::ServerConfig::builder().with_no_client_auth();
    let tls = Arc::new(tls.with_single_cert(vec![certificate.clone()], key).unwrap());
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate).unwrap();
    let client = rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let registry = Registry::new();
    let open = Arc::new(AtomicU64::new(0));
    let counters = PortCounters::register(&registry, "ECHO", Arc::clone(&open));
    let protocol: Arc<dyn Protocol> = Arc::new(Echo { tls: Arc::clone(&tls) });
    let port = |tls| Port {
        settings: PortSettings {
            listen: "127.0.0.1:0".parse().unwrap(),
            tls,
            trusted_proxies: vec!["127.0.0.2/32".parse().unwrap()],
            proxy_header_required,
            greeting_timeout_ms: 300,
        },
        protocol: Arc::clone(&protocol),
        counters: counters.clone(),
    };
    let ports = Ports::bind(vec![port(None), port(Some(Arc::clone(&tls)))], Accounts::new(options)).unwrap();
    let addresses = ports.addresses().to_vec();
    let (stop, stopped) = oneshot::channel();
    let running = tokio::spawn(ports.run(async { drop(stopped.await) }, Duration::from_secs(5)));
    let connector = TlsConnector::from(Arc::new(client));
    Served { registry, addresses, open, stop, running, connector, tls }
}

impl Served {
    async fn connect(&self, port: usize) -> BufReader<TcpStream> {
        BufReader::new(TcpStream::connect(self.addresses[port]).await.unwrap())
    }

    /// From 127.0.0.2, which is a trusted proxy.
    async fn connect_as_proxy(&self, header: &[u8]) -> BufReader<TcpStream> {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
        let mut stream = BufReader::new(socket.connect(self.addresses[0]).await.unwrap());
        stream.write_all(header).await.unwrap();
        stream
    }

    fn counted(&self, name: &str) -> u64 {
        self.registry.snapshot().counters[name]
    }
}

#[tokio::test]
async fn programs_of_this_machine_come_in_by_a_file() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    // What a server has left that was killed.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    let served = serve(AccountOptions::default());
    let registry = Registry::new();
    let protocol: Arc<dyn Protocol> = Arc::new(Echo { tls: served.tls.clone() });
    let socket = |path: &std::path::Path| SocketPort {
        path: path.to_owned(),
        protocol: Arc::clone(&protocol),
        counters: PortCounters::register(&registry, "FILE", Arc::default()),
    };
    let mut ports = Ports::bind(Vec::new(), Accounts::new(AccountOptions::default())).unwrap();
    ports.bind_socket(socket(&path)).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o660);
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(ports.run(async { drop(stopped.await) }, Duration::from_secs(5)));
    let mut client = BufReader::new(tokio::net::UnixStream::connect(&path).await.unwrap());
    assert!(line(&mut client).await.contains("127.0.0.1"));
    client.write_all(b"over a file\n").await.unwrap();
    assert_eq!(line(&mut client).await, "over a file\n");
    // Somebody listens there already.
    let mut second = Ports::bind(Vec::new(), Accounts::new(AccountOptions::default())).unwrap();
    let error = second.bind_socket(socket(&path)).unwrap_err();
    assert!(error.to_string().contains(&path.display().to_string()), "{error}");
    drop(client);
    drop(stop);
    running.await.unwrap();
    assert!(!path.exists(), "it goes with the server");
}

async fn line<S: AsyncBufReadExt + Unpin>(stream: &mut S) -> String {
    let mut line = String::new();
    // A connection that ends without a word of TLS ends all the same.
    let read = tokio::time::timeout(Duration::from_secs(5), stream.read_line(&mut line)).await.unwrap();
    read.map_or_else(|_| String::new(), |_| line)
}

#[tokio::test]
async fn connections_are_plain_encrypted_or_encrypted_later() {
    let served = serve(AccountOptions::default());
    let mut plain = served.connect(0).await;
    assert_eq!(line(&mut plain).await, "127.0.0.1 false false\n");
    plain.write_all(b"one\ntwo\n").await.unwrap();
    assert_eq!(line(&mut plain).await + &line(&mut plain).await, "one\ntwo\n");
    plain.write_all(b"tls\n").await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let mut later = BufReader::new(served.connector.connect(name.clone(), plain.into_inner()).await.unwrap());
    assert_eq!(line(&mut later).await, "127.0.0.1 true true\n");
    let stream = served.connect(1).await.into_inner();
    let mut first = BufReader::new(served.connector.connect(name, stream).await.unwrap());
    assert_eq!(line(&mut first).await, "127.0.0.1 true true\n");
    assert_eq!((served.open.load(Ordering::Relaxed), served.counted("ECHO.Connections")), (2, 2));
    assert_eq!(served.counted("ECHO.Handshakes"), 1, "only those of the port itself");
    served.stop.send(()).unwrap();
    served.running.await.unwrap();
    assert_eq!(line(&mut first).await, "", "the server has gone");
    assert_eq!(served.open.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn only_a_trusted_proxy_says_who_comes() {
    let served = serve(AccountOptions::default());
    let mut behind = served.connect_as_proxy(b"PROXY TCP4 192.0.2.9 10.0.0.1 4711 25\r\nafter\n").await;
    assert_eq!(line(&mut behind).await, "192.0.2.9 false false\n");
    assert_eq!(line(&mut behind).await, "after\n", "nothing of what follows is lost");
    let mut forged = served.connect(0).await;
    assert_eq!(line(&mut forged).await, "127.0.0.1 false false\n");
    forged.write_all(b"PROXY TCP4 192.0.2.9 10.0.0.1 4711 25\n").await.unwrap();
    assert!(line(&mut forged).await.starts_with("PROXY"), "from others it is a command like any other");
    let mut broken = served.connect_as_proxy(b"PROXY TCP4 nowhere\r\n").await;
    assert_eq!(line(&mut broken).await, "");
}

#[tokio::test]
async fn a_proxy_that_has_to_say_who_comes_is_not_served_before() {
    let served = serve_with(AccountOptions::default(), true);
    for silent in [b"one\n".as_slice(), b""] {
        let mut proxy = served.connect_as_proxy(silent).await;
        assert_eq!(line(&mut proxy).await, "");
    }
    let mut behind = served.connect_as_proxy(b"PROXY TCP4 192.0.2.9 10.0.0.1 4711 25\r\n").await;
    assert_eq!(line(&mut behind).await, "192.0.2.9 false false\n");
    let mut own = served.connect_as_proxy(b"PROXY UNKNOWN\r\n").await;
    assert_eq!(line(&mut own).await, "127.0.0.2 false false\n", "a health check");
    let mut direct = served.connect(0).await;
    assert_eq!(line(&mut direct).await, "127.0.0.1 false false\n", "others need no header");
}

#[tokio::test]
async fn who_says_nothing_does_not_stay() {
    let served = serve(AccountOptions::default());
    let mut silent = served.connect(1).await;
    let mut proxy = served.connect_as_proxy(b"PROXY TCP4 ").await;
    assert_eq!(line(&mut silent).await + &line(&mut proxy).await, "");
}

#[tokio::test]
async fn a_new_connection_takes_the_place_of_the_oldest_idle_one() {
    let mut options = AccountOptions::default();
    options.network.connections = 2;
    let served = serve(options);
    let mut first = served.connect(0).await;
    let greeted = line(&mut first).await;
    let mut second = served.connect(0).await;
    assert_eq!(line(&mut second).await, greeted);
    let mut third = served.connect(0).await;
    assert_eq!(line(&mut third).await, greeted);
    assert_eq!(line(&mut first).await, "", "it was idle for longest");
    second.write_all(b"still here\n").await.unwrap();
    assert_eq!(line(&mut second).await, "still here\n");
}
