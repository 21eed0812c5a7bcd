//! Notifications for a service manager (`sd_notify(3)`): that the server serves, that it stops, that it is alive.
//!
//! Without `NOTIFY_SOCKET` in the environment there is nobody to tell.

use std::ffi::OsStr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// Signs of life in the time after which the manager takes the server for dead.
const SIGNS_IN_TIME: u32 = 3;

/// The service manager that started the process, if one did that wants to be told.
#[derive(Debug, Default)]
pub(crate) struct ServiceManager {
    socket: Option<UnixDatagram>,
    watchdog: Option<Duration>,
}

impl ServiceManager {
    /// The one that `variable` (of the environment) names.
    pub(crate) fn find(variable: impl Fn(&str) -> Option<std::ffi::OsString>) -> Self {
        let Some(address) = variable("NOTIFY_SOCKET") else { return Self::default() };
        let socket = match connect(&address) {
            Ok(socket) => socket,
            Err(error) => {
                tracing::warn!(address = %address.display(), %error, "the service manager cannot be notified");
                return Self::default();
            }
        };
        let number = |name: &str| variable(name)?.to_str()?.parse::<u64>().ok();
        // It may be meant for another process, such as the one that started this one.
        let is_meant = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
        let watchdog = number("WATCHDOG_USEC").filter(|time_us| is_meant && *time_us > 0);
        Self { socket: Some(socket), watchdog: watchdog.map(Duration::from_micros) }
    }

    /// The server serves now.
    pub(crate) fn ready(&self, status: &str) {
        self.tell(&format!("READY=1\nSTATUS={}\n", status.replace('\n', " ")));
    }

    /// The server has begun to stop.
    pub(crate) fn stopping(&self) {
        self.tell("STOPPING=1\nSTATUS=stopping\n");
    }

    /// Gives signs of life, if they are wanted, for as long as the server's threads for the network come to it.
    pub(crate) async fn stay_alive(&self) {
        let Some(time) = self.watchdog else { return std::future::pending().await };
        let mut ticks = tokio::time::interval(time / SIGNS_IN_TIME);
        loop {
            ticks.tick().await;
            self.tell("WATCHDOG=1\n");
        }
    }

    fn tell(&self, state: &str) {
        let Some(socket) = &self.socket else { return };
        // What it does not take, because it is busy or gone, is repeated by the next sign, or of no use to it.
        if let Err(error) = socket.send(state.as_bytes()) {
            tracing::debug!(%error, "the service manager was not notified");
        }
    }
}

/// An address that begins with `@` is one without a file.
fn connect(address: &OsStr) -> std::io::Result<UnixDatagram> {
    let address = match address.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(address)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.connect_addr(&address)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    fn told(manager: &UnixDatagram) -> String {
        manager.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let mut buffer = [0; 200];
        let length = manager.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    }

    #[tokio::test]
    async fn a_service_manager_is_told_by_a_file_or_a_name_and_nobody_without() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let name = format!("scrinium-test-{}", std::process::id());
        let listening = [
            (path.clone().into_os_string(), UnixDatagram::bind(&path).unwrap()),
            (
                OsString::from(format!("@{name}")),
                UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap(),
            ),
        ];
        for (address, manager) in listening {
            let found = ServiceManager::find(|name| match name {
                "NOTIFY_SOCKET" => Some(address.clone()),
                "WATCHDOG_USEC" => Some("30000".into()),
                _ => None,
            });
            found.ready("serves\nall");
            assert_eq!(told(&manager), "READY=1\nSTATUS=serves all\n");
            tokio::select! {
                () = found.stay_alive() => {}
                () = tokio::time::sleep(Duration::from_millis(100)) => {}
            }
            assert_eq!(told(&manager), "WATCHDOG=1\n");
            assert_eq!(told(&manager), "WATCHDOG=1\n");
        }
        let of_another = |name: &str| match name {
            "NOTIFY_SOCKET" => Some(OsString::from("/nowhere/notify")),
            _ => Some("1".into()),
        };
        ServiceManager::find(of_another).ready("nobody listens");
        ServiceManager::find(|_| None).stopping();
    }
}
