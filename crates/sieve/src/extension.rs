//! The extensions that are built.

/// An extension of Sieve that a script may require.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Extension {
    /// `fileinto` (RFC 5228, section 4.1).
    FileInto,
    /// The test `envelope` (RFC 5228, section 5.4).
    Envelope,
    /// `${hex: 40}` and `${unicode: 40}` (RFC 5228, section 2.4.2.4).
    EncodedCharacter,
    /// Comparator (RFC 4790, section 9.3).
    ComparatorOctet,
    /// Comparator (RFC 4790, section 9.2).
    ComparatorAsciiCasemap,
    /// Comparator (RFC 4790, section 9.1).
    ComparatorAsciiNumeric,
    /// `:copy` (RFC 3894).
    Copy,
    /// The test `body` (RFC 5173).
    Body,
    /// `environment` (RFC 5183).
    Environment,
    /// `set`, `string`, `${name}` (RFC 5229).
    Variables,
    /// `vacation` (RFC 5230).
    Vacation,
    /// `:seconds` (RFC 6131).
    VacationSeconds,
    /// `:value` and `:count` (RFC 5231).
    Relational,
    /// Flags (RFC 5232).
    Imap4Flags,
    /// `:user` and `:detail` (RFC 5233).
    Subaddress,
    /// `date` and `currentdate` (RFC 5260).
    Date,
    /// `:index` and `:last` (RFC 5260, section 6).
    Index,
    /// `addheader` and `deleteheader` (RFC 5293).
    EditHeader,
    /// `reject` (RFC 5429, section 2.2).
    Reject,
    /// `ereject` (RFC 5429, section 2.1).
    Ereject,
    /// `notify` (RFC 5435) by mail (RFC 5436).
    Enotify,
    /// `ihave` and `error` (RFC 5463).
    Ihave,
    /// `mailboxexists` and `:create` (RFC 5490, section 3).
    Mailbox,
    /// `include`, `return`, `global` (RFC 6609).
    Include,
    /// `duplicate` (RFC 7352).
    Duplicate,
    /// `:specialuse` and `specialuse_exists` (RFC 8579).
    SpecialUse,
    /// `:fcc` (RFC 8580).
    Fcc,
    /// `:mailboxid` and `mailboxidexists` (RFC 9042).
    MailboxId,
    /// `:regex` (draft-ietf-sieve-regex).
    Regex,
}

/// Each extension with the name that `require` has for it.
const NAMES: [(Extension, &str); 29] = [
    (Extension::FileInto, "fileinto"),
    (Extension::Envelope, "envelope"),
    (Extension::EncodedCharacter, "encoded-character"),
    (Extension::ComparatorOctet, "comparator-i;octet"),
    (Extension::ComparatorAsciiCasemap, "comparator-i;ascii-casemap"),
    (Extension::ComparatorAsciiNumeric, "comparator-i;ascii-numeric"),
    (Extension::Copy, "copy"),
    (Extension::Body, "body"),
    (Extension::Environment, "environment"),
    (Extension::Variables, "variables"),
    (Extension::Vacation, "vacation"),
    (Extension::VacationSeconds, "vacation-seconds"),
    (Extension::Relational, "relational"),
    (Extension::Imap4Flags, "imap4flags"),
    (Extension::Subaddress, "subaddress"),
    (Extension::Date, "date"),
    (Extension::Index, "index"),
    (Extension::EditHeader, "editheader"),
    (Extension::Reject, "reject"),
    (Extension::Ereject, "ereject"),
    (Extension::Enotify, "enotify"),
    (Extension::Ihave, "ihave"),
    (Extension::Mailbox, "mailbox"),
    (Extension::Include, "include"),
    (Extension::Duplicate, "duplicate"),
    (Extension::SpecialUse, "special-use"),
    (Extension::Fcc, "fcc"),
    (Extension::MailboxId, "mailboxid"),
    (Extension::Regex, "regex"),
];

impl Extension {
    /// The extension of a name, which is written as it stands here (RFC 5228, section 6).
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        NAMES.iter().find(|(_, known)| *known == name).map(|(extension, _)| *extension)
    }

    /// The name.
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(extension, _)| *extension == self).map_or("", |(_, name)| name)
    }

    /// All of them, as ManageSieve's capability `SIEVE` lists them (RFC 5804, section 1.7).
    #[must_use]
    pub fn all() -> Vec<Self> {
        NAMES.iter().map(|(extension, _)| *extension).collect()
    }
}

/// The methods of `notify`, as ManageSieve's capability `NOTIFY` lists them (RFC 5804, section 1.7).
pub const NOTIFY_METHODS: [&str; 1] = ["mailto"];
