//! What `scrinium config check` finds about certificates, which lie in files apart from the configuration.

use std::path::{Path, PathBuf};

use super::load::Configuration;
use super::mail_domain::missing_for_mail;
use super::problem::{Problem, Source};
use super::table::Settings;
use crate::tls;

impl Configuration {
    /// What keeps ports from being encrypted that are to be: a file that was named and is not there.
    #[must_use]
    pub fn missing_certificates(&self) -> Vec<Problem> {
        let settings = self.settings();
        let Some(needed_by) = encrypted_ports(&settings) else { return Vec::new() };
        let [certificate, key] = paths(&settings);
        if tls::is_usual(&settings) && !certificate.1.exists() && !key.1.exists() {
            // They are made at the start.
            return Vec::new();
        }
        let missing = [certificate, key].into_iter().filter(|(_, path)| !path.exists());
        let problem = |(name, path): (&str, PathBuf)| Problem {
            source: self.get(name).map_or(Source::Default, |found| found.source.clone()),
            what: format!(
                "{name}: there is no file {}, which {needed_by} needs: ask a certificate authority for a certificate, \
                 and name its file here",
                path.display()
            ),
        };
        missing.map(problem).collect()
    }

    /// What is allowed, and is best changed.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        let settings = self.settings();
        let mut remarks = missing_for_mail(&settings);
        let submission = &settings.submission;
        let is_offered = !submission.listen.is_empty() || !submission.tls_listen.is_empty();
        let ordered = !settings.acme.directory.is_empty();
        let (certificate, _key) = tls::places(&settings);
        if ordered && !settings.acme.terms_agreed {
            remarks.push(format!(
                "no certificate is ordered: read the terms of the authority ({}), and set acme.terms_agreed to true",
                settings.acme.directory
            ));
        }
        if is_offered && !ordered && tls::is_usual(&settings) && tls::is_self_made(&certificate) {
            let ports =
                if submission.tls_listen.is_empty() { "submission.listen" } else { "submission.tls_listen" };
            remarks.push(format!(
                "{ports} would use a certificate that this server makes itself, and mail programs refuse it or ask each \
                 person whether to trust it: let an authority give one (acme.directory), or name one in http.tls_certificate \
                 and http.tls_key"
            ));
        }
        remarks
    }
}

/// The first key that lets a port be encrypted; `None` where none is.
fn encrypted_ports(settings: &Settings) -> Option<&'static str> {
    let Settings { http, https, smtp, submission, ldap, imap, managesieve, .. } = settings;
    let ports = [
        ("http.tls", http.tls),
        ("https.listen", !https.listen.is_empty()),
        ("submission.tls_listen", !submission.tls_listen.is_empty()),
        ("submission.listen", !submission.listen.is_empty()),
        ("ldap.tls_listen", !ldap.tls_listen.is_empty()),
        ("ldap.listen", !ldap.listen.is_empty()),
        ("imap.tls_listen", !imap.tls_listen.is_empty()),
        ("imap.listen", !imap.listen.is_empty()),
        ("managesieve.listen", !managesieve.listen.is_empty()),
        ("smtp.starttls", smtp.starttls && !smtp.listen.is_empty()),
    ];
    ports.into_iter().find_map(|(key, is_encrypted)| is_encrypted.then_some(key))
}

fn paths(settings: &Settings) -> [(&'static str, PathBuf); 2] {
    let place = |path: &Path| settings.in_data_dir(path);
    [
        ("http.tls_certificate", place(&settings.http.tls_certificate)),
        ("http.tls_key", place(&settings.http.tls_key)),
    ]
}
