//! What a probe has seen, in Prometheus' text format (version 0.0.4), on a port of its own.

use std::convert::Infallible;
use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use scrinium_lab_report::TimesSummary;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use super::record::{ProbeObjectives, Record};

/// Connections at once: a scraper has one.
const MOST_CONNECTIONS: usize = 16;

/// The head of a request may take so long.
const HEAD_WITHIN: Duration = Duration::from_secs(10);

/// Everything that was seen until now.
#[must_use]
pub fn text(record: &Record, objectives: &ProbeObjectives) -> String {
    let summaries = record.summaries();
    let mut text = String::new();
    let mut line = |line: std::fmt::Arguments<'_>| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{line}");
    };
    line(format_args!("# HELP scrinium_probe_up Whether the last round of every subject was answered."));
    line(format_args!("# TYPE scrinium_probe_up gauge"));
    line(format_args!("scrinium_probe_up {}", u8::from(record.is_up())));
    line(format_args!("# HELP scrinium_probe_response_seconds Response of whole rounds of the probe."));
    line(format_args!("# TYPE scrinium_probe_response_seconds summary"));
    for (subject, seen) in &summaries {
        summary(
            &mut line,
            "scrinium_probe_response_seconds",
            &format!("subject=\"{}\"", subject.name()),
            &seen.response,
        );
    }
    line(format_args!("# HELP scrinium_probe_operation_seconds Requests of the probe, by operation."));
    line(format_args!("# TYPE scrinium_probe_operation_seconds summary"));
    for (subject, seen) in &summaries {
        for (operation, times) in &seen.operations {
            let labels = format!("subject=\"{}\",operation=\"{operation}\"", subject.name());
            summary(&mut line, "scrinium_probe_operation_seconds", &labels, times);
        }
    }
    line(format_args!("# HELP scrinium_probe_rounds_total Rounds of the probe."));
    line(format_args!("# TYPE scrinium_probe_rounds_total counter"));
    for (subject, seen) in &summaries {
        line(format_args!("scrinium_probe_rounds_total{{subject=\"{}\"}} {}", subject.name(), seen.rounds));
    }
    line(format_args!("# HELP scrinium_probe_failed_rounds_total Rounds that failed."));
    line(format_args!("# TYPE scrinium_probe_failed_rounds_total counter"));
    for (subject, seen) in &summaries {
        line(format_args!(
            "scrinium_probe_failed_rounds_total{{subject=\"{}\"}} {}",
            subject.name(),
            seen.failed
        ));
    }
    line(format_args!(
        "# HELP scrinium_probe_last_response_seconds Response of the last round that was answered."
    ));
    line(format_args!("# TYPE scrinium_probe_last_response_seconds gauge"));
    for subject in summaries.keys() {
        if let Some(last_ms) = record.last_ms(*subject) {
            let seconds = last_ms / 1000.0;
            line(format_args!(
                "scrinium_probe_last_response_seconds{{subject=\"{}\"}} {seconds:.6}",
                subject.name()
            ));
        }
    }
    line(format_args!("# HELP scrinium_probe_objective_reached Whether an objective is reached."));
    line(format_args!("# TYPE scrinium_probe_objective_reached gauge"));
    for found in objectives.judge(&summaries) {
        line(format_args!(
            "scrinium_probe_objective_reached{{subject=\"{}\",objective=\"{}\"}} {}",
            found.subject.name(),
            found.objective,
            u8::from(found.reached)
        ));
    }
    text
}

fn summary(line: &mut impl FnMut(std::fmt::Arguments<'_>), name: &str, labels: &str, times: &TimesSummary) {
    if times.count == 0 {
        return;
    }
    for (quantile, ms) in [("0.5", times.p50_ms), ("0.95", times.p95_ms), ("0.99", times.p99_ms)] {
        line(format_args!("{name}{{{labels},quantile=\"{quantile}\"}} {:.6}", ms / 1000.0));
    }
    #[allow(clippy::cast_precision_loss, reason = "rounds are few")]
    let sum = times.mean_ms * times.count as f64 / 1000.0;
    line(format_args!("{name}_sum{{{labels}}} {sum:.6}"));
    line(format_args!("{name}_count{{{labels}}} {}", times.count));
}

/// Serves `/metrics` until the process ends.
///
/// # Errors
/// The port cannot be listened on.
pub(super) async fn serve(
    port: u16,
    record: Arc<Mutex<Record>>,
    objectives: ProbeObjectives,
) -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let address = listener.local_addr()?;
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    tokio::spawn(async move {
        while let Ok(place) = Arc::clone(&places).acquire_owned().await {
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let record = Arc::clone(&record);
            tokio::spawn(async move {
                let service = service_fn(move |request| {
                    let answer = answer(&request, &record, &objectives);
                    async move { Ok::<_, Infallible>(answer) }
                });
                let mut server = http1::Builder::new();
                server.timer(TokioTimer::new()).header_read_timeout(HEAD_WITHIN);
                // A scraper that goes away comes again.
                drop(server.serve_connection(TokioIo::new(stream), service).await);
                drop(place);
            });
        }
    });
    Ok(address)
}

fn answer(
    request: &Request<Incoming>,
    record: &Mutex<Record>,
    objectives: &ProbeObjectives,
) -> Response<Full<Bytes>> {
    let (status, body) = if request.uri().path() == "/metrics" {
        (StatusCode::OK, text(&record.lock(), objectives))
    } else {
        (StatusCode::NOT_FOUND, "The probe's figures are at /metrics\n".to_owned())
    };
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let kind = http::HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}
