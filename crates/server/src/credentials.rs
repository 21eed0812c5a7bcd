//! The administrator's name and password, for commands that talk to the server.
//!
//! A password is never taken from the command line, where every user of the machine could read it. It comes
//! from the environment, from a file that only its owner can read, or from the terminal.

use std::io::{self, BufRead, IsTerminal, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

use crate::files;

/// The file in the data folder that `scrinium demo` keeps the administrator's name and password in.
pub const FILE_NAME: &str = "admin.credentials";

/// The environment variable that holds the administrator's password.
pub const PASSWORD_VARIABLE: &str = "SCRINIUM_ADMIN_PASSWORD";

const DEFAULT_NAME: &str = "admin";
const FILE_LIMIT_BYTES: u64 = 4096;

/// A name with its password.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The name.
    pub name: String,
    /// The password.
    pub password: String,
}

/// Shows the name only, so that no message holds a password.
impl std::fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Credentials").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Where to look for credentials.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// The name, where it was given.
    pub name: Option<String>,
    /// A file `NAME:PASSWORD`, where it was given.
    pub file: Option<PathBuf>,
    /// The password of the environment.
    pub environment: Option<String>,
    /// The data folder, which may hold [`FILE_NAME`].
    pub data_dir: PathBuf,
}

/// Why there are no credentials.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// The file cannot be read.
    #[error("cannot read the credentials in {}: {cause}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// Others can read the file.
    #[error("others can read the credentials in {}; run: chmod 600 {0}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
    },
    /// The file holds something else.
    #[error("{} holds no credentials: it must be one line, NAME:PASSWORD", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
    },
    /// The terminal cannot be asked.
    #[error("cannot ask for the password: {0}")]
    Terminal(io::Error),
    /// There is no place to take a password from.
    #[error(
        "no password: set {PASSWORD_VARIABLE}, or name a file that holds NAME:PASSWORD with --credentials"
    )]
    Missing,
}

impl Credentials {
    /// Looks in the file that was named, the environment, the data folder's file, and asks on the terminal
    /// at last.
    ///
    /// # Errors
    /// [`CredentialsError`], with what to do.
    pub fn find(wanted: &Wanted) -> Result<Self, CredentialsError> {
        let name = || wanted.name.clone().unwrap_or_else(|| DEFAULT_NAME.to_owned());
        if let Some(path) = &wanted.file {
            return Self::read(path).map(|found| found.named(wanted.name.as_deref()));
        }
        if let Some(password) = &wanted.environment {
            return Ok(Self { name: name(), password: password.clone() });
        }
        let path = wanted.data_dir.join(FILE_NAME);
        let of_somebody_else =
            |found: &Self| wanted.name.as_deref().is_some_and(|wanted| wanted != found.name);
        match Self::read(&path) {
            Ok(found) if !of_somebody_else(&found) => return Ok(found),
            Ok(_) => {}
            Err(CredentialsError::Unreadable { cause, .. }) if cause.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        if !io::stdin().is_terminal() {
            return Err(CredentialsError::Missing);
        }
        let name = name();
        let password = ask_password(&format!("Password of {name}: ")).map_err(CredentialsError::Terminal)?;
        Ok(Self { name, password })
    }

    /// Reads a file that only its owner can read.
    ///
    /// # Errors
    /// [`CredentialsError`] names the file.
    pub fn read(path: &Path) -> Result<Self, CredentialsError> {
        let unreadable = |cause| CredentialsError::Unreadable { path: path.to_owned(), cause };
        let metadata = path.metadata().map_err(unreadable)?;
        if metadata.mode() & 0o077 != 0 {
            return Err(CredentialsError::Open { path: path.to_owned() });
        }
        let malformed = || CredentialsError::Malformed { path: path.to_owned() };
        if metadata.len() > FILE_LIMIT_BYTES {
            return Err(malformed());
        }
        let text = std::fs::read_to_string(path).map_err(unreadable)?;
        let line = text.strip_suffix('\n').unwrap_or(&text);
        match line.split_once(':') {
            Some((name, password)) if !name.is_empty() && !line.chars().any(char::is_control) => {
                Ok(Self { name: name.to_owned(), password: password.to_owned() })
            }
            _ => Err(malformed()),
        }
    }

    /// Writes the data folder's file, readable by its owner only.
    ///
    /// # Errors
    /// If the folder cannot be written.
    pub fn write(&self, data_dir: &Path) -> io::Result<()> {
        let line = format!("{}:{}\n", self.name, self.password);
        files::write_private(&data_dir.join(FILE_NAME), line.as_bytes())
    }

    fn named(mut self, name: Option<&str>) -> Self {
        if let Some(name) = name {
            name.clone_into(&mut self.name);
        }
        self
    }
}

/// Asks on the terminal, which does not show what is typed.
pub(crate) fn ask_password(prompt: &str) -> io::Result<String> {
    let input = io::stdin();
    let shown = tcgetattr(&input)?;
    let mut hidden = shown.clone();
    hidden.local_modes.remove(LocalModes::ECHO);
    let mut error_output = io::stderr();
    write!(error_output, "{prompt}")?;
    error_output.flush()?;
    tcsetattr(&input, OptionalActions::Flush, &hidden)?;
    let mut line = String::new();
    let read = input.lock().read_line(&mut line);
    tcsetattr(&input, OptionalActions::Flush, &shown)?;
    writeln!(error_output)?;
    read?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}
