//! Messages on a stream: four bytes of length, then JSON.

use std::io;

use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// What one side may send before it has logged in.
pub(super) const SHORT_BYTES: u32 = 4 << 10;

/// What it may send after that. All histograms of a run with every bucket in use are less.
pub(super) const LONGEST_BYTES: u32 = 64 << 20;

/// Why there is no message.
#[derive(Debug, Error)]
pub(super) enum FrameError {
    #[error("it closed its connection")]
    Closed,
    #[error("its connection broke: {0}")]
    Broken(io::Error),
    #[error("a message of {0} bytes, where {1} are allowed")]
    TooLong(u64, u32),
    #[error("a message that nobody understands: {0}")]
    Unknown(serde_json::Error),
}

impl From<io::Error> for FrameError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => {
                Self::Closed
            }
            _ => Self::Broken(error),
        }
    }
}

/// Writes one message.
pub(super) async fn write(
    to: &mut (impl AsyncWrite + Unpin),
    message: &impl Serialize,
) -> Result<(), FrameError> {
    let body = serde_json::to_vec(message).map_err(FrameError::Unknown)?;
    let length = u32::try_from(body.len()).ok().filter(|length| *length <= LONGEST_BYTES);
    let length = length.ok_or(FrameError::TooLong(body.len() as u64, LONGEST_BYTES))?;
    to.write_all(&length.to_be_bytes()).await?;
    to.write_all(&body).await?;
    Ok(to.flush().await?)
}

/// Reads one message of at most this many bytes. Memory is taken as they come.
pub(super) async fn read<T: DeserializeOwned>(
    from: &mut (impl AsyncRead + Unpin),
    most: u32,
) -> Result<T, FrameError> {
    let length = from.read_u32().await?;
    if length > most {
        return Err(FrameError::TooLong(u64::from(length), most));
    }
    let mut body = Vec::new();
    let read = from.take(u64::from(length)).read_to_end(&mut body).await?;
    if read < length as usize {
        return Err(FrameError::Closed);
    }
    serde_json::from_slice(&body).map_err(FrameError::Unknown)
}
