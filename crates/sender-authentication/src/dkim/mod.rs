//! DKIM (RFC 6376, with 8301, 8463 and 8616): signatures read, verified and made, and the keys they are made with.

mod canonical;
mod key;
mod record;
mod rotation;
mod sign;
mod signature;
mod verify;

pub use canonical::{BodyDigests, BodyHasher};
pub use key::{KeyError, KeyKind, SigningKey};
pub use record::{KeyRecord, RecordError};
pub use rotation::{KeyState, KeyStep, KeyStore, KeyStoreError, RotationPolicy, StoredKey, next_steps};
pub use sign::{SignError, Signer};
pub use signature::{Algorithm, Canonicalization, Signature, SignatureError};
pub use verify::{DkimFault, DkimOutcome, DkimResult, SIGNATURES_MAX, verify};
