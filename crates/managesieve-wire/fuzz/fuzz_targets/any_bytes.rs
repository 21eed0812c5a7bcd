//! Any bytes of a client and of a server: no panic, frames do not depend on the pieces in which they come, and what is
//! read is written so that it is read again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use scrinium_managesieve_wire::{
    Capability, Command, Frame, FrameLimits, FrameReader, ListedScript, ServerLine, Speaker, FrameStep,
};

const LIMITS: FrameLimits =
    FrameLimits { line_bytes: 4_096, literal_bytes: 4_096, dropped_bytes: 8_192, literals: 4 };

fn frames(bytes: &[u8], piece: usize, speaker: Speaker) -> Vec<Frame> {
    let mut reader = FrameReader::new(LIMITS, speaker);
    let mut found = Vec::new();
    for mut piece in bytes.chunks(piece) {
        loop {
            let Ok((taken, step)) = reader.read(piece) else { return found };
            piece = &piece[taken..];
            match step {
                FrameStep::More => break,
                FrameStep::Frame(frame) | FrameStep::TooLong(frame) => found.push(frame),
            }
        }
    }
    found
}

fuzz_target!(|bytes: &[u8]| {
    for speaker in [Speaker::Client, Speaker::Server] {
        let whole = frames(bytes, usize::MAX, speaker);
        assert_eq!(whole, frames(bytes, 3, speaker));
        for frame in &whole {
            let _ = frame.sasl_line();
            if let Ok(command) = Command::parse(frame) {
                let mut sent = Vec::new();
                command.write(&mut sent);
                let again = frames(&sent, usize::MAX, Speaker::Client);
                assert_eq!(again.iter().map(Command::parse).collect::<Vec<_>>(), [Ok(command)]);
            }
            match ServerLine::parse(frame) {
                Ok(ServerLine::Status(status)) => {
                    let mut sent = Vec::new();
                    status.write(&mut sent);
                    assert_eq!(frames(&sent, usize::MAX, Speaker::Server).len(), 1);
                }
                Ok(ServerLine::Data(tokens)) => {
                    let _ = (Capability::of(&tokens), ListedScript::of(&tokens));
                }
                Err(_) => {}
            }
        }
    }
});
