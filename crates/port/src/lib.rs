//! Ports: where strangers come in, whatever protocol they speak.
//!
//! [`Ports`] binds all of them or none, and takes connections until the server stops. Each connection is taken into the
//! accounts of its network before a byte of it is read ([`scrinium_accounting`]), gets the address that a trusted proxy's
//! PROXY header names, greets by TLS where the port is encrypted from the start, and is handed to its [`Protocol`] as an
//! [`Arrival`]. A protocol that begins in plain text encrypts later ([`PortStream::encrypt`]). One whose sessions know no sockets
//! is a [`Conversation`], which [`converse`] serves: it reads and writes, encrypts and keeps time.
//!
//! Where the server is full, the connection that was idle for longest is shed ([`Link::shed`]); where a network has as many
//! busy ones as it may, the new one is closed.

mod conversation;
mod counters;
mod ending;
mod link;
mod listener;
mod peer;
mod ports;
mod proxy_header;
mod security;
mod socket;
mod stream;

pub use conversation::{Conversation, ConversationSettings, RequestKind, converse};
pub use counters::PortCounters;
pub use ending::{Ending, raised};
pub use link::Link;
pub use peer::Peer;
pub use ports::{Arrival, Port, PortSettings, Ports, Protocol, SocketPort};
pub use proxy_header::Rewound;
pub use security::{PortSecurity, Secrecy, ServerEndPoint};
pub use socket::Socket;
pub use stream::{EncryptedStream, PlainStream, PortStream};
