//! One connection: TLS where it is on, HTTP/1.1 or 2, limits, and a graceful end.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use crate::patience::{Clock, InFlight, Patient, Times};
use crate::port::{Ending, PortOptions, raised};
use crate::service;
use crate::state::HttpState;

/// Hyper's least buffer for a head.
const LEAST_BUFFER_BYTES: usize = 8192;

/// Headers of one request.
const MOST_HEADERS: usize = 128;

/// Requests of one HTTP/2 connection at the same time.
const MOST_STREAMS: u32 = 128;

/// What HTTP/2 may buffer of one stream's answer.
const STREAM_SEND_BUFFER_BYTES: usize = 64 << 10;

/// How often a silent HTTP/2 client is asked whether it is still there.
const PING_INTERVAL: Duration = Duration::from_secs(45);

/// Serves `stream` until the client leaves or the server stops.
pub(crate) async fn serve(stream: TcpStream, port: Arc<PortOptions>, state: &HttpState, ending: Ending) {
    let Some(tls) = &port.tls else { return serve_plain(stream, port, state, ending).await };
    let acceptor = TlsAcceptor::from(Arc::clone(tls));
    let patience = Duration::from_millis(port.read_timeout_ms);
    let mut stopping = ending.stopping.clone();
    let greeted = tokio::select! {
        greeted = tokio::time::timeout(patience, acceptor.accept(stream)) => greeted,
        () = raised(&mut stopping) => return,
    };
    match greeted {
        Ok(Ok(stream)) => {
            state.counters.greetings.add(1);
            Box::pin(serve_plain(stream, port, state, ending)).await;
        }
        Ok(Err(error)) => tracing::debug!(%error, "a TLS greeting failed"),
        Err(_) => tracing::debug!("a TLS greeting took too long"),
    }
}

async fn serve_plain<S>(stream: S, port: Arc<PortOptions>, state: &HttpState, mut ending: Ending)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let clock = Arc::new(Clock::default());
    let times = Times {
        idle: Duration::from_millis(port.idle_timeout_ms),
        head: Duration::from_millis(port.read_timeout_ms),
        write: Duration::from_millis(port.write_timeout_ms),
    };
    let stream = TokioIo::new(Patient::new(stream, Arc::clone(&clock), times));
    let builder = builder(&port);
    let service = service_fn(|request| {
        service::answer(state.clone(), Arc::clone(&port), InFlight::begin(&clock), request)
    });
    let mut connection = pin!(builder.serve_connection(stream, service));
    let ended = tokio::select! {
        biased;
        ended = connection.as_mut() => ended,
        () = raised(&mut ending.stopping) => {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                ended = connection => ended,
                () = raised(&mut ending.aborting) => return,
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

fn builder(port: &PortOptions) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        // The stream keeps the time, see `patience`.
        .header_read_timeout(None)
        .max_headers(MOST_HEADERS)
        .max_buf_size(port.max_header_bytes.max(LEAST_BUFFER_BYTES));
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MOST_STREAMS)
        .max_send_buf_size(STREAM_SEND_BUFFER_BYTES)
        .max_header_list_size(u32::try_from(port.max_header_bytes).unwrap_or(u32::MAX))
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(Duration::from_millis(port.read_timeout_ms));
    builder
}
