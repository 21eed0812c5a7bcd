//! A mail server that takes each message the second time only, and knows when it came.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

/// Whom it takes nothing for, however often: recipients whose address begins so.
pub const NEVER: &str = "never";

#[derive(Clone)]
pub struct Later {
    pub address: SocketAddr,
    /// When the others were asked for: in milliseconds since 1970.
    asked: Arc<Mutex<HashMap<String, Vec<u64>>>>,
}

impl Later {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let later = Self { address: listener.local_addr().unwrap(), asked: Arc::default() };
        let serving = later.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let later = serving.clone();
                // A server that is killed cuts its connections off.
                std::thread::spawn(move || drop(later.serve(stream)));
            }
        });
        later
    }

    /// The time at which each recipient was asked for again.
    pub fn again_ms(&self) -> HashMap<String, u64> {
        let asked = self.asked.lock().unwrap();
        asked.iter().filter_map(|(to, times)| Some((to.clone(), *times.get(1)?))).collect()
    }

    fn takes(&self, recipient: &str) -> bool {
        if recipient.starts_with(NEVER) {
            return false;
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let now_ms = u64::try_from(now.as_millis()).unwrap();
        let mut asked = self.asked.lock().unwrap();
        let times = asked.entry(recipient.to_owned()).or_default();
        times.push(now_ms);
        times.len() > 1
    }

    fn serve(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let mut reader = BufReader::new(stream.try_clone()?);
        stream.write_all(b"220 later.invalid ESMTP\r\n")?;
        let mut line = String::new();
        let mut taken = false;
        loop {
            line.clear();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let reply: &[u8] = match line.get(..4).unwrap_or_default() {
                "EHLO" => b"250-later.invalid\r\n250 PIPELINING\r\n",
                "RCPT" => {
                    taken = self.takes(line.split(['<', '>']).nth(1).unwrap_or_default());
                    if taken { b"250 2.1.5 ok\r\n" } else { b"451 4.7.1 try again later\r\n" }
                }
                "DATA" if !taken => b"554 5.5.1 for nobody\r\n",
                "DATA" => {
                    stream.write_all(b"354 go on\r\n")?;
                    while line != ".\r\n" {
                        line.clear();
                        if reader.read_line(&mut line)? == 0 {
                            return Ok(());
                        }
                    }
                    b"250 2.0.0 taken\r\n"
                }
                "QUIT" => return stream.write_all(b"221 2.0.0 bye\r\n"),
                _ => b"250 2.0.0 ok\r\n",
            };
            stream.write_all(reply)?;
        }
    }
}
