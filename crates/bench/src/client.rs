//! A client of an HTTP server that waits for each answer, and the timetable of a simulated user.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    reason = "a benchmark stops at the first error"
)]

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::scatter;

/// No answer takes longer, not even one that waits for views to be built.
const ANSWER_MAX: Duration = Duration::from_secs(900);

/// A client's connection, which logs in with every request, if it has a name.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    /// The line of the head that says who asks; empty for nobody.
    authorization: String,
    received: Vec<u8>,
    body: Vec<u8>,
}

impl Connection {
    /// Connects to a server.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn open(address: SocketAddr, name: &str, password: &str) -> Self {
        let authorization = STANDARD.encode(format!("{name}:{password}"));
        Self {
            authorization: format!("Authorization: Basic {authorization}\r\n"),
            ..Self::anonymous(address)
        }
    }

    /// The same for a client that does not say who it is.
    ///
    /// # Panics
    /// If there is no server.
    #[must_use]
    pub fn anonymous(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(ANSWER_MAX)).unwrap();
        Self { stream, authorization: String::new(), received: Vec::new(), body: Vec::new() }
    }

    /// The body of the answer, which must be a success.
    ///
    /// # Panics
    /// If it is not one.
    pub fn request(&mut self, method: &str, path: &str, body: &str) -> &str {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: bench\r\n{}\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.authorization,
            body.len()
        );
        self.stream.write_all(request.as_bytes()).unwrap();
        self.received.clear();
        self.body.clear();
        let head = self.take_through(b"\r\n\r\n");
        let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
        let header = |name: &str| head.lines().find_map(|line| line.strip_prefix(name));
        if let Some(length) = header("content-length: ") {
            self.take(length.parse().unwrap());
        } else if header("transfer-encoding: chunked").is_some() {
            self.take_chunks();
        }
        let body = std::str::from_utf8(&self.body).unwrap();
        assert!(head.starts_with("http/1.1 20"), "{method} {path}: {head}{body}");
        body
    }

    fn receive(&mut self) {
        let mut part = [0; 16 << 10];
        let read = loop {
            match self.stream.read(&mut part) {
                // Stopping the process and letting it continue interrupts what it waits for.
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => break read.unwrap(),
            }
        };
        assert!(
            read > 0,
            "the server closed the connection after {}",
            String::from_utf8_lossy(&self.received)
        );
        self.received.extend_from_slice(&part[..read]);
    }

    /// What is received up to and with `end`.
    fn take_through(&mut self, end: &[u8]) -> Vec<u8> {
        let mut looked_at = 0;
        loop {
            let found = self.received[looked_at..].windows(end.len()).position(|window| window == end);
            if let Some(at) = found {
                return self.received.drain(..looked_at + at + end.len()).collect();
            }
            looked_at = self.received.len().saturating_sub(end.len() - 1);
            self.receive();
        }
    }

    /// This many bytes into the body.
    fn take(&mut self, length: usize) {
        while self.received.len() < length {
            self.receive();
        }
        self.body.extend(self.received.drain(..length));
    }

    /// RFC 9112, 7.1.
    fn take_chunks(&mut self) {
        loop {
            let line = String::from_utf8(self.take_through(b"\r\n")).unwrap();
            let length = usize::from_str_radix(line.trim(), 16).unwrap();
            self.take(length);
            self.take_through(b"\r\n");
            if length == 0 {
                return;
            }
        }
    }
}

/// A user at work until the end: an operation, a think time, the next one. Gives what each operation gave, and how long
/// it took in microseconds.
///
/// The model is open: think times, drawn evenly from half of `think` to one and a half, run from when the operation
/// before was due, and what a slow server makes late counts from when it was due. Without think time the operations
/// follow each other.
pub fn work<T>(
    think: Duration,
    end: &AtomicBool,
    seed: u64,
    mut operation: impl FnMut(u64) -> T,
) -> Vec<(T, f64)> {
    let fraction = |random: u64| (scatter(random) >> 11) as f64 / (1_u64 << 53) as f64;
    let mut random = scatter(seed);
    let mut due = Instant::now() + think.mul_f64(fraction(random));
    let mut done = Vec::new();
    loop {
        random = scatter(random);
        let now = Instant::now();
        // A timer that wakes a user late is not the server's fault.
        let began = if think.is_zero() || due > now {
            sleep(due.saturating_duration_since(now));
            Instant::now()
        } else {
            due
        };
        if end.load(Ordering::Relaxed) {
            return done;
        }
        let given = operation(random);
        done.push((given, began.elapsed().as_secs_f64() * 1e6));
        due = if think.is_zero() { Instant::now() } else { due + think.mul_f64(0.5 + fraction(!random)) };
    }
}

/// This many users at the same time, until `meanwhile` is done. Gives what each of them gave.
///
/// # Panics
/// If one of them does.
pub fn crowd<T: Send, M>(
    users: u64,
    user: impl Fn(u64, &AtomicBool) -> T + Sync,
    meanwhile: impl FnOnce() -> M,
) -> (Vec<T>, M) {
    let end = AtomicBool::new(false);
    thread::scope(|scope| {
        let ended = Ended(&end);
        let (user, end) = (&user, &end);
        let threads: Vec<_> = (0..users).map(|number| scope.spawn(move || user(number, end))).collect();
        let done = meanwhile();
        drop(ended);
        (threads.into_iter().map(|thread| thread.join().unwrap()).collect(), done)
    })
}

/// Ends the users' work, also where a panic passes by.
struct Ended<'a>(&'a AtomicBool);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
