//! What Dovecot says of the same messages. A few of our own are here, broken ones among them, with the answers that Dovecot 2.3.19 gave. All messages of a
//! folder are compared where `SCRINIUM_MESSAGES` names it and `SCRINIUM_DOVECOT` a file with the answers to
//! `FETCH 1:* (RFC822.SIZE ENVELOPE BODYSTRUCTURE)`, in the order of the files' names.

use std::collections::BTreeMap;

use scrinium_imap_wire::{
    BodyStructure, Decision, Envelope, FetchItem, FrameLimits, FrameReader, FrameStep, NameEncoding,
    Response, SinglePart, Speaker, ValueLimits,
};
use scrinium_mailbox::MapBuilder;

/// A size, an envelope and a structure.
type Described = (u64, Envelope, BodyStructure);

fn answers(bytes: &[u8]) -> Vec<Described> {
    let limits = FrameLimits { bytes: 1 << 24, literals: 1 << 16, bare_line_feed: false };
    let mut reader = FrameReader::new(limits, Speaker::Server);
    let (mut rest, mut found) = (bytes, Vec::new());
    while !rest.is_empty() {
        let (taken, step) = reader.read(rest).unwrap();
        rest = &rest[taken..];
        match step {
            FrameStep::Announced(_) => assert_eq!(reader.decide(Decision::Keep), Ok(None)),
            FrameStep::Frame(parts) => {
                let response = Response::parse(&parts, NameEncoding::Utf8, ValueLimits::default());
                if let Ok(Response::Fetch { items, .. }) = response {
                    found.push(described(items));
                }
            }
            _ => {}
        }
    }
    found
}

fn described(items: Vec<FetchItem>) -> Described {
    let (mut size, mut envelope, mut structure) = (0, None, None);
    for item in items {
        match item {
            FetchItem::Size(bytes) => size = bytes,
            FetchItem::Envelope(found) => envelope = Some(*found),
            FetchItem::BodyStructure(found) => structure = Some(*found),
            _ => {}
        }
    }
    (size, envelope.unwrap(), structure.unwrap())
}

/// Case of what has none.
fn plain(structure: BodyStructure) -> BodyStructure {
    match structure {
        BodyStructure::Multipart(parts, subtype, extension) => BodyStructure::Multipart(
            parts.into_iter().map(plain).collect(),
            subtype.to_ascii_lowercase(),
            extension.map(|(parameters, extension)| (names(parameters), plain_extension(extension))),
        ),
        BodyStructure::Single(mut basics, kind, extension) => {
            basics.media_type.make_ascii_lowercase();
            basics.subtype.make_ascii_lowercase();
            basics.encoding.make_ascii_lowercase();
            basics.parameters = names(basics.parameters);
            let kind = match kind {
                SinglePart::Message(inner, lines) => {
                    let (envelope, body) = *inner;
                    SinglePart::Message(Box::new((envelope, plain(body))), lines)
                }
                kind => kind,
            };
            let extension = extension.map(|(md5, extension)| (md5, plain_extension(extension)));
            BodyStructure::Single(basics, kind, extension)
        }
    }
}

fn plain_extension(mut extension: scrinium_imap_wire::PartExtension) -> scrinium_imap_wire::PartExtension {
    if let Some(disposition) = &mut extension.disposition {
        disposition.kind.make_ascii_lowercase();
        disposition.parameters = names(std::mem::take(&mut disposition.parameters));
    }
    extension
}

/// Their order means nothing, and neither does the case of a character set.
fn names(parameters: Vec<(Vec<u8>, Vec<u8>)>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let lower = parameters.into_iter().map(|(name, value)| {
        let is_charset = name.eq_ignore_ascii_case(b"charset");
        (name.to_ascii_lowercase(), if is_charset { value.to_ascii_lowercase() } else { value })
    });
    let mut lower: Vec<_> = lower.collect();
    lower.sort();
    lower
}

/// How our description of a message differs from Dovecot's.
fn differences(message: &[u8], (size, envelope, structure): Described) -> Vec<(&'static str, String)> {
    let map = MapBuilder::map(message);
    let mut found = Vec::new();
    let mut compare = |what, ours: String, theirs: String| {
        if ours != theirs {
            found.push((what, format!("ours   {ours}\ntheirs {theirs}")));
        }
    };
    let ours = map.raw_envelope().cloned().unwrap_or_default();
    let text = |value: &dyn std::fmt::Debug| format!("{value:?}");
    // Blanks at the end mean nothing.
    let shown = |text: &Option<Vec<u8>>| {
        text.as_ref().map(|text| String::from_utf8_lossy(text).trim_end().to_owned())
    };
    compare("size", text(&map.bytes), text(&size));
    compare("date", text(&shown(&ours.date)), text(&shown(&envelope.date)));
    compare("subject", text(&shown(&ours.subject)), text(&shown(&envelope.subject)));
    compare("in-reply-to", text(&shown(&ours.in_reply_to)), text(&shown(&envelope.in_reply_to)));
    compare("message-id", text(&shown(&ours.message_id)), text(&shown(&envelope.message_id)));
    let addresses = |list: &[scrinium_imap_wire::Address]| {
        let one = |address: &scrinium_imap_wire::Address| {
            [&address.name, &address.route, &address.mailbox, &address.host].map(shown)
        };
        text(&list.iter().map(one).collect::<Vec<_>>())
    };
    compare("from", addresses(&ours.from), addresses(&envelope.from));
    compare("sender", addresses(&ours.sender), addresses(&envelope.sender));
    compare("reply-to", addresses(&ours.reply_to), addresses(&envelope.reply_to));
    compare("to", addresses(&ours.to), addresses(&envelope.to));
    compare("cc", addresses(&ours.cc), addresses(&envelope.cc));
    compare("bcc", addresses(&ours.bcc), addresses(&envelope.bcc));
    compare("structure", text(&plain(map.structure(true, true))), text(&plain(structure)));
    found
}

/// Where we describe a message otherwise, and why.
const EXPLAINED: [(&str, &str); 5] = [
    // Spaces around the dots of an address are the obsolete form (RFC 5322, section 4.4), not a mistake.
    ("05-groups.eml", "cc"),
    // A type without a subtype does not count (RFC 2045, section 5.2); `"text" ""` is nothing that clients know.
    ("11-bad-type.eml", "structure"),
    // A missing host is empty, not a word that looks like one.
    ("14-quotes.eml", "cc"),
    // Of fields that may be there once the first counts, which is the one that people are shown.
    ("16-twice.eml", "subject"),
    ("16-twice.eml", "message-id"),
];

#[test]
fn our_own_messages_are_described_as_dovecot_does() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "eml"));
    files.sort();
    let answers = answers(&std::fs::read(folder.join("dovecot-answers.txt")).unwrap());
    assert_eq!(files.len(), answers.len());
    let mut unexplained = Vec::new();
    for (path, answer) in files.iter().zip(answers) {
        let name = path.file_name().unwrap().to_str().unwrap();
        for (what, text) in differences(&std::fs::read(path).unwrap(), answer) {
            if !EXPLAINED.contains(&(name, what)) {
                unexplained.push(format!("{name} {what}\n{text}"));
            }
        }
    }
    assert!(unexplained.is_empty(), "{}", unexplained.join("\n"));
}

/// Messages that may differ, of ten thousand: what is broken in a way that has no right answer. docs/internals/imap.md lists the kinds.
const DIFFERENT_MAX: usize = 150;

#[test]
fn messages_of_a_folder_are_described_as_dovecot_does() {
    let (Some(folder), Some(file)) =
        (std::env::var_os("SCRINIUM_MESSAGES"), std::env::var_os("SCRINIUM_DOVECOT"))
    else {
        eprintln!("left out: SCRINIUM_MESSAGES and SCRINIUM_DOVECOT name no messages and answers");
        return;
    };
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let answers = answers(&std::fs::read(file).unwrap());
    assert_eq!(files.len(), answers.len());
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    let mut different = 0;
    let count = files.len();
    for (path, answer) in files.into_iter().zip(answers) {
        let found = differences(&std::fs::read(&path).unwrap(), answer);
        different += usize::from(!found.is_empty());
        for (what, text) in found {
            *kinds.entry(what).or_default() += 1;
            println!("{} {what}\n{text}", path.display());
        }
    }
    println!("{different} of {count} differ: {kinds:?}");
    assert!(different * 10_000 <= DIFFERENT_MAX * count, "{different} of {count} differ: {kinds:?}");
}
