//! Who was answered, and until when they get no other answer: in `_local` documents of the mail file, each for a share of the senders,
//! so that noting one costs the same however many there are.

use std::collections::BTreeMap;
use std::sync::Arc;

use scrinium_database::{Access, Database, DatabaseError};
use scrinium_sieve::VacationReply;
use serde::{Deserialize, Serialize};

/// Who keeps that.
static KEEPER: Access = Access::of_the_server("remembering who was answered");

/// Senders of one document whose time is not over. Where there are more, others are not answered.
const SENDERS_MAX: usize = 200;

#[derive(Default, Serialize, Deserialize)]
struct Answered {
    /// By a digest of the reply's key and the address.
    #[serde(default)]
    senders: BTreeMap<String, Answer>,
}

#[derive(Serialize, Deserialize)]
struct Answer {
    /// Seconds since 1970.
    until_s: u64,
    /// The message that was answered.
    message: String,
}

/// Whether a reply to `message` is to be sent; if so, that it was is durable when this returns. A message that comes once more, after
/// a crash, gets the same answer as before.
pub(crate) fn note_answer(
    database: &Arc<Database>,
    reply: &VacationReply,
    (message, now_s): (&str, u64),
) -> Result<bool, DatabaseError> {
    let mut hasher = blake3::Hasher::new_derive_key("scrinium 2026 sender who was answered");
    for part in [reply.key.as_str(), &reply.to.to_lowercase()] {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
    }
    let digest = hasher.finalize().to_hex();
    let sender: String = digest.chars().take(32).collect();
    let share: String = digest.chars().take(2).collect();
    let id = format!("_local/sieve-answered-{share}");
    let mut answered: Answered = match database.read_local(&id, &KEEPER) {
        Ok(document) => {
            let value = document.json.to_value().unwrap_or_default();
            serde_json::from_value(value).unwrap_or_default()
        }
        Err(DatabaseError::NotFound { .. }) => Answered::default(),
        Err(error) => return Err(error),
    };
    if let Some(before) = answered.senders.get(&sender).filter(|before| before.until_s > now_s) {
        return Ok(before.message == message);
    }
    answered.senders.retain(|_, answer| answer.until_s > now_s);
    if answered.senders.len() >= SENDERS_MAX {
        return Ok(false);
    }
    let until_s = now_s.saturating_add(reply.period_seconds);
    answered.senders.insert(sender, Answer { until_s, message: message.to_owned() });
    let json = serde_json::to_vec(&answered)
        .map_err(|error| DatabaseError::Internal { reason: error.to_string() })?;
    database.write_local(&id, &json, false, None, &KEEPER)?.wait()?;
    Ok(true)
}
