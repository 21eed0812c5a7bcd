//! Mail in and out of servers, for benchmarks: messages, those who send them, Scrinium, and Debian's Postfix and Dovecot.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::cast_precision_loss,
    reason = "each benchmark uses another part of it, and stops at the first error"
)]

pub mod imap;
pub mod later;
pub mod ours;
pub mod peers;
pub mod sender;

use std::net::TcpListener;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use scrinium_bench::scatter;

/// Everybody's address ends so.
pub const DOMAIN: &str = "bench.invalid";

/// Messages go to this number of people in turn.
pub const PEOPLE: u64 = 100;

/// All that was sent is delivered within this time.
const DELIVERED_WITHIN: Duration = Duration::from_secs(300);

/// A person by number.
pub fn person(number: u64) -> String {
    format!("u{}", number % PEOPLE)
}

/// A port that nobody listens on.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Lets this process have this number of files open, if the system does.
pub fn raise_files(wanted: u64) {
    let limit = getrlimit(Resource::Nofile);
    let maximum = limit.maximum.map(|maximum| maximum.max(wanted));
    let current = Some(wanted.min(maximum.unwrap_or(wanted)));
    setrlimit(Resource::Nofile, Rlimit { current, maximum: limit.maximum }).unwrap();
}

/// A message of about this many bytes, like no other.
pub fn message(number: u64, bytes: usize) -> Vec<u8> {
    let id = scatter(number ^ u64::from(std::process::id()) << 32);
    let mut text = format!(
        "Received: from elsewhere.example ([192.0.2.1]) by relay.example with ESMTPS id {id:x};\r\n\
         \tThu, 26 Nov 2026 09:20:51 +0000\r\nFrom: Eve Sender <eve@elsewhere.example>\r\nTo: {}@{DOMAIN}\r\n\
         Subject: message {number} of a benchmark\r\nDate: Thu, 26 Nov 2026 09:20:51 +0000\r\n\
         Message-ID: <{id:x}.{number}@elsewhere.example>\r\nMIME-Version: 1.0\r\n\
         Content-Type: text/plain; charset=utf-8\r\n\r\n",
        person(number)
    );
    let mut word = id;
    while text.len() < bytes {
        for _ in 0..10 {
            word = scatter(word);
            text.push_str(&format!("{:x} ", word & 0xff_ffff));
        }
        text.push_str("\r\n");
    }
    text.into_bytes()
}

/// Waits until `delivered` has reached `wanted`; gives how long it took from `began`.
pub fn until_delivered(began: Instant, wanted: u64, mut delivered: impl FnMut() -> u64) -> Duration {
    loop {
        let count = delivered();
        if count >= wanted {
            return began.elapsed();
        }
        assert!(began.elapsed() < DELIVERED_WITHIN, "{count} of {wanted} messages were delivered");
        std::thread::sleep(Duration::from_millis(10));
    }
}
