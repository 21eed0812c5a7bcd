//! Commands that talk to a running server: which one, and who asks.

use super::arguments::ConnectionArguments;
use super::{Failure, Terminal};
use crate::client::{ClientError, ConsoleClient, own_url};
use crate::config::Settings;
use crate::credentials::{Credentials, CredentialsError, PASSWORD_VARIABLE, Wanted};
use crate::tls;

/// A client of the server that is meant, with the administrator's password.
///
/// # Errors
/// [`Failure::Use`] where there is no password, or the address is invalid.
pub(crate) fn connect(
    settings: &Settings,
    arguments: &ConnectionArguments,
    environment: &[(String, String)],
    terminal: &Terminal,
) -> Result<ConsoleClient, Failure> {
    let wanted = Wanted {
        name: arguments.user.clone(),
        file: arguments.credentials.clone(),
        environment: environment
            .iter()
            .find(|(name, _)| name == PASSWORD_VARIABLE)
            .map(|(_, password)| password.clone()),
        data_dir: settings.server.data_dir.clone(),
    };
    let credentials = Credentials::find(&wanted).map_err(|error| match error {
        CredentialsError::Missing => Failure::Use(error.to_string()),
        error => Failure::work(error),
    })?;
    let url = arguments.url.clone().or_else(|| own_url(settings)).unwrap_or_default();
    let trusted: Vec<_> =
        [Some(settings.in_data_dir(&settings.http.tls_certificate)), arguments.trust.clone()]
            .into_iter()
            .flatten()
            .collect();
    let client =
        ConsoleClient::new(&url, credentials, || tls::client(&trusted)).map_err(|error| match error {
            ClientError::Address(_) => Failure::Use(error.to_string()),
            error => Failure::work(error),
        })?;
    if client.exposes_password() {
        terminal.say("warning: the password goes unencrypted to another machine; better is https");
    }
    Ok(client)
}
