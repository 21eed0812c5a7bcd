//! What a message may hold, and what is wrong with one.

use thiserror::Error;

/// Limits of one message, of whatever kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageLimits {
    /// The whole message, in bytes.
    pub message_bytes: usize,
    /// Filters inside each other.
    pub depth: usize,
    /// Filters of a search in all, those that only join others included.
    pub filters: usize,
    /// Members of lists in all: attributes, values, parts of substrings, changes, referrals, controls.
    pub items: usize,
}

impl MessageLimits {
    /// What a server takes from a client that has not said who it is.
    pub const ANONYMOUS: Self = Self { message_bytes: 64 << 10, depth: 16, filters: 64, items: 256 };

    /// What a server takes from a client that it knows. Address books ask for a dozen attributes of every word.
    pub const SERVER: Self = Self { message_bytes: 1 << 20, depth: 32, filters: 1024, items: 8192 };

    /// What a client takes from a server: a group with 200,000 members is one message.
    pub const CLIENT: Self = Self { message_bytes: 64 << 20, depth: 32, filters: 1024, items: 500_000 };
}

impl Default for MessageLimits {
    fn default() -> Self {
        Self::SERVER
    }
}

/// What is wrong with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Fault {
    /// An element ends behind what it is in.
    #[error("an element is longer than what it stands in")]
    Truncated,
    /// Bytes follow the message.
    #[error("bytes follow the end of the message")]
    Trailing,
    /// LDAP has no lengths that are found by an end mark (RFC 4511, section 5.1).
    #[error("an element says no length")]
    IndefiniteLength,
    /// A length of more than eight octets.
    #[error("a length of more than 64 bits")]
    LongLength,
    /// LDAP has no tag above 30.
    #[error("a tag of more than one octet")]
    LongTag,
    /// Another element was expected.
    #[error("an element with the tag {found:#04x} stands where one with {expected:#04x} must be")]
    Tag {
        /// The tag that must stand there.
        expected: u8,
        /// The tag that does.
        found: u8,
    },
    /// An element is not there.
    #[error("an element with the tag {expected:#04x} is missing")]
    Missing {
        /// Its tag.
        expected: u8,
    },
    /// An integer is empty, or outside its range.
    #[error("a number is outside its range")]
    Integer,
    /// A boolean that has not one octet.
    #[error("a boolean has one octet")]
    Boolean,
    /// A text is not UTF-8.
    #[error("a text is not UTF-8")]
    Text,
    /// The operation is of no kind that LDAP has.
    #[error("no operation has the tag {0:#04x}")]
    Operation(u8),
    /// A value that no such element has.
    #[error("not valid: {0}")]
    Value(&'static str),
    /// More members of lists than the limit.
    #[error("lists with more than {0} members in all")]
    TooManyItems(usize),
    /// More filters than the limit.
    #[error("a search with more than {0} filters")]
    TooManyFilters(usize),
    /// Filters are nested deeper than the limit.
    #[error("filters nested more than {0} deep")]
    TooDeep(usize),
}

impl Fault {
    /// Whether a limit of ours was met, and the message may well follow the rules.
    #[must_use]
    pub fn is_limit(self) -> bool {
        matches!(self, Self::TooManyItems(_) | Self::TooManyFilters(_) | Self::TooDeep(_))
    }

    /// Whether the bytes are no elements at all: after that, nothing on the connection can be trusted (RFC 4511, section
    /// 4.1.1).
    #[must_use]
    pub fn breaks_connection(self) -> bool {
        matches!(
            self,
            Self::Truncated
                | Self::Trailing
                | Self::IndefiniteLength
                | Self::LongLength
                | Self::LongTag
                | Self::Operation(_)
        )
    }
}

/// What is left of a message's limits while it is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    limits: MessageLimits,
    items_left: usize,
    filters_left: usize,
}

impl Budget {
    pub(crate) fn new(limits: MessageLimits) -> Self {
        Self { limits, items_left: limits.items, filters_left: limits.filters }
    }

    pub(crate) fn take_item(&mut self) -> Result<(), Fault> {
        self.items_left = self.items_left.checked_sub(1).ok_or(Fault::TooManyItems(self.limits.items))?;
        Ok(())
    }

    /// One more filter, inside `depth` others.
    pub(crate) fn take_filter(&mut self, depth: usize) -> Result<(), Fault> {
        if depth >= self.limits.depth {
            return Err(Fault::TooDeep(self.limits.depth));
        }
        self.filters_left =
            self.filters_left.checked_sub(1).ok_or(Fault::TooManyFilters(self.limits.filters))?;
        Ok(())
    }
}
