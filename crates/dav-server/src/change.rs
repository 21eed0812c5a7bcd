//! PUT, DELETE, COPY and MOVE. What is answered as stored is durable.

use std::sync::Arc;

use bytes::Bytes;
use http::{Response, StatusCode};
use scrinium_database::{DatabaseError, Edit, EditMode, FolderChange, NewAttachment, Updated, new_id};
use scrinium_dav::condition::{Verdict, check};
use scrinium_dav::object::{CalendarObject, read_card};
use scrinium_dav::place::{Area, Place};
use scrinium_dav_wire::header::{Depth, parse_destination, parse_overwrite};
use scrinium_dav_wire::{CALDAV, CARDDAV, DAV};
use scrinium_http::{DavOutcome, DavStoring};
use serde_json::{Map, Value};

use crate::collection::{Member, Reservation};
use crate::document::{
    FORMER, NAME, Owner, RESOURCE_BYTES_MAX, add_calendar_fields, add_card_fields, former_of, id_of,
    media_type, note_former, read, source_name, tag_of, without_made,
};
use crate::home::{Home, Shelf};
use crate::refusal::{Refusal, Result, uid_conflict};
use crate::service::{Asked, DavService, empty, set_tag};

/// Members of a collection that are deleted in one batch.
const DELETED_AT_ONCE: usize = 500;

/// What somebody brings.
struct Brought {
    /// The UID, or the name of the resource where a card has none.
    object: String,
    fields: Map<String, Value>,
}

/// What becomes of a request when its update is durable.
struct Done {
    status: StatusCode,
    tag: Option<String>,
    /// The bytes, for who would like to have them.
    body: Option<Bytes>,
    /// The request said how the resource should be; another one has changed it meanwhile.
    is_conditional: bool,
}

impl Done {
    fn answer(
        self,
        stored: scrinium_database::Result<Vec<scrinium_database::Result<Updated>>>,
    ) -> Response<Bytes> {
        let stored = stored.and_then(|all| all.into_iter().collect::<scrinium_database::Result<Vec<_>>>());
        match stored {
            Ok(_) => {
                let mut response = empty(self.status).map(|_| self.body.unwrap_or_default());
                if let Some(tag) = &self.tag {
                    set_tag(&mut response, tag);
                }
                response
            }
            Err(DatabaseError::Conflict) if !self.is_conditional => {
                let reason = "Somebody else is changing this resource; try again.";
                Refusal::new(StatusCode::SERVICE_UNAVAILABLE, reason).into_response()
            }
            Err(error) => Refusal::from(error).into_response(),
        }
    }
}

/// Stores edits as one batch; the reservation ends when they are durable.
fn store(home: &Home, edits: Vec<Edit>, reservation: Reservation, done: Done) -> Result<DavOutcome> {
    let update = home.database.update(edits, EditMode::Interactive, &home.access)?;
    let finish = Box::new(move |stored| {
        let answer = done.answer(stored);
        drop(reservation);
        answer
    });
    Ok(DavOutcome::Storing(DavStoring { update, finish }))
}

const fn namespace_of(area: Area) -> &'static str {
    match area {
        Area::Calendars => CALDAV,
        Area::Contacts => CARDDAV,
    }
}

impl DavService {
    pub(crate) fn put(&self, asked: &Asked<'_>) -> Result<DavOutcome> {
        let Place::Member { area, person, collection, name } = &asked.place else {
            return Err(Refusal::not_allowed("Only what lies in a collection can be stored."));
        };
        let home = self.home(person, asked.identity)?;
        home.check_editor()?;
        // RFC 4918, section 9.7.1.
        let shelf = home.find_shelf(*area, collection)?.ok_or_else(no_collection)?;
        let body = &asked.request.body;
        if body.len() > RESOURCE_BYTES_MAX {
            let reason = format!("A resource has at most {RESOURCE_BYTES_MAX} bytes.");
            return Err(Refusal::forbidden((namespace_of(*area), "max-resource-size"), reason));
        }
        let brought = self.brought(&home, &shelf, (name, body))?;
        let tracked = home.collection(self, &shelf);
        let (reservation, [current, same]) = tracked.reserve(name, Some(&brought.object))?;
        check_reach(&home, current.as_ref())?;
        check_conditions(asked, current.as_deref())?;
        let others = same.filter(|same| same.name != *name);
        let other = others.or_else(|| current.clone().filter(|current| current.object != brought.object));
        if let Some(other) = other {
            return Err(conflict(&home, &shelf, other));
        }
        let edit = self.edit_of((&home, &shelf), (name, current.as_deref()), brought, body)?;
        let status = if current.is_some() { StatusCode::NO_CONTENT } else { StatusCode::CREATED };
        let wants_it = asked.preferences.return_representation;
        let status = if wants_it && current.is_some() { StatusCode::OK } else { status };
        let done = Done {
            status,
            tag: Some(tag_of(body)),
            body: wants_it.then(|| body.clone()),
            is_conditional: is_conditional(asked),
        };
        store(&home, vec![edit], reservation, done)
    }

    /// Reads what is to be stored.
    fn brought(&self, home: &Home, shelf: &Shelf, (name, body): (&str, &Bytes)) -> Result<Brought> {
        let mut fields = Map::new();
        let floating = home.floating(shelf);
        let object = match shelf.area {
            Area::Calendars => {
                let object = CalendarObject::read(body, &shelf.kinds(), &floating)?;
                let owner = Owner { name: &home.owner.short_name, floating: &floating, now: self.now() };
                add_calendar_fields(&mut fields, (&object.calendar, &object.series), &owner);
                object.series.uid().to_owned()
            }
            Area::Contacts => {
                let (card, uid) = read_card(body)?;
                add_card_fields(&mut fields, &card);
                uid.unwrap_or_else(|| name.to_owned())
            }
        };
        fields.insert(NAME.to_owned(), Value::from(name));
        Ok(Brought { object, fields })
    }

    fn edit_of(
        &self,
        (home, shelf): (&Home, &Shelf),
        (name, current): (&str, Option<&Member>),
        brought: Brought,
        body: &Bytes,
    ) -> Result<Edit> {
        let area = shelf.area;
        let content = home.database.store_content(body, media_type(area))?;
        let attachment = NewAttachment {
            name: source_name(area).to_owned(),
            content_type: media_type(area).to_owned(),
            content,
        };
        let mut edit = Edit {
            attachments: vec![attachment],
            editor: home.asker(),
            read_by: home.asker(),
            ..Edit::default()
        };
        let mut fields = brought.fields;
        if let Some(current) = current {
            let stored = read(&home.database, &current.id, &home.access)?;
            let (revision, kept) = stored.ok_or_else(Refusal::condition_failed)?;
            let mut kept = without_made(area, kept);
            // The source is brought; other attachments stay.
            if let Some(Value::Object(attachments)) = kept.get_mut("_attachments") {
                attachments.remove(source_name(area));
            }
            kept.append(&mut fields);
            fields = kept;
            edit.id = Some(current.id.clone());
            edit.revision = Some(revision);
        } else {
            let id = free_id(home, shelf, &brought.object)?;
            // One that was deleted comes back, and may have had other names.
            if let Some(former) = former_of(&home.database, &id)? {
                fields.insert(FORMER.to_owned(), former);
            }
            edit.id = Some(id);
            edit.folders = vec![FolderChange::Add { folder: shelf.info.name.clone() }];
        }
        fields.insert(NAME.to_owned(), Value::from(name));
        edit.json = Value::Object(fields).to_string().into();
        Ok(edit)
    }

    pub(crate) fn delete(&self, asked: &Asked<'_>) -> Result<DavOutcome> {
        match &asked.place {
            Place::Member { area, person, collection, name } => {
                let home = self.home(person, asked.identity)?;
                home.check_editor()?;
                let shelf = home.shelf(*area, collection)?;
                let tracked = home.collection(self, &shelf);
                let (reservation, [current, _]) = tracked.reserve(name, None)?;
                let current = Self::visible(&home, current.into_iter().collect())?.into_iter().next();
                let current = current.ok_or_else(Refusal::missing)?;
                check_conditions(asked, Some(&current))?;
                let edit = deletion(&home, &shelf, &current)?;
                let done = Done {
                    status: StatusCode::NO_CONTENT,
                    tag: None,
                    body: None,
                    is_conditional: is_conditional(asked),
                };
                store(&home, vec![edit], reservation, done)
            }
            Place::Collection { area, person, collection } => {
                let home = self.home(person, asked.identity)?;
                // With it goes what editors do not see.
                if !home.is_owner {
                    return Err(Refusal::read_only());
                }
                home.check_editor()?;
                let shelf = home.shelf(*area, collection)?;
                // RFC 4918, section 9.6.1: a collection goes with all that is in it.
                if asked.header("depth").is_some_and(|depth| Depth::parse(depth) != Some(Depth::Infinity)) {
                    let reason = "A collection is deleted with the header Depth: infinity.";
                    return Err(Refusal::new(StatusCode::BAD_REQUEST, reason));
                }
                self.delete_collection(&home, &shelf)?;
                Ok(DavOutcome::Answered(empty(StatusCode::NO_CONTENT)))
            }
            _ => Err(Refusal::forbidden((DAV, "need-privileges"), "This cannot be deleted.")),
        }
    }

    fn delete_collection(&self, home: &Home, shelf: &Shelf) -> Result<()> {
        let tracked = home.collection(self, shelf);
        let members = tracked.with(|contents| contents.members.values().cloned().collect::<Vec<_>>())?;
        for some in members.chunks(DELETED_AT_ONCE) {
            let snapshot = home.database.store().snapshot();
            let mut edits = Vec::with_capacity(some.len());
            for member in some {
                // What also lies elsewhere stays there.
                if home.database.count_folders_at(&snapshot, &member.id)? > 1 {
                    continue;
                }
                if let Some(stored) = read(&home.database, &member.id, &home.access)? {
                    edits.push(deletion_of(member, shelf.info.number, stored));
                }
            }
            let stored = home.database.update(edits, EditMode::Interactive, &home.access)?.wait()?;
            stored.into_iter().collect::<scrinium_database::Result<Vec<_>>>()?;
        }
        Ok(home.database.drop_folder(&shelf.info.name)?)
    }

    pub(crate) fn copy(&self, asked: &Asked<'_>) -> Result<DavOutcome> {
        let (source, target) = self.endpoints(asked)?;
        let bytes = self.source(&source.home, &source.shelf, &source.member)?.ok_or_else(Refusal::missing)?;
        let body = Bytes::from(bytes);
        let Target { home, shelf, name } = target;
        let brought = self.brought(&home, &shelf, (&name, &body))?;
        let tracked = home.collection(self, &shelf);
        let (reservation, [current, same]) = tracked.reserve(&name, Some(&brought.object))?;
        check_reach(&home, current.as_ref())?;
        check_target(asked, current.as_deref())?;
        if let Some(other) = same.filter(|same| same.name != name) {
            return Err(conflict(&home, &shelf, other));
        }
        let edit = self.edit_of((&home, &shelf), (&name, current.as_deref()), brought, &body)?;
        let done = moved(current.is_some(), tag_of(&body));
        store(&home, vec![edit], reservation, done)
    }

    pub(crate) fn move_member(&self, asked: &Asked<'_>) -> Result<DavOutcome> {
        let (source, target) = self.endpoints(asked)?;
        let Target { home, shelf, name } = target;
        if home.owner.id != source.home.owner.id {
            let reason = "What is moved stays with its owner; copy it instead.";
            return Err(Refusal::new(StatusCode::FORBIDDEN, reason));
        }
        source.home.check_editor()?;
        let bytes = self.source(&source.home, &source.shelf, &source.member)?.ok_or_else(Refusal::missing)?;
        // The other calendar may not take such components.
        let brought = self.brought(&home, &shelf, (&name, &Bytes::from(bytes)))?;
        let tracked = home.collection(self, &shelf);
        let (reservation, [current, same]) = tracked.reserve(&name, Some(&brought.object))?;
        check_reach(&home, current.as_ref())?;
        check_target(asked, current.as_deref())?;
        let is_other = |same: &Arc<Member>| same.id != source.member.id && same.name != name;
        if let Some(other) = same.filter(is_other) {
            return Err(conflict(&home, &shelf, other));
        }
        check_conditions(asked, Some(&source.member))?;
        let (revision, mut fields) =
            read(&home.database, &source.member.id, &home.access)?.ok_or_else(Refusal::missing)?;
        fields.retain(|field, _| !["_id", "_rev"].contains(&field.as_str()));
        fields.insert(NAME.to_owned(), Value::from(name));
        note_former(&mut fields, source.shelf.info.number, &source.member.name);
        let mut edits = Vec::new();
        let replaced = current.filter(|current| current.id != source.member.id);
        if let Some(replaced) = &replaced {
            edits.push(deletion(&home, &shelf, replaced)?);
        }
        edits.push(Edit {
            id: Some(source.member.id.clone()),
            revision: Some(revision),
            json: Value::Object(fields).to_string().into(),
            // Under another name it is another resource, also in the same folder.
            folders: vec![
                FolderChange::Remove { folder: source.shelf.info.name },
                FolderChange::Add { folder: shelf.info.name },
            ],
            editor: home.asker(),
            keeps_marks: true,
            ..Edit::default()
        });
        let done = moved(replaced.is_some(), source.member.tag.clone());
        store(&home, edits, reservation, done)
    }

    /// What COPY and MOVE are about.
    fn endpoints(&self, asked: &Asked<'_>) -> Result<(Source, Target)> {
        let Place::Member { area, person, collection, name } = &asked.place else {
            let reason = "Only what lies in a collection is copied and moved.";
            return Err(Refusal::new(StatusCode::FORBIDDEN, reason));
        };
        let bad =
            || Refusal::new(StatusCode::BAD_REQUEST, "The header Destination is no path of this server.");
        let (host, path) = asked.header("destination").and_then(parse_destination).ok_or_else(bad)?;
        let own_host = asked.header("host");
        if host.is_some_and(|host| own_host.is_some_and(|own| !own.eq_ignore_ascii_case(host))) {
            return Err(Refusal::new(
                StatusCode::BAD_GATEWAY,
                "The header Destination names another server.",
            ));
        }
        let target = match Place::parse(path) {
            Some(Place::Member { area: to, person, collection, name }) if to == *area => {
                let home = self.home(&person, asked.identity)?;
                home.check_editor()?;
                let shelf = home.find_shelf(to, &collection)?.ok_or_else(no_collection)?;
                Target { home, shelf, name }
            }
            Some(_) => return Err(Refusal::new(StatusCode::FORBIDDEN, "This cannot be put there.")),
            None => return Err(bad()),
        };
        if asked.request.path.trim_end_matches('/') == path.trim_end_matches('/') {
            return Err(Refusal::new(StatusCode::FORBIDDEN, "Source and destination are the same."));
        }
        let home = self.home(person, asked.identity)?;
        let shelf = home.shelf(*area, collection)?;
        let member = self.member(&home, &shelf, name)?;
        Ok((Source { home, shelf, member }, target))
    }
}

struct Source {
    home: Home,
    shelf: Shelf,
    member: Arc<Member>,
}

struct Target {
    home: Home,
    shelf: Shelf,
    name: String,
}

fn moved(replaces: bool, tag: String) -> Done {
    let status = if replaces { StatusCode::NO_CONTENT } else { StatusCode::CREATED };
    Done { status, tag: Some(tag), body: None, is_conditional: false }
}

/// What somebody does not see they do not replace.
fn check_reach(home: &Home, current: Option<&Arc<Member>>) -> Result<()> {
    let Some(current) = current else { return Ok(()) };
    let seen = DavService::visible(home, vec![Arc::clone(current)])?;
    if seen.is_empty() { Err(Refusal::read_only()) } else { Ok(()) }
}

/// Another resource has the UID. Its name is for who sees it.
fn conflict(home: &Home, shelf: &Shelf, other: Arc<Member>) -> Refusal {
    match DavService::visible(home, vec![other]).map(|seen| seen.into_iter().next()) {
        Ok(Some(other)) => {
            let href = home.member_place(shelf, &other.name).href();
            uid_conflict(namespace_of(shelf.area), &href)
        }
        Ok(None) => Refusal::read_only(),
        Err(refusal) => refusal,
    }
}

fn is_conditional(asked: &Asked<'_>) -> bool {
    asked.header("if-match").is_some() || asked.header("if-none-match").is_some()
}

fn check_conditions(asked: &Asked<'_>, current: Option<&Member>) -> Result<()> {
    let tag = current.map(|current| current.tag.as_str());
    match check(asked.header("if-match"), asked.header("if-none-match"), tag, false) {
        Verdict::Proceed => Ok(()),
        Verdict::NotModified | Verdict::Failed => Err(Refusal::condition_failed()),
    }
}

/// RFC 4918, section 10.6.
fn check_target(asked: &Asked<'_>, current: Option<&Member>) -> Result<()> {
    let overwrite = asked.header("overwrite").map_or(Some(true), parse_overwrite);
    let bad = || Refusal::new(StatusCode::BAD_REQUEST, "The header Overwrite is T or F.");
    if current.is_some() && !overwrite.ok_or_else(bad)? {
        return Err(Refusal::condition_failed());
    }
    Ok(())
}

fn no_collection() -> Refusal {
    Refusal::new(StatusCode::CONFLICT, "The collection is not there; make it first.")
}

/// The usual id of what has this UID, or another one where that document lies elsewhere.
fn free_id(home: &Home, shelf: &Shelf, object: &str) -> Result<String> {
    let info = &shelf.info;
    for folder in [None, Some((info.number, info.uid_validity))] {
        let id = id_of(shelf.area, object, folder);
        if read(&home.database, &id, &EVERYTHING)?.is_none() {
            return Ok(id);
        }
    }
    Ok(new_id(home.database.now_ms()))
}

/// Whether an id is taken is asked of all documents, also those that the one who asks does not see.
static EVERYTHING: scrinium_database::Access =
    scrinium_database::Access::of_the_server("finding ids for calendar programs");

fn deletion(home: &Home, shelf: &Shelf, member: &Member) -> Result<Edit> {
    let (revision, fields) = read(&home.database, &member.id, &home.access)?.ok_or_else(Refusal::missing)?;
    Ok(deletion_of(member, shelf.info.number, (revision, fields)))
}

/// The tombstone says under which name the document was a resource.
fn deletion_of(member: &Member, folder: u32, (revision, mut fields): (String, Map<String, Value>)) -> Edit {
    fields.retain(|field, _| field == FORMER);
    note_former(&mut fields, folder, &member.name);
    fields.insert("_deleted".to_owned(), Value::Bool(true));
    Edit {
        id: Some(member.id.clone()),
        revision: Some(revision),
        json: Value::Object(fields).to_string().into(),
        ..Edit::default()
    }
}
