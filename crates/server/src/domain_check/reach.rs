//! Whether mail hosts answer.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use futures_util::future::join_all;
use scrinium_mail_queue::route::AddressAnswer;
use scrinium_outbound::Dns;
use scrinium_sender_authentication::DomainName;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

/// Hosts that are tried, and addresses of each.
const HOSTS_MAX: usize = 10;
const ADDRESSES_MAX: usize = 4;

/// Bytes of a greeting that are looked at.
const GREETING_BYTES_MAX: usize = 200;

/// A mail host.
pub(super) struct MailHost {
    pub(super) name: String,
    /// Its addresses, each with its greeting, or with why there is none.
    pub(super) addresses: Vec<(IpAddr, Result<String, String>)>,
}

impl MailHost {
    /// Whether it answers at each of its addresses.
    pub(super) fn is_fine(&self) -> bool {
        !self.addresses.is_empty() && self.addresses.iter().all(|(_, answered)| answered.is_ok())
    }
}

/// Connects to all of them at once.
pub(super) async fn mail_hosts(dns: &Dns, hosts: &[DomainName], port: u16, limit: Duration) -> Vec<MailHost> {
    let tried = hosts.iter().take(HOSTS_MAX).map(async |host| {
        let addresses = match dns.addresses(host.as_str()).await {
            AddressAnswer::Addresses(addresses) => addresses,
            _ => Vec::new(),
        };
        let greeted = addresses.into_iter().take(ADDRESSES_MAX).map(async |address| {
            let greeting = tokio::time::timeout(limit, greeting(SocketAddr::new(address, port))).await;
            (address, greeting.unwrap_or_else(|_| Err("no answer".to_owned())))
        });
        MailHost { name: host.to_string(), addresses: join_all(greeted).await }
    });
    join_all(tried).await
}

/// The first line of what a server says, if it is ready (RFC 5321 §4.2).
async fn greeting(address: SocketAddr) -> Result<String, String> {
    let mut stream = TcpStream::connect(address).await.map_err(|error| error.to_string())?;
    let mut said = Vec::new();
    while said.len() < GREETING_BYTES_MAX && !said.contains(&b'\n') {
        let mut piece = [0; GREETING_BYTES_MAX];
        match stream.read(&mut piece).await.map_err(|error| error.to_string())? {
            0 => break,
            count => said.extend_from_slice(piece.get(..count).unwrap_or_default()),
        }
    }
    let text = String::from_utf8_lossy(&said);
    let line: String =
        text.lines().next().unwrap_or_default().chars().filter(|letter| !letter.is_control()).collect();
    if line.starts_with("220") { Ok(line) } else { Err(format!("it says {line:?}")) }
}
