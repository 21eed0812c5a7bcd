//! Encrypting, piece by piece.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use ring::aead::{Aad, LessSafeKey};
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use x25519_dalek::{PublicKey, StaticSecret};

use super::{
    CHUNK_BYTES, CipherError, FILE_KEY_BYTES, FileKey, KIND, MAC_LINE, NONCE_BYTES, Recipient,
    SEALED_CHUNK_BYTES, STANZA, VERSION_LINE, WRAP_INFO, cipher, derive, header_key, no_nonce,
    payload_cipher, piece_nonce,
};

/// Of the header with one recipient: four lines.
const HEADER_BYTES: u64 = 22 + (3 + 7 + 43 + 1) + (43 + 1) + (4 + 43 + 1);

/// How long a content of `bytes` is when it is encrypted.
pub(crate) fn sealed_bytes(bytes: u64) -> u64 {
    let pieces = bytes.div_ceil(CHUNK_BYTES as u64).max(1);
    let tags = pieces.saturating_mul((SEALED_CHUNK_BYTES - CHUNK_BYTES) as u64);
    bytes.saturating_add(tags).saturating_add(HEADER_BYTES + NONCE_BYTES as u64)
}

/// Encrypts one file. What is put in comes out in [`Sealer::take`], a piece later.
pub(crate) struct Sealer {
    cipher: LessSafeKey,
    number: u64,
    /// Content of the piece that is not full yet.
    open: Vec<u8>,
    /// What is encrypted and was not taken.
    sealed: Vec<u8>,
}

impl Sealer {
    /// Begins a file with a key of its own.
    ///
    /// # Errors
    /// [`CipherError::NoRandomness`].
    pub(crate) fn new(recipient: &Recipient) -> Result<Self, CipherError> {
        let file_key: FileKey = random()?;
        let nonce: [u8; NONCE_BYTES] = random()?;
        let mut sealed = header(&file_key, recipient)?;
        sealed.extend_from_slice(&nonce);
        let cipher = payload_cipher(&file_key, &nonce)?;
        Ok(Self { cipher, number: 0, open: Vec::with_capacity(SEALED_CHUNK_BYTES), sealed })
    }

    /// Adds content.
    ///
    /// # Errors
    /// [`CipherError::Damaged`] where the library refuses, which it has no reason to.
    pub(crate) fn put(&mut self, mut content: &[u8]) -> Result<(), CipherError> {
        while !content.is_empty() {
            // A full piece waits until it is known that it is not the last.
            if self.open.len() == CHUNK_BYTES {
                self.seal(false)?;
            }
            let (now, later) = content.split_at(content.len().min(CHUNK_BYTES - self.open.len()));
            self.open.extend_from_slice(now);
            content = later;
        }
        Ok(())
    }

    /// The content has ended.
    ///
    /// # Errors
    /// As [`Sealer::put`].
    pub(crate) fn finish(&mut self) -> Result<(), CipherError> {
        self.seal(true)
    }

    /// What is encrypted and was not given yet.
    pub(crate) fn take(&mut self) -> &mut Vec<u8> {
        &mut self.sealed
    }

    fn seal(&mut self, last: bool) -> Result<(), CipherError> {
        let nonce = piece_nonce(self.number, last);
        let sealed = self.cipher.seal_in_place_append_tag(nonce, Aad::empty(), &mut self.open);
        sealed.map_err(|_| CipherError::Damaged)?;
        self.sealed.append(&mut self.open);
        self.number += 1;
        Ok(())
    }
}

fn random<const N: usize>() -> Result<[u8; N], CipherError> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).map_err(|_| CipherError::NoRandomness)?;
    Ok(bytes)
}

fn header(file_key: &FileKey, recipient: &Recipient) -> Result<Vec<u8>, CipherError> {
    let ephemeral = StaticSecret::from(random::<32>()?);
    let share = PublicKey::from(&ephemeral).to_bytes();
    let shared = ephemeral.diffie_hellman(&PublicKey::from(recipient.0));
    if !shared.was_contributory() {
        return Err(CipherError::WrongKey);
    }
    let wrap_key = derive(shared.as_bytes(), &[share, recipient.0].concat(), WRAP_INFO)?;
    let mut body = Vec::with_capacity(FILE_KEY_BYTES * 2);
    body.extend_from_slice(file_key);
    let sealed = cipher(&wrap_key)?.seal_in_place_append_tag(no_nonce(), Aad::empty(), &mut body);
    sealed.map_err(|_| CipherError::Damaged)?;
    let (share, body) = (STANDARD_NO_PAD.encode(share), STANDARD_NO_PAD.encode(body));
    let head = format!("{VERSION_LINE}\n{STANZA}{KIND} {share}\n{body}\n{MAC_LINE}");
    let mac = STANDARD_NO_PAD.encode(hmac::sign(&header_key(file_key)?, head.as_bytes()));
    Ok(format!("{head} {mac}\n").into_bytes())
}
