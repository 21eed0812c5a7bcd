//! What is stored of folders, of what is in them, and of what people have read.
//!
//! Folders are given by their number here, which no other folder of the database ever gets, so that what is
//! left of one that was dropped means nothing.

#![allow(missing_docs, reason = "the names say it")]

use std::collections::BTreeMap;

use scrinium_contents::wire::{Input, put_bytes, put_number};

use crate::keys::Digest;

/// Of marks and counts, and of what was stored of folders in formats 1 and 2.
const VERSION: u8 = 1;

/// Of folders and what is in them, since format 3.
const FOLDER_VERSION: u8 = 2;

const READ: u8 = 1;

/// Begins a record, with room for `bytes`.
fn begin(version: u8, bytes: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes + 1);
    out.push(version);
    out
}

/// `None`: of a version that is not known.
fn open(bytes: &[u8]) -> Option<Input<'_>> {
    let mut input = Input::new(bytes);
    (input.byte()? == VERSION).then_some(input)
}

/// The version too, which is one of those of folders.
fn open_folder(bytes: &[u8]) -> Option<(u8, Input<'_>)> {
    let mut input = Input::new(bytes);
    let version = input.byte()?;
    matches!(version, VERSION | FOLDER_VERSION).then_some((version, input))
}

/// Small numbers of either sign are short.
fn put_signed(out: &mut Vec<u8>, number: i64) {
    put_number(out, (number.wrapping_shl(1) ^ (number >> 63)).cast_unsigned());
}

fn signed(input: &mut Input<'_>) -> Option<i64> {
    let number = input.number()?;
    Some((number >> 1).cast_signed() ^ (number & 1).cast_signed().wrapping_neg())
}

/// What the documents of a folder are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FolderKind {
    /// Whatever people put there.
    #[default]
    Plain,
    Mail,
    /// Events, one a document (RFC 4791 §4.2).
    Calendar,
    /// Contacts (RFC 6352 §5.2).
    Contacts,
    Tasks,
}

impl FolderKind {
    const ALL: [Self; 5] = [Self::Plain, Self::Mail, Self::Calendar, Self::Contacts, Self::Tasks];

    /// As it goes over the wire.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Mail => "mail",
            Self::Calendar => "calendar",
            Self::Contacts => "contacts",
            Self::Tasks => "tasks",
        }
    }

    /// The kind that is written so.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.text() == text)
    }
}

/// What a mail client does with a folder (RFC 6154 §2, RFC 8457).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpecialUse {
    All,
    Archive,
    Drafts,
    Flagged,
    Important,
    Junk,
    Sent,
    Trash,
}

impl SpecialUse {
    const ALL: [Self; 8] = [
        Self::All,
        Self::Archive,
        Self::Drafts,
        Self::Flagged,
        Self::Important,
        Self::Junk,
        Self::Sent,
        Self::Trash,
    ];

    /// As it goes over the wire: in lower case, and in IMAP with a backslash before it.
    pub const fn text(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Archive => "archive",
            Self::Drafts => "drafts",
            Self::Flagged => "flagged",
            Self::Important => "important",
            Self::Junk => "junk",
            Self::Sent => "sent",
            Self::Trash => "trash",
        }
    }

    /// The use that is written so.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|special_use| special_use.text() == text)
    }
}

/// The number of a choice in a record: its place in `all`, from 1; 0 stands for none.
fn number_of<T: PartialEq>(all: &[T], one: &T) -> u8 {
    all.iter().position(|other| other == one).and_then(|place| u8::try_from(place + 1).ok()).unwrap_or(0)
}

/// The choice of a number. `None`: of a later version.
fn choice<T: Copy>(all: &[T], number: u8) -> Option<Option<T>> {
    let Some(place) = usize::from(number).checked_sub(1) else { return Some(None) };
    all.get(place).copied().map(Some)
}

/// What a folder is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FolderRecord {
    pub number: u32,
    /// As it was written by the one who made it.
    pub name: String,
    /// Another one for a folder that is made again under an old name, as IMAP wants it (RFC 3501 §2.3.1.1).
    pub uid_validity: u32,
    /// The columns as a view's definition has them: a JSON array.
    pub columns: String,
    pub kind: FolderKind,
    pub special_use: Option<SpecialUse>,
    /// The time of the store, by its restores, that `uid_validity` is of: a later one makes another of it.
    pub validity_epoch: u64,
    /// What clients keep with it: properties of WebDAV, metadata of IMAP (RFC 5464).
    pub properties: Vec<u8>,
    /// For how many days it keeps its documents, 0 for ever; `None`: it does not say.
    pub keep_days: Option<u32>,
}

impl FolderRecord {
    pub fn encode(&self) -> Vec<u8> {
        let bytes = self.name.len() + self.columns.len() + self.properties.len() + 32;
        let mut out = begin(FOLDER_VERSION, bytes);
        put_number(&mut out, u64::from(self.number));
        put_bytes(&mut out, self.name.as_bytes());
        put_number(&mut out, u64::from(self.uid_validity));
        put_bytes(&mut out, self.columns.as_bytes());
        out.push(number_of(&FolderKind::ALL, &self.kind));
        out.push(self.special_use.map_or(0, |special_use| number_of(&SpecialUse::ALL, &special_use)));
        put_number(&mut out, self.validity_epoch);
        put_bytes(&mut out, &self.properties);
        // Older versions do not look behind the properties.
        if let Some(days) = self.keep_days {
            put_number(&mut out, u64::from(days));
        }
        out
    }

    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (version, mut input) = open_folder(bytes)?;
        let mut record = Self {
            number: input.number()?.try_into().ok()?,
            name: input.text()?.to_owned(),
            uid_validity: input.number()?.try_into().ok()?,
            columns: input.text()?.to_owned(),
            ..Self::default()
        };
        if version == FOLDER_VERSION {
            record.kind = choice(&FolderKind::ALL, input.byte()?)??;
            record.special_use = choice(&SpecialUse::ALL, input.byte()?)?;
            record.validity_epoch = input.number()?;
            record.properties = input.bytes()?.to_vec();
            if !input.rest().is_empty() {
                record.keep_days = Some(input.number()?.try_into().ok()?);
            }
        }
        Some(record)
    }
}

/// What changes of a folder as documents come and go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FolderState {
    /// The uid of the next document that is added.
    pub next_uid: u64,
    /// Documents that are in it.
    pub total: u64,
    /// The last change of what is in it.
    pub change_number: u64,
    /// Of those that are in it, the ones with [`DELETED`], which a mail client has marked to be expunged.
    pub deleted: u64,
    /// What its messages are together, in the form that mail clients fetch.
    pub bytes: u64,
    /// What those with [`DELETED`] are of it.
    pub deleted_bytes: u64,
    /// Documents that a mail client is shown, where that is not all.
    pub presented: u64,
    /// The last change of somebody's flags.
    pub flags_change: u64,
    /// The first uid that no mail client was shown: what has one from here on is recent (RFC 3501 §2.3.2).
    pub announced_uid: u64,
    /// Tombstones of changes up to this one were purged.
    pub left_to: u64,
}

impl FolderState {
    pub const NEW: Self = Self {
        next_uid: 1,
        total: 0,
        change_number: 0,
        deleted: 0,
        bytes: 0,
        deleted_bytes: 0,
        presented: 0,
        flags_change: 0,
        announced_uid: 1,
        left_to: 0,
    };

    pub fn encode(self) -> Vec<u8> {
        let mut out = begin(FOLDER_VERSION, 32);
        for number in [
            self.next_uid,
            self.total,
            self.change_number,
            self.deleted,
            self.bytes,
            self.deleted_bytes,
            self.presented,
            self.flags_change,
            self.announced_uid,
            self.left_to,
        ] {
            put_number(&mut out, number);
        }
        out
    }

    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (version, mut input) = open_folder(bytes)?;
        let mut state = Self {
            next_uid: input.number()?,
            total: input.number()?,
            change_number: input.number()?,
            ..Self::NEW
        };
        state.presented = state.total;
        if version == FOLDER_VERSION {
            for number in [
                &mut state.deleted,
                &mut state.bytes,
                &mut state.deleted_bytes,
                &mut state.presented,
                &mut state.flags_change,
                &mut state.announced_uid,
                &mut state.left_to,
            ] {
                *number = input.number()?;
            }
        }
        Some(state)
    }

    /// A document with these facts is in it from now on.
    pub(crate) const fn count_in(&mut self, is_deleted: bool, bytes: u64) {
        self.total = self.total.saturating_add(1);
        self.presented = self.presented.saturating_add(1);
        self.bytes = self.bytes.saturating_add(bytes);
        if is_deleted {
            self.count_deleted(bytes);
        }
    }

    /// A document with these facts has left it.
    pub(crate) const fn count_out(&mut self, is_deleted: bool, bytes: u64) {
        self.total = self.total.saturating_sub(1);
        self.presented = self.presented.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
        if is_deleted {
            self.count_undeleted(bytes);
        }
    }

    /// A document that is in it has [`DELETED`] from now on.
    pub(crate) const fn count_deleted(&mut self, bytes: u64) {
        self.deleted = self.deleted.saturating_add(1);
        self.deleted_bytes = self.deleted_bytes.saturating_add(bytes);
    }

    /// A document that is in it has no [`DELETED`] any more.
    pub(crate) const fn count_undeleted(&mut self, bytes: u64) {
        self.deleted = self.deleted.saturating_sub(1);
        self.deleted_bytes = self.deleted_bytes.saturating_sub(bytes);
    }
}

/// In [`Membership::flags`] and [`Member::flags`]: marked to be expunged (`\Deleted`, RFC 9051 §2.3.2).
pub const DELETED: u16 = 1;
/// In [`Member::flags`]: `\Answered`.
pub const ANSWERED: u16 = 1 << 1;
/// In [`Member::flags`]: `\Flagged`.
pub const FLAGGED: u16 = 1 << 2;
/// In [`Member::flags`]: `\Draft`.
pub const DRAFT: u16 = 1 << 3;

/// That a document is in a folder, found by the document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Membership {
    pub uid: u64,
    /// The change of it that the folder's feed has.
    pub change_number: u64,
    /// The change that put it there.
    pub added_change: u64,
    /// What holds in this folder alone: [`DELETED`].
    pub flags: u16,
}

impl Membership {
    pub const fn is_deleted(self) -> bool {
        self.flags & DELETED != 0
    }

    pub fn encode(self) -> Vec<u8> {
        let mut out = begin(FOLDER_VERSION, 20);
        for number in [self.uid, self.change_number, self.added_change, u64::from(self.flags)] {
            put_number(&mut out, number);
        }
        out
    }

    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (version, mut input) = open_folder(bytes)?;
        let (uid, change_number) = (input.number()?, input.number()?);
        let (added_change, flags) = match version {
            FOLDER_VERSION => (input.number()?, input.number()?.try_into().ok()?),
            _ => (change_number, 0),
        };
        Some(Self { uid, change_number, added_change, flags })
    }
}

/// What a folder says of a document's content, so that a mail client learns it from the folder alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemberFacts {
    /// Of its source in the form that mail clients fetch, lines ending in CR LF; 0: not known.
    pub bytes: u64,
    /// IMAP's internal date, in milliseconds since 1970; 0: not known.
    pub internal_ms: i64,
    /// Of the zone that it is shown in.
    pub zone_minutes: i16,
    /// Of its source.
    pub content: Option<Digest>,
}

/// That a document is in a folder, found by the folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Member {
    pub change_number: u64,
    /// When it was put there, in milliseconds since 1970.
    pub added_ms: u64,
    /// The change that put it there.
    pub added_change: u64,
    /// [`DELETED`], [`ANSWERED`], [`FLAGGED`], [`DRAFT`].
    pub flags: u16,
    /// Keywords by their numbers in the database, ascending.
    pub keywords: Vec<u16>,
    pub facts: MemberFacts,
    pub id: String,
}

impl Member {
    pub const fn is_deleted(&self) -> bool {
        self.flags & DELETED != 0
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut out = begin(FOLDER_VERSION, self.id.len() + self.keywords.len() * 3 + 72);
        for number in [self.change_number, self.added_ms, self.added_change, u64::from(self.flags)] {
            put_number(&mut out, number);
        }
        put_number(&mut out, self.keywords.len() as u64);
        self.keywords.iter().for_each(|keyword| put_number(&mut out, u64::from(*keyword)));
        let MemberFacts { bytes, internal_ms, zone_minutes, content } = &self.facts;
        put_number(&mut out, *bytes);
        put_signed(&mut out, *internal_ms);
        put_signed(&mut out, i64::from(*zone_minutes));
        put_bytes(&mut out, content.as_ref().map_or(&[], |digest| digest.as_slice()));
        out.extend_from_slice(self.id.as_bytes());
        out
    }

    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (version, mut input) = open_folder(bytes)?;
        let mut member =
            Self { change_number: input.number()?, added_ms: input.number()?, ..Self::default() };
        member.added_change = member.change_number;
        if version == FOLDER_VERSION {
            member.added_change = input.number()?;
            member.flags = input.number()?.try_into().ok()?;
            for _ in 0..input.number()? {
                member.keywords.push(input.number()?.try_into().ok()?);
            }
            member.facts = MemberFacts {
                bytes: input.number()?,
                internal_ms: signed(&mut input)?,
                zone_minutes: signed(&mut input)?.try_into().ok()?,
                content: match input.bytes()? {
                    [] => None,
                    digest => Some(digest.try_into().ok()?),
                },
            };
        }
        std::str::from_utf8(input.rest()).ok()?.clone_into(&mut member.id);
        Some(member)
    }
}

impl Member {
    /// The flags and keywords of a record alone, for those who read many.
    pub fn decode_flags(bytes: &[u8]) -> Option<(u16, Vec<u16>)> {
        let (version, mut input) = open_folder(bytes)?;
        if version != FOLDER_VERSION {
            return Some((0, Vec::new()));
        }
        // The numbers of changes and the time stand before them.
        for _ in 0..3 {
            input.number()?;
        }
        let flags = input.number()?.try_into().ok()?;
        let mut keywords = Vec::new();
        for _ in 0..input.number()? {
            keywords.push(input.number()?.try_into().ok()?);
        }
        Some((flags, keywords))
    }
}

/// What happened to a document in a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberChangeKind {
    /// It was put there.
    Came,
    /// It was taken out. The tombstone stays.
    Left,
    /// Its flags are others.
    Flags,
    /// Something else of it was edited.
    Content,
}

impl MemberChangeKind {
    /// By their codes; the first two are as formats 1 and 2 wrote them.
    const ALL: [Self; 4] = [Self::Came, Self::Left, Self::Flags, Self::Content];
}

/// The last that happened to a document in a folder: one record a uid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberChange {
    pub uid: u64,
    pub kind: MemberChangeKind,
    pub id: String,
}

impl MemberChange {
    /// Whether the document is not there any more.
    pub fn has_left(&self) -> bool {
        self.kind == MemberChangeKind::Left
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut out = begin(FOLDER_VERSION, self.id.len() + 12);
        out.push(number_of(&MemberChangeKind::ALL, &self.kind).saturating_sub(1));
        put_number(&mut out, self.uid);
        out.extend_from_slice(self.id.as_bytes());
        out
    }

    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (_, mut input) = open_folder(bytes)?;
        Some(Self {
            kind: MemberChangeKind::ALL.get(usize::from(input.byte()?)).copied()?,
            uid: input.number()?,
            id: std::str::from_utf8(input.rest()).ok()?.to_owned(),
        })
    }
}

/// Whether a person has read a document. One that says unread stays, so that the person's other clients learn
/// of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    pub read: bool,
    /// The change that made it so.
    pub change_number: u64,
}

impl Mark {
    pub fn encode(self) -> Vec<u8> {
        let mut out = begin(VERSION, 12);
        out.push(if self.read { READ } else { 0 });
        put_number(&mut out, self.change_number);
        out
    }

    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut input = open(bytes)?;
        Some(Self { read: input.byte()? & READ != 0, change_number: input.number()? })
    }
}

/// That a person's mark changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkChange {
    pub read: bool,
    pub id: String,
}

impl MarkChange {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = begin(VERSION, self.id.len() + 1);
        out.push(if self.read { READ } else { 0 });
        out.extend_from_slice(self.id.as_bytes());
        out
    }

    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut input = open(bytes)?;
        let read = input.byte()? & READ != 0;
        Some(Self { read, id: std::str::from_utf8(input.rest()).ok()?.to_owned() })
    }
}

/// How many documents a person has read: what is there less these is unread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadCounts {
    pub database: u64,
    /// By the folder's number; one that was dropped may be left.
    pub folders: BTreeMap<u32, u64>,
}

impl ReadCounts {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = begin(VERSION, 16 + self.folders.len() * 8);
        put_number(&mut out, self.database);
        for (folder, count) in &self.folders {
            put_number(&mut out, u64::from(*folder));
            put_number(&mut out, *count);
        }
        out
    }

    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut input = open(bytes)?;
        let mut counts = Self { database: input.number()?, folders: BTreeMap::new() };
        while !input.rest().is_empty() {
            counts.folders.insert(input.number()?.try_into().ok()?, input.number()?);
        }
        Some(counts)
    }

    /// Counts a document that became read, or is so no more, in the database.
    pub const fn count(&mut self, read: bool) {
        count(&mut self.database, read);
    }

    /// The same in a folder.
    pub fn count_in(&mut self, folder: u32, read: bool) {
        let counted = self.folders.entry(folder).or_default();
        count(counted, read);
        if *counted == 0 {
            self.folders.remove(&folder);
        }
    }
}

const fn count(counted: &mut u64, more: bool) {
    *counted = if more { counted.saturating_add(1) } else { counted.saturating_sub(1) };
}

/// How many persons have a mark on a document.
pub fn encode_count(count: u64) -> Vec<u8> {
    let mut out = begin(VERSION, 5);
    put_number(&mut out, count);
    out
}

/// `None`: damaged.
pub fn decode_count(bytes: &[u8]) -> Option<u64> {
    open(bytes)?.number()
}
