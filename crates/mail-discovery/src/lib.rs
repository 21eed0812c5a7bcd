//! What a mail domain publishes, so that mail programs and other servers find its ports: autoconfig (Thunderbird and many others),
//! Autodiscover (Outlook), configuration profiles (Apple), records of DNS; and MTA-STS (RFC 8461), ours and that of others.
//!
//! All of it is made from one [`MailService`], so that no two of them differ.
//!
//! *Invariant*: pure: no sockets, no clock, no storage. Nothing panics, whatever a client or another server sends; XML is written by a
//! library, so that no value ends an element; what is read has limits.

#![forbid(unsafe_code)]

mod autoconfig;
mod autodiscover;
mod profile;
mod records;
mod service;
mod xml;

pub mod sts;

pub use autoconfig::autoconfig;
pub use autodiscover::{
    AutodiscoverAnswer, AutodiscoverError, REQUEST_BYTES_MAX, autodiscover_json, autodiscover_xml,
    read_autodiscover,
};
pub use profile::profile;
pub use records::{PublishedRecord, SpfSource, records};
pub use service::{Endpoint, MailProtocol, MailService, Security};
