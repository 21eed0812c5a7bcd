//! Where somebody is signed in, and signing out there.

use std::io;
use std::sync::Arc;

use scrinium_directory::{OpenSession, Person, Revocations, Session, SessionOrigin};
use scrinium_http::CredentialRefusal;
use serde_json::{Value, json};

use super::{Grant, People};

impl People {
    /// The sessions of a person, as far as they were used since the start; `asking` is the one that asks.
    pub(super) fn sessions_shown(&self, person: &Person, asking: Option<&Grant>) -> Value {
        let current = asking.and_then(|grant| grant.session.as_ref()).map(|session| session.name);
        let shown = |session: &OpenSession| {
            json!({
                "id": session.id(), "begun_ms": session.begun_s * 1000, "used_ms": session.used_s * 1000,
                "address": session.address, "agent": session.agent, "current": current == Some(session.name),
            })
        };
        json!({"sessions": self.held_sessions(person).iter().map(shown).collect::<Vec<_>>()})
    }

    fn held_sessions(&self, person: &Person) -> Vec<OpenSession> {
        let now_s = self.clock.now_s();
        let holds = |session: &OpenSession| {
            session.ends_s > now_s && !self.revocations.holds(&session.name, &person.id, session.begun_s)
        };
        self.open_sessions.retain(&person.id, holds);
        self.open_sessions.of(&person.id)
    }

    /// Ends the session of this id.
    pub(super) async fn end_session(&self, person: &Person, id: &str) -> Result<(), CredentialRefusal> {
        let found = self.held_sessions(person).into_iter().find(|session| session.id() == id);
        let missing = || CredentialRefusal::NotFound("There is no such session.".to_owned());
        let OpenSession { name, begun_s, ends_s, .. } = found.ok_or_else(missing)?;
        let by = SessionOrigin::default();
        let person_id = person.id.clone();
        let session = Session { person_id, name, begun_s, issued_s: begun_s, by, ends_s, renew: false };
        let now_s = self.clock.now_s();
        self.revoking(move |revocations| revocations.add(&session, now_s)).await
    }

    /// Ends all sessions of a person. The one that asks goes on as another one: whether it has a second factor.
    pub(super) async fn end_other_sessions(
        &self,
        person: &Person,
        asking: Option<&Grant>,
    ) -> Result<(Value, Option<bool>), CredentialRefusal> {
        let held = self.end_sessions(person).await?;
        let session = asking.filter(|grant| grant.session.is_some());
        let ended = held.saturating_sub(usize::from(session.is_some()));
        Ok((json!({"ok": true, "ended": ended}), session.map(|grant| grant.by.has_second_factor)))
    }

    /// Ends all sessions of a person, also those that nobody has used since the start. How many of those that were used there were.
    async fn end_sessions(&self, person: &Person) -> Result<usize, CredentialRefusal> {
        let held = self.held_sessions(person).len();
        let (now_s, person_id) = (self.clock.now_s(), person.id.clone());
        let forget_s = now_s.saturating_add(self.sessions.longest().as_secs());
        self.revoking(move |revocations| revocations.add_all(&person_id, now_s, forget_s)).await?;
        Ok(held)
    }

    /// Waits for the disk, and holds no thread that others need.
    async fn revoking(
        &self,
        work: impl FnOnce(&Revocations) -> io::Result<()> + Send + 'static,
    ) -> Result<(), CredentialRefusal> {
        let revocations = Arc::clone(&self.revocations);
        let failed = |error: &dyn std::fmt::Display| CredentialRefusal::Failed(error.to_string());
        let done = tokio::task::spawn_blocking(move || work(&revocations)).await;
        done.map_err(|error| failed(&error))?.map_err(|error| failed(&error))
    }
}
