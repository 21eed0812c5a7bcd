//! The server around the databases: configuration, command line, console, encryption of ports, signals.
//!
//! [`cli::run`] is the binary. [`Ground`] is what a running server stands on; databases and ports are
//! opened on it.

mod acme;
mod administration;
mod allocators;
mod attachment_words;
mod attachments;
mod backup;
mod calendar_import;
pub mod cli;
pub mod client;
mod closing;
mod compaction;
pub mod config;
pub mod console;
pub mod credentials;
#[cfg(feature = "lab")]
mod demo;
#[cfg(feature = "lab")]
mod demo_mail;
mod directory_command;
mod dmarc_reports;
mod domain_check;
mod domain_command;
mod file_limits;
mod files;
mod fixup;
mod fixup_command;
mod freeze;
mod grey_records;
mod ground;
mod guard;
mod healthcheck;
mod held_mail;
mod imap_import;
mod imap_ports;
mod inspect_command;
mod junk_teacher;
#[cfg(feature = "lab")]
mod lab_command;
#[cfg_attr(not(feature = "lab"), path = "no_laboratory.rs")]
mod laboratory;
mod ldap_ports;
mod limits;
mod log_command;
mod log_database;
mod machine;
mod mail_export;
mod mail_filters;
mod mail_import;
mod mail_out;
mod mail_ports;
mod mail_rules;
mod mail_setup;
mod managesieve_ports;
pub mod messages;
mod people;
mod people_command;
mod people_search;
mod people_source;
mod person_export;
#[cfg(feature = "lab")]
mod plan_command;
mod private;
mod program;
mod registry;
mod replication;
mod reread;
mod running;
mod service_manager;
mod settle;
mod shutdown;
mod storage;
pub mod tls;
mod upgrade;
mod upkeep;
mod volumes;

pub use backup::{BackupOrder, RestoreOrder};
pub use ground::Ground;
pub use log_database::LogDatabase;
pub use program::Scrinium;
pub use shutdown::Shutdown;
