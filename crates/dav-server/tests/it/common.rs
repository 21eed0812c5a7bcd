//! A service over databases in a temporary folder, with a few people, and what programs send to it.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use scrinium_catalog::Databases;
use scrinium_clock::{Clock, ManualClock};
use scrinium_database::{Access, DatabaseOptions, Edit, EditMode, Identity};
use scrinium_dav_server::{DavMail, DavParts, DavService};
use scrinium_dav_wire::multistatus::Multistatus;
use scrinium_dav_wire::xml::XmlLimits;
use scrinium_directory::{DIRECTORY_DATABASE, Directory, Found, NameLookup as _};
use scrinium_http::{Dav as _, DavOutcome, DavRequest};
use scrinium_mail::{Mailboxes, Resolver, Router, RouterOptions, let_delegates_in};
use scrinium_statistics::Registry;
use scrinium_store::{Store, StoreOptions};
use serde_json::{Value, json};

/// 2026-03-02, 12:00 UTC.
pub(crate) const NOW_MS: u64 = 1_772_452_800_000;

static SERVER: Access = Access::of_the_server("a test");

pub(crate) struct Server {
    pub(crate) service: Arc<DavService>,
    pub(crate) databases: Databases,
    pub(crate) directory: Arc<Directory>,
    pub(crate) mailboxes: Mailboxes,
    router: Mutex<Router>,
    pub(crate) clock: Clock,
    pub(crate) manual: ManualClock,
    _folder: tempfile::TempDir,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn tag(&self) -> String {
        self.headers["etag"].to_str().unwrap().to_owned()
    }

    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.text());
        self
    }

    pub(crate) fn multistatus(&self) -> Multistatus {
        assert_eq!(self.status, 207, "{}", self.text());
        let limits = XmlLimits { bytes: 64 << 20, elements: 1_000_000, ..XmlLimits::default() };
        Multistatus::parse(&self.body, limits).unwrap()
    }

    /// The last segments of the paths in an answer, in its order.
    pub(crate) fn names(&self) -> Vec<String> {
        let responses = self.multistatus().responses;
        responses.iter().map(|one| one.href().rsplit('/').next().unwrap().to_owned()).collect()
    }
}

impl Server {
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let manual = Clock::manual(NOW_MS);
        let clock = manual.clock();
        let mut options = StoreOptions::new(folder.path());
        options.budget_bytes = Some(64 << 20);
        options.log_extent_bytes = 4 << 20;
        options.clock = clock.clone();
        let store = Store::open(options, &Registry::new()).unwrap();
        // Closing takes a second, which tests need not wait for.
        std::mem::forget(store.clone());
        let databases = Databases::open(&store, DatabaseOptions::default()).unwrap();
        let directory = Arc::new(Directory::open(&databases).unwrap());
        let registry = Registry::new();
        let mailboxes = Mailboxes::open(&databases, 1, &registry).unwrap();
        let service = Arc::new(service(&databases, &directory, &mailboxes, &clock));
        let resolver = resolver(&directory);
        let router = Router::open(&databases, &mailboxes, resolver, RouterOptions::default(), &registry);
        let router = Mutex::new(router.unwrap().with_calendars(service.clone()));
        let server =
            Self { service, databases, directory, mailboxes, router, clock, manual, _folder: folder };
        server.person("ada", &json!({"MailReaders": ["rita"], "MailEditors": ["edith"]}));
        for name in ["bob", "rita", "edith"] {
            server.person(name, &json!({}));
        }
        server.directory.catch_up().unwrap();
        let Found::Person(ada) = server.directory.find("ada") else { panic!("there is no ada") };
        let_delegates_in(&server.databases, &ada).unwrap();
        server
    }

    /// What a service says that has not followed anything.
    pub(crate) fn fresh(&self) -> DavService {
        service(&self.databases, &self.directory, &self.mailboxes, &self.clock)
    }

    /// Brings all mail to whom it is for.
    pub(crate) fn deliver(&self) {
        let mut router = self.router.lock().unwrap();
        for _ in 0..20 {
            if router.round().unwrap().memos == 0 {
                return;
            }
        }
        panic!("mail goes round and round");
    }

    pub(crate) fn person(&self, name: &str, more: &Value) {
        let mut person = json!({"_id": format!("person:{name}"), "Form": "Person", "ShortName": name,
            "FullName": [format!("{name} Someone")], "InternetAddress": format!("{name}@acme.example"),
            "MailFile": format!("mail/{name}")});
        person.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let edit = Edit { json: person.to_string().into(), ..Edit::default() };
        let database = self.databases.get(DIRECTORY_DATABASE).unwrap();
        let stored = database.update(vec![edit], EditMode::Interactive, &SERVER).unwrap().wait().unwrap();
        stored.into_iter().for_each(|one| drop(one.unwrap()));
    }

    pub(crate) fn identity(&self, who: &str) -> Identity {
        match who {
            "" => Identity::anonymous(),
            "admin" => Identity::new("admin", vec!["_admin".to_owned()]),
            who => {
                let Found::Person(person) = self.directory.find(who) else { panic!("there is no {who}") };
                let groups = self.directory.groups_of(&person);
                Identity::with_groups(&person.short_name, &person.roles, &groups)
            }
        }
    }

    pub(crate) fn ask_as(
        &self,
        who: &str,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        self.ask_of(&self.service, who, (method, path), headers, body)
    }

    pub(crate) fn ask_of(
        &self,
        service: &DavService,
        who: &str,
        (method, path): (&str, &str),
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        let mut all = HeaderMap::new();
        for (name, value) in headers {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            all.insert(name, HeaderValue::from_str(value).unwrap());
        }
        let request = DavRequest {
            method: Method::from_bytes(method.as_bytes()).unwrap(),
            path: path.to_owned(),
            headers: all,
            body: body.into(),
            identity: self.identity(who),
        };
        let response = match service.answer(&request) {
            DavOutcome::Answered(response) => response,
            DavOutcome::Storing(storing) => (storing.finish)(storing.update.wait()),
        };
        let (parts, body) = response.into_parts();
        Answer { status: parts.status.as_u16(), headers: parts.headers, body }
    }

    /// What anybody is given by a link.
    pub(crate) fn published(&self, path: &str) -> Answer {
        let (parts, body) = self.service.published(path).into_parts();
        Answer { status: parts.status.as_u16(), headers: parts.headers, body }
    }

    /// As ada.
    pub(crate) fn ask(&self, method: &str, path: &str, body: impl Into<Bytes>) -> Answer {
        self.ask_as("ada", method, path, &[("depth", "1")], body)
    }

    pub(crate) fn put(&self, name: &str, body: &str) -> Answer {
        self.ask_as("ada", "PUT", &format!("{CALENDAR}{name}"), &[], body.to_owned())
    }
}

fn resolver(directory: &Arc<Directory>) -> Resolver {
    Resolver::new(directory.clone(), &["acme.example".to_owned()])
}

fn service(
    databases: &Databases,
    directory: &Arc<Directory>,
    mailboxes: &Mailboxes,
    clock: &Clock,
) -> DavService {
    DavService::new(DavParts {
        mail: Some(DavMail { mailboxes: mailboxes.clone(), resolver: resolver(directory) }),
        databases: databases.clone(),
        directory: Arc::clone(directory),
        clock: clock.clone(),
    })
}

pub(crate) const CALENDAR: &str = "/_dav/calendars/ada/calendar/";
pub(crate) const TASKS: &str = "/_dav/calendars/ada/tasks/";
pub(crate) const CONTACTS: &str = "/_dav/contacts/ada/contacts/";

/// An event with further lines.
pub(crate) fn event(uid: &str, start: &str, more: &str) -> String {
    format!(
        "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//test//EN\r\nBEGIN:VEVENT\r\nUID:{uid}\r\n\
         DTSTAMP:20260101T000000Z\r\nDTSTART{start}\r\nSUMMARY:rosebud {uid}\r\n{more}END:VEVENT\r\nEND:VCALENDAR\r\n"
    )
}

pub(crate) fn query(filter: &str, data: &str) -> String {
    format!(
        "<C:calendar-query xmlns:C=\"urn:ietf:params:xml:ns:caldav\" xmlns:D=\"DAV:\"><D:prop><D:getetag/>\
         <C:calendar-data>{data}</C:calendar-data></D:prop><C:filter><C:comp-filter name=\"VCALENDAR\">{filter}\
         </C:comp-filter></C:filter></C:calendar-query>"
    )
}

pub(crate) fn range(component: &str, from: &str, to: &str) -> String {
    format!(
        "<C:comp-filter name=\"{component}\"><C:time-range start=\"{from}\" end=\"{to}\"/></C:comp-filter>"
    )
}
