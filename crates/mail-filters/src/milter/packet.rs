//! Packets: four bytes of length, one of kind, and data.

/// What a filter may make this server keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MilterLimits {
    /// Bytes of one packet.
    pub packet_bytes: usize,
    /// Changes of one message.
    pub changes: usize,
    /// Bytes of all changes of one message, a new body among them.
    pub changed_bytes: usize,
}

impl Default for MilterLimits {
    /// 1 MB, 1,000, and 50 MB.
    fn default() -> Self {
        Self { packet_bytes: 1 << 20, changes: 1_000, changed_bytes: 50 << 20 }
    }
}

/// What a filter did wrong. The session is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MilterError {
    /// A packet without a kind, or longer than allowed.
    #[error("the filter sent a packet of {0} bytes")]
    Length(u32),
    /// A kind that is not known, or was not expected here.
    #[error("the filter sent a packet that was not expected ({0:#04x})")]
    Unexpected(u8),
    /// Data that does not have the form of its kind.
    #[error("the filter sent a packet that cannot be read ({0:#04x})")]
    Malformed(u8),
    /// Another version, or wishes that were not offered.
    #[error("the filter asked for what was not offered")]
    Negotiation,
    /// A change that was not agreed upon.
    #[error("the filter wants a change that was not agreed upon ({0:#04x})")]
    NotAgreed(u8),
    /// More changes than allowed.
    #[error("the filter wants more changes than allowed")]
    Changes,
    /// The session was used after an error, or out of its order.
    #[error("the filter was used out of order")]
    Order,
}

/// Reads packets out of pieces of any size.
#[derive(Clone, Debug)]
pub struct PacketReader {
    buffer: Vec<u8>,
    limit: usize,
}

impl PacketReader {
    /// Packets of at most this many bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { buffer: Vec::new(), limit }
    }

    /// Takes bytes, and gives the packets that are whole with them.
    ///
    /// # Errors
    /// [`MilterError::Length`], before more than the limit is kept.
    pub fn take(&mut self, bytes: &[u8]) -> Result<Vec<(u8, Vec<u8>)>, MilterError> {
        self.buffer.extend_from_slice(bytes);
        let mut packets = Vec::new();
        let mut rest = self.buffer.as_slice();
        while let Some((length, after)) = rest.split_first_chunk::<4>() {
            let length = u32::from_be_bytes(*length);
            let whole = usize::try_from(length).ok().filter(|length| (1..=self.limit).contains(length));
            let whole = whole.ok_or(MilterError::Length(length))?;
            let Some((packet, behind)) = after.split_at_checked(whole) else { break };
            if let Some((kind, data)) = packet.split_first() {
                packets.push((*kind, data.to_vec()));
            }
            rest = behind;
        }
        let used = self.buffer.len() - rest.len();
        self.buffer.drain(..used);
        Ok(packets)
    }
}

/// Writes a packet.
pub(crate) fn packet(kind: u8, data: &[&[u8]]) -> Vec<u8> {
    let length = 1 + data.iter().map(|piece| piece.len()).sum::<usize>();
    let mut out = Vec::with_capacity(4 + length);
    out.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
    out.push(kind);
    for piece in data {
        out.extend_from_slice(piece);
    }
    out
}

/// Text without NUL, which ends texts here.
pub(crate) fn text(bytes: &[u8]) -> Vec<u8> {
    let mut out: Vec<u8> = bytes.iter().copied().filter(|byte| *byte != 0).collect();
    out.push(0);
    out
}
