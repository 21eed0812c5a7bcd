//! Passwords that the source checks: a bind in the person's own name, and nothing else.

use std::sync::Arc;
use std::time::{Duration, Instant};

use scrinium_directory::{PasswordAnswer, PasswordSource};
use scrinium_ldap_wire::Secret;
use scrinium_people_source::{Credentials, SourceOptions, Task};
use tokio::sync::Semaphore;

use super::connection::{Target, ask};
use super::follow::source_options;
use crate::cli::Failure;
use crate::config::Settings;

/// At most this many questions are open at the source; who finds no place is sent away for a moment.
const ASKED_AT_ONCE: usize = 8;

/// Asking takes no longer.
const WITHIN: Duration = Duration::from_secs(10);

/// Asks the source whether passwords are right.
pub(crate) struct SourceChecker {
    target: Target,
    options: SourceOptions,
    places: Arc<Semaphore>,
}

impl SourceChecker {
    /// For the source that the settings name, if it is to check passwords.
    ///
    /// # Errors
    /// In words, what is wrong with the settings.
    pub(crate) fn new(settings: &Settings) -> Result<Option<Self>, Failure> {
        let keys = &settings.people_source;
        if keys.url.is_empty() || !keys.check_passwords {
            return Ok(None);
        }
        let (target, options) = source_options(settings, Credentials::Anonymous)?;
        let target = Target { within: WITHIN, ..target };
        Ok(Some(Self { target, options, places: Arc::new(Semaphore::new(ASKED_AT_ONCE)) }))
    }
}

impl PasswordSource for SourceChecker {
    fn check<'s>(&'s self, entry: &'s str, password: &'s str) -> PasswordAnswer<'s> {
        Box::pin(async move {
            let place = Arc::clone(&self.places).try_acquire_owned().ok()?;
            let password = Secret(password.as_bytes().to_vec());
            let credentials = Credentials::Simple { name: entry.to_owned(), password };
            let (target, options) =
                (self.target.clone(), SourceOptions { credentials, ..self.options.clone() });
            let work = move || {
                let end = Instant::now() + WITHIN;
                let told = ask(&target, options, Task::CheckPassword, &|| Instant::now() < end);
                // Not before the connection is over, so that a source that does not answer holds no more of them.
                drop(place);
                told
            };
            match tokio::time::timeout(WITHIN, tokio::task::spawn_blocking(work)).await {
                Ok(Ok(Ok(told))) => told.is_password_right,
                Ok(Ok(Err(error))) => {
                    tracing::warn!(%error, "the source of people could not check a password");
                    None
                }
                // The task has failed, or takes too long.
                Ok(Err(_)) | Err(_) => {
                    tracing::warn!("the source of people has not checked a password in time");
                    None
                }
            }
        })
    }
}
