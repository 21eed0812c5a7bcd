//! Drivers that this process starts on its own machine.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use crate::error::LabError;
use crate::program::laboratory;

/// What a driver says on standard output when it listens, before its address.
pub(super) const LISTENS_AT: &str = "listening at ";

/// The variable of the environment that holds the token.
pub(super) const TOKEN_VARIABLE: &str = "SCRINIUM_LAB_TOKEN";

/// How long a driver may take to begin to listen.
const TO_BEGIN: Duration = Duration::from_secs(60);

/// A process of our own; it ends with this value, and when this process ends.
pub(super) struct LocalDriver {
    child: Child,
    pub(super) address: String,
}

impl LocalDriver {
    /// Starts this program once more, as a driver.
    pub(super) fn start(token: &str) -> Result<Self, LabError> {
        let failed = |why: String| LabError::Driver { name: "on this machine".to_owned(), why };
        let (program, words) = laboratory()?;
        let mut command = Command::new(&program);
        command
            .args(words)
            .args(["drive", "--listen", "127.0.0.1:0", "--local"])
            .env(TOKEN_VARIABLE, token)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Ctrl-C is for the controller, who then ends the run in order.
            .process_group(0);
        let mut child = command.spawn().map_err(|error| failed(format!("{}: {error}", program.display())))?;
        let output = child.stdout.take();
        let mut driver = Self { child, address: String::new() };
        let (tell, told) = mpsc::channel();
        std::thread::spawn(move || {
            let line = output.and_then(|output| BufReader::new(output).lines().next()?.ok());
            let _ = tell.send(line);
        });
        let line = told.recv_timeout(TO_BEGIN).ok().flatten();
        let address = line.as_deref().and_then(|line| line.strip_prefix(LISTENS_AT));
        match address {
            Some(address) => address.clone_into(&mut driver.address),
            None => return Err(failed("it did not begin to listen".to_owned())),
        }
        Ok(driver)
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for LocalDriver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
