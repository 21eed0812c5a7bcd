//! PUT, DELETE, COPY and MOVE. What is answered as stored is durable.

use std::sync::Arc;

use bytes::Bytes;
use http::{Response, StatusCode};
use scrinium_calendar::itip::{ItipOutcome, Storing};
use scrinium_database::{DatabaseError, Edit, FolderChange, Updated, new_id};
use scrinium_dav::condition::{Verdict, check};
use scrinium_dav::object::{CalendarObject, read_card};
use scrinium_dav::place::{Area, Place};
use scrinium_dav_wire::content::{Component, ContentLimits};
use scrinium_dav_wire::header::{Depth, parse_destination, parse_overwrite};
use scrinium_dav_wire::xml::Element;
use scrinium_dav_wire::{CALDAV, CARDDAV, DAV};
use scrinium_http::{DavOutcome, DavStoring};
use serde_json::{Map, Value};

use crate::collection::{Member, Reservation};
use crate::document::{
    FORMER, NAME, RESOURCE_BYTES_MAX, add_card_fields, former_of, id_of, made_again, note_former, read,
    source_attachment, tag_of,
};
use crate::home::{Home, Shelf};
use crate::refusal::{Refusal, Result, uid_conflict};
use crate::scheduling::{Outgoing, is_meeting, schedule_tag};
use crate::service::{Asked, DavService, empty, set_schedule_tag, set_tag};

/// Members of a collection that are deleted in one batch.
const DELETED_AT_ONCE: usize = 400;

/// Messages about them are no longer together, but for the last one's.
const MESSAGES_AT_ONCE_BYTES: u64 = 16 << 20;

/// What somebody brings.
struct Brought {
    /// The UID, or the name of the resource where a card has none.
    object: String,
    body: Bytes,
    kind: BroughtKind,
}

enum BroughtKind {
    Calendar(Box<CalendarObject>),
    Card(Component),
}

impl Brought {
    fn calendar(&self) -> Option<&Component> {
        match &self.kind {
            BroughtKind::Calendar(object) => Some(&object.calendar),
            BroughtKind::Card(_) => None,
        }
    }
}

/// A resource that is to be another one: its document moves.
struct Adopted {
    /// The folder that it leaves.
    folder: (u32, String),
    name: String,
}

/// What becomes of a request when its update is durable.
struct Done {
    status: StatusCode,
    tag: Option<String>,
    schedule_tag: Option<String>,
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
                set_schedule_tag(&mut response, self.schedule_tag.as_deref());
                response
            }
            Err(DatabaseError::Conflict) if !self.is_conditional => busy().into_response(),
            Err(error) => Refusal::from(error).into_response(),
        }
    }
}

const fn namespace_of(area: Area) -> &'static str {
    match area {
        Area::Calendars => CALDAV,
        Area::Contacts => CARDDAV,
    }
}

impl DavService {
    /// Stores edits, and messages to others, as one batch; the reservation ends when they are durable.
    fn store(
        &self,
        home: &Home,
        (edits, messages): (Vec<Edit>, &[Outgoing]),
        reservation: Reservation,
        done: Done,
    ) -> Result<DavOutcome> {
        let is_conditional = done.is_conditional;
        let update = self.store_with(home, edits, messages).map_err(|refusal| {
            let is_conflict = refusal.status == StatusCode::PRECONDITION_FAILED && !is_conditional;
            if is_conflict { busy() } else { refusal }
        })?;
        let finish = Box::new(move |stored| {
            let answer = done.answer(stored);
            drop(reservation);
            answer
        });
        Ok(DavOutcome::Storing(DavStoring { update, finish }))
    }

    pub(crate) fn put(&self, asked: &Asked<'_>) -> Result<DavOutcome> {
        let Place::Member { area, person, collection, name } = &asked.place else {
            return Err(Refusal::not_allowed("Only what lies in a collection can be stored."));
        };
        let home = self.home(person, asked.identity)?;
        home.check_editor()?;
        // RFC 4918, section 9.7.1.
        let shelf = home.find_shelf(*area, collection)?.ok_or_else(no_collection)?;
        check_takes(&shelf)?;
        let brought = self.brought(&home, &shelf, (name, &asked.request.body))?;
        let tracked = home.collection(self, &shelf);
        let (reservation, [current, same]) = tracked.reserve(name, Some(&brought.object))?;
        check_reach(&home, current.as_ref())?;
        check_conditions(asked, current.as_deref())?;
        let others = same.filter(|same| same.name != *name);
        let other = others.or_else(|| current.clone().filter(|current| current.object != brought.object));
        let adopted = match &current {
            None => self.adopted((&home, &shelf), other.as_deref(), &brought)?,
            Some(_) => None,
        };
        if let (Some(other), None) = (other, &adopted) {
            return Err(conflict(&home, &shelf, other));
        }
        let stored_as = current.as_ref().map(|current| current.id.clone());
        let stored_as = stored_as.or_else(|| adopted.as_ref().map(|_| usual_id(&brought)));
        let old = match (&stored_as, *area) {
            (Some(id), Area::Calendars) => self.calendar_of(&home, id)?,
            _ => None,
        };
        let knows_answers = check_schedule_tag(asked, old.as_ref())?;
        let change = (old.as_ref(), brought.calendar());
        let scheduled = self.scheduled((&home, &shelf), change, (knows_answers, informs(asked)))?;
        let is_new = current.is_none();
        let (stored, messages) = self.with_schedule(&home, &shelf, brought, scheduled)?;
        let is_as_brought = stored.body == asked.request.body;
        let edit = self.edit_of((&home, &shelf), (name, stored_as.as_deref()), adopted, &stored)?;
        let status = if is_new { StatusCode::CREATED } else { StatusCode::NO_CONTENT };
        let wants_it = asked.preferences.return_representation;
        let done = Done {
            status: if wants_it && !is_new { StatusCode::OK } else { status },
            // RFC 4791, section 5.3.4: the tag of what was sent, or of what is shown.
            tag: (is_as_brought || wants_it).then(|| tag_of(&stored.body)),
            schedule_tag: stored.calendar().and_then(schedule_tag),
            body: wants_it.then(|| stored.body.clone()),
            is_conditional: is_conditional(asked),
        };
        self.store(&home, (vec![edit], &messages), reservation, done)
    }

    /// What is to be stored once it is known what becomes of a meeting, and the messages that go with it.
    fn with_schedule(
        &self,
        home: &Home,
        shelf: &Shelf,
        brought: Brought,
        scheduled: Option<ItipOutcome>,
    ) -> Result<(Brought, Vec<Outgoing>)> {
        let Some(ItipOutcome { storing, messages, .. }) = scheduled else { return Ok((brought, Vec::new())) };
        let messages = self.outgoing(&home.owner, &messages);
        match storing {
            Storing::Put(calendar) if Some(&calendar) != brought.calendar() => {
                let body = Bytes::from(calendar.to_bytes());
                let stored = self.brought(home, shelf, (&brought.object, &body))?;
                Ok((stored, messages))
            }
            Storing::Put(_) | Storing::Keep | Storing::Delete => Ok((brought, messages)),
        }
    }

    /// The calendar that a document holds.
    fn calendar_of(&self, home: &Home, id: &str) -> Result<Option<Component>> {
        let bytes = crate::document::source(&home.database, id, Area::Calendars, &home.access)?;
        Ok(bytes.and_then(|bytes| Component::parse(&bytes, ContentLimits::default()).ok()))
    }

    /// A meeting that the server has filed, and that a program now puts where it likes: it is the same one. Programs answer an
    /// invitation that came by mail so, not knowing that it was filed.
    ///
    /// # Errors
    /// 403 where somebody has put the meeting elsewhere (RFC 6638, section 3.2.4.1).
    fn adopted(
        &self,
        (home, shelf): (&Home, &Shelf),
        other: Option<&Member>,
        brought: &Brought,
    ) -> Result<Option<Adopted>> {
        let is_meeting_brought = brought.calendar().is_some_and(is_meeting);
        if !is_meeting_brought || self.mail.is_none() {
            return Ok(None);
        }
        let Some(stored) = self.object_of(home, &brought.object)? else { return Ok(None) };
        if other.is_some_and(|other| other.id != stored.id) {
            return Ok(None);
        }
        let snapshot = home.database.store().snapshot();
        let folders = home.database.folders_of_at(&snapshot, &stored.id)?;
        let shelves = home.shelves(Area::Calendars)?;
        let Some(lies_in) = shelves.iter().find(|one| folders.contains(&one.info.number)) else {
            return Ok(None);
        };
        let tracked = home.collection(self, lies_in);
        let named = tracked.contents()?.with_object(&brought.object)?;
        let Some(member) = named.filter(|member| member.id == stored.id) else { return Ok(None) };
        if stored.is_filed {
            // Nor does an editor take over what is its owner's alone.
            check_reach(home, Some(&member))?;
            let folder = (lies_in.info.number, lies_in.info.name.clone());
            return Ok(Some(Adopted { folder, name: member.name.clone() }));
        }
        if lies_in.info.number == shelf.info.number || !is_meeting(&stored.calendar) {
            return Ok(None);
        }
        check_reach(home, Some(&member))?;
        let reason = "The meeting lies in another calendar of the same person.";
        let href = home.member_place(lies_in, &member.name).href();
        Err(Refusal::forbidden((CALDAV, "unique-scheduling-object-resource"), reason)
            .with(Element::new(DAV, "href").with_text(&href)))
    }

    /// Reads what is to be stored.
    fn brought(&self, home: &Home, shelf: &Shelf, (name, body): (&str, &Bytes)) -> Result<Brought> {
        if body.len() > RESOURCE_BYTES_MAX {
            let reason = format!("A resource has at most {RESOURCE_BYTES_MAX} bytes.");
            return Err(Refusal::forbidden((namespace_of(shelf.area), "max-resource-size"), reason));
        }
        let (object, kind) = match shelf.area {
            Area::Calendars => {
                let object = CalendarObject::read(body, &shelf.kinds(), &home.floating(shelf))?;
                (object.series.uid().to_owned(), BroughtKind::Calendar(Box::new(object)))
            }
            Area::Contacts => {
                let (card, uid) = read_card(body)?;
                (uid.unwrap_or_else(|| name.to_owned()), BroughtKind::Card(card))
            }
        };
        Ok(Brought { object, body: body.clone(), kind })
    }

    fn edit_of(
        &self,
        (home, shelf): (&Home, &Shelf),
        (name, current): (&str, Option<&str>),
        adopted: Option<Adopted>,
        brought: &Brought,
    ) -> Result<Edit> {
        let area = shelf.area;
        let mut edit = Edit {
            attachments: vec![source_attachment(&home.database, area, &brought.body)?],
            editor: home.asker(),
            read_by: home.asker(),
            ..Edit::default()
        };
        let mut fields = Map::new();
        match &brought.kind {
            BroughtKind::Calendar(object) => {
                self.add_fields(home, object, &home.floating(shelf), &mut fields);
            }
            BroughtKind::Card(card) => add_card_fields(&mut fields, card),
        }
        if let Some(current) = current {
            let stored = read(&home.database, current, &home.access)?;
            let (revision, kept) = stored.ok_or_else(Refusal::condition_failed)?;
            fields = made_again(area, kept, fields);
            edit.id = Some(current.to_owned());
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
        if let Some(Adopted { folder: (number, folder), name }) = adopted {
            note_former(&mut fields, number, &name);
            // Under another name it is another resource, also in the same folder.
            edit.folders =
                vec![FolderChange::Remove { folder }, FolderChange::Add { folder: shelf.info.name.clone() }];
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
                let old = match area {
                    Area::Calendars => self.calendar_of(&home, &current.id)?,
                    Area::Contacts => None,
                };
                check_schedule_tag(asked, old.as_ref())?;
                let scheduled =
                    self.scheduled((&home, &shelf), (old.as_ref(), None), (false, informs(asked)))?;
                let messages = scheduled.map(|outcome| self.outgoing(&home.owner, &outcome.messages));
                let edit = deletion(&home, &shelf, &current)?;
                let done = Done {
                    status: StatusCode::NO_CONTENT,
                    tag: None,
                    schedule_tag: None,
                    body: None,
                    is_conditional: is_conditional(asked),
                };
                self.store(&home, (vec![edit], &messages.unwrap_or_default()), reservation, done)
            }
            Place::Collection { area, person, collection } => {
                let home = self.home(person, asked.identity)?;
                // With it goes what editors do not see.
                if !home.is_owner {
                    return Err(Refusal::read_only());
                }
                home.check_editor()?;
                let shelf = home.shelf(*area, collection)?;
                check_takes(&shelf)?;
                // RFC 4918, section 9.6.1: a collection goes with all that is in it.
                if asked.header("depth").is_some_and(|depth| Depth::parse(depth) != Some(Depth::Infinity)) {
                    let reason = "A collection is deleted with the header Depth: infinity.";
                    return Err(Refusal::new(StatusCode::BAD_REQUEST, reason));
                }
                self.delete_collection(&home, &shelf, informs(asked))?;
                Ok(DavOutcome::Answered(empty(StatusCode::NO_CONTENT)))
            }
            _ => Err(Refusal::forbidden((DAV, "need-privileges"), "This cannot be deleted.")),
        }
    }

    fn delete_collection(&self, home: &Home, shelf: &Shelf, informs: bool) -> Result<()> {
        let tracked = home.collection(self, shelf);
        let members = tracked.contents()?.members()?;
        let snapshot = home.database.store().snapshot();
        let (mut edits, mut messages, mut message_bytes) = (Vec::new(), Vec::new(), 0);
        for member in &members {
            // What also lies elsewhere stays there.
            if home.database.count_folders_at(&snapshot, &member.id)? > 1 {
                continue;
            }
            // What others were invited to is cancelled, and invitations are declined (RFC 6638, section 3.2.1).
            if member.schedule_tag.is_some() {
                let old = self.calendar_of(home, &member.id)?;
                let scheduled = self.scheduled((home, shelf), (old.as_ref(), None), (false, informs))?;
                let told = scheduled.map(|outcome| self.outgoing(&home.owner, &outcome.messages));
                for (id, message) in told.unwrap_or_default() {
                    message_bytes += message.source.len();
                    messages.push((id, message));
                }
            }
            if let Some(stored) = read(&home.database, &member.id, &home.access)? {
                edits.push(deletion_of((&member.id, &member.name), shelf.info.number, stored));
            }
            if edits.len() >= DELETED_AT_ONCE || message_bytes >= MESSAGES_AT_ONCE_BYTES {
                self.delete_some(home, std::mem::take(&mut edits), &std::mem::take(&mut messages))?;
                message_bytes = 0;
            }
        }
        self.delete_some(home, edits, &messages)?;
        home.database.drop_folder(&shelf.info.name)?;
        Ok(crate::index::forget(&home.database, shelf.info.number)?)
    }

    fn delete_some(&self, home: &Home, edits: Vec<Edit>, messages: &[Outgoing]) -> Result<()> {
        if edits.is_empty() {
            return Ok(());
        }
        let stored = self.store_with(home, edits, messages)?.wait()?;
        stored.into_iter().collect::<scrinium_database::Result<Vec<_>>>()?;
        Ok(())
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
        let current_id = current.as_ref().map(|current| current.id.as_str());
        let edit = self.edit_of((&home, &shelf), (&name, current_id), None, &brought)?;
        let done = moved(current.is_some(), tag_of(&body));
        self.store(&home, (vec![edit], &[]), reservation, done)
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
        self.store(&home, (edits, &[]), reservation, done)
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
                check_takes(&shelf)?;
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
        check_takes(&shelf)?;
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
    Done { status, tag: Some(tag), schedule_tag: None, body: None, is_conditional: false }
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

/// # Errors
/// 412 if a meeting is not as the request wants it (RFC 6638, section 8.2). Gives whether the one who asks knows of the answers
/// to it: with the tag alone they do not.
fn check_schedule_tag(asked: &Asked<'_>, old: Option<&Component>) -> Result<bool> {
    let Some(wanted) = asked.header("if-schedule-tag-match") else { return Ok(false) };
    let tag = old.and_then(schedule_tag);
    let fits = wanted.split(',').any(|one| tag.as_deref() == Some(one.trim().trim_matches('"')));
    if fits { Ok(asked.header("if-match").is_none()) } else { Err(Refusal::condition_failed()) }
}

/// Whether others hear of it (RFC 6638, section 8.1).
fn informs(asked: &Asked<'_>) -> bool {
    !asked.header("schedule-reply").is_some_and(|value| value.trim().eq_ignore_ascii_case("f"))
}

/// # Errors
/// 403 for the inbox, where only the server puts something.
fn check_takes(shelf: &Shelf) -> Result<()> {
    if shelf.is_inbox() {
        return Err(Refusal::forbidden((DAV, "need-privileges"), "Only the server puts messages here."));
    }
    Ok(())
}

/// The id under which a meeting that was filed lies.
fn usual_id(brought: &Brought) -> String {
    id_of(Area::Calendars, &brought.object, None)
}

fn busy() -> Refusal {
    let reason = "Somebody else is changing this resource; try again.";
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, reason)
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
    Ok(deletion_of((&member.id, &member.name), shelf.info.number, (revision, fields)))
}

/// The tombstone says under which name the document was a resource.
pub(crate) fn deletion_of(
    (id, name): (&str, &str),
    folder: u32,
    (revision, mut fields): (String, Map<String, Value>),
) -> Edit {
    fields.retain(|field, _| field == FORMER);
    note_former(&mut fields, folder, name);
    fields.insert("_deleted".to_owned(), Value::Bool(true));
    Edit {
        id: Some(id.to_owned()),
        revision: Some(revision),
        json: Value::Object(fields).to_string().into(),
        ..Edit::default()
    }
}
