//! Who a message is from: published vectors, tables of the RFCs' rules, forgeries, anything at all, and what dkimpy, authheaders and pyspf
//! say of the same.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, unreachable_pub)]

mod dkim;
mod dmarc;
mod forgeries;
mod hostile;
mod kit;
mod oracle;
mod reports;
mod results;
mod spf;
