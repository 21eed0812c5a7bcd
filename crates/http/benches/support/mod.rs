//! A server without passwords on a free port, for measuring.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a benchmark stops at the first error")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use scrinium_database::Databases;
use scrinium_http::{
    Administration, Authenticator, ConsoleAnswer, HttpOptions, HttpState, Identity, Parts, PortOptions,
    Server, Session, SessionToken,
};
use scrinium_statistics::Registry;
use scrinium_worker::{WorkerOptions, WorkerPool};
use serde_json::Value;

/// Everybody is an administrator, from memory: passwords are not what is measured.
struct Anybody;

impl Authenticator for Anybody {
    fn recall(&self, name: &str, _password: &str) -> Option<Identity> {
        Some(Identity::new(name, vec!["_admin".to_owned()]))
    }

    fn verify(&self, _name: &str, _password: &str) -> Result<Option<Identity>, String> {
        Ok(None)
    }

    fn open_session(&self, _identity: &Identity) -> SessionToken {
        SessionToken { token: String::new(), max_age_seconds: 0 }
    }

    fn session(&self, _token: &str) -> Option<Session> {
        None
    }

    fn close_session(&self, _token: &str) {}
}

struct Nothing;

impl Administration for Nothing {
    fn console(&self, _command: &str, _by: &Identity) -> Result<ConsoleAnswer, String> {
        Err(String::new())
    }

    fn statistics(&self) -> Value {
        Value::Null
    }

    fn prometheus(&self) -> String {
        String::new()
    }

    fn active_tasks(&self) -> Value {
        Value::Null
    }
}

/// A server on a free port that runs until the process ends. Call it within a runtime.
pub(crate) fn serve(databases: Databases, statistics: &Registry) -> SocketAddr {
    let state = HttpState::new(Parts {
        databases,
        authenticator: Arc::new(Anybody),
        administration: Arc::new(Nothing),
        workers: WorkerPool::new(&WorkerOptions::default(), statistics),
        statistics: statistics.clone(),
        options: HttpOptions::default(),
    });
    let port = PortOptions { listen: SocketAddr::from(([127, 0, 0, 1], 0)), ..PortOptions::default() };
    let server = Server::bind(vec![port], state).unwrap();
    let address = server.addresses()[0];
    tokio::spawn(server.run(std::future::pending(), Duration::ZERO));
    address
}

/// A client's connection that waits for each answer.
#[allow(dead_code, reason = "not every benchmark has this kind of client")]
pub(crate) struct Connection {
    stream: TcpStream,
    answer: Vec<u8>,
}

#[allow(dead_code, reason = "not every benchmark has this kind of client")]
impl Connection {
    pub(crate) fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, answer: Vec::new() }
    }

    /// The whole answer, which must be a success; it ends where the connection has nothing more to say.
    pub(crate) fn request(&mut self, method: &str, path: &str, body: &str) -> &str {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Basic YTpi\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.stream.write_all(request.as_bytes()).unwrap();
        self.answer.clear();
        let mut part = [0; 16 << 10];
        while !self.is_whole() {
            let read = self.stream.read(&mut part).unwrap();
            assert!(read > 0, "{}", String::from_utf8_lossy(&self.answer));
            self.answer.extend_from_slice(&part[..read]);
        }
        let text = std::str::from_utf8(&self.answer).unwrap();
        assert!(text.starts_with("HTTP/1.1 20"), "{text}");
        text.split_once("\r\n\r\n").unwrap().1
    }

    /// Our answers end with a line, and a list that is sent in pieces with the last piece.
    fn is_whole(&self) -> bool {
        let text = String::from_utf8_lossy(&self.answer);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
        let length = head
            .lines()
            .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
        length.map_or_else(|| body.ends_with("0\r\n\r\n"), |length: usize| body.len() >= length)
    }
}
