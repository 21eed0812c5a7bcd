//! Keys that sign, in files: a folder for each domain, a file for each key, which its owner alone reads.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use scrinium_sender_authentication::DomainName;
use scrinium_sender_authentication::dkim::{KeyKind, KeyState, KeyStore, KeyStoreError, StoredKey};
use serde::{Deserialize, Serialize};

/// A longer file is no key.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// Keys of a domain that are looked at.
const KEYS_MAX: usize = 100;

const END: &str = ".json";

/// A key as its file has it.
#[derive(Serialize, Deserialize)]
struct KeyFile {
    kind: String,
    state: String,
    since_seconds: u64,
    pkcs8: String,
}

/// Keys in a folder.
#[derive(Clone, Debug)]
pub struct KeyFolder {
    folder: PathBuf,
}

impl KeyFolder {
    /// The folder is made when there is a key.
    #[must_use]
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    fn of(&self, domain: &DomainName) -> Result<PathBuf, KeyStoreError> {
        // Other names would be paths.
        let is_name = domain.is_plain() && !domain.as_str().starts_with('.');
        let folder = is_name.then(|| self.folder.join(domain.as_str()));
        folder.ok_or_else(|| KeyStoreError(format!("{domain} cannot be the name of a folder")))
    }
}

impl KeyStore for KeyFolder {
    fn keys(&self, domain: &DomainName) -> Result<Vec<StoredKey>, KeyStoreError> {
        let folder = self.of(domain)?;
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(&folder, &error)),
        };
        let mut keys = Vec::new();
        for entry in entries.take(KEYS_MAX) {
            let path = entry.map_err(|error| failed(&folder, &error))?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if let Some(selector) = name.strip_suffix(END).filter(|selector| is_selector(selector)) {
                keys.push(read(&path, (domain, selector))?);
            }
        }
        keys.sort_by(|one, other| one.selector.cmp(&other.selector));
        Ok(keys)
    }

    fn keep(&self, key: &StoredKey) -> Result<(), KeyStoreError> {
        let folder = self.of(&key.domain)?;
        if !is_selector(&key.selector) {
            return Err(KeyStoreError(format!("{:?} cannot be the name of a file", key.selector)));
        }
        let file = KeyFile {
            kind: kind_name(key.kind).to_owned(),
            state: state_name(key.state).to_owned(),
            since_seconds: key.since_seconds,
            pkcs8: BASE64.encode(&key.pkcs8),
        };
        let text = serde_json::to_vec(&file).map_err(|error| KeyStoreError(error.to_string()))?;
        let path = folder.join(format!("{}{END}", key.selector));
        write(&folder, &path, &text).map_err(|error| failed(&path, &error))
    }

    fn remove(&self, domain: &DomainName, selector: &str) -> Result<(), KeyStoreError> {
        let folder = self.of(domain)?;
        let path = folder.join(format!("{selector}{END}"));
        match fs::remove_file(&path).and_then(|()| File::open(&folder)?.sync_all()) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(failed(&path, &error)),
            _ => Ok(()),
        }
    }
}

/// Durable when this returns; a reader sees the whole file or the one before.
fn write(folder: &Path, path: &Path, text: &[u8]) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let new = path.with_extension("new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    file.write_all(text)?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    File::open(folder)?.sync_all()?;
    match folder.parent() {
        Some(parent) => File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}

fn read(path: &Path, (domain, selector): (&DomainName, &str)) -> Result<StoredKey, KeyStoreError> {
    let mut text = String::new();
    let file = File::open(path).and_then(|file| file.take(FILE_BYTES_MAX).read_to_string(&mut text));
    file.map_err(|error| failed(path, &error))?;
    let wrong =
        || KeyStoreError(format!("{} is not a key; move it away, and another one is made", path.display()));
    let file: KeyFile = serde_json::from_str(&text).map_err(|_| wrong())?;
    Ok(StoredKey {
        domain: domain.clone(),
        selector: selector.to_owned(),
        kind: kind_of(&file.kind).ok_or_else(wrong)?,
        state: state_of(&file.state).ok_or_else(wrong)?,
        since_seconds: file.since_seconds,
        pkcs8: BASE64.decode(file.pkcs8).map_err(|_| wrong())?,
    })
}

fn failed(path: &Path, error: &io::Error) -> KeyStoreError {
    KeyStoreError(format!("{}: {error}", path.display()))
}

fn is_selector(selector: &str) -> bool {
    !selector.is_empty() && selector.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

const KINDS: [(KeyKind, &str); 2] = [(KeyKind::Rsa, "rsa"), (KeyKind::Ed25519, "ed25519")];

const STATES: [(KeyState, &str); 3] =
    [(KeyState::Waiting, "waiting"), (KeyState::Signing, "signing"), (KeyState::Retired, "retired")];

fn kind_name(kind: KeyKind) -> &'static str {
    KINDS.iter().find(|(known, _)| *known == kind).map_or("", |(_, name)| name)
}

fn kind_of(name: &str) -> Option<KeyKind> {
    KINDS.iter().find(|(_, known)| *known == name).map(|(kind, _)| *kind)
}

/// As files and reports have it.
pub(super) fn state_name(state: KeyState) -> &'static str {
    STATES.iter().find(|(known, _)| *known == state).map_or("", |(_, name)| name)
}

fn state_of(name: &str) -> Option<KeyState> {
    STATES.iter().find(|(_, known)| *known == name).map(|(state, _)| *state)
}
