//! The server's side of SCRAM.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};

use super::message::{ClientFirst, Flag, client_final, client_first};
use super::{ScramAccount, ScramKeys, ScramProof};
use crate::names::prepare_name;
use crate::sasl::{ChannelBindings, ExchangeError};
use crate::secret::{SecretBytes, random, same};

/// Random bytes of the server's part of the nonce.
const NONCE_BYTES: usize = 18;

/// An exchange, by what it waits for.
#[derive(Debug)]
pub(in crate::sasl) struct ScramServer {
    /// Whether this is SCRAM-SHA-256-PLUS.
    plus: bool,
    bindings: ChannelBindings,
    state: State,
}

#[derive(Debug)]
enum State {
    Fresh,
    /// The client has said who it is; its keys are awaited.
    Named(ClientFirst),
    /// The server has sent its first message.
    Challenged {
        first: ClientFirst,
        server_first: String,
        nonce: String,
        account: ScramAccount,
    },
    Over,
}

/// The end of an exchange.
#[derive(Debug)]
pub(in crate::sasl) struct ScramVerdict {
    pub(in crate::sasl) name: String,
    pub(in crate::sasl) act_as: Option<String>,
    pub(in crate::sasl) proof: ScramProof,
    /// What the server sends where the person comes in: `v=` with its signature, by which the client knows it.
    pub(in crate::sasl) server_final: String,
}

impl ScramServer {
    pub(in crate::sasl) const fn new(plus: bool, bindings: ChannelBindings) -> Self {
        Self { plus, bindings, state: State::Fresh }
    }

    /// Takes the first message of the client; gives its name, prepared.
    pub(in crate::sasl) fn first(&mut self, message: &[u8]) -> Result<String, ExchangeError> {
        let State::Fresh = std::mem::replace(&mut self.state, State::Over) else {
            return Err(ExchangeError::Order);
        };
        let mut first = client_first(message)?;
        match first.flag {
            // RFC 5802, section 6: who says `y` where -PLUS was offered has been lied to.
            Flag::Could if !self.bindings.is_empty() => return Err(ExchangeError::Downgrade),
            Flag::Does(binding) if self.plus && self.bindings.get(binding).is_some() => {}
            Flag::Does(_) => return Err(ExchangeError::Binding),
            Flag::Cannot | Flag::Could if self.plus => return Err(ExchangeError::Binding),
            Flag::Cannot | Flag::Could => {}
        }
        first.name = prepare_name(&first.name).map_err(|_| ExchangeError::Name)?;
        let name = first.name.clone();
        self.state = State::Named(first);
        Ok(name)
    }

    /// Takes the keys of the name; gives the first message of the server.
    pub(in crate::sasl) fn account(&mut self, account: ScramAccount) -> Result<Vec<u8>, ExchangeError> {
        let nonce = STANDARD_NO_PAD.encode(random::<NONCE_BYTES>()?);
        self.account_with(account, &nonce)
    }

    fn account_with(&mut self, account: ScramAccount, server_nonce: &str) -> Result<Vec<u8>, ExchangeError> {
        let State::Named(first) = std::mem::replace(&mut self.state, State::Over) else {
            return Err(ExchangeError::Order);
        };
        let nonce = format!("{}{server_nonce}", first.nonce);
        let salt = STANDARD.encode(account.salt.salt.expose());
        let server_first = format!("r={nonce},s={salt},i={}", account.salt.iterations);
        let message = server_first.clone().into_bytes();
        self.state = State::Challenged { first, server_first, nonce, account };
        Ok(message)
    }

    /// Takes the last message of the client.
    pub(in crate::sasl) fn last(&mut self, message: &[u8]) -> Result<ScramVerdict, ExchangeError> {
        let State::Challenged { first, server_first, nonce, account } =
            std::mem::replace(&mut self.state, State::Over)
        else {
            return Err(ExchangeError::Order);
        };
        let last = client_final(message)?;
        if !same(last.nonce.as_bytes(), nonce.as_bytes()) {
            return Err(ExchangeError::Nonce);
        }
        let is_bound = self.check_binding(&first, &last.binding)?;
        // `AuthMessage` (RFC 5802, section 3)
        let auth_message = format!("{},{server_first},{}", first.bare, last.without_proof);
        // Every key is tried, and one where there are none, so that the time tells little.
        let (mut key, mut signature) = (None, nobody().server_signature(auth_message.as_bytes()));
        if account.keys.is_empty() {
            nobody().fits(auth_message.as_bytes(), &last.proof);
        }
        for (owner, keys) in account.keys {
            if keys.fits(auth_message.as_bytes(), &last.proof) && key.is_none() {
                signature = keys.server_signature(auth_message.as_bytes());
                key = Some(owner);
            }
        }
        Ok(ScramVerdict {
            name: first.name,
            act_as: first.act_as,
            proof: ScramProof { person_id: account.person_id, key, is_bound },
            server_final: format!("v={}", STANDARD.encode(signature)),
        })
    }

    /// `c=` is the header as it came and, with `p=`, the data of the binding (RFC 5802, section 7).
    fn check_binding(&self, first: &ClientFirst, shown: &[u8]) -> Result<bool, ExchangeError> {
        let (header, data) = shown.split_at_checked(first.gs2_header.len()).ok_or(ExchangeError::Binding)?;
        if header != first.gs2_header.as_bytes() {
            return Err(ExchangeError::Binding);
        }
        match first.flag {
            Flag::Does(binding) if self.bindings.fits(binding, data) => Ok(true),
            Flag::Cannot | Flag::Could if data.is_empty() => Ok(false),
            _ => Err(ExchangeError::Binding),
        }
    }
}

/// Keys that nobody has.
fn nobody() -> ScramKeys {
    ScramKeys { stored_key: SecretBytes::new([0; 32]), server_key: SecretBytes::new([0; 32]) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sasl::scram::{ScramKey, ScramSalt};

    /// The exchange of RFC 7677, section 3.
    #[test]
    fn the_exchange_of_the_rfc_is_accepted_byte_for_byte() {
        let salt = ScramSalt::with_salt(&STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap(), 4096);
        let keys = vec![(ScramKey::Password, salt.keys_of("pencil"))];
        let account = ScramAccount { salt, keys, person_id: Some("person:user".to_owned()) };
        let mut server = ScramServer::new(false, ChannelBindings::default());
        assert_eq!(server.first(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO").unwrap(), "user");
        let challenge = server.account_with(account, "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0").unwrap();
        assert_eq!(
            String::from_utf8(challenge).unwrap(),
            "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
        );
        let verdict = server
            .last(
                b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                  p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
            )
            .unwrap();
        assert_eq!(verdict.proof.key, Some(ScramKey::Password));
        assert_eq!(verdict.server_final, "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
    }
}
