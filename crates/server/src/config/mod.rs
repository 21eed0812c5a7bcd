//! The configuration: one table of keys, and what is derived from it.
//!
//! [`SECTIONS`] defines every key with its type, bounds, default, help and Domino's name for it. From it
//! come the typed [`Settings`], reading of files, environment and command line ([`Configuration::load`]),
//! `scrinium config …`, the commented file, docs/reference/configuration.md and `set config`
//! ([`RunningConfiguration`]).

mod certificates;
mod checks;
mod key;
mod load;
mod mail_domain;
mod problem;
mod render;
mod running;
mod table;
mod units;
mod value;
#[allow(unreachable_pub, reason = "one macro makes this table and the other one, which is public")]
mod volume;

pub use key::{Change, Key, Section};
pub use load::{Configuration, Effective, Sources};
pub(crate) use mail_domain::missing_for_mail;
pub use problem::{ConfigError, Problem, Source, nearest, nearest_key};
pub use render::{
    default_file, documentation, dump_json, dump_text, explain_json, explain_key, explain_section,
};
pub(crate) use running::named;
pub use running::{Changed, Kept, RunningConfiguration, SetError};
pub use table::{
    AttachmentSettings, CheckpointSettings, DiskSettings, DocumentSettings, HttpSettings,
    LogDatabaseSettings, LogSettings, MailSettings, MemorySettings, SECTIONS, ServerSettings,
    SessionSettings, Settings, TracingSettings, key, keys,
};
pub use units::{Share, parse_bytes, parse_duration, print_bytes, print_duration};
pub use value::{Address, Kind, Value};
pub use volume::{VolumeSettings, volume_key, volume_section};
