//! What is stored of a person's credentials: one record in the directory's secret place, never in a document.
//!
//! The record is JSON with a version. What must happen to it after a log-in comes out of [`crate::Gate::decide`] as a list of
//! [`Change`]s, which [`StoredCredentials::apply`] makes under the caller's lock. A code that two log-ins show at the same
//! time is good for one of them: the other's change fails, and with it the log-in.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::app_password::{AppPassword, AppPasswordError, AppPasswordText, AppPasswords, NewAppPassword};
use crate::passkey::{MOST_PASSKEYS, Passkey, PasskeyError};
use crate::password::{HashedPassword, PasswordCredential, PasswordError, PasswordMark};
use crate::protocol::Protocol;
use crate::sasl::{ScramKey, ScramKeys, ScramSalt};
use crate::secret::{RandomError, SecretBytes, random};
use crate::totp::{RecoveryCodes, Totp};

/// The version that is written. A version that is not known is not read: an older server would lose what it does not know.
const VERSION: u32 = 1;

/// The longest record, in bytes: everything at its limit is a third of this.
const LONGEST_RECORD: usize = 256 * 1024;

/// How many providers' accounts a person may be linked to.
pub const MOST_LINKS: usize = 8;

/// Why a record cannot be read.
#[derive(Debug, Error)]
pub enum StoredError {
    /// It is not JSON of this form.
    #[error("the stored credentials cannot be read: {0}")]
    Form(#[from] serde_json::Error),
    /// A newer server wrote it.
    #[error("the stored credentials have version {0}; this server reads {VERSION}")]
    Version(u32),
    /// Something in it is longer or more than it may be, or a hash costs more.
    #[error("the stored credentials are beyond their limits: {0}")]
    Limits(&'static str),
}

/// Why a change cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ChangeError {
    /// Another log-in has used this code, or this passkey's counter, in the meantime.
    #[error("this proof was used already")]
    AlreadyUsed,
    /// The credential was revoked or removed in the meantime.
    #[error("this credential is gone")]
    Gone,
}

/// What a log-in changes in the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The code of this step was used.
    TotpStep(u64),
    /// The recovery code at this place was used.
    RecoveryCode(usize),
    /// A passkey was used.
    Passkey {
        /// Which.
        id: SecretBytes,
        /// What its authenticator counts now.
        sign_count: u32,
        /// Whether it is on several devices now.
        is_synced: bool,
        /// When.
        used_ms: u64,
    },
    /// An app password was used, and that was last noted some time ago.
    AppPassword {
        /// Which.
        id: String,
        /// When.
        used_ms: u64,
    },
}

impl Change {
    /// Whether the log-in may be answered only once this is stored: else the same proof would be good again after a crash.
    #[must_use]
    pub const fn must_be_stored_first(&self) -> bool {
        match self {
            Self::TotpStep(_) | Self::RecoveryCode(_) => true,
            Self::Passkey { sign_count, .. } => *sign_count > 0,
            Self::AppPassword { .. } => false,
        }
    }
}

/// An account at a provider that is the person's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProviderLink {
    /// The provider.
    pub issuer: String,
    /// What it calls the person for ever.
    pub subject: String,
}

impl ProviderLink {
    const fn is_within_limits(&self) -> bool {
        self.issuer.len() <= 2048 && self.subject.len() <= 255
    }
}

/// An app password that was made apart from its person's record ([`StoredCredentials::prepare_app_password`]).
#[derive(Clone, Debug)]
pub struct PreparedAppPassword {
    stored: AppPassword,
    salt: Option<ScramSalt>,
}

/// The credentials of a person.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StoredCredentials {
    #[serde(skip_serializing_if = "Option::is_none")]
    password: Option<PasswordCredential>,
    /// The salt of the person's SCRAM keys, of the password's and of all app passwords'.
    #[serde(skip_serializing_if = "Option::is_none")]
    scram: Option<ScramSalt>,
    app_passwords: AppPasswords,
    #[serde(skip_serializing_if = "Option::is_none")]
    totp: Option<Totp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    recovery: Option<RecoveryCodes>,
    passkeys: Vec<Passkey>,
    /// What authenticators know the person as.
    #[serde(skip_serializing_if = "Option::is_none")]
    handle: Option<SecretBytes>,
    links: Vec<ProviderLink>,
    /// How often all sessions were ended; see [`StoredCredentials::end_sessions`].
    #[serde(skip_serializing_if = "is_zero")]
    sessions_ended: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[derive(Serialize)]
struct WithVersion<'a> {
    version: u32,
    #[serde(flatten)]
    credentials: &'a StoredCredentials,
}

impl StoredCredentials {
    /// The record.
    ///
    /// # Errors
    /// [`StoredError::Form`], which cannot happen to what was made here.
    pub fn to_bytes(&self) -> Result<Vec<u8>, StoredError> {
        Ok(serde_json::to_vec(&WithVersion { version: VERSION, credentials: self })?)
    }

    /// Reads a record.
    ///
    /// # Errors
    /// [`StoredError`]
    pub fn from_bytes(record: &[u8]) -> Result<Self, StoredError> {
        if record.len() > LONGEST_RECORD {
            return Err(StoredError::Limits("the record"));
        }
        let mut fields: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(record)?;
        let version = fields.remove("version").and_then(|version| version.as_u64()).unwrap_or(0);
        match u32::try_from(version).unwrap_or(u32::MAX) {
            VERSION => {}
            other => return Err(StoredError::Version(other)),
        }
        let read: Self = serde_json::from_value(serde_json::Value::Object(fields))?;
        read.check_limits()?;
        Ok(read)
    }

    fn check_limits(&self) -> Result<(), StoredError> {
        let fine = [
            ("the password's hash", self.password.as_ref().is_none_or(|password| password.check().is_ok())),
            ("SCRAM's salt", self.scram.as_ref().is_none_or(ScramSalt::is_within_limits)),
            ("the recovery codes", self.recovery.as_ref().is_none_or(RecoveryCodes::is_within_limits)),
            ("the number of passkeys", self.passkeys.len() <= MOST_PASSKEYS),
            ("a passkey", self.passkeys.iter().all(Passkey::is_within_limits)),
            ("the number of links", self.links.len() <= MOST_LINKS),
            ("a link", self.links.iter().all(ProviderLink::is_within_limits)),
        ];
        fine.iter().find(|(_, fine)| !fine).map_or(Ok(()), |(what, _)| Err(StoredError::Limits(what)))
    }

    /// Sets the password: its hash and, where `iterations` says so, SCRAM's keys. Takes some 50 ms. The salt stays while
    /// valid app passwords have keys under it.
    ///
    /// # Errors
    /// [`PasswordError`]
    pub fn set_password(
        &mut self,
        password: &str,
        iterations: Option<u32>,
        now_ms: u64,
    ) -> Result<(), PasswordError> {
        let hashed = HashedPassword::make(password, self.salt_to_keep(now_ms), iterations)?;
        self.put_password(hashed, now_ms);
        Ok(())
    }

    /// The salt under which a new password's keys must be, so that app passwords go on with SCRAM.
    #[must_use]
    pub fn salt_to_keep(&self, now_ms: u64) -> Option<ScramSalt> {
        self.scram.clone().filter(|_| self.has_app_keys(now_ms))
    }

    /// Sets a password that was hashed before. Where app passwords have got another salt in the meantime, SCRAM has to wait
    /// until the password is seen again.
    pub fn put_password(&mut self, hashed: HashedPassword, now_ms: u64) {
        let HashedPassword { mut credential, salt } = hashed;
        if self.salt_to_keep(now_ms).is_some_and(|kept| salt.as_ref() != Some(&kept)) {
            credential.scram = None;
        } else if salt.is_some() {
            self.scram = salt;
        }
        self.password = Some(credential);
    }

    /// Stores the password as it is stored today, if it is still the one with this mark. No session ends by it.
    pub fn renew_password(&mut self, mark: &PasswordMark, hashed: HashedPassword, now_ms: u64) {
        let Some(before) = self.password.take_if(|password| password.mark() == *mark) else { return };
        self.put_password(hashed, now_ms);
        self.password = self.password.take().map(|password| password.in_place_of(&before));
    }

    /// Ends all sessions from before, for good: their keeper mixes [`Self::session_mark`] into what it signs.
    pub const fn end_sessions(&mut self) {
        self.sessions_ended = self.sessions_ended.wrapping_add(1);
    }

    /// What sessions are bound to: it is another one once the password or the second factor is another, or all sessions were ended.
    #[must_use]
    pub fn session_mark(&self) -> Vec<u8> {
        let mut mark = self.sessions_ended.to_le_bytes().to_vec();
        mark.push(u8::from(self.has_second_factor()));
        mark.extend(self.password.iter().flat_map(|password| password.mark().bytes().to_vec()));
        mark
    }

    fn has_app_keys(&self, now_ms: u64) -> bool {
        self.app_passwords.iter().any(|password| password.scram.is_some() && password.is_valid(now_ms))
    }

    /// Takes over an argon2id hash that was made elsewhere. There are no keys for SCRAM until the password is seen.
    ///
    /// # Errors
    /// [`PasswordError::Hash`]
    pub fn take_over_password(&mut self, phc: &str) -> Result<(), PasswordError> {
        self.password = Some(PasswordCredential::take_over(phc)?);
        Ok(())
    }

    /// Takes the password away: the person comes in by other means.
    pub fn remove_password(&mut self) {
        self.password = None;
    }

    /// The password, as it is stored.
    #[must_use]
    pub const fn password(&self) -> Option<&PasswordCredential> {
        self.password.as_ref()
    }

    /// Makes an app password. Its text is shown once and not kept. With `iterations` it has keys for SCRAM, where a protocol in
    /// its scope uses that, which takes some 30 ms.
    ///
    /// # Errors
    /// [`AppPasswordError`]
    pub fn create_app_password(
        &mut self,
        new: NewAppPassword<'_>,
        iterations: Option<u32>,
        now_ms: u64,
    ) -> Result<AppPasswordText, AppPasswordError> {
        let (made, text) = self.prepare_app_password(new, iterations, now_ms)?;
        self.put_app_password(made, now_ms)?;
        Ok(text)
    }

    /// Makes an app password apart from the record, which takes as long as SCRAM's keys do: nobody who waits for the record has to
    /// wait for that.
    ///
    /// # Errors
    /// [`AppPasswordError`]
    pub fn prepare_app_password(
        &self,
        new: NewAppPassword<'_>,
        iterations: Option<u32>,
        now_ms: u64,
    ) -> Result<(PreparedAppPassword, AppPasswordText), AppPasswordError> {
        let salt = match (&self.scram, iterations) {
            (_, None) => None,
            (Some(salt), Some(_)) => Some(salt.clone()),
            (None, Some(iterations)) => Some(ScramSalt::make(iterations)?),
        };
        let (stored, text) = self.app_passwords.make(new, salt.as_ref(), now_ms)?;
        Ok((PreparedAppPassword { stored, salt }, text))
    }

    /// Takes an app password that was made apart. Where the salt is another one by now, it works without SCRAM.
    ///
    /// # Errors
    /// [`AppPasswordError`]
    pub fn put_app_password(
        &mut self,
        made: PreparedAppPassword,
        now_ms: u64,
    ) -> Result<(), AppPasswordError> {
        let PreparedAppPassword { mut stored, salt } = made;
        if self.scram.is_some() && self.scram != salt {
            stored.scram = None;
        }
        self.app_passwords.put(stored, now_ms)?;
        if self.scram.is_none() {
            self.scram = salt;
        }
        Ok(())
    }

    /// Gives an app password another name.
    ///
    /// # Errors
    /// [`AppPasswordError::Name`] and [`AppPasswordError::Unknown`]
    pub fn rename_app_password(&mut self, id: &str, name: &str) -> Result<(), AppPasswordError> {
        self.app_passwords.rename(id, name)
    }

    /// Revokes an app password. It stays in the list, for the record.
    ///
    /// # Errors
    /// [`AppPasswordError::Unknown`]
    pub fn revoke_app_password(&mut self, id: &str, now_ms: u64) -> Result<(), AppPasswordError> {
        self.app_passwords.revoke(id, now_ms)
    }

    /// The app passwords, by their ids.
    pub fn app_passwords(&self) -> impl Iterator<Item = &AppPassword> {
        self.app_passwords.iter()
    }

    /// The app password with this id.
    #[must_use]
    pub fn app_password(&self, id: &str) -> Option<&AppPassword> {
        self.app_passwords.get(id)
    }

    /// Begins with an authenticator; it counts once a code was shown ([`Self::confirm_totp`]). One that is confirmed stays
    /// until then.
    ///
    /// # Errors
    /// [`RandomError`]
    pub fn begin_totp(&self) -> Result<Totp, RandomError> {
        Totp::make()
    }

    /// Takes the authenticator that was begun with, if this is its code, and makes recovery codes, which are shown once.
    ///
    /// # Errors
    /// [`RandomError`]; `Ok(None)` where the code is wrong.
    pub fn confirm_totp(
        &mut self,
        mut begun: Totp,
        code: &str,
        now_ms: u64,
    ) -> Result<Option<Vec<String>>, RandomError> {
        let Some(step) = begun.step_of(code, now_ms) else { return Ok(None) };
        let (recovery, texts) = RecoveryCodes::make()?;
        begun.confirmed = true;
        begun.last_step = Some(step);
        self.totp = Some(begun);
        self.recovery = Some(recovery);
        Ok(Some(texts))
    }

    /// Fresh recovery codes in place of those from before.
    ///
    /// # Errors
    /// [`RandomError`]
    pub fn renew_recovery_codes(&mut self) -> Result<Vec<String>, RandomError> {
        let (recovery, texts) = RecoveryCodes::make()?;
        self.recovery = Some(recovery);
        Ok(texts)
    }

    /// Takes the authenticator and the recovery codes away.
    pub fn remove_totp(&mut self) {
        self.totp = None;
        self.recovery = None;
    }

    /// The authenticator, once it is confirmed.
    #[must_use]
    pub fn totp(&self) -> Option<&Totp> {
        self.totp.as_ref().filter(|totp| totp.confirmed)
    }

    /// The recovery codes.
    #[must_use]
    pub const fn recovery(&self) -> Option<&RecoveryCodes> {
        self.recovery.as_ref()
    }

    /// What authenticators know the person as; made when it is first asked for.
    ///
    /// # Errors
    /// [`RandomError`]
    pub fn passkey_handle(&mut self) -> Result<[u8; 32], RandomError> {
        if let Some(known) =
            self.handle.as_ref().and_then(|handle| <[u8; 32]>::try_from(handle.expose()).ok())
        {
            return Ok(known);
        }
        let fresh = random::<32>()?;
        self.handle = Some(SecretBytes::new(fresh));
        Ok(fresh)
    }

    /// Adds a passkey that [`crate::passkey::verify_registration`] has checked.
    ///
    /// # Errors
    /// [`PasskeyError::Known`]
    pub fn add_passkey(&mut self, passkey: Passkey) -> Result<(), PasskeyError> {
        if self.passkeys.len() >= MOST_PASSKEYS || self.passkeys.iter().any(|known| known.id == passkey.id) {
            return Err(PasskeyError::Known);
        }
        self.passkeys.push(passkey);
        Ok(())
    }

    /// Takes a passkey away; `false` where there is none.
    pub fn remove_passkey(&mut self, id: &SecretBytes) -> bool {
        let before = self.passkeys.len();
        self.passkeys.retain(|passkey| passkey.id != *id);
        self.passkeys.len() < before
    }

    /// What authenticators know the person as, if any has been asked.
    #[must_use]
    pub const fn handle(&self) -> Option<&SecretBytes> {
        self.handle.as_ref()
    }

    /// The passkeys.
    #[must_use]
    pub fn passkeys(&self) -> &[Passkey] {
        &self.passkeys
    }

    /// Links an account at a provider; `false` where it is linked already, there are too many, or a name is too long.
    pub fn link(&mut self, link: ProviderLink) -> bool {
        let may = self.links.len() < MOST_LINKS && !self.links.contains(&link) && link.is_within_limits();
        if may {
            self.links.push(link);
        }
        may
    }

    /// Takes a link away.
    pub fn unlink(&mut self, link: &ProviderLink) {
        self.links.retain(|known| known != link);
    }

    /// The linked accounts.
    #[must_use]
    pub fn links(&self) -> &[ProviderLink] {
        &self.links
    }

    /// Whether the person has a second proof to show.
    #[must_use]
    pub fn has_second_factor(&self) -> bool {
        self.totp().is_some()
    }

    /// The salt of the person's SCRAM keys.
    pub(crate) const fn scram_salt(&self) -> Option<&ScramSalt> {
        self.scram.as_ref()
    }

    /// The keys by which SCRAM may let the person in by a protocol.
    pub(crate) fn scram_keys(&self, protocol: Protocol, now_ms: u64) -> Vec<(ScramKey, ScramKeys)> {
        let main = self.password.as_ref().and_then(|password| password.scram.clone());
        let usable = self.app_passwords.iter().filter(|password| password.is_for(protocol, now_ms));
        let of_apps = usable.filter_map(|password| {
            password.scram.clone().map(|keys| (ScramKey::AppPassword(password.id.clone()), keys))
        });
        main.map(|keys| (ScramKey::Password, keys)).into_iter().chain(of_apps).collect()
    }

    /// Makes a change that a log-in asks for.
    ///
    /// # Errors
    /// [`ChangeError`]; nothing is changed then, and the log-in has failed.
    pub fn apply(&mut self, change: &Change) -> Result<(), ChangeError> {
        match change {
            Change::TotpStep(step) => {
                let totp = self.totp.as_mut().ok_or(ChangeError::Gone)?;
                if totp.last_step.is_some_and(|last| *step <= last) {
                    return Err(ChangeError::AlreadyUsed);
                }
                totp.last_step = Some(*step);
            }
            Change::RecoveryCode(place) => {
                let codes = self.recovery.as_mut().ok_or(ChangeError::Gone)?;
                if !codes.spend(*place) {
                    return Err(ChangeError::AlreadyUsed);
                }
            }
            Change::Passkey { id, sign_count, is_synced, used_ms } => {
                let passkey =
                    self.passkeys.iter_mut().find(|passkey| passkey.id == *id).ok_or(ChangeError::Gone)?;
                if *sign_count <= passkey.sign_count && (*sign_count, passkey.sign_count) != (0, 0) {
                    return Err(ChangeError::AlreadyUsed);
                }
                passkey.sign_count = *sign_count;
                passkey.is_synced = *is_synced;
                passkey.used_ms = Some(*used_ms);
            }
            Change::AppPassword { id, used_ms } => {
                let password = self.app_passwords.get_mut(id).ok_or(ChangeError::Gone)?;
                if !password.is_valid(*used_ms) {
                    return Err(ChangeError::Gone);
                }
                password.used_ms = Some(*used_ms).max(password.used_ms);
            }
        }
        Ok(())
    }
}
