//! People and groups from elsewhere: tables (CSV), LDIF, and other directories over LDAP; and the plan that brings a
//! directory in step with them.
//!
//! Every source becomes [`SourceRecords`]: [`read_table`] reads CSV, [`read_ldif`] and [`entries_of`] LDIF, and
//! [`records_of`] entries of OpenLDAP or Active Directory. [`plan()`] holds them against what the directory has. A
//! [`SourceClient`] talks to a server of LDAP, without a socket: bytes in, bytes out.
//!
//! ```
//! use scrinium_people_source::{PlanOptions, TableLimits, plan, read_table};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let table = "First name,Last name,Username,Job title\nAda,Lovelace,ada@example.org,Engineer\n";
//! let records = read_table(table.as_bytes(), TableLimits::default())?;
//! let options = PlanOptions { is_complete: false, takes_over: false, most_disabled_percent: 20 };
//! let plan = plan(&[], &[], &records, options)?;
//! assert_eq!(plan.new_people[0].short_name, "ada");
//! # Ok(())
//! # }
//! ```
//!
//! *Invariant*: pure: no sockets, no storage, no clock. Nothing panics, whatever the bytes; sizes, lists and depths have
//! limits. A plan that was carried out leaves nothing to plan; what cannot be told is left alone and said; nobody is deleted.

#![forbid(unsafe_code)]

mod client;
mod columns;
mod encoding;
mod entries;
mod ldif;
pub mod plan;
mod record;
mod table;

pub use client::{
    ClientError, Credentials, Encryption, Event, Mark, MarkError, Outcome, Position, Reading, SourceClient,
    SourceOptions, Task, Words,
};
pub use encoding::decode;
pub use entries::{DirectoryKind, ValueRange, records_of};
pub use ldif::{LdifContent, LdifError, LdifFault, LdifLimits, LdifRecord, entries_of, read_ldif};
pub use plan::{Plan, PlanError, PlanOptions, plan};
pub use record::{
    ALIASES_MAX, Fields, GroupField, GroupRecord, InitialPassword, LEFT_OUT_MAX, LeftOut, Member,
    PersonField, PersonRecord, RecordFault, RecordPlace, SourceRecords, VALUE_MAX_BYTES,
};
pub use table::{TableError, TableLimits, read_table};
