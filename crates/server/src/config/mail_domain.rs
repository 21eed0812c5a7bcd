//! A mail server by one line, `mail.domain`; and what a mail server still lacks.

use scrinium_sender_authentication::DomainName;

use super::checks;
use super::table::Settings;

/// What `mail.domain` sets where nothing else is said; `{}` stands for the domain.
pub(super) const SET_BY_MAIL_DOMAIN: [(&str, &str); 10] = [
    ("mail.domains", "{}"),
    ("smtp.host_name", "mail.{}"),
    ("smtp.listen", "0.0.0.0:25"),
    ("submission.listen", "0.0.0.0:587"),
    ("submission.tls_listen", "0.0.0.0:465"),
    ("imap.listen", "0.0.0.0:143"),
    ("imap.tls_listen", "0.0.0.0:993"),
    ("managesieve.listen", "0.0.0.0:4190"),
    ("https.listen", "0.0.0.0:443"),
    ("outbound.route", "mx"),
];

/// A domain of mail, or none.
pub(super) fn domain_or_empty(text: &str) -> Result<(), String> {
    checks::host_name_or_empty(text)?;
    if text.is_empty() || DomainName::parse(text).is_some_and(|domain| domain.labels() > 1) {
        Ok(())
    } else {
        Err(format!("{text:?} is no domain that others can send mail to"))
    }
}

/// What a server with a domain of its own lacks to be a mail server, in words.
pub(crate) fn missing_for_mail(settings: &Settings) -> Vec<String> {
    let is_public = |name: &str| DomainName::parse(name).is_some_and(|name| name.labels() > 1);
    let Some(domain) = settings.mail.domains.iter().find(|domain| is_public(domain)) else {
        return Vec::new();
    };
    let (submission, discovery, imap) = (&settings.submission, &settings.discovery, &settings.imap);
    let pop3 = &settings.pop3;
    let has_no_imap = imap.listen.is_empty() && imap.tls_listen.is_empty();
    let has_no_pop3 = pop3.listen.is_empty() && pop3.tls_listen.is_empty();
    let has_no_submission = submission.listen.is_empty() && submission.tls_listen.is_empty();
    let checks = [
        (
            settings.smtp.listen.is_empty(),
            "no mail comes in from other servers: smtp.listen is empty, such as 0.0.0.0:25",
        ),
        (
            has_no_submission,
            "people cannot hand in mail: submission.tls_listen is empty, such as 0.0.0.0:465",
        ),
        (
            settings.outbound.route == "off",
            "people cannot write to others: outbound.route is off, such as mx",
        ),
        (
            settings.smtp.host_name.is_empty() && !is_public(&settings.server.name),
            "this server greets with the name of the machine: say in smtp.host_name the one that the MX record has",
        ),
        (
            has_no_imap && has_no_pop3 && discovery.imap.is_empty() && discovery.pop3.is_empty(),
            "mail programs have nowhere to read mail: imap.tls_listen is empty, such as 0.0.0.0:993",
        ),
        (
            settings.https.listen.is_empty() && !settings.http.tls,
            "mail programs and other servers fetch what they are to know by https, and https.listen is empty: give it a \
             port, or let a proxy in front of http.listen answer them",
        ),
    ];
    let missing = checks.into_iter().filter(|(is_missing, _)| *is_missing);
    missing.map(|(_, text)| format!("mail of {domain}: {text}")).collect()
}
