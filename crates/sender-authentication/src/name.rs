//! Names of domains, as DNS compares them.

use std::fmt;

/// Bytes of a name (RFC 1035 §2.3.4, without the dot of the root).
const NAME_BYTES_MAX: usize = 253;

/// Bytes of a label (RFC 1035 §2.3.4).
const LABEL_BYTES_MAX: usize = 63;

/// A name of DNS: lower case, A-labels, no dot at its end, each label and the whole within DNS's limits.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DomainName(String);

impl DomainName {
    /// The name in a text, whose U-labels become A-labels (RFC 5890 §2.3); `None` if DNS cannot hold it.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::of_dns(text).filter(|name| !name.0.contains(' '))
    }

    /// The same, where spaces may stand in labels, which macros of SPF can make (RFC 7208 §7.1).
    pub(crate) fn of_dns(text: &str) -> Option<Self> {
        let text = text.strip_suffix('.').unwrap_or(text);
        if text.len() > 4 * NAME_BYTES_MAX {
            return None;
        }
        let name =
            if text.is_ascii() { text.to_ascii_lowercase() } else { idna::domain_to_ascii(text).ok()? };
        let is_label = |label: &str| {
            (1..=LABEL_BYTES_MAX).contains(&label.len())
                && label.bytes().all(|byte| (b' '..=b'~').contains(&byte))
        };
        (name.len() <= NAME_BYTES_MAX && name.split('.').all(is_label)).then_some(Self(name))
    }

    /// The same with a label in front, such as `_dmarc`.
    #[must_use]
    pub fn below(&self, label: &str) -> Option<Self> {
        Self::parse(&format!("{label}.{}", self.0))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// How many labels it has.
    #[must_use]
    pub fn labels(&self) -> usize {
        self.0.split('.').count()
    }

    /// The name without its first label.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        self.0.split_once('.').map(|(_, rest)| Self(rest.to_owned()))
    }

    /// The last labels of the name, or all of it if it has no more.
    #[must_use]
    pub fn last_labels(&self, count: usize) -> Self {
        let start = self.0.rmatch_indices('.').nth(count.saturating_sub(1)).map_or(0, |(place, _)| place + 1);
        Self(self.0.get(start..).unwrap_or(&self.0).to_owned())
    }

    /// Whether it is `other`, or a name below it.
    #[must_use]
    pub fn is_within(&self, other: &Self) -> bool {
        let before = self.0.strip_suffix(&other.0);
        before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
    }

    /// Whether it consists of what names of hosts have, so that it can stand in a header as it is.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.0.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
    }
}

impl fmt::Display for DomainName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}
