//! Files on their way: one thread reads ahead while another hashes and writes.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use crate::BackupError;
use crate::aligned::{Buffer, PIECE_BYTES};
use crate::digests::Digests;
use crate::pace::Pace;
use crate::place::{Pieces, Sink};

/// Pieces under way: one is read, one written, and some lie between.
const BUFFERS: usize = 4;

/// Opens the file of this number.
pub(crate) type Open<'a> = dyn Fn(usize) -> Result<Box<dyn Pieces>, BackupError> + Sync + 'a;

/// What became of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Passed {
    pub(crate) bytes: u64,
    /// Of its content, as hexadecimal digits.
    pub(crate) blake3: String,
}

/// A piece of a file, or the file's end.
enum Message {
    Piece(Buffer),
    End(Buffer),
    Failed(BackupError),
}

/// Reads `files` files one after another and hands each on, with its number: to `sink_of` for where it goes (nowhere,
/// where it is only to be checked), and to `done` when it is there.
pub(crate) fn pass<'s>(
    (files, digests): (usize, Digests),
    open: &Open<'_>,
    mut sink_of: impl FnMut(usize) -> Result<Option<Box<dyn Sink + 's>>, BackupError>,
    mut done: impl FnMut(usize, Passed) -> Result<(), BackupError>,
    pace: &mut Pace<'_>,
) -> Result<(), BackupError> {
    let (to_writer, from_reader) = sync_channel(BUFFERS);
    let (give_back, empty) = sync_channel(BUFFERS);
    for _ in 0..BUFFERS {
        // There is room for all of them.
        drop(give_back.send(Buffer::new()));
    }
    thread::scope(|scope| {
        // Both ends go when this fails, so that a reader that waits for one of them ends too.
        let (from_reader, give_back) = (from_reader, give_back);
        scope.spawn(move || read_all(files, open, &empty, &to_writer));
        for number in 0..files {
            let sink = sink_of(number)?;
            let passed = write_one(sink, digests, (&from_reader, &give_back), pace)?;
            done(number, passed)?;
        }
        Ok(())
    })
}

fn read_all(files: usize, open: &Open<'_>, empty: &Receiver<Buffer>, to_writer: &SyncSender<Message>) {
    for number in 0..files {
        let mut pieces = match open(number) {
            Ok(pieces) => pieces,
            Err(error) => {
                drop(to_writer.send(Message::Failed(error)));
                return;
            }
        };
        loop {
            let Ok(mut buffer) = empty.recv() else { return };
            let message = match pieces.next(&mut buffer) {
                Ok(()) if buffer.filled < PIECE_BYTES => Message::End(buffer),
                Ok(()) => Message::Piece(buffer),
                Err(error) => Message::Failed(error),
            };
            let more = matches!(message, Message::Piece(_));
            let failed = matches!(message, Message::Failed(_));
            if to_writer.send(message).is_err() || failed {
                return;
            }
            if !more {
                break;
            }
        }
    }
}

fn write_one<'s>(
    mut sink: Option<Box<dyn Sink + 's>>,
    digests: Digests,
    (from_reader, give_back): (&Receiver<Message>, &SyncSender<Buffer>),
    pace: &mut Pace<'_>,
) -> Result<Passed, BackupError> {
    let mut hasher = digests.hasher();
    let mut bytes = 0;
    loop {
        let (mut buffer, last) = match from_reader.recv() {
            Ok(Message::Piece(buffer)) => (buffer, false),
            Ok(Message::End(buffer)) => (buffer, true),
            Ok(Message::Failed(error)) => return Err(error),
            // Only a panic, which was printed, ends the reader without a word.
            Err(_) => return Err(BackupError::Cancelled),
        };
        hasher.update(buffer.content());
        if let Some(sink) = sink.as_mut().filter(|_| buffer.filled > 0) {
            sink.put(&mut buffer)?;
        }
        bytes += buffer.filled as u64;
        pace.advance(buffer.filled as u64)?;
        // The reader may have ended.
        drop(give_back.send(buffer));
        if last {
            break;
        }
    }
    sink.map_or(Ok(()), Sink::finish)?;
    Ok(Passed { bytes, blake3: hasher.finalize().to_hex().to_string() })
}
