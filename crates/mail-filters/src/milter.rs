//! The client's half of milter's protocol, version 6, as rspamd, ClamAV, OpenDKIM and SpamAssassin speak it.
//!
//! A [`MilterSession`] says what to send for each thing that happens in an SMTP session, and reads what the filter answers. It asks for
//! nothing that the filter does not want, and does nothing that was not agreed upon.

mod packet;
mod response;
mod session;

pub use packet::{MilterError, MilterLimits, PacketReader};
pub use response::{Change, Response};
pub(crate) use response::{is_field_name, line, one_field};
pub use session::{BODY_BYTES_MAX, Client, MilterSession, MilterStep, Sending, Told, Verdict};

/// What may be done with a message (`SMFIF_*`).
pub(crate) mod action {
    pub(crate) const ADD_FIELDS: u32 = 0x01;
    pub(crate) const CHANGE_BODY: u32 = 0x02;
    pub(crate) const ADD_RECIPIENT: u32 = 0x04;
    pub(crate) const REMOVE_RECIPIENT: u32 = 0x08;
    pub(crate) const CHANGE_FIELDS: u32 = 0x10;
    pub(crate) const QUARANTINE: u32 = 0x20;
    pub(crate) const CHANGE_SENDER: u32 = 0x40;
    pub(crate) const ADD_RECIPIENT_WITH_PARAMETERS: u32 = 0x80;
    /// All that is offered.
    pub(crate) const ALL: u32 = 0xff;
}

/// What a filter does not want to be sent, or does not answer (`SMFIP_*`).
pub(crate) mod wish {
    pub(crate) const NO_CONNECT: u32 = 0x01;
    pub(crate) const NO_HELO: u32 = 0x02;
    pub(crate) const NO_SENDER: u32 = 0x04;
    pub(crate) const NO_RECIPIENT: u32 = 0x08;
    pub(crate) const NO_BODY: u32 = 0x10;
    pub(crate) const NO_FIELDS: u32 = 0x20;
    pub(crate) const NO_END_OF_FIELDS: u32 = 0x40;
    pub(crate) const SILENT_FIELD: u32 = 0x80;
    pub(crate) const NO_DATA: u32 = 0x200;
    pub(crate) const SKIP: u32 = 0x400;
    pub(crate) const SILENT_CONNECT: u32 = 0x1000;
    pub(crate) const SILENT_HELO: u32 = 0x2000;
    pub(crate) const SILENT_SENDER: u32 = 0x4000;
    pub(crate) const SILENT_RECIPIENT: u32 = 0x8000;
    pub(crate) const SILENT_DATA: u32 = 0x1_0000;
    pub(crate) const SILENT_END_OF_FIELDS: u32 = 0x4_0000;
    pub(crate) const SILENT_BODY: u32 = 0x8_0000;
    pub(crate) const LEADING_SPACE: u32 = 0x10_0000;
    /// All that is offered.
    pub(crate) const ALL: u32 = NO_CONNECT
        | NO_HELO
        | NO_SENDER
        | NO_RECIPIENT
        | NO_BODY
        | NO_FIELDS
        | NO_END_OF_FIELDS
        | SILENT_FIELD
        | NO_DATA
        | SKIP
        | SILENT_CONNECT
        | SILENT_HELO
        | SILENT_SENDER
        | SILENT_RECIPIENT
        | SILENT_DATA
        | SILENT_END_OF_FIELDS
        | SILENT_BODY
        | LEADING_SPACE;
}
