//! Who comes in: every credential by every protocol in every state, the exchanges that prove it, and bytes of strangers.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod app_passwords;
mod hostile;
mod oidc;
mod passkeys;
mod people;
mod sasl;
mod second_factors;
mod stored;
mod table;
mod tokens;
