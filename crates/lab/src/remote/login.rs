//! Controller and driver show each other that they know the token, and send it to nobody.

use blake3::Hash;
use rand::Rng;

/// What either side proves; the other side's proof is no answer to its own challenge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Controller,
    Driver,
}

/// A number that was never used before.
pub(super) fn challenge() -> String {
    let number: [u8; 16] = rand::rng().random();
    number.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What only who knows the token can tell of both challenges.
pub(super) fn proof(token: &str, side: Side, of_driver: &str, of_controller: &str) -> String {
    hash(token, side, of_driver, of_controller).to_hex().to_string()
}

/// Whether this is the right proof. It takes as long if it is nearly right.
pub(super) fn is_proof(given: &str, token: &str, side: Side, of_driver: &str, of_controller: &str) -> bool {
    Hash::from_hex(given).is_ok_and(|given| given == hash(token, side, of_driver, of_controller))
}

fn hash(token: &str, side: Side, of_driver: &str, of_controller: &str) -> Hash {
    let key = blake3::derive_key("scrinium lab 2026 token of a driver", token.as_bytes());
    blake3::keyed_hash(&key, format!("{side:?} {of_driver} {of_controller}").as_bytes())
}
