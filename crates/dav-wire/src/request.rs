//! Bodies of PROPFIND, PROPPATCH, MKCOL, MKCALENDAR (RFC 4918, section 9; RFC 5689; RFC 4791, section 5.3.1) and ACL
//! (RFC 3744, section 8.1).

use thiserror::Error;

use crate::names::{CALDAV, DAV};
use crate::xml::{Element, Name, XmlError, XmlLimits};

/// Why a body is not what a request needs.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BodyError {
    /// It is no XML, or goes beyond a limit.
    #[error("{0}")]
    Xml(#[from] XmlError),
    /// Its element is another one.
    #[error("the body's element is not the one that the method has")]
    Root,
    /// Something is missing.
    #[error("the body has no {0}")]
    Missing(&'static str),
    /// Something is wrong.
    #[error("the body's {0} is not valid")]
    Value(&'static str),
}

/// Which properties are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PropFind {
    /// All that are stored, and these (`include`).
    All(Vec<Name>),
    /// The names of all.
    Names,
    /// These.
    Properties(Vec<Name>),
}

impl PropFind {
    /// Reads a body; an empty one asks for all properties.
    ///
    /// # Errors
    /// [`BodyError`]
    pub fn parse(body: &[u8], limits: XmlLimits) -> Result<Self, BodyError> {
        if body.trim_ascii().is_empty() {
            return Ok(Self::All(Vec::new()));
        }
        let root = Element::parse(body, limits)?;
        if root.is(DAV, "propfind") { Self::read(&root) } else { Err(BodyError::Root) }
    }

    fn read(root: &Element) -> Result<Self, BodyError> {
        if let Some(properties) = root.child(DAV, "prop") {
            return Ok(Self::Properties(names(properties)));
        }
        if root.child(DAV, "propname").is_some() {
            return Ok(Self::Names);
        }
        if root.child(DAV, "allprop").is_some() {
            return Ok(Self::All(root.child(DAV, "include").map(names).unwrap_or_default()));
        }
        Err(BodyError::Missing("prop"))
    }

    /// The body.
    #[must_use]
    pub fn element(&self) -> Element {
        let root = Element::new(DAV, "propfind");
        match self {
            Self::Names => root.with(Element::new(DAV, "propname")),
            Self::Properties(names) => root.with(named(DAV, "prop", names)),
            Self::All(include) if include.is_empty() => root.with(Element::new(DAV, "allprop")),
            Self::All(include) => {
                root.with(Element::new(DAV, "allprop")).with(named(DAV, "include", include))
            }
        }
    }
}

pub(crate) fn names(element: &Element) -> Vec<Name> {
    element.elements().map(|child| child.name.clone()).collect()
}

pub(crate) fn named(namespace: &str, local: &str, names: &[Name]) -> Element {
    Element::new(namespace, local).with_all(names.iter().map(Element::named))
}

/// A change of a property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PropertyChange {
    /// The property with its value.
    Set(Element),
    /// It goes.
    Remove(Name),
}

/// Changes of properties, in the order in which they are made; all or none of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PropertyUpdate(pub Vec<PropertyChange>);

impl PropertyUpdate {
    /// Reads a body.
    ///
    /// # Errors
    /// [`BodyError`]
    pub fn parse(body: &[u8], limits: XmlLimits) -> Result<Self, BodyError> {
        let root = Element::parse(body, limits)?;
        if !root.is(DAV, "propertyupdate") {
            return Err(BodyError::Root);
        }
        let mut changes = Vec::new();
        for part in root.elements() {
            let properties =
                part.elements().filter(|child| child.is(DAV, "prop")).flat_map(Element::elements);
            if part.is(DAV, "set") {
                changes.extend(properties.cloned().map(PropertyChange::Set));
            } else if part.is(DAV, "remove") {
                changes.extend(properties.map(|property| PropertyChange::Remove(property.name.clone())));
            }
        }
        if changes.is_empty() { Err(BodyError::Missing("prop")) } else { Ok(Self(changes)) }
    }

    /// The body.
    #[must_use]
    pub fn element(&self) -> Element {
        Element::new(DAV, "propertyupdate").with_all(self.0.iter().map(|change| match change {
            PropertyChange::Set(property) => {
                Element::new(DAV, "set").with(Element::new(DAV, "prop").with(property.clone()))
            }
            PropertyChange::Remove(name) => {
                Element::new(DAV, "remove").with(Element::new(DAV, "prop").with(Element::named(name)))
            }
        }))
    }
}

/// What a collection is made with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MakeCollection {
    /// MKCALENDAR, and not MKCOL.
    pub calendar: bool,
    /// Its properties; the kind of an extended MKCOL is `resourcetype` among them.
    pub properties: Vec<Element>,
}

impl MakeCollection {
    /// Reads the body of MKCOL, or of MKCALENDAR. It may be empty.
    ///
    /// # Errors
    /// [`BodyError`]
    pub fn parse(body: &[u8], calendar: bool, limits: XmlLimits) -> Result<Self, BodyError> {
        if body.trim_ascii().is_empty() {
            return Ok(Self { calendar, properties: Vec::new() });
        }
        let root = Element::parse(body, limits)?;
        let expected = if calendar { root.is(CALDAV, "mkcalendar") } else { root.is(DAV, "mkcol") };
        if !expected {
            return Err(BodyError::Root);
        }
        let sets = root.elements().filter(|part| part.is(DAV, "set"));
        let properties = sets
            .flat_map(Element::elements)
            .filter(|child| child.is(DAV, "prop"))
            .flat_map(Element::elements)
            .cloned()
            .collect();
        Ok(Self { calendar, properties })
    }

    /// The body.
    #[must_use]
    pub fn element(&self) -> Element {
        let root =
            if self.calendar { Element::new(CALDAV, "mkcalendar") } else { Element::new(DAV, "mkcol") };
        if self.properties.is_empty() {
            return root;
        }
        let properties = Element::new(DAV, "prop").with_all(self.properties.iter().cloned());
        root.with(Element::new(DAV, "set").with(properties))
    }
}

/// Whom an entry of a list is for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Principal {
    Href(String),
    All,
    Authenticated,
    Unauthenticated,
    /// The principal itself.
    Itself,
    /// The person that a property of the resource names.
    Property(Name),
}

/// An entry of an access control list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessEntry {
    /// Whom it is for.
    pub principal: Principal,
    /// All others, and not these.
    pub invert: bool,
    /// Granted, and not denied.
    pub grant: bool,
    /// `read`, `write` and others.
    pub privileges: Vec<Name>,
    /// It cannot be changed.
    pub protected: bool,
    /// The resource that it comes from.
    pub inherited: Option<String>,
}

/// An access control list: the property `DAV:acl`, and the body of ACL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessList(pub Vec<AccessEntry>);

impl AccessList {
    /// Reads the body of ACL.
    ///
    /// # Errors
    /// [`BodyError`]
    pub fn parse(body: &[u8], limits: XmlLimits) -> Result<Self, BodyError> {
        Self::read(&Element::parse(body, limits)?)
    }

    /// Reads `DAV:acl`.
    ///
    /// # Errors
    /// [`BodyError`]
    pub fn read(root: &Element) -> Result<Self, BodyError> {
        if !root.is(DAV, "acl") {
            return Err(BodyError::Root);
        }
        root.elements()
            .filter(|child| child.is(DAV, "ace"))
            .map(AccessEntry::read)
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// `DAV:acl`.
    #[must_use]
    pub fn element(&self) -> Element {
        Element::new(DAV, "acl").with_all(self.0.iter().map(AccessEntry::element))
    }
}

impl AccessEntry {
    fn read(element: &Element) -> Result<Self, BodyError> {
        let inverted = element.child(DAV, "invert");
        let principal = inverted.unwrap_or(element).child(DAV, "principal");
        let principal = Principal::read(principal.ok_or(BodyError::Missing("principal"))?)?;
        let (grant, privileges) = match (element.child(DAV, "grant"), element.child(DAV, "deny")) {
            (Some(grant), None) => (true, grant),
            (None, Some(deny)) => (false, deny),
            _ => return Err(BodyError::Missing("grant")),
        };
        let privileges = privileges.elements().filter(|child| child.is(DAV, "privilege"));
        let inherited = element.child(DAV, "inherited").and_then(|from| from.child(DAV, "href"));
        Ok(Self {
            principal,
            invert: inverted.is_some(),
            grant,
            privileges: privileges.flat_map(names).collect(),
            protected: element.child(DAV, "protected").is_some(),
            inherited: inherited.map(|href| href.text().trim().to_owned()),
        })
    }

    fn element(&self) -> Element {
        let principal = Element::new(DAV, "principal").with(self.principal.element());
        let principal = if self.invert { Element::new(DAV, "invert").with(principal) } else { principal };
        let privilege = |name: &Name| Element::new(DAV, "privilege").with(Element::named(name));
        let given = Element::new(DAV, if self.grant { "grant" } else { "deny" });
        let mut element = Element::new(DAV, "ace")
            .with(principal)
            .with(given.with_all(self.privileges.iter().map(privilege)));
        if self.protected {
            element = element.with(Element::new(DAV, "protected"));
        }
        element.with_all(
            self.inherited
                .iter()
                .map(|href| Element::new(DAV, "inherited").with(Element::new(DAV, "href").with_text(href))),
        )
    }
}

impl Principal {
    fn read(element: &Element) -> Result<Self, BodyError> {
        let child = element.elements().next().ok_or(BodyError::Missing("principal"))?;
        if child.name.namespace != DAV {
            return Err(BodyError::Value("principal"));
        }
        Ok(match child.name.local.as_str() {
            "href" => Self::Href(child.text().trim().to_owned()),
            "all" => Self::All,
            "authenticated" => Self::Authenticated,
            "unauthenticated" => Self::Unauthenticated,
            "self" => Self::Itself,
            "property" => {
                let name = child.elements().next().ok_or(BodyError::Missing("property"))?;
                Self::Property(name.name.clone())
            }
            _ => return Err(BodyError::Value("principal")),
        })
    }

    fn element(&self) -> Element {
        match self {
            Self::Href(href) => Element::new(DAV, "href").with_text(href),
            Self::All => Element::new(DAV, "all"),
            Self::Authenticated => Element::new(DAV, "authenticated"),
            Self::Unauthenticated => Element::new(DAV, "unauthenticated"),
            Self::Itself => Element::new(DAV, "self"),
            Self::Property(name) => Element::new(DAV, "property").with(Element::named(name)),
        }
    }
}
