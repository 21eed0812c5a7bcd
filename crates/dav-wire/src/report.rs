//! Bodies of REPORT (RFC 3253, section 3.6; RFC 3744, section 9; RFC 4791, section 7; RFC 6352, section 8; RFC 6578).

use crate::filter::{ComponentFilter, ComponentSelection, ContactFilter, TimeRange};
use crate::names::{CALDAV, CARDDAV, DAV};
use crate::request::{BodyError, named, names};
use crate::xml::{Element, Name, XmlLimits};

/// Resources of one multiget.
const HREFS_MAX: usize = 10_000;

type BodyResult<T> = Result<T, BodyError>;

/// How calendars come back (RFC 4791, section 9.6).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CalendarData {
    /// Which lines and components; all without it.
    pub components: Option<ComponentSelection>,
    /// Series written out as their instances in this range.
    pub expand: Option<TimeRange>,
    /// Only instances that were changed in this range.
    pub limit_recurrence_set: Option<TimeRange>,
    /// Only busy times in this range.
    pub limit_free_busy_set: Option<TimeRange>,
}

/// How cards come back (RFC 6352, section 10.4).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressData {
    /// `3.0` or `4.0`.
    pub version: Option<String>,
    /// Lines by name; `None` is all of them.
    pub properties: Option<Vec<String>>,
}

/// A property that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Requested {
    Property(Name),
    CalendarData(CalendarData),
    AddressData(AddressData),
}

/// Which properties are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Selection {
    All,
    Names,
    Properties(Vec<Requested>),
}

/// What is looked for in a property of principals (RFC 3744, section 9.4).
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct PropertySearch {
    pub properties: Vec<Name>,
    pub text: String,
    /// `contains`, `starts-with` and others, where it is named.
    pub match_type: Option<String>,
}

/// A property whose resources are looked at as well (RFC 3253, section 3.8).
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct ExpandedProperty {
    pub name: Name,
    pub properties: Vec<ExpandedProperty>,
}

/// A report.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Report {
    CalendarQuery {
        selection: Selection,
        filter: ComponentFilter,
        /// A calendar with one VTIMEZONE, for times without a zone.
        time_zone: Option<String>,
        /// The name of a zone (RFC 7809).
        time_zone_id: Option<String>,
    },
    CalendarMultiget {
        selection: Selection,
        hrefs: Vec<String>,
    },
    FreeBusyQuery(TimeRange),
    SyncCollection {
        /// Nothing the first time.
        token: Option<String>,
        /// All levels, and not one.
        infinite: bool,
        limit: Option<u64>,
        selection: Selection,
    },
    AddressbookQuery {
        selection: Selection,
        filter: ContactFilter,
        limit: Option<u64>,
    },
    AddressbookMultiget {
        selection: Selection,
        hrefs: Vec<String>,
    },
    PrincipalPropertySearch {
        /// Any of the searches, and not all of them (`test="anyof"`).
        any_of: bool,
        searches: Vec<PropertySearch>,
        properties: Vec<Name>,
        apply_to_principal_collection_set: bool,
    },
    PrincipalSearchPropertySet,
    /// The property that names the principal; nothing is the resource itself.
    PrincipalMatch {
        property: Option<Name>,
        properties: Vec<Name>,
    },
    AclPrincipalPropSet(Vec<Name>),
    ExpandProperty(Vec<ExpandedProperty>),
    /// Any other: a server answers `supported-report`.
    Other(Element),
}

impl Report {
    /// Reads a body.
    ///
    /// # Errors
    /// [`BodyError`]
    pub fn parse(body: &[u8], limits: XmlLimits) -> BodyResult<Self> {
        let root = Element::parse(body, limits)?;
        match (root.name.namespace.as_str(), root.name.local.as_str()) {
            (CALDAV, "calendar-query") => {
                let filter =
                    root.child(CALDAV, "filter").and_then(|filter| filter.child(CALDAV, "comp-filter"));
                Ok(Self::CalendarQuery {
                    selection: Selection::read(&root)?,
                    filter: ComponentFilter::read(filter.ok_or(BodyError::Missing("filter"))?)?,
                    time_zone: root.child(CALDAV, "timezone").map(Element::text),
                    time_zone_id: root.child(CALDAV, "timezone-id").map(|id| id.text().trim().to_owned()),
                })
            }
            (CALDAV, "calendar-multiget") => {
                Ok(Self::CalendarMultiget { selection: Selection::read(&root)?, hrefs: hrefs(&root)? })
            }
            (CALDAV, "free-busy-query") => {
                let range = root.child(CALDAV, "time-range").ok_or(BodyError::Missing("time-range"))?;
                TimeRange::read(range).map(Self::FreeBusyQuery)
            }
            (DAV, "sync-collection") => sync_collection(&root),
            (CARDDAV, "addressbook-query") => {
                let filter = root.child(CARDDAV, "filter").ok_or(BodyError::Missing("filter"))?;
                Ok(Self::AddressbookQuery {
                    selection: Selection::read(&root)?,
                    filter: ContactFilter::read(filter)?,
                    limit: limit(&root, CARDDAV)?,
                })
            }
            (CARDDAV, "addressbook-multiget") => {
                Ok(Self::AddressbookMultiget { selection: Selection::read(&root)?, hrefs: hrefs(&root)? })
            }
            (DAV, "principal-property-search") => principal_property_search(&root),
            (DAV, "principal-search-property-set") => Ok(Self::PrincipalSearchPropertySet),
            (DAV, "principal-match") => {
                let property =
                    root.child(DAV, "principal-property").and_then(|named| named.elements().next());
                if property.is_none() && root.child(DAV, "self").is_none() {
                    return Err(BodyError::Missing("self"));
                }
                let property = property.map(|property| property.name.clone());
                Ok(Self::PrincipalMatch { property, properties: properties(&root) })
            }
            (DAV, "acl-principal-prop-set") => Ok(Self::AclPrincipalPropSet(properties(&root))),
            (DAV, "expand-property") => Ok(Self::ExpandProperty(expanded(&root)?)),
            _ => Ok(Self::Other(root)),
        }
    }

    /// The body.
    #[must_use]
    pub fn element(&self) -> Element {
        match self {
            Self::CalendarQuery { selection, filter, time_zone, time_zone_id } => {
                let filter = Element::new(CALDAV, "filter").with(filter.element());
                let text = |name: &str, text: &String| Element::new(CALDAV, name).with_text(text);
                Element::new(CALDAV, "calendar-query")
                    .with(selection.element())
                    .with(filter)
                    .with_all(time_zone.iter().map(|zone| text("timezone", zone)))
                    .with_all(time_zone_id.iter().map(|id| text("timezone-id", id)))
            }
            Self::CalendarMultiget { selection, hrefs } => Element::new(CALDAV, "calendar-multiget")
                .with(selection.element())
                .with_all(href_elements(hrefs)),
            Self::FreeBusyQuery(range) => {
                Element::new(CALDAV, "free-busy-query").with(range.element("time-range"))
            }
            Self::SyncCollection { token, infinite, limit, selection } => {
                let token = Element::new(DAV, "sync-token").with_text(token.as_deref().unwrap_or_default());
                let level =
                    Element::new(DAV, "sync-level").with_text(if *infinite { "infinite" } else { "1" });
                Element::new(DAV, "sync-collection")
                    .with(token)
                    .with(level)
                    .with_all(limit.iter().map(|limit| limit_element(DAV, *limit)))
                    .with(selection.element())
            }
            Self::AddressbookQuery { selection, filter, limit } => Element::new(CARDDAV, "addressbook-query")
                .with(selection.element())
                .with(filter.element())
                .with_all(limit.iter().map(|limit| limit_element(CARDDAV, *limit))),
            Self::AddressbookMultiget { selection, hrefs } => Element::new(CARDDAV, "addressbook-multiget")
                .with(selection.element())
                .with_all(href_elements(hrefs)),
            Self::PrincipalPropertySearch {
                any_of,
                searches,
                properties,
                apply_to_principal_collection_set,
            } => {
                let mut root = Element::new(DAV, "principal-property-search");
                if *any_of {
                    root = root.with_attribute("test", "anyof");
                }
                root = root
                    .with_all(searches.iter().map(PropertySearch::element))
                    .with(named(DAV, "prop", properties));
                if *apply_to_principal_collection_set {
                    root = root.with(Element::new(DAV, "apply-to-principal-collection-set"));
                }
                root
            }
            Self::PrincipalSearchPropertySet => Element::new(DAV, "principal-search-property-set"),
            Self::PrincipalMatch { property, properties } => {
                let whom = match property {
                    None => Element::new(DAV, "self"),
                    Some(name) => Element::new(DAV, "principal-property").with(Element::named(name)),
                };
                Element::new(DAV, "principal-match").with(whom).with(named(DAV, "prop", properties))
            }
            Self::AclPrincipalPropSet(properties) => {
                Element::new(DAV, "acl-principal-prop-set").with(named(DAV, "prop", properties))
            }
            Self::ExpandProperty(properties) => Element::new(DAV, "expand-property")
                .with_all(properties.iter().map(ExpandedProperty::element)),
            Self::Other(element) => element.clone(),
        }
    }
}

fn hrefs(root: &Element) -> BodyResult<Vec<String>> {
    let hrefs: Vec<String> = root
        .elements()
        .filter(|child| child.is(DAV, "href"))
        .take(HREFS_MAX + 1)
        .map(|href| href.text().trim().to_owned())
        .collect();
    if hrefs.len() > HREFS_MAX { Err(BodyError::Value("number of hrefs")) } else { Ok(hrefs) }
}

fn href_elements(hrefs: &[String]) -> impl Iterator<Item = Element> {
    hrefs.iter().map(|href| Element::new(DAV, "href").with_text(href))
}

fn limit(root: &Element, namespace: &str) -> BodyResult<Option<u64>> {
    let Some(limit) = root.child(namespace, "limit") else { return Ok(None) };
    let text = limit.child(namespace, "nresults").ok_or(BodyError::Missing("nresults"))?.text();
    let limit = text.trim().parse::<u64>().ok().filter(|limit| *limit > 0);
    limit.map(Some).ok_or(BodyError::Value("nresults"))
}

fn limit_element(namespace: &str, limit: u64) -> Element {
    let results = Element::new(namespace, "nresults").with_text(&limit.to_string());
    Element::new(namespace, "limit").with(results)
}

fn properties(root: &Element) -> Vec<Name> {
    root.child(DAV, "prop").map(names).unwrap_or_default()
}

fn sync_collection(root: &Element) -> BodyResult<Report> {
    let token =
        root.child(DAV, "sync-token").ok_or(BodyError::Missing("sync-token"))?.text().trim().to_owned();
    let level = root.child(DAV, "sync-level").map(|level| level.text().trim().to_owned());
    let infinite = match level.as_deref() {
        Some("1") => false,
        Some("infinite") => true,
        // Early clients leave it out.
        None => false,
        Some(_) => return Err(BodyError::Value("sync-level")),
    };
    Ok(Report::SyncCollection {
        token: if token.is_empty() { None } else { Some(token) },
        infinite,
        limit: limit(root, DAV)?,
        selection: Selection::read(root)?,
    })
}

fn principal_property_search(root: &Element) -> BodyResult<Report> {
    let search = |element: &Element| {
        let found = element.child(DAV, "match").ok_or(BodyError::Missing("match"))?;
        Ok(PropertySearch {
            properties: properties(element),
            text: found.text(),
            match_type: found.attribute("match-type").map(str::to_owned),
        })
    };
    let searches: BodyResult<Vec<PropertySearch>> =
        root.elements().filter(|child| child.is(DAV, "property-search")).map(search).collect();
    let searches = searches?;
    if searches.is_empty() {
        return Err(BodyError::Missing("property-search"));
    }
    Ok(Report::PrincipalPropertySearch {
        any_of: root.attribute("test") == Some("anyof"),
        searches,
        properties: properties(root),
        apply_to_principal_collection_set: root.child(DAV, "apply-to-principal-collection-set").is_some(),
    })
}

impl PropertySearch {
    fn element(&self) -> Element {
        let mut found = Element::new(DAV, "match").with_text(&self.text);
        if let Some(match_type) = &self.match_type {
            found = found.with_attribute("match-type", match_type);
        }
        Element::new(DAV, "property-search").with(named(DAV, "prop", &self.properties)).with(found)
    }
}

fn expanded(element: &Element) -> BodyResult<Vec<ExpandedProperty>> {
    let all = element.elements().filter(|child| child.is(DAV, "property"));
    all.map(|property| {
        let local = property.attribute("name").ok_or(BodyError::Missing("name"))?;
        let name = Name::new(property.attribute("namespace").unwrap_or(DAV), local);
        Ok(ExpandedProperty { name, properties: expanded(property)? })
    })
    .collect()
}

impl ExpandedProperty {
    fn element(&self) -> Element {
        Element::new(DAV, "property")
            .with_attribute("name", &self.name.local)
            .with_attribute("namespace", &self.name.namespace)
            .with_all(self.properties.iter().map(Self::element))
    }
}

impl Selection {
    fn read(root: &Element) -> BodyResult<Self> {
        if let Some(properties) = root.child(DAV, "prop") {
            return properties
                .elements()
                .map(Requested::read)
                .collect::<BodyResult<_>>()
                .map(Self::Properties);
        }
        Ok(if root.child(DAV, "propname").is_some() { Self::Names } else { Self::All })
    }

    fn element(&self) -> Element {
        match self {
            Self::All => Element::new(DAV, "allprop"),
            Self::Names => Element::new(DAV, "propname"),
            Self::Properties(requested) => {
                Element::new(DAV, "prop").with_all(requested.iter().map(Requested::element))
            }
        }
    }
}

impl Requested {
    fn read(element: &Element) -> BodyResult<Self> {
        if element.is(CALDAV, "calendar-data") {
            let range = |name: &str| element.child(CALDAV, name).map(TimeRange::read).transpose();
            return Ok(Self::CalendarData(CalendarData {
                components: element.child(CALDAV, "comp").map(ComponentSelection::read).transpose()?,
                expand: range("expand")?,
                limit_recurrence_set: range("limit-recurrence-set")?,
                limit_free_busy_set: range("limit-freebusy-set")?,
            }));
        }
        if element.is(CARDDAV, "address-data") {
            let lines: Vec<String> = element
                .elements()
                .filter(|child| child.is(CARDDAV, "prop"))
                .filter_map(|line| line.attribute("name").map(str::to_owned))
                .collect();
            return Ok(Self::AddressData(AddressData {
                version: element.attribute("version").map(str::to_owned),
                properties: if lines.is_empty() { None } else { Some(lines) },
            }));
        }
        Ok(Self::Property(element.name.clone()))
    }

    fn element(&self) -> Element {
        match self {
            Self::Property(name) => Element::named(name),
            Self::CalendarData(data) => {
                let ranges = [
                    ("expand", data.expand),
                    ("limit-recurrence-set", data.limit_recurrence_set),
                    ("limit-freebusy-set", data.limit_free_busy_set),
                ];
                let ranges =
                    ranges.into_iter().filter_map(|(name, range)| range.map(|range| range.element(name)));
                Element::new(CALDAV, "calendar-data")
                    .with_all(data.components.iter().map(ComponentSelection::element))
                    .with_all(ranges)
            }
            Self::AddressData(data) => {
                let mut element = Element::new(CARDDAV, "address-data");
                if let Some(version) = &data.version {
                    element = element
                        .with_attribute("content-type", "text/vcard")
                        .with_attribute("version", version);
                }
                let lines = data.properties.iter().flatten();
                element.with_all(lines.map(|line| Element::new(CARDDAV, "prop").with_attribute("name", line)))
            }
        }
    }
}
