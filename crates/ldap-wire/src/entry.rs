//! Entries, and the part of one that a search asks for.

use crate::filter::Identifier;
use crate::schema::{self, AttributeType, Usage};

/// An entry: its name and its attributes.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Entry {
    /// The name.
    pub name: String,
    /// The attributes; one of each name.
    pub attributes: Vec<Attribute>,
}

/// An attribute of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// Its name, perhaps with options.
    pub name: String,
    /// Its values, in no order; none where only types were asked for.
    pub values: Vec<Vec<u8>>,
}

impl Attribute {
    /// An attribute whose values are texts.
    pub fn texts<'a>(name: &str, values: impl IntoIterator<Item = &'a str>) -> Self {
        let values = values.into_iter().map(|value| value.as_bytes().to_vec()).collect();
        Self { name: name.to_owned(), values }
    }
}

impl Entry {
    /// An entry without attributes.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), attributes: Vec::new() }
    }

    /// The same entry with one more attribute, unless it has no values.
    #[must_use]
    pub fn with<'a>(mut self, name: &str, values: impl IntoIterator<Item = &'a str>) -> Self {
        let attribute = Attribute::texts(name, values);
        if !attribute.values.is_empty() {
            self.attributes.push(attribute);
        }
        self
    }

    /// The values of the attribute with exactly this name, in any case.
    pub fn values<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let found = self.attributes.iter().find(|attribute| attribute.name.eq_ignore_ascii_case(name));
        found.into_iter().flat_map(|attribute| attribute.values.iter().map(Vec::as_slice))
    }

    /// The first value of an attribute, if it is text.
    #[must_use]
    pub fn text<'a>(&'a self, name: &str) -> Option<&'a str> {
        self.values(name).next().and_then(|value| std::str::from_utf8(value).ok())
    }
}

/// A name of an attribute taken apart: what the schema knows of it, and its options in lower case.
#[derive(Clone, Debug)]
pub(crate) struct Description {
    pub(crate) known: Option<&'static AttributeType>,
    /// The type's name in lower case, which is what remains to compare where the schema does not know it.
    name: String,
    options: Vec<String>,
}

impl Description {
    pub(crate) fn of(text: &str) -> Self {
        let mut pieces = text.split(';');
        let name = pieces.next().unwrap_or_default().to_ascii_lowercase();
        let options = pieces.map(str::to_ascii_lowercase).collect();
        Self { known: schema::attribute_type(&name), name, options }
    }

    /// Whether an attribute described by `other` is one of this: the same type or one below it, with these options and
    /// perhaps more (RFC 4512, section 2.5).
    pub(crate) fn covers(&self, other: &Self) -> bool {
        let same_type = match (self.known, other.known) {
            (Some(general), Some(special)) => special.is_kind_of(general),
            _ => self.name == other.name,
        };
        same_type && self.options.iter().all(|option| other.options.contains(option))
    }
}

/// The attributes that a search asks for (RFC 4511, section 4.5.1.8; RFC 3673; RFC 4529).
#[derive(Clone, Debug)]
pub struct Selection {
    all_user: bool,
    all_operational: bool,
    named: Vec<Description>,
}

impl Selection {
    /// Reads the list of a request: none or `*` is all that users write, `+` all that the server does, `1.1` nothing,
    /// `@inetOrgPerson` what such an entry may have. What is no name of an attribute is left out.
    #[must_use]
    pub fn new(attributes: &[String]) -> Self {
        let mut selection =
            Self { all_user: attributes.is_empty(), all_operational: false, named: Vec::new() };
        for attribute in attributes {
            match attribute.as_str() {
                "*" => selection.all_user = true,
                "+" => selection.all_operational = true,
                "1.1" => {}
                name => match name.strip_prefix('@') {
                    Some(class) => selection
                        .named
                        .extend(schema::attributes_of_class(class).into_iter().map(Description::of)),
                    None if Identifier::parse(name).is_some() => selection.named.push(Description::of(name)),
                    None => {}
                },
            }
        }
        selection
    }

    /// Whether an attribute with this name is asked for.
    #[must_use]
    pub fn takes(&self, attribute: &str) -> bool {
        let description = Description::of(attribute);
        let is_operational = description.known.is_some_and(|known| known.usage() != Usage::UserApplications);
        let by_kind = if is_operational { self.all_operational } else { self.all_user };
        by_kind || self.named.iter().any(|named| named.covers(&description))
    }

    /// The part of an entry that is asked for.
    #[must_use]
    pub fn apply(&self, entry: &Entry, types_only: bool) -> Entry {
        let asked_for = entry.attributes.iter().filter(|attribute| self.takes(&attribute.name));
        let attributes = asked_for.map(|attribute| Attribute {
            name: attribute.name.clone(),
            values: if types_only { Vec::new() } else { attribute.values.clone() },
        });
        Entry { name: entry.name.clone(), attributes: attributes.collect() }
    }
}
