//! What a session can do, and what of it is hidden.
//!
//! Clients break where a server offers more than they have seen, so that each capability can be hidden from a person, at a port, or from
//! a client that has named itself. What is hidden is not there: it is not announced, and its commands are unknown.

use std::fmt;

/// Something that a client finds in CAPABILITY.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are those of the standards")]
#[repr(u8)]
pub enum Capability {
    Imap4Rev2,
    SaslIr,
    Id,
    Enable,
    LiteralPlus,
    LiteralMinus,
    Idle,
    Namespace,
    UidPlus,
    Unselect,
    Children,
    ListExtended,
    ListStatus,
    ListMyRights,
    ListMetadata,
    SpecialUse,
    CreateSpecialUse,
    Move,
    Condstore,
    Qresync,
    Esearch,
    SearchRes,
    Within,
    Fuzzy,
    Sort,
    SortDisplay,
    Esort,
    ThreadReferences,
    ThreadOrderedSubject,
    Compress,
    MultiAppend,
    AppendLimit,
    Binary,
    Utf8Accept,
    Notify,
    Quota,
    Acl,
    Metadata,
    ObjectId,
    SaveDate,
    Preview,
    Replace,
    StatusSize,
    InProgress,
    Partial,
    UidOnly,
    UidBatches,
}

impl Capability {
    /// All of them, in the order in which they are announced.
    pub const ALL: [(Self, &'static str); 47] = [
        (Self::Imap4Rev2, "IMAP4rev2"),
        (Self::SaslIr, "SASL-IR"),
        (Self::Id, "ID"),
        (Self::Enable, "ENABLE"),
        (Self::LiteralPlus, "LITERAL+"),
        (Self::LiteralMinus, "LITERAL-"),
        (Self::Idle, "IDLE"),
        (Self::Namespace, "NAMESPACE"),
        (Self::UidPlus, "UIDPLUS"),
        (Self::Unselect, "UNSELECT"),
        (Self::Children, "CHILDREN"),
        (Self::ListExtended, "LIST-EXTENDED"),
        (Self::ListStatus, "LIST-STATUS"),
        (Self::ListMyRights, "LIST-MYRIGHTS"),
        (Self::ListMetadata, "LIST-METADATA"),
        (Self::SpecialUse, "SPECIAL-USE"),
        (Self::CreateSpecialUse, "CREATE-SPECIAL-USE"),
        (Self::Move, "MOVE"),
        (Self::Condstore, "CONDSTORE"),
        (Self::Qresync, "QRESYNC"),
        (Self::Esearch, "ESEARCH"),
        (Self::SearchRes, "SEARCHRES"),
        (Self::Within, "WITHIN"),
        (Self::Fuzzy, "SEARCH=FUZZY"),
        (Self::Sort, "SORT"),
        (Self::SortDisplay, "SORT=DISPLAY"),
        (Self::Esort, "ESORT"),
        (Self::ThreadReferences, "THREAD=REFERENCES"),
        (Self::ThreadOrderedSubject, "THREAD=ORDEREDSUBJECT"),
        (Self::Compress, "COMPRESS=DEFLATE"),
        (Self::MultiAppend, "MULTIAPPEND"),
        (Self::AppendLimit, "APPENDLIMIT"),
        (Self::Binary, "BINARY"),
        (Self::Utf8Accept, "UTF8=ACCEPT"),
        (Self::Notify, "NOTIFY"),
        (Self::Quota, "QUOTA"),
        (Self::Acl, "ACL"),
        (Self::Metadata, "METADATA"),
        (Self::ObjectId, "OBJECTID"),
        (Self::SaveDate, "SAVEDATE"),
        (Self::Preview, "PREVIEW"),
        (Self::Replace, "REPLACE"),
        (Self::StatusSize, "STATUS=SIZE"),
        (Self::InProgress, "INPROGRESS"),
        (Self::Partial, "PARTIAL"),
        (Self::UidOnly, "UIDONLY"),
        (Self::UidBatches, "UIDBATCHES"),
    ];

    /// The word that announces it.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(known, _)| *known == self).map_or("", |(_, name)| name)
    }

    /// The capability of a word, in any case.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| known.eq_ignore_ascii_case(name)).map(|(known, _)| *known)
    }

    /// What must be there for it to work.
    fn needs(self) -> &'static [Self] {
        match self {
            Self::Qresync => &[Self::Condstore, Self::Enable],
            Self::Utf8Accept | Self::UidOnly | Self::Imap4Rev2 => &[Self::Enable],
            Self::SearchRes | Self::Partial => &[Self::Esearch],
            Self::SortDisplay => &[Self::Sort],
            Self::Esort => &[Self::Sort, Self::Esearch],
            Self::ListStatus | Self::ListMetadata | Self::ListMyRights => &[Self::ListExtended],
            Self::CreateSpecialUse => &[Self::SpecialUse],
            _ => &[],
        }
    }

    /// Whether it is part of IMAP4rev2, so that it cannot be hidden while that is there (RFC 9051, appendix E).
    const fn is_in_rev2(self) -> bool {
        matches!(
            self,
            Self::SaslIr
                | Self::Enable
                | Self::LiteralMinus
                | Self::Idle
                | Self::Namespace
                | Self::UidPlus
                | Self::Unselect
                | Self::ListExtended
                | Self::ListStatus
                | Self::SpecialUse
                | Self::Move
                | Self::Esearch
                | Self::SearchRes
                | Self::StatusSize
        )
    }
}

/// Capabilities.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CapabilitySet(u64);

impl CapabilitySet {
    /// None.
    pub const NONE: Self = Self(0);

    /// What is hidden unless somebody says otherwise: Microsoft's cloud enables UIDONLY and then sends sequence numbers.
    #[must_use]
    pub fn hidden_by_default() -> Self {
        Self::NONE.with(Capability::UidOnly)
    }

    /// With one more.
    #[must_use]
    pub const fn with(self, capability: Capability) -> Self {
        Self(self.0 | 1 << capability as u8)
    }

    /// With all of another set.
    #[must_use]
    pub const fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Whether one is in it.
    #[must_use]
    pub const fn has(self, capability: Capability) -> bool {
        self.0 & 1 << capability as u8 != 0
    }

    /// What is there when these are hidden: without what needs one of them.
    #[must_use]
    pub fn shown(self) -> Self {
        let all = Capability::ALL.iter().map(|(capability, _)| *capability);
        let mut shown = all.clone().filter(|one| !self.has(*one)).fold(Self::NONE, Self::with);
        if all.clone().any(|one| one.is_in_rev2() && self.has(one)) {
            shown.0 &= !(1 << Capability::Imap4Rev2 as u8);
        }
        let is_whole = |one: Capability| one.needs().iter().all(|needed| shown.has(*needed));
        all.filter(|one| shown.has(*one) && is_whole(*one)).fold(Self::NONE, Self::with)
    }
}

impl fmt::Debug for CapabilitySet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Capability::ALL.iter().filter(|(one, _)| self.has(*one)).map(|(_, name)| name);
        formatter.debug_set().entries(names).finish()
    }
}

impl FromIterator<Capability> for CapabilitySet {
    fn from_iter<I: IntoIterator<Item = Capability>>(all: I) -> Self {
        all.into_iter().fold(Self::NONE, Self::with)
    }
}
