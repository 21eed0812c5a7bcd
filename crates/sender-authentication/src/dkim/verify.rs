//! Signatures of a message, verified (RFC 6376 §6).

use std::collections::HashMap;
use std::fmt;

use ring::digest::{SHA256, digest};
use ring::signature::{ED25519, RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY, UnparsedPublicKey};

use crate::dns::{Answer, Answers, Missing, Question};
use crate::head::{Field, Head};
use crate::name::DomainName;

use super::canonical::{BodyDigests, canonical_field, relaxed};
use super::key::KeyKind;
use super::record::{KeyRecord, RecordError};
use super::signature::{Algorithm, Canonicalization, Claim, Signature, SignatureError, without_signature};

/// Signatures of one message that are looked at, from the top; each may cost a question and a verification.
pub const SIGNATURES_MAX: usize = 10;

/// Fields that a message has once at most (RFC 5322 §3.6, RFC 2045 §3), and that its reader sees or its reader's program acts on.
const SINGLE_FIELDS: [&str; 13] = [
    "from",
    "sender",
    "reply-to",
    "to",
    "cc",
    "date",
    "subject",
    "message-id",
    "in-reply-to",
    "references",
    "mime-version",
    "content-type",
    "content-transfer-encoding",
];

/// What came of a signature (RFC 8601 §2.7.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DkimResult {
    /// The domain vouches for the message.
    Pass,
    /// The signature is not that of this message, or has ended.
    Fail,
    /// It may be right, and is not accepted here.
    Policy,
    /// It cannot be read, or its domain says that it is only trying.
    Neutral,
    /// DNS did not answer.
    TempError,
    /// There is no key, or none that can be used.
    PermError,
}

impl fmt::Display for DkimResult {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Policy => "policy",
            Self::Neutral => "neutral",
            Self::TempError => "temperror",
            Self::PermError => "permerror",
        })
    }
}

/// Why a signature does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DkimFault {
    /// The field itself.
    #[error(transparent)]
    Signature(#[from] SignatureError),
    /// The key's record.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// RFC 6376 §6.1.2: DNS has no key of this name.
    #[error("there is no such key in DNS")]
    NoKey,
    /// RFC 6376 §3.6.2.2: what several records mean is not defined.
    #[error("DNS has several records for the key")]
    SeveralKeys,
    /// RFC 6376 §6.1.2: DNS did not answer.
    #[error("DNS did not say whether there is a key")]
    Dns,
    /// RFC 6376 §6.1.3: the body is not what was signed.
    #[error("the body has been changed")]
    Body,
    /// RFC 6376 §6.1.3: the fields are not what was signed.
    #[error("the header has been changed, or the key is another")]
    Fields,
    /// RFC 6376 §3.5: `x=` is over.
    #[error("the signature has expired")]
    Expired,
    /// RFC 6376 §3.6.1: the key has `t=s`, and `i=` is a subdomain.
    #[error("the key is not for subdomains")]
    Strict,
    /// RFC 6376 §6.1.2: the key is of another kind than the signature.
    #[error("the key is of another kind than the signature")]
    Kind,
    /// RFC 5322 §3.6, RFC 6376 §8.15: two From fields, of which a reader may see either.
    #[error("there are several From fields")]
    SeveralFrom,
    /// RFC 6376 §8.15: a field that may be there once was added to what was signed.
    #[error("there is a {0} field that is not signed next to the one that is")]
    ExtraField(&'static str),
    /// The header is larger than what is looked at.
    #[error("the header is too large")]
    Head,
}

impl DkimFault {
    fn result(self) -> DkimResult {
        match self {
            Self::Dns => DkimResult::TempError,
            Self::Body | Self::Fields | Self::Expired | Self::Strict => DkimResult::Fail,
            Self::SeveralFrom
            | Self::ExtraField(_)
            | Self::Head
            | Self::Record(RecordError::Short)
            | Self::Signature(SignatureError::PartOfBody | SignatureError::Sha1) => DkimResult::Policy,
            Self::Signature(SignatureError::FromNotSigned)
            | Self::NoKey
            | Self::SeveralKeys
            | Self::Kind
            | Self::Record(_) => DkimResult::PermError,
            Self::Signature(_) => DkimResult::Neutral,
        }
    }
}

/// What came of one signature, and whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DkimOutcome {
    /// What came of it.
    pub result: DkimResult,
    /// Why it does not pass.
    pub fault: Option<DkimFault>,
    /// `d=`
    pub domain: Option<DomainName>,
    /// `s=`
    pub selector: Option<String>,
    /// `a=`
    pub algorithm: Option<Algorithm>,
    /// The first letters of `b=`, which tell signatures of one domain apart (RFC 6008).
    pub signature_start: Option<String>,
}

/// Verifies the signatures of a message, from the top, at `now_seconds` since 1970.
///
/// # Errors
/// [`Missing`]: a key that has to be asked for.
pub fn verify(
    head: &Head<'_>,
    digests: &BodyDigests,
    now_seconds: u64,
    answers: &Answers,
) -> Result<Vec<DkimOutcome>, Missing> {
    let check = Check { head, digests, now_seconds, answers };
    let mut prepared = Vec::new();
    for field in head.named("DKIM-Signature").take(SIGNATURES_MAX) {
        // All keys are there before anything is computed, so nothing is computed twice.
        let signature = check.prepare(field)?;
        prepared.push((field, signature));
    }
    Ok(prepared.into_iter().map(|(field, prepared)| check.outcome(field, prepared)).collect())
}

type Prepared = (Option<Signature>, Result<KeyRecord, DkimFault>);

struct Check<'a> {
    head: &'a Head<'a>,
    digests: &'a BodyDigests,
    now_seconds: u64,
    answers: &'a Answers,
}

impl Check<'_> {
    /// Everything but the verification itself.
    fn prepare(&self, field: &Field<'_>) -> Result<Prepared, Missing> {
        let signature = match Signature::parse(field.value) {
            Ok(signature) => signature,
            Err(error) => return Ok((None, Err(error.into()))),
        };
        let key = match self.own_fault(&signature) {
            Some(fault) => Err(fault),
            None => self.key(&signature)?,
        };
        Ok((Some(signature), key))
    }

    /// What is wrong with a signature without its key.
    fn own_fault(&self, signature: &Signature) -> Option<DkimFault> {
        if self.head.is_cut {
            return Some(DkimFault::Head);
        }
        if self.digests.of_form(signature.body_form) != signature.body_digest {
            return Some(DkimFault::Body);
        }
        if signature.expires_seconds.is_some_and(|end| end <= self.now_seconds) {
            return Some(DkimFault::Expired);
        }
        self.added_field(signature)
    }

    /// A field that may be there once, is signed, and is there more often than it is signed.
    fn added_field(&self, signature: &Signature) -> Option<DkimFault> {
        for name in SINGLE_FIELDS {
            let found = self.head.named(name).count();
            let signed = signature.signed_names.iter().filter(|signed| *signed == name).count();
            if found > 1 && name == "from" {
                return Some(DkimFault::SeveralFrom);
            }
            if found > 1 && (1..found).contains(&signed) {
                return Some(DkimFault::ExtraField(name));
            }
        }
        None
    }

    fn key(&self, signature: &Signature) -> Result<Result<KeyRecord, DkimFault>, Missing> {
        let Some(name) = signature.key_name() else { return Ok(Err(DkimFault::NoKey)) };
        let records = match self.answers.get(Question::Texts(name))? {
            Answer::Texts(records) => records,
            Answer::NoSuchName | Answer::NoRecords => return Ok(Err(DkimFault::NoKey)),
            _ => return Ok(Err(DkimFault::Dns)),
        };
        let record = match records.as_slice() {
            [record] => record,
            _ => return Ok(Err(DkimFault::SeveralKeys)),
        };
        Ok(KeyRecord::parse(record).map_err(DkimFault::from))
    }

    fn outcome(&self, field: &Field<'_>, (signature, key): Prepared) -> DkimOutcome {
        let Some(signature) = signature else {
            let Claim { domain, selector } = Claim::of(field.value);
            let fault = key.err();
            let result = fault.map_or(DkimResult::Neutral, DkimFault::result);
            return DkimOutcome { result, fault, domain, selector, algorithm: None, signature_start: None };
        };
        let is_testing = key.as_ref().is_ok_and(|key| key.is_testing);
        let fault = key.and_then(|key| self.verified(field, &signature, &key)).err();
        let result = match fault {
            None => DkimResult::Pass,
            // RFC 6376 §3.6.1: a failure under a key with t=y is as if nothing had been signed.
            Some(_) if is_testing => DkimResult::Neutral,
            Some(fault) => fault.result(),
        };
        DkimOutcome {
            result,
            fault,
            signature_start: Some(signature_start(&signature.bytes)),
            domain: Some(signature.domain),
            selector: Some(signature.selector),
            algorithm: Some(signature.algorithm),
        }
    }

    fn verified(&self, field: &Field<'_>, signature: &Signature, key: &KeyRecord) -> Result<(), DkimFault> {
        let kind = match signature.algorithm {
            Algorithm::RsaSha256 => KeyKind::Rsa,
            Algorithm::Ed25519Sha256 => KeyKind::Ed25519,
        };
        if key.kind != kind {
            return Err(DkimFault::Kind);
        }
        let identity = signature.identity.rsplit_once('@').and_then(|(_, domain)| DomainName::parse(domain));
        if key.is_strict && identity.as_ref() != Some(&signature.domain) {
            return Err(DkimFault::Strict);
        }
        let mut data = signed_fields(self.head, &signature.signed_names, signature.fields_form);
        own_field(field, signature.fields_form, &mut data);
        let verified = match kind {
            KeyKind::Rsa => UnparsedPublicKey::new(&RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY, &key.key)
                .verify(&data, &signature.bytes),
            // RFC 8463 §3: what is signed is the digest.
            KeyKind::Ed25519 => UnparsedPublicKey::new(&ED25519, &key.key)
                .verify(digest(&SHA256, &data).as_ref(), &signature.bytes),
        };
        verified.map_err(|_| DkimFault::Fields)
    }
}

/// The fields that are signed, in their canonical form (RFC 6376 §5.4.2): of several with one name the last comes first.
pub(crate) fn signed_fields(head: &Head<'_>, names: &[String], form: Canonicalization) -> Vec<u8> {
    let mut data = Vec::with_capacity(2 << 10);
    let mut used: HashMap<&str, usize> = HashMap::new();
    for name in names {
        let place = used.entry(name).or_default();
        if let Some(field) = head.named(name).rev().nth(*place) {
            canonical_field(form, field, &mut data);
            *place += 1;
        }
    }
    data
}

/// The signature's own field, without what stands in `b=` and without a line end (RFC 6376 §3.7).
pub(crate) fn own_field(field: &Field<'_>, form: Canonicalization, data: &mut Vec<u8>) {
    let value = without_signature(field.value);
    match form {
        Canonicalization::Relaxed => relaxed(field.name, &value, data),
        Canonicalization::Simple => {
            let line = field.line();
            let before = line.len().saturating_sub(field.value.len());
            data.extend_from_slice(line.get(..before).unwrap_or_default());
            data.extend_from_slice(&value);
        }
    }
}

fn signature_start(bytes: &[u8]) -> String {
    use base64::Engine as _;
    let start = bytes.get(..6).unwrap_or(bytes);
    base64::engine::general_purpose::STANDARD_NO_PAD.encode(start)
}
