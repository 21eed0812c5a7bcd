//! A name server with the records that a test says.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::{Arc, Mutex};

/// Names and types, each with its values as a zone file has them.
pub type Zone = HashMap<(String, &'static str), Vec<String>>;

/// It answers for as long as the tests run; what it has can be changed meanwhile.
pub struct NameServer {
    pub address: SocketAddr,
    zone: Arc<Mutex<Zone>>,
}

impl NameServer {
    pub fn start() -> Self {
        let (socket, listener) = std::iter::repeat_with(|| {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            let listener = TcpListener::bind(socket.local_addr().unwrap());
            listener.ok().map(|listener| (socket, listener))
        })
        .take(100)
        .flatten()
        .next()
        .unwrap();
        let address = socket.local_addr().unwrap();
        let zone = Arc::new(Mutex::new(Zone::new()));
        let known = Arc::clone(&zone);
        std::thread::spawn(move || {
            let mut question = [0; 1500];
            while let Ok((length, peer)) = socket.recv_from(&mut question) {
                if let Some(answer) = answer(&question[..length], &known.lock().unwrap()) {
                    drop(socket.send_to(&answer, peer));
                }
            }
        });
        let known = Arc::clone(&zone);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let known = Arc::clone(&known);
                std::thread::spawn(move || drop(converse(stream, &known)));
            }
        });
        Self { address, zone }
    }

    /// Puts these values in the place of those that a name has.
    pub fn set(&self, name: &str, kind: &'static str, values: &[&str]) {
        let values = values.iter().map(|value| (*value).to_owned()).collect();
        self.zone.lock().unwrap().insert((name.to_lowercase(), kind), values);
    }
}

/// Questions over one connection (RFC 7766 §8).
fn converse(mut stream: TcpStream, zone: &Mutex<Zone>) -> std::io::Result<()> {
    loop {
        let mut length = [0; 2];
        stream.read_exact(&mut length)?;
        let mut question = vec![0; usize::from(u16::from_be_bytes(length))];
        stream.read_exact(&mut question)?;
        let Some(answer) = answer(&question, &zone.lock().unwrap()) else { return Ok(()) };
        let length = u16::try_from(answer.len()).unwrap().to_be_bytes();
        stream.write_all(&[&length[..], &answer].concat())?;
    }
}

/// RFC 1035 §4.1, for one question; of what is not there it says that there is no such name.
fn answer(question: &[u8], zone: &Zone) -> Option<Vec<u8>> {
    let (name, end) = name_at(question, 12)?;
    let kind = match u16::from_be_bytes([question[end], question[end + 1]]) {
        1 => "A",
        15 => "MX",
        16 => "TXT",
        28 => "AAAA",
        33 => "SRV",
        _ => "other",
    };
    let values = zone.get(&(name.clone(), kind));
    let is_there = zone.keys().any(|(known, _)| *known == name);
    let count = u16::try_from(values.map_or(0, Vec::len)).unwrap();
    let mut answer = question[..2].to_vec();
    answer.extend([0x81, if is_there { 0x80 } else { 0x83 }, 0, 1]);
    answer.extend(count.to_be_bytes());
    answer.extend([0, 0, 0, 0]);
    answer.extend(&question[12..end + 4]);
    for value in values.into_iter().flatten() {
        let data = data(kind, value);
        answer.extend([0xc0, 12]);
        answer.extend(&question[end..end + 4]);
        answer.extend(60_u32.to_be_bytes());
        answer.extend(u16::try_from(data.len()).unwrap().to_be_bytes());
        answer.extend(data);
    }
    Some(answer)
}

fn name_at(bytes: &[u8], mut at: usize) -> Option<(String, usize)> {
    let mut labels = Vec::new();
    loop {
        let length = usize::from(*bytes.get(at)?);
        at += 1;
        if length == 0 {
            return Some((labels.join("."), at));
        }
        labels.push(String::from_utf8_lossy(bytes.get(at..at + length)?).to_lowercase());
        at += length;
    }
}

fn data(kind: &str, value: &str) -> Vec<u8> {
    let name = |text: &str| {
        let labels = text.split('.').filter(|label| !label.is_empty());
        let mut bytes: Vec<u8> = labels
            .flat_map(|label| [&[u8::try_from(label.len()).unwrap()], label.as_bytes()].concat())
            .collect();
        bytes.push(0);
        bytes
    };
    let mut words = value.split(' ');
    let mut numbers = |count: usize| {
        let next = words.by_ref().take(count).flat_map(|word| word.parse::<u16>().unwrap().to_be_bytes());
        next.collect::<Vec<u8>>()
    };
    match kind {
        "A" => value.split('.').map(|part| part.parse().unwrap()).collect(),
        "MX" => [numbers(1), name(words.next().unwrap())].concat(),
        "SRV" => [numbers(3), name(words.next().unwrap())].concat(),
        _ => value
            .as_bytes()
            .chunks(255)
            .flat_map(|part| [&[u8::try_from(part.len()).unwrap()], part].concat())
            .collect(),
    }
}
