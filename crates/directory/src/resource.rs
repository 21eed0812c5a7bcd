//! What the directory says of a room or another resource, which people book.

use crate::DirectoryError;
use crate::fields::{Fields, refuse, text};

/// What is booked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceKind {
    /// A room.
    Room,
    /// Anything else: a car, a projector.
    Resource,
}

impl ResourceKind {
    /// As the field `Resource` has it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Room => "room",
            Self::Resource => "resource",
        }
    }
}

/// A person of the directory who is a room or another resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// Which of the two.
    pub kind: ResourceKind,
    /// Where it is: a house, a town.
    pub site: Option<String>,
    /// Seats.
    pub capacity: Option<u32>,
}

/// What a person's document says by `Resource`, `Site` and `Capacity`. The other two mean nothing without the first.
pub(crate) fn resource(document: &Fields) -> Result<Option<Resource>, DirectoryError> {
    const KIND: &str = "Resource";
    const CAPACITY: &str = "Capacity";
    let kind = match text(document, KIND)?.as_deref() {
        None => return Ok(None),
        Some("room") => ResourceKind::Room,
        Some("resource") => ResourceKind::Resource,
        Some(other) => return Err(refuse(KIND, other, "it is \"room\" or \"resource\", or not there")),
    };
    let capacity = document.get(CAPACITY).filter(|seats| !seats.is_null()).map(|seats| {
        let seats = seats.as_u64().and_then(|seats| u32::try_from(seats).ok());
        seats.ok_or(DirectoryError::Type { field: CAPACITY, expected: "a number of seats" })
    });
    Ok(Some(Resource { kind, site: text(document, "Site")?, capacity: capacity.transpose()? }))
}
