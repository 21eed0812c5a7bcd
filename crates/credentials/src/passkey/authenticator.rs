//! What an authenticator says: authenticator data (WebAuthn, section 6.1), attestation objects (section 6.5.4), COSE keys
//! (RFC 9052, RFC 9053).

use crate::passkey::LONGEST_CREDENTIAL_ID;
use crate::passkey::cbor::{Reader, map_of_integers, map_of_texts};
use crate::public_key::PublicKey;

/// Flags (section 6.1).
const USER_PRESENT: u8 = 1;
const USER_VERIFIED: u8 = 1 << 2;
const BACKUP_ELIGIBLE: u8 = 1 << 3;
const BACKED_UP: u8 = 1 << 4;
const HAS_CREDENTIAL: u8 = 1 << 6;
const HAS_EXTENSIONS: u8 = 1 << 7;

/// COSE's numbers: key types, curves, algorithms.
const OKP: i64 = 1;
const EC2: i64 = 2;
const RSA: i64 = 3;
const P256: i64 = 1;
const ED25519: i64 = 6;
pub(super) const ES256: i64 = -7;
pub(super) const EDDSA: i64 = -8;
pub(super) const RS256: i64 = -257;

/// Authenticator data, taken apart.
#[derive(Debug)]
pub(super) struct AuthenticatorData<'a> {
    pub(super) rp_id_hash: &'a [u8],
    flags: u8,
    pub(super) sign_count: u32,
    /// The credential that was made, in a registration.
    pub(super) credential: Option<(&'a [u8], PublicKey)>,
}

impl<'a> AuthenticatorData<'a> {
    /// Reads all of it; `None` where it is malformed or a byte is left over.
    pub(super) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (rp_id_hash, rest) = bytes.split_at_checked(32)?;
        let (flags, rest) = rest.split_first()?;
        let (sign_count, rest) = rest.split_first_chunk::<4>()?;
        let (credential, rest) = if flags & HAS_CREDENTIAL == 0 {
            (None, rest)
        } else {
            // Section 6.5.1: AAGUID, length, credential id, key.
            let (_, rest) = rest.split_at_checked(16)?;
            let (length, rest) = rest.split_first_chunk::<2>()?;
            let length = usize::from(u16::from_be_bytes(*length));
            let (id, rest) = rest.split_at_checked(length)?;
            if !(1..=LONGEST_CREDENTIAL_ID).contains(&length) {
                return None;
            }
            let mut reader = Reader::new(rest);
            let key = cose_key(&mut reader)?;
            (Some((id, key)), reader.rest())
        };
        let rest = if flags & HAS_EXTENSIONS == 0 {
            rest
        } else {
            let mut reader = Reader::new(rest);
            map_of_texts(&mut reader, |_, reader| reader.skip())?;
            reader.rest()
        };
        let sign_count = u32::from_be_bytes(*sign_count);
        rest.is_empty().then_some(Self { rp_id_hash, flags: *flags, sign_count, credential })
    }

    pub(super) const fn user_present(&self) -> bool {
        self.flags & USER_PRESENT != 0
    }

    pub(super) const fn user_verified(&self) -> bool {
        self.flags & USER_VERIFIED != 0
    }

    pub(super) const fn is_syncable(&self) -> bool {
        self.flags & BACKUP_ELIGIBLE != 0
    }

    pub(super) const fn is_synced(&self) -> bool {
        self.flags & BACKED_UP != 0
    }
}

/// The authenticator data of an attestation object. Its statement is not looked at: attestation is asked for as `none`, and
/// what another format claims of the authenticator is believed by nobody here.
pub(super) fn attested_data(object: &[u8]) -> Option<&[u8]> {
    let mut reader = Reader::new(object);
    let (mut format, mut data, mut has_statement) = (None, None, false);
    map_of_texts(&mut reader, |key, reader| {
        match key {
            "fmt" => format = Some(reader.text()?),
            "authData" => data = Some(reader.bytes()?),
            "attStmt" => {
                // Section 8.7: the statement of `none` is an empty map.
                if format == Some("none") && reader.map()? != 0 {
                    return None;
                }
                if format != Some("none") {
                    reader.skip()?;
                }
                has_statement = true;
            }
            _ => reader.skip()?,
        }
        Some(())
    })?;
    format?;
    data.filter(|_| has_statement && reader.rest().is_empty())
}

/// Reads a COSE key (RFC 9052, section 7) of one of the algorithms that were asked for.
fn cose_key(reader: &mut Reader<'_>) -> Option<PublicKey> {
    let (mut kind, mut algorithm, mut curve) = (None, None, None);
    let (mut x, mut y, mut modulus, mut exponent) = (None, None, None, None);
    map_of_integers(reader, |label, reader| {
        // Labels below 0 mean different things for each type, which stands before them (CTAP2 canonical order).
        match (label, kind) {
            (1, _) => kind = Some(reader.integer()?),
            (3, _) => algorithm = Some(reader.integer()?),
            (-1, Some(RSA)) => modulus = Some(reader.bytes()?),
            (-2, Some(RSA)) => exponent = Some(reader.bytes()?),
            (-1, Some(EC2 | OKP)) => curve = Some(reader.integer()?),
            (-2, Some(EC2 | OKP)) => x = Some(reader.bytes()?),
            (-3, Some(EC2)) => y = Some(reader.bytes()?),
            _ => reader.skip()?,
        }
        Some(())
    })?;
    match (kind?, algorithm?, curve) {
        (EC2, ES256, Some(P256)) => PublicKey::p256(x?, y?),
        (OKP, EDDSA, Some(ED25519)) => PublicKey::ed25519(x?),
        (RSA, RS256, None) => PublicKey::rsa(modulus?, exponent?),
        _ => None,
    }
}
