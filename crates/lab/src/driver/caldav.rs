//! A person's calendar by CalDAV (RFC 4791). Each method is one request, and each answer is checked.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName, IF_MATCH, IF_NONE_MATCH};
use http::{HeaderValue, Method};
use scrinium_dav_wire::header::Depth;
use scrinium_dav_wire::report::{Report, Requested, Selection};
use scrinium_dav_wire::value::DateTime;
use scrinium_dav_wire::xml::{Element, Name, XmlLimits};
use scrinium_dav_wire::{ComponentFilter, DAV, TimeRange};

use super::connection::{Address, Answer, Connection};
use super::failure::{Failure, FailureKind};
use super::icalendar;
use crate::content::Message;

/// Events that a user remembers at most.
const REMEMBERED: usize = 64;

/// Where calendars are: a server, and the path of a user's calendar.
#[derive(Clone, Debug)]
pub(super) struct CalendarTarget {
    pub(super) address: Arc<Address>,
    /// With a slash at both ends; `{user}` is the user's name.
    path: String,
}

impl CalendarTarget {
    /// Reads `caldav://host:port/path/{user}/calendar/`.
    pub(super) fn parse(target: &str) -> Result<Self, String> {
        let wrong = |why: &str| {
            format!(
                "{target} is no address of calendars: {why}; write caldav://HOST:PORT/{{user}}/calendar/, with the path that the server has"
            )
        };
        let rest = target.strip_prefix("caldav://").ok_or_else(|| wrong("it begins with caldav://"))?;
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        let path = format!("/{}/", path.trim_end_matches('/'));
        if !path.contains("{user}") {
            return Err(wrong("the path of a user's calendar has {user} in it"));
        }
        Ok(Self { address: Arc::new(Address::parse(&format!("http://{host}"))?), path })
    }

    fn path_for(&self, person: &str) -> String {
        self.path.replace("{user}", person)
    }
}

/// An event in a calendar.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Known {
    id: String,
    etag: Option<String>,
}

/// One user's connection to a calendar server.
pub struct CalendarSession {
    connection: Connection,
    path: String,
    domain: String,
    /// Events of the laboratory's that were written or listed.
    known: Vec<Known>,
}

impl CalendarSession {
    pub(super) fn new(target: &CalendarTarget, connection: Connection, person: &str, domain: &str) -> Self {
        let path = target.path_for(person);
        Self { connection, path, domain: domain.to_owned(), known: Vec::new() }
    }

    /// Drops the connection; the next request makes a new one.
    pub fn close(&mut self) {
        self.connection.close();
    }

    /// Ids of the events in sight.
    #[must_use]
    pub fn events(&self) -> Vec<String> {
        self.known.iter().map(|event| event.id.clone()).collect()
    }

    fn name(&self, id: &str) -> String {
        format!("{}{id}.ics", self.path)
    }

    async fn ask(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(HeaderName, &str)],
        body: Option<Vec<u8>>,
    ) -> Result<Answer, Failure> {
        let method =
            Method::from_bytes(method.as_bytes()).map_err(|error| Failure::wrong(error.to_string()))?;
        let mut values = Vec::with_capacity(headers.len());
        for (name, value) in headers {
            let value = HeaderValue::from_str(value).map_err(|error| Failure::wrong(error.to_string()))?;
            values.push((name.clone(), value));
        }
        self.connection.exchange_with(method, path, &values, body.map(Bytes::from)).await
    }

    /// Makes the calendar where there is none. Says whether it was made.
    pub(super) async fn prepare(&mut self) -> Result<bool, Failure> {
        let path = self.path.clone();
        let zero = Depth::Zero.to_string();
        let depth = (HeaderName::from_static("depth"), zero.as_str());
        let answer = self.ask("PROPFIND", &path, &[depth], None).await?;
        if answer.status.as_u16() == 207 {
            return Ok(false);
        }
        let made = self.ask("MKCALENDAR", &path, &[], None).await?;
        made.expect(&[201]).map(|_| true)
    }

    /// What the server calls itself.
    pub(super) async fn name_of_server(&mut self) -> Result<String, Failure> {
        let path = self.path.clone();
        let answer = self.ask("OPTIONS", &path, &[], None).await?;
        Ok(answer.server.unwrap_or_else(|| "a CalDAV server".to_owned()))
    }

    /// Puts a new event into the calendar.
    ///
    /// # Errors
    /// [`Failure`]; an event of its name must not be there.
    pub async fn add(&mut self, message: &Message) -> Result<(), Failure> {
        let headers = [(CONTENT_TYPE, "text/calendar; charset=utf-8"), (IF_NONE_MATCH, "*")];
        let (path, body) = (self.name(&message.id), icalendar::event(message, &self.domain));
        let answer = self.ask("PUT", &path, &headers, Some(body)).await?.expect(&[201, 204])?;
        self.know(&message.id, answer.etag);
        Ok(())
    }

    /// Lists the events between two times (seconds since 1970); gives how many there are.
    ///
    /// # Errors
    /// [`Failure`]; every event has a tag, and the one that it was written with.
    pub async fn list(&mut self, from_s: i64, to_s: i64) -> Result<usize, Failure> {
        let query = events_between(from_s, to_s).element().write();
        let headers =
            [(CONTENT_TYPE, "application/xml; charset=utf-8"), (HeaderName::from_static("depth"), "1")];
        let path = self.path.clone();
        let answer = self.ask("REPORT", &path, &headers, Some(query.into_bytes())).await?.expect(&[207])?;
        let listed = multistatus(&answer)?;
        for (name, etag) in &listed {
            let id = name.rsplit('/').next().and_then(|name| name.strip_suffix(".ics")).unwrap_or_default();
            if etag.is_empty() {
                return Err(answer.failure(FailureKind::WrongAnswer, &format!("{name} has no tag: ")));
            }
            let before = self.known.iter().find(|known| known.id == id).and_then(|known| known.etag.as_ref());
            if before.is_some_and(|before| before != etag) {
                return Err(answer.failure(
                    FailureKind::WrongAnswer,
                    &format!("{name} has another tag than when it was written: "),
                ));
            }
            if id.starts_with("lab-") {
                self.know(id, Some(etag.clone()));
            }
        }
        Ok(listed.len())
    }

    /// Reads an event.
    ///
    /// # Errors
    /// [`Failure`]; it must be the one that was asked for, with the tag that is known, and hold what was written.
    pub async fn read(&mut self, id: &str) -> Result<(), Failure> {
        let path = self.name(id);
        let answer = self.ask("GET", &path, &[], None).await?.expect(&[200])?;
        if let Err(why) = icalendar::check(&answer.body, id) {
            return Err(answer.failure(FailureKind::WrongAnswer, &format!("{why}: ")));
        }
        let known = self.known.iter().find(|known| known.id == id).and_then(|known| known.etag.as_ref());
        if let (Some(known), Some(etag)) = (known, &answer.etag)
            && known != etag
        {
            return Err(
                answer.failure(FailureKind::WrongAnswer, &format!("the tag is {etag} and was {known}: "))
            );
        }
        self.know(id, answer.etag);
        Ok(())
    }

    /// Writes an event again, if nobody else has in the meantime.
    ///
    /// # Errors
    /// [`Failure`]; [`FailureKind::Conflict`] when somebody has.
    pub async fn update(&mut self, id: &str, message: &Message) -> Result<(), Failure> {
        let mut message = message.clone();
        id.clone_into(&mut message.id);
        let etag = self.etag(id);
        let headers = [(CONTENT_TYPE, "text/calendar; charset=utf-8"), (IF_MATCH, etag.as_str())];
        let (path, body) = (self.name(id), icalendar::event(&message, &self.domain));
        let answer = self.ask("PUT", &path, &headers, Some(body)).await?;
        let answer = conflict(answer)?.expect(&[200, 201, 204])?;
        if answer.etag.as_ref() == Some(&etag) {
            return Err(answer.failure(FailureKind::WrongAnswer, "the event changed and its tag did not: "));
        }
        self.know(id, answer.etag);
        Ok(())
    }

    /// Deletes an event, if nobody else has changed it in the meantime.
    ///
    /// # Errors
    /// [`Failure`]
    pub async fn delete(&mut self, id: &str) -> Result<(), Failure> {
        let (path, etag) = (self.name(id), self.etag(id));
        let answer = self.ask("DELETE", &path, &[(IF_MATCH, &etag)], None).await?;
        conflict(answer)?.expect(&[200, 204])?;
        self.known.retain(|known| known.id != id);
        Ok(())
    }

    /// The tag of an event; any, where the server has not told it.
    fn etag(&self, id: &str) -> String {
        let known = self.known.iter().find(|known| known.id == id);
        known.and_then(|known| known.etag.clone()).unwrap_or_else(|| "*".to_owned())
    }

    fn know(&mut self, id: &str, etag: Option<String>) {
        self.known.retain(|known| known.id != id);
        if self.known.len() >= REMEMBERED {
            self.known.remove(0);
        }
        self.known.push(Known { id: id.to_owned(), etag });
    }
}

/// 412: somebody else was faster.
fn conflict(answer: Answer) -> Result<Answer, Failure> {
    if answer.status.as_u16() == 412 { Err(answer.failure(FailureKind::Conflict, "")) } else { Ok(answer) }
}

/// The limits of an answer; it is no longer than any may be already.
const LIMITS: XmlLimits = XmlLimits { bytes: usize::MAX, depth: 32, elements: 1 << 20, attributes: 32 };

/// Asks for the tags of the events between two times.
fn events_between(from_s: i64, to_s: i64) -> Report {
    let time = |second: i64| DateTime::parse(&icalendar::time(second)).ok();
    let range = TimeRange { start: time(from_s), end: time(to_s) };
    let events =
        ComponentFilter { name: "VEVENT".to_owned(), time_range: Some(range), ..ComponentFilter::default() };
    let filter = ComponentFilter {
        name: "VCALENDAR".to_owned(),
        components: vec![events],
        ..ComponentFilter::default()
    };
    let selection = Selection::Properties(vec![Requested::Property(Name::new(DAV, "getetag"))]);
    Report::CalendarQuery { selection, filter, time_zone: None, time_zone_id: None }
}

/// Names and tags of what a multi-status answer lists (RFC 4918, section 13), whatever namespaces the server writes.
fn multistatus(answer: &Answer) -> Result<Vec<(String, String)>, Failure> {
    let root = Element::parse(&answer.body, LIMITS)
        .map_err(|error| answer.failure(FailureKind::WrongAnswer, &format!("{error}: ")))?;
    let responses = root.elements().filter(|child| is_called(child, "response"));
    Ok(responses.map(|response| (text_of(response, "href"), text_of(response, "getetag"))).collect())
}

fn is_called(element: &Element, name: &str) -> bool {
    element.name.local.eq_ignore_ascii_case(name)
}

/// The text of what is called so within an element, or nothing.
fn text_of(element: &Element, name: &str) -> String {
    let mut within: Vec<&Element> = element.elements().collect();
    while let Some(next) = within.pop() {
        if is_called(next, name) {
            return next.text().trim().to_owned();
        }
        within.extend(next.elements());
    }
    String::new()
}
