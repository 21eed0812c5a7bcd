//! MKCOL, MKCALENDAR and PROPPATCH: collections are made, and what clients keep with them.

use bytes::Bytes;
use http::{Response, StatusCode};
use scrinium_calendar::event::ComponentKind;
use scrinium_database::FolderKind;
use scrinium_dav::answer::error;
use scrinium_dav::place::{Area, Place};
use scrinium_dav_wire::multistatus::{MultistatusWriter, PropertyStatus, ResourceResponse};
use scrinium_dav_wire::request::{MakeCollection, PropertyChange, PropertyUpdate};
use scrinium_dav_wire::xml::{Element, Name, XmlLimits};
use scrinium_dav_wire::{CALDAV, CARDDAV, DAV};

use crate::home::{kinds_in, stored_properties};
use crate::properties::is_protected;
use crate::refusal::{Refusal, Result};
use crate::service::{Asked, DavService, empty, xml};

/// Somebody has at most this many collections of an area.
const COLLECTIONS_MAX: usize = 200;

impl DavService {
    pub(crate) fn make_collection(&self, asked: &Asked<'_>, is_calendar: bool) -> Result<Response<Bytes>> {
        let Place::Collection { area, person, collection } = &asked.place else {
            let reason = "A collection lies among those of a person.";
            // RFC 4918, section 9.3.1: within a collection there is no other one.
            return Err(Refusal::forbidden((CALDAV, "calendar-collection-location-ok"), reason));
        };
        let home = self.home(person, asked.identity)?;
        home.check_editor()?;
        let made = MakeCollection::parse(&asked.request.body, is_calendar, XmlLimits::default())?;
        check_kind(*area, &made)?;
        if crate::home::is_reserved(*area, collection) {
            let reason = "This name is for messages about meetings.";
            return Err(Refusal::forbidden((CALDAV, "calendar-collection-location-ok"), reason));
        }
        if home.find_shelf(*area, collection)?.is_some() {
            let reason = "There is something under this path already.";
            let condition = (DAV, "resource-must-be-null");
            return Err(Refusal::of_condition(StatusCode::METHOD_NOT_ALLOWED, condition, reason));
        }
        // Folders are one for names that differ in case alone.
        let folder = crate::home::folder_name(*area, collection)?;
        if home.database.folder(&folder, None).is_ok_and(|info| info.kind != FolderKind::Plain) {
            let reason = "There is a collection whose name differs in case alone.";
            return Err(Refusal::new(StatusCode::FORBIDDEN, reason));
        }
        if home.shelves(*area)?.len() >= COLLECTIONS_MAX {
            let reason = format!("A person has at most {COLLECTIONS_MAX} such collections.");
            return Err(Refusal::new(StatusCode::INSUFFICIENT_STORAGE, reason));
        }
        let set = made.properties.iter().find(|one| one.is(CALDAV, "supported-calendar-component-set"));
        let kinds = set.map(kinds_in);
        if kinds.as_ref().is_some_and(Vec::is_empty) {
            let reason = "Calendars hold VEVENT, VTODO and VJOURNAL.";
            return Err(Refusal::forbidden((CALDAV, "supported-calendar-component"), reason));
        }
        let kind = match (area, kinds.as_deref()) {
            (Area::Contacts, _) => FolderKind::Contacts,
            (Area::Calendars, Some([ComponentKind::Todo])) => FolderKind::Tasks,
            (Area::Calendars, _) => FolderKind::Calendar,
        };
        let is_kept = |property: &&Element| {
            property.is(CALDAV, "supported-calendar-component-set") || !is_protected(&property.name)
        };
        let properties: Vec<Element> = made.properties.iter().filter(is_kept).cloned().collect();
        home.make(*area, collection, kind, &properties)?;
        Ok(empty(StatusCode::CREATED))
    }

    pub(crate) fn change_properties(&self, asked: &Asked<'_>) -> Result<Response<Bytes>> {
        let PropertyUpdate(changes) = PropertyUpdate::parse(&asked.request.body, XmlLimits::default())?;
        let Place::Collection { area, person, collection } = &asked.place else {
            self.check_changeable(asked)?;
            return Ok(refused(asked, &changes, |_| true));
        };
        let home = self.home(person, asked.identity)?;
        let shelf = home.shelf(*area, collection)?;
        home.check_editor()?;
        if changes.iter().any(|change| is_protected(name_of(change))) {
            return Ok(refused(asked, &changes, is_protected));
        }
        let mut properties = shelf.properties.clone();
        for change in &changes {
            properties.retain(|property| property.name != *name_of(change));
            if let PropertyChange::Set(property) = change {
                properties.push(property.clone());
            }
        }
        let stored = stored_properties(&properties, shelf.published.as_deref())?;
        home.database.set_folder_properties(&shelf.info.name, &stored)?;
        let names = changes.iter().map(|change| Element::named(name_of(change))).collect();
        let done = PropertyStatus { status: StatusCode::OK.as_u16(), properties: names, error: None };
        Ok(answer(asked, vec![done]))
    }

    /// # Errors
    /// 404 for what is not there, and 403 for who may only read.
    fn check_changeable(&self, asked: &Asked<'_>) -> Result<()> {
        let Some(person) = asked.place.person() else { return Ok(()) };
        if let Place::Principal { person } = &asked.place {
            return self.visible_person(asked, person).map(drop);
        }
        let home = self.home(person, asked.identity)?;
        if let Place::Member { area, collection, name, .. } = &asked.place {
            self.member(&home, &home.shelf(*area, collection)?, name)?;
        }
        home.check_editor()
    }
}

fn name_of(change: &PropertyChange) -> &Name {
    match change {
        PropertyChange::Set(property) => &property.name,
        PropertyChange::Remove(name) => name,
    }
}

/// All or nothing: what could have been set fails with the rest (RFC 4918, section 9.2.1).
fn refused(
    asked: &Asked<'_>,
    changes: &[PropertyChange],
    is_refused: impl Fn(&Name) -> bool,
) -> Response<Bytes> {
    let (refused, others): (Vec<&Name>, Vec<&Name>) =
        changes.iter().map(name_of).partition(|name| is_refused(name));
    let part = |status: StatusCode, names: Vec<&Name>, error: Option<Element>| PropertyStatus {
        status: status.as_u16(),
        properties: names.into_iter().map(Element::named).collect(),
        error,
    };
    let condition = error((DAV, "cannot-modify-protected-property"));
    let mut parts = vec![part(StatusCode::FORBIDDEN, refused, Some(condition))];
    if !others.is_empty() {
        parts.push(part(StatusCode::FAILED_DEPENDENCY, others, None));
    }
    answer(asked, parts)
}

fn answer(asked: &Asked<'_>, properties: Vec<PropertyStatus>) -> Response<Bytes> {
    let mut writer = MultistatusWriter::default();
    let hrefs = vec![asked.place.href()];
    writer.push(&ResourceResponse { hrefs, properties, ..ResourceResponse::default() });
    xml(StatusCode::MULTI_STATUS, writer.finish(None))
}

/// What is made must be what lies there (RFC 5689, section 3).
fn check_kind(area: Area, made: &MakeCollection) -> Result<()> {
    let kind = made.properties.iter().find(|property| property.is(DAV, "resourcetype"));
    let names =
        |namespace: &str, local: &str| kind.is_some_and(|kind| kind.child(namespace, local).is_some());
    let is_other = match area {
        Area::Calendars => names(CARDDAV, "addressbook"),
        Area::Contacts => made.calendar || names(CALDAV, "calendar"),
    };
    if is_other {
        let reason = "Calendars lie among calendars, and address books among address books.";
        return Err(Refusal::forbidden((DAV, "valid-resourcetype"), reason));
    }
    Ok(())
}
