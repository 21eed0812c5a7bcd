//! People and groups from elsewhere: files that are imported, and a directory that is followed.

mod apply;
mod connection;
mod follow;
mod import;
mod mapping;
mod password;

pub(crate) use follow::Follower;
pub(crate) use import::import;
pub(crate) use password::SourceChecker;
