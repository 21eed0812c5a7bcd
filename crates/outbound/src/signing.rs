//! Messages that leave are signed in the name of their author's domain (DKIM, RFC 6376), if it is one of this server.

mod keeper;
mod key_folder;

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::RwLock;
use scrinium_sender_authentication::dkim::Signer;
use scrinium_sender_authentication::{Authors, DomainName, Head, MessageReader, ReadMessage};

use crate::courier::TextSource;

pub use keeper::{KeyKeeper, PublishedKey};
pub use key_folder::KeyFolder;

/// Those who sign, by domain. Clones share them.
#[derive(Clone, Default)]
pub struct Signing {
    signers: Arc<RwLock<HashMap<DomainName, Arc<Vec<Signer>>>>>,
}

impl Signing {
    /// Takes over who signs for a domain.
    pub(crate) fn replace(&self, domain: DomainName, signers: Vec<Signer>) {
        let mut all = self.signers.write();
        if signers.is_empty() {
            all.remove(&domain);
        } else {
            all.insert(domain, Arc::new(signers));
        }
    }

    /// A message with its signatures in front, if somebody signs for its author. One that cannot be read to its end is given back as it
    /// is: the one who sends it finds out.
    pub(crate) async fn signed(&self, text: &TextSource, now_ms: u64) -> TextSource {
        if self.signers.read().is_empty() {
            return text.clone();
        }
        let mut reader = MessageReader::default();
        let mut offset = 0;
        loop {
            let Ok(piece) = text.piece(offset).await else { return text.clone() };
            if piece.is_empty() {
                break;
            }
            offset += piece.len() as u64;
            reader.update(&piece);
        }
        let (signing, message) = (self.clone(), reader.finish());
        // A private key works for a millisecond.
        let fields = tokio::task::spawn_blocking(move || signing.fields(&message, now_ms / 1000)).await;
        match fields {
            Ok(fields) if !fields.is_empty() => text.clone().with_beginning(Bytes::from(fields)),
            _ => text.clone(),
        }
    }

    /// The signatures of a message.
    fn fields(&self, message: &ReadMessage, now_seconds: u64) -> String {
        let head = Head::parse(&message.head);
        let authors = Authors::of(&head);
        let Some(domain) = authors.single() else { return String::new() };
        let Some(signers) = self.signers.read().get(domain).cloned() else { return String::new() };
        let mut fields = String::new();
        for signer in signers.iter() {
            match signer.sign(&head, &message.digests, now_seconds) {
                Ok(field) => fields.push_str(&field),
                Err(error) => {
                    tracing::warn!(%domain, selector = signer.selector, %error, "a message goes out without a signature");
                }
            }
        }
        fields
    }
}
