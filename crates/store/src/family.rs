//! The families that keys are kept in, by how they are used.

/// A key space of its own, laid out for one pattern of access.
///
/// The first five are *logged*: a change to them is durable once its [`Commit`](crate::Commit) is done.
/// The last three are *derived*: they can be rebuilt from the others, so they skip the log, and after
/// a crash they stand as they were at some earlier whole batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Family {
    /// Few small records that are read all the time: names, options, counters.
    Meta = 0,
    /// Small values that are asked for by whole key; absent keys are common.
    Point = 1,
    /// Larger values, read in key order as well as by key: documents.
    Scan = 2,
    /// Keys that live shortly, in order: queues and change feeds.
    Churn = 3,
    /// Large values that are compressed before they come here: attachments and bodies.
    Blob = 4,
    /// As [`Family::Point`], derived.
    DerivedPoint = 5,
    /// As [`Family::Scan`], derived: the entries of views.
    DerivedScan = 6,
    /// As [`Family::Churn`], derived.
    DerivedChurn = 7,
}

impl Family {
    /// Every family, in the order of its code.
    pub const ALL: [Self; 8] = [
        Self::Meta,
        Self::Point,
        Self::Scan,
        Self::Churn,
        Self::Blob,
        Self::DerivedPoint,
        Self::DerivedScan,
        Self::DerivedChurn,
    ];

    /// Whether changes go without the log.
    #[must_use]
    pub fn is_derived(self) -> bool {
        matches!(self, Self::DerivedPoint | Self::DerivedScan | Self::DerivedChurn)
    }

    /// The number that stands for this family in a batch. It never changes.
    #[must_use]
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The family of a code, if there is one.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }

    /// The name on disk and in messages. It never changes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Meta => "meta",
            Self::Point => "point",
            Self::Scan => "scan",
            Self::Churn => "churn",
            Self::Blob => "blob",
            Self::DerivedPoint => "derived-point",
            Self::DerivedScan => "derived-scan",
            Self::DerivedChurn => "derived-churn",
        }
    }
}

impl std::fmt::Display for Family {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name())
    }
}
