//! Any bytes as lines of a client and of a server, and as the text of a message: no panic, and what is read is
//! written so that it is read again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use scrinium_smtp_wire::{
    BareEnds, Capabilities, Command, DotLimits, DotReader, DotWriter, LineEnds, LineScanner, ReplyLimits, ReplyReader,
};

fuzz_target!(|bytes: &[u8]| {
    let (mut scanner, mut rest) = (LineScanner::new(4096, LineEnds::Lenient), bytes);
    let mut replies = ReplyReader::new(ReplyLimits { lines: 10, text_bytes: 1000 });
    while let Ok(Some(line)) = scanner.find(rest) {
        if let Ok(command) = Command::parse(line.text) {
            assert_eq!(Command::parse(command.to_string().as_bytes()), Ok(command));
        }
        if let Ok(Some(reply)) = replies.line(line.text) {
            let _ = (reply.enhanced(), reply.text(), Capabilities::of(&reply));
        }
        rest = &rest[line.consumed..];
    }
    let mut text = Vec::new();
    let limits = DotLimits { text_bytes: 1 << 20, line_bytes: 1 << 16 };
    DotReader::new(limits, BareEnds::Normalise).read(bytes, |piece| text.extend_from_slice(piece));
    let (mut writer, mut sent) = (DotWriter::new(BareEnds::Normalise), Vec::new());
    writer.write(&text, &mut sent).expect("line ends are normalised");
    writer.finish(&mut sent).expect("line ends are normalised");
    let progress = DotReader::new(limits, BareEnds::Refuse).read(&sent, |_| {});
    assert!(progress.finished && progress.consumed == sent.len());
});
