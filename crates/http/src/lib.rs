//! CouchDB's HTTP interface to the databases.
//!
//! A port accepts connections, a request is parsed into a target, its sender is known and allowed or
//! refused, one hand-off to the worker pool does the database's work, and the answer goes out, in
//! pieces where it is long. What a CouchDB 3 client sees (paths, parameters, JSON, error words,
//! headers) is CouchDB's; where the server adds something it has a path of its own (`/_console`,
//! `/metrics`).
//!
//! It knows nothing of how documents are stored, who people are or how the server is run: those come
//! through [`scrinium_catalog::Databases`], [`Authenticator`], [`Administration`] and
//! [`scrinium_worker::WorkerPool`].
//!
//! What may be asked is one table ([`routes()`]): for each address and method the operation, who may ask, and what the body
//! may be. Nothing is answered that is not in it.

mod access;
mod access_list;
mod acme;
mod address;
mod alarm;
mod asked;
mod attachment;
mod audit;
mod audit_record;
mod authority;
mod body;
mod budget;
mod bulk;
mod bulk_get;
mod changes;
mod client;
mod compact;
mod compress;
mod configuration;
mod connection;
mod context;
mod copy;
mod cors;
mod credentials;
mod database_updates;
mod databases;
mod dav;
mod delivery;
mod design;
mod dispatch;
mod document;
mod domain_check;
mod encoding;
mod error;
mod feed;
mod find;
mod folder;
mod framing;
mod gzip;
mod handler;
mod head;
mod held;
mod held_mail;
mod indexes;
mod intake;
mod linger;
mod mail_rules;
mod mail_setup;
mod message_parts;
mod multipart;
mod observer;
mod open_revisions;
mod openapi;
mod operation_log;
mod operation_timer;
mod operations;
mod passwords;
mod patience;
mod people_search;
mod person_feed;
mod port;
mod port_options;
mod provider_sign_in;
mod query;
mod range;
mod related;
mod replication;
mod response;
mod revision_parts;
mod route_table;
mod router;
mod routes;
mod server_pages;
mod service;
mod session;
mod settings;
mod standing;
mod state;
mod stream;
mod text_search;
mod transaction;
mod unread;
mod upload;
mod users;
mod uuid;
mod view;
mod waiting;
mod web_pages;
mod write;

pub use acme::AcmeAnswers;
pub use audit::{Audit, AuditAction, AuditEntry};
pub use authority::{
    Administration, Authenticator, ConsoleAnswer, CredentialAnswer, CredentialRefusal, CredentialRequest,
    CredentialWork, CredentialsOf, Hashing, Identity, LoginRefusal, PersonChange, ProviderBeginning,
    ProviderEnding, ProviderReturn, ProviderSignIn, ProxiedName, SecondStep, Service, Session, SessionToken,
    SignIn, Verification,
};
pub use dav::{Dav, DavFinish, DavOutcome, DavRequest, DavStoring, DavUpdate};
pub use domain_check::{DomainCheck, DomainCheckRefusal, DomainFindings};
pub use error::HttpError;
pub use held_mail::HeldMail;
pub use mail_rules::{MailRules, MailRulesOf, MailRulesRefusal};
pub use mail_setup::MailSetup;
pub use observer::{Observer, Operated, Used};
pub use operation_log::OperationLogOptions;
pub use operations::Operation;
pub use people_search::{PeopleQuery, PeopleSearch};
pub use port::{Server, follow, http_port};
pub use port_options::PortOptions;
pub use response::Body;
pub use route_table::routes;
pub use routes::{BodyLimit, Limits, MethodRoute, Need, Route};
pub use state::{HttpOptions, HttpState, Parts};
