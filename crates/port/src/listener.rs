//! Where connections come from: an address of the network, or a file of this machine.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tokio::net::{TcpListener, TcpSocket, UnixListener};

use crate::socket::Socket;

/// Connections that the system may hold for us before we accept them.
const BACKLOG: u32 = 4096;

/// Who may connect to a socket of the file system: its owner and group.
const SOCKET_MODE: u32 = 0o660;

pub(crate) enum Listener {
    Tcp(TcpListener),
    Unix {
        listener: UnixListener,
        /// Goes with the listener.
        _file: SocketFile,
    },
}

/// The file of a socket, which is removed when this is dropped.
pub(crate) struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Somebody may have removed it.
        drop(std::fs::remove_file(&self.0));
    }
}

impl Listener {
    pub(crate) fn of_address(address: SocketAddr) -> io::Result<Self> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(BACKLOG).map(Self::Tcp)
    }

    /// A socket that a server left which was killed is taken over; one that is listened to is not.
    pub(crate) fn of_file(path: &Path) -> io::Result<Self> {
        let is_socket = std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
        if is_socket
            && std::os::unix::net::UnixStream::connect(path)
                .is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
        {
            std::fs::remove_file(path)?;
        }
        let listener = UnixListener::bind(path)?;
        let file = SocketFile(path.to_owned());
        // Until here nobody but the owner may write to it, and so connect.
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(SOCKET_MODE))?;
        Ok(Self::Unix { listener, _file: file })
    }

    /// Where it listens, if that is an address.
    pub(crate) fn local_address(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(listener) => listener.local_addr().ok(),
            Self::Unix { .. } => None,
        }
    }

    /// The next connection, and where it comes from if that is the network.
    pub(crate) async fn accept(&self) -> io::Result<(Socket, Option<SocketAddr>)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                Ok((Socket::Tcp(stream), Some(peer)))
            }
            Self::Unix { listener, .. } => {
                let (stream, _) = listener.accept().await?;
                Ok((Socket::Unix(stream), None))
            }
        }
    }
}
