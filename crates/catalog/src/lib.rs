//! All databases of a server, by name: made, opened, dropped, moved to other volumes, brought in from backups.
//!
//! The entry point is [`Databases`]. The catalogue in the first store alone tells which databases there are and where.

mod adopt;
mod contents;
mod databases;
mod deleted;
mod dropped;
mod events;
mod figures;
mod holds;
mod memory;
mod names;
mod opened;
mod refused;
mod relocate;
mod transfer;
mod views;
mod volumes;

pub use databases::{Databases, NameRange};
pub use memory::{DatabaseActivity, DatabaseSpace};
pub use names::{
    EVENTS_DATABASE, MAIL_FILE_PREFIX, REPLICATOR_DATABASE, is_mail_file, is_mailbox,
    is_own as is_own_database, validate as validate_name,
};
pub use relocate::Relocated;
pub use volumes::{Entry, FIRST_VOLUME, Placement, StillCatalog, VolumeInfo};
