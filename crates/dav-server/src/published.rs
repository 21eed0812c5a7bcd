//! Calendars that their owners publish: who has the secret link reads them, without a log-in.
//!
//! Nothing is published unless the owner says so of a calendar, and a link that is taken back opens nothing any more. What goes out is what an
//! event is about and when: no people, no alarms, nothing with a CLASS other than PUBLIC, and of a link for free time the times alone.

use std::collections::HashSet;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Response, StatusCode};
use scrinium_calendar::busy::{BusyTime, FreeBusyHead};
use scrinium_calendar::event::ComponentKind;
use scrinium_calendar::series::InstantRange;
use scrinium_calendar::zone::Instant;
use scrinium_database::{DatabaseError, new_id};
use scrinium_dav::place::{Area, Place};
use scrinium_dav_wire::content::{Component, ContentItem, ContentLimits, ContentLine};
use scrinium_dav_wire::header::{encode_segment, path_segments};
use scrinium_dav_wire::value::escape_text;
use scrinium_dav_wire::xml::{Element, XmlLimits};
use scrinium_dav_wire::{CALENDAR_SERVER, DAV};

use crate::home::{Home, Shelf, stored_properties};
use crate::refusal::{Refusal, Result, too_many};
use crate::service::{Asked, DavService, xml};

/// What the paths of links begin with.
const ROOT: &str = "_published";

/// Published of events: so far back and ahead.
const BACK_S: i64 = 62 * 86_400;
const AHEAD_S: i64 = 400 * 86_400;

/// The same of free time.
const BUSY_AHEAD_S: i64 = 62 * 86_400;

/// A published calendar is no longer.
const BYTES_MAX: usize = 8 << 20;

/// Definitions of zones in it.
const ZONES_MAX: usize = 100;

/// What of an event goes out.
const SHOWN: [&str; 22] = [
    "UID",
    "DTSTAMP",
    "DTSTART",
    "DTEND",
    "DURATION",
    "RRULE",
    "RDATE",
    "EXDATE",
    "RECURRENCE-ID",
    "SEQUENCE",
    "CREATED",
    "LAST-MODIFIED",
    "SUMMARY",
    "DESCRIPTION",
    "LOCATION",
    "GEO",
    "URL",
    "STATUS",
    "TRANSP",
    "CATEGORIES",
    "COLOR",
    "CLASS",
];

/// The path of the link with a secret.
pub(crate) fn link(person: &str, secret: &str) -> String {
    format!("/{ROOT}/{}/{secret}.ics", encode_segment(person.as_bytes()))
}

/// What a link gives.
enum Wanted {
    Events,
    FreeTime,
}

impl DavService {
    /// `CS:publish-calendar` and `CS:unpublish-calendar`: the owner makes a link, or takes back the one that there is.
    pub(crate) fn publish(&self, asked: &Asked<'_>) -> Result<Response<Bytes>> {
        let Place::Collection { area: Area::Calendars, person, collection } = &asked.place else {
            return Err(Refusal::not_allowed("Only an outbox and calendars take what is posted."));
        };
        let order = Element::parse(&asked.request.body, XmlLimits::default()).ok();
        let is = |name: &str| order.as_ref().is_some_and(|order| order.is(CALENDAR_SERVER, name));
        let home = self.home(person, asked.identity)?;
        let shelf = home.shelf(Area::Calendars, collection)?;
        // Whom the owner lets read or edit lets nobody else read.
        if !home.is_owner {
            return Err(Refusal::read_only());
        }
        home.check_editor()?;
        if shelf.is_inbox() {
            return Err(Refusal::forbidden((DAV, "need-privileges"), "This cannot be published."));
        }
        let secret = if is("publish-calendar") {
            Some(shelf.published.clone().unwrap_or_else(|| new_secret(self.now_ms())))
        } else if is("unpublish-calendar") {
            None
        } else {
            return Err(Refusal::not_allowed("What is posted to a calendar publishes it, or ends that."));
        };
        let stored = stored_properties(&shelf.properties, secret.as_deref())?;
        home.database.set_folder_properties(&shelf.info.name, &stored)?;
        let mut answer = Element::new(CALENDAR_SERVER, "publish-url");
        if let Some(secret) = &secret {
            answer = answer.with(Element::new(DAV, "href").with_text(&link(person, secret)));
        }
        Ok(xml(StatusCode::OK, answer.write()))
    }

    /// What a link gives to whom it was given.
    ///
    /// # Errors
    /// 404 for everything that is no link.
    pub(crate) fn published_at(&self, path: &str) -> Result<Response<Bytes>> {
        let (person, secret, wanted) = parse(path).ok_or_else(Refusal::missing)?;
        let owner = self.person(&person).ok_or_else(Refusal::missing)?;
        let database = match self.databases.get(&owner.mail_file) {
            Ok(opened) => std::sync::Arc::clone(opened.database()),
            Err(DatabaseError::NotFound { .. }) => return Err(Refusal::missing()),
            Err(error) => return Err(error.into()),
        };
        let home = Home::for_looking(owner, database);
        let digest = blake3::hash(secret.as_bytes());
        // Digests are compared in a time that says nothing.
        let is_meant = |shelf: &Shelf| {
            shelf.published.as_ref().is_some_and(|own| blake3::hash(own.as_bytes()) == digest)
        };
        let shelf = home.shelves(Area::Calendars)?.into_iter().find(is_meant);
        let shelf = shelf.ok_or_else(Refusal::missing)?;
        let bytes = match wanted {
            Wanted::Events => self.events_of(&home, &shelf)?,
            Wanted::FreeTime => self.free_time_of(&home, &shelf)?,
        };
        let mut response = Response::new(Bytes::from(bytes));
        for (name, value) in [
            (CONTENT_TYPE, "text/calendar; charset=utf-8"),
            (CACHE_CONTROL, "private, max-age=300"),
            (CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox"),
            (HeaderName::from_static("x-robots-tag"), "noindex"),
            (http::header::REFERRER_POLICY, "no-referrer"),
        ] {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        Ok(response)
    }

    fn span(&self, back_s: i64, ahead_s: i64) -> InstantRange {
        let now = self.now().0;
        InstantRange { from: Instant(now.saturating_sub(back_s)), to: Instant(now.saturating_add(ahead_s)) }
    }

    fn events_of(&self, home: &Home, shelf: &Shelf) -> Result<Vec<u8>> {
        let collection = home.collection(self, shelf);
        let range = self.span(BACK_S, AHEAD_S);
        let members = collection.contents()?.members_in(
            range,
            &collection.owned.addresses,
            &collection.owned.floating,
        )?;
        let Some(mut calendar) = Component::new("VCALENDAR") else { return Err(Refusal::missing()) };
        let name = shelf.property(DAV, "displayname").map_or_else(|| shelf.segment.clone(), Element::text);
        for (line, value) in [
            ("VERSION", "2.0"),
            ("PRODID", "-//Scrinium//Published//EN"),
            ("METHOD", "PUBLISH"),
            ("X-WR-CALNAME", &escape_text(&name)),
        ] {
            calendar.items.extend(ContentLine::new(line, Vec::new(), value).map(ContentItem::Line));
        }
        let (mut zones, mut bytes) = (HashSet::new(), 0);
        for member in members.iter().filter(|member| member.kind == Some(ComponentKind::Event)) {
            if member.is_private {
                continue;
            }
            let Some(source) = self.source(home, shelf, member)? else { continue };
            let Ok(stored) = Component::parse(&source, ContentLimits::default()) else { continue };
            for part in stored.components().filter_map(|part| shown(part, &mut zones)) {
                bytes += part.to_bytes().len();
                if bytes > BYTES_MAX {
                    return Err(too_many());
                }
                calendar.items.push(ContentItem::Component(part));
            }
        }
        Ok(calendar.to_bytes())
    }

    fn free_time_of(&self, home: &Home, shelf: &Shelf) -> Result<Vec<u8>> {
        let collection = home.collection(self, shelf);
        let mut busy = BusyTime::new(self.span(0, BUSY_AHEAD_S));
        if shelf.is_opaque() {
            let of = (collection.owned.addresses.as_slice(), &collection.owned.floating);
            collection.contents()?.add_busy(&mut busy, of, None)?;
        }
        let head = FreeBusyHead { method: Some("PUBLISH"), now: self.now(), ..FreeBusyHead::default() };
        Ok(scrinium_calendar::busy::write(&busy, head).map(|written| written.to_bytes()).unwrap_or_default())
    }
}

/// `/_published/{person}/{secret}.ics`, or `.ifb`.
fn parse(path: &str) -> Option<(String, String, Wanted)> {
    let segments = path_segments(path)?;
    let [root, person, name] = <[Vec<u8>; 3]>::try_from(segments).ok()?;
    let [person, name] = [person, name].map(|segment| String::from_utf8(segment).ok());
    let (name, person) = (name?, person?);
    let (secret, extension) = name.rsplit_once('.')?;
    let wanted = match extension {
        "ics" => Wanted::Events,
        "ifb" => Wanted::FreeTime,
        _ => return None,
    };
    (root == ROOT.as_bytes() && !secret.is_empty()).then(|| (person, secret.to_owned(), wanted))
}

/// 128 bits that nobody guesses.
fn new_secret(now_ms: u64) -> String {
    let mut hasher = blake3::Hasher::new();
    // Each has 96 random bits.
    hasher.update(new_id(now_ms).as_bytes());
    hasher.update(new_id(now_ms).as_bytes());
    hasher.finalize().to_hex().chars().take(32).collect()
}

/// What of a component goes out: of an event what is shown, and each zone once.
fn shown(part: &Component, zones: &mut HashSet<String>) -> Option<Component> {
    match part.name() {
        "VTIMEZONE" => {
            let id = part.line("TZID")?.value().to_owned();
            (zones.len() < ZONES_MAX && zones.insert(id)).then(|| part.clone())
        }
        "VEVENT" => {
            let mut event = Component::new("VEVENT")?;
            let lines = part.lines().filter(|line| SHOWN.contains(&line.name())).cloned();
            event.items.extend(lines.map(ContentItem::Line));
            Some(event)
        }
        _ => None,
    }
}
