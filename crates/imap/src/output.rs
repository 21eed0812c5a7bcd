//! What waits to be sent.

use flate2::{Compress, Compression, FlushCompress, Status};

/// Bytes for the client, compressed once that is agreed.
#[derive(Default)]
pub(crate) struct Output {
    /// As it goes out.
    ready: Vec<u8>,
    /// What is still to be compressed.
    plain: Vec<u8>,
    compress: Option<Box<Compress>>,
}

/// Room for what compressing adds at a time.
const COMPRESS_STEP_BYTES: usize = 16 * 1024;

impl Output {
    pub(crate) fn len(&self) -> usize {
        self.ready.len() + self.plain.len()
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.compress.is_some() { &mut self.plain } else { &mut self.ready }.extend_from_slice(bytes);
    }

    /// A line that a response has begun ends, so that another one can follow.
    pub(crate) fn end_line(&mut self) {
        let last = if self.compress.is_some() { &self.plain } else { &self.ready };
        if last.last().is_some_and(|byte| *byte != b'\n') {
            self.push(b"\r\n");
        }
    }

    /// What is said from now on is compressed (RFC 4978).
    pub(crate) fn begin_compression(&mut self) {
        // Without the header of zlib, and as fast as it goes: what compresses well are headers and flags.
        self.compress = Some(Box::new(Compress::new(Compression::fast(), false)));
    }

    pub(crate) fn is_compressed(&self) -> bool {
        self.compress.is_some()
    }

    /// All of it. The client can read what it gets without waiting for more.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        if let Some(compress) = &mut self.compress
            && !self.plain.is_empty()
        {
            deflate(compress, &self.plain, &mut self.ready);
            self.plain = Vec::new();
        }
        std::mem::take(&mut self.ready)
    }
}

fn deflate(compress: &mut Compress, plain: &[u8], out: &mut Vec<u8>) {
    let start = compress.total_in();
    loop {
        out.reserve(COMPRESS_STEP_BYTES);
        let taken = usize::try_from(compress.total_in() - start).unwrap_or(usize::MAX);
        let rest = plain.get(taken..).unwrap_or_default();
        match compress.compress_vec(rest, out, FlushCompress::Sync) {
            // Room is left: everything is out.
            Ok(Status::Ok | Status::BufError) if out.len() < out.capacity() => return,
            Ok(_) => {}
            // The compressor has no errors of its own.
            Err(_) => return,
        }
    }
}
