//! PROPFIND and GET.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use scrinium_calendar::zone::Zone;
use scrinium_dav::answer::{Question, response};
use scrinium_dav::condition::{Verdict, check};
use scrinium_dav::place::{Area, Place};
use scrinium_dav_wire::DAV;
use scrinium_dav_wire::header::Depth;
use scrinium_dav_wire::multistatus::MultistatusWriter;
use scrinium_dav_wire::request::PropFind;
use scrinium_dav_wire::xml::XmlLimits;
use scrinium_directory::Person;

use crate::collection::Member;
use crate::home::{Home, OUTBOX, Shelf};
use crate::properties::{Target, Told, content_type};
use crate::refusal::{Refusal, Result, too_many};
use crate::service::{Asked, DavService, empty, set_schedule_tag, set_tag, xml};
use crate::{document, sync};

/// An answer about many resources is at most this long.
pub(crate) const ANSWER_BYTES_MAX: usize = 24 << 20;

/// Collects responses, within the limit of an answer.
pub(crate) struct Answers<'a> {
    question: &'a Question,
    asked: &'a Asked<'a>,
    writer: MultistatusWriter,
}

impl<'a> Answers<'a> {
    pub(crate) fn new(asked: &'a Asked<'a>, question: &'a Question) -> Self {
        Self { question, asked, writer: MultistatusWriter::default() }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.writer.bytes() >= ANSWER_BYTES_MAX
    }

    /// What a resource says of itself.
    pub(crate) fn push(&mut self, place: Place, target: Target<'_>) {
        let told = Told { place, asker: self.asked.person.as_ref(), target };
        let is_minimal = self.asked.preferences.return_minimal;
        self.writer.push(&response(told.place.href(), self.question, &told, is_minimal));
    }

    /// A resource of a collection, with its source where that was read.
    pub(crate) fn push_member(
        &mut self,
        (home, shelf, member): (&Home, &Shelf, &Member),
        source: Option<&[u8]>,
        floating: &Zone,
    ) {
        let place = home.member_place(shelf, &member.name);
        self.push(place, Target::Member { home, shelf, member, source, floating });
    }

    /// A status alone.
    pub(crate) fn push_status(&mut self, href: String, status: u16) {
        self.writer.push(&scrinium_dav::answer::status(href, status, None));
    }

    /// A status with the condition that was violated.
    pub(crate) fn push_error(&mut self, href: String, status: u16, condition: (&str, &str)) {
        let error = scrinium_dav::answer::error(condition);
        self.writer.push(&scrinium_dav::answer::status(href, status, Some(error)));
    }

    pub(crate) fn finish(self, token: Option<&str>) -> Response<Bytes> {
        xml(StatusCode::MULTI_STATUS, self.writer.finish(token))
    }
}

impl DavService {
    pub(crate) fn propfind(&self, asked: &Asked<'_>) -> Result<Response<Bytes>> {
        let question = Question::from(PropFind::parse(&asked.request.body, XmlLimits::default())?);
        let is_member = matches!(asked.place, Place::Member { .. });
        let depth = asked.depth();
        if depth == Depth::Infinity && !is_member {
            let reason = "Ask with the header Depth: 0 or 1.";
            return Err(Refusal::forbidden((DAV, "propfind-finite-depth"), reason));
        }
        let mut answers = Answers::new(asked, &question);
        let is_deep = depth == Depth::One && !is_member;
        let has_root = !(is_deep && asked.preferences.depth_noroot);
        match &asked.place {
            Place::Root => {
                answers.push(asked.place.clone(), Target::Junction);
                if is_deep {
                    for place in
                        [Place::Principals, Place::Homes(Area::Calendars), Place::Homes(Area::Contacts)]
                    {
                        answers.push(place, Target::Junction);
                    }
                }
            }
            Place::Principals | Place::Homes(_) => {
                answers.push(asked.place.clone(), Target::Junction);
                if is_deep {
                    self.push_own(asked, &mut answers)?;
                }
            }
            Place::Principal { person } => {
                let person = self.visible_person(asked, person)?;
                answers.push(asked.place.clone(), self.principal(person));
            }
            Place::Home { area, person } => {
                let home = self.home(person, asked.identity)?;
                let shelves = home.shelves(*area)?;
                if has_root {
                    let change = shelves.iter().map(|shelf| shelf.info.change_number).max().unwrap_or(0);
                    answers.push(asked.place.clone(), Target::Home { home: &home, change });
                }
                for shelf in shelves.iter().filter(|_| is_deep) {
                    self.push_shelf(&mut answers, &home, shelf)?;
                }
                if is_deep && *area == Area::Calendars && self.has_outbox(&home) {
                    self.push_own_outbox(&mut answers, &home)?;
                }
            }
            Place::Collection { area: Area::Calendars, person, collection } if collection == OUTBOX => {
                self.push_own_outbox(&mut answers, &self.home(person, asked.identity)?)?;
            }
            Place::Collection { area, person, collection } => {
                let home = self.home(person, asked.identity)?;
                let shelf = home.shelf(*area, collection)?;
                if has_root {
                    self.push_shelf(&mut answers, &home, &shelf)?;
                }
                if is_deep {
                    let members = self.members(&home, &shelf)?;
                    self.push_members(&mut answers, (&home, &shelf), &members)?;
                }
            }
            Place::Member { area, person, collection, name } => {
                let home = self.home(person, asked.identity)?;
                let shelf = home.shelf(*area, collection)?;
                let member = self.member(&home, &shelf, name)?;
                self.push_members(&mut answers, (&home, &shelf), &[member])?;
            }
        }
        Ok(answers.finish(None))
    }

    /// # Errors
    /// 404 for everybody else's.
    fn push_own_outbox(&self, answers: &mut Answers<'_>, home: &Home) -> Result<()> {
        if !self.has_outbox(home) {
            return Err(Refusal::missing());
        }
        let (area, person) = (Area::Calendars, home.owner.short_name.clone());
        let place = Place::Collection { area, person, collection: OUTBOX.to_owned() };
        answers.push(place, Target::Outbox(home));
        Ok(())
    }

    fn has_outbox(&self, home: &Home) -> bool {
        home.is_owner && self.mail.is_some()
    }

    /// A person as a resource.
    pub(crate) fn principal(&self, person: Arc<Person>) -> Target<'static> {
        let addresses = match &self.mail {
            Some(mail) => mail.resolver.addresses_of(&person),
            None => person.internet_address.iter().chain(&person.addresses).cloned().collect(),
        };
        Target::Principal { person, addresses }
    }

    /// Of people and homes the one who asks sees the own; others are found by who knows their names.
    fn push_own(&self, asked: &Asked<'_>, answers: &mut Answers<'_>) -> Result<()> {
        let Some(person) = &asked.person else { return Ok(()) };
        let name = person.short_name.clone();
        match asked.place {
            Place::Homes(area) => {
                let home = self.home(&name, asked.identity)?;
                let shelves = home.shelves(area)?;
                let change = shelves.iter().map(|shelf| shelf.info.change_number).max().unwrap_or(0);
                answers.push(Place::Home { area, person: name }, Target::Home { home: &home, change });
            }
            _ => answers.push(Place::Principal { person: name }, self.principal(Arc::clone(person))),
        }
        Ok(())
    }

    /// A person whom the one who asks may know: who may read their document in the directory, or somewhere of theirs.
    pub(crate) fn visible_person(&self, asked: &Asked<'_>, name: &str) -> Result<Arc<Person>> {
        let person = self.person(name).ok_or_else(Refusal::missing)?;
        let is_own = asked.person.as_ref().is_some_and(|asker| asker.id == person.id);
        if is_own || self.reads_person(asked, &person)? {
            return Ok(person);
        }
        Err(Refusal::missing())
    }

    fn reads_person(&self, asked: &Asked<'_>, person: &Person) -> Result<bool> {
        let directory = self.directory.databases().get(scrinium_directory::DIRECTORY_DATABASE)?;
        let access = directory.access(asked.identity)?;
        if access.level() < scrinium_database::Level::Reader {
            return Ok(false);
        }
        Ok(document::read(directory.database(), &person.id, &access)?.is_some())
    }

    pub(crate) fn push_shelf(&self, answers: &mut Answers<'_>, home: &Home, shelf: &Shelf) -> Result<()> {
        let reached = self.reached(home, shelf)?;
        let token = sync::token(home, shelf, reached, None).text();
        answers.push(home.place(shelf), Target::Shelf { home, shelf, token });
        Ok(())
    }

    /// What of a collection the one who asks may see.
    pub(crate) fn members(&self, home: &Home, shelf: &Shelf) -> Result<Vec<Arc<Member>>> {
        let collection = home.collection(self, shelf);
        Self::visible(home, collection.contents()?.members()?)
    }

    /// Of members those that the one who asks may see.
    pub(crate) fn visible(home: &Home, members: Vec<Arc<Member>>) -> Result<Vec<Arc<Member>>> {
        let shows_all = home.database.shows_all(&home.access)?;
        if home.is_owner && shows_all {
            return Ok(members);
        }
        let snapshot = home.database.store().snapshot();
        let mut seen = Vec::with_capacity(members.len());
        for member in members {
            let is_hidden = member.is_private && !home.is_owner;
            if !is_hidden
                && (shows_all
                    || home.access.readable_id(&home.database, &snapshot, member.id.clone())?.is_some())
            {
                seen.push(member);
            }
        }
        Ok(seen)
    }

    /// One member by its name.
    ///
    /// # Errors
    /// 404
    pub(crate) fn member(&self, home: &Home, shelf: &Shelf, name: &str) -> Result<Arc<Member>> {
        let collection = home.collection(self, shelf);
        let found = collection.contents()?.named(name)?;
        let seen = Self::visible(home, found.into_iter().collect())?;
        seen.into_iter().next().ok_or_else(Refusal::missing)
    }

    /// Adds members; their sources are read where they are asked for.
    pub(crate) fn push_members(
        &self,
        answers: &mut Answers<'_>,
        (home, shelf): (&Home, &Shelf),
        members: &[Arc<Member>],
    ) -> Result<()> {
        let floating = home.floating(shelf);
        members.iter().try_for_each(|member| self.push_stored(answers, (home, shelf, member), &floating))
    }

    /// Adds one, unless it has been deleted since.
    ///
    /// # Errors
    /// 507 if the answer is as long as one may be.
    pub(crate) fn push_stored(
        &self,
        answers: &mut Answers<'_>,
        (home, shelf, member): (&Home, &Shelf, &Member),
        floating: &Zone,
    ) -> Result<()> {
        if answers.is_full() {
            return Err(too_many());
        }
        let wants_data = answers.question.wants_data();
        let source = if wants_data { self.source(home, shelf, member)? } else { None };
        if !wants_data || source.is_some() {
            answers.push_member((home, shelf, member), source.as_deref(), floating);
        }
        Ok(())
    }

    pub(crate) fn source(&self, home: &Home, shelf: &Shelf, member: &Member) -> Result<Option<Vec<u8>>> {
        Ok(document::source(&home.database, &member.id, shelf.area, &home.access)?)
    }

    pub(crate) fn get(&self, asked: &Asked<'_>) -> Result<Response<Bytes>> {
        let Place::Member { area, person, collection, name } = &asked.place else {
            self.check_there(asked)?;
            return Err(Refusal::not_allowed("A collection is read with PROPFIND and REPORT."));
        };
        let home = self.home(person, asked.identity)?;
        let shelf = home.shelf(*area, collection)?;
        let member = self.member(&home, &shelf, name)?;
        let source = self.source(&home, &shelf, &member)?.ok_or_else(Refusal::missing)?;
        // Of the bytes that go out: they may be newer than what was looked up.
        let tag = document::tag_of(&source);
        match check(asked.header("if-match"), asked.header("if-none-match"), Some(&tag), true) {
            Verdict::Proceed => {}
            Verdict::Failed => return Err(Refusal::condition_failed()),
            Verdict::NotModified => {
                let mut response = empty(StatusCode::NOT_MODIFIED);
                set_tag(&mut response, &tag);
                return Ok(response);
            }
        }
        let mut response = Response::new(Bytes::from(source));
        set_tag(&mut response, &tag);
        if let Some(schedule_tag) = member.schedule_tag.as_deref().filter(|_| member.tag == tag) {
            set_schedule_tag(&mut response, Some(schedule_tag));
        }
        if let Ok(kind) = HeaderValue::try_from(content_type(*area, &member)) {
            response.headers_mut().insert(CONTENT_TYPE, kind);
        }
        // Somebody's text is for no page to run.
        response.headers_mut().insert(
            http::header::CONTENT_SECURITY_POLICY,
            HeaderValue::from_static("default-src 'none'; sandbox"),
        );
        Ok(response)
    }

    /// # Errors
    /// 404 for what the one who asks does not see.
    fn check_there(&self, asked: &Asked<'_>) -> Result<()> {
        match &asked.place {
            Place::Collection { area, person, collection } => {
                self.home(person, asked.identity)?.shelf(*area, collection).map(drop)
            }
            Place::Home { person, .. } => self.home(person, asked.identity).map(drop),
            Place::Principal { person } => self.visible_person(asked, person).map(drop),
            _ => Ok(()),
        }
    }
}
