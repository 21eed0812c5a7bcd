//! Certificates from an authority: Pebble, Let's Encrypt's own for tests.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection};
use scrinium_fault::skip;

use crate::common::name_server::NameServer;
use crate::common::{Server, Settings, small_with, start_with};
use crate::mail_programs::cached;

const NAME: &str = "mail.acme.example";

/// However loaded the machine is.
const ORDERED_WITHIN: Duration = Duration::from_secs(120);

/// An authority, which ends with the test.
struct Authority {
    process: Child,
    directory: String,
    ca_file: PathBuf,
}

impl Drop for Authority {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// The program, if this machine has it.
fn program() -> Option<PathBuf> {
    let program = cached("pebble-1").join("pebble");
    if program.exists() {
        return Some(program);
    }
    skip("there is no authority of certificates to try; scripts/acme-authority brings Pebble");
    None
}

impl Authority {
    /// It looks at these ports, and asks this name server.
    fn start(
        program: &Path,
        folder: &Path,
        (http, tls): (u16, u16),
        names: &NameServer,
        valid_s: u64,
    ) -> Self {
        let mut parameters = CertificateParams::new(Vec::new()).unwrap();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(parameters, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let own =
            CertificateParams::new(vec!["localhost".to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
        let path = |name: &str| folder.join(name);
        std::fs::write(path("ca.pem"), issuer.pem()).unwrap();
        std::fs::write(path("own.pem"), own.pem()).unwrap();
        std::fs::write(path("own.key"), key.serialize_pem()).unwrap();
        let (port, management) = (free_port(), free_port());
        let config = serde_json::json!({"pebble": {
            "listenAddress": format!("127.0.0.1:{port}"),
            "managementListenAddress": format!("127.0.0.1:{management}"),
            "certificate": path("own.pem"), "privateKey": path("own.key"),
            "httpPort": http, "tlsPort": tls, "ocspResponderURL": "",
            "externalAccountBindingRequired": false,
            "profiles": {"default": {"description": "the only one", "validityPeriod": valid_s}},
        }});
        std::fs::write(path("pebble.json"), config.to_string()).unwrap();
        let process = Command::new(program)
            .args(["-config".as_ref(), path("pebble.json").as_os_str(), "-strict".as_ref()])
            .args(["-dnsserver", &names.address.to_string()])
            .env("PEBBLE_VA_NOSLEEP", "1")
            .env("PEBBLE_WFE_NONCEREJECT", "20")
            .stdin(Stdio::null())
            .stdout(std::fs::File::create(path("pebble.log")).unwrap())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(begun.elapsed() < ORDERED_WITHIN, "the authority does not start");
            std::thread::sleep(Duration::from_millis(50));
        }
        Self { process, directory: format!("https://localhost:{port}/dir"), ca_file: path("ca.pem") }
    }
}

/// The certificate that a port shows.
fn shown(address: SocketAddr) -> Option<CertificateDer<'static>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
    let verifier = Arc::new(Any(provider));
    let config =
        builder.unwrap().dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth();
    let name = ServerName::try_from(NAME).unwrap();
    let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    while client.is_handshaking() {
        client.complete_io(&mut stream).ok()?;
    }
    Some(client.peer_certificates()?.first()?.clone().into_owned())
}

#[derive(Debug)]
struct Any(Arc<rustls::crypto::CryptoProvider>);

impl rustls::client::danger::ServerCertVerifier for Any {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: rustls::pki_types::UnixTime,
    ) -> Result<rustls::client::danger::ServerCertVerified, rustls::Error> {
        Ok(rustls::client::danger::ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// Pebble's issuers are called like this.
fn is_of_the_authority(certificate: &CertificateDer<'_>) -> bool {
    certificate.windows(6).any(|part| part == b"Pebble")
}

/// Waits for a certificate of the authority at a port, other than this one.
fn wait_for_another(
    server: &Server,
    address: SocketAddr,
    than: Option<&CertificateDer<'_>>,
) -> CertificateDer<'static> {
    let begun = Instant::now();
    loop {
        match shown(address) {
            Some(certificate) if is_of_the_authority(&certificate) && Some(&certificate) != than => {
                return certificate;
            }
            _ => assert!(begun.elapsed() < ORDERED_WITHIN, "no certificate: {}", server.messages()),
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// A server with an authority that can reach it.
struct Scene {
    folder: tempfile::TempDir,
    names: NameServer,
    authority: Authority,
    http: u16,
    tls: u16,
    submission: u16,
}

impl Scene {
    fn new(program: &Path, valid_s: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let names = NameServer::start();
        names.set(NAME, "A", &["127.0.0.1"]);
        let (http, tls, submission) = (free_port(), free_port(), free_port());
        let authority = Authority::start(program, folder.path(), (http, tls), &names, valid_s);
        std::fs::create_dir(folder.path().join("data")).unwrap();
        Self { folder, names, authority, http, tls, submission }
    }

    fn settings(&self, challenge: &str) -> Settings {
        let at = |port: u16| format!("127.0.0.1:{port}");
        small_with([
            ("SCRINIUM_HTTP__LISTEN", at(self.http)),
            ("SCRINIUM_HTTPS__LISTEN", at(self.tls)),
            ("SCRINIUM_SUBMISSION__TLS_LISTEN", at(self.submission)),
            ("SCRINIUM_ACME__DIRECTORY", self.authority.directory.clone()),
            ("SCRINIUM_ACME__TERMS_AGREED", "true".to_owned()),
            ("SCRINIUM_ACME__NAMES", NAME.to_owned()),
            ("SCRINIUM_ACME__CA_FILE", self.authority.ca_file.display().to_string()),
            ("SCRINIUM_ACME__CHALLENGE", challenge.to_owned()),
            ("SCRINIUM_ACME__DNS_WAIT", "0 s".to_owned()),
            ("SCRINIUM_ACME__DNS_HOOK", self.folder.path().join("hook").display().to_string()),
        ])
    }

    fn start(&self, challenge: &str) -> Server {
        start_with(&self.folder.path().join("data"), &self.settings(challenge))
    }

    fn at(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }
}

#[test]
fn a_proof_at_the_encrypted_port_brings_a_certificate_that_all_ports_have_also_after_a_restart() {
    let Some(program) = program() else { return };
    let scene = Scene::new(&program, 90 * 86_400);
    let mut server = scene.start("tls-alpn-01");
    let first = wait_for_another(&server, Scene::at(scene.tls), None);
    assert_eq!(shown(Scene::at(scene.submission)).unwrap(), first, "all ports have it");
    let file = scene.folder.path().join("data/data/acme/certificate.pem");
    for file in [&file, &file.with_file_name("account.json")] {
        let mode = std::os::unix::fs::PermissionsExt::mode(&file.metadata().unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600, "{}", file.display());
    }
    server.terminate(Duration::from_secs(60));
    let mut server = scene.start("tls-alpn-01");
    assert_eq!(shown(Scene::at(scene.tls)).unwrap(), first);
    server.terminate(Duration::from_secs(60));
    // One that cannot be read keeps nobody out, and is ordered again.
    std::fs::write(&file, "damaged").unwrap();
    let server = scene.start("tls-alpn-01");
    wait_for_another(&server, Scene::at(scene.tls), Some(&first));
}

#[test]
fn a_proof_at_the_http_port_brings_a_certificate_which_is_renewed_while_the_server_runs() {
    let Some(program) = program() else { return };
    let scene = Scene::new(&program, 12);
    let server = scene.start("http-01");
    let first = wait_for_another(&server, Scene::at(scene.tls), None);
    let second = wait_for_another(&server, Scene::at(scene.tls), Some(&first));
    assert_eq!(shown(Scene::at(scene.submission)).map(|shown| shown == first), Some(false));
    wait_for_another(&server, Scene::at(scene.tls), Some(&second));
}

#[test]
fn a_proof_in_dns_is_shown_again_after_the_server_was_killed_in_the_middle() {
    let Some(program) = program() else { return };
    let scene = Scene::new(&program, 90 * 86_400);
    let hook = scene.folder.path().join("hook");
    std::fs::write(&hook, HOOK).unwrap();
    std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let log = scene.folder.path().join("hook.log");
    let wait_for_line = |server: &Server, number: usize| -> String {
        let begun = Instant::now();
        loop {
            let text = std::fs::read_to_string(&log).unwrap_or_default();
            if let Some(line) = text.split_inclusive('\n').nth(number).filter(|line| line.ends_with('\n')) {
                return line.trim().to_owned();
            }
            assert!(begun.elapsed() < ORDERED_WITHIN, "{}", server.messages());
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    let mut server = scene.start("dns-01");
    wait_for_line(&server, 0);
    assert!(!is_of_the_authority(&shown(Scene::at(scene.tls)).unwrap()));
    server.kill();
    let server = scene.start("dns-01");
    let asked = wait_for_line(&server, 1);
    let value = asked.strip_prefix(&format!("set _acme-challenge.{NAME} ")).unwrap();
    scene.names.set(&format!("_acme-challenge.{NAME}"), "TXT", &[value]);
    std::fs::write(scene.folder.path().join("hook.go"), "").unwrap();
    wait_for_another(&server, Scene::at(scene.tls), None);
    assert_eq!(wait_for_line(&server, 2), asked.replacen("set", "clear", 1));
}

/// It writes down what it is asked, and lasts until the test has put it into DNS.
const HOOK: &str = "#!/bin/sh\necho \"$@\" >> \"$0.log\"\nn=0\n\
    while [ ! -e \"$0.go\" ] && [ $n -lt 600 ]; do sleep 0.1; n=$((n + 1)); done\n";
