//! REPORT sync-collection (RFC 6578): what changed since a token.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use http::{Response, StatusCode};
use scrinium_database::folder::record::MemberChangeKind;
use scrinium_dav::answer::Question;
use scrinium_dav::place::Place;
use scrinium_dav::token::SyncToken;
use scrinium_dav_wire::DAV;

use crate::collection::{Collection, Member};
use crate::document::former_names_of;
use crate::home::{Home, Shelf};
use crate::propfind::Answers;
use crate::refusal::{Refusal, Result};
use crate::service::{Asked, DavService};

/// Resources in one answer, unless the client wants fewer.
const RESOURCES_MAX: usize = 5_000;

/// The token of a collection at a change.
pub(crate) fn token(home: &Home, shelf: &Shelf, change: u64, listed_to: Option<u64>) -> SyncToken {
    let history = home.database.uuid().iter().map(|byte| format!("{byte:02x}")).collect();
    SyncToken { history, collection: (shelf.info.number, shelf.info.uid_validity), change, listed_to }
}

fn invalid_token() -> Refusal {
    Refusal::forbidden((DAV, "valid-sync-token"), "The token is not of this collection; begin without one.")
}

/// A part of what changed.
struct Piece {
    changed: Vec<Arc<Member>>,
    removed: Vec<String>,
    next: SyncToken,
    is_cut: bool,
}

impl DavService {
    /// The last change of a collection.
    pub(crate) fn reached(&self, home: &Home, shelf: &Shelf) -> Result<u64> {
        let snapshot = home.database.store().snapshot();
        let feed = home.database.folder_feed_at(&snapshot, shelf.info.number)?;
        Ok(feed.map_or(0, |feed| feed.last_change))
    }

    pub(crate) fn sync_collection(
        &self,
        asked: &Asked<'_>,
        (given, limit): (Option<&str>, Option<u64>),
        question: &Question,
    ) -> Result<Response<Bytes>> {
        let Place::Collection { area, person, collection } = &asked.place else {
            let reason = "Only collections have a feed of changes.";
            return Err(Refusal::forbidden((DAV, "supported-report"), reason));
        };
        let home = self.home(person, asked.identity)?;
        let shelf = home.shelf(*area, collection)?;
        let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(RESOURCES_MAX);
        let limit = limit.clamp(1, RESOURCES_MAX);
        let tracked = home.collection(self, &shelf);
        let since = match given {
            None => token(&home, &shelf, self.reached(&home, &shelf)?, Some(0)),
            Some(text) => self.checked(&home, &shelf, text)?,
        };
        let piece = match since.listed_to {
            Some(uid) => listed(&home, &tracked, since, uid, limit)?,
            None => changed(&home, &shelf, &tracked, since, limit)?,
        };
        let mut answers = Answers::new(asked, question);
        self.push_members(&mut answers, (&home, &shelf), &piece.changed)?;
        for name in &piece.removed {
            answers.push_status(home.member_place(&shelf, name).href(), StatusCode::NOT_FOUND.as_u16());
        }
        if piece.is_cut {
            // RFC 6578, section 3.6.
            let status = StatusCode::INSUFFICIENT_STORAGE.as_u16();
            answers.push_error(asked.place.href(), status, (DAV, "number-of-matches-within-limits"));
        }
        Ok(answers.finish(Some(&piece.next.text())))
    }

    /// A token that a client brings, if it is one of this collection, of its past, and still of use.
    fn checked(&self, home: &Home, shelf: &Shelf, text: &str) -> Result<SyncToken> {
        let given = SyncToken::parse(text).ok_or_else(invalid_token)?;
        let own = token(home, shelf, given.change, given.listed_to);
        let is_future = given.change > home.database.visible_change_number();
        // Before a purge it has not been told what left.
        let is_forgotten = given.change > 0
            && given.change < home.database.compaction_record()?.purged_to
            && given.change < self.reached(home, shelf)?;
        if given == own && !is_future && !is_forgotten { Ok(given) } else { Err(invalid_token()) }
    }
}

/// A first listing, by uid; then what changed since it began.
fn listed(home: &Home, tracked: &Collection, since: SyncToken, uid: u64, limit: usize) -> Result<Piece> {
    let mut members = tracked.contents()?.members_behind(uid, limit.saturating_add(1))?;
    let more = members.len() > limit;
    members.truncate(limit);
    let last = members.last().map_or(uid, |member| member.uid);
    let next = SyncToken { listed_to: more.then_some(last), ..since };
    Ok(Piece { changed: DavService::visible(home, members)?, removed: Vec::new(), next, is_cut: more })
}

fn changed(
    home: &Home,
    shelf: &Shelf,
    tracked: &Collection,
    since: SyncToken,
    limit: usize,
) -> Result<Piece> {
    let snapshot = home.database.store().snapshot();
    let mut changes = home.database.member_changes_at(
        &snapshot,
        shelf.info.number,
        since.change,
        limit.saturating_add(1),
    )?;
    let is_cut = changes.len() > limit;
    changes.truncate(limit);
    let last = changes.last().map_or(since.change, |change| change.change_number);
    let mut left = BTreeMap::new();
    let mut there = Vec::new();
    for change in changes {
        if change.kind == MemberChangeKind::Left {
            left.insert(change.uid, change.id);
        } else {
            there.push(change.uid);
        }
    }
    // Later than the snapshot, so what is not there any more comes with a later token.
    let contents = tracked.contents()?;
    let present = there.into_iter().filter_map(|uid| contents.member(uid).transpose());
    let present = present.collect::<scrinium_database::Result<Vec<Arc<Member>>>>()?;
    let mut removed = Vec::new();
    let shows_all = home.database.shows_all(&home.access)?;
    for id in left.into_values() {
        if shows_all || home.access.readable_id(&home.database, &snapshot, id.clone())?.is_some() {
            removed.extend(former_names(home, tracked, &id)?);
        }
    }
    // Two that left may have had one name, one after the other.
    removed.sort_unstable();
    removed.dedup();
    let next = SyncToken { change: last, ..since };
    Ok(Piece { changed: DavService::visible(home, present)?, removed, next, is_cut })
}

/// Under which names a document was a resource that has left. Where they are not known any more, the client lists all.
fn former_names(home: &Home, tracked: &Collection, id: &str) -> Result<Vec<String>> {
    let names = former_names_of(&home.database, id, tracked.folder)?.ok_or_else(invalid_token)?;
    // Another document may have such a name now, or this one, which then is no removal.
    let contents = tracked.contents()?;
    let mut gone = Vec::with_capacity(names.len());
    for name in names {
        if contents.named(&name)?.is_none() {
            gone.push(name);
        }
    }
    Ok(gone)
}
