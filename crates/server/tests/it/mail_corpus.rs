//! Real messages that were sent by others, handed in by SMTP: what HTTP gives is what came, byte for byte.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::mail_ports::MailServer;

/// The number that is sent in the usual run; all of them where `SCRINIUM_TIMES` is set, as by `make torture`.
const USUAL: usize = 300;

/// Longer lines are refused, and so is a text with more than a hundred traces.
const LINE_BYTES: usize = 64 << 10;

struct Sender(BufReader<TcpStream>);

impl Sender {
    fn open(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut sender = Self(BufReader::new(stream));
        assert!(sender.reply().starts_with("220"));
        sender.0.get_mut().write_all(b"EHLO far.example\r\n").unwrap();
        assert!(sender.reply().starts_with("250"));
        sender
    }

    fn reply(&mut self) -> String {
        loop {
            let mut line = String::new();
            self.0.read_line(&mut line).unwrap();
            if line.as_bytes().get(3) != Some(&b'-') {
                return line;
            }
        }
    }

    /// The reply to the text. Every second one goes in chunks.
    fn send(&mut self, number: usize, text: &[u8]) -> String {
        let envelope = format!("MAIL FROM:<from{number}@far.example>\r\nRCPT TO:<bob@acme.example>\r\n");
        let stream = self.0.get_mut();
        stream.write_all(envelope.as_bytes()).unwrap();
        if number.is_multiple_of(2) {
            stream.write_all(format!("BDAT {} LAST\r\n", text.len()).as_bytes()).unwrap();
            stream.write_all(text).unwrap();
        } else {
            stream.write_all(b"DATA\r\n").unwrap();
        }
        assert!(self.reply().starts_with("250") && self.reply().starts_with("250"));
        if !number.is_multiple_of(2) {
            assert!(self.reply().starts_with("354"));
            self.0.get_mut().write_all(&stuffed(text)).unwrap();
        }
        self.reply()
    }
}

/// A text as it goes by DATA (RFC 5321 §4.5.2).
fn stuffed(text: &[u8]) -> Vec<u8> {
    let mut stuffed = Vec::with_capacity(text.len() + 100);
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        if line.starts_with(b".") {
            stuffed.push(b'.');
        }
        stuffed.extend_from_slice(line);
    }
    stuffed.extend_from_slice(b".\r\n");
    stuffed
}

/// As a server sends it: every line ends by CR LF, also the last.
fn for_the_way(kept: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(kept.len() + kept.len() / 32);
    let mut rest = kept;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'\r' => {
                text.extend_from_slice(b"\r\n");
                rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            }
            b'\n' => text.extend_from_slice(b"\r\n"),
            other => text.push(other),
        }
    }
    if !text.ends_with(b"\r\n") {
        text.extend_from_slice(b"\r\n");
    }
    text
}

fn is_taken(text: &[u8]) -> bool {
    let is_short = |line: &[u8]| line.len() <= LINE_BYTES;
    let lines = || text.split(|byte| *byte == b'\n');
    let traces = lines()
        .take_while(|line| **line != b"\r"[..])
        .filter(|line| line.to_ascii_lowercase().starts_with(b"received:"));
    lines().all(is_short) && traces.count() <= 100
}

#[test]
fn real_messages_sent_in_come_out_of_http_byte_for_byte() {
    let files = files();
    if files.is_empty() {
        return scrinium_fault::skip(
            "no real messages are here: scripts/corpus and scripts/corpora fetch them",
        );
    }
    let is_long = std::env::var_os("SCRINIUM_TIMES").is_some();
    let step = if is_long { 1 } else { files.len().div_ceil(USUAL) };
    let folder = tempfile::tempdir().unwrap();
    let mail = MailServer::start(folder.path());
    let port = mail.port("smtp");
    let mut sender = Sender::open(port);
    let mut sent: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for (number, path) in files.iter().step_by(step).enumerate() {
        let text = for_the_way(&std::fs::read(path).unwrap());
        if number > 0 && number.is_multiple_of(500) {
            sender = Sender::open(port);
        }
        let reply = sender.send(number, &text);
        assert_eq!(reply.starts_with("250"), is_taken(&text), "{}: {reply}", path.display());
        if reply.starts_with("250") {
            sent.insert(format!("from{number}@far.example"), text);
        } else {
            sender = Sender::open(port);
        }
    }
    let found = mail.sources_of_bob(sent.len());
    assert_eq!(found.len(), sent.len());
    for (id, return_path) in found {
        let expected = sent.remove(&return_path).unwrap_or_else(|| panic!("{return_path} came twice"));
        let answer = mail.server.client().get(&format!("/mail%2Fbob/{id}/message.eml")).unwrap().expect(200);
        let trace = format!("Return-Path: <{return_path}>\r\nReceived: from far.example");
        assert!(answer.body.starts_with(trace.as_bytes()), "{return_path}");
        assert!(answer.body.ends_with(&expected), "{return_path}: not what was sent");
        let before = &answer.body[..answer.body.len() - expected.len()];
        // One field of the server's own, with two lines more.
        assert_eq!(
            before.split(|byte| *byte == b'\n').filter(|line| line.starts_with(b"Received:")).count(),
            1
        );
    }
    assert!(sent.is_empty(), "{:?} did not come", sent.keys());
}

/// The messages that scripts/corpus and scripts/corpora have brought, in the order of their paths.
fn files() -> Vec<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let cache = variable("SCRINIUM_CACHE")
        .or_else(|| variable("XDG_CACHE_HOME").map(|cache| cache.join("scrinium")))
        .or_else(|| variable("HOME").map(|home| home.join(".cache/scrinium")))
        .unwrap_or_default();
    let real = variable("SCRINIUM_CORPUS").unwrap_or_else(|| cache.join("corpus/spam-assassin-0.2.3/data"));
    let mut files = Vec::new();
    for folder in [cache.join("corpus/messages-1"), real] {
        add(&folder, &mut files);
    }
    files.sort();
    files
}

fn add(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { add(&path, files) } else { files.push(path) }
    }
}
