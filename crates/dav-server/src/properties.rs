//! What resources say of themselves: live properties by kind of resource, and those that clients have set.

use std::sync::Arc;

use scrinium_calendar::event::ComponentKind;
use scrinium_calendar::zone::Zone;
use scrinium_dav::answer::{Resource, href_property};
use scrinium_dav::data::{address_data, calendar_data};
use scrinium_dav::filter::COLLATIONS;
use scrinium_dav::place::{Area, Place};
use scrinium_dav_wire::report::Requested;
use scrinium_dav_wire::xml::{Element, Name};
use scrinium_dav_wire::{APPLE, CALDAV, CALENDAR_SERVER, CARDDAV, DAV};
use scrinium_directory::Person;

use crate::collection::Member;
use crate::document::{RESOURCE_BYTES_MAX, media_type};
use crate::home::{Home, INBOX, OUTBOX, OWN, Shelf, component_set};

/// Properties that are made here and cannot be set (RFC 4918, section 16, `cannot-modify-protected-property`).
const PROTECTED: [(&str, &str); 37] = [
    (DAV, "resourcetype"),
    (DAV, "getetag"),
    (DAV, "getcontenttype"),
    (DAV, "getcontentlength"),
    (DAV, "getlastmodified"),
    (DAV, "creationdate"),
    (DAV, "lockdiscovery"),
    (DAV, "supportedlock"),
    (DAV, "sync-token"),
    (DAV, "owner"),
    (DAV, "group"),
    (DAV, "acl"),
    (DAV, "current-user-principal"),
    (DAV, "current-user-privilege-set"),
    (DAV, "principal-collection-set"),
    (DAV, "principal-URL"),
    (DAV, "supported-report-set"),
    (DAV, "supported-privilege-set"),
    (DAV, "group-member-set"),
    (DAV, "group-membership"),
    (CALDAV, "supported-calendar-component-set"),
    (CALDAV, "supported-calendar-data"),
    (CALDAV, "max-resource-size"),
    (CALDAV, "supported-collation-set"),
    (CALDAV, "calendar-home-set"),
    (CALDAV, "calendar-user-address-set"),
    (CALDAV, "calendar-user-type"),
    (CALDAV, "schedule-inbox-URL"),
    (CALDAV, "schedule-outbox-URL"),
    (CALDAV, "schedule-default-calendar-URL"),
    (CALDAV, "schedule-tag"),
    (CARDDAV, "addressbook-home-set"),
    (CARDDAV, "supported-address-data"),
    (CARDDAV, "max-resource-size"),
    (CARDDAV, "supported-collation-set"),
    (CALENDAR_SERVER, "getctag"),
    (CALENDAR_SERVER, "publish-url"),
];

/// Whether a property cannot be set.
pub(crate) fn is_protected(name: &Name) -> bool {
    PROTECTED.iter().any(|(namespace, local)| name.is(namespace, local)) || name.namespace == OWN
}

/// What is asked about.
pub(crate) enum Target<'a> {
    /// What only leads on.
    Junction,
    Principal {
        person: Arc<Person>,
        /// All addresses.
        addresses: Vec<String>,
    },
    /// Where questions go.
    Outbox(&'a Home),
    Home {
        home: &'a Home,
        change: u64,
    },
    Shelf {
        home: &'a Home,
        shelf: &'a Shelf,
        token: String,
    },
    Member {
        home: &'a Home,
        shelf: &'a Shelf,
        member: &'a Member,
        source: Option<&'a [u8]>,
        floating: &'a Zone,
    },
}

/// A resource, as the one who asks sees it.
pub(crate) struct Told<'a> {
    pub(crate) place: Place,
    pub(crate) asker: Option<&'a Arc<Person>>,
    pub(crate) target: Target<'a>,
}

/// The path of a person as a principal.
pub(crate) fn principal_of(person: &Person) -> String {
    Place::Principal { person: person.short_name.clone() }.href()
}

fn home_of(area: Area, person: &Person) -> String {
    Place::Home { area, person: person.short_name.clone() }.href()
}

fn name(namespace: &str, local: &str) -> Name {
    Name::new(namespace, local)
}

impl Resource for Told<'_> {
    fn usual(&self) -> Vec<Name> {
        let mut names = vec![name(DAV, "resourcetype"), name(DAV, "displayname")];
        match &self.target {
            Target::Shelf { shelf, .. } => {
                names.extend(shelf.properties.iter().map(|property| property.name.clone()));
                names.push(name(CALENDAR_SERVER, "getctag"));
                names.dedup();
            }
            Target::Member { .. } => {
                names = ["resourcetype", "getetag", "getcontenttype", "getcontentlength"]
                    .into_iter()
                    .map(|local| name(DAV, local))
                    .collect();
            }
            Target::Junction | Target::Principal { .. } | Target::Outbox(_) | Target::Home { .. } => {}
        }
        // Each once, also where a client has set it.
        let mut seen = Vec::with_capacity(names.len());
        names.retain(|name| {
            let is_new = !seen.contains(name) && self.value(name).is_some();
            seen.push(name.clone());
            is_new
        });
        names
    }

    fn further(&self) -> Vec<Name> {
        let usual = self.usual();
        let names = PROTECTED.iter().map(|(namespace, local)| name(namespace, local));
        names.filter(|name| !usual.contains(name) && self.value(name).is_some()).collect()
    }

    fn property(&self, asked: &Requested) -> Option<Element> {
        match (asked, &self.target) {
            (Requested::Property(name), _) => self.value(name),
            (
                Requested::CalendarData(asked),
                Target::Member { shelf, source: Some(source), floating, .. },
            ) if shelf.area == Area::Calendars => {
                let data = calendar_data(source, asked, floating)?;
                let text = String::from_utf8_lossy(&data);
                Some(Element::new(CALDAV, "calendar-data").with_text(&text))
            }
            (Requested::AddressData(asked), Target::Member { shelf, source: Some(source), .. })
                if shelf.area == Area::Contacts =>
            {
                let data = address_data(source, asked);
                let text = String::from_utf8_lossy(&data);
                Some(Element::new(CARDDAV, "address-data").with_text(&text))
            }
            _ => None,
        }
    }
}

impl Told<'_> {
    fn value(&self, asked: &Name) -> Option<Element> {
        let local = asked.local.as_str();
        match asked.namespace.as_str() {
            DAV => self.dav(local),
            CALDAV => self.caldav(local),
            CARDDAV => self.carddav(local),
            CALENDAR_SERVER => self.calendar_server(local),
            _ => None,
        }
        .or_else(|| self.set_by_clients(asked))
    }

    fn set_by_clients(&self, asked: &Name) -> Option<Element> {
        let Target::Shelf { shelf, .. } = &self.target else { return None };
        let found = shelf.properties.iter().find(|property| property.name == *asked).cloned();
        // Programs show a calendar without a colour as they like.
        found.filter(|property| !property.is(APPLE, "calendar-color") || !property.text().is_empty())
    }

    fn dav(&self, local: &str) -> Option<Element> {
        let element = || Element::new(DAV, local);
        Some(match local {
            "resourcetype" => self.resource_type(),
            "displayname" => element().with_text(&self.shown_name()?),
            "current-user-principal" => element().with(match self.asker {
                Some(person) => Element::new(DAV, "href").with_text(&principal_of(person)),
                None => Element::new(DAV, "unauthenticated"),
            }),
            "principal-collection-set" => href_property(DAV, local, &Place::Principals.href()),
            "current-user-privilege-set" => self.privileges(),
            "owner" => href_property(DAV, local, &principal_of(self.owner()?)),
            "supported-report-set" => self.reports(),
            "principal-URL" => match &self.target {
                Target::Principal { person, .. } => href_property(DAV, local, &principal_of(person)),
                _ => return None,
            },
            "group-membership" | "group-member-set" | "alternate-URI-set"
                if matches!(self.target, Target::Principal { .. }) =>
            {
                element()
            }
            "sync-token" => match &self.target {
                Target::Shelf { token, .. } => element().with_text(token),
                _ => return None,
            },
            "acl" => self.access_list()?,
            "getetag" => element().with_text(&format!("\"{}\"", self.member()?.1.tag)),
            "getcontentlength" => element().with_text(&self.member()?.1.bytes.to_string()),
            "getcontenttype" => match &self.target {
                Target::Member { shelf, member, .. } => {
                    element().with_text(&content_type(shelf.area, member))
                }
                _ => return None,
            },
            _ => return None,
        })
    }

    fn caldav(&self, local: &str) -> Option<Element> {
        let element = || Element::new(CALDAV, local);
        if let Target::Principal { person, addresses } = &self.target {
            let scheduling = |collection: &str| {
                let (area, person) = (Area::Calendars, person.short_name.clone());
                let place = Place::Collection { area, person, collection: collection.to_owned() };
                href_property(CALDAV, local, &place.href())
            };
            return Some(match local {
                "schedule-inbox-URL" => scheduling(INBOX),
                "schedule-outbox-URL" => scheduling(OUTBOX),
                "calendar-home-set" => href_property(CALDAV, local, &home_of(Area::Calendars, person)),
                "calendar-user-address-set" => {
                    let addresses = addresses.iter().map(|address| format!("mailto:{address}"));
                    let hrefs = addresses.chain([principal_of(person)]);
                    element().with_all(hrefs.map(|href| Element::new(DAV, "href").with_text(&href)))
                }
                "calendar-user-type" => element().with_text("INDIVIDUAL"),
                _ => return None,
            });
        }
        if let Target::Member { member, .. } = &self.target {
            let tag = member.schedule_tag.as_ref().filter(|_| local == "schedule-tag")?;
            return Some(element().with_text(&format!("\"{tag}\"")));
        }
        let Target::Shelf { home, shelf, .. } = &self.target else { return None };
        if shelf.area != Area::Calendars {
            return None;
        }
        if shelf.is_inbox() && local == "schedule-default-calendar-URL" {
            let usual = home.usual_calendar(ComponentKind::Event).ok()?;
            return Some(href_property(CALDAV, local, &home.place(&usual).href()));
        }
        Some(match local {
            "supported-calendar-component-set" => component_set(&shelf.kinds()),
            "supported-calendar-data" => element().with(
                Element::new(CALDAV, "calendar-data")
                    .with_attribute("content-type", "text/calendar")
                    .with_attribute("version", "2.0"),
            ),
            "max-resource-size" => element().with_text(&RESOURCE_BYTES_MAX.to_string()),
            "min-date-time" => element().with_text("00010101T000000Z"),
            "max-date-time" => element().with_text("99991231T235959Z"),
            "supported-collation-set" => collations(CALDAV),
            "schedule-calendar-transp" if shelf.property(CALDAV, local).is_none() => {
                element().with(Element::new(CALDAV, "opaque"))
            }
            _ => return None,
        })
    }

    fn carddav(&self, local: &str) -> Option<Element> {
        if let Target::Principal { person, .. } = &self.target {
            return (local == "addressbook-home-set")
                .then(|| href_property(CARDDAV, local, &home_of(Area::Contacts, person)));
        }
        let Target::Shelf { shelf, .. } = &self.target else { return None };
        if shelf.area != Area::Contacts {
            return None;
        }
        let element = Element::new(CARDDAV, local);
        Some(match local {
            "supported-address-data" => element.with_all(["3.0", "4.0"].map(|version| {
                Element::new(CARDDAV, "address-data-type")
                    .with_attribute("content-type", "text/vcard")
                    .with_attribute("version", version)
            })),
            "max-resource-size" => element.with_text(&RESOURCE_BYTES_MAX.to_string()),
            "supported-collation-set" => collations(CARDDAV),
            _ => return None,
        })
    }

    fn calendar_server(&self, local: &str) -> Option<Element> {
        let element = Element::new(CALENDAR_SERVER, local);
        match (&self.target, local) {
            (Target::Shelf { token, .. }, "getctag") => Some(element.with_text(token)),
            // The link is for whom its owner gives it to.
            (Target::Shelf { home, shelf, .. }, "publish-url") if home.is_owner => {
                let secret = shelf.published.as_deref()?;
                let href = crate::published::link(&home.owner.short_name, secret);
                Some(element.with(Element::new(DAV, "href").with_text(&href)))
            }
            (Target::Home { change, .. }, "getctag") => Some(element.with_text(&change.to_string())),
            (Target::Principal { addresses, .. }, "email-address-set") => {
                let address =
                    |address: &String| Element::new(CALENDAR_SERVER, "email-address").with_text(address);
                Some(element.with_all(addresses.iter().map(address)))
            }
            _ => None,
        }
    }

    fn member(&self) -> Option<(&Shelf, &Member)> {
        match &self.target {
            Target::Member { shelf, member, .. } => Some((*shelf, *member)),
            _ => None,
        }
    }

    fn home(&self) -> Option<&Home> {
        match &self.target {
            Target::Home { home, .. } | Target::Shelf { home, .. } | Target::Member { home, .. } => {
                Some(*home)
            }
            Target::Outbox(home) => Some(*home),
            Target::Junction | Target::Principal { .. } => None,
        }
    }

    fn owner(&self) -> Option<&Arc<Person>> {
        match &self.target {
            Target::Principal { person, .. } => Some(person),
            _ => self.home().map(|home| &home.owner),
        }
    }

    fn shown_name(&self) -> Option<String> {
        match &self.target {
            Target::Shelf { shelf, .. } => {
                let set = shelf.property(DAV, "displayname").map(Element::text);
                Some(set.unwrap_or_else(|| shelf.segment.clone()))
            }
            Target::Principal { person, .. } => Some(person.shown_name().to_owned()),
            Target::Outbox(_) => Some("Outbox".to_owned()),
            Target::Home { home, .. } => Some(home.owner.shown_name().to_owned()),
            Target::Junction | Target::Member { .. } => None,
        }
    }

    fn resource_type(&self) -> Element {
        let element = Element::new(DAV, "resourcetype");
        let collection = || Element::new(DAV, "collection");
        match &self.target {
            Target::Junction | Target::Home { .. } => element.with(collection()),
            Target::Principal { .. } => element.with(collection()).with(Element::new(DAV, "principal")),
            Target::Outbox(_) => element.with(collection()).with(Element::new(CALDAV, "schedule-outbox")),
            Target::Shelf { shelf, .. } if shelf.is_inbox() => {
                element.with(collection()).with(Element::new(CALDAV, "schedule-inbox"))
            }
            Target::Shelf { shelf, .. } => element.with(collection()).with(match shelf.area {
                Area::Calendars => Element::new(CALDAV, "calendar"),
                Area::Contacts => Element::new(CARDDAV, "addressbook"),
            }),
            Target::Member { .. } => element,
        }
    }

    /// RFC 3744, section 5.4.
    fn privileges(&self) -> Element {
        let mut names = vec![(DAV, "read"), (DAV, "read-current-user-privilege-set")];
        if self.home().is_some_and(|home| home.is_owner) {
            names.push((DAV, "read-acl"));
        }
        if self.home().is_some()
            && matches!(&self.target, Target::Shelf { shelf, .. } | Target::Member { shelf, .. } if shelf.area == Area::Calendars)
        {
            names.push((CALDAV, "read-free-busy"));
        }
        match &self.target {
            // RFC 6638, section 6.
            Target::Outbox(_) => names.extend(
                ["schedule-send", "schedule-send-invite", "schedule-send-reply", "schedule-send-freebusy"]
                    .map(|name| (CALDAV, name)),
            ),
            Target::Shelf { shelf, .. } if shelf.is_inbox() => names.extend(
                [
                    "schedule-deliver",
                    "schedule-deliver-invite",
                    "schedule-deliver-reply",
                    "schedule-query-freebusy",
                ]
                .map(|name| (CALDAV, name)),
            ),
            _ => {}
        }
        if self.home().is_some_and(Home::is_editor) && !matches!(self.target, Target::Outbox(_)) {
            names.extend(
                ["write", "write-content", "write-properties", "bind", "unbind"].map(|name| (DAV, name)),
            );
        }
        let privilege = |(namespace, local): (&str, &str)| {
            Element::new(DAV, "privilege").with(Element::new(namespace, local))
        };
        Element::new(DAV, "current-user-privilege-set").with_all(names.into_iter().map(privilege))
    }

    /// What the owner has; whom else the database lets in stands in its access control list. For the owner alone.
    fn access_list(&self) -> Option<Element> {
        let home = self.home().filter(|home| home.is_owner)?;
        let principal = Element::new(DAV, "principal")
            .with(Element::new(DAV, "href").with_text(&principal_of(&home.owner)));
        let privilege = Element::new(DAV, "privilege").with(Element::new(DAV, "all"));
        let entry = Element::new(DAV, "ace")
            .with(principal)
            .with(Element::new(DAV, "grant").with(privilege))
            .with(Element::new(DAV, "protected"));
        Some(Element::new(DAV, "acl").with(entry))
    }

    fn reports(&self) -> Element {
        let mut names = vec![(DAV, "expand-property")];
        match &self.target {
            Target::Shelf { shelf, .. } | Target::Member { shelf, .. } => {
                names.push((DAV, "sync-collection"));
                match shelf.area {
                    Area::Calendars => names.extend(
                        ["calendar-query", "calendar-multiget", "free-busy-query"].map(|name| (CALDAV, name)),
                    ),
                    Area::Contacts => names
                        .extend(["addressbook-query", "addressbook-multiget"].map(|name| (CARDDAV, name))),
                }
            }
            Target::Junction | Target::Principal { .. } | Target::Outbox(_) => names.extend(
                ["principal-property-search", "principal-search-property-set", "principal-match"]
                    .map(|name| (DAV, name)),
            ),
            Target::Home { .. } => {}
        }
        let report = |(namespace, local): (&str, &str)| {
            let report = Element::new(DAV, "report").with(Element::new(namespace, local));
            Element::new(DAV, "supported-report").with(report)
        };
        Element::new(DAV, "supported-report-set").with_all(names.into_iter().map(report))
    }
}

fn collations(namespace: &str) -> Element {
    let names = COLLATIONS.map(|name| Element::new(namespace, "supported-collation").with_text(name));
    Element::new(namespace, "supported-collation-set").with_all(names)
}

/// With the component that it holds (RFC 4791, section 5.3.4 and appendix B).
pub(crate) fn content_type(area: Area, member: &Member) -> String {
    let kind = member.kind.map(|kind| scrinium_dav::object::component_name(kind).to_ascii_lowercase());
    kind.map_or_else(|| media_type(area).to_owned(), |kind| format!("{}; component={kind}", media_type(area)))
}
