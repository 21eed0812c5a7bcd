//! Certificates that an authority gives by itself (ACME, RFC 8555), renewed by themselves.

mod order;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use scrinium_http::AcmeAnswers;
use serde::{Deserialize, Serialize};
use tokio::task::JoinHandle;

use crate::cli::Failure;
use crate::config::Settings;
use crate::files;
use crate::ground::Ground;
use crate::mail_setup::is_public;
use crate::tls::{CertificateKeeper, validity_of};

pub(crate) use order::OrderError;
use order::{Issued, Order, Way};

/// How often it is looked whether the certificate is due.
const LOOK_EVERY: Duration = Duration::from_hours(1);

/// After an order that failed; doubled with each further one. Authorities count failures by the hour.
const FIRST_RETRY: Duration = Duration::from_mins(15);
const LONGEST_RETRY: Duration = Duration::from_hours(12);

/// How often an order is begun once more at once since the authority refused a nonce, which is no failure of anybody's.
const NONCE_RETRIES_MAX: u32 = 8;

/// The longest that one order may take, the hook for DNS and the authority's patience included.
const ORDER_TIMEOUT: Duration = Duration::from_mins(20);

/// The first line of the file says what was ordered; readers of PEM skip it (RFC 7468 §2).
const MARK: &str = "Ordered by Scrinium: ";

/// A file with a certificate and its key is no longer.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Where what an authority gave is kept: key and certificate in one file, so that they always belong together.
#[derive(Clone)]
pub(crate) struct AcmeFile {
    path: PathBuf,
}

/// What a certificate was ordered for.
#[derive(Clone, Serialize, Deserialize, PartialEq, Eq)]
struct Ordered {
    directory: String,
    names: Vec<String>,
}

impl AcmeFile {
    /// That of this configuration, if certificates are ordered.
    pub(crate) fn of(settings: &Settings) -> Option<Self> {
        let is_on = !settings.acme.directory.is_empty();
        is_on.then(|| Self { path: settings.in_data_dir("acme/certificate.pem".as_ref()) })
    }

    /// Holds the key as well.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether there is one already.
    pub(crate) fn is_there(&self) -> bool {
        self.path.exists()
    }

    fn account(&self) -> PathBuf {
        self.path.with_file_name("account.json")
    }

    fn ordered(&self) -> Option<Ordered> {
        let size = std::fs::metadata(&self.path).ok()?.len();
        let text = (size <= FILE_BYTES_MAX).then(|| std::fs::read_to_string(&self.path).ok()).flatten()?;
        serde_json::from_str(text.lines().next()?.strip_prefix(MARK)?).ok()
    }

    fn keep(&self, issued: &Issued, ordered: &Ordered) -> io::Result<()> {
        let note = serde_json::to_string(ordered).map_err(io::Error::other)?;
        let text = format!("{MARK}{note}\n{}\n{}", issued.key, issued.chain);
        self.path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        files::write_private(&self.path, text.as_bytes())
    }
}

/// Orders certificates while the server runs.
pub(crate) struct Acme {
    file: AcmeFile,
    keeper: Arc<CertificateKeeper>,
    wanted: Ordered,
    contact: Option<String>,
    ca_file: Option<PathBuf>,
    way: Way,
    ground: Arc<Ground>,
}

impl Acme {
    /// What the configuration asks for, if it does.
    ///
    /// # Errors
    /// Names that no authority could look at, or terms that nobody has agreed to.
    pub(crate) fn new(
        ground: &Arc<Ground>,
        settings: &Settings,
        answers: AcmeAnswers,
    ) -> Result<Option<Self>, Failure> {
        let set = &settings.acme;
        let Some(file) = AcmeFile::of(settings) else { return Ok(None) };
        if !set.terms_agreed {
            return Err(Failure::Use(format!(
                "acme.terms_agreed: read the terms of the authority ({}), and set it to true",
                set.directory
            )));
        }
        let names = names(settings, ground.name())?;
        let keeper = ground.certificate().map_err(Failure::work)?;
        let way = match set.challenge.as_str() {
            "http-01" => Way::Http(answers),
            "dns-01" => Way::Dns { hook: settings.in_data_dir(&set.dns_hook), wait: set.dns_wait },
            _ => Way::Tls(Arc::clone(&keeper)),
        };
        let text = |text: &str| Some(text).filter(|text| !text.is_empty()).map(str::to_owned);
        Ok(Some(Self {
            file,
            keeper,
            wanted: Ordered { directory: set.directory.clone(), names },
            contact: text(&set.contact).map(|address| format!("mailto:{address}")),
            ca_file: text(&set.ca_file).map(|file| settings.in_data_dir(file.as_ref())),
            way,
            ground: Arc::clone(ground),
        }))
    }

    /// Orders what is due, until the server stops.
    pub(crate) fn start(self) -> JoinHandle<()> {
        let (shown, clock) = (Arc::clone(&self.keeper), self.ground.clock().clone());
        #[allow(clippy::cast_precision_loss, reason = "days")]
        self.ground.statistics().gauge("TLS.Certificate.DaysLeft", move || {
            let validity = shown.certificate().and_then(|certificate| validity_of(&certificate));
            let until_s = validity.map_or(0, |(_, until_s)| until_s);
            (until_s.saturating_sub(clock.now_ms() / 1000) / 86_400) as f64
        });
        tokio::spawn(async move {
            let stopping = self.ground.shutdown().clone();
            tokio::select! {
                () = self.run() => {}
                () = stopping.wait() => {}
            }
        })
    }

    async fn run(&self) {
        // Servers that were started together do not come to the authority together.
        let jitter: f64 = rand::random();
        let mut retry = FIRST_RETRY;
        loop {
            let due = self.due_in(jitter);
            if !due.is_zero() {
                tokio::time::sleep(due.min(LOOK_EVERY)).await;
                continue;
            }
            match self.renew().await {
                Ok(()) => retry = FIRST_RETRY,
                Err(error) => {
                    let wait = retry.mul_f64(1.0 + jitter / 4.0);
                    tracing::warn!(
                        names = %self.wanted.names.join(", "), directory = self.wanted.directory, %error,
                        retry_seconds = wait.as_secs(),
                        "a certificate could not be had; the one before stays"
                    );
                    retry = retry.saturating_mul(2).min(LONGEST_RETRY);
                    tokio::time::sleep(wait).await;
                }
            }
        }
    }

    /// How long until there should be a new one: at once where there is none of this kind, else when a third of its time is left,
    /// or up to a thirtieth of it earlier.
    fn due_in(&self, jitter: f64) -> Duration {
        let is_of_the_kind = self.file.ordered().as_ref() == Some(&self.wanted);
        let shown = self.keeper.certificate().filter(|_| is_of_the_kind);
        let Some((from_s, until_s)) = shown.and_then(|certificate| validity_of(&certificate)) else {
            return Duration::ZERO;
        };
        let lifetime = Duration::from_secs(until_s.saturating_sub(from_s));
        let before = lifetime / 3 + (lifetime / 30).mul_f64(jitter);
        let now = Duration::from_millis(self.ground.clock().now_ms());
        Duration::from_secs(until_s).saturating_sub(before).saturating_sub(now)
    }

    async fn renew(&self) -> Result<(), OrderError> {
        let order = Order {
            directory: &self.wanted.directory,
            names: &self.wanted.names,
            contact: self.contact.as_deref(),
            ca_file: self.ca_file.as_deref(),
            account: self.file.account(),
            way: &self.way,
        };
        let mut retries = 0;
        let issued = loop {
            let mut shown = Vec::new();
            let had = tokio::time::timeout(ORDER_TIMEOUT, order.place(&mut shown)).await;
            self.way.hide(&shown).await;
            match had.map_err(|_| OrderError::Time)? {
                // RFC 8555 §6.5: try again. The library does so twice for a request, and then gives up.
                Err(error) if error.is_bad_nonce() && retries < NONCE_RETRIES_MAX => retries += 1,
                issued => break issued?,
            }
        };
        let (file, keeper, wanted) = (self.file.clone(), Arc::clone(&self.keeper), self.wanted.clone());
        let kept = tokio::task::spawn_blocking(move || -> Result<(), OrderError> {
            file.keep(&issued, &wanted).map_err(OrderError::Files)?;
            keeper.read_again(file.path(), file.path()).map_err(OrderError::Certificate)
        });
        kept.await.map_err(|error| OrderError::Files(io::Error::other(error)))??;
        tracing::info!(names = %self.wanted.names.join(", "), "all ports have a new certificate");
        Ok(())
    }
}

/// The names that a certificate is ordered for.
fn names(settings: &Settings, server_name: &str) -> Result<Vec<String>, Failure> {
    let set = [&settings.discovery.host_name, &settings.smtp.host_name];
    let own = set.into_iter().find(|name| !name.is_empty()).map_or(server_name, String::as_str);
    let mut names =
        if settings.acme.names.is_empty() { vec![own.to_owned()] } else { settings.acme.names.clone() };
    names.iter_mut().for_each(|name| *name = name.to_lowercase());
    let mut seen = std::collections::HashSet::new();
    names.retain(|name| seen.insert(name.clone()));
    let is_by_dns = settings.acme.challenge == "dns-01";
    let wrong = names.iter().find(|name| {
        let name = name.strip_prefix("*.").filter(|_| is_by_dns).unwrap_or(name);
        !scrinium_sender_authentication::DomainName::parse(name).is_some_and(|name| is_public(&name))
    });
    match wrong {
        Some(name) if name.starts_with("*.") => Err(Failure::Use(format!(
            "acme.names: {name:?} can only be proven in DNS: acme.challenge = \"dns-01\""
        ))),
        Some(name) => Err(Failure::Use(format!("acme.names: no authority gives a certificate for {name:?}"))),
        None => Ok(names),
    }
}
