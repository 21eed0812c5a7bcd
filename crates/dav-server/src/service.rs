//! One request: what it asks for, and who answers it.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{HeaderName, HeaderValue};
use http::{Response, StatusCode};
use scrinium_calendar::zone::Instant;
use scrinium_catalog::Databases;
use scrinium_clock::Clock;
use scrinium_database::Identity;
use scrinium_dav::place::Place;
use scrinium_dav_wire::header::{Depth, Preferences};
use scrinium_directory::{Directory, Person};
use scrinium_http::{Dav, DavOutcome, DavRequest};

use crate::collection::Collections;
use crate::files::{Locks, is_about_files};
use crate::refusal::{Refusal, Result};
use crate::scheduling::DavMail;

/// What is announced (RFC 4918, section 10.1).
const CLASSES: &str =
    "1, 3, access-control, extended-mkcol, calendar-access, calendar-auto-schedule, addressbook";

/// The methods of a resource.
const METHODS: &str =
    "OPTIONS, GET, HEAD, PUT, DELETE, PROPFIND, PROPPATCH, MKCOL, MKCALENDAR, COPY, MOVE, REPORT, POST";

/// What the service needs.
pub struct DavParts {
    /// All databases.
    pub databases: Databases,
    /// The directory.
    pub directory: Arc<Directory>,
    /// The time.
    pub clock: Clock,
    /// Where messages about meetings go. Without it nobody hears of any.
    pub mail: Option<DavMail>,
}

/// Answers CalDAV and CardDAV.
pub struct DavService {
    pub(crate) databases: Databases,
    pub(crate) directory: Arc<Directory>,
    clock: Clock,
    pub(crate) collections: Collections,
    pub(crate) mail: Option<DavMail>,
    pub(crate) locks: Locks,
}

/// A request, taken apart.
pub(crate) struct Asked<'r> {
    pub(crate) place: Place,
    pub(crate) identity: &'r Identity,
    /// The person who asks, where the directory has them.
    pub(crate) person: Option<Arc<Person>>,
    pub(crate) preferences: Preferences,
    pub(crate) request: &'r DavRequest,
}

impl Asked<'_> {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.request.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// How deep it goes. What is not said or cannot be read goes without end (RFC 4918, section 9.1).
    pub(crate) fn depth(&self) -> Depth {
        self.header("depth").and_then(Depth::parse).unwrap_or(Depth::Infinity)
    }
}

impl DavService {
    /// A service over these databases.
    #[must_use]
    pub fn new(parts: DavParts) -> Self {
        let DavParts { databases, directory, clock, mail } = parts;
        Self {
            databases,
            directory,
            clock,
            collections: Collections::default(),
            mail,
            locks: Locks::default(),
        }
    }

    pub(crate) fn now(&self) -> Instant {
        Instant(i64::try_from(self.clock.now_s()).unwrap_or(i64::MAX))
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    fn outcome(&self, request: &DavRequest) -> Result<DavOutcome> {
        if is_about_files(request) {
            return self.files(request);
        }
        let place = Place::parse(&request.path).ok_or_else(Refusal::missing)?;
        let preferences = request.headers.get("prefer").and_then(|value| value.to_str().ok());
        let asked = Asked {
            place,
            identity: &request.identity,
            person: self.asker(&request.identity),
            preferences: preferences.map(Preferences::parse).unwrap_or_default(),
            request,
        };
        let answered = match request.method.as_str() {
            "OPTIONS" => Ok(options()),
            "PROPFIND" => self.propfind(&asked),
            "REPORT" => self.report(&asked),
            "GET" => self.get(&asked),
            "POST" => self.post(&asked),
            "MKCOL" => self.make_collection(&asked, false),
            "MKCALENDAR" => self.make_collection(&asked, true),
            "PROPPATCH" => self.change_properties(&asked),
            "PUT" => return self.put(&asked),
            "DELETE" => return self.delete(&asked),
            "COPY" => return self.copy(&asked),
            "MOVE" => return self.move_member(&asked),
            _ => Err(Refusal::not_allowed("The method is not known here.")),
        };
        answered.map(DavOutcome::Answered)
    }
}

impl Dav for DavService {
    fn answer(&self, request: &DavRequest) -> DavOutcome {
        let outcome = self.outcome(request);
        outcome.unwrap_or_else(|refusal| DavOutcome::Answered(refusal.into_response()))
    }

    fn published(&self, path: &str) -> Response<Bytes> {
        self.published_at(path).unwrap_or_else(Refusal::into_response)
    }
}

fn options() -> Response<Bytes> {
    let mut response = empty(StatusCode::OK);
    let headers = response.headers_mut();
    headers.insert(HeaderName::from_static("dav"), HeaderValue::from_static(CLASSES));
    headers.insert(http::header::ALLOW, HeaderValue::from_static(METHODS));
    response
}

/// An answer without a body.
pub(crate) fn empty(status: StatusCode) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = status;
    response
}

/// The same with what class of server this is: some programs look for it in every answer.
pub(crate) fn with_classes(mut response: Response<Bytes>) -> Response<Bytes> {
    response.headers_mut().insert(HeaderName::from_static("dav"), HeaderValue::from_static(CLASSES));
    response
}

/// A body of XML.
pub(crate) fn xml(status: StatusCode, text: String) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(http::header::CONTENT_TYPE, crate::refusal::XML);
    with_classes(response)
}

/// Sets the tag of a meeting (RFC 6638, section 8.3).
pub(crate) fn set_schedule_tag(response: &mut Response<Bytes>, tag: Option<&str>) {
    if let Some(value) = tag.and_then(|tag| HeaderValue::try_from(format!("\"{tag}\"")).ok()) {
        response.headers_mut().insert(HeaderName::from_static("schedule-tag"), value);
    }
}

/// Sets the tag of a resource.
pub(crate) fn set_tag(response: &mut Response<Bytes>, tag: &str) {
    if let Ok(value) = HeaderValue::try_from(format!("\"{tag}\"")) {
        response.headers_mut().insert(http::header::ETAG, value);
    }
}
