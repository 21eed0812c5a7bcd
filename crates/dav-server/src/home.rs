//! A person's calendars and address books: which there are, and what the one who asks may do there.

use std::sync::Arc;

use scrinium_calendar::event::ComponentKind;
use scrinium_calendar::zone::{Zone, ZoneNames};
use scrinium_database::folder::name::SEPARATOR;
use scrinium_database::{
    Access, Database, DatabaseError, FolderInfo, FolderKind, FolderUse, Identity, Level,
};
use scrinium_dav::object::component_name;
use scrinium_dav::place::{Area, Place};
use scrinium_dav_wire::content::{Component, ContentLimits};
use scrinium_dav_wire::xml::{Element, XmlLimits};
use scrinium_dav_wire::{CALDAV, DAV};
use scrinium_directory::{Found, NameLookup as _, Person};
use scrinium_mail::open_mail_file;

use crate::collection::{Collection, Owned};
use crate::document::ALL_KINDS;
use crate::refusal::{Refusal, Result};
use crate::service::DavService;

/// The folders that collections lie in.
const fn parent(area: Area) -> &'static str {
    match area {
        Area::Calendars => "Calendars",
        Area::Contacts => "Contacts",
    }
}

/// The namespace of what the server keeps with a collection, and no client sees or sets.
pub(crate) const OWN: &str = "urn:scrinium:dav";

/// The secret of a published calendar's link.
pub(crate) const PUBLISHED: &str = "published";

/// Where messages about meetings lie, among calendars (RFC 6638, section 2.2).
pub(crate) const INBOX: &str = "inbox";

/// Where questions go, among calendars (section 2.1). Nothing lies there.
pub(crate) const OUTBOX: &str = "outbox";

/// The collections that somebody gets who has none: path, name, and what is in them.
const USUAL_CALENDAR: &str = "calendar";
const USUAL: [(Area, &str, &str, FolderKind); 3] = [
    (Area::Calendars, USUAL_CALENDAR, "Calendar", FolderKind::Calendar),
    (Area::Calendars, "tasks", "Tasks", FolderKind::Tasks),
    (Area::Contacts, "contacts", "Contacts", FolderKind::Contacts),
];

/// A person's mail database, for the one who asks.
pub(crate) struct Home {
    pub(crate) owner: Arc<Person>,
    pub(crate) is_owner: bool,
    pub(crate) database: Arc<Database>,
    pub(crate) access: Access,
    asker: Option<Arc<str>>,
}

/// A folder that is a calendar or an address book.
#[derive(Clone, Debug)]
pub(crate) struct Shelf {
    pub(crate) area: Area,
    /// Its segment of paths.
    pub(crate) segment: String,
    pub(crate) info: FolderInfo,
    /// Properties that clients have set.
    pub(crate) properties: Vec<Element>,
    /// The secret of its link, if it is published.
    pub(crate) published: Option<String>,
}

impl DavService {
    /// Somebody of the directory under exactly this short name.
    pub(crate) fn person(&self, name: &str) -> Option<Arc<Person>> {
        match self.directory.find(name) {
            Found::Person(person) if person.short_name == name => Some(person),
            _ => None,
        }
    }

    /// The person who asks.
    pub(crate) fn asker(&self, identity: &Identity) -> Option<Arc<Person>> {
        match self.directory.find(identity.name()?) {
            Found::Person(person) => Some(person),
            _ => None,
        }
    }

    /// Opens what somebody has, for the one who asks. Their own is made if it is missing. Blocks.
    ///
    /// # Errors
    /// 404 for who may not read there.
    pub(crate) fn home(&self, name: &str, identity: &Identity) -> Result<Home> {
        let owner = self.person(name).ok_or_else(Refusal::missing)?;
        let is_owner = self.asker(identity).is_some_and(|asker| asker.id == owner.id);
        let opened = if is_owner {
            open_mail_file(&self.databases, &owner)?
        } else {
            // Administrators look at what is others' by the interface of documents, which puts it on record.
            if identity.is_administrator() {
                return Err(Refusal::missing());
            }
            self.databases.get(&owner.mail_file)?
        };
        let database = Arc::clone(opened.database());
        let access = database.access(identity)?;
        if access.level() < Level::Reader {
            return Err(Refusal::missing());
        }
        let home = Home { owner, is_owner, database, access, asker: identity.shared_name() };
        home.make_usual()?;
        Ok(home)
    }
}

impl Home {
    /// Whether the one who asks may change what is there.
    pub(crate) fn is_editor(&self) -> bool {
        self.access.level() >= Level::Editor
    }

    pub(crate) fn check_editor(&self) -> Result<()> {
        if self.is_editor() { Ok(()) } else { Err(Refusal::read_only()) }
    }

    pub(crate) fn asker(&self) -> Option<Arc<str>> {
        self.asker.clone()
    }

    /// Everybody has a calendar, tasks and contacts, so that a program finds somewhere to put them.
    fn make_usual(&self) -> Result<()> {
        if !self.is_owner || !self.is_editor() {
            return Ok(());
        }
        let folders = self.database.folders(None)?;
        for (area, segment, shown, kind) in USUAL {
            // To-dos may lie among events; then nobody misses tasks.
            let is_such = |info: &&FolderInfo| {
                let segment = segment_of(area, &info.name);
                segment.is_some_and(|segment| !is_reserved(area, segment)) && takes(area, info.kind)
            };
            let mut there = folders.iter().filter(is_such);
            let has = if kind == FolderKind::Tasks {
                there.any(|info| kinds_of(info).contains(&ComponentKind::Todo))
            } else {
                there.any(|info| info.kind == kind)
            };
            if !has {
                let name = Element::new(DAV, "displayname").with_text(shown);
                let mut properties = vec![name];
                if kind == FolderKind::Calendar {
                    properties.push(component_set(&[ComponentKind::Event, ComponentKind::Journal]));
                }
                self.make(area, segment, kind, &properties)?;
            }
        }
        let is_inbox = |info: &FolderInfo| segment_of(Area::Calendars, &info.name) == Some(INBOX);
        if !folders.iter().any(is_inbox) {
            self.inbox()?;
        }
        Ok(())
    }

    /// Somebody's calendars, for the server that files what comes.
    pub(crate) fn of_the_server(owner: Arc<Person>, database: Arc<Database>) -> Result<Self> {
        let access = Access::of_the_server("filing messages about meetings");
        let home = Self { owner, is_owner: true, database, access, asker: None };
        home.make_usual()?;
        Ok(home)
    }

    /// The same for the server that looks at what is free.
    pub(crate) fn for_looking(owner: Arc<Person>, database: Arc<Database>) -> Self {
        let access = Access::of_the_server("looking whose time is free");
        Self { owner, is_owner: false, database, access, asker: None }
    }

    /// The inbox; made if it is missing.
    pub(crate) fn inbox(&self) -> Result<Shelf> {
        if let Some(inbox) = self.find_shelf(Area::Calendars, INBOX)? {
            return Ok(inbox);
        }
        let name = Element::new(DAV, "displayname").with_text("Inbox");
        self.make(Area::Calendars, INBOX, FolderKind::Calendar, &[name])?;
        self.shelf(Area::Calendars, INBOX)
    }

    /// The calendar into which comes what nobody has put anywhere: the one that everybody has, or else the first that takes it.
    pub(crate) fn usual_calendar(&self, kind: ComponentKind) -> Result<Shelf> {
        let shelves = self.shelves(Area::Calendars)?;
        let mut fitting =
            shelves.into_iter().filter(|shelf| !shelf.is_inbox() && shelf.kinds().contains(&kind));
        let first = fitting.next().ok_or_else(Refusal::missing)?;
        if first.segment == USUAL_CALENDAR {
            return Ok(first);
        }
        Ok(fitting.find(|shelf| shelf.segment == USUAL_CALENDAR).unwrap_or(first))
    }

    /// Makes a collection. What is left of one whose making was cut off is taken for it.
    pub(crate) fn make(
        &self,
        area: Area,
        segment: &str,
        kind: FolderKind,
        properties: &[Element],
    ) -> Result<()> {
        let name = folder_name(area, segment)?;
        let stored = stored_properties(properties, None)?;
        self.database.define_folder(&name, None)?;
        self.database.set_folder_properties(&name, &stored)?;
        // Last, since it is what makes it a collection.
        Ok(self.database.set_folder_use(&name, FolderUse { kind: Some(kind), ..FolderUse::default() })?)
    }

    /// All collections of an area, in the order of their folders' names.
    pub(crate) fn shelves(&self, area: Area) -> Result<Vec<Shelf>> {
        let folders = self.database.folders(None)?;
        let shelf = |info: FolderInfo| {
            let segment = segment_of(area, &info.name)?.to_owned();
            takes(area, info.kind).then(|| Shelf::new(area, segment, info))
        };
        Ok(folders.into_iter().filter_map(shelf).collect())
    }

    /// One collection.
    ///
    /// # Errors
    /// 404
    pub(crate) fn shelf(&self, area: Area, segment: &str) -> Result<Shelf> {
        self.find_shelf(area, segment)?.ok_or_else(Refusal::missing)
    }

    pub(crate) fn find_shelf(&self, area: Area, segment: &str) -> Result<Option<Shelf>> {
        let Ok(name) = folder_name(area, segment) else { return Ok(None) };
        let info = match self.database.folder(&name, None) {
            Ok(info) => info,
            Err(DatabaseError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        // Names that differ in case alone are one folder's, but other paths.
        let is_it = segment_of(area, &info.name) == Some(segment) && takes(area, info.kind);
        Ok(is_it.then(|| Shelf::new(area, segment.to_owned(), info)))
    }

    /// What a collection has.
    pub(crate) fn collection(&self, service: &DavService, shelf: &Shelf) -> Collection {
        let owned = Owned {
            area: shelf.area,
            uid_validity: shelf.info.uid_validity,
            addresses: service.addresses(&self.owner),
            floating: self.floating(shelf),
            zone_definition: shelf.property(CALDAV, "calendar-timezone").map(Element::text),
        };
        service.collections.of(&self.database, shelf.info.number, owned)
    }

    /// The zone of times that have none: the calendar's, or else its owner's.
    pub(crate) fn floating(&self, shelf: &Shelf) -> Zone {
        let own = shelf.property(CALDAV, "calendar-timezone").and_then(|zone| zone_of(&zone.text()));
        let by_id =
            || shelf.property(CALDAV, "calendar-timezone-id").and_then(|id| Zone::named(id.text().trim()));
        own.or_else(by_id).unwrap_or_else(|| zone_of_person(&self.owner))
    }

    pub(crate) fn place(&self, shelf: &Shelf) -> Place {
        Place::Collection {
            area: shelf.area,
            person: self.owner.short_name.clone(),
            collection: shelf.segment.clone(),
        }
    }

    pub(crate) fn member_place(&self, shelf: &Shelf, name: &str) -> Place {
        Place::Member {
            area: shelf.area,
            person: self.owner.short_name.clone(),
            collection: shelf.segment.clone(),
            name: name.to_owned(),
        }
    }
}

impl Shelf {
    fn new(area: Area, segment: String, info: FolderInfo) -> Self {
        let (secret, properties): (Vec<Element>, Vec<Element>) =
            properties_in(&info.properties).into_iter().partition(|property| property.is(OWN, PUBLISHED));
        let published = secret.first().map(Element::text).filter(|secret| !secret.is_empty());
        Self { area, segment, info, properties, published }
    }

    pub(crate) fn property(&self, namespace: &str, local: &str) -> Option<&Element> {
        self.properties.iter().find(|property| property.is(namespace, local))
    }

    /// Whether messages about meetings lie there, and nothing that anybody has put there.
    pub(crate) fn is_inbox(&self) -> bool {
        self.area == Area::Calendars && self.segment == INBOX
    }

    /// Whether what is in it takes time (RFC 6638, section 9.1).
    pub(crate) fn is_opaque(&self) -> bool {
        self.property(CALDAV, "schedule-calendar-transp")
            .is_none_or(|transparency| transparency.child(CALDAV, "transparent").is_none())
    }

    /// The components that it takes.
    pub(crate) fn kinds(&self) -> Vec<ComponentKind> {
        kinds_of(&self.info)
    }
}

/// What is kept with a folder: XML.
fn properties_in(stored: &[u8]) -> Vec<Element> {
    let root = Element::parse(stored, XmlLimits::default()).ok();
    root.map(|root| root.elements().cloned().collect()).unwrap_or_default()
}

/// # Errors
/// 507 if they are too long.
pub(crate) fn stored_properties(properties: &[Element], published: Option<&str>) -> Result<Vec<u8>> {
    let secret = published.map(|secret| Element::new(OWN, PUBLISHED).with_text(secret));
    let all = properties.iter().cloned().chain(secret);
    let stored = Element::new(DAV, "prop").with_all(all).write().into_bytes();
    if stored.len() > scrinium_database::MAX_FOLDER_PROPERTIES_BYTES {
        let reason = "The properties of a collection are too long together.";
        return Err(Refusal::new(http::StatusCode::INSUFFICIENT_STORAGE, reason));
    }
    Ok(stored)
}

/// `supported-calendar-component-set` (RFC 4791, section 5.2.3).
pub(crate) fn component_set(kinds: &[ComponentKind]) -> Element {
    let component =
        |kind: &ComponentKind| Element::new(CALDAV, "comp").with_attribute("name", component_name(*kind));
    Element::new(CALDAV, "supported-calendar-component-set").with_all(kinds.iter().map(component))
}

/// The components that such a property names, of those that are known.
pub(crate) fn kinds_in(set: &Element) -> Vec<ComponentKind> {
    let names =
        set.elements().filter(|part| part.is(CALDAV, "comp")).filter_map(|part| part.attribute("name"));
    let kind =
        |name: &str| ALL_KINDS.into_iter().find(|kind| component_name(*kind).eq_ignore_ascii_case(name));
    let mut kinds: Vec<ComponentKind> = names.filter_map(kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

fn kinds_of(info: &FolderInfo) -> Vec<ComponentKind> {
    if info.kind == FolderKind::Tasks {
        return vec![ComponentKind::Todo];
    }
    let properties = properties_in(&info.properties);
    let set = properties.iter().find(|property| property.is(CALDAV, "supported-calendar-component-set"));
    let kinds = set.map(kinds_in).filter(|kinds| !kinds.is_empty());
    kinds.unwrap_or_else(|| ALL_KINDS.to_vec())
}

/// Whether a segment means something else than a collection of its owner's.
pub(crate) fn is_reserved(area: Area, segment: &str) -> bool {
    area == Area::Calendars && [INBOX, OUTBOX].iter().any(|name| segment.eq_ignore_ascii_case(name))
}

fn takes(area: Area, kind: FolderKind) -> bool {
    match area {
        Area::Calendars => matches!(kind, FolderKind::Calendar | FolderKind::Tasks),
        Area::Contacts => kind == FolderKind::Contacts,
    }
}

/// The folder of a collection.
///
/// # Errors
/// 403 for what no folder can be called.
pub(crate) fn folder_name(area: Area, segment: &str) -> Result<String> {
    let name = format!("{}{SEPARATOR}{segment}", parent(area));
    if segment.contains(SEPARATOR) || scrinium_database::folder::name::validate(&name).is_err() {
        let reason = "A collection's name has no backslash, and no space at its ends.";
        return Err(Refusal::new(http::StatusCode::FORBIDDEN, reason));
    }
    Ok(name)
}

/// The segment of a folder's path, if it lies among those of the area.
fn segment_of(area: Area, folder: &str) -> Option<&str> {
    let (parent_name, segment) = folder.split_once(SEPARATOR)?;
    (parent_name.eq_ignore_ascii_case(parent(area)) && !segment.contains(SEPARATOR)).then_some(segment)
}

/// Where somebody's clock is; UTC where they have not said.
pub(crate) fn zone_of_person(person: &Person) -> Zone {
    person.time_zone.as_deref().and_then(Zone::named).unwrap_or_else(Zone::utc)
}

/// The zone that a calendar with one VTIMEZONE defines.
pub(crate) fn zone_of(calendar: &str) -> Option<Zone> {
    let text = calendar.trim();
    // XML may have made single LF of the line ends.
    let calendar = Component::parse(text.as_bytes(), ContentLimits::default()).ok()?;
    let zone = calendar.components().find(|part| part.name() == "VTIMEZONE")?;
    let id = zone.line("TZID")?.value().trim().to_owned();
    Some(ZoneNames::new(&calendar, Zone::utc()).resolve(&id))
}
