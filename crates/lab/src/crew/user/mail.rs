//! What a user does by protocols of mail and calendars: each request a sample of its own.

use scrinium_lab_script::{Ability, CalendarKind, MailCommand, MailEntry, MessageSize, Operation, Sending};

use super::{Acted, Session, Stopped, User};
use crate::content::{Form, Message};
use crate::driver::{
    CalendarSession, Failure, FailureKind, FoundMessage, ImapSession, Letter, Pop3Session, Protocols, Scan,
};

/// An event that is rewritten has about this many bytes, as it had at first.
const EVENT_BYTES: usize = 500;

/// How a missing target is reported; the run is refused before that.
fn missing() -> Failure {
    Failure::new(FailureKind::Refused, "there is no target for this command")
}

impl<S: Session> User<S> {
    pub(super) async fn mail(&mut self, command: &MailCommand) -> Acted {
        match command {
            MailCommand::ImapHelp => {
                let begin = self.begin();
                let answer = match self.imap() {
                    Ok(imap) => imap.capability().await,
                    Err(failure) => Err(failure),
                };
                self.end(Operation::ImailHelp, begin, answer)
            }
            MailCommand::ImapLogin => self.imap_login().await,
            MailCommand::ImapList => {
                let begin = self.begin();
                let answer = match self.imap() {
                    Ok(imap) => imap.list().await,
                    Err(failure) => Err(failure),
                };
                self.end(Operation::ImailListMailboxes, begin, answer).map(|_| ())
            }
            MailCommand::ImapOpen { mailbox } => {
                let begin = self.begin();
                let answer = match self.imap() {
                    Ok(imap) => imap.select(mailbox).await,
                    Err(failure) => Err(failure),
                };
                self.end(Operation::ImailOpenMailbox, begin, answer).map(|_| ())
            }
            MailCommand::ImapLastEntries { count } => {
                let begin = self.begin();
                let answer = match self.imap() {
                    Ok(imap) => imap.last_entries(*count).await,
                    Err(failure) => Err(failure),
                };
                self.end(Operation::ImailGetLastEntries, begin, answer).map(|_| ())
            }
            MailCommand::ImapFetch { count, next } => self.imap_fetch(*count, *next).await,
            MailCommand::ImapNewMail { count } => self.imap_new_mail(*count).await,
            MailCommand::ImapDelete { count } => self.imap_delete(*count).await,
            MailCommand::ImapFetchEntry { entry } => self.imap_fetch_entry(*entry).await,
            MailCommand::ImapSetSeen { entry } => self.imap_set_seen(*entry).await,
            MailCommand::ImapClose => {
                let begin = self.begin();
                let answer = match self.imap() {
                    Ok(imap) => imap.close_mailbox().await,
                    Err(failure) => Err(failure),
                };
                self.end(Operation::ImailCloseMailbox, begin, answer)
            }
            MailCommand::ImapLogout => {
                let begin = self.begin();
                let answer = match self.imap() {
                    Ok(imap) => imap.log_out().await,
                    Err(failure) => Err(failure),
                };
                self.end(Operation::ImailLogout, begin, answer)
            }
            MailCommand::Send { size, sending } => self.send_mail(size, *sending).await,
            MailCommand::Retrieve { count, keep } => self.retrieve(*count, *keep).await,
            MailCommand::CalendarOpen { days } => self.list_events(*days).await,
            MailCommand::CalendarRead { count } => self.events(*count, Operation::CalRead).await,
            MailCommand::CalendarUpdate { count } => self.events(*count, Operation::CalUpdate).await,
            MailCommand::CalendarDelete { count } => self.events(*count, Operation::CalDelete).await,
        }
    }

    fn protocols(&mut self) -> Result<&mut Protocols, Failure> {
        self.session.protocols().ok_or_else(missing)
    }

    fn imap(&mut self) -> Result<&mut ImapSession, Failure> {
        self.protocols()?.imap.as_deref_mut().ok_or_else(missing)
    }

    fn pop3(&mut self) -> Result<&mut Pop3Session, Failure> {
        self.protocols()?.pop3.as_deref_mut().ok_or_else(missing)
    }

    fn calendar(&mut self) -> Result<&mut CalendarSession, Failure> {
        self.protocols()?.calendar.as_deref_mut().ok_or_else(missing)
    }

    pub(super) fn has_calendar(&mut self) -> bool {
        self.calendar().is_ok()
    }

    /// Notes a message for the check of deliveries, if those of its kind are checked.
    pub(in crate::crew) fn sent<T>(&self, as_what: Ability, message: &Message, answer: &Result<T, Failure>) {
        if let Some((checked, ledger)) = &self.ledger
            && *checked == as_what
        {
            ledger.sent(message.number, message.recipients.len(), answer);
        }
    }

    pub(in crate::crew) fn deleting(&self, found: Option<&FoundMessage>) {
        if let (Some((_, ledger)), Some(found)) = (&self.ledger, found) {
            ledger.deleting(found);
        }
    }

    pub(in crate::crew) fn deleted(&self, found: Option<&FoundMessage>) {
        if let (Some((_, ledger)), Some(found)) = (&self.ledger, found) {
            ledger.deleted(found);
        }
    }

    fn found(&self, scan: &Scan) -> Option<FoundMessage> {
        FoundMessage::of(scan, &self.person.name)
    }

    async fn imap_login(&mut self) -> Acted {
        let begin = self.begin();
        let answer = match self.imap() {
            Ok(imap) => imap.log_in().await,
            Err(failure) => Err(failure),
        };
        self.end(Operation::ImailLogin, begin, answer).map(|_| ())
    }

    /// A connection that was lost is made again, as a mail program does: by logging in and opening the inbox.
    async fn reconnect(&mut self) -> Acted {
        if self.imap().is_ok_and(|imap| imap.is_open()) {
            return Ok(());
        }
        self.imap_login().await?;
        let begin = self.begin();
        let answer = match self.imap() {
            Ok(imap) => imap.select("INBOX").await,
            Err(failure) => Err(failure),
        };
        self.end(Operation::ImailOpenMailbox, begin, answer).map(|_| ())
    }

    async fn imap_read(&mut self, operation: Operation, uid: u32) -> Result<Scan, Stopped> {
        let begin = self.begin();
        let answer = match self.imap() {
            Ok(imap) => imap.fetch(uid).await,
            Err(failure) => Err(failure),
        };
        self.end(operation, begin, answer)
    }

    async fn imap_fetch(&mut self, count: u64, next: bool) -> Acted {
        self.reconnect().await?;
        for _ in 0..count {
            let Some(uid) = self.imap().ok().and_then(|imap| imap.turn(next)) else { return Ok(()) };
            self.imap_read(Operation::ImailFetchOld, uid).await?;
        }
        Ok(())
    }

    async fn imap_fetch_entry(&mut self, entry: MailEntry) -> Acted {
        self.reconnect().await?;
        let Some(uid) = self.imap().ok().and_then(|imap| imap.choose(entry)) else { return Ok(()) };
        self.imap_read(Operation::ImailFetchEntry, uid).await.map(|_| ())
    }

    async fn imap_set_seen(&mut self, entry: MailEntry) -> Acted {
        self.reconnect().await?;
        let Some(uid) = self.imap().ok().and_then(|imap| imap.choose(entry)) else { return Ok(()) };
        let begin = self.begin();
        let answer = match self.imap() {
            Ok(imap) => imap.mark_seen(uid).await,
            Err(failure) => Err(failure),
        };
        self.end(Operation::ImailSetSeen, begin, answer)
    }

    async fn imap_new_mail(&mut self, count: u64) -> Acted {
        self.reconnect().await?;
        let begin = self.begin();
        let answer = match self.imap() {
            Ok(imap) => imap.new_messages().await,
            Err(failure) => Err(failure),
        };
        let uids = self.end(Operation::ImailAskNewMail, begin, answer)?;
        for uid in uids.into_iter().take(usize::try_from(count).unwrap_or(usize::MAX)) {
            self.imap_read(Operation::ImailGetNewMail, uid).await?;
        }
        Ok(())
    }

    /// A message is read before it is deleted, so that it is known which one goes.
    async fn imap_delete(&mut self, count: u64) -> Acted {
        self.reconnect().await?;
        for _ in 0..count {
            let Some(uid) = self.imap().ok().and_then(|imap| imap.turn(false)) else { return Ok(()) };
            let scan = self.imap_read(Operation::ImailDeleteFetch, uid).await?;
            let found = self.found(&scan);
            let begin = self.begin();
            let answer = match self.imap() {
                Ok(imap) => imap.mark_deleted(uid).await,
                Err(failure) => Err(failure),
            };
            self.end(Operation::ImailDeleteStore, begin, answer)?;
            self.deleting(found.as_ref());
            let begin = self.begin();
            let answer = match self.imap() {
                Ok(imap) => imap.expunge(uid).await,
                Err(failure) => Err(failure),
            };
            self.end(Operation::ImailDeleteEntry, begin, answer)?;
            self.deleted(found.as_ref());
        }
        Ok(())
    }

    async fn send_mail(&mut self, size: &MessageSize, sending: Sending) -> Acted {
        if !self.is_nth(sending.nth) {
            return Ok(());
        }
        let message = self.compose(Form::Memo, size, sending);
        let sender = self.protocols().ok().and_then(|protocols| protocols.sender.clone());
        let letter = sender.as_ref().map(|sender| Letter::of(&message, sender.domain()));
        let begin = self.begin();
        let answer = match (&sender, &letter) {
            (Some(sender), Some(letter)) => sender.send(letter).await,
            _ => Err(missing()),
        };
        self.sent(Ability::SendMail, &message, &answer);
        self.end(Operation::SendSmtpMessage, begin, answer)
    }

    async fn retrieve(&mut self, count: Option<u64>, keep: bool) -> Acted {
        let begin = self.begin();
        let answer = match self.pop3() {
            Ok(pop3) => pop3.log_in().await,
            Err(failure) => Err(failure),
        };
        self.end(Operation::Pop3Login, begin, answer)?;
        let begin = self.begin();
        let answer = match self.pop3() {
            Ok(pop3) => pop3.list().await,
            Err(failure) => Err(failure),
        };
        let entries = self.end(Operation::Pop3List, begin, answer)?;
        let count = count.and_then(|count| usize::try_from(count).ok()).unwrap_or(usize::MAX);
        let mut gone = Vec::new();
        for entry in entries.into_iter().take(count) {
            let begin = self.begin();
            let answer = match self.pop3() {
                Ok(pop3) => pop3.retrieve(entry).await,
                Err(failure) => Err(failure),
            };
            let scan = self.end(Operation::Pop3Retrieve, begin, answer)?;
            if keep {
                continue;
            }
            let begin = self.begin();
            let answer = match self.pop3() {
                Ok(pop3) => pop3.delete(entry).await,
                Err(failure) => Err(failure),
            };
            self.end(Operation::Pop3Delete, begin, answer)?;
            gone.extend(self.found(&scan));
        }
        // What is marked goes when the connection ends in order, and not before.
        for found in &gone {
            self.deleting(Some(found));
        }
        let begin = self.begin();
        let answer = match self.pop3() {
            Ok(pop3) => pop3.quit().await,
            Err(failure) => Err(failure),
        };
        self.end(Operation::Pop3Quit, begin, answer)?;
        for found in &gone {
            self.deleted(Some(found));
        }
        Ok(())
    }

    pub(super) async fn add_event(&mut self, kind: CalendarKind, sending: Sending) -> Acted {
        if !self.is_nth(sending.nth) {
            return Ok(());
        }
        let size = self.context.normal_message_size.clone();
        let message = self.compose(Form::Calendar(kind), &size, sending);
        let operation = match kind {
            CalendarKind::Appointment => Operation::AppointmentEvent,
            CalendarKind::Invitation | CalendarKind::Acceptance => Operation::InvitationEvent,
        };
        let begin = self.begin();
        let answer = match self.calendar() {
            Ok(calendar) => calendar.add(&message).await,
            Err(failure) => Err(failure),
        };
        self.end(operation, begin, answer)
    }

    async fn list_events(&mut self, days: u64) -> Acted {
        let from_s = jiff::Timestamp::now().as_second();
        let to_s = from_s + i64::try_from(days * 86_400).unwrap_or(i64::MAX / 2);
        let begin = self.begin();
        let answer = match self.calendar() {
            Ok(calendar) => calendar.list(from_s, to_s).await,
            Err(failure) => Err(failure),
        };
        self.end(Operation::CalOpen, begin, answer).map(|_| ())
    }

    /// Reads, writes again or deletes events in sight, no event twice.
    async fn events(&mut self, count: u64, operation: Operation) -> Acted {
        let mut events = self.calendar().map(|calendar| calendar.events()).unwrap_or_default();
        for _ in 0..count.min(events.len() as u64) {
            let index = rand::Rng::random_range(&mut self.random, 0..events.len());
            let id = events.swap_remove(index);
            let sending = Sending { recipients: 1, nth: 1, kept: false };
            let size = MessageSize::Bytes { body: EVENT_BYTES, attachment: 0 };
            let message = match operation {
                Operation::CalUpdate => {
                    Some(self.compose(Form::Calendar(CalendarKind::Appointment), &size, sending))
                }
                _ => None,
            };
            let begin = self.begin();
            let answer = match (self.calendar(), &message) {
                (Ok(calendar), Some(message)) => calendar.update(&id, message).await,
                (Ok(calendar), None) if operation == Operation::CalRead => calendar.read(&id).await,
                (Ok(calendar), None) => calendar.delete(&id).await,
                (Err(failure), _) => Err(failure),
            };
            self.end(operation, begin, answer)?;
        }
        Ok(())
    }
}
