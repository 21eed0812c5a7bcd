//! The bytes on disk are those that `FORMAT.md` describes, and stay readable.

use std::fmt::Write;
use std::path::Path;

use crate::common::{Disk, open, read_all};
use bytes::Bytes;
use scrinium_log::Sequence;

/// Every format that was ever written; the last is written now.
const GOLDEN: [&str; 2] = ["tests/golden/format-1.txt", "tests/golden/format-2.txt"];
const ROW: usize = 16;

/// Two extents with a large and some small frames, closed in order.
fn sample(disk: &Disk) -> Vec<Bytes> {
    let (mut log, _) = open(disk).unwrap();
    let groups = [
        vec![Bytes::from_static(b"one"), Bytes::new(), Bytes::from_static(b"three, with five")],
        vec![Bytes::from(vec![0xee; 8000])],
        vec![b"the next extent ".repeat(350).into()],
        vec![Bytes::from_static(b"last")],
    ];
    for group in &groups {
        log.append(group).unwrap();
    }
    log.close().unwrap();
    groups.concat()
}

/// Every row of 16 bytes that is not all zero; equal rows that follow each other are printed once.
fn print(disk: &Disk) -> String {
    let mut text = String::new();
    for name in disk.names() {
        let content = disk.read(&name);
        writeln!(text, "{name} {}", content.len()).unwrap();
        let mut repeated: &[u8] = &[0; ROW];
        for (index, row) in content.chunks(ROW).enumerate() {
            if row != repeated {
                let hex: Vec<String> = row.iter().map(|byte| format!("{byte:02x}")).collect();
                writeln!(text, "{:06x} {}", index * ROW, hex.join(" ")).unwrap();
                repeated = row;
            }
        }
    }
    text
}

fn parse(text: &str) -> Disk {
    let disk = Disk::new();
    let mut lines = text.lines().peekable();
    while let Some((name, length)) = lines.next().and_then(|line| line.split_once(' ')) {
        let mut content = vec![0; length.parse().unwrap()];
        while let Some(line) = lines.next_if(|line| line.as_bytes()[6] == b' ' && !line.contains('.')) {
            let mut words = line.split(' ').map(|word| usize::from_str_radix(word, 16).unwrap());
            let start = words.next().unwrap();
            let row: Vec<u8> = words.map(|byte| byte as u8).collect();
            for target in content[start..].chunks_mut(ROW) {
                target.copy_from_slice(&row);
            }
        }
        disk.write(name, content);
    }
    disk
}

#[test]
fn the_format_is_the_golden_one() {
    let disk = Disk::new();
    sample(&disk);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(GOLDEN[1]);
    if std::env::var_os("SCRINIUM_WRITE_GOLDEN").is_some() {
        std::fs::write(&path, print(&disk)).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap();
    assert!(print(&disk) == golden, "the bytes differ from {}: a new format needs a new number", GOLDEN[1]);
}

#[test]
fn every_golden_log_is_readable_and_can_be_written_on() {
    for golden in GOLDEN {
        let golden = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(golden)).unwrap();
        let disk = parse(&golden);
        let expected: Vec<(u64, Bytes)> = (1..).zip(sample(&Disk::new())).collect();
        let (mut log, recovery) = open(&disk).unwrap();
        assert_eq!((recovery.first.0, recovery.next.0, recovery.cut), (1, 7, None));
        assert!(read_all(&log, Sequence(1)).unwrap() == expected);
        assert_eq!(log.append(&[Bytes::from_static(b"more")]).unwrap(), Sequence(7));
        assert!(read_all(&log, Sequence(5)).unwrap()[..2] == expected[4..]);
        drop(log);
        let (log, recovery) = open(&disk).unwrap();
        assert_eq!(recovery.next.0, 8);
        assert!(read_all(&log, Sequence(7)).unwrap() == [(7, Bytes::from_static(b"more"))]);
        // What was written before this release would not be understood by the one that wrote it.
        assert_eq!(disk.read("log.control")[8], 2);
    }
}
