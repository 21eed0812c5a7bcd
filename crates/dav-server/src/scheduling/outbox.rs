//! Whose time is free (RFC 6638, section 5): a question in the outbox.

use std::sync::Arc;

use bytes::Bytes;
use http::{Response, StatusCode};
use scrinium_calendar::address::{attendees, comparable};
use scrinium_calendar::busy::{BusyTime, FreeBusyHead};
use scrinium_calendar::series::InstantRange;
use scrinium_calendar::time::CalendarTime;
use scrinium_calendar::zone::{Instant, Zone, ZoneNames};
use scrinium_dav::place::{Area, Place};
use scrinium_dav_wire::content::{Component, ContentLimits, ContentLine};
use scrinium_dav_wire::xml::Element;
use scrinium_dav_wire::{CALDAV, DAV};
use scrinium_directory::{Found, Person};
use scrinium_mail::open_mail_file;

use super::profile::{BusyRule, Profile};
use crate::home::{Home, OUTBOX, zone_of_person};
use crate::refusal::{Refusal, Result};
use crate::service::{Asked, DavService, xml};

/// People of one question.
const PEOPLE_MAX: usize = 500;

/// The longest span that is asked for.
const SPAN_MAX_S: i64 = 400 * 86_400;

/// A question.
struct Question {
    range: InstantRange,
    uid: Option<String>,
    organizer: Option<ContentLine>,
    attendees: Vec<ContentLine>,
}

impl DavService {
    /// POST: a question to the outbox, or a calendar is published.
    pub(crate) fn post(&self, asked: &Asked<'_>) -> Result<Response<Bytes>> {
        let is_outbox = |area: &Area, collection: &str| *area == Area::Calendars && collection == OUTBOX;
        let person = match &asked.place {
            Place::Collection { area, person, collection } if is_outbox(area, collection) => person,
            _ => return self.publish(asked),
        };
        let home = self.home(person, asked.identity)?;
        if !home.is_owner || self.mail.is_none() {
            return Err(Refusal::read_only());
        }
        let question = self.question(&asked.request.body, &home)?;
        let mut answer = Element::new(CALDAV, "schedule-response");
        for attendee in &question.attendees {
            answer = answer.with(self.told_of(asked, &question, attendee)?);
        }
        Ok(xml(StatusCode::OK, answer.write()))
    }

    fn question(&self, body: &[u8], home: &Home) -> Result<Question> {
        let wrong = |reason: &str| Refusal::forbidden((CALDAV, "valid-scheduling-message"), reason);
        let calendar = Component::parse(body, ContentLimits::default())
            .map_err(|error| Refusal::forbidden((CALDAV, "valid-calendar-data"), error.to_string()))?;
        let is_request =
            calendar.line("METHOD").is_some_and(|line| line.value().trim().eq_ignore_ascii_case("REQUEST"));
        let part = calendar.components().find(|part| part.name() == "VFREEBUSY");
        let part = part
            .filter(|_| is_request)
            .ok_or_else(|| wrong("A question is a VFREEBUSY with METHOD:REQUEST."))?;
        let organizer = part.line("ORGANIZER").cloned();
        let is_own = |line: &ContentLine| self.is_of(&home.owner, line.value());
        // RFC 6638, section 5.1: nobody asks in another's name.
        if !organizer.as_ref().is_some_and(is_own) {
            return Err(Refusal::forbidden(
                (CALDAV, "organizer-allowed"),
                "The organizer of a question is the owner of the outbox.",
            ));
        }
        let mut zones = ZoneNames::new(&calendar, Zone::utc());
        let mut time = |name: &str| {
            let time = CalendarTime::read(part.line(name)?, &mut zones)?;
            Some(time.instant(&zone_of_person(&home.owner)))
        };
        let (from, to): (Option<Instant>, Option<Instant>) = (time("DTSTART"), time("DTEND"));
        let range = from.zip(to).map(|(from, to)| InstantRange { from, to });
        let range = range
            .filter(|range| range.from < range.to && range.to.0.saturating_sub(range.from.0) <= SPAN_MAX_S)
            .ok_or_else(|| wrong("A question has a start and an end, at most 400 days apart."))?;
        let attendees: Vec<ContentLine> = attendees(part).take(PEOPLE_MAX + 1).cloned().collect();
        if attendees.len() > PEOPLE_MAX {
            return Err(wrong("A question is about at most 500 people."));
        }
        let uid = part.line("UID").map(|line| line.value().to_owned());
        Ok(Question { range, uid, organizer, attendees })
    }

    /// Whether a calendar user is this person.
    fn is_of(&self, person: &Person, user: &str) -> bool {
        let address = comparable(user);
        self.addresses(person).contains(&address)
            || self
                .mail
                .as_ref()
                .and_then(|mail| self.mail_address_of(mail, user.trim()))
                .is_some_and(|address| self.addresses(person).contains(&comparable(&address)))
    }

    fn told_of(&self, asked: &Asked<'_>, question: &Question, attendee: &ContentLine) -> Result<Element> {
        let href = Element::new(DAV, "href").with_text(attendee.value().trim());
        let response = Element::new(CALDAV, "response").with(Element::new(CALDAV, "recipient").with(href));
        let status = |text: &str| Element::new(CALDAV, "request-status").with_text(text);
        let Some(home) = self.asked_about(asked, attendee.value())? else {
            // The same for whom there is not and for who does not say.
            return Ok(response.with(status("3.7;Invalid calendar user")));
        };
        let mut busy = BusyTime::new(question.range);
        self.add_busy(&home, &mut busy, None)?;
        let head = FreeBusyHead {
            method: Some("REPLY"),
            uid: question.uid.clone(),
            now: self.now(),
            organizer: question.organizer.clone(),
            attendee: Some(attendee.clone()),
        };
        let calendar = scrinium_calendar::busy::write(&busy, head);
        let bytes = calendar.map(|calendar| calendar.to_bytes()).unwrap_or_default();
        let data = Element::new(CALDAV, "calendar-data").with_text(&String::from_utf8_lossy(&bytes));
        Ok(response.with(status("2.0;Success")).with(data))
    }

    /// The calendars of somebody whose free time the one who asks may know.
    fn asked_about(&self, asked: &Asked<'_>, user: &str) -> Result<Option<Home>> {
        let Some(mail) = &self.mail else { return Ok(None) };
        let Some(address) = self.mail_address_of(mail, user.trim()).or_else(|| Some(comparable(user))) else {
            return Ok(None);
        };
        let Found::Person(person) = mail.resolver.find(&comparable(&address)) else { return Ok(None) };
        let Some(asker) = &asked.person else { return Ok(None) };
        let database = match self.databases.get(&person.mail_file) {
            Ok(database) => Arc::clone(database.database()),
            // A room that nobody has booked yet is free.
            Err(scrinium_database::DatabaseError::NotFound { .. }) if person.resource.is_some() => {
                Arc::clone(open_mail_file(&self.databases, &person)?.database())
            }
            // Who has no mail database yet has nothing in a calendar; whether they say so cannot be known.
            Err(scrinium_database::DatabaseError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let may_know = asker.id == person.id
            || match Profile::of(&database, &person)?.busy {
                // Colleagues, and who else finds the person in the directory.
                BusyRule::People => {
                    asker.domain() == person.domain()
                        || self.visible_person(asked, &person.short_name).is_ok()
                }
                BusyRule::Nobody => false,
                BusyRule::Only(list) => self.addresses(asker).iter().any(|address| list.contains(address)),
            };
        if !may_know {
            return Ok(None);
        }
        Ok(Some(Home::for_looking(person, database)))
    }
}
