//! How far a client knows a collection (RFC 6578).

/// What tokens begin with.
const PREFIX: &str = "urn:scrinium:sync:";

/// A place in the changes of a collection. It names what it is of, so that another collection's is never taken for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyncToken {
    /// The history of the database, which a restored one does not share.
    pub history: String,
    /// The collection's number, and what changes when it is made once more.
    pub collection: (u32, u32),
    /// All changes up to this one are known.
    pub change: u64,
    /// The first listing goes on behind this member; `change` is the state from before it began.
    pub listed_to: Option<u64>,
}

impl SyncToken {
    /// As clients get it.
    #[must_use]
    pub fn text(&self) -> String {
        let Self { history, collection: (number, validity), change, listed_to } = self;
        let listed = listed_to.map(|uid| format!(":{uid}")).unwrap_or_default();
        format!("{PREFIX}{history}:{number}:{validity}:{change}{listed}")
    }

    /// Reads one. `None`: it is not ours.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.strip_prefix(PREFIX)?.split(':');
        let history = parts.next()?.to_owned();
        let collection = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let change = parts.next()?.parse().ok()?;
        let listed_to = parts.next().map(str::parse).transpose().ok()?;
        parts.next().is_none().then_some(Self { history, collection, change, listed_to })
    }
}
