//! What a user does with documents and messages.

use rand::Rng;
use rand::seq::IndexedRandom;
use scrinium_lab_script::{Ability, CalendarKind, MessageSize, NavigationStep, Operation, Sending, Stop};

use super::user::{Acted, Stopped, User};
use crate::content::{Form, Message};
use crate::driver::{Change, Failure, FailureKind, Fetched, From, MessageNumber, Session};

/// How often a user reads a document again that someone else has changed in the meantime.
const CONFLICT_TRIES: usize = 3;

impl<S: Session> User<S> {
    pub(super) async fn open_database(&mut self, database: String) -> Acted {
        let begin = self.begin();
        let answer = self.session.open_database(&database).await;
        let state = self.end(Operation::ChangeTo, begin, answer)?;
        self.mail_seen = state.change;
        self.desk.open_database(database);
        Ok(())
    }

    /// Whether the mail database has changed since it was last looked at.
    pub(super) async fn ask_for_mail(
        &mut self,
        operation: Operation,
        database: &str,
    ) -> Result<bool, Stopped> {
        let begin = self.begin();
        let answer = self.session.open_database(database).await;
        let change = self.end(operation, begin, answer)?.change;
        let changed = change != self.mail_seen;
        self.mail_seen = change;
        Ok(changed)
    }

    pub(super) async fn read_entries(
        &mut self,
        operation: Operation,
        view: String,
        from: From,
        count: u64,
    ) -> Acted {
        let begin = self.begin();
        let answer = self.session.read_entries(&self.desk.database, &view, from, count).await;
        let page = self.end(operation, begin, answer)?;
        self.desk.show(view, page);
        Ok(())
    }

    pub(super) async fn entries(&mut self, start: Option<u64>, count: u64) -> Acted {
        let Some((view, next)) = self.desk.next_page() else { return Ok(()) };
        let from = start.map_or(next, |start| From::Position(start - 1));
        self.read_entries(Operation::Entries, view, from, count).await
    }

    /// Opens documents; one that was looked for because it is unread is marked as read.
    pub(super) async fn navigate(&mut self, count: u64, step: NavigationStep) -> Acted {
        for _ in 0..count {
            let Some(id) = self.desk.turn(step) else { return Ok(()) };
            self.fetch(Operation::Navigate, &id).await?;
            if matches!(step.stop, Stop::Unread | Stop::UnreadMain) {
                self.mark(Operation::MarkRead, vec![id], false).await?;
            }
        }
        Ok(())
    }

    pub(super) async fn read_some(&mut self, count: u64) -> Acted {
        for _ in 0..count {
            let Some(id) = self.desk.shown().choose(&mut self.random).cloned() else { return Ok(()) };
            self.fetch(Operation::Read, &id).await?;
        }
        Ok(())
    }

    pub(super) async fn fetch(&mut self, operation: Operation, id: &str) -> Result<Fetched, Stopped> {
        let known = self.desk.revision(id);
        let begin = self.begin();
        let answer = self.session.fetch(&self.desk.database, id, known.as_deref()).await;
        let fetched = self.end(operation, begin, answer)?;
        self.desk.know(id, &fetched.revision);
        Ok(fetched)
    }

    /// The folder that documents come into where a script names none.
    fn usual_folder(&self, folder: Option<String>) -> Option<String> {
        folder.or_else(|| (self.desk.database == self.person.mail_database).then(|| "Inbox".to_owned()))
    }

    pub(super) async fn add(&mut self, count: u64, size: &MessageSize, folder: Option<String>) -> Acted {
        let folder = self.usual_folder(folder);
        for _ in 0..count {
            let message = self.note(size);
            let begin = self.begin();
            let answer = self.session.store(&self.desk.database, &message, folder.as_deref()).await;
            let revision = self.end(Operation::Add, begin, answer)?;
            self.desk.know(&message.id, &revision);
        }
        Ok(())
    }

    /// A document that lies in a database.
    pub(super) fn note(&mut self, size: &MessageSize) -> Message {
        let (body, attachment) = self.writer.sizes(size);
        let posted = jiff::Timestamp::now().as_second();
        let recipients = vec![self.person.name.clone()];
        let mut message = self.writer.write(Form::Memo, body, attachment, recipients, posted);
        message.delivered = true;
        message
    }

    /// Changes documents that were opened before, no document twice.
    pub(super) async fn update(&mut self, count: u64, stamp: bool) -> Acted {
        let (fetching, writing) = if stamp {
            (Operation::StampFetch, Operation::Stamp)
        } else {
            (Operation::UpdateFetch, Operation::Update)
        };
        for id in self.desk.choose(count, &mut self.random) {
            for try_number in 1..=CONFLICT_TRIES {
                let fetched = self.fetch(fetching, &id).await?;
                let text = format!("round {}", self.round);
                let change = if stamp { Change::Category(&text) } else { Change::Subject(&text) };
                let begin = self.begin();
                let answer = self.session.update(&self.desk.database, fetched, change).await;
                if self.is_conflict(&answer, try_number) {
                    continue;
                }
                let revision = self.end(writing, begin, answer)?;
                self.desk.know(&id, &revision);
                break;
            }
        }
        Ok(())
    }

    pub(super) async fn delete(&mut self, count: u64) -> Acted {
        for id in self.desk.choose(count, &mut self.random) {
            let mut known = self.desk.revision(&id);
            for try_number in 1..=CONFLICT_TRIES {
                let revision = match known.take() {
                    Some(revision) => revision,
                    None => self.fetch(Operation::DeleteFetch, &id).await?.revision,
                };
                let found = self.session.message_of(&id);
                self.deleting(found.as_ref());
                let begin = self.begin();
                let answer = self.session.delete(&self.desk.database, &id, &revision).await;
                if self.is_conflict(&answer, try_number) {
                    continue;
                }
                self.end(Operation::Delete, begin, answer)?;
                self.deleted(found.as_ref());
                self.desk.forget(&id);
                break;
            }
        }
        Ok(())
    }

    /// Someone else was faster; that is no failure of the server unless it continues.
    fn is_conflict<T>(&self, answer: &Result<T, Failure>, try_number: usize) -> bool {
        let conflict = answer.as_ref().is_err_and(|failure| failure.kind == FailureKind::Conflict);
        let again = conflict && try_number < CONFLICT_TRIES;
        if again {
            self.context.recorder.conflict();
        }
        again
    }

    pub(super) async fn populate(&mut self, count: u64, size: &MessageSize, folder: Option<String>) -> Acted {
        let folder = self.usual_folder(folder);
        let begin = self.begin();
        let database = self.desk.database.clone();
        let answer = self.session.open_database(&database).await;
        let state = self.end(Operation::ChangeTo, begin, answer)?;
        // The design document is counted too.
        let missing = count.saturating_sub(state.documents.saturating_sub(1));
        for _ in 0..missing {
            let message = self.note(size);
            let begin = self.begin();
            let answer = self.session.store(&database, &message, folder.as_deref()).await;
            self.end(Operation::Populate, begin, answer)?;
        }
        Ok(())
    }

    /// People by chance, none twice; a part of them more often than the others, where the workload says so.
    pub(super) fn recipients(&mut self, count: usize) -> Vec<String> {
        let people = &self.context.people;
        let Some((part, share)) = self.context.recipient_skew else {
            return people.choose_multiple(&mut self.random, count).cloned().collect();
        };
        #[allow(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "people are few"
        )]
        let often = ((people.len() as f64 * part).round() as usize).clamp(1, people.len().max(1));
        let (often, seldom) = people.split_at_checked(often).unwrap_or((people, &[]));
        let mut chosen: Vec<String> = Vec::new();
        // Drawing the same person again costs another draw, a bounded number of them.
        for _ in 0..count.saturating_mul(20) {
            let group = if seldom.is_empty() || self.random.random_bool(share) { often } else { seldom };
            match group.choose(&mut self.random) {
                Some(person) if !chosen.contains(person) => chosen.push(person.clone()),
                _ => {}
            }
            if chosen.len() >= count.min(people.len()) {
                break;
            }
        }
        chosen
    }

    /// A message to people chosen at random.
    pub(super) fn compose(&mut self, form: Form, size: &MessageSize, sending: Sending) -> Message {
        let recipients = self.recipients(sending.recipients);
        self.write(form, size, recipients)
    }

    fn write(&mut self, form: Form, size: &MessageSize, recipients: Vec<String>) -> Message {
        let (body, attachment) = self.writer.sizes(size);
        let posted = jiff::Timestamp::now().as_second();
        self.writer.write(form, body, attachment, recipients, posted)
    }

    pub(super) async fn send(&mut self, form: Form, size: &MessageSize, sending: Sending) -> Acted {
        if !self.is_nth(sending.nth) {
            return Ok(());
        }
        let recipients = self.recipients(sending.recipients);
        let operation = match form {
            Form::Memo => Operation::SendMessage,
            Form::Calendar(CalendarKind::Appointment) => Operation::Appointment,
            Form::Calendar(CalendarKind::Invitation) => Operation::Invitation,
            Form::Calendar(CalendarKind::Acceptance) => Operation::Accept,
        };
        self.deposit(operation, form, size, recipients, sending.kept && form == Form::Memo).await
    }

    /// Gives a message to the server, and keeps a copy of it if that is wanted.
    pub(super) async fn deposit(
        &mut self,
        operation: Operation,
        form: Form,
        size: &MessageSize,
        recipients: Vec<String>,
        kept: bool,
    ) -> Acted {
        let message = self.write(form, size, recipients);
        let begin = self.begin();
        let answer = self.session.send(&message).await;
        self.sent(Ability::Documents, &message, &answer);
        self.end(operation, begin, answer)?;
        if kept {
            // A copy is no delivery.
            let number = MessageNumber { run: 0, ..message.number };
            let copy = Message { id: format!("{}-sent", message.id), number, ..message };
            let begin = self.begin();
            let answer = self.session.store(&self.person.mail_database, &copy, None).await;
            self.end(Operation::KeepMessage, begin, answer)?;
        }
        Ok(())
    }
}
