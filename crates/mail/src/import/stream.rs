//! What is no file: standard input, pipes. It is read once, from its beginning, and never waited for without end.

use std::fs::{self, File};
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

/// A pipe is opened when somebody writes into it.
const OPEN_WITHIN: Duration = Duration::from_secs(5);

/// Anyone who writes into a pipe may pause for so long.
const WRITE_WITHIN: Duration = Duration::from_secs(60);

const PIECE_BYTES: usize = 128 * 1024;

/// Pieces that were read and nobody has taken yet.
const PIECES: usize = 4;

/// Whether a place names standard input or something else that is neither a file nor a folder.
pub(super) fn is_stream(path: &Path) -> bool {
    is_standard_input(path) || fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

fn is_standard_input(path: &Path) -> bool {
    ["-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"].iter().any(|name| path == Path::new(name))
}

/// Opens a stream.
///
/// # Errors
/// Why there is nothing to be read from it.
pub(super) fn open(path: &Path) -> io::Result<Stream> {
    use std::os::unix::fs::FileTypeExt;
    if is_standard_input(path) {
        if io::stdin().is_terminal() {
            return Err(io::Error::other(
                "standard input is a terminal; give it mail: scrinium import mail - … < FILE",
            ));
        }
        return Stream::of(|| Ok(Box::new(io::stdin())));
    }
    let kind = fs::metadata(path)?.file_type();
    if kind.is_socket() || kind.is_block_device() {
        return Err(io::Error::other("it is a socket or a device, not a file or folder of mail"));
    }
    if kind.is_char_device() && path != Path::new("/dev/null") {
        return Err(io::Error::other("it is a device, not a file or folder of mail"));
    }
    let path = PathBuf::from(path);
    Stream::of(move || Ok(Box::new(File::open(path)?)))
}

/// Pieces of a stream, which a thread of its own reads, so that nobody waits for its writer.
pub(super) struct Stream {
    pieces: Receiver<io::Result<Vec<u8>>>,
    piece: io::Cursor<Vec<u8>>,
    ended: bool,
}

impl Stream {
    fn of(opening: impl FnOnce() -> io::Result<Box<dyn Read>> + Send + 'static) -> io::Result<Self> {
        let (sender, pieces) = sync_channel(PIECES);
        let read = move || {
            let mut reader = match opening() {
                Ok(reader) => reader,
                Err(error) => return drop(sender.send(Err(error))),
            };
            // Says that it is open.
            if sender.send(Ok(Vec::new())).is_err() {
                return;
            }
            loop {
                let mut piece = vec![0; PIECE_BYTES];
                let read = match reader.read(&mut piece) {
                    Ok(0) => return,
                    Ok(read) => {
                        piece.truncate(read);
                        Ok(piece)
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => Err(error),
                };
                let is_over = read.is_err();
                if sender.send(read).is_err() || is_over {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("import".to_owned()).spawn(read)?;
        match pieces.recv_timeout(OPEN_WITHIN) {
            Ok(opened) => drop(opened?),
            Err(_) => return Err(late("nobody writes into it", OPEN_WITHIN)),
        }
        Ok(Self { pieces, piece: io::Cursor::default(), ended: false })
    }
}

fn late(what: &str, after: Duration) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, format!("{what}; waited for {} s", after.as_secs()))
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.piece.read(into)?;
            if read > 0 || into.is_empty() || self.ended {
                return Ok(read);
            }
            match self.pieces.recv_timeout(WRITE_WITHIN) {
                Ok(piece) => self.piece = io::Cursor::new(piece?),
                Err(RecvTimeoutError::Disconnected) => self.ended = true,
                Err(RecvTimeoutError::Timeout) => {
                    self.ended = true;
                    return Err(late("its writer has paused for too long", WRITE_WITHIN));
                }
            }
        }
    }
}
