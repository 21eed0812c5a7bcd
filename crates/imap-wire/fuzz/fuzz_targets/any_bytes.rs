//! Any bytes as frames of a client and of a server: no panic, and commands that are read are written so that they are
//! read again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use scrinium_imap_wire::{
    CommandOptions, Decision, FrameLimits, FrameReader, NameEncoding, Part, Response, Speaker, FrameStep, TaggedCommand,
    WriteOptions, joined,
};

fn frames(bytes: &[u8], speaker: Speaker) -> Vec<Vec<Part>> {
    let limits = FrameLimits { bytes: 1 << 20, literals: 100, bare_line_feed: false };
    let mut reader = FrameReader::new(limits, speaker);
    let (mut rest, mut frames) = (bytes, Vec::new());
    while let Ok((consumed, step)) = reader.read(rest) {
        rest = &rest[consumed..];
        match step {
            FrameStep::More => break,
            FrameStep::Announced(_) if reader.decide(Decision::Keep).is_err() => break,
            FrameStep::Frame(parts) => frames.push(parts),
            _ => {}
        }
    }
    frames
}

fuzz_target!(|bytes: &[u8]| {
    let options = CommandOptions::default();
    for frame in frames(bytes, Speaker::Client) {
        if let Ok(read) = TaggedCommand::parse(&frame, options) {
            let sent = joined(&read.command.write(&read.tag, options.names, WriteOptions::CLIENT));
            let again = frames(&sent, Speaker::Client);
            assert_eq!(TaggedCommand::parse(&again[0], options), Ok(read));
        }
    }
    for frame in frames(bytes, Speaker::Server) {
        if let Ok(read) = Response::parse(&frame, NameEncoding::Utf7, options.limits) {
            let sent = joined(&read.write(NameEncoding::Utf7, WriteOptions::SERVER));
            assert_eq!(frames(&sent, Speaker::Server).len(), 1);
        }
    }
});
