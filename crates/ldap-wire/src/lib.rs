//! LDAP of version 3 (RFC 4511 to 4519) on the wire, for clients and servers alike.
//!
//! A [`MessageReader`] puts messages together from bytes that come in pieces; [`Message::parse`] reads one, and
//! [`Message::to_bytes`] writes it. A [`Filter`] is a tree on the wire and a text for people; a [`DistinguishedName`] is
//! compared as a [`NormalName`]; a [`Matcher`] holds a filter against entries, by the rules of the attributes that
//! [`schema`] knows; a [`Selection`] takes what was asked for out of an entry.
//!
//! ```
//! use scrinium_ldap_wire::{Entry, Filter, Matcher, MessageLimits, Truth};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let entry = Entry::new("uid=ada,dc=example").with("objectClass", ["person"]).with("cn", ["Ada  Lovelace"]);
//! let filter = Filter::parse("(&(objectClass=person)(cn=ada love*))", MessageLimits::ANONYMOUS)?;
//! assert_eq!(Matcher::new(&filter).matches(&entry), Truth::True);
//! # Ok(())
//! # }
//! ```
//!
//! *Invariant*: pure: no sockets, no clock, nothing of the server. Nothing panics, whatever the bytes; each length is checked
//! against a limit or against the bytes that are there before memory is used; filters have a depth and a number, lists a
//! number of members. What is written is read back equal; a value never ends a filter, a name or a URL early. No
//! password is shown by `Debug`.

#![forbid(unsafe_code)]

mod ber;
mod control;
mod entry;
mod evaluate;
mod extension;
mod filter;
mod filter_text;
mod frame;
mod limits;
mod matching;
mod message;
mod name;
mod normal;
mod operation;
mod operation_read;
mod operation_write;
mod prepare;
mod result;
pub mod schema;
mod text;
mod time;
mod url;

pub use control::{
    ASSERTION, AUTHORIZATION_IDENTITY_REQUEST, AUTHORIZATION_IDENTITY_RESPONSE, Control, MANAGE_DSA_IT,
    PAGED_RESULTS, PROXIED_AUTHORIZATION, PagedResults, SHOW_DELETED, SORT_REQUEST, SORT_RESPONSE, SortKey,
    SortResponse, VIRTUAL_LIST,
};
pub use entry::{Attribute, Entry, Selection};
pub use evaluate::{Matcher, Truth, compare};
pub use extension::{
    AuthorizationIdentity, CANCEL, NOTICE_OF_DISCONNECTION, PASSWORD_MODIFY, PasswordModify, START_TLS,
    WHO_AM_I,
};
pub use filter::{Extensible, Filter, Identifier, Subject, Substrings};
pub use filter_text::{FilterError, FilterFault};
pub use frame::{FrameError, MessageReader};
pub use limits::{Fault, MessageLimits};
pub use matching::{Rule, RuleUse};
pub use message::{Message, MessageError, MessageId};
pub use name::{DistinguishedName, NAME_MAX_BYTES, NAME_MAX_PARTS, NameError, NameFault, RelativeName};
pub use normal::NormalName;
pub use operation::{
    Assertion, Authentication, BindRequest, BindResponse, CompareRequest, DereferenceAliases,
    ExtendedRequest, ExtendedResponse, IntermediateResponse, ModifyAction, ModifyNameRequest, ModifyRequest,
    Operation, RequestKind, Scope, SearchRequest, Secret,
};
pub use result::{LdapResult, ResultCode};
pub use time::GeneralizedTime;
pub use url::{LdapUrl, URL_MAX_BYTES, UrlError};
