//! The bytes of a connection, encrypted or not.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::proxy_header::Rewound;
use crate::socket::Socket;

/// A connection without TLS, behind a proxy's header.
pub type PlainStream = Rewound<Socket>;

/// A connection with TLS.
pub type EncryptedStream = TlsStream<PlainStream>;

/// The bytes of a connection. A protocol for which the choice at each read costs too much matches once.
pub enum PortStream {
    /// Without TLS.
    Plain(PlainStream),
    /// With TLS.
    Encrypted(Box<EncryptedStream>),
}

impl PortStream {
    /// Whether it is encrypted.
    #[must_use]
    pub const fn is_encrypted(&self) -> bool {
        matches!(self, Self::Encrypted(_))
    }

    /// Greets by TLS. What the caller has read in plain text before is not part of it: who had sent more before the
    /// greeting than the command that asked for it (RFC 3207 §4.2) must be refused by the caller.
    ///
    /// # Errors
    /// Those of the greeting; [`io::ErrorKind::TimedOut`] after `patience`; [`io::ErrorKind::AlreadyExists`] for a stream that
    /// is encrypted.
    pub async fn encrypt(self, tls: &Arc<rustls::ServerConfig>, patience: Duration) -> io::Result<Self> {
        let Self::Plain(stream) = self else {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "the connection is encrypted"));
        };
        let acceptor = TlsAcceptor::from(Arc::clone(tls));
        match tokio::time::timeout(patience, acceptor.accept(stream)).await {
            Ok(greeted) => Ok(Self::Encrypted(Box::new(greeted?))),
            Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "the TLS handshake took too long")),
        }
    }

    /// What TLS tells of both ends, for an encrypted one: the protocol's version, and the channel bindings of SASL.
    #[must_use]
    pub fn session(&self) -> Option<&rustls::ServerConnection> {
        match self {
            Self::Plain(_) => None,
            Self::Encrypted(stream) => Some(stream.get_ref().1),
        }
    }

    /// What a log-in over this stream can be bound to (RFC 9266, `tls-exporter`). Only where TLS 1.3 is spoken, which has no
    /// renegotiation that would break the binding (§4.2).
    #[must_use]
    pub fn exporter(&self) -> Option<[u8; 32]> {
        let session = self.session()?;
        let is_13 = session.protocol_version() == Some(rustls::ProtocolVersion::TLSv1_3);
        let exporter = session.export_keying_material([0; 32], b"EXPORTER-Channel-Binding", Some(b""));
        exporter.ok().filter(|_| is_13)
    }
}

macro_rules! either {
    ($stream:expr, $name:ident => $does:expr) => {
        match $stream {
            PortStream::Plain($name) => $does,
            PortStream::Encrypted($name) => $does,
        }
    };
}

impl AsyncRead for PortStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        either!(self.get_mut(), stream => Pin::new(stream).poll_read(context, buffer))
    }
}

impl AsyncWrite for PortStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        either!(self.get_mut(), stream => Pin::new(stream).poll_write(context, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        either!(self.get_mut(), stream => Pin::new(stream).poll_write_vectored(context, slices))
    }

    fn is_write_vectored(&self) -> bool {
        either!(self, stream => stream.is_write_vectored())
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self.get_mut(), stream => Pin::new(stream).poll_flush(context))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self.get_mut(), stream => Pin::new(stream).poll_shutdown(context))
    }
}
