//! Messages about meetings that come, by mail or from somebody here: they are filed before they are delivered.
//!
//! A message may come again, after a crash or because its delivery has to wait: what it brought is there then, and
//! [`scrinium_calendar::itip::receive`] finds nothing new in it.

use std::sync::Arc;

use scrinium_assertion::never;
use scrinium_calendar::address::{answer_of, attendee, comparable};
use scrinium_calendar::busy::{BusyKind, BusyTime};
use scrinium_calendar::itip::{self, Incoming, ItipOutcome, Method, Reason, Storing};
use scrinium_calendar::series::{InstantRange, Series};
use scrinium_calendar::zone::{Instant, Zone};
use scrinium_database::{DatabaseError, Edit, FolderChange, FolderKind};
use scrinium_dav::object::CalendarObject;
use scrinium_dav::place::Area;
use scrinium_dav_wire::content::{Component, ContentLimits};
use scrinium_directory::Found;
use scrinium_mail::{AuthorProof, CalendarArrival, CalendarKeeper};
use scrinium_mailbox::{Decoder, MapBuilder, MapLimits, MessageMap};
use serde_json::{Map, Value};

use super::StoredObject;
use super::profile::Profile;
use crate::document::{
    ALL_KINDS, FILED, NAME, RESOURCE_BYTES_MAX, add_calendar_fields, extension, id_of, made_again, read,
    source_attachment,
};
use crate::home::{Home, Shelf, zone_of_person};
use crate::refusal::{Refusal, Result};
use crate::service::DavService;

/// Somebody else stores the same meeting at this moment: that often it is looked at once more.
const TRIES: usize = 5;

/// Messages that an inbox keeps; of more the oldest go.
const INBOX_MAX: u64 = 500;

/// That many at a time.
const TRIMMED_AT_ONCE: usize = 50;

/// Occurrences of an invitation that are held against what its owner has.
const OCCURRENCES_MAX: usize = 1_000;

/// A series without an end is looked at so far.
const HORIZON_S: i64 = 400 * 86_400;

impl CalendarKeeper for DavService {
    fn file(&self, arrival: &CalendarArrival<'_>) -> std::result::Result<Option<String>, DatabaseError> {
        let Some(calendar) = calendar_in(&arrival.source) else { return Ok(None) };
        if calendar.line("METHOD").is_none() {
            return Ok(None);
        }
        for _ in 0..TRIES {
            match self.filed(arrival, &calendar) {
                Ok(reason) => return Ok(Some(reason.to_string())),
                Err(Unfiled::Conflict) => {}
                Err(Unfiled::Refused(reason)) => return Ok(Some(format!("not filed: {reason}"))),
                Err(Unfiled::Failed(error)) => return Err(error),
            }
        }
        Err(DatabaseError::Conflict)
    }
}

/// Why a message was not filed.
enum Unfiled {
    /// Somebody else was faster.
    Conflict,
    /// The calendar does not take it, which stays so.
    Refused(String),
    /// It is to be tried again.
    Failed(DatabaseError),
}

impl From<DatabaseError> for Unfiled {
    fn from(error: DatabaseError) -> Self {
        match error {
            DatabaseError::Conflict => Self::Conflict,
            DatabaseError::TooLarge { .. }
            | DatabaseError::Invalid { .. }
            | DatabaseError::Forbidden { .. } => Self::Refused(error.reason()),
            error => Self::Failed(error),
        }
    }
}

impl From<Refusal> for Unfiled {
    fn from(refusal: Refusal) -> Self {
        match refusal.into_error() {
            Ok(error) => error.into(),
            Err(reason) => Self::Refused(reason),
        }
    }
}

/// A message, as its person's calendar looks at it.
pub(super) struct Filing<'a> {
    pub(super) home: Home,
    pub(super) person: itip::Person,
    profile: Profile,
    calendar: &'a Component,
}

impl DavService {
    fn filed(
        &self,
        arrival: &CalendarArrival<'_>,
        calendar: &Component,
    ) -> std::result::Result<Reason, Unfiled> {
        let owner = Arc::clone(arrival.person);
        let home = Home::of_the_server(owner, Arc::clone(arrival.database.database()))?;
        let zone = zone_of_person(&home.owner);
        let person = itip::Person { addresses: self.addresses(&home.owner), zone };
        let profile = Profile::of(&home.database, &home.owner)?;
        let filing = Filing { home, person, profile, calendar };
        let stored = match uid_of(calendar) {
            Some(uid) => self.object_of(&filing.home, &uid)?,
            None => None,
        };
        let (sender, is_authenticated) = self.sender_of(arrival);
        let is_known = is_authenticated && self.knows(&filing.home, &sender)?;
        let incoming = Incoming { calendar, mime_method: None, sender: &sender, is_authenticated, is_known };
        let old = stored.as_ref().map(|stored| &stored.calendar);
        let outcome = itip::receive(old, &incoming, filing.profile.filing, &filing.person, self.now());
        let outcome = match &filing.profile.resource {
            Some(rules) => self.booked(&filing, outcome, rules)?,
            None => self.answered(&filing, outcome)?,
        };
        self.keep(&filing, stored.as_ref(), outcome)
    }

    /// Who sent it, and whether that is proven. Who has logged in here and writes under another's name has sent it as themselves.
    fn sender_of(&self, arrival: &CalendarArrival<'_>) -> (String, bool) {
        let author = comparable(&arrival.author);
        match &arrival.proof {
            AuthorProof::Nothing => (author, false),
            AuthorProof::Domain => {
                // Nobody outside vouches for people here.
                let is_here = matches!(self.found(&author), Some(Found::Person(_)));
                (author, !is_here)
            }
            AuthorProof::Person(name) => match self.person(name) {
                Some(person) => {
                    let own = self.addresses(&person);
                    let first = own.first().cloned().unwrap_or_default();
                    (if own.contains(&author) { author } else { first }, true)
                }
                None => (author, false),
            },
        }
    }

    fn found(&self, address: &str) -> Option<Found> {
        self.mail.as_ref().map(|mail| mail.resolver.find(address))
    }

    /// Whether somebody knows a sender: from the directory, or their own address books.
    fn knows(&self, home: &Home, sender: &str) -> Result<bool> {
        if matches!(self.found(sender), Some(Found::Person(_))) {
            return Ok(true);
        }
        for shelf in home.shelves(Area::Contacts)? {
            if home.collection(self, &shelf).contents()?.has_address(sender)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The outcome with the answer that the person's settings give to an invitation.
    fn answered(&self, filing: &Filing<'_>, outcome: ItipOutcome) -> Result<ItipOutcome> {
        let is_invitation = matches!(outcome.reason, Reason::FiledNew | Reason::FiledChange);
        let (Storing::Put(stored), true) = (&outcome.storing, is_invitation) else { return Ok(outcome) };
        let organizer = stored.components().find_map(|part| part.line("ORGANIZER"));
        let Some(organizer) = organizer.map(|line| comparable(line.value())) else { return Ok(outcome) };
        let awaits = awaits_answer(stored, &filing.person.addresses);
        if !awaits || filing.profile.autoprocess.action.is_none() {
            return Ok(outcome);
        }
        let busy = self.busy_during(filing, stored)?;
        let Some(answer) = filing.profile.autoprocess.answer(&organizer, busy) else { return Ok(outcome) };
        match itip::answer(stored, &answer, &filing.person, self.now()) {
            Ok(ItipOutcome { storing, messages, .. }) => {
                let messages = outcome.messages.into_iter().chain(messages).collect();
                Ok(ItipOutcome { storing, messages, reason: outcome.reason })
            }
            // It is left to the person.
            Err(_) => Ok(outcome),
        }
    }

    /// What the person's time is taken by during a meeting: the worst of its occurrences. The meeting itself is in nobody's way.
    fn busy_during(&self, filing: &Filing<'_>, meeting: &Component) -> Result<BusyKind> {
        let now = self.now();
        let span = InstantRange { from: now, to: Instant(now.0.saturating_add(HORIZON_S)) };
        let own_uid = uid_of(meeting);
        let Some(series) = Series::read_all(meeting, &filing.person.zone).into_iter().next() else {
            return Ok(BusyKind::Free);
        };
        let found = series.occurrences(span, &filing.person.zone, OCCURRENCES_MAX);
        let times: Vec<(Instant, Instant)> =
            found.occurrences.iter().map(|one| one.instants(&filing.person.zone)).collect();
        let (Some(from), Some(to)) =
            (times.iter().map(|time| time.0).min(), times.iter().map(|time| time.1).max())
        else {
            return Ok(BusyKind::Free);
        };
        let mut busy = BusyTime::new(InstantRange { from, to });
        self.add_busy(&filing.home, &mut busy, own_uid.as_deref())?;
        let periods = busy.periods();
        let meets = |period: &InstantRange| {
            // Both are in order; of few occurrences each is looked for.
            times.iter().any(|(start, end)| *start < period.to && period.from < *end)
        };
        let kinds = periods.iter().filter(|period| meets(&period.range)).map(|period| period.kind);
        Ok(kinds.max().unwrap_or(BusyKind::Free))
    }

    /// Stores what comes of a message, and keeps the message in the inbox of calendar programs.
    fn keep(
        &self,
        filing: &Filing<'_>,
        stored: Option<&StoredObject>,
        outcome: ItipOutcome,
    ) -> std::result::Result<Reason, Unfiled> {
        let ItipOutcome { storing, messages, reason } = outcome;
        let home = &filing.home;
        let mut edits = match &storing {
            Storing::Keep => Vec::new(),
            Storing::Put(calendar) => vec![self.edit_for(home, stored, calendar)?],
            Storing::Delete => self.deletion_for(home, stored)?.into_iter().collect(),
        };
        let is_news = matches!(
            reason,
            Reason::FiledNew
                | Reason::FiledChange
                | Reason::FiledAnswer { .. }
                | Reason::FiledCancellation
                | Reason::Proposal { .. }
                | Reason::ProposalDeclined
        );
        if is_news {
            edits.extend(self.inbox_edits(home, filing.calendar)?);
        }
        let letters = self.outgoing(&home.owner, &messages);
        if edits.is_empty() && letters.is_empty() {
            return Ok(reason);
        }
        let stored = self.store_with(home, edits, &letters)?.wait()?;
        stored.into_iter().collect::<scrinium_database::Result<Vec<_>>>()?;
        Ok(reason)
    }

    fn edit_for(&self, home: &Home, stored: Option<&StoredObject>, calendar: &Component) -> Result<Edit> {
        let bytes = calendar.to_bytes();
        if bytes.len() > RESOURCE_BYTES_MAX {
            let reason = format!("a calendar's object has at most {RESOURCE_BYTES_MAX} bytes");
            return Err(Refusal::new(http::StatusCode::FORBIDDEN, reason));
        }
        let floating = zone_of_person(&home.owner);
        let object = CalendarObject::read(&bytes, &ALL_KINDS, &floating)?;
        let id =
            stored.map_or_else(|| id_of(Area::Calendars, object.series.uid(), None), |one| one.id.clone());
        let mut made = Map::new();
        self.add_fields(home, &object, &floating, &mut made);
        let current = read(&home.database, &id, &home.access)?;
        let (revision, mut fields) = match current {
            Some((revision, fields)) => (Some(revision), fields),
            None => (None, Map::new()),
        };
        let name = fields.get(NAME).cloned();
        let is_filed = revision.is_none() || fields.contains_key(FILED);
        fields = made_again(Area::Calendars, fields, made);
        let usual = || Value::from(format!("{id}.{}", extension(Area::Calendars)));
        fields.insert(NAME.to_owned(), name.unwrap_or_else(usual));
        if is_filed {
            fields.insert(FILED.to_owned(), Value::Bool(true));
        }
        let is_in_a_folder = {
            let snapshot = home.database.store().snapshot();
            revision.is_some() && home.database.count_folders_at(&snapshot, &id)? > 0
        };
        let folders = if is_in_a_folder {
            Vec::new()
        } else {
            let shelf = home.usual_calendar(object.series.kind())?;
            if let Some(former) = crate::document::former_of(&home.database, &id)? {
                fields.insert(crate::document::FORMER.to_owned(), former);
            }
            vec![FolderChange::Add { folder: shelf.info.name }]
        };
        Ok(Edit {
            id: Some(id),
            revision,
            json: Value::Object(fields).to_string().into(),
            attachments: vec![source_attachment(&home.database, Area::Calendars, &bytes)?],
            folders,
            ..Edit::default()
        })
    }

    pub(crate) fn add_fields(
        &self,
        home: &Home,
        object: &CalendarObject,
        floating: &Zone,
        fields: &mut Map<String, Value>,
    ) {
        let owner = crate::document::Owner { name: &home.owner.short_name, floating, now: self.now() };
        add_calendar_fields(fields, (&object.calendar, &object.series), &owner);
    }

    fn deletion_for(&self, home: &Home, stored: Option<&StoredObject>) -> Result<Option<Edit>> {
        let Some(stored) = stored else { return Ok(None) };
        let snapshot = home.database.store().snapshot();
        let folders = home.database.folders_of_at(&snapshot, &stored.id)?;
        deletion_by_id(home, &stored.id, folders.first().copied().unwrap_or(0))
    }

    /// The message as a resource of the inbox, and what goes for it.
    fn inbox_edits(&self, home: &Home, calendar: &Component) -> Result<Vec<Edit>> {
        let inbox = home.inbox()?;
        let bytes = calendar.to_bytes();
        let digest: String = blake3::hash(&bytes).to_hex().chars().take(32).collect();
        let id = format!("calmsg-{digest}");
        if home.database.has_revisions(&id)? {
            return Ok(Vec::new());
        }
        let name = format!("{digest}.{}", extension(Area::Calendars));
        let method =
            calendar.line("METHOD").map(|line| line.value().to_ascii_uppercase()).unwrap_or_default();
        let known = Method::of_name(&method).map_or("", Method::name);
        let fields = serde_json::json!({"Form": "CalendarMessage", "Method": known, NAME: name});
        let added = Edit {
            id: Some(id),
            json: fields.to_string().into(),
            attachments: vec![source_attachment(&home.database, Area::Calendars, &bytes)?],
            folders: vec![FolderChange::Add { folder: inbox.info.name.clone() }],
            ..Edit::default()
        };
        let mut edits = vec![added];
        edits.extend(oldest(home, &inbox)?);
        Ok(edits)
    }

    /// Adds what somebody's calendars take of their time, but for the meeting with this UID.
    pub(crate) fn add_busy(&self, home: &Home, busy: &mut BusyTime, but_for: Option<&str>) -> Result<()> {
        let addresses = self.addresses(&home.owner);
        for shelf in home.shelves(Area::Calendars)? {
            // To-dos take nobody's time.
            if shelf.is_inbox() || !shelf.is_opaque() || shelf.info.kind == FolderKind::Tasks {
                continue;
            }
            let floating = home.floating(&shelf);
            let contents = home.collection(self, &shelf).contents()?;
            let left_out = but_for.map(|uid| contents.with_object(uid)).transpose()?.flatten();
            contents.add_busy(busy, (&addresses, &floating), left_out.map(|member| member.uid))?;
        }
        Ok(())
    }
}

/// The deletion of a resource of a folder, if it is still there.
fn deletion_by_id(home: &Home, id: &str, folder: u32) -> Result<Option<Edit>> {
    let Some((revision, fields)) = read(&home.database, id, &home.access)? else { return Ok(None) };
    let name = fields.get(NAME).and_then(Value::as_str).unwrap_or(id).to_owned();
    Ok(Some(crate::change::deletion_of((id, &name), folder, (revision, fields))))
}

/// Deletions of the oldest messages of an inbox that has too many.
fn oldest(home: &Home, inbox: &Shelf) -> Result<Vec<Edit>> {
    if inbox.info.total < INBOX_MAX {
        return Ok(Vec::new());
    }
    let snapshot = home.database.store().snapshot();
    let members = home.database.members_at(&snapshot, inbox.info.number, 0, TRIMMED_AT_ONCE)?;
    let mut edits = Vec::with_capacity(members.len());
    for (_, member) in members {
        edits.extend(deletion_by_id(home, &member.id, inbox.info.number)?);
    }
    Ok(edits)
}

/// Whether somebody has not answered a meeting, or an instance of it.
pub(super) fn awaits_answer(meeting: &Component, addresses: &[String]) -> bool {
    let awaits =
        |part: &Component| attendee(part, addresses).is_some_and(|line| answer_of(line) == "NEEDS-ACTION");
    meeting.components().any(awaits)
}

/// The UID of an object.
pub(super) fn uid_of(calendar: &Component) -> Option<String> {
    let part = calendar.components().find(|part| part.name() != "VTIMEZONE")?;
    part.line("UID").map(|line| line.value().to_owned())
}

/// The calendar of a message: the first part that is one.
fn calendar_in(source: &[u8]) -> Option<Component> {
    let mut builder = MapBuilder::new(MapLimits::default());
    builder.push(source);
    let map: MessageMap = builder.finish();
    let files = map.shown_files();
    let is_calendar = |kind: &str| matches!(kind, "text/calendar" | "application/ics");
    let part = files.iter().find(|file| is_calendar(&file.media_type))?;
    if part.decoded_bytes > RESOURCE_BYTES_MAX as u64 {
        return None;
    }
    let (start, end) = (usize::try_from(part.body.start).ok()?, usize::try_from(part.body.end).ok()?);
    let Some(encoded) = source.get(start..end) else {
        never!("a part lies within its message", "{start} to {end} of {}", source.len());
        return None;
    };
    let mut decoder = Decoder::new(part.encoding);
    let mut bytes = Vec::new();
    decoder.push(encoded, &mut bytes);
    decoder.finish(&mut bytes);
    let calendar = Component::parse(&bytes, ContentLimits::default()).ok()?;
    (calendar.name() == "VCALENDAR" && calendar.components().next().is_some()).then_some(calendar)
}
