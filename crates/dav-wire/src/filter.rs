//! Filters of queries (RFC 4791, section 9.7; RFC 6352, section 10.5).

use crate::names::{CALDAV, CARDDAV};
use crate::request::BodyError;
use crate::value::DateTime;
use crate::xml::Element;

type BodyResult<T> = Result<T, BodyError>;

/// From a time (with it) to another (without it), in UTC. One of them may be open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct TimeRange {
    pub start: Option<DateTime>,
    pub end: Option<DateTime>,
}

impl TimeRange {
    pub(crate) fn read(element: &Element) -> BodyResult<Self> {
        let time = |name: &str| match element.attribute(name) {
            None => Ok(None),
            Some(text) => match DateTime::parse(text) {
                Ok(time) if time.is_utc() => Ok(Some(time)),
                _ => Err(BodyError::Value("time-range")),
            },
        };
        let range = Self { start: time("start")?, end: time("end")? };
        let in_order = match (range.start, range.end) {
            (Some(start), Some(end)) => start < end,
            (None, None) => false,
            _ => true,
        };
        if in_order { Ok(range) } else { Err(BodyError::Value("time-range")) }
    }

    pub(crate) fn element(&self, name: &str) -> Element {
        let mut element = Element::new(CALDAV, name);
        for (name, time) in [("start", self.start), ("end", self.end)] {
            if let Some(time) = time {
                element = element.with_attribute(name, &time.to_string());
            }
        }
        element
    }
}

/// Text that a value is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextMatch {
    /// The text.
    pub text: String,
    /// `i;ascii-casemap` where it is not named in calendars, `i;unicode-casemap` in cards.
    pub collation: Option<String>,
    /// What does not match counts.
    pub negate: bool,
    /// `equals`, `contains`, `starts-with` or `ends-with`, in cards; `contains` where it is not named.
    pub match_type: Option<String>,
}

impl TextMatch {
    fn read(element: &Element) -> Self {
        Self {
            text: element.text(),
            collation: element.attribute("collation").map(str::to_owned),
            negate: element.attribute("negate-condition") == Some("yes"),
            match_type: element.attribute("match-type").map(str::to_owned),
        }
    }

    fn element(&self, namespace: &str) -> Element {
        let mut element = Element::new(namespace, "text-match").with_text(&self.text);
        if let Some(collation) = &self.collation {
            element = element.with_attribute("collation", collation);
        }
        if self.negate {
            element = element.with_attribute("negate-condition", "yes");
        }
        if let Some(match_type) = &self.match_type {
            element = element.with_attribute("match-type", match_type);
        }
        element
    }
}

/// What a line has to be. Of a parameter the same is asked for as of a line, but for times and further parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PropertyFilter {
    /// The name of the line or parameter.
    pub name: String,
    /// There is none.
    pub is_not_defined: bool,
    /// All of the following, and not any of them (`test="allof"`).
    pub all_of: bool,
    /// Its time is in this range.
    pub time_range: Option<TimeRange>,
    /// Its value matches.
    pub texts: Vec<TextMatch>,
    /// Its parameters are so.
    pub parameters: Vec<PropertyFilter>,
}

impl PropertyFilter {
    fn read(element: &Element, namespace: &str) -> BodyResult<Self> {
        let name = element.attribute("name").ok_or(BodyError::Missing("name"))?.to_owned();
        let mut filter = Self { name, all_of: element.attribute("test") == Some("allof"), ..Self::default() };
        for child in element.elements().filter(|child| child.name.namespace == namespace) {
            match child.name.local.as_str() {
                "is-not-defined" => filter.is_not_defined = true,
                "time-range" => filter.time_range = Some(TimeRange::read(child)?),
                "text-match" => filter.texts.push(TextMatch::read(child)),
                "param-filter" => filter.parameters.push(Self::read(child, namespace)?),
                _ => {}
            }
        }
        Ok(filter)
    }

    fn element(&self, namespace: &str, tag: &str) -> Element {
        let mut element = Element::new(namespace, tag).with_attribute("name", &self.name);
        if self.all_of {
            element = element.with_attribute("test", "allof");
        }
        if self.is_not_defined {
            element = element.with(Element::new(namespace, "is-not-defined"));
        }
        let parameters = self.parameters.iter().map(|filter| filter.element(namespace, "param-filter"));
        element
            .with_all(self.time_range.iter().map(|range| range.element("time-range")))
            .with_all(self.texts.iter().map(|text| text.element(namespace)))
            .with_all(parameters)
    }
}

/// What a component has to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ComponentFilter {
    /// VCALENDAR, VEVENT and others.
    pub name: String,
    /// There is none.
    pub is_not_defined: bool,
    /// It takes place in this range.
    pub time_range: Option<TimeRange>,
    /// Its lines are so.
    pub properties: Vec<PropertyFilter>,
    /// Its components are so.
    pub components: Vec<ComponentFilter>,
}

impl ComponentFilter {
    /// Reads a `comp-filter`.
    pub(crate) fn read(element: &Element) -> BodyResult<Self> {
        let name = element.attribute("name").ok_or(BodyError::Missing("name"))?.to_owned();
        let mut filter = Self { name, ..Self::default() };
        for child in element.elements().filter(|child| child.name.namespace == CALDAV) {
            match child.name.local.as_str() {
                "is-not-defined" => filter.is_not_defined = true,
                "time-range" => filter.time_range = Some(TimeRange::read(child)?),
                "prop-filter" => filter.properties.push(PropertyFilter::read(child, CALDAV)?),
                "comp-filter" => filter.components.push(Self::read(child)?),
                _ => {}
            }
        }
        Ok(filter)
    }

    pub(crate) fn element(&self) -> Element {
        let mut element = Element::new(CALDAV, "comp-filter").with_attribute("name", &self.name);
        if self.is_not_defined {
            element = element.with(Element::new(CALDAV, "is-not-defined"));
        }
        element
            .with_all(self.time_range.iter().map(|range| range.element("time-range")))
            .with_all(self.properties.iter().map(|filter| filter.element(CALDAV, "prop-filter")))
            .with_all(self.components.iter().map(Self::element))
    }
}

/// What a card has to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContactFilter {
    /// All of these, and not any of them.
    pub all_of: bool,
    /// Its lines are so.
    pub properties: Vec<PropertyFilter>,
}

impl ContactFilter {
    pub(crate) fn read(element: &Element) -> BodyResult<Self> {
        let mut filter = Self { all_of: element.attribute("test") == Some("allof"), properties: Vec::new() };
        for child in element.elements().filter(|child| child.is(CARDDAV, "prop-filter")) {
            filter.properties.push(PropertyFilter::read(child, CARDDAV)?);
        }
        Ok(filter)
    }

    pub(crate) fn element(&self) -> Element {
        let mut element = Element::new(CARDDAV, "filter");
        if self.all_of {
            element = element.with_attribute("test", "allof");
        }
        element.with_all(self.properties.iter().map(|filter| filter.element(CARDDAV, "prop-filter")))
    }
}

/// Which lines and components of a calendar come back (RFC 4791, section 9.6).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ComponentSelection {
    /// VCALENDAR, VEVENT and others.
    pub name: String,
    /// Lines by name, and whether without their values; `None` is all of them.
    pub properties: Option<Vec<(String, bool)>>,
    /// Components; `None` is all of them.
    pub components: Option<Vec<ComponentSelection>>,
}

impl ComponentSelection {
    pub(crate) fn read(element: &Element) -> BodyResult<Self> {
        let name = element.attribute("name").ok_or(BodyError::Missing("name"))?.to_owned();
        let (mut properties, mut components) = (Some(Vec::new()), Some(Vec::new()));
        for child in element.elements().filter(|child| child.name.namespace == CALDAV) {
            match child.name.local.as_str() {
                "allprop" => properties = None,
                "allcomp" => components = None,
                "prop" => {
                    let name = child.attribute("name").ok_or(BodyError::Missing("name"))?.to_owned();
                    let without_value = child.attribute("novalue") == Some("yes");
                    properties.iter_mut().for_each(|all| all.push((name.clone(), without_value)));
                }
                "comp" => {
                    let component = Self::read(child)?;
                    components.iter_mut().for_each(|all| all.push(component.clone()));
                }
                _ => {}
            }
        }
        Ok(Self { name, properties, components })
    }

    pub(crate) fn element(&self) -> Element {
        let element = Element::new(CALDAV, "comp").with_attribute("name", &self.name);
        let element = match &self.properties {
            None => element.with(Element::new(CALDAV, "allprop")),
            Some(all) => element.with_all(all.iter().map(|(name, without_value)| {
                let line = Element::new(CALDAV, "prop").with_attribute("name", name);
                if *without_value { line.with_attribute("novalue", "yes") } else { line }
            })),
        };
        match &self.components {
            None => element.with(Element::new(CALDAV, "allcomp")),
            Some(all) => element.with_all(all.iter().map(Self::element)),
        }
    }
}
