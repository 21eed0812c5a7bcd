//! What a user does with folders, views, marks, profiles and replicas.

use std::collections::BTreeMap;
use std::time::Duration;

use scrinium_lab_script::{
    CalendarKind, Command, MessageSize, Operation, ReplicationDirection, Sending, TimeRange, UserText,
};

use super::user::{Acted, FIRST_PAGE, Stopped, User};
use crate::content::{Form, Message};
use crate::driver::{Change, From, Page, Session, sorted_column};

/// Changes that are asked for at a time.
const CHANGES: u64 = 1000;

/// Documents of one reading of a replica.
const REPLICATED: usize = 100;

/// Entries among which the invitation is that is accepted.
const INVITATIONS: u64 = 10;

const COLOR_PROFILE: &str = "colorprofile";
const CALENDAR_PROFILE: &str = "calendarprofile";

/// A user's position in each database.
#[derive(Debug, Default)]
pub(super) struct Remembered {
    /// The last change that was listed.
    changes: BTreeMap<String, String>,
    folder_changes: String,
    replicas: BTreeMap<String, Replica>,
    /// Invitations that were answered.
    accepted: Vec<String>,
}

#[derive(Clone, Debug, Default)]
struct Replica {
    last: String,
    checkpoint: Option<String>,
}

impl<S: Session> User<S> {
    pub(super) async fn act_in_groupware(&mut self, action: &Command) -> Acted {
        match action {
            Command::Unread { count } => {
                let documents = self.desk.choose_shown(*count, &mut self.random);
                self.mark(Operation::Unread, documents, true).await
            }
            Command::MoveToFolder { count, folder } => self.move_some(*count, folder).await,
            Command::DeleteFromCollection { count } => self.delete_shown(*count).await,
            Command::Accept { nth } if self.is_nth(*nth) => self.accept().await,
            Command::Answer { size, sending } if self.is_nth(sending.nth) => {
                self.answer(size, *sending).await
            }
            Command::NewMail { database, polls, delay } => {
                self.poll_for_mail(database.as_ref(), *polls, *delay).await
            }
            Command::NewMailPoll => self.new_mail_poll().await,
            Command::ModifiedNotes => self.list_changes().await,
            Command::FolderChanges => self.list_folder_changes().await,
            Command::Lookup { name, count } => self.look_up(name.as_ref(), *count).await,
            Command::Replicate { direction, databases } => self.replicate(*direction, databases).await,
            Command::DeleteDatabase { database } => {
                let database = self.database(database);
                let begin = self.begin();
                let answer = self.session.delete_database(&database).await;
                self.end(Operation::DeleteDatabase, begin, answer)
            }
            Command::Console { command } => {
                let command = self.text(command);
                let begin = self.begin();
                let answer = self.session.console(&command).await;
                self.end(Operation::Console, begin, answer)
            }
            Command::WebGet { path } => {
                let path = self.text(path);
                let begin = self.begin();
                let answer = self.session.get(&path).await;
                self.end(Operation::WebGet, begin, answer).map(drop)
            }
            other => self.act_in_views(other).await,
        }
    }

    async fn act_in_views(&mut self, action: &Command) -> Acted {
        match action {
            Command::OpenCollection { view } => {
                let view = self.text(view);
                self.update_view(Operation::OpenCollection, &view).await?;
                self.desk.open_view(view);
                Ok(())
            }
            Command::Index { view } => {
                let open = self.desk.view().map(str::to_owned);
                let view = match (view, open) {
                    (None, Some(open)) => open,
                    (view, _) => self.view(view.as_ref()),
                };
                self.update_view(Operation::Index, &view).await
            }
            Command::GetAll => self.get_all().await,
            Command::SetCollation { number } => self.set_collation(*number).await,
            Command::FindByKey { key } => {
                let (view, text) = (self.open_view_or_default(), self.text(key));
                let begin = self.begin();
                let answer = self.session.find(&self.desk.database, &view, &text, FIRST_PAGE).await;
                let page = self.end(Operation::FindByKey, begin, answer)?;
                self.desk.show(view, page);
                Ok(())
            }
            Command::FindPeriod => self.find_period().await,
            other => self.act_on_profiles(other).await,
        }
    }

    fn open_view_or_default(&self) -> String {
        self.desk.view().map_or_else(|| self.view(None), str::to_owned)
    }

    async fn update_view(&mut self, operation: Operation, view: &str) -> Acted {
        let begin = self.begin();
        let answer = self.session.open_collection(&self.desk.database, view).await;
        self.end(operation, begin, answer).map(drop)
    }

    /// What a client asks for at the opening of a view. A server that keeps no marks is not asked for any.
    async fn get_all(&mut self) -> Acted {
        let view = self.open_view_or_default();
        self.read_entries(Operation::GetAll, view, From::Position(0), FIRST_PAGE).await?;
        if self.keeps_marks().await {
            let begin = self.begin();
            let answer = self.session.count_unread(&self.desk.database).await;
            self.end(Operation::GetAllUnread, begin, answer)?;
        }
        Ok(())
    }

    async fn keeps_marks(&mut self) -> bool {
        let database = self.person.mail_database.clone();
        self.session.is_scrinium(&database).await.unwrap_or(false)
    }

    async fn set_collation(&mut self, number: u64) -> Acted {
        let view = self.open_view_or_default();
        let begin = self.begin();
        let answer = match sorted_column(number) {
            Some(column) => self.session.read_sorted(&self.desk.database, &view, column, FIRST_PAGE).await,
            None => {
                self.session.read_entries(&self.desk.database, &view, From::Position(0), FIRST_PAGE).await
            }
        };
        // Where the next page begins is known in the view's own order only.
        let page = self.end(Operation::SetCollation, begin, answer)?;
        self.desk.show(view, Page { last: None, ..page });
        Ok(())
    }

    async fn find_period(&mut self) -> Acted {
        const DAY: Duration = Duration::from_secs(86_400);
        let view = self.open_view_or_default();
        let now = jiff::Timestamp::now();
        let from = now.checked_sub(DAY * 7).unwrap_or(now);
        let to = now.checked_add(DAY * 21).unwrap_or(now);
        let (from, to) = (format!("{from:.3}"), format!("{to:.3}"));
        let begin = self.begin();
        let answer = self.session.find_period(&self.desk.database, &view, (&from, &to)).await;
        let page = self.end(Operation::FindPeriod, begin, answer)?;
        self.desk.show(view, page);
        Ok(())
    }

    /// Marks documents on the server, and remembers which are unread; a server that keeps no marks is sent none.
    pub(super) async fn mark(&mut self, operation: Operation, documents: Vec<String>, unread: bool) -> Acted {
        if documents.is_empty() {
            return Ok(());
        }
        if self.keeps_marks().await {
            let begin = self.begin();
            let answer = self.session.mark(&self.desk.database, &documents, unread).await;
            self.end(operation, begin, answer)?;
        }
        self.desk.mark(&documents, unread);
        Ok(())
    }

    /// Where there are no folders, the documents' field says in which they are.
    async fn move_some(&mut self, count: u64, folder: &UserText) -> Acted {
        let documents = self.desk.choose(count, &mut self.random);
        let folder = self.text(folder);
        if documents.is_empty() {
            return Ok(());
        }
        if self.keeps_marks().await {
            let begin = self.begin();
            let answer = self.session.move_to(&self.desk.database, &documents, &folder).await;
            self.end(Operation::Move, begin, answer)?;
        } else {
            for id in &documents {
                let fetched = self.fetch(Operation::MoveFetch, id).await?;
                let begin = self.begin();
                let answer = self.session.update(&self.desk.database, fetched, Change::Folder(&folder)).await;
                self.end(Operation::Move, begin, answer)?;
            }
        }
        for id in &documents {
            self.desk.forget(id);
        }
        Ok(())
    }

    async fn delete_shown(&mut self, count: u64) -> Acted {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let documents: Vec<String> = self.desk.shown().iter().take(count).cloned().collect();
        for id in documents {
            let revision = self.fetch(Operation::DeleteEntryFetch, &id).await?.revision;
            let found = self.session.message_of(&id);
            self.deleting(found.as_ref());
            let begin = self.begin();
            let answer = self.session.delete(&self.desk.database, &id, &revision).await;
            self.end(Operation::DeleteEntry, begin, answer)?;
            self.deleted(found.as_ref());
            self.desk.forget(&id);
        }
        Ok(())
    }

    /// The invitation that came last, of those that are not answered yet.
    async fn accept(&mut self) -> Acted {
        let database = self.person.mail_database.clone();
        let begin = self.begin();
        let answer =
            self.session.read_entries(&database, "Invitations", From::Position(0), INVITATIONS).await;
        let page = self.end(Operation::AcceptFind, begin, answer)?;
        let accepted = &self.remembered.accepted;
        let Some(id) = page.documents.into_iter().find(|id| !accepted.contains(id)) else { return Ok(()) };
        let begin = self.begin();
        let answer = self.session.fetch(&database, &id, None).await;
        let invitation = self.end(Operation::AcceptFetch, begin, answer)?;
        let chair = invitation.field("Chair").unwrap_or(&self.person.name).to_owned();
        let form = Form::Calendar(CalendarKind::Acceptance);
        let size = MessageSize::Bytes { body: 500, attachment: 0 };
        self.deposit(Operation::Accept, form, &size, vec![chair], false).await?;
        self.remembered.accepted.push(id);
        if self.remembered.accepted.len() > 2 * usize::try_from(INVITATIONS).unwrap_or(0) {
            self.remembered.accepted.remove(0);
        }
        Ok(())
    }

    /// Reads a message of the page in sight, and answers its sender and as many others as are wanted.
    async fn answer(&mut self, size: &MessageSize, sending: Sending) -> Acted {
        let Some(id) = self.desk.choose_shown(1, &mut self.random).into_iter().next() else { return Ok(()) };
        let message = self.fetch(Operation::AnswerFetch, &id).await?;
        let mut recipients = self.recipients(sending.recipients);
        if let Some(sender) = message.field("From") {
            recipients.retain(|person| person != sender);
            recipients.insert(0, sender.to_owned());
            recipients.truncate(sending.recipients.max(1));
        }
        self.deposit(Operation::Answer, Form::Memo, size, recipients, sending.kept).await
    }

    async fn poll_for_mail(&mut self, database: Option<&UserText>, polls: u64, delay: Duration) -> Acted {
        let database = self.mail_or(database);
        for poll in 0..polls {
            if poll > 0 {
                self.pause(TimeRange { low: delay, high: delay }).await;
            }
            self.ask_for_mail(Operation::NewMail, &database).await?;
        }
        Ok(())
    }

    async fn new_mail_poll(&mut self) -> Acted {
        let database = self.person.mail_database.clone();
        if self.ask_for_mail(Operation::NewMailPoll, &database).await? && self.desk.view().is_some() {
            let view = self.open_view_or_default();
            self.read_entries(Operation::NewMailRefresh, view, From::Position(0), FIRST_PAGE).await?;
        }
        Ok(())
    }

    async fn list_changes(&mut self) -> Acted {
        let database = self.desk.database.clone();
        let since = self.remembered.changes.get(&database).cloned().unwrap_or_else(|| "0".to_owned());
        let begin = self.begin();
        let answer = self.session.changes(&database, &since, CHANGES).await;
        let changes = self.end(Operation::ModifiedNotes, begin, answer)?;
        self.remembered.changes.insert(database, changes.last);
        Ok(())
    }

    async fn list_folder_changes(&mut self) -> Acted {
        let since = match self.remembered.folder_changes.as_str() {
            "" => "0".to_owned(),
            since => since.to_owned(),
        };
        let database = self.person.mail_database.clone();
        let begin = self.begin();
        let answer = self.session.folder_changes(&database, &since).await;
        self.remembered.folder_changes = self.end(Operation::FolderChanges, begin, answer)?;
        Ok(())
    }

    async fn look_up(&mut self, name: Option<&UserText>, count: u64) -> Acted {
        let names = match name {
            Some(name) => vec![self.text(name)],
            None => self.recipients(usize::try_from(count).unwrap_or(usize::MAX)),
        };
        let begin = self.begin();
        let answer = self.session.look_up(&names).await;
        self.end(Operation::Lookup, begin, answer)
    }

    async fn act_on_profiles(&mut self, action: &Command) -> Acted {
        let now = jiff::Timestamp::now().to_string();
        match action {
            Command::ProfileOpen { name } => {
                let name = self.text(name);
                let begin = self.begin();
                let answer = self.session.open_profile(&self.desk.database, &name).await;
                self.desk.profile = Some(self.end(Operation::ProfileOpen, begin, answer)?);
                Ok(())
            }
            Command::ProfileUpdate => {
                let Some(mut profile) = self.desk.profile.take() else { return Ok(()) };
                let begin = self.begin();
                let values = [("Changed", now.as_str())];
                let answer = self.session.update_profile(&self.desk.database, profile.clone(), &values).await;
                profile.set_revision(self.end(Operation::ProfileUpdate, begin, answer)?);
                self.desk.profile = Some(profile);
                Ok(())
            }
            Command::ColorProfileAdd => {
                let operations = (Operation::ColorProfileFetch, Operation::ColorProfileAdd);
                self.set_profile(operations, COLOR_PROFILE, &[("Color", &now)]).await
            }
            Command::ColorProfileDelete => {
                let begin = self.begin();
                let answer = self.session.open_profile(&self.desk.database, COLOR_PROFILE).await;
                let profile = self.end(Operation::ColorProfileDeleteFetch, begin, answer)?;
                if profile.revision.is_empty() {
                    return Ok(());
                }
                let begin = self.begin();
                let answer = self.session.delete(&self.desk.database, &profile.id, &profile.revision).await;
                self.end(Operation::ColorProfileDelete, begin, answer)
            }
            Command::SetCalendarProfile => {
                let operations = (Operation::CalendarProfileFetch, Operation::CalendarProfile);
                let name = self.person.full_name.clone();
                self.set_profile(operations, CALENDAR_PROFILE, &[("Owner", &name), ("BusyName", &name)]).await
            }
            _ => Ok(()),
        }
    }

    async fn set_profile(
        &mut self,
        (fetching, writing): (Operation, Operation),
        name: &str,
        values: &[(&str, &str)],
    ) -> Acted {
        let begin = self.begin();
        let answer = self.session.open_profile(&self.desk.database, name).await;
        let profile = self.end(fetching, begin, answer)?;
        let begin = self.begin();
        let answer = self.session.update_profile(&self.desk.database, profile, values).await;
        self.end(writing, begin, answer).map(drop)
    }

    async fn replicate(&mut self, direction: ReplicationDirection, databases: &[UserText]) -> Acted {
        let mut names: Vec<String> = databases.iter().map(|name| self.database(name)).collect();
        if names.is_empty() {
            names.push(self.desk.database.clone());
        }
        if self.session.has_edge() {
            for database in names {
                self.replicate_at_edge(direction, &database).await?;
            }
            return Ok(());
        }
        for database in names {
            let mut replica = self.remembered.replicas.get(&database).cloned().unwrap_or_default();
            if direction != ReplicationDirection::Push {
                self.pull(&database, &mut replica).await?;
            }
            if direction != ReplicationDirection::Pull {
                self.push(&database).await?;
            }
            let name = format!("lab-{}-{:08x}", self.person.name, self.context.run);
            let begin = self.begin();
            let before = replica.checkpoint.as_deref();
            let answer = self.session.write_checkpoint(&database, &name, before, &replica.last).await;
            replica.checkpoint = Some(self.end(Operation::ReplicateCheckpoint, begin, answer)?);
            self.remembered.replicas.insert(database, replica);
        }
        Ok(())
    }

    /// Another server has the user's replica: documents are written there, and it replicates with the one that is
    /// measured.
    async fn replicate_at_edge(&mut self, direction: ReplicationDirection, database: &str) -> Acted {
        if direction != ReplicationDirection::Push {
            let begin = self.begin();
            let answer = self.session.pull_to_edge(database).await;
            self.end(Operation::ReplicatePull, begin, answer)?;
        }
        if direction == ReplicationDirection::Pull {
            return Ok(());
        }
        let messages = self.messages_to_bring();
        let begin = self.begin();
        let answer = self.session.add_at_edge(database, &messages).await;
        self.end(Operation::ReplicateAdd, begin, answer)?;
        let begin = self.begin();
        let answer = self.session.push_from_edge(database).await;
        self.end(Operation::ReplicatePush, begin, answer)
    }

    fn messages_to_bring(&mut self) -> Vec<Message> {
        let size = self.context.normal_message_size.clone();
        (0..self.context.replicated_documents).map(|_| self.note(&size)).collect()
    }

    /// Takes what has changed since the last time; a replica that has nothing yet takes what is new from now on.
    async fn pull(&mut self, database: &str, replica: &mut Replica) -> Result<(), Stopped> {
        loop {
            let since = if replica.last.is_empty() { "now" } else { &replica.last };
            let begin = self.begin();
            let answer = self.session.changes(database, since, REPLICATED as u64).await;
            let changes = self.end(Operation::ReplicateChanges, begin, answer)?;
            let last_page = changes.documents.len() < REPLICATED;
            if !changes.documents.is_empty() {
                let begin = self.begin();
                let answer = self.session.read_many(database, &changes.documents).await;
                self.end(Operation::ReplicateRead, begin, answer)?;
            }
            replica.last = changes.last;
            if last_page {
                return Ok(());
            }
        }
    }

    /// Brings documents that were written in the user's own replica.
    async fn push(&mut self, database: &str) -> Acted {
        let messages = self.messages_to_bring();
        let begin = self.begin();
        let answer = self.session.count_missing(database, &messages).await;
        let missing = self.end(Operation::ReplicateCompare, begin, answer)?;
        if missing == 0 {
            return Ok(());
        }
        let begin = self.begin();
        let answer = self.session.store_replicated(database, &messages).await;
        self.end(Operation::ReplicateWrite, begin, answer)
    }
}
