//! Checkpoints in CouchDB's form: `_local/ID` at both ends, so that a replication goes on where the newest one that both
//! ends agree on was written, no matter by which end.

use serde_json::{Map, Value, json};

use crate::count::Counts;

/// The version of the names of checkpoints.
const NAME_VERSION: u64 = 4;

/// Sessions that a checkpoint remembers, as in CouchDB.
const HISTORY_MAX: usize = 50;

/// What both ends know of earlier sessions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    /// Where the next session begins; `None` at the first change.
    pub sequence: Option<String>,
    /// What they agree on of earlier sessions, newest first.
    pub sessions: Vec<Value>,
}

impl History {
    /// What two checkpoints have in common. CouchDB: `couch_replicator_scheduler_job:compare_replication_logs`.
    #[must_use]
    pub fn common(source: Option<&Value>, target: Option<&Value>) -> Self {
        let (Some(source), Some(target)) = (source, target) else { return Self::default() };
        let session = |log: &Value| log.get("session_id").and_then(Value::as_str).map(str::to_owned);
        let sessions =
            |log: &Value| log.get("history").and_then(Value::as_array).cloned().unwrap_or_default();
        let (of_source, of_target) = (sessions(source), sessions(target));
        if session(source).is_some() && session(source) == session(target) {
            let reached = |log: &Value| log.get("source_last_seq").and_then(sequence_text);
            // Both wrote of the same session; who was broken off in between has written of less.
            let sequence = match (reached(source), reached(target)) {
                (Some(source), Some(target)) => Some(earlier(source, target)),
                _ => None,
            };
            return Self { sequence, sessions: of_target };
        }
        for (place, entry) in of_target.iter().enumerate() {
            let Some(id) = session(entry) else { continue };
            let Some(same) = of_source.iter().find(|other| session(other).as_deref() == Some(&*id)) else {
                continue;
            };
            let recorded = |entry: &Value| entry.get("recorded_seq").and_then(sequence_text);
            if let (Some(source), Some(target)) = (recorded(same), recorded(entry)) {
                let sessions = of_target.get(place..).unwrap_or_default().to_vec();
                return Self { sequence: Some(earlier(source, target)), sessions };
            }
        }
        Self::default()
    }
}

/// One session, as a checkpoint tells of it.
#[derive(Clone, Debug)]
pub struct Session {
    /// A number that no other session has.
    pub id: String,
    /// When it began, as HTTP writes times.
    pub started: String,
    /// Where it began.
    pub began_at: Option<String>,
    /// What went before.
    pub earlier: Vec<Value>,
}

impl Session {
    /// The checkpoint that is written when everything up to `reached` is at the target.
    #[must_use]
    pub fn checkpoint(&self, reached: &str, now: &str, counts: &Counts) -> Value {
        let mut entry = Map::new();
        let mut put = |name: &str, value: Value| {
            entry.insert(name.to_owned(), value);
        };
        put("session_id", self.id.as_str().into());
        put("start_time", self.started.as_str().into());
        put("end_time", now.into());
        put("start_last_seq", self.began_at.as_deref().map_or_else(|| 0.into(), Value::from));
        put("end_last_seq", reached.into());
        put("recorded_seq", reached.into());
        for (name, value) in counts.of_history() {
            put(name, value.into());
        }
        let mut history = vec![Value::Object(entry)];
        history.extend(self.earlier.iter().take(HISTORY_MAX - 1).cloned());
        json!({
            "session_id": self.id,
            "source_last_seq": reached,
            "replication_id_version": NAME_VERSION,
            "history": history,
        })
    }
}

/// A sequence as a client gives it back. CouchDB's are texts, or arrays in old clusters; PouchDB's are numbers.
#[must_use]
pub(crate) fn sequence_text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// The number that a sequence begins with.
#[must_use]
pub(crate) fn sequence_number(sequence: &str) -> u64 {
    let digits = sequence.trim_start_matches(['"', '[']);
    let end = digits.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(digits.len());
    digits.get(..end).and_then(|digits| digits.parse().ok()).unwrap_or_default()
}

fn earlier(one: String, other: String) -> String {
    if sequence_number(&other) < sequence_number(&one) { other } else { one }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    fn session(id: &str, began_at: Option<&str>, earlier: Vec<Value>) -> Session {
        Session { id: id.into(), started: "then".into(), began_at: began_at.map(str::to_owned), earlier }
    }

    #[test]
    fn a_session_goes_on_at_the_newest_checkpoint_that_both_ends_have() {
        let counts = Counts::default();
        let first = session("a", None, Vec::new()).checkpoint("10-x", "t", &counts);
        let common = History::common(Some(&first), Some(&first));
        assert_eq!(common.sequence.as_deref(), Some("10-x"));
        // The next session reached 20 at the source, and was broken off before the target was written to.
        let next = session("b", Some("10-x"), common.sessions.clone()).checkpoint("20-y", "t", &counts);
        assert_eq!(History::common(Some(&next), Some(&first)).sequence.as_deref(), Some("10-x"));
        assert_eq!(History::common(Some(&first), Some(&next)).sequence.as_deref(), Some("10-x"));
        // Within one session, the lower one counts.
        let later = session("b", Some("10-x"), common.sessions).checkpoint("30-z", "t", &counts);
        assert_eq!(History::common(Some(&later), Some(&next)).sequence.as_deref(), Some("20-y"));
        // Nothing in common, or nothing at all: from the first change.
        let other = session("c", None, Vec::new()).checkpoint("99-q", "t", &counts);
        assert_eq!(History::common(Some(&later), Some(&other)), History::default());
        assert_eq!(History::common(None, Some(&other)), History::default());
        for nonsense in [json!({}), json!({"history": 1}), json!({"session_id": "b", "history": [null, 3]})] {
            assert_eq!(History::common(Some(&nonsense), Some(&later)).sequence, None, "{nonsense}");
        }
    }

    #[test]
    fn a_checkpoint_remembers_fifty_sessions() {
        let mut sessions = Vec::new();
        for number in 0..80 {
            let checkpoint =
                session(&number.to_string(), None, sessions).checkpoint("1-a", "t", &Counts::default());
            sessions = checkpoint.get("history").unwrap().as_array().unwrap().clone();
        }
        assert_eq!(sessions.len(), HISTORY_MAX);
        assert_eq!(sessions.first().unwrap().get("session_id").unwrap(), "79");
    }

    #[test]
    fn sequences_of_all_servers_have_a_number() {
        for (sequence, number) in [("12-abc", 12), ("7", 7), ("[5,\"x\"]", 5), ("now", 0), ("", 0)] {
            assert_eq!(sequence_number(sequence), number, "{sequence}");
        }
        assert_eq!(sequence_text(&json!(7)).as_deref(), Some("7"));
        assert_eq!(sequence_text(&json!([5, "x"])).as_deref(), Some("[5,\"x\"]"));
        assert_eq!(sequence_text(&Value::Null), None);
    }
}
