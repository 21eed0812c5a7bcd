//! How properties are told (RFC 4918, section 9.1; RFC 8144, section 2.1).

use scrinium_dav_wire::DAV;
use scrinium_dav_wire::multistatus::{PropertyStatus, ResourceResponse};
use scrinium_dav_wire::report::{Requested, Selection};
use scrinium_dav_wire::request::PropFind;
use scrinium_dav_wire::xml::{Element, Name};

/// What is asked of a resource.
#[derive(Clone, Debug)]
pub enum Question {
    /// What is stored, and a few that say what it is.
    All(Vec<Name>),
    /// The names of all.
    Names,
    /// These.
    These(Vec<Requested>),
}

impl From<PropFind> for Question {
    fn from(find: PropFind) -> Self {
        match find {
            PropFind::All(include) => Self::All(include),
            PropFind::Names => Self::Names,
            PropFind::Properties(names) => Self::of(names),
        }
    }
}

impl From<Selection> for Question {
    fn from(selection: Selection) -> Self {
        match selection {
            Selection::All => Self::All(Vec::new()),
            Selection::Names => Self::Names,
            Selection::Properties(properties) => Self::These(properties),
        }
    }
}

impl Question {
    /// For these properties.
    #[must_use]
    pub fn of(names: Vec<Name>) -> Self {
        Self::These(names.into_iter().map(Requested::Property).collect())
    }

    /// Whether contents come back.
    #[must_use]
    pub fn wants_data(&self) -> bool {
        let is_data = |one: &Requested| !matches!(one, Requested::Property(_));
        matches!(self, Self::These(all) if all.iter().any(is_data))
    }
}

/// What a resource says of itself.
pub trait Resource {
    /// Names of the properties that `allprop` gives.
    fn usual(&self) -> Vec<Name>;

    /// Names of the others that it has.
    fn further(&self) -> Vec<Name>;

    /// A property with its value, if the resource has it.
    fn property(&self, asked: &Requested) -> Option<Element>;
}

/// The answer for a resource. `is_minimal`: what is not there is not mentioned (RFC 8144, section 2.1).
#[must_use]
pub fn response(
    href: String,
    question: &Question,
    resource: &dyn Resource,
    is_minimal: bool,
) -> ResourceResponse {
    let named = |names: Vec<Name>| names.into_iter().map(Requested::Property).collect::<Vec<_>>();
    let asked = match question {
        Question::Names => {
            let names = resource.usual().into_iter().chain(resource.further());
            let properties = names.map(|name| Element::named(&name)).collect();
            return of_parts(href, vec![PropertyStatus { status: 200, properties, error: None }]);
        }
        Question::All(include) => {
            let mut names = resource.usual();
            names.extend(include.iter().filter(|name| !names.contains(name)).cloned().collect::<Vec<_>>());
            named(names)
        }
        Question::These(asked) => asked.clone(),
    };
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for one in asked {
        match resource.property(&one) {
            Some(property) => found.push(property),
            None => missing.push(name_of(&one)),
        }
    }
    let mut parts = Vec::new();
    let says_missing = !missing.is_empty() && !is_minimal;
    // A response has at least one part.
    if !found.is_empty() || !says_missing {
        parts.push(PropertyStatus { status: 200, properties: found, error: None });
    }
    if says_missing {
        parts.push(PropertyStatus { status: 404, properties: missing, error: None });
    }
    of_parts(href, parts)
}

fn of_parts(href: String, properties: Vec<PropertyStatus>) -> ResourceResponse {
    ResourceResponse { hrefs: vec![href], properties, ..ResourceResponse::default() }
}

fn name_of(asked: &Requested) -> Element {
    match asked {
        Requested::Property(name) => Element::named(name),
        Requested::CalendarData(_) => Element::new(scrinium_dav_wire::CALDAV, "calendar-data"),
        Requested::AddressData(_) => Element::new(scrinium_dav_wire::CARDDAV, "address-data"),
    }
}

/// A resource that has only a status.
#[must_use]
pub fn status(href: String, status: u16, error: Option<Element>) -> ResourceResponse {
    ResourceResponse { hrefs: vec![href], status: Some(status), error, ..ResourceResponse::default() }
}

/// `DAV:error` with a precondition in it (RFC 4918, section 16).
#[must_use]
pub fn error((namespace, local): (&str, &str)) -> Element {
    Element::new(DAV, "error").with(Element::new(namespace, local))
}

/// A property that holds an address.
#[must_use]
pub fn href_property(namespace: &str, local: &str, href: &str) -> Element {
    Element::new(namespace, local).with(Element::new(DAV, "href").with_text(href))
}
