//! A server that says what a test sets, whatever it hears.
#![allow(dead_code, unreachable_pub, reason = "each test uses another part of it")]
#![allow(clippy::unwrap_used, reason = "a test may fall over")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use scrinium_lab::driver::{Driver, HttpOptions, Person, TargetOptions, Targets, TargetsSession};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// One thing that the server does.
#[derive(Clone, Debug)]
pub enum Step {
    /// Waits until it has heard this.
    Hear(&'static str),
    Say(Vec<u8>),
    /// Byte by byte.
    SaySlowly(Vec<u8>),
    /// Says nothing more, and stays.
    Stay,
}

pub use Step::{Hear, Stay};

pub fn say(text: &str) -> Step {
    Step::Say(text.as_bytes().to_vec())
}

/// A server of one connection; afterwards it closes.
pub struct Scripted {
    pub port: u16,
    heard: Arc<Mutex<Vec<u8>>>,
}

impl Scripted {
    pub async fn start(steps: Vec<Step>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&heard);
        tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            play(stream, steps, &kept).await;
        });
        Self { port, heard }
    }

    pub fn heard(&self) -> String {
        String::from_utf8_lossy(&self.heard.lock()).into_owned()
    }
}

async fn play(mut stream: TcpStream, steps: Vec<Step>, kept: &Mutex<Vec<u8>>) {
    let mut waiting: Vec<u8> = Vec::new();
    for step in steps {
        match step {
            Hear(words) => loop {
                let found = waiting.windows(words.len()).position(|window| window == words.as_bytes());
                if let Some(at) = found {
                    waiting.drain(..at + words.len());
                    break;
                }
                let mut buffer = [0; 4096];
                let Ok(read @ 1..) = stream.read(&mut buffer).await else { return };
                let bytes = buffer.iter().take(read);
                waiting.extend(bytes.clone());
                kept.lock().extend(bytes);
            },
            Step::Say(bytes) => {
                if stream.write_all(&bytes).await.is_err() {
                    return;
                }
            }
            Step::SaySlowly(bytes) => {
                stream.set_nodelay(true).unwrap();
                for byte in bytes {
                    if stream.write_all(&[byte]).await.is_err() {
                        return;
                    }
                    tokio::task::yield_now().await;
                }
            }
            Stay => tokio::time::sleep(Duration::from_secs(3600)).await,
        }
    }
}

/// The connections of user0002 to a server of this address.
pub fn session(target: String, time_out: Duration, authority: Option<&Path>) -> TargetsSession {
    let http = HttpOptions { user_password: "word".to_owned(), time_out, ..HttpOptions::new(String::new()) };
    let targets = Targets::new(&TargetOptions {
        targets: vec![target],
        http,
        domain: "lab.invalid".to_owned(),
        login_name: "{user}".to_owned(),
        authority: authority.map(Path::to_owned),
        check_deliveries: None,
        users: 3,
        recipients: 2,
        delivery_wait: time_out,
    });
    targets.unwrap().session(&Person {
        number: 2,
        name: "user0002".to_owned(),
        full_name: "Lab User 2".to_owned(),
        mail_database: "mail/user0002".to_owned(),
    })
}
