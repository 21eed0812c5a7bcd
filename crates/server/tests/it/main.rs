//! The tests of this crate from outside: one program, so that it is linked once. A module is one subject.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a test fails by panicking"
)]

mod acme;
mod advise;
mod attachments;
mod backup;
mod broken_off;
mod calendar_import;
mod calendar_programs;
mod calendars;
#[path = "../../../advise/tests/it/cases/mod.rs"]
mod cases;
mod client;
mod clock;
mod command_line;
mod common;
mod config;
mod conflicts;
mod console;
mod crash;
mod credentials;
mod damaged_log;
#[cfg(feature = "lab")]
mod demo;
mod directory_commands;
mod dmarc_reports;
mod documentation;
mod domain_check;
mod domains;
mod first_steps;
mod fixup_engine;
mod forged;
mod formula;
mod freeze;
mod full_disk;
mod held_mail;
mod hostile;
#[cfg(feature = "lab")]
mod hub;
mod imap;
mod imap_import;
mod imap_messages;
mod imap_programs;
mod imap_scripts;
mod imap_shared;
mod import_port;
#[cfg(feature = "lab")]
mod lab_experiment;
mod ldap;
mod legal_hold;
mod log_database;
mod logins;
mod mail_corpus;
mod mail_export;
mod mail_killed;
mod mail_out;
mod mail_peers;
mod mail_ports;
mod mail_programs;
mod mail_rules;
mod mail_scripts;
mod mail_search;
mod mail_servers;
mod managesieve;
mod messages;
mod names;
mod operate;
#[cfg(feature = "lab")]
mod operation_log;
mod output;
mod people;
mod people_search;
mod people_source;
#[cfg(feature = "lab")]
mod plan;
mod pop3;
mod private_files;
mod repair_killed;
mod replication;
mod room_race;
mod rspamd;
mod scarce;
mod serve;
mod set_config;
mod signals;
mod undelete;
mod upkeep;
mod users;
mod web;
mod who_reads;
