//! One connection: HTTP/1.1 or 2, limits, and a graceful end.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Version};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use scrinium_port::{Arrival, Ending, Link, PortStream, raised};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::delivery::StreamExecutor;
use crate::head::MOST_HEADERS;
use crate::patience::{Clock, InFlight, Patient, Times};
use crate::port_options::PortOptions;
use crate::service;
use crate::state::HttpState;

/// Hyper's least buffer for a head.
const LEAST_BUFFER_BYTES: usize = 8192;

/// What HTTP/2 may buffer of one stream's answer.
const STREAM_SEND_BUFFER_BYTES: usize = 64 << 10;

/// How often a silent HTTP/2 client is asked whether it is still there.
const PING_INTERVAL: Duration = Duration::from_secs(45);

/// Serves a connection until the client leaves, the connection is shed or the server stops.
pub(crate) async fn serve(arrival: Arrival, port: Arc<PortOptions>, state: &HttpState, ending: Ending) {
    let Arrival { stream, link } = arrival;
    match stream {
        PortStream::Plain(stream) => serve_stream(stream, link, port, state, ending).await,
        PortStream::Encrypted(stream) => Box::pin(serve_stream(*stream, link, port, state, ending)).await,
    }
}

async fn serve_stream<S>(
    stream: S,
    link: Arc<Link>,
    port: Arc<PortOptions>,
    state: &HttpState,
    mut ending: Ending,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let clock = Arc::new(Clock::default());
    let times = Times {
        idle: Duration::from_millis(port.idle_timeout_ms),
        head: Duration::from_millis(port.read_timeout_ms),
        write: Duration::from_millis(port.write_timeout_ms),
    };
    let stream = TokioIo::new(Patient::new(stream, Arc::clone(&clock), times, head_bytes(&port)));
    let streams = StreamExecutor::new(times.write);
    let builder = builder(&port, streams.clone());
    let service = service_fn(|request: Request<Incoming>| {
        let delivery = (request.version() == Version::HTTP_2).then(|| streams.begin());
        let in_flight = InFlight::begin(&clock, &link.connection, delivery);
        service::answer(state.clone(), Arc::clone(&port), Arc::clone(&link), in_flight, request)
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
        () = link.shed() => {
            // One that is idle has nothing to lose; a request that came in this moment is answered.
            if !clock.is_busy() {
                return;
            }
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

/// What the head of a request may have.
fn head_bytes(port: &PortOptions) -> usize {
    port.max_header_bytes.max(LEAST_BUFFER_BYTES)
}

fn builder(port: &PortOptions, streams: StreamExecutor) -> Builder<StreamExecutor> {
    let mut builder = Builder::new(streams);
    builder
        .http1()
        // The stream keeps the time, see `patience`.
        .header_read_timeout(None)
        .max_headers(MOST_HEADERS)
        // A head is held back until it is whole, and must fit then.
        .max_buf_size(head_bytes(port));
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(port.max_streams.max(1))
        .max_send_buf_size(STREAM_SEND_BUFFER_BYTES)
        .max_header_list_size(u32::try_from(port.max_header_bytes).unwrap_or(u32::MAX))
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(Duration::from_millis(port.read_timeout_ms));
    builder
}
