//! `scrinium healthcheck`: whether the server of this machine answers, for containers and service managers.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::cli::{Failure, HealthcheckArguments, Terminal};
use crate::client::{ConsoleClient, own_url};
use crate::config::{Configuration, Settings};
use crate::tls;

/// Asks once. Exit code 0: it answers and serves; 1: it does not, or not in time.
pub(crate) fn run(
    configuration: &Configuration,
    arguments: &HealthcheckArguments,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let settings = configuration.settings();
    let url = arguments.url.clone().or_else(|| own_url(&settings)).unwrap_or_default();
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::work)?;
    let asked =
        runtime.block_on(async { tokio::time::timeout(arguments.within, ask(&settings, &url)).await });
    let seconds = arguments.within.as_secs_f64();
    let answer = asked.map_err(|_| Failure::Work(format!("{url} does not answer within {seconds} s")))??;
    let frozen = answer.get("frozen_seconds").and_then(Value::as_f64);
    let read_only = answer.get("reason").and_then(Value::as_str);
    let note = match (read_only, frozen) {
        (Some(reason), _) => format!(", and takes no changes: {reason}"),
        (None, Some(left)) => format!("; changes are held for a snapshot, {left} s more at most"),
        (None, None) => String::new(),
    };
    terminal.data(
        &format!("{url} serves{note}\n"),
        &json!({"ok": true, "url": url, "frozen_seconds": frozen, "read_only": read_only}),
    )
}

async fn ask(settings: &Settings, url: &str) -> Result<Value, Failure> {
    let (certificate, _key) = tls::places(settings);
    // Asked by an address that its certificate need not name, and told no secret: that it is this certificate is enough.
    let client = ConsoleClient::without_credentials(url, || tls::client_of_one(&certificate));
    let client = client.map_err(Failure::work)?;
    let (status, body) = client.request(Method::GET, "/_up", None).await.map_err(Failure::work)?;
    let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
    // A server that only reads is no better after a restart.
    let says = answer.get("status").and_then(Value::as_str);
    if status == StatusCode::OK && matches!(says, Some("ok" | "read_only")) {
        return Ok(answer);
    }
    Err(Failure::Work(format!("{url} answers {status}, not that it serves")))
}
