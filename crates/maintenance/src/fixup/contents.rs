//! Contents: that those which documents refer to are there with their bytes, and that each reference is one that a
//! document has. References of all databases lie together, by the content; one pass over them serves every database
//! that is checked at the same moment of the store.

use std::collections::HashMap;

use scrinium_contents::hex;
use scrinium_contents::record::{Data, ObjectPlace, Placement, Record};
use scrinium_database::head::Head;
use scrinium_database::hold::{held_contents, held_name_of};
use scrinium_database::keys::{self, Digest};
use scrinium_database::{DatabaseError, Result};
use scrinium_objects::ObjectError;
use scrinium_store::{Direction, Family, KeyRange, ScanOptions, Snapshot};
use scrinium_views::tally::Tally;

use super::check::{Check, Watch};
use super::documents::Documents;
use super::report::{FindingKind, FindingOutcome};

/// The references of each database, as tallies.
pub(super) type References = HashMap<u32, Tally>;

/// Goes through all references once.
pub(super) fn tally(snapshot: &Snapshot, watch: &mut Watch) -> Result<References> {
    let (from, to) = keys::all_references();
    let range = KeyRange { from: &from, to: Some(&to) };
    let mut cursor = snapshot.cursor_with(Family::Point, range, ScanOptions::long(Direction::Forward));
    let mut references = References::new();
    // Where a part of them cannot be read, the databases' own check finds what is missing.
    while let Ok(Some((key, _))) = cursor.next() {
        watch.tick()?;
        if let Some((digest, number, id)) = keys::reference_of(key) {
            references.entry(number).or_default().add(&[&digest, id.as_bytes()]);
        }
    }
    Ok(references)
}

/// Holds the references against the documents.
pub(super) fn check_references(
    check: &mut Check<'_>,
    documents: &Documents,
    references: &References,
) -> Result<()> {
    let own = references.get(&check.number()).copied().unwrap_or_default();
    if own == documents.references {
        return Ok(());
    }
    let number = check.number();
    check.each(Family::Point, &keys::all_references(), |check, key, _| {
        let Some((digest, _, id)) = keys::reference_of(key).filter(|(_, of, _)| *of == number) else {
            return Ok(());
        };
        let refers = match held_name_of(id) {
            Some((id, revision)) => {
                let held = check.get(Family::Scan, &keys::held(number, id, revision))?;
                held.is_some_and(|held| held_contents(id, &held).contains(&digest))
            }
            None => {
                let head = check.get(Family::Point, &keys::head(number, id))?;
                let head = head.and_then(|head| Head::decode(&head));
                head.is_some_and(|head| head.contents.binary_search(&digest).is_ok())
            }
        };
        if !refers && !check.mends.is_full() && check.mends.references.insert((digest, id.to_owned())) {
            let detail = format!("content {} names it, and it does not refer to that", hex(&digest));
            check.repairs(FindingKind::ReferenceStray, id, detail);
        }
        Ok(())
    })?;
    check.each(Family::Point, &keys::head_range(number), |check, key, value| {
        let (Some(id), Some(head)) = (keys::id_of(key), Head::decode(value)) else { return Ok(()) };
        for digest in &head.contents {
            if check.get(Family::Point, &keys::reference(digest, number, id))?.is_none() {
                let detail = format!("that it refers to content {} is not noted there", hex(digest));
                check.mend_document(FindingKind::ReferenceMissing, id, &detail, FindingOutcome::Repaired);
            }
        }
        Ok(())
    })
}

/// Looks whether the contents that the documents of the database refer to are there; with `bytes` reads them, and
/// holds them against their digests. Each content once.
pub(super) fn check_contents(check: &mut Check<'_>, bytes: bool) -> Result<()> {
    let number = check.number();
    // Those of one content lie side by side.
    let mut of: Option<(Digest, Vec<String>)> = None;
    check.each(Family::Point, &keys::all_references(), |check, key, _| {
        let Some((digest, _, id)) = keys::reference_of(key).filter(|(_, of, _)| *of == number) else {
            return Ok(());
        };
        match &mut of {
            Some((before, ids)) if *before == digest => {
                if ids.len() < TOLD_MAX {
                    ids.push(id.to_owned());
                }
            }
            _ => {
                if let Some((digest, ids)) = of.replace((digest, vec![id.to_owned()])) {
                    check_content(check, &digest, &ids, bytes)?;
                }
            }
        }
        Ok(())
    })?;
    match of {
        Some((digest, ids)) => check_content(check, &digest, &ids, bytes),
        None => Ok(()),
    }
}

/// At most this many of the documents that refer to a damaged content are named.
const TOLD_MAX: usize = 20;

fn check_content(check: &mut Check<'_>, digest: &Digest, ids: &[String], bytes: bool) -> Result<()> {
    check.watch.tell()?;
    let (kind, wrong) = match state_of(check, digest, bytes)? {
        ContentState::Sound => return Ok(()),
        ContentState::Missing => (FindingKind::ContentMissing, "is missing".to_owned()),
        ContentState::MissingObject(why) => (FindingKind::ContentMissing, format!("cannot be read: {why}")),
        ContentState::Damaged => (FindingKind::ContentDamaged, "is damaged".to_owned()),
        ContentState::DamagedObject(why) => (FindingKind::ContentDamaged, format!("cannot be read: {why}")),
        ContentState::Unchecked(why) => {
            let detail = format!("content {} was not looked at: {why}", hex(digest));
            let (kind, outcome) = (FindingKind::ContentUnchecked, FindingOutcome::Left);
            ids.iter().for_each(|id| check.note(kind, id.clone(), detail.clone(), outcome));
            return Ok(());
        }
    };
    let outcome = if kind == FindingKind::ContentDamaged {
        check.mends.contents.insert(*digest);
        FindingOutcome::SetAside
    } else {
        FindingOutcome::Left
    };
    let detail = format!(
        "content {} {wrong}; bring the attachment or field in again, from a backup or another server",
        hex(digest)
    );
    ids.iter().for_each(|id| check.note(kind, id.clone(), detail.clone(), outcome));
    Ok(())
}

enum ContentState {
    Sound,
    Missing,
    Damaged,
    /// With what is wrong.
    MissingObject(String),
    DamagedObject(String),
    Unchecked(String),
}

fn state_of(check: &mut Check<'_>, digest: &Digest, bytes: bool) -> Result<ContentState> {
    // What the store cannot read is as good as damaged.
    let Ok(stored) = check.get(Family::Blob, &keys::content(digest)) else {
        return Ok(ContentState::Damaged);
    };
    let Some(stored) = stored else { return Ok(ContentState::Missing) };
    let Some(record) = Record::decode(&stored) else { return Ok(ContentState::Damaged) };
    if !bytes {
        return Ok(ContentState::Sound);
    }
    if let Placement::Object(object) = &record.placement {
        return object_state_of(check, digest, record.length, object);
    }
    check.watch.contents += 1;
    check.watch.content_bytes += record.length;
    let mut hasher = blake3::Hasher::new();
    let read = match &record.placement {
        Placement::Inline(data) => data.open(record.length).map(|bytes| {
            hasher.update(&bytes);
            bytes.len() as u64
        }),
        Placement::Upload { upload, piece_bytes } => {
            read_pieces(check, *upload, *piece_bytes, record.length, &mut hasher)?
        }
        Placement::Object(_) => None,
    };
    let is_whole = read == Some(record.length) && hasher.finalize().as_bytes() == digest;
    Ok(if is_whole { ContentState::Sound } else { ContentState::Damaged })
}

fn object_state_of(
    check: &mut Check<'_>,
    digest: &Digest,
    length: u64,
    object: &ObjectPlace,
) -> Result<ContentState> {
    let places = check.database.context.contents.places();
    let (address, stored) = places.locate(digest, length, object)?;
    let objects = places.objects();
    let mut found = objects.check(&address, &stored).map_err(Ended::Object);
    if found.is_ok() && check.reads_objects {
        check.watch.contents += 1;
        check.watch.content_bytes += length;
        // Each piece is checked as it is read.
        found = objects.reader(&address, stored).each(|_| match check.watch.tick() {
            Ok(()) => Ok(true),
            Err(error) => Err(Ended::Stopped(error)),
        });
    }
    match found {
        Ok(()) => Ok(ContentState::Sound),
        Err(Ended::Stopped(error)) => Err(error),
        Err(Ended::Object(error @ ObjectError::Missing { .. })) => {
            Ok(ContentState::MissingObject(error.to_string()))
        }
        Err(Ended::Object(error @ ObjectError::Damaged { .. })) => {
            Ok(ContentState::DamagedObject(error.to_string()))
        }
        Err(Ended::Object(error)) => Ok(ContentState::Unchecked(error.to_string())),
    }
}

/// Why an object was not read to its end.
enum Ended {
    Object(ObjectError),
    Stopped(DatabaseError),
}

impl From<ObjectError> for Ended {
    fn from(error: ObjectError) -> Self {
        Self::Object(error)
    }
}

/// Reads the pieces of an upload. `None`: one is missing or damaged.
fn read_pieces(
    check: &mut Check<'_>,
    upload: u64,
    piece_bytes: u64,
    length: u64,
    hasher: &mut blake3::Hasher,
) -> Result<Option<u64>> {
    let mut read = 0;
    let mut number = 0;
    while read < length {
        check.watch.tick()?;
        let stored = check.get(Family::Blob, &keys::chunk(upload, number));
        let piece = stored.ok().flatten().and_then(|stored| Data::decode(&stored)?.open(piece_bytes));
        let Some(piece) = piece.filter(|piece| !piece.is_empty()) else { return Ok(None) };
        hasher.update(&piece);
        read += piece.len() as u64;
        number += 1;
    }
    Ok(Some(read))
}

/// Contents that no document refers to and that the collector does not know of, by a walk through all of them.
///
/// # Errors
/// What the store reports.
pub(super) fn unused(snapshot: &Snapshot, watch: &mut Watch) -> Result<Vec<Digest>> {
    let options = ScanOptions::long(Direction::Forward);
    let (from, to) = keys::all_references();
    let mut references =
        snapshot.cursor_with(Family::Point, KeyRange { from: &from, to: Some(&to) }, options);
    let range = KeyRange { from: b"c", to: Some(b"d") };
    let mut contents =
        snapshot.cursor_with(Family::Blob, range, ScanOptions { read_ahead_bytes: 0, ..options });
    let mut unused = Vec::new();
    let mut referred = next_digest(&mut references)?;
    // A part that cannot be read is named where the databases are checked.
    while let Ok(Some((key, _))) = contents.next() {
        watch.tick()?;
        let Some(digest) = key.get(1..33).and_then(|digest| Digest::try_from(digest).ok()) else { continue };
        while referred.is_some_and(|referred| referred < digest) {
            referred = next_digest(&mut references)?;
        }
        if referred != Some(digest) && !snapshot.contains(Family::Point, &keys::collectable(&digest))? {
            unused.push(digest);
            if unused.len() >= UNUSED_MAX {
                break;
            }
        }
    }
    Ok(unused)
}

/// At most this many are taken up by one fixup.
const UNUSED_MAX: usize = 100_000;

fn next_digest(references: &mut scrinium_store::Cursor<'_>) -> Result<Option<Digest>> {
    Ok(references.next()?.and_then(|(key, _)| keys::digest_of(key)))
}
