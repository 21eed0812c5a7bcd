//! Codes from an authenticator (TOTP, RFC 6238), and the recovery codes for who has lost it.

use data_encoding::BASE32_NOPAD;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use ring::hmac;
use serde::{Deserialize, Serialize};

use crate::secret::{RandomError, SecretBytes, random, same};

/// How codes are computed. Authenticators assume SHA-1, six digits and 30 seconds, whatever the URI says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TotpHash {
    /// HMAC-SHA-1, which RFC 4226, section 7, shows to be strong enough for this.
    Sha1,
    /// HMAC-SHA-256
    Sha256,
    /// HMAC-SHA-512
    Sha512,
}

/// Seconds of a step (RFC 6238, section 4.1).
pub const STEP_S: u64 = 30;

/// How many steps before and after the present one are accepted (RFC 6238, section 5.2, advises one).
const WINDOW_STEPS: u64 = 1;

/// The code of a step (RFC 6238, section 4.2, and RFC 4226, section 5.3), in six to eight digits.
#[must_use]
pub fn code_of_step(secret: &[u8], step: u64, digits: u32, hash: TotpHash) -> String {
    let algorithm = match hash {
        TotpHash::Sha1 => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
        TotpHash::Sha256 => hmac::HMAC_SHA256,
        TotpHash::Sha512 => hmac::HMAC_SHA512,
    };
    let tag = hmac::sign(&hmac::Key::new(algorithm, secret), &step.to_be_bytes());
    // Dynamic truncation: the last four bits say where four bytes are taken from, whose first bit is dropped.
    let offset = usize::from(tag.as_ref().last().copied().unwrap_or(0) & 0x0f);
    let bytes = tag.as_ref().get(offset..).and_then(<[u8]>::first_chunk::<4>).copied().unwrap_or([0; 4]);
    let number = u32::from_be_bytes(bytes) & 0x7fff_ffff;
    let digits = digits.clamp(6, 8);
    format!("{:0width$}", number % 10_u32.pow(digits), width = digits as usize)
}

/// The authenticator of a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Totp {
    secret: SecretBytes,
    hash: TotpHash,
    digits: u32,
    /// Whether a code was shown, so that the secret is known to be in the authenticator.
    pub(crate) confirmed: bool,
    /// The last step whose code was accepted: no code is accepted twice (RFC 6238, section 5.2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last_step: Option<u64>,
}

impl Totp {
    /// A fresh secret of 160 bits (RFC 4226, section 4, R6), not yet confirmed.
    ///
    /// # Errors
    /// [`RandomError`]
    pub fn make() -> Result<Self, RandomError> {
        Ok(Self::with_secret(&random::<20>()?))
    }

    /// One whose secret is known, not yet confirmed.
    #[must_use]
    pub fn with_secret(secret: &[u8]) -> Self {
        let secret = SecretBytes::new(secret);
        Self { secret, hash: TotpHash::Sha1, digits: 6, confirmed: false, last_step: None }
    }

    /// The secret in base32, for who types it.
    #[must_use]
    pub fn secret_text(&self) -> String {
        BASE32_NOPAD.encode(self.secret.expose())
    }

    /// The `otpauth://` URI that authenticators read from a QR code.
    #[must_use]
    pub fn uri(&self, issuer: &str, account: &str) -> String {
        let escaped = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let algorithm = match self.hash {
            TotpHash::Sha1 => "SHA1",
            TotpHash::Sha256 => "SHA256",
            TotpHash::Sha512 => "SHA512",
        };
        format!(
            "otpauth://totp/{issuer}:{account}?secret={secret}&issuer={issuer}&algorithm={algorithm}&digits={digits}&period={STEP_S}",
            issuer = escaped(issuer),
            account = escaped(account),
            secret = self.secret_text(),
            digits = self.digits,
        )
    }

    /// The step whose code this is, of those near `now_ms` that are later than the last accepted one. All of them are
    /// compared whichever fits.
    #[must_use]
    pub fn step_of(&self, code: &str, now_ms: u64) -> Option<u64> {
        let code: String = code.chars().filter(|letter| !letter.is_whitespace()).take(9).collect();
        let present = now_ms / 1000 / STEP_S;
        let mut found = None;
        for step in present.saturating_sub(WINDOW_STEPS)..=present.saturating_add(WINDOW_STEPS) {
            let fits = same(
                code_of_step(self.secret.expose(), step, self.digits, self.hash).as_bytes(),
                code.as_bytes(),
            );
            let fresh = self.last_step.is_none_or(|last| step > last);
            if fits && fresh && found.is_none() {
                found = Some(step);
            }
        }
        found
    }
}

/// How many recovery codes there are.
pub const RECOVERY_CODES: usize = 10;

/// The recovery codes of a person: 80 random bits each, stored as HMAC-SHA-256, each good for once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecoveryCodes {
    salt: SecretBytes,
    /// `None` where the code was used.
    hashes: Vec<Option<SecretBytes>>,
}

impl RecoveryCodes {
    /// Fresh ones, and their texts, which are shown once: `XXXX-XXXX-XXXX-XXXX` in base32.
    ///
    /// # Errors
    /// [`RandomError`]
    pub fn make() -> Result<(Self, Vec<String>), RandomError> {
        let salt = SecretBytes::new(random::<16>()?);
        let (mut hashes, mut texts) = (Vec::new(), Vec::new());
        for _ in 0..RECOVERY_CODES {
            let code = BASE32_NOPAD.encode(&random::<10>()?);
            hashes.push(Some(hash_of(&salt, &code)));
            texts.push(grouped(&code));
        }
        Ok((Self { salt, hashes }, texts))
    }

    /// Which unused code this is.
    #[must_use]
    pub fn place_of(&self, code: &str) -> Option<usize> {
        let code: String = code.chars().filter(|letter| !matches!(letter, '-' | ' ')).take(17).collect();
        let hash = hash_of(&self.salt, &code.to_ascii_uppercase());
        let mut found = None;
        for (place, stored) in self.hashes.iter().enumerate() {
            if stored.as_ref().is_some_and(|stored| *stored == hash) {
                found = Some(place);
            }
        }
        found
    }

    /// How many are left.
    #[must_use]
    pub fn left(&self) -> usize {
        self.hashes.iter().flatten().count()
    }

    /// Takes one away; `false` where it is gone already.
    pub(crate) fn spend(&mut self, place: usize) -> bool {
        self.hashes.get_mut(place).and_then(Option::take).is_some()
    }

    pub(crate) fn is_within_limits(&self) -> bool {
        self.hashes.len() <= RECOVERY_CODES
    }
}

fn hash_of(salt: &SecretBytes, code: &str) -> SecretBytes {
    let key = hmac::Key::new(hmac::HMAC_SHA256, salt.expose());
    SecretBytes::new(hmac::sign(&key, code.as_bytes()).as_ref())
}

fn grouped(code: &str) -> String {
    let mut text = String::new();
    for (place, letter) in code.chars().enumerate() {
        if place > 0 && place % 4 == 0 {
            text.push('-');
        }
        text.push(letter);
    }
    text
}
