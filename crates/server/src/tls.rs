//! Encryption of ports: certificates from PEM files, and a self-signed one to begin with.

mod keeper;
mod one;
mod validity;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::ToSpan;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose, SanType};
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use scrinium_clock::Clock;

use crate::acme::AcmeFile;
use crate::config::Settings;
use crate::files;

pub(crate) use keeper::CertificateKeeper;
pub(crate) use one::client_of_one;
pub(crate) use validity::validity_of;

/// Protocols that ports offer, the better first (RFC 7301).
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Clients of today refuse certificates that are valid for longer than some 27 months.
const VALID_DAYS: i32 = 800;

/// A certificate of ours is made again when fewer days are left.
const RENEW_DAYS: i32 = 30;

/// The first line of a certificate's file that we made ourselves; the date follows.
const OUR_MARK: &str = "Made by Scrinium for itself; good until ";

/// Why a port cannot be encrypted.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A PEM file cannot be read, or holds something else.
    #[error("cannot read {what} in {}: {cause}", path.display())]
    Unreadable {
        /// `the certificate` or `the private key`.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        cause: String,
    },
    /// The two files do not belong together, or are of a kind that is not understood.
    #[error("the certificate in {} and the key in {} cannot be used: {cause}", certificate.display(), key.display())]
    Unusable {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// Why.
        cause: String,
    },
    /// The protocol itself cannot be set up.
    #[error("TLS cannot be set up: {0}")]
    Protocol(rustls::Error),
    /// A certificate of our own cannot be made or written.
    #[error("cannot make a certificate in {}: {cause}", path.display())]
    NotMade {
        /// The file that it was to be written to.
        path: PathBuf,
        /// Why.
        cause: String,
    },
}

/// Reads a certificate with its chain and its private key, both PEM, for a port that speaks HTTP/2 and
/// HTTP/1.1.
///
/// # Errors
/// [`TlsError`] names the file.
pub fn load(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, TlsError> {
    CertificateKeeper::read(certificate, key)?.configuration()
}

/// The same certificate for mail, which has no names of protocols to agree on, and takes no tickets of other ports: what let somebody
/// in elsewhere is worth nothing here.
///
/// # Errors
/// [`TlsError::Protocol`]
pub fn for_mail(shared: &ServerConfig) -> Result<Arc<ServerConfig>, TlsError> {
    let mut config = shared.clone();
    config.alpn_protocols.clear();
    config.ticketer = ring::Ticketer::new().map_err(TlsError::Protocol)?;
    Ok(Arc::new(config))
}

/// Where the certificate that ports use lies, and its key: that of an authority, once there is one, or else the files of `http`.
pub(crate) fn places(settings: &Settings) -> (PathBuf, PathBuf) {
    if let Some(file) = AcmeFile::of(settings).filter(AcmeFile::is_there) {
        return (file.path().to_owned(), file.path().to_owned());
    }
    let place = |path: &Path| settings.in_data_dir(path);
    (place(&settings.http.tls_certificate), place(&settings.http.tls_key))
}

/// Whether the files of `http` are where this server makes them itself.
pub(crate) fn is_usual(settings: &Settings) -> bool {
    let usual = Settings::default().http;
    usual.tls_certificate == settings.http.tls_certificate && usual.tls_key == settings.http.tls_key
}

/// Whether the certificate in a file is one that this server has made for itself, or is going to make.
pub(crate) fn is_self_made(certificate: &Path) -> bool {
    !certificate.exists() || own_certificate(certificate).is_some()
}

/// Reads the files as [`load`] does. If neither is there, or the certificate is one of ours that ends
/// within 30 days or was made for other names, makes a self-signed one first, for `localhost`, 127.0.0.1, ::1 and `host_names`.
///
/// # Errors
/// [`TlsError`] names the file.
pub fn load_or_make(
    certificate: &Path,
    key: &Path,
    host_names: &[&str],
    clock: &Clock,
) -> Result<Arc<ServerConfig>, TlsError> {
    make_if_missing(certificate, key, host_names, clock)?;
    load(certificate, key)
}

/// What [`load_or_make`] does before it reads.
///
/// # Errors
/// [`TlsError`] names the file.
pub(crate) fn make_if_missing(
    certificate: &Path,
    key: &Path,
    host_names: &[&str],
    clock: &Clock,
) -> Result<(), TlsError> {
    let today = today(clock);
    let nothing_there = !certificate.exists() && !key.exists();
    let is_outdated = |ours: OwnCertificate| {
        days_between(today, ours.until) < RENEW_DAYS
            || ours.names.is_some_and(|names| names != listed(host_names))
    };
    if nothing_there || own_certificate(certificate).is_some_and(is_outdated) {
        make_self_signed(certificate, key, host_names, today)?;
        tracing::warn!(
            certificate = %certificate.display(),
            "made a self-signed certificate; clients will ask whether to trust it"
        );
    }
    Ok(())
}

/// Writes a new key (P-256), readable by its owner only, and a certificate that it signs itself, good from
/// the day before `today` (clocks differ) for 800 days.
fn make_self_signed(
    certificate: &Path,
    key: &Path,
    host_names: &[&str],
    today: Date,
) -> Result<(), TlsError> {
    let not_made = |cause: String| TlsError::NotMade { path: certificate.to_owned(), cause };
    let made = self_signed(host_names, today).map_err(|error| not_made(error.to_string()))?;
    for folder in [certificate.parent(), key.parent()].into_iter().flatten() {
        std::fs::create_dir_all(folder).map_err(|error| not_made(error.to_string()))?;
    }
    // The key goes first: without a certificate next to it, both are made again.
    files::write_private(key, made.key.as_bytes()).map_err(|error| not_made(error.to_string()))?;
    files::write_private(certificate, made.certificate.as_bytes())
        .map_err(|error| not_made(error.to_string()))
}

struct SelfSigned {
    certificate: String,
    key: String,
}

/// How the names of a certificate are written down in its file.
fn listed(host_names: &[&str]) -> String {
    host_names.join(" ")
}

fn self_signed(host_names: &[&str], today: Date) -> Result<SelfSigned, rcgen::Error> {
    let is_name = |name: &&&str| **name != "localhost" && name.parse::<IpAddr>().is_err();
    let mut names = vec!["localhost".to_owned()];
    names.extend(host_names.iter().filter(is_name).map(|name| (*name).to_owned()));
    let mut parameters = CertificateParams::new(names)?;
    let addresses = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
    parameters.subject_alt_names.extend(addresses.map(SanType::IpAddress));
    parameters
        .distinguished_name
        .push(DnType::CommonName, host_names.first().copied().unwrap_or("localhost"));
    parameters.distinguished_name.push(DnType::OrganizationName, "Scrinium (self-signed)");
    parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let until = today.saturating_add(VALID_DAYS.days());
    let part = |number: i8| u8::try_from(number).unwrap_or(1);
    let day = |date: Date| rcgen::date_time_ymd(i32::from(date.year()), part(date.month()), part(date.day()));
    parameters.not_before = day(today.saturating_sub(1.day()));
    parameters.not_after = day(until);
    let key = KeyPair::generate()?;
    let certificate = parameters.self_signed(&key)?;
    // PEM readers skip what stands before the first block (RFC 7468 §2).
    Ok(SelfSigned {
        certificate: format!("{OUR_MARK}{until} for {}\n{}", listed(host_names), certificate.pem()),
        key: key.serialize_pem(),
    })
}

fn today(clock: &Clock) -> Date {
    clock.timestamp().to_zoned(TimeZone::UTC).date()
}

fn days_between(from: Date, to: Date) -> i32 {
    from.until(to).map_or(0, |span| span.get_days())
}

/// What the file says of a certificate that we made.
struct OwnCertificate {
    until: Date,
    /// Early ones do not say.
    names: Option<String>,
}

fn own_certificate(certificate: &Path) -> Option<OwnCertificate> {
    let text = std::fs::read_to_string(certificate).ok()?;
    let said = text.lines().next()?.strip_prefix(OUR_MARK)?.trim();
    let (until, names) = match said.split_once(" for ") {
        Some((until, names)) => (until, Some(names.to_owned())),
        None => (said, None),
    };
    Some(OwnCertificate { until: until.parse().ok()?, names })
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let unreadable =
        |cause: String| TlsError::Unreadable { what: "the certificate", path: path.to_owned(), cause };
    let found = CertificateDer::pem_file_iter(path).map_err(|error| unreadable(pem_cause(error)))?;
    let chain: Vec<_> = found
        .collect::<Result<_, _>>()
        .map_err(|error: rustls::pki_types::pem::Error| unreadable(pem_cause(error)))?;
    if chain.is_empty() { Err(unreadable("there is none in it".to_owned())) } else { Ok(chain) }
}

fn pem_cause(error: rustls::pki_types::pem::Error) -> String {
    use rustls::pki_types::pem::Error;
    match error {
        Error::NoItemsFound => "there is none in it".to_owned(),
        Error::Io(error) => error.to_string(),
        error => format!("it is no PEM ({error})"),
    }
}

/// What a client trusts: the system's certificate authorities, and those of `files` (PEM), such as the
/// server's own certificate. Files that are not there are left out.
///
/// # Errors
/// [`TlsError`] names the file.
pub fn client(files: &[PathBuf]) -> Result<Arc<ClientConfig>, TlsError> {
    let mut trusted = RootCertStore::empty();
    trusted.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    for path in files.iter().filter(|path| path.exists()) {
        trusted.add_parsable_certificates(certificates(path)?);
    }
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let mut config =
        builder.map_err(TlsError::Protocol)?.with_root_certificates(trusted).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn ours_is_made_again_before_it_ends_and_others_are_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let (certificate, key) =
            (folder.path().join("tls/certificate.pem"), folder.path().join("tls/key.pem"));
        let manual = Clock::manual(1_800_000_000_000);
        let clock = manual.clock();
        load_or_make(&certificate, &key, &["mail.example.com"], &clock).unwrap();
        let first = std::fs::read_to_string(&certificate).unwrap();
        load_or_make(&certificate, &key, &["mail.example.com"], &clock).unwrap();
        assert_eq!(std::fs::read_to_string(&certificate).unwrap(), first, "it is good for long");

        for (days, renewed) in [(VALID_DAYS - RENEW_DAYS, false), (1, true)] {
            manual.advance(Duration::from_hours(24 * u64::try_from(days).unwrap()));
            load_or_make(&certificate, &key, &["mail.example.com"], &clock).unwrap();
            let changed = std::fs::read_to_string(&certificate).unwrap() != first;
            assert_eq!(changed, renewed, "{days} days later");
        }

        let before = std::fs::read_to_string(&certificate).unwrap();
        for (names, renewed) in
            [(&["mail.example.com"][..], false), (&["mail.example.com", "b.example"], true)]
        {
            load_or_make(&certificate, &key, names, &clock).unwrap();
            assert_eq!(std::fs::read_to_string(&certificate).unwrap() != before, renewed, "{names:?}");
        }

        let unmarked = first.split_once('\n').unwrap().1;
        std::fs::write(&certificate, unmarked).unwrap();
        let refused =
            load_or_make(&certificate, &key, &["mail.example.com"], &clock).unwrap_err().to_string();
        assert!(refused.contains("cannot be used"), "not ours, and not of this key: {refused}");
        assert_eq!(std::fs::read_to_string(&certificate).unwrap(), unmarked);
    }
}
