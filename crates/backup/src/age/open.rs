//! Decrypting, piece by piece.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use ring::aead::{Aad, LessSafeKey};
use ring::hmac;
use x25519_dalek::PublicKey;

use super::{
    CHUNK_BYTES, CipherError, FileKey, Identities, Identity, KIND, MAC_LINE, NONCE_BYTES, SEALED_CHUNK_BYTES,
    STANZA, TAG_BYTES, VERSION_LINE, WRAP_INFO, cipher, derive, header_key, no_nonce, payload_cipher,
    piece_nonce,
};

/// A longer header holds more than keys.
const HEADER_MAX_BYTES: usize = 16 << 10;

/// Decrypts one file. What is put in comes out in [`Opener::take`] once its piece is whole and proven.
pub(crate) struct Opener {
    state: OpenerState,
    /// What was put in and is not decrypted.
    sealed: Vec<u8>,
    /// What is decrypted and was not taken.
    opened: Vec<u8>,
}

enum OpenerState {
    Header,
    Pieces { cipher: Box<LessSafeKey>, number: u64 },
}

impl Opener {
    pub(crate) fn new() -> Self {
        Self { state: OpenerState::Header, sealed: Vec::new(), opened: Vec::new() }
    }

    /// Adds bytes of the file; `last`: they are its end.
    ///
    /// # Errors
    /// [`CipherError`]. Nothing that was not proven is in [`Opener::take`].
    pub(crate) fn put(&mut self, bytes: &[u8], last: bool, keys: &Identities) -> Result<(), CipherError> {
        self.sealed.extend_from_slice(bytes);
        if matches!(self.state, OpenerState::Header) && !self.read_header(last, keys)? {
            return Ok(());
        }
        let OpenerState::Pieces { cipher, number } = &mut self.state else { return Ok(()) };
        let mut at = 0;
        // A full piece may be the last one as long as nothing follows it.
        while self.sealed.len() - at > SEALED_CHUNK_BYTES || (last && self.sealed.len() > at) {
            let end = (at + SEALED_CHUNK_BYTES).min(self.sealed.len());
            let is_last = last && end == self.sealed.len();
            let piece = self.sealed.get_mut(at..end).ok_or(CipherError::Damaged)?;
            // Only an empty content has an empty piece, which is then the first.
            if piece.len() < TAG_BYTES || (piece.len() == TAG_BYTES && *number > 0) {
                return Err(CipherError::Damaged);
            }
            let opened = cipher.open_in_place(piece_nonce(*number, is_last), Aad::empty(), piece);
            self.opened.extend_from_slice(opened.map_err(|_| CipherError::Damaged)?);
            *number += 1;
            at = end;
            if is_last {
                self.sealed.clear();
                return Ok(());
            }
        }
        self.sealed.drain(..at);
        // The last piece was to come, and nothing is there.
        if last { Err(CipherError::Damaged) } else { Ok(()) }
    }

    /// What is decrypted and was not given yet.
    pub(crate) fn take(&mut self) -> &mut Vec<u8> {
        &mut self.opened
    }

    /// Whether the header was there; else more bytes must come.
    fn read_header(&mut self, last: bool, keys: &Identities) -> Result<bool, CipherError> {
        let Some((head, mac, length)) = split_header(&self.sealed)? else {
            return if last || self.sealed.len() > HEADER_MAX_BYTES {
                Err(CipherError::Format)
            } else {
                Ok(false)
            };
        };
        let Some(nonce) = self.sealed.get(length..length + NONCE_BYTES) else {
            return if last { Err(CipherError::Damaged) } else { Ok(false) };
        };
        let file_key = file_key(head, keys)?;
        hmac::verify(&header_key(&file_key)?, head.as_bytes(), &mac).map_err(|_| CipherError::Damaged)?;
        let cipher = payload_cipher(&file_key, nonce)?;
        self.state = OpenerState::Pieces { cipher: Box::new(cipher), number: 0 };
        self.sealed.drain(..length + NONCE_BYTES);
        self.opened.reserve(CHUNK_BYTES);
        Ok(true)
    }
}

/// A header up to the MAC, the MAC, and where the header ends.
type Header<'a> = (&'a str, Vec<u8>, usize);

/// The parts of a header; `None`: it is not whole yet.
fn split_header(bytes: &[u8]) -> Result<Option<Header<'_>>, CipherError> {
    let bytes = bytes.get(..bytes.len().min(HEADER_MAX_BYTES)).unwrap_or_default();
    let beginning = VERSION_LINE.as_bytes();
    if bytes.iter().zip(beginning).any(|(one, other)| one != other) {
        return Err(CipherError::Format);
    }
    let mark = format!("\n{MAC_LINE} ");
    let Some(at) = bytes.windows(mark.len()).position(|window| window == mark.as_bytes()) else {
        return Ok(None);
    };
    let mac_from = at + mark.len();
    let rest = bytes.get(mac_from..).unwrap_or_default();
    let Some(mac_length) = rest.iter().position(|byte| *byte == b'\n') else { return Ok(None) };
    let head = bytes.get(..mac_from - 1).and_then(|head| std::str::from_utf8(head).ok());
    let mac = rest.get(..mac_length).and_then(|mac| STANDARD_NO_PAD.decode(mac).ok());
    let (Some(head), Some(mac)) = (head, mac) else { return Err(CipherError::Format) };
    Ok(Some((head, mac, mac_from + mac_length + 1)))
}

/// The file's key, by the first stanza that one of the keys opens.
fn file_key(head: &str, keys: &Identities) -> Result<FileKey, CipherError> {
    let mut lines = head.lines();
    if lines.next() != Some(VERSION_LINE) {
        return Err(CipherError::Format);
    }
    while let Some(line) = lines.next() {
        let Some(arguments) = line.strip_prefix(STANZA) else { continue };
        let Some(share) = arguments.strip_prefix(KIND).and_then(|rest| rest.strip_prefix(' ')) else {
            continue;
        };
        let share: Option<[u8; 32]> =
            STANDARD_NO_PAD.decode(share).ok().and_then(|share| share.try_into().ok());
        let body = lines.next().and_then(|body| STANDARD_NO_PAD.decode(body).ok());
        let (Some(share), Some(body)) = (share, body) else { return Err(CipherError::Format) };
        let found = keys.0.iter().find_map(|identity| unwrap(identity, share, &body));
        if let Some(file_key) = found {
            return Ok(file_key);
        }
    }
    Err(CipherError::WrongKey)
}

fn unwrap(identity: &Identity, share: [u8; 32], body: &[u8]) -> Option<FileKey> {
    let shared = identity.0.diffie_hellman(&PublicKey::from(share));
    if !shared.was_contributory() {
        return None;
    }
    let own = identity.recipient().0;
    let wrap_key = derive(shared.as_bytes(), &[share, own].concat(), WRAP_INFO).ok()?;
    let mut body = body.to_vec();
    let opened = cipher(&wrap_key).ok()?.open_in_place(no_nonce(), Aad::empty(), &mut body).ok()?;
    FileKey::try_from(&*opened).ok()
}
