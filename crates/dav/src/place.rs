//! Which resource a path means.

use scrinium_dav_wire::header::{encode_segment, path_segments};

/// What all paths begin with. Names of databases do not begin with an underscore.
pub const ROOT: &str = "_dav";

/// A name is at most this long.
pub const NAME_BYTES_MAX: usize = 255;

/// Whose collections a path lies among.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Area {
    Calendars,
    Contacts,
}

impl Area {
    /// As it stands in paths.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Calendars => "calendars",
            Self::Contacts => "contacts",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        [Self::Calendars, Self::Contacts].into_iter().find(|area| area.text() == text)
    }
}

/// A resource.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Place {
    /// The root, which only leads on.
    Root,
    /// The collection of all principals.
    Principals,
    /// A person.
    Principal { person: String },
    /// The collection of all homes of an area.
    Homes(Area),
    /// A person's collections.
    Home { area: Area, person: String },
    /// One of them.
    Collection { area: Area, person: String, collection: String },
    /// What is in it.
    Member { area: Area, person: String, collection: String, name: String },
}

impl Place {
    /// Of a path as it came, still encoded. `None` for what is no resource: another path, a name that is too long, not
    /// UTF-8, or holds control characters.
    #[must_use]
    pub fn parse(path: &str) -> Option<Self> {
        let segments = path_segments(path)?;
        let segments: Option<Vec<String>> = segments.into_iter().map(name_of).collect();
        let mut segments = segments?.into_iter();
        if segments.next().is_some_and(|root| root != ROOT) {
            return None;
        }
        let Some(first) = segments.next() else { return Some(Self::Root) };
        let rest: Vec<String> = segments.collect();
        if first == "principals" {
            return match <[String; 1]>::try_from(rest) {
                Ok([person]) => Some(Self::Principal { person }),
                Err(rest) if rest.is_empty() => Some(Self::Principals),
                Err(_) => None,
            };
        }
        let area = Area::parse(&first)?;
        let mut rest = rest.into_iter();
        let place = match (rest.next(), rest.next(), rest.next(), rest.next()) {
            (None, ..) => Self::Homes(area),
            (Some(person), None, ..) => Self::Home { area, person },
            (Some(person), Some(collection), None, _) => Self::Collection { area, person, collection },
            (Some(person), Some(collection), Some(name), None) => {
                Self::Member { area, person, collection, name }
            }
            _ => return None,
        };
        Some(place)
    }

    /// Its path, in the one spelling that is given out. Collections end with a slash.
    #[must_use]
    pub fn href(&self) -> String {
        let mut href = format!("/{ROOT}/");
        let mut push = |segment: &str| {
            href.push_str(&encode_segment(segment.as_bytes()));
            href.push('/');
        };
        match self {
            Self::Root => {}
            Self::Principals => push("principals"),
            Self::Principal { person } => ["principals", person].into_iter().for_each(push),
            Self::Homes(area) => push(area.text()),
            Self::Home { area, person } => [area.text(), person].into_iter().for_each(push),
            Self::Collection { area, person, collection } => {
                [area.text(), person, collection].into_iter().for_each(push);
            }
            Self::Member { area, person, collection, name } => {
                [area.text(), person, collection].into_iter().for_each(push);
                href.push_str(&encode_segment(name.as_bytes()));
            }
        }
        href
    }

    /// Whose it is.
    #[must_use]
    pub fn person(&self) -> Option<&str> {
        match self {
            Self::Principal { person }
            | Self::Home { person, .. }
            | Self::Collection { person, .. }
            | Self::Member { person, .. } => Some(person),
            Self::Root | Self::Principals | Self::Homes(_) => None,
        }
    }
}

fn name_of(segment: Vec<u8>) -> Option<String> {
    let name = String::from_utf8(segment).ok()?;
    (name.len() <= NAME_BYTES_MAX && !name.chars().any(char::is_control)).then_some(name)
}
