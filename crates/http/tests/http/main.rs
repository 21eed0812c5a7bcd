//! The HTTP interface as its clients see it: transcripts by subject, against a server with a real store.

mod attachments;
mod bulk;
mod changes;
mod common;
mod databases;
mod documents;
mod hostile;
mod multipart;
mod ports;
mod sessions;
mod views;
