//! REPORT: queries of calendars and address books, busy time, and what is known of people.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Response, StatusCode};
use scrinium_calendar::busy::{BusyTime, FreeBusyHead};
use scrinium_calendar::event::ComponentKind;
use scrinium_calendar::zone::Zone;
use scrinium_dav::answer::Question;
use scrinium_dav::filter::{
    asked_range, calendar_matches, card_matches, instants, knows_collations, knows_collations_of,
};
use scrinium_dav::place::{Area, Place};
use scrinium_dav_wire::content::{Component, ContentLimits};
use scrinium_dav_wire::header::parse_destination;
use scrinium_dav_wire::report::{ExpandedProperty, PropertySearch, Report};
use scrinium_dav_wire::xml::{Element, XmlLimits};
use scrinium_dav_wire::{CALDAV, CALENDAR_SERVER, CARDDAV, ComponentFilter, ContactFilter, DAV, TimeRange};
use scrinium_directory::{Found, NameLookup as _, Person};

use crate::collection::Member;
use crate::home::{Home, Shelf, zone_of};
use crate::properties::{Target, Told};
use crate::propfind::{ANSWER_BYTES_MAX, Answers};
use crate::refusal::{Refusal, Result, too_many, unsupported_collation};
use crate::service::{Asked, DavService, xml};

/// Properties of one expand-property, at all depths.
const EXPANDED_MAX: usize = 200;

/// Resources that one expand-property looks at.
const EXPANDED_RESOURCES_MAX: usize = 200;

impl DavService {
    pub(crate) fn report(&self, asked: &Asked<'_>) -> Result<Response<Bytes>> {
        match Report::parse(&asked.request.body, XmlLimits::default())? {
            Report::CalendarQuery { selection, filter, time_zone, time_zone_id } => {
                let zone = time_zone.as_deref().and_then(zone_of);
                let zone = zone.or_else(|| time_zone_id.as_deref().and_then(Zone::named));
                self.calendar_query(asked, &Question::from(selection), &filter, zone)
            }
            Report::CalendarMultiget { selection, hrefs } => {
                self.multiget(asked, (Area::Calendars, &hrefs), &Question::from(selection))
            }
            Report::AddressbookMultiget { selection, hrefs } => {
                self.multiget(asked, (Area::Contacts, &hrefs), &Question::from(selection))
            }
            Report::AddressbookQuery { selection, filter, limit } => {
                self.addressbook_query(asked, &Question::from(selection), (&filter, limit))
            }
            Report::FreeBusyQuery(range) => self.free_busy_query(asked, &range),
            Report::SyncCollection { token, infinite: false, limit, selection } => {
                self.sync_collection(asked, (token.as_deref(), limit), &Question::from(selection))
            }
            Report::SyncCollection { .. } => {
                let reason = "Ask for one level at a time.";
                Err(Refusal::forbidden((DAV, "sync-traversal-supported"), reason))
            }
            Report::ExpandProperty(properties) => self.expand_property(asked, &properties),
            Report::PrincipalPropertySearch { any_of, searches, properties, .. } => {
                let question = Question::of(properties);
                self.search_principals(asked, (&searches, any_of), &question)
            }
            Report::PrincipalSearchPropertySet => Ok(searchable()),
            Report::PrincipalMatch { property: None, properties } => {
                let question = Question::of(properties);
                let mut answers = Answers::new(asked, &question);
                if let Some(person) = &asked.person {
                    let place = Place::Principal { person: person.short_name.clone() };
                    answers.push(place, self.principal(Arc::clone(person)));
                }
                Ok(answers.finish(None))
            }
            Report::PrincipalMatch { .. } | Report::AclPrincipalPropSet(_) | Report::Other(_) => {
                Err(Refusal::forbidden((DAV, "supported-report"), "The report is not known here."))
            }
        }
    }

    /// The collection, or the one member, that a report is about.
    fn reported(&self, asked: &Asked<'_>, wanted: Area) -> Result<(Home, Shelf, Option<Arc<Member>>)> {
        let (area, person, collection, name) = match &asked.place {
            Place::Collection { area, person, collection } => (*area, person, collection, None),
            Place::Member { area, person, collection, name } => (*area, person, collection, Some(name)),
            _ => {
                let reason = "Ask a collection.";
                return Err(Refusal::forbidden((DAV, "supported-report"), reason));
            }
        };
        if area != wanted {
            let reason = "This collection has no such report.";
            return Err(Refusal::forbidden((DAV, "supported-report"), reason));
        }
        let home = self.home(person, asked.identity)?;
        let shelf = home.shelf(area, collection)?;
        let member = name.map(|name| self.member(&home, &shelf, name)).transpose()?;
        Ok((home, shelf, member))
    }

    fn calendar_query(
        &self,
        asked: &Asked<'_>,
        question: &Question,
        filter: &ComponentFilter,
        zone: Option<Zone>,
    ) -> Result<Response<Bytes>> {
        if !knows_collations(filter) {
            return Err(unsupported_collation());
        }
        let (home, shelf, only) = self.reported(asked, Area::Calendars)?;
        let floating = zone.unwrap_or_else(|| home.floating(&shelf));
        let candidates = match only {
            Some(member) => vec![member],
            None => self.candidates(&home, &shelf, filter, &floating)?,
        };
        let mut answers = Answers::new(asked, question);
        for member in &candidates {
            if answers.is_full() {
                return Err(too_many());
            }
            let Some(source) = self.source(&home, &shelf, member)? else { continue };
            let Ok(calendar) = Component::parse(&source, ContentLimits::default()) else { continue };
            if !calendar_matches(&calendar, filter, &floating) {
                continue;
            }
            answers.push_member((&home, &shelf, member), Some(&source), &floating);
        }
        Ok(answers.finish(None))
    }

    /// The members that a filter may mean: where it asks for a span, those that the index has there.
    fn candidates(
        &self,
        home: &Home,
        shelf: &Shelf,
        filter: &ComponentFilter,
        floating: &Zone,
    ) -> Result<Vec<Arc<Member>>> {
        let collection = home.collection(self, shelf);
        let contents = collection.contents()?;
        let members = match asked_range(filter) {
            None => contents.members()?,
            // To-dos also take place by when they were made and completed, which the index does not have.
            Some((kind @ ComponentKind::Todo, _)) => contents.members_of_kind(kind)?,
            Some((kind, range)) => {
                let mut found = contents.members_in(range, &collection.owned.addresses, floating)?;
                found.retain(|member| member.kind == Some(kind));
                found
            }
        };
        Self::visible(home, members)
    }

    fn addressbook_query(
        &self,
        asked: &Asked<'_>,
        question: &Question,
        (filter, limit): (&ContactFilter, Option<u64>),
    ) -> Result<Response<Bytes>> {
        if !filter.properties.iter().all(knows_collations_of) {
            return Err(Refusal::forbidden(
                (CARDDAV, "supported-collation"),
                "The collation is not known here.",
            ));
        }
        let (home, shelf, only) = self.reported(asked, Area::Contacts)?;
        let floating = Zone::utc();
        let candidates = match only {
            Some(member) => vec![member],
            None => self.members(&home, &shelf)?,
        };
        let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
        let mut answers = Answers::new(asked, question);
        let mut found = 0;
        for member in &candidates {
            let Some(source) = self.source(&home, &shelf, member)? else { continue };
            let Ok(card) = Component::parse(&source, ContentLimits::default()) else { continue };
            if !card_matches(&card, filter) {
                continue;
            }
            // RFC 6352, section 8.6.2.
            if found >= limit || answers.is_full() {
                let status = StatusCode::INSUFFICIENT_STORAGE.as_u16();
                answers.push_error(asked.place.href(), status, (DAV, "number-of-matches-within-limits"));
                break;
            }
            found += 1;
            answers.push_member((&home, &shelf, member), Some(&source), &floating);
        }
        Ok(answers.finish(None))
    }

    fn multiget(
        &self,
        asked: &Asked<'_>,
        (area, hrefs): (Area, &[String]),
        question: &Question,
    ) -> Result<Response<Bytes>> {
        let (home, shelf, _) = self.reported(asked, area)?;
        let name_of = |href: &String| match Place::parse(parse_destination(href)?.1) {
            Some(Place::Member { area: of, person, collection, name })
                if of == area && person == home.owner.short_name && collection == shelf.segment =>
            {
                Some(name)
            }
            _ => None,
        };
        let names: Vec<Option<String>> = hrefs.iter().map(name_of).collect();
        // The collection is brought up to date once for all of them.
        let contents = home.collection(self, &shelf).contents()?;
        let found = names.iter().map(|name| name.as_deref().map_or(Ok(None), |name| contents.named(name)));
        let found = found.collect::<scrinium_database::Result<Vec<Option<Arc<Member>>>>>()?;
        let visible = Self::visible(&home, found.iter().flatten().cloned().collect())?;
        let visible: HashSet<u64> = visible.iter().map(|member| member.uid).collect();
        let floating = home.floating(&shelf);
        let mut answers = Answers::new(asked, question);
        for (href, member) in hrefs.iter().zip(found) {
            if answers.is_full() {
                return Err(too_many());
            }
            match member.filter(|member| visible.contains(&member.uid)) {
                Some(member) => self.push_stored(&mut answers, (&home, &shelf, &member), &floating)?,
                None => answers.push_status(href.clone(), StatusCode::NOT_FOUND.as_u16()),
            }
        }
        Ok(answers.finish(None))
    }

    /// RFC 4791, section 7.10.
    fn free_busy_query(&self, asked: &Asked<'_>, range: &TimeRange) -> Result<Response<Bytes>> {
        if range.start.is_none() || range.end.is_none() {
            return Err(Refusal::new(StatusCode::BAD_REQUEST, "A span of busy time has a start and an end."));
        }
        let (home, shelf, _) = self.reported(asked, Area::Calendars)?;
        // Who may not read all documents would learn of others from the times that they take.
        if !home.is_owner && !home.database.shows_all(&home.access)? {
            return Err(Refusal::missing());
        }
        let mut busy = BusyTime::new(instants(range));
        let floating = home.floating(&shelf);
        if shelf.is_opaque() && !shelf.is_inbox() {
            let addresses = self.addresses(&home.owner);
            let contents = home.collection(self, &shelf).contents()?;
            contents.add_busy(&mut busy, (&addresses, &floating), None)?;
        }
        let head = FreeBusyHead { now: self.now(), ..FreeBusyHead::default() };
        let calendar = scrinium_calendar::busy::write(&busy, head);
        let bytes = calendar.map(|calendar| calendar.to_bytes()).unwrap_or_default();
        let mut response = Response::new(Bytes::from(bytes));
        let kind = http::HeaderValue::from_static("text/calendar; charset=utf-8");
        response.headers_mut().insert(CONTENT_TYPE, kind);
        Ok(response)
    }

    /// RFC 3253, section 3.8.
    fn expand_property(&self, asked: &Asked<'_>, properties: &[ExpandedProperty]) -> Result<Response<Bytes>> {
        if count(properties) > EXPANDED_MAX {
            return Err(Refusal::new(StatusCode::BAD_REQUEST, "Too many properties are asked for."));
        }
        let mut left = EXPANDED_RESOURCES_MAX;
        let response = self.expanded(asked, &asked.place, properties, &mut left)?;
        let root = Element::new(DAV, "multistatus").with(response);
        let text = root.write();
        if text.len() > ANSWER_BYTES_MAX {
            return Err(too_many());
        }
        Ok(xml(StatusCode::MULTI_STATUS, text))
    }

    fn expanded(
        &self,
        asked: &Asked<'_>,
        place: &Place,
        properties: &[ExpandedProperty],
        left: &mut usize,
    ) -> Result<Element> {
        *left = left.checked_sub(1).ok_or_else(too_many)?;
        let names = properties.iter().map(|property| property.name.clone()).collect();
        let question = Question::of(names);
        let mut response = self.told_alone(asked, place, &question)?;
        for part in &mut response.properties {
            for value in &mut part.properties {
                let asked_of = properties.iter().find(|property| property.name == value.name);
                let Some(asked_of) = asked_of.filter(|property| !property.properties.is_empty()) else {
                    continue;
                };
                let hrefs: Vec<String> =
                    value.elements().filter(|child| child.is(DAV, "href")).map(Element::text).collect();
                let mut expanded = Element::named(&value.name);
                for href in hrefs {
                    let found = Place::parse(href.trim())
                        .map(|place| self.expanded(asked, &place, &asked_of.properties, left));
                    match found {
                        Some(Ok(response)) => expanded = expanded.with(response),
                        Some(Err(refusal)) if refusal.status == StatusCode::INSUFFICIENT_STORAGE => {
                            return Err(refusal);
                        }
                        _ => expanded = expanded.with(Element::new(DAV, "href").with_text(&href)),
                    }
                }
                *value = expanded;
            }
        }
        Ok(scrinium_dav_wire::multistatus::response_element(&response))
    }

    fn told_alone(
        &self,
        asked: &Asked<'_>,
        place: &Place,
        question: &Question,
    ) -> Result<scrinium_dav_wire::multistatus::ResourceResponse> {
        let tell = |target: Target<'_>| {
            let told = Told { place: place.clone(), asker: asked.person.as_ref(), target };
            scrinium_dav::answer::response(place.href(), question, &told, asked.preferences.return_minimal)
        };
        match place {
            Place::Principal { person } => Ok(tell(self.principal(self.visible_person(asked, person)?))),
            Place::Home { area, person } => {
                let home = self.home(person, asked.identity)?;
                let change = home.shelves(*area)?.iter().map(|shelf| shelf.info.change_number).max();
                Ok(tell(Target::Home { home: &home, change: change.unwrap_or(0) }))
            }
            Place::Collection { area, person, collection } => {
                let home = self.home(person, asked.identity)?;
                let shelf = home.shelf(*area, collection)?;
                let reached = self.reached(&home, &shelf)?;
                let token = crate::sync::token(&home, &shelf, reached, None).text();
                Ok(tell(Target::Shelf { home: &home, shelf: &shelf, token }))
            }
            Place::Member { area, person, collection, name } => {
                let home = self.home(person, asked.identity)?;
                let shelf = home.shelf(*area, collection)?;
                let member = self.member(&home, &shelf, name)?;
                let floating = home.floating(&shelf);
                let target = Target::Member {
                    home: &home,
                    shelf: &shelf,
                    member: &member,
                    source: None,
                    floating: &floating,
                };
                Ok(tell(target))
            }
            Place::Root | Place::Principals | Place::Homes(_) => Ok(tell(Target::Junction)),
        }
    }

    /// People are found by a whole name or address, as far as the one who asks may read them in the directory (RFC 3744,
    /// section 9.4).
    fn search_principals(
        &self,
        asked: &Asked<'_>,
        (searches, any_of): (&[PropertySearch], bool),
        question: &Question,
    ) -> Result<Response<Bytes>> {
        let mut answers = Answers::new(asked, question);
        let mut found: Vec<Arc<Person>> = Vec::new();
        for search in searches.iter().take(16) {
            let wanted = scrinium_calendar::address::comparable(&search.text);
            if let Found::Person(person) = self.directory.find(&wanted)
                && !found.iter().any(|known| known.id == person.id)
            {
                found.push(person);
            }
        }
        let fits = |person: &Person, search: &PropertySearch| {
            let wanted = scrinium_calendar::address::comparable(&search.text);
            matches!(self.directory.find(&wanted), Found::Person(other) if other.id == person.id)
        };
        for person in found {
            let mut all = searches.iter().map(|search| fits(&person, search));
            let is_meant = if any_of { all.any(|fits| fits) } else { all.all(|fits| fits) };
            if is_meant && self.visible_person(asked, &person.short_name).is_ok() {
                let place = Place::Principal { person: person.short_name.clone() };
                answers.push(place, self.principal(person));
            }
        }
        Ok(answers.finish(None))
    }
}

fn count(properties: &[ExpandedProperty]) -> usize {
    properties.iter().map(|property| 1 + count(&property.properties)).sum()
}

/// RFC 3744, section 9.5.
fn searchable() -> Response<Bytes> {
    let property = |(namespace, local, text): (&str, &str, &str)| {
        let name = Element::new(DAV, "prop").with(Element::new(namespace, local));
        let description = Element::new(DAV, "description").with_text(text);
        Element::new(DAV, "principal-search-property").with(name).with(description)
    };
    let all = [
        (DAV, "displayname", "Name"),
        (CALDAV, "calendar-user-address-set", "Address"),
        (CALENDAR_SERVER, "email-address-set", "Mail address"),
    ];
    let root = Element::new(DAV, "principal-search-property-set").with_all(all.map(property));
    xml(StatusCode::OK, root.write())
}
