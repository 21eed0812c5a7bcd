//! To whom backups are encrypted, and who opens them.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

use scrinium_backup::{Identities, Identity, Protection, read_identities};
use serde_json::json;

use crate::cli::{Failure, Terminal};
use crate::config::Settings;
use crate::files;

/// What the keys of digests are derived from, in the data folder, in hexadecimal digits. It is no key of a backup: it keeps
/// anyone who holds a repository from telling what files hold by their digests.
const SECRET: &str = "backup.secret";

/// How backups of the server with these settings are protected; the secret is made where there is none.
pub(crate) fn protection(settings: &Settings) -> Result<Option<Protection>, String> {
    if settings.backup.recipient.is_empty() {
        return Ok(None);
    }
    let recipient =
        settings.backup.recipient.parse().map_err(|error| format!("backup.recipient: {error}"))?;
    if settings.log.style == "archive" {
        tracing::warn!(
            "the backup is encrypted, and the log's archive (log.archive_dir) is not: keep it on an encrypted device"
        );
    }
    let secret = secret(&settings.server.data_dir.join(SECRET))?;
    Ok(Some(Protection { recipient, secret }))
}

fn secret(path: &Path) -> Result<[u8; 32], String> {
    let failed =
        |error: std::io::Error| format!("cannot keep the secret of backups in {}: {error}", path.display());
    match fs::read_to_string(path) {
        Ok(text) => decode(text.trim()).ok_or_else(|| {
            format!(
                "{} is not what the server wrote; remove it, and the next backup is a full one",
                path.display()
            )
        }),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let secret = Protection::new_secret().map_err(|error| error.to_string())?;
            let text: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
            files::write_private(path, format!("{text}\n").as_bytes()).map_err(failed)?;
            Ok(secret)
        }
        Err(error) => Err(failed(error)),
    }
}

fn decode(text: &str) -> Option<[u8; 32]> {
    let digits = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..text.len()).step_by(2).map(digits).collect();
    bytes?.try_into().ok()
}

/// The private keys in a file, if one is given.
pub(super) fn identities(file: Option<&Path>) -> Result<Option<Arc<Identities>>, Failure> {
    file.map(read_identities).transpose().map_err(Failure::work)
}

/// Those that a running server restores with, where its configuration names a file.
pub(super) fn identities_of(settings: &Settings) -> Result<Option<Arc<Identities>>, String> {
    let file = settings.backup.identity.trim();
    if file.is_empty() {
        return Ok(None);
    }
    read_identities(&settings.in_data_dir(file.as_ref())).map(Some).map_err(|error| error.to_string())
}

/// Makes a pair of keys: the private one into a file of its own, the public one is said.
pub(super) fn make_keys(file: &Path, terminal: &Terminal) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::Work(format!("cannot make {}: {error}", file.display()));
    let identity = Identity::generate().map_err(Failure::work)?;
    let mut options = OpenOptions::new();
    // One that is there may be the only one that opens somebody's backups.
    let mut written = options.write(true).create_new(true).mode(0o600).open(file).map_err(failed)?;
    written.write_all(identity.file_text().as_bytes()).and_then(|()| written.sync_all()).map_err(failed)?;
    let recipient = identity.recipient().to_string();
    terminal.data(
        &format!(
            "The private key is in {}: keep it away from the server, and a second copy of it. Without it nobody reads the \
             backups.\nIn the configuration file:\n\n[backup]\nrecipient = \"{recipient}\"\n",
            file.display()
        ),
        &json!({"identity": file.display().to_string(), "recipient": recipient}),
    )
}
