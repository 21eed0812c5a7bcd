//! What a route is: an address pattern, its methods, and what each of them takes, needs and is limited to.
//!
//! The table itself is [`crate::route_table`]. From it come the parsing of addresses, the dispatch, `Allow`, the names of
//! operations, the limits that hold before a byte of a body is read, and the table of docs/reference/http.md.

use std::pin::Pin;

use http::{Method, Response};
use scrinium_database::Level;

use crate::body::RequestBody;
use crate::context::Context;
use crate::error::Result;
use crate::operations::Operation;
use crate::response::Body;

/// The method of an entry that answers whatever the method is.
pub(crate) const ANY_METHOD: &str = "*";

/// The addresses of one pattern.
#[derive(Debug)]
pub struct Route {
    /// Segments: text that stands for itself, `{name}` for one segment of any text, `{name...}` for the rest of the
    /// address. See `accepts` for what some of them leave out.
    pub path: &'static str,
    /// What may be asked of them; `HEAD` goes with `GET`.
    pub methods: &'static [MethodRoute],
}

/// One method of a route.
#[derive(Debug)]
pub struct MethodRoute {
    /// `GET`, or `*` for whatever the method is.
    pub method: &'static str,
    /// What it is for statistics and logs.
    pub operation: Operation,
    /// Who may ask. The dispatch enforces it; no handler can be reached without.
    pub need: Need,
    /// What its body may be.
    pub limits: Limits,
    /// Query parameters that it heeds.
    pub parameters: &'static [&'static str],
    /// Whether it is to change something. Some ask by POST, for want of room in an address.
    pub writes: bool,
    pub(crate) handler: Handler,
}

/// What a request must bring along to be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Nothing: everybody may ask.
    Anonymous,
    /// A name: somebody who has logged in.
    Person,
    /// At least this level in the database that the address names.
    Database(Level),
    /// An administrator of the server.
    Administrator,
    /// An administrator of the server, or somebody who may look on.
    Viewer,
}

/// What a request's body may be. All of it holds before a byte is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest body.
    pub body: BodyLimit,
    /// Whether it may come compressed (`Content-Encoding: gzip`); its limit is then that of the inflated body.
    pub gzip: bool,
    /// JSON values in it, members of objects and elements of arrays counted; documents have limits of their own.
    pub elements: usize,
    /// How long a short body may take to come; longer ones get more time by their bytes, see `body`.
    pub seconds: u64,
}

/// The longest body of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyLimit {
    /// None is wanted; a short one is thrown away.
    Nothing,
    /// This many bytes.
    Bytes(usize),
    /// A document by `document.max_bytes`, and attachments that stand in it, all within `http.max_request_bytes`.
    Document,
    /// A document that has no attachments: `document.max_bytes`.
    PlainDocument,
    /// The port's `http.max_request_bytes`.
    Port,
    /// Passed on as it comes, and held in pieces only: `attachment.max_bytes`.
    Attachment,
}

/// Answers a request.
pub(crate) type Handler = for<'r> fn(&'r Context, &'r mut RequestBody) -> Answering<'r>;

pub(crate) type Answering<'r> = Pin<Box<dyn Future<Output = Result<Response<Body>>> + Send + 'r>>;

impl Route {
    /// The entry of a method.
    pub(crate) fn method(&self, method: &Method) -> Option<&'static MethodRoute> {
        let wanted = if method == Method::HEAD { "GET" } else { method.as_str() };
        self.methods.iter().find(|entry| entry.method == wanted || entry.method == ANY_METHOD)
    }

    /// What `Allow` says (RFC 9110 §10.2.1).
    #[must_use]
    pub fn allow(&self) -> String {
        let mut names = Vec::new();
        for entry in self.methods {
            names.push(entry.method);
            if entry.method == "GET" {
                names.push("HEAD");
            }
        }
        names.join(",")
    }

    /// Whether somebody without a name may ask something here.
    pub(crate) fn is_open(&self) -> bool {
        self.methods.iter().any(|entry| entry.need == Need::Anonymous)
    }
}

impl Need {
    /// The level that a handler opens the request's database with. Where the address names none, no handler opens one,
    /// and one that did would need all there is.
    pub(crate) const fn level(self) -> Level {
        match self {
            Self::Database(level) => level,
            Self::Anonymous | Self::Person | Self::Administrator | Self::Viewer => Level::Manager,
        }
    }
}

/// Whether the parameter `name` may stand for a decoded segment. What begins with an underscore is CouchDB's own, but
/// for the names of databases, which are checked where they are looked up.
pub(crate) fn accepts(name: &str, segment: &str) -> bool {
    match name {
        "docid" => !segment.starts_with('_'),
        "special" | "function" => segment.starts_with('_'),
        // `_index/_design/{ddoc}/…` has a pattern of its own.
        "index_ddoc" => segment != "_design",
        _ => true,
    }
}
