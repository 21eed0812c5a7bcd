//! What a file is, going by its first bytes and its name.

use std::path::Path;

use super::is_named_mbox;
use super::mbox::begins_mbox;

/// So much of a file is looked at to tell what it is.
pub(super) const SNIFFED_BYTES: u64 = 4 * 1024;

/// Names of files that are messages, whatever they hold.
const MESSAGE_EXTENSIONS: [&str; 4] = ["eml", "txt", "mail", "email"];

/// What to make of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileKind {
    /// One message.
    Message,
    /// Many.
    Mbox,
    /// An mbox if it holds several messages, else one message with a line `From …` before it.
    MessageOrMbox,
    /// Nothing that is mail, for this reason.
    Other(&'static str),
}

pub(super) const EMPTY: &str = "empty";
const NOT_MAIL: &str = "not mail";
const BINARY: &str = "binary, not mail";

/// Kinds of files that may hold mail and are not read: where their mark lies, the mark, what they are, and what to do.
const FOREIGN: [(usize, &[u8], &str, &str); 14] = [
    (
        0,
        b"\x1f\x8b",
        "compressed with gzip",
        "unpack it first, or: zcat FILE | scrinium import mail - --person NAME",
    ),
    (
        0,
        b"BZh",
        "compressed with bzip2",
        "unpack it first, or: bzcat FILE | scrinium import mail - --person NAME",
    ),
    (
        0,
        b"\xfd7zXZ\0",
        "compressed with xz",
        "unpack it first, or: xzcat FILE | scrinium import mail - --person NAME",
    ),
    (
        0,
        b"\x28\xb5\x2f\xfd",
        "compressed with zstd",
        "unpack it first, or: zstdcat FILE | scrinium import mail - --person NAME",
    ),
    (0, b"PK\x03\x04", "a zip archive", "unpack it into a folder first: unzip FILE -d FOLDER"),
    (0, b"PK\x05\x06", "a zip archive", "there is nothing in it"),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive", "unpack it into a folder first: 7z x FILE -oFOLDER"),
    (0, b"Rar!", "a RAR archive", "unpack it into a folder first"),
    (257, b"ustar", "a tar archive", "unpack it into a folder first: tar -xf FILE -C FOLDER"),
    (0, b"!BDN", "an Outlook data file (.pst, .ost)", "export it first: readpst -o FOLDER FILE"),
    (
        0,
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        "an Outlook message (.msg) or an Office document",
        "save it as .eml first",
    ),
    (
        0,
        b"\xcf\xad\x12\xfe",
        "a folder of Outlook Express (.dbx)",
        "export it first: readdbx < FILE > FOLDER.mbox",
    ),
    (0, b"SQLite format 3\0", "an SQLite database", "export the mail with the program that keeps it"),
    (0, b"%PDF-", "a PDF document", "there is no mail in it"),
];

/// What a file is that holds something else than mail, and what to do with it.
pub(super) fn foreign(beginning: &[u8]) -> Option<(&'static str, &'static str)> {
    let is = |at: usize, mark: &[u8]| beginning.get(at..).is_some_and(|bytes| bytes.starts_with(mark));
    FOREIGN.iter().find(|(at, mark, _, _)| is(*at, mark)).map(|(_, _, what, advice)| (*what, *advice))
}

/// Whether bytes are no text of any kind: they begin with nothing that mail begins with, and hold a zero.
pub(super) fn is_noise(beginning: &[u8]) -> bool {
    beginning.contains(&0) && !begins_like_mail(beginning)
}

/// What a file is that lies in a folder of mail. `has_index` says that Thunderbird keeps an index of it.
pub(super) fn of_file(path: &Path, beginning: &[u8], has_index: bool) -> FileKind {
    if beginning.is_empty() {
        return FileKind::Other(EMPTY);
    }
    if let Some((what, _)) = foreign(beginning) {
        return FileKind::Other(what);
    }
    if is_noise(beginning) {
        return FileKind::Other(BINARY);
    }
    if is_named_mbox(path) {
        return FileKind::Mbox;
    }
    if begins_mbox(beginning) {
        return if has_index { FileKind::Mbox } else { kind_of_mbox(path) };
    }
    if is_named_message(path) || begins_like_mail(beginning) {
        return FileKind::Message;
    }
    FileKind::Other(NOT_MAIL)
}

/// A file that begins with a separator: some programs put one before each message that they write into a file of its own.
fn kind_of_mbox(path: &Path) -> FileKind {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let ends_in = |ending: &str| path.extension().is_some_and(|found| found.eq_ignore_ascii_case(ending));
    if ends_in("txt") || name.bytes().all(|byte| byte.is_ascii_digit()) {
        return FileKind::MessageOrMbox;
    }
    // Names of messages begin with a number and a dot: `00001.7c53336b37003a9286aba55d2945844c`.
    let digits = name.bytes().take_while(u8::is_ascii_digit).count();
    let is_numbered = digits > 0 && name.get(digits..).is_some_and(|rest| rest.starts_with(['.', '_']));
    if is_numbered || is_named_message(path) { FileKind::Message } else { FileKind::Mbox }
}

pub(super) fn is_named_message(path: &Path) -> bool {
    let is_known =
        |found: &std::ffi::OsStr| MESSAGE_EXTENSIONS.iter().any(|known| found.eq_ignore_ascii_case(known));
    path.extension().is_some_and(is_known)
}

/// Whether text begins with a header field or an mbox line.
fn begins_like_mail(beginning: &[u8]) -> bool {
    let beginning = beginning.strip_prefix(b"\xef\xbb\xbf").unwrap_or(beginning).trim_ascii_start();
    let line = beginning.split(|&byte| byte == b'\n').next().unwrap_or_default();
    if line.starts_with(b"From ") {
        return begins_mbox(beginning);
    }
    let Some(colon) = line.iter().position(|&byte| byte == b':') else { return false };
    let name = line.get(..colon).unwrap_or_default();
    let is_name = !name.is_empty() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-');
    is_name && line.get(colon + 1).is_none_or(u8::is_ascii_whitespace)
}

/// Why a file that mail programs keep next to their folders is passed over: by its name.
pub(super) fn of_program(name: &str) -> Option<&'static str> {
    const INDEX: &str = "index or settings of a mail program";
    let lower = name.to_ascii_lowercase();
    let is_index = lower.ends_with(".msf")
        || lower.ends_with(".dat")
        || lower.ends_with(".cmeta")
        || [
            "dovecot",
            "courier",
            "maildirfolder",
            "maildirsize",
            ".mh_sequences",
            ".uidvalidity",
            ".mbsyncstate",
        ]
        .iter()
        .any(|beginning| lower.starts_with(beginning))
        || matches!(
            lower.as_str(),
            "subscriptions" | "filterlog.html" | ".subscriptions" | ".ds_store" | ".xmhcache"
        );
    is_index.then_some(INDEX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_by_their_bytes_and_names() {
        let kind = |name: &str, bytes: &[u8]| of_file(Path::new(name), bytes, false);
        let separator = b"From - Mon Mar 02 10:00:00 2020\nSubject: x\n";
        assert_eq!(kind("Sent", separator), FileKind::Mbox);
        assert_eq!(
            kind("2020-March.txt", b"From ann at example.org  Mon Mar  2 10:00:00 2020\nFrom: ann\n"),
            FileKind::MessageOrMbox
        );
        assert_eq!(kind("00001.7c53336b37003a92", separator), FileKind::Message);
        assert_eq!(kind("one.eml", separator), FileKind::Message);
        assert_eq!(kind("Letters", b"From the President\n\nDear all\n"), FileKind::Other(NOT_MAIL));
        assert_eq!(kind("12", b"Received: x\n"), FileKind::Message);
        assert_eq!(kind("a.mbox", b""), FileKind::Other(EMPTY));
        assert_eq!(kind("a.mbox", b"\x1f\x8b\x08"), FileKind::Other("compressed with gzip"));
        assert_eq!(kind("a.eml", b"\x7fELF\0\0\0"), FileKind::Other(BINARY));
        assert_eq!(kind("notes.md", b"# Notes\n"), FileKind::Other(NOT_MAIL));
        let mut tar = vec![b'a'; 257];
        tar.extend(b"ustar\0");
        assert!(foreign(&tar).is_some_and(|(_, advice)| advice.contains("tar -xf")));
    }
}
