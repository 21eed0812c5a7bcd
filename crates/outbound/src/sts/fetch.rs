//! A policy from a domain's web server (RFC 8461 §3.3): one request, nothing followed, within bytes and time.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use scrinium_mail_discovery::sts::{POLICY_BYTES_MAX, StsError, StsPolicy, policy_url};
use scrinium_mail_queue::route::{Exchanger, OwnHosts, TargetOptions, targets};
use scrinium_sender_authentication::DomainName;
use thiserror::Error;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::resolve::Dns;

/// All of it (RFC 8461 §3.3 suggests a minute; mail waits for it).
const TIMEOUT: Duration = Duration::from_secs(20);

/// Connections that are tried to one web server.
const ADDRESSES_MAX: usize = 2;

/// Bytes of a head of an answer.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// Why a policy was not had.
#[derive(Debug, Error)]
pub(super) enum FetchError {
    #[error("its web server has no address that mail may be led by")]
    Address,
    #[error("its web server took longer than {} s", TIMEOUT.as_secs())]
    Time,
    #[error("its web server cannot be talked to: {0}")]
    Connection(String),
    #[error("its web server answers with status {0}")]
    Status(u16),
    #[error("its web server gives something that is no plain text")]
    Kind,
    #[error(transparent)]
    Policy(#[from] StsError),
}

pub(super) struct Fetcher {
    dns: Dns,
    tls: Arc<ClientConfig>,
    targets: TargetOptions,
    port: u16,
}

impl Fetcher {
    pub(super) fn new(dns: Dns, tls: Arc<ClientConfig>, targets: TargetOptions, port: u16) -> Self {
        Self { dns, tls, targets, port }
    }

    pub(super) async fn fetch(&self, domain: &DomainName) -> Result<StsPolicy, FetchError> {
        tokio::time::timeout(TIMEOUT, self.ask(domain)).await.unwrap_or(Err(FetchError::Time))
    }

    async fn ask(&self, domain: &DomainName) -> Result<StsPolicy, FetchError> {
        let host = domain.below("mta-sts").ok_or(FetchError::Address)?;
        let answer = self.dns.addresses(host.as_str()).await;
        // A stranger's DNS does not lead this machine to itself, nor into its own networks.
        let exchanger = Exchanger { name: host.to_string(), preference: 0 };
        let own = OwnHosts::default();
        let found = targets(host.as_str(), &[exchanger], &own, &self.targets, |_| answer.clone());
        let mut last = FetchError::Address;
        for target in found.map_err(|_| FetchError::Address)?.into_iter().take(ADDRESSES_MAX) {
            let address = SocketAddr::new(target.address, self.port);
            match self.ask_at(address, domain, &host).await {
                Err(error @ FetchError::Connection(_)) => last = error,
                done => return done,
            }
        }
        Err(last)
    }

    async fn ask_at(
        &self,
        address: SocketAddr,
        domain: &DomainName,
        host: &DomainName,
    ) -> Result<StsPolicy, FetchError> {
        let name = ServerName::try_from(host.to_string()).map_err(|_| FetchError::Address)?;
        let stream = TcpStream::connect(address).await.map_err(failed)?;
        let stream = TlsConnector::from(Arc::clone(&self.tls)).connect(name, stream).await.map_err(failed)?;
        let mut builder = hyper::client::conn::http1::Builder::new();
        builder.max_buf_size(HEAD_BYTES_MAX);
        let (mut sender, connection) = builder.handshake(TokioIo::new(stream)).await.map_err(failed)?;
        let url = policy_url(domain);
        let path = url.find("/.well-known").and_then(|place| url.get(place..)).unwrap_or_default();
        let request = Request::get(path).header(HOST, host.as_str()).body(Empty::<Bytes>::new());
        let asked = async move {
            let answer = sender.send_request(request.map_err(failed)?).await.map_err(failed)?;
            // RFC 8461 §3.3: redirections are not followed, and nothing else but 200 has a policy.
            if answer.status() != StatusCode::OK {
                return Err(FetchError::Status(answer.status().as_u16()));
            }
            // §3.2
            let kind =
                answer.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
            if !kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("text/plain") {
                return Err(FetchError::Kind);
            }
            let body = Limited::new(answer.into_body(), POLICY_BYTES_MAX).collect().await;
            let body = body.map_err(|error| FetchError::Connection(error.to_string()))?;
            Ok(StsPolicy::parse(&body.to_bytes())?)
        };
        let mut asked = pin!(asked);
        tokio::select! {
            policy = &mut asked => policy,
            // What came before the server hung up is there all the same; without an answer, asking for one fails.
            _ended = connection => asked.await,
        }
    }
}

fn failed(error: impl std::fmt::Display) -> FetchError {
    FetchError::Connection(error.to_string())
}
