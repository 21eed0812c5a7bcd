//! Where everything of a database is stored: one function for each kind of key.
//!
//! Every key of a database begins with its number (4 bytes, big endian), which is never given to
//! another one. Number `u32::MAX` stands for what all databases share.
//!
//! | family | key | value |
//! |---|---|---|
//! | Meta | `10` name | number of the database, and the name of its volume; in the first store |
//! | Meta | `11` number | [`crate::header::Header`] |
//! | Meta | `12` | next number |
//! | Meta | `13` number | a dropped database whose content is still being removed |
//! | Meta | `14` | uuid of the server |
//! | Meta | `15` upload | an upload that no document refers to yet |
//! | Meta | `16` number | `_security`, as JSON |
//! | Meta | `18` number | [`crate::access::list::AccessList`], as JSON |
//! | Meta | `19` number | [`crate::compaction_record::CompactionRecord`] |
//! | Meta | `1a` number | [`crate::properties::Properties`], as JSON; absent where nothing was set |
//! | Meta | `1b` number | nothing, ever: deleting it is a commit that changes nothing |
//! | Meta | `1c` name | identity of the store that is the volume of this name; in the first store |
//! | Meta | `1d` | the name of the volume that the store is; absent in the first store |
//! | Meta | `1e` | which log the first store had when the volume was last used with it; absent in the first store |
//! | Meta | `1f` number | whether some leaf names somebody in `Readers`, [`crate::access::restriction`] |
//! | Meta | `20` place | where objects are, `scrinium_contents`, as JSON |
//! | Meta | `21` | how far a move of contents had come, `bookmark` of the crate `contents`, as JSON |
//! | Meta | `23` number | how many purged documents are remembered, 8 bytes; absent where nothing was set |
//! | Meta | `24` step | a step of an upgrade that was done; in the first store |
//! | Meta | `25` number | the legal holds, [`crate::hold::LegalHold`], as JSON; absent where there are none |
//! | Meta | `26` number | nothing; there where deleted messages can be had back, [`crate::undelete`] |
//! | Meta | `17` number folder | a dropped folder whose memberships are still being removed |
//! | Point | number `h` id | [`crate::head::Head`] |
//! | Point | number `l` id | a `_local` document |
//! | Point | number `L` length person id | a `_local` document of one person, [`crate::local`] |
//! | Point | number `w` id | when a `_local` document of all was written, in milliseconds since 1970 |
//! | Point | number `t` task | the progress of a task of the server, as it keeps it |
//! | Point | number `F` name in lower case | [`crate::folder::record::FolderRecord`] |
//! | Point | number `G` folder | [`crate::folder::record::FolderState`] |
//! | Point | number `m` length id folder | [`crate::folder::record::Membership`] |
//! | Point | number `M` id | what was found out about the document's source, [`crate::outline`]; derived |
//! | Point | number `R` id | what mail clients see of a document without a source, as `rendering.rs` keeps it |
//! | Point | number `d` length id person | [`crate::folder::record::Mark`]: what the person has read |
//! | Point | number `S` id | what only the server may see of the document, [`crate::guard::Secret`] |
//! | Point | number `p` person | [`crate::folder::record::ReadCounts`] |
//! | Point | `u32::MAX` `r` digest number id | the document refers to the content |
//! | Point | `u32::MAX` `g` digest | the content may have lost its last reference |
//! | Point | `u32::MAX` `o` digest | the object of a content, [`scrinium_contents::object::ObjectState`] |
//! | Point | `u32::MAX` `q` time digest upload | the number of the place of an object that is to be looked at, and may have to go |
//! | Scan | number `b` id | the winning leaf, [`crate::leaf::Leaf`] |
//! | Scan | number `c` length id revision | a losing leaf |
//! | Scan | number `y` length id revision | a leaf that was replaced while the database was held, [`crate::hold`] |
//! | Scan | number `e` length id revision | the body of an earlier revision, [`crate::history`] |
//! | Scan | number `u` folder uid | [`crate::folder::record::Member`] |
//! | Scan | number `z` time length id revision | a message that was deleted, and can be had back, [`crate::undelete`] |
//! | Point | number `z` | how many of these there are, and their bytes; absent where there are none |
//! | Point | number `k` keyword | the keyword of this number, as it was first written |
//! | Point | number `K` keyword in lower case | its number, 2 bytes |
//! | Scan | `u32::MAX` `x` number order | `scrinium_maintenance`: a record that was set aside |
//! | Churn | number `s` change number | [`crate::head::ChangeRecord`] |
//! | Churn | number `f` folder change number | [`crate::folder::record::MemberChange`] |
//! | Churn | number `p` length person change number | [`crate::folder::record::MarkChange`] |
//! | Churn | number `x` purge number | a document that was purged, [`crate::compaction_record::PurgedDocument`] |
//! | Blob | `c` digest | [`scrinium_contents::record`] |
//! | Blob | `u` upload chunk | a piece of a large content |

#![allow(missing_docs, reason = "the names say it")]

use scrinium_document::Revision;
use scrinium_store::Family;

pub use scrinium_contents::keys::*;

/// The families that documents, folders and marks lie in.
pub const FAMILIES: [Family; 3] = [Family::Point, Family::Scan, Family::Churn];

/// The families of what is derived from them.
pub const DERIVED_FAMILIES: [Family; 3] = [Family::DerivedPoint, Family::DerivedScan, Family::DerivedChurn];

/// What a database may have in [`Family::Meta`] besides its header.
pub const APART: [fn(u32) -> Vec<u8>; 8] =
    [security, access_list, compaction, properties, restriction, purged_limit, legal_holds, keeps_deleted];

pub fn database_by_name(name: &str) -> Vec<u8> {
    meta(0x10, name.as_bytes())
}

/// The name in a key of [`database_by_name`].
pub fn name_of(key: &[u8]) -> Option<&str> {
    key.split_first().and_then(|(_, name)| std::str::from_utf8(name).ok())
}

pub const NEXT_NUMBER: &[u8] = &[0x12];

pub fn dropped(number: u32) -> Vec<u8> {
    meta(0x13, &number.to_be_bytes())
}

/// All keys of [`dropped`].
pub const DROPPED_RANGE: (&[u8], &[u8]) = (&[0x13], &[0x14]);

pub const SERVER_UUID: &[u8] = &[0x14];

pub fn security(number: u32) -> Vec<u8> {
    meta(0x16, &number.to_be_bytes())
}

pub fn access_list(number: u32) -> Vec<u8> {
    meta(0x18, &number.to_be_bytes())
}

pub fn restriction(number: u32) -> Vec<u8> {
    meta(0x1f, &number.to_be_bytes())
}

pub fn compaction(number: u32) -> Vec<u8> {
    meta(0x19, &number.to_be_bytes())
}

/// How many purged documents are remembered.
pub fn purged_limit(number: u32) -> Vec<u8> {
    meta(0x23, &number.to_be_bytes())
}

/// The legal holds of a database.
pub fn legal_holds(number: u32) -> Vec<u8> {
    meta(0x25, &number.to_be_bytes())
}

/// All keys of [`legal_holds`].
pub const LEGAL_HOLDS_RANGE: (&[u8], &[u8]) = (&[0x25], &[0x26]);

/// That a database has deleted messages that can be had back.
pub fn keeps_deleted(number: u32) -> Vec<u8> {
    meta(0x26, &number.to_be_bytes())
}

/// All keys of [`keeps_deleted`].
pub const KEEPS_DELETED_RANGE: (&[u8], &[u8]) = (&[0x26], &[0x27]);

/// A leaf that was replaced while its database was held.
pub fn held(number: u32, id: &str, revision: &str) -> Vec<u8> {
    with_number(number, b'y', &with_length(id, revision.as_bytes()))
}

/// All keys of [`held`].
pub fn held_range(number: u32) -> (Vec<u8>, Vec<u8>) {
    kind_range(number, b'y')
}

/// The id and the revision in a key of [`held`].
pub fn held_of(key: &[u8]) -> Option<(&str, &str)> {
    let (id, revision) = text_and_rest(key)?;
    Some((id, std::str::from_utf8(revision).ok()?))
}

/// A document that was purged, counted from 1.
pub fn purged(number: u32, purge_number: u64) -> Vec<u8> {
    with_number(number, b'x', &purge_number.to_be_bytes())
}

/// All keys of [`purged`], in order.
pub fn purged_range(number: u32) -> (Vec<u8>, Vec<u8>) {
    (with_number(number, b'x', &[]), with_number(number, b'x' + 1, &[]))
}

/// What only the server may see of a document.
pub fn secret(number: u32, id: &str) -> Vec<u8> {
    with_number(number, b'S', id.as_bytes())
}

/// The folders of a database.
pub fn folder_range(number: u32) -> (Vec<u8>, Vec<u8>) {
    (with_number(number, b'F', &[]), with_number(number, b'F' + 1, &[]))
}

pub fn properties(number: u32) -> Vec<u8> {
    meta(0x1a, &number.to_be_bytes())
}

/// A key that is never there.
pub fn nothing(number: u32) -> Vec<u8> {
    meta(0x1b, &number.to_be_bytes())
}

pub fn volume(name: &str) -> Vec<u8> {
    meta(0x1c, name.as_bytes())
}

pub const OWN_VOLUME: &[u8] = &[0x1d];

pub const PAIRED: &[u8] = &[0x1e];

/// A step of an upgrade that was done.
pub fn step_done(step: &str) -> Vec<u8> {
    meta(0x24, step.as_bytes())
}

/// All keys that begin with the number of a database, in any family but Meta.
pub fn database_range(number: u32) -> ([u8; 4], [u8; 4]) {
    (number.to_be_bytes(), number.saturating_add(1).to_be_bytes())
}

pub fn head(number: u32, id: &str) -> Vec<u8> {
    with_number(number, b'h', id.as_bytes())
}

/// All heads of a database, in the order of the ids.
pub fn head_range(number: u32) -> (Vec<u8>, Vec<u8>) {
    (with_number(number, b'h', &[]), with_number(number, b'h' + 1, &[]))
}

pub fn local(number: u32, id: &str) -> Vec<u8> {
    with_number(number, b'l', id.as_bytes())
}

pub fn local_range(number: u32) -> (Vec<u8>, Vec<u8>) {
    (with_number(number, b'l', &[]), with_number(number, b'l' + 1, &[]))
}

/// What the `_local` documents of one person begin with; their ids follow.
pub fn own_locals(number: u32, person: &str) -> Vec<u8> {
    with_number(number, b'L', &with_length(person, &[]))
}

/// Those of all persons.
pub fn own_locals_range(number: u32) -> (Vec<u8>, Vec<u8>) {
    (with_number(number, b'L', &[]), with_number(number, b'L' + 1, &[]))
}

/// The id in a key of [`local`], or in one that begins as [`own_locals`].
pub fn local_id_of(key: &[u8]) -> Option<&str> {
    let rest = key.get(5..)?;
    let id = match key.get(4)? {
        b'L' => {
            let (length, rest) = rest.split_first_chunk::<4>()?;
            rest.get(usize::try_from(u32::from_be_bytes(*length)).ok()?..)?
        }
        _ => rest,
    };
    std::str::from_utf8(id).ok()
}

/// When a `_local` document of all was written.
pub fn local_written(number: u32, id: &str) -> Vec<u8> {
    with_number(number, b'w', id.as_bytes())
}

/// The progress of a task of the server.
pub fn task_state(number: u32, task: &str) -> Vec<u8> {
    with_number(number, b't', task.as_bytes())
}

/// The id at the end of a key of [`head`], [`local`] or [`winner`].
pub fn id_of(key: &[u8]) -> Option<&str> {
    key.get(5..).and_then(|id| std::str::from_utf8(id).ok())
}

pub fn winner(number: u32, id: &str) -> Vec<u8> {
    with_number(number, b'b', id.as_bytes())
}

pub fn winner_range(number: u32) -> (Vec<u8>, Vec<u8>) {
    (with_number(number, b'b', &[]), with_number(number, b'b' + 1, &[]))
}

/// A text, with its length before it so that no text with what follows it reads as another one.
fn with_length(text: &str, follows: &[u8]) -> Vec<u8> {
    let mut rest = Vec::with_capacity(4 + text.len() + follows.len());
    rest.extend_from_slice(&u32::try_from(text.len()).unwrap_or(u32::MAX).to_be_bytes());
    rest.extend_from_slice(text.as_bytes());
    rest.extend_from_slice(follows);
    rest
}

pub fn loser(number: u32, id: &str, revision: &Revision) -> Vec<u8> {
    with_number(number, b'c', &with_length(id, revision.to_string().as_bytes()))
}

/// The document of a losing leaf, or of an earlier body, from its key.
pub fn id_of_loser(key: &[u8]) -> Option<&str> {
    let (length, rest) = key.get(5..)?.split_first_chunk()?;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
    std::str::from_utf8(rest.get(..length)?).ok()
}

pub fn loser_range(number: u32) -> (Vec<u8>, Vec<u8>) {
    (with_number(number, b'c', &[]), with_number(number, b'c' + 1, &[]))
}

/// What the losing leaves of a document begin with.
pub fn losers(number: u32, id: &str) -> Vec<u8> {
    with_number(number, b'c', &with_length(id, &[]))
}

/// The body of a revision that others have followed.
pub fn earlier(number: u32, id: &str, revision: &Revision) -> Vec<u8> {
    with_number(number, b'e', &with_length(id, revision.to_string().as_bytes()))
}

/// What the earlier bodies of a document begin with.
pub fn earlier_of(number: u32, id: &str) -> Vec<u8> {
    with_number(number, b'e', &with_length(id, &[]))
}

/// Those of all documents. A key of them names its document as that of a losing leaf does.
pub fn earlier_range(number: u32) -> (Vec<u8>, Vec<u8>) {
    (with_number(number, b'e', &[]), with_number(number, b'e' + 1, &[]))
}

/// A message that was deleted at this time.
pub fn deleted(number: u32, deleted_ms: u64, id: &str, revision: &str) -> Vec<u8> {
    let rest = [&deleted_ms.to_be_bytes()[..], &with_length(id, revision.as_bytes())].concat();
    with_number(number, b'z', &rest)
}

/// All keys of [`deleted`], the oldest first.
pub fn deleted_range(number: u32) -> (Vec<u8>, Vec<u8>) {
    kind_range(number, b'z')
}

/// The time, the id and the revision in a key of [`deleted`].
pub fn deleted_of(key: &[u8]) -> Option<(u64, &str, &str)> {
    let (deleted_ms, rest) = key.get(5..)?.split_first_chunk::<8>()?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let (id, revision) = rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
    let (id, revision) = (std::str::from_utf8(id).ok()?, std::str::from_utf8(revision).ok()?);
    Some((u64::from_be_bytes(*deleted_ms), id, revision))
}

/// How many messages of [`deleted`] there are.
pub fn deleted_sums(number: u32) -> Vec<u8> {
    with_number(number, b'z', &[])
}

pub fn change(number: u32, change_number: u64) -> Vec<u8> {
    with_number(number, b's', &change_number.to_be_bytes())
}

/// All changes of a database, in order.
pub fn change_range(number: u32) -> (Vec<u8>, Vec<u8>) {
    (with_number(number, b's', &[]), with_number(number, b's' + 1, &[]))
}

/// The change number at the end of a key of [`change`], [`member_change`] or [`mark_change`].
pub fn change_number_of(key: &[u8]) -> Option<u64> {
    key.last_chunk().copied().map(u64::from_be_bytes)
}

pub fn folder(number: u32, folded_name: &str) -> Vec<u8> {
    with_number(number, b'F', folded_name.as_bytes())
}

pub fn folder_state(number: u32, folder: u32) -> Vec<u8> {
    with_number(number, b'G', &folder.to_be_bytes())
}

pub fn dropped_folder(number: u32, folder: u32) -> Vec<u8> {
    meta(0x17, &[number.to_be_bytes(), folder.to_be_bytes()].concat())
}

/// All keys of [`dropped_folder`].
pub const DROPPED_FOLDER_RANGE: (&[u8], &[u8]) = (&[0x17], &[0x18]);

/// The numbers of the database and the folder in a key of [`dropped_folder`].
pub fn dropped_folder_of(key: &[u8]) -> Option<(u32, u32)> {
    let number = key.get(1..5)?.try_into().ok()?;
    Some((u32::from_be_bytes(number), folder_of(key)?))
}

pub fn membership(number: u32, id: &str, folder: u32) -> Vec<u8> {
    with_number(number, b'm', &with_length(id, &folder.to_be_bytes()))
}

/// What the memberships of a document begin with.
pub fn memberships(number: u32, id: &str) -> Vec<u8> {
    with_number(number, b'm', &with_length(id, &[]))
}

/// What was found out about a document's source.
pub fn outline(number: u32, id: &str) -> Vec<u8> {
    with_number(number, b'M', id.as_bytes())
}

/// What mail clients see of a document without a source.
pub fn rendering(number: u32, id: &str) -> Vec<u8> {
    with_number(number, b'R', id.as_bytes())
}

/// The folder at the end of a key of [`membership`].
pub fn folder_of(key: &[u8]) -> Option<u32> {
    key.last_chunk().copied().map(u32::from_be_bytes)
}

pub fn member(number: u32, folder: u32, uid: u64) -> Vec<u8> {
    let mut rest = [0; 12];
    let (first, last) = rest.split_at_mut(4);
    first.copy_from_slice(&folder.to_be_bytes());
    last.copy_from_slice(&uid.to_be_bytes());
    with_number(number, b'u', &rest)
}

/// A keyword, as it was first written.
pub fn keyword(number: u32, keyword: u16) -> Vec<u8> {
    with_number(number, b'k', &keyword.to_be_bytes())
}

/// The number of a keyword, given in lower case; of none, the last number that was given.
pub fn keyword_number(number: u32, folded: &str) -> Vec<u8> {
    with_number(number, b'K', folded.as_bytes())
}

/// What the keys of [`member`] of a folder begin with.
pub fn members(number: u32, folder: u32) -> Vec<u8> {
    with_number(number, b'u', &folder.to_be_bytes())
}

/// The uid at the end of a key of [`member`].
pub fn uid_of(key: &[u8]) -> Option<u64> {
    key.last_chunk().copied().map(u64::from_be_bytes)
}

pub fn member_change(number: u32, folder: u32, change_number: u64) -> Vec<u8> {
    let mut rest = [0; 12];
    let (first, last) = rest.split_at_mut(4);
    first.copy_from_slice(&folder.to_be_bytes());
    last.copy_from_slice(&change_number.to_be_bytes());
    with_number(number, b'f', &rest)
}

/// What the keys of [`member_change`] of a folder begin with.
pub fn member_changes(number: u32, folder: u32) -> Vec<u8> {
    with_number(number, b'f', &folder.to_be_bytes())
}

pub fn mark(number: u32, id: &str, person: &str) -> Vec<u8> {
    with_number(number, b'd', &with_length(id, person.as_bytes()))
}

/// What the marks of a document begin with.
pub fn marks(number: u32, id: &str) -> Vec<u8> {
    with_number(number, b'd', &with_length(id, &[]))
}

pub fn read_counts(number: u32, person: &str) -> Vec<u8> {
    with_number(number, b'p', person.as_bytes())
}

pub fn mark_change(number: u32, person: &str, change_number: u64) -> Vec<u8> {
    with_number(number, b'p', &with_length(person, &change_number.to_be_bytes()))
}

/// What the keys of [`mark_change`] of a person begin with.
pub fn mark_changes(number: u32, person: &str) -> Vec<u8> {
    with_number(number, b'p', &with_length(person, &[]))
}

/// A record of a database that was set aside, in the order of setting aside.
pub fn set_aside(number: u32, order: u64) -> Vec<u8> {
    let mut rest = [0; 12];
    let (first, last) = rest.split_at_mut(4);
    first.copy_from_slice(&number.to_be_bytes());
    last.copy_from_slice(&order.to_be_bytes());
    with_number(SHARED, b'x', &rest)
}

/// All records that were set aside, or those of one database.
pub fn set_aside_range(number: Option<u32>) -> (Vec<u8>, Vec<u8>) {
    let number = number.map(u32::to_be_bytes);
    let from = with_number(SHARED, b'x', number.as_ref().map_or(&[], |number| number.as_slice()));
    let to = successor(&from);
    (from, to)
}

/// The number and the order in a key of [`set_aside`].
pub fn set_aside_of(key: &[u8]) -> Option<(u32, u64)> {
    let number = key.get(5..9)?.try_into().ok()?;
    Some((u32::from_be_bytes(number), change_number_of(key)?))
}

/// The text before what follows it, in a key of [`loser`], [`membership`], [`mark`] or [`mark_change`], and that.
pub fn text_and_rest(key: &[u8]) -> Option<(&str, &[u8])> {
    let (length, rest) = key.get(5..)?.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
    let (text, rest) = rest.split_at_checked(length)?;
    Some((std::str::from_utf8(text).ok()?, rest))
}

/// All keys of a database of one kind, of those whose keys begin with its number.
pub fn kind_range(number: u32, kind: u8) -> (Vec<u8>, Vec<u8>) {
    (with_number(number, kind, &[]), with_number(number, kind + 1, &[]))
}
