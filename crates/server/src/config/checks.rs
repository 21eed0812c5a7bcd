//! Checks of texts in the configuration. Each says what is wrong.

use scrinium_accounting::AddressRange;
use scrinium_backup::Recipient;
use scrinium_catalog::{is_mailbox, validate_name};
use scrinium_directory::DIRECTORY_DATABASE;

use crate::compaction::{self, Window};

/// A name as DNS allows it (RFC 1123 §2.1).
pub(super) fn host_name(text: &str) -> Result<(), String> {
    let label = |label: &str| {
        let legal = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
        (1..=63).contains(&label.len())
            && label.chars().all(legal)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let fine = text.len() <= 253 && text.split('.').all(label);
    if fine { Ok(()) } else { Err(format!("{text:?} is no host name")) }
}

pub(super) fn host_name_or_empty(text: &str) -> Result<(), String> {
    if text.is_empty() { Ok(()) } else { host_name(text) }
}

/// A name that somebody in a directory may have.
pub(super) fn name(text: &str) -> Result<(), String> {
    let fine = !text.trim().is_empty() && text.len() <= 256 && !text.chars().any(char::is_control);
    if fine { Ok(()) } else { Err(format!("{text:?} is no name of a person or group")) }
}

/// With the documents, or the address of a store of objects.
pub(super) fn attachment_store(text: &str) -> Result<(), String> {
    if text == "volume" { Ok(()) } else { scrinium_objects::check_address(text) }
}

/// A folder that means the same wherever a process was started, or the address of a store of objects.
pub(super) fn backup_target(text: &str) -> Result<(), String> {
    if text.starts_with("s3://") || (text.starts_with('/') && !text.contains('\0') && !text.contains('"')) {
        return Ok(());
    }
    Err(format!(
        "{text:?} is neither an absolute path, such as \"/backups/mail\", nor \"s3://BUCKET/PREFIX\""
    ))
}

/// To whom backups are encrypted, or nobody.
pub(super) fn recipient_or_empty(text: &str) -> Result<(), String> {
    if text.is_empty() {
        Ok(())
    } else {
        text.parse::<Recipient>().map(drop).map_err(|error| error.to_string())
    }
}

/// The address of a server of LDAP, or nothing.
pub(super) fn ldap_or_empty(text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Ok(());
    }
    scrinium_ldap_wire::LdapUrl::parse(text).map(drop).map_err(|error| error.to_string())
}

/// A distinguished name, or nothing.
pub(super) fn distinguished_name_or_empty(text: &str) -> Result<(), String> {
    scrinium_ldap_wire::DistinguishedName::parse(text).map(drop).map_err(|error| error.to_string())
}

/// A filter of LDAP, or nothing.
pub(super) fn filter_or_empty(text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Ok(());
    }
    let filter = scrinium_ldap_wire::Filter::parse(text, scrinium_ldap_wire::MessageLimits::CLIENT);
    filter.map(drop).map_err(|error| error.to_string())
}

/// The address of something that is fetched by https, or nothing.
pub(super) fn https_or_empty(text: &str) -> Result<(), String> {
    let fine = text.is_empty()
        || text
            .strip_prefix("https://")
            .is_some_and(|rest| !rest.is_empty() && rest.chars().all(|letter| letter.is_ascii_graphic()));
    if fine { Ok(()) } else { Err(format!("{text:?} is no address that begins with https://")) }
}

/// The name of a database, or nothing.
pub(super) fn database_or_empty(text: &str) -> Result<(), String> {
    let is_kept = scrinium_catalog::is_mail_file(text) || scrinium_catalog::is_own_database(text);
    let fine = text.is_empty() || !is_kept && scrinium_catalog::validate_name(text).is_ok();
    if fine { Ok(()) } else { Err(format!("{text:?} cannot be the name of a database for reports")) }
}

/// A name in a certificate.
pub(super) fn certificate_name(text: &str) -> Result<(), String> {
    host_name(text.strip_prefix("*.").unwrap_or(text))
}

/// Where a filter of mail listens.
pub(super) fn milter(text: &str) -> Result<(), String> {
    scrinium_smtp_server::FilterAddress::parse(text).map(drop)
}

pub(super) fn milter_or_empty(text: &str) -> Result<(), String> {
    if text.is_empty() { Ok(()) } else { milter(text) }
}

/// A list in DNS, with its weight.
pub(super) fn dns_list(text: &str) -> Result<(), String> {
    crate::mail_filters::dns_list(text).map(drop)
}

/// Whatever it is, somebody else looks at it.
#[allow(clippy::unnecessary_wraps, reason = "a check answers like this")]
pub(super) fn anything(_text: &str) -> Result<(), String> {
    Ok(())
}

/// A name that a database may have, and none of the server's own databases has; or nothing.
pub(super) fn log_database_or_empty(text: &str) -> Result<(), String> {
    if !text.is_empty() && validate_name(text).is_err() {
        return Err(format!(
            "{text:?} is no name of a database: it has small letters, digits and any of _ $ ( ) + - . /, and begins \
             with a letter"
        ));
    }
    if text == DIRECTORY_DATABASE || is_mailbox(text) {
        return Err(format!("{text} is a database that the server needs for something else"));
    }
    Ok(())
}

/// A span of the day, or nothing.
pub(super) fn window_or_empty(text: &str) -> Result<(), String> {
    if text.is_empty() { Ok(()) } else { Window::parse(text).map(drop) }
}

/// A time zone that this machine knows, or nothing.
pub(super) fn time_zone_or_empty(text: &str) -> Result<(), String> {
    compaction::time_zone(text).map(drop)
}

/// An origin as a browser sends it (RFC 6454 §7): scheme, host, port.
pub(super) fn origin(text: &str) -> Result<(), String> {
    if text == "*" {
        return Ok(());
    }
    let authority = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let fine = authority.is_some_and(|authority| {
        let legal = |letter: char| letter.is_ascii_alphanumeric() || "-.:[]".contains(letter);
        !authority.is_empty() && authority.chars().all(legal)
    });
    if fine { Ok(()) } else { Err(format!("{text:?} is no origin: write it like \"https://example.com\"")) }
}

/// A capability of IMAP, and perhaps from whom it is hidden.
pub(super) fn hidden_capability(text: &str) -> Result<(), String> {
    if scrinium_imap_server::HiddenCapability::parse(text).is_some() {
        return Ok(());
    }
    Err(format!(
        "{text:?} is no capability: write it like \"COMPRESS=DEFLATE\" or \"QRESYNC client:outlook\""
    ))
}

/// A range of addresses, or one address.
pub(super) fn network(text: &str) -> Result<(), String> {
    text.parse::<AddressRange>().map(drop).map_err(|error| error.to_string())
}

/// A path without what no file's name has.
pub(super) fn file_or_empty(text: &str) -> Result<(), String> {
    if text.contains('\0') || text.ends_with('/') {
        return Err(format!("{text:?} is no file's path"));
    }
    Ok(())
}

/// `level`, or `part=level` where a part is a path of modules; several with commas between them.
pub(super) fn tracing_level(text: &str) -> Result<(), String> {
    const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
    for directive in text.split(',') {
        let (part, level) = directive.split_once('=').unwrap_or(("every_part", directive));
        let legal = |letter: char| letter.is_ascii_alphanumeric() || "_:".contains(letter);
        if part.is_empty() || !part.chars().all(legal) {
            return Err(format!("{part:?} is no part of the program: write it like scrinium_store"));
        }
        if !LEVELS.contains(&level) {
            return Err(format!("{level:?} is no level: it is one of {}", LEVELS.join(", ")));
        }
    }
    Ok(())
}

/// The address of a site without a path: encrypted, or of this machine.
pub(super) fn site_or_empty(text: &str) -> Result<(), String> {
    let local = ["http://localhost", "http://127.0.0.1"]
        .iter()
        .any(|start| text.strip_prefix(start).is_some_and(|rest| rest.is_empty() || rest.starts_with(':')));
    let host = text.split_once("://").map_or("", |(_, host)| host);
    let is_plain = host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-:".contains(&byte));
    if text.is_empty() || ((local || text.starts_with("https://")) && !host.is_empty() && is_plain) {
        return Ok(());
    }
    Err(format!("{text:?} is no address of a site: write it like \"https://mail.example.org\""))
}

/// A provider's address: encrypted, or of this machine.
pub(super) fn issuer_or_empty(text: &str) -> Result<(), String> {
    let is_local = ["http://localhost", "http://127.0.0.1"].iter().any(|start| {
        text.strip_prefix(start).is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '/']))
    });
    let is_plain =
        text.len() <= 1024 && text.bytes().all(|byte| byte.is_ascii_graphic() && !b"#?\"".contains(&byte));
    if text.is_empty() || ((is_local || text.starts_with("https://")) && is_plain) {
        return Ok(());
    }
    Err(format!("{text:?} is no provider's address: write it like \"https://id.example.org\""))
}

/// A scope of OAuth (RFC 6749, section 3.3).
pub(super) fn scope(text: &str) -> Result<(), String> {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"\"\\".contains(&byte);
    if !text.is_empty() && text.len() <= 100 && text.bytes().all(is_plain) {
        return Ok(());
    }
    Err(format!("{text:?} is no scope: write it like \"email\""))
}
