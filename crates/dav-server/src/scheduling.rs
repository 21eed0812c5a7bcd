//! Meetings (RFC 6638): who hears of a change of one, what becomes of a message about one, and whose time is free.
//!
//! What is decided is decided by [`scrinium_calendar::itip`], which is pure. Here it is stored: the object as it is to be, and the
//! messages to others in a mail.box, in one batch, so that those invited hear of a change however the server ends. The router
//! brings each message to people here and elsewhere alike; before it delivers one, it gives it to `filing`.

mod booking;
mod filing;
mod outbox;
mod profile;
mod tag;

use std::sync::Arc;

use scrinium_calendar::address::{attendees, comparable};
use scrinium_calendar::imip::{Language, SchedulingMail};
use scrinium_calendar::itip::{self, Change, ItipOutcome, Message, Reason};
use scrinium_database::{
    DatabaseError, Edit, EditMode, TransactionPart, TransactionRefusal, update_together,
};
use scrinium_dav::place::{Area, Place};
use scrinium_dav_wire::CALDAV;
use scrinium_dav_wire::content::{Component, ContentLimits};
use scrinium_directory::{Found, Person};
use scrinium_http::DavUpdate;
use scrinium_mail::{
    DepositError, EnvelopeItems, IncomingMessage, Mailboxes, Resolver, WrittenMessage, WrittenPart,
};

use crate::document::{FILED, id_of, read, source};
use crate::home::{Home, Shelf, zone_of_person};
use crate::refusal::{Refusal, Result};
use crate::service::DavService;

pub(crate) use tag::schedule_tag;

/// Attendees of one object, times its length: each gets a copy of what they are invited to.
const COPIES_BYTES_MAX: usize = 64 << 20;

/// Attendees of one object.
pub(crate) const ATTENDEES_MAX: usize = 2_000;

/// Messages that are stored with the change that they tell of. The locks of the databases are held meanwhile.
const TOGETHER_MAX: usize = 500;

/// Where messages to others go.
pub struct DavMail {
    /// The mail.boxes.
    pub mailboxes: Mailboxes,
    /// Whose an address is.
    pub resolver: Resolver,
}

/// A message on its way: its id, and what is deposited.
pub(crate) type Outgoing = (String, IncomingMessage);

/// An object of the calendar that a UID leads to.
pub(crate) struct StoredObject {
    pub(crate) id: String,
    pub(crate) calendar: Component,
    /// Nobody but the server has written it.
    pub(crate) is_filed: bool,
}

/// Whether others have to do with an object.
pub(crate) fn is_meeting(calendar: &Component) -> bool {
    calendar.components().any(|part| part.line("ORGANIZER").is_some())
}

impl DavService {
    /// All addresses of a person, as calendars compare them.
    pub(crate) fn addresses(&self, person: &Person) -> Vec<String> {
        match &self.mail {
            Some(mail) => mail.resolver.addresses_of(person).iter().map(|one| comparable(one)).collect(),
            None => crate::document::addresses_of(person),
        }
    }

    /// What a change of an object in somebody's calendar means for others; `None` where it is nobody else's matter.
    ///
    /// # Errors
    /// 403 for what an attendee or organizer may not change.
    pub(crate) fn scheduled(
        &self,
        (home, shelf): (&Home, &Shelf),
        (old, new): (Option<&Component>, Option<&Component>),
        (keeps_answers, informs): (bool, bool),
    ) -> Result<Option<ItipOutcome>> {
        let concerns_others = [old, new].into_iter().flatten().any(is_meeting);
        if self.mail.is_none() || shelf.area != Area::Calendars || shelf.is_inbox() || !concerns_others {
            return Ok(None);
        }
        let person = itip::Person { addresses: self.addresses(&home.owner), zone: home.floating(shelf) };
        // Attendees answer their organizer alone, however many they are.
        let sends_copies = |calendar: &&Component| {
            let mut organizers = calendar.components().filter_map(|part| part.line("ORGANIZER"));
            informs && organizers.any(|line| person.addresses.contains(&comparable(line.value())))
        };
        [old, new].into_iter().flatten().filter(sends_copies).try_for_each(check_copies)?;
        let change = Change { stored: old, new, keeps_answers, informs };
        match itip::change(change, &person, self.now()) {
            Ok(outcome) => Ok(Some(outcome)),
            // What cannot be scheduled is stored all the same: it was brought from elsewhere.
            Err(Reason::NothingToSchedule | Reason::NoUid | Reason::NoOrganizer | Reason::UnreadableTime) => {
                Ok(None)
            }
            Err(reason @ (Reason::OrganizerChanged | Reason::OrganizersLine { .. })) => Err(
                Refusal::forbidden((CALDAV, "allowed-attendee-scheduling-object-change"), reason.to_string()),
            ),
            Err(reason) => Err(Refusal::forbidden((CALDAV, "valid-scheduling-message"), reason.to_string())),
        }
    }

    /// Messages as they are deposited, in the name of `owner`. What is no mail address cannot be reached.
    pub(crate) fn outgoing(&self, owner: &Person, messages: &[Message]) -> Vec<Outgoing> {
        let Some(mail) = &self.mail else { return Vec::new() };
        messages.iter().filter_map(|message| self.written(mail, owner, message)).collect()
    }

    fn written(&self, mail: &DavMail, owner: &Person, message: &Message) -> Option<Outgoing> {
        let to = self.mail_address_of(mail, &message.to)?;
        let from = self.mail_address_of(mail, &message.from)?;
        // Somebody here reads it in their language, by their clock; others in that of who writes.
        let reader = match mail.resolver.find(&to) {
            Found::Person(person) => Some(person),
            _ => None,
        };
        let reader = reader.as_deref().unwrap_or(owner);
        let language = reader.language.as_deref().map(Language::of_tag).unwrap_or_default();
        let scheduling = SchedulingMail::new(message, language, &zone_of_person(reader));
        let id: String = blake3::derive_key(
            "scrinium 2026 id of a message about a meeting",
            message.identity().as_bytes(),
        )
        .iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect();
        let part = |part: &scrinium_calendar::imip::MailPart| WrittenPart {
            content_type: part.content_type.clone(),
            file_name: part.file_name,
            content: part.content.clone(),
        };
        let alternatives: Vec<WrittenPart> = scheduling.alternatives.iter().map(part).collect();
        let file = part(&scheduling.attachment);
        let written = WrittenMessage {
            id: &id,
            from: (owner.shown_name(), &from),
            to: ("", &to),
            subject: &scheduling.subject,
            now_ms: self.now_ms(),
            fields: &scheduling.fields,
            alternatives: &alternatives,
            file: Some(&file),
        };
        let message = IncomingMessage {
            source: written.to_source(),
            recipients: vec![to],
            return_path: from,
            envelope: EnvelopeItems { submitter: Some(owner.short_name.clone()), ..EnvelopeItems::default() },
        };
        Some((id, message))
    }

    /// The mail address of a calendar user: an address, or the path of a principal.
    pub(crate) fn mail_address_of(&self, mail: &DavMail, user: &str) -> Option<String> {
        if user.contains('@') && !user.contains(['/', ' ', '<', '>']) {
            return Some(user.to_owned());
        }
        let path = scrinium_dav_wire::header::parse_destination(user)?.1;
        let Some(Place::Principal { person }) = Place::parse(path) else { return None };
        mail.resolver.mailbox_of(self.person(&person)?.as_ref()).map(|mailbox| mailbox.to_string())
    }

    /// The object that a UID leads to in somebody's calendars.
    pub(crate) fn object_of(&self, home: &Home, uid: &str) -> Result<Option<StoredObject>> {
        let id = id_of(Area::Calendars, uid, None);
        let Some((_, fields)) = read(&home.database, &id, &home.access)? else { return Ok(None) };
        let Some(bytes) = source(&home.database, &id, Area::Calendars, &home.access)? else {
            return Ok(None);
        };
        let Ok(calendar) = Component::parse(&bytes, ContentLimits::default()) else { return Ok(None) };
        Ok(Some(StoredObject { id, calendar, is_filed: fields.contains_key(FILED) }))
    }

    /// Stores edits in somebody's mail database together with messages. Where no batch can hold both, the messages go first: what
    /// went out and was not stored goes out again, and who has had it knows it by its content.
    pub(crate) fn store_with(
        &self,
        home: &Home,
        edits: Vec<Edit>,
        messages: &[Outgoing],
    ) -> Result<DavUpdate> {
        let Some(mail) = self.mail.as_ref().filter(|_| !messages.is_empty()) else {
            return Ok(DavUpdate::Alone(home.database.update(edits, EditMode::Interactive, &home.access)?));
        };
        if messages.len() <= TOGETHER_MAX
            && let Some(letters) = mail.mailboxes.part_of(messages).map_err(undeposited)?
            && letters.database.shares_a_batch_with(&home.database)
        {
            let own = TransactionPart {
                database: Arc::clone(&home.database),
                access: home.access.clone(),
                conditions: Vec::new(),
                edits,
            };
            return match update_together(vec![own, letters]) {
                Ok(update) => Ok(DavUpdate::Together(update)),
                Err(TransactionRefusal::Edit { error, .. } | TransactionRefusal::Whole(error)) => {
                    Err(error.into())
                }
                Err(refused @ TransactionRefusal::Condition { .. }) => {
                    Err(DatabaseError::Internal { reason: refused.to_string() }.into())
                }
            };
        }
        for (id, message) in messages {
            mail.mailboxes.deposit_message(id, message).map_err(undeposited)?;
        }
        Ok(DavUpdate::Alone(home.database.update(edits, EditMode::Interactive, &home.access)?))
    }
}

fn undeposited(error: DepositError) -> Refusal {
    match error {
        DepositError::Database(error) => error.into(),
        other => DatabaseError::Internal { reason: other.to_string() }.into(),
    }
}

/// # Errors
/// 403 where too many would get too much (RFC 4791, section 5.2.9).
fn check_copies(calendar: &Component) -> Result<()> {
    let people = calendar.components().map(|part| attendees(part).count()).max().unwrap_or(0);
    let bytes = calendar.to_bytes().len();
    if people > ATTENDEES_MAX || people.saturating_mul(bytes) > COPIES_BYTES_MAX {
        let reason = format!(
            "A meeting has at most {ATTENDEES_MAX} attendees, and fewer if it is long: each of them gets a copy."
        );
        return Err(Refusal::forbidden((CALDAV, "max-attendees-per-instance"), reason));
    }
    Ok(())
}
