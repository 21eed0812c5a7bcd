//! People and groups from elsewhere: files that are imported, and a directory that is followed.

mod apply;
mod connection;
mod follow;
mod import;
mod mapping;

pub(crate) use follow::Follower;
pub(crate) use import::import;
