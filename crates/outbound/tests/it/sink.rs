//! The outside world: a name server, and mail servers that behave as the test says.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hickory_resolver::proto::op::{Message, MessageType, ResponseCode};
use hickory_resolver::proto::rr::rdata::{A, MX, PTR, TXT};
use hickory_resolver::proto::rr::{Name, RData, Record, RecordType};
use parking_lot::Mutex;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream, UdpSocket};

/// What a name has.
#[derive(Clone, Default)]
pub struct Zone {
    pub mx: Vec<(u16, &'static str)>,
    pub a: Vec<&'static str>,
    /// Texts, each of its strings.
    pub txt: Vec<Vec<&'static str>>,
    pub ptr: Vec<&'static str>,
    /// SERVFAIL.
    pub fails: bool,
}

/// A name server with these names; all others do not exist.
pub async fn name_server(zones: &[(&str, Zone)]) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    let zones: HashMap<String, Zone> =
        zones.iter().map(|(name, zone)| (format!("{name}."), zone.clone())).collect();
    tokio::spawn(async move {
        let mut buffer = [0; 4096];
        while let Ok((length, peer)) = socket.recv_from(&mut buffer).await {
            let Ok(question) = Message::from_vec(&buffer[..length]) else { continue };
            let answer = answer(&question, &zones);
            drop(socket.send_to(&answer.to_vec().unwrap(), peer).await);
        }
    });
    address
}

fn answer(question: &Message, zones: &HashMap<String, Zone>) -> Message {
    let query = question.queries[0].clone();
    let mut answer = Message::new(question.metadata.id, MessageType::Response, question.metadata.op_code);
    answer.add_query(query.clone());
    let name = query.name().to_ascii().to_lowercase();
    let Some(zone) = zones.get(&name) else {
        answer.metadata.response_code = ResponseCode::NXDomain;
        return answer;
    };
    if zone.fails {
        answer.metadata.response_code = ResponseCode::ServFail;
        return answer;
    }
    let mut add = |data: RData| {
        answer.add_answer(Record::from_rdata(query.name().clone(), 60, data));
    };
    match query.query_type() {
        RecordType::MX => zone.mx.iter().for_each(|(preference, host)| {
            let host =
                if host.is_empty() { Name::root() } else { Name::from_ascii(format!("{host}.")).unwrap() };
            add(RData::MX(MX::new(*preference, host)));
        }),
        RecordType::TXT => zone.txt.iter().for_each(|strings| {
            add(RData::TXT(TXT::new(strings.iter().map(ToString::to_string).collect())));
        }),
        RecordType::PTR => zone.ptr.iter().for_each(|name| {
            add(RData::PTR(PTR(Name::from_ascii(format!("{name}.")).unwrap())));
        }),
        RecordType::A => zone.a.iter().for_each(|address| add(RData::A(A(address.parse().unwrap())))),
        _ => {}
    }
    answer
}

/// How a mail server behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    Friendly,
    /// 550 to each recipient.
    Refuses,
    /// 451 to each recipient.
    Defers,
    /// Says nothing.
    Hangs,
    /// Says its greeting a byte at a time, for ever.
    Dribbles,
    /// Bytes that are no SMTP.
    Garbage,
    /// Offers what it does not do, and answers with numbers that do not fit.
    Lies,
    /// Takes the message, and closes before it answers.
    LosesAnswer,
    /// 421 at once.
    Busy,
    /// Refuses the recipient with control characters and much text.
    Writes,
}

/// A message that was taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Received {
    pub from: String,
    pub to: Vec<String>,
    pub text: String,
}

#[derive(Default)]
pub struct Log {
    pub messages: Vec<Received>,
    pub connections: usize,
    pub open: usize,
    pub most_open: usize,
    /// Times that somebody came to a final dot.
    pub dots: usize,
}

/// A mail server.
#[derive(Clone)]
pub struct Sink {
    pub address: SocketAddr,
    pub log: Arc<Mutex<Log>>,
    pub manner: Arc<Mutex<Manner>>,
}

impl Sink {
    pub async fn start(host: &str, port: u16, manner: Manner) -> Self {
        let listener = TcpListener::bind((host.parse::<IpAddr>().unwrap(), port)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let sink = Self { address, log: Arc::default(), manner: Arc::new(Mutex::new(manner)) };
        let served = sink.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let sink = served.clone();
                tokio::spawn(async move {
                    {
                        let mut log = sink.log.lock();
                        log.connections += 1;
                        log.open += 1;
                        log.most_open = log.most_open.max(log.open);
                    }
                    drop(sink.serve(stream).await);
                    sink.log.lock().open -= 1;
                });
            }
        });
        sink
    }

    pub fn messages(&self) -> Vec<Received> {
        self.log.lock().messages.clone()
    }

    async fn serve(&self, stream: TcpStream) -> std::io::Result<()> {
        let manner = *self.manner.lock();
        let mut stream = BufReader::new(stream);
        match manner {
            Manner::Hangs => {
                let mut rest = Vec::new();
                drop(stream.read_to_end(&mut rest).await);
                return Ok(());
            }
            Manner::Dribbles => loop {
                stream.write_all(b"2").await?;
                tokio::time::sleep(Duration::from_millis(20)).await;
            },
            Manner::Garbage => {
                stream.write_all(&[0xff; 9000]).await?;
                return Ok(());
            }
            Manner::Busy => return stream.write_all(b"421 4.3.2 come back later\r\n").await,
            _ => stream.write_all(b"220 sink ESMTP\r\n").await?,
        }
        let mut message = Received::default();
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).await? == 0 {
                return Ok(());
            }
            let line = line.trim_end();
            let word = line.split(' ').next().unwrap_or_default().to_ascii_uppercase();
            let reply: &[u8] = match (word.as_str(), manner) {
                ("EHLO", Manner::Lies) => {
                    b"250-sink\r\n250-SIZE 99999999999999999999\r\n250-STARTTLS\r\n250-CHUNKING\r\n250-AUTH\r\n250-LIMITS RCPTMAX=0\r\n250 PIPELINING\r\n"
                }
                ("STARTTLS", Manner::Lies) => b"220 go on\r\n",
                ("EHLO", _) => b"250-sink\r\n250-PIPELINING\r\n250-8BITMIME\r\n250-DSN\r\n250 ENHANCEDSTATUSCODES\r\n",
                ("MAIL", _) => {
                    message = Received { from: path_of(line), ..Received::default() };
                    b"250 2.1.0 ok\r\n"
                }
                ("RCPT", Manner::Refuses) => b"550 5.1.1 no such user\r\n",
                ("RCPT", Manner::Defers) => b"451 4.7.1 greylisted, try again\r\n",
                ("RCPT", Manner::Writes) => {
                    let evil = format!("550-5.1.1 \x1b[2Jred\x07\r\n550 5.1.1 {}\r\n", "long ".repeat(300));
                    stream.write_all(evil.as_bytes()).await?;
                    continue;
                }
                ("RCPT", _) => {
                    message.to.push(path_of(line));
                    b"250 2.1.5 ok\r\n"
                }
                ("DATA", _) if message.to.is_empty() => b"554 5.5.1 no valid recipients\r\n",
                ("DATA", _) => {
                    stream.write_all(b"354 go on\r\n").await?;
                    message.text = text_of(&mut stream).await?;
                    let mut log = self.log.lock();
                    log.dots += 1;
                    if manner == Manner::LosesAnswer {
                        return Ok(());
                    }
                    log.messages.push(std::mem::take(&mut message));
                    b"250 2.0.0 queued\r\n"
                }
                ("QUIT", _) => {
                    stream.write_all(b"221 2.0.0 bye\r\n").await?;
                    return Ok(());
                }
                (_, Manner::Lies) => b"299 what\r\n",
                _ => b"250 2.0.0 ok\r\n",
            };
            stream.write_all(reply).await?;
        }
    }
}

fn path_of(line: &str) -> String {
    let start = line.find('<').map_or(0, |at| at + 1);
    line[start..].split('>').next().unwrap_or_default().to_owned()
}

async fn text_of(stream: &mut BufReader<TcpStream>) -> std::io::Result<String> {
    let mut text = String::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        if line == ".\r\n" {
            return Ok(text);
        }
        text.push_str(line.strip_prefix('.').unwrap_or(&line));
    }
}
