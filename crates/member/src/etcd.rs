//! etcd as the engine: version 3's interface, in the few messages that transactions, watches and a look at its health take.

mod address;
mod connection;
mod convert;
mod error;
mod examine;
mod messages;
mod protobuf;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use rustls::ClientConfig;
use scrinium_cluster::{Engine, NoAnswer, Reply, Revision, Transaction};

pub use address::{EtcdAddress, EtcdAddressError, EtcdFiles, EtcdTlsError};
pub use error::EtcdError;
pub use examine::{EtcdFinding, EtcdNode, EtcdWarning, Examination};

use connection::{Connection, Stream};
use messages::{Answer, CompactionRequest, Nothing, Question, TxnResponse, WatchRequest, WatchResponse};

/// How long a watch that broke is left alone.
const WATCH_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Where etcd is, and how it is asked.
#[derive(Clone, Debug)]
pub struct EtcdOptions {
    /// Its servers, the nearest first. One is asked at a time, and the next one after a failure.
    pub addresses: Vec<EtcdAddress>,
    /// What connections are encrypted with, if addresses say `https`.
    pub files: Option<EtcdFiles>,
    /// When a call counts as not answered: best [`Timing::call_ms`](scrinium_cluster::Timing).
    pub call_within: Duration,
}

/// etcd. Its futures need a runtime of tokio with time and sockets.
pub struct EtcdEngine {
    addresses: Vec<EtcdAddress>,
    calls_tls: Option<Arc<ClientConfig>>,
    pages_tls: Option<Arc<ClientConfig>>,
    call_within: Duration,
    /// Counts failures; the server that is asked is this number's in turn.
    turn: AtomicUsize,
    /// The connection, and in whose turn it was made.
    connection: tokio::sync::Mutex<Option<(usize, Connection)>>,
    watch: tokio::sync::Mutex<Option<Stream>>,
    trouble: Mutex<Option<EtcdError>>,
}

impl EtcdEngine {
    /// Reads the files; nothing is connected yet.
    ///
    /// # Errors
    /// [`EtcdTlsError`]: files are missing or wrong.
    pub fn new(options: EtcdOptions) -> Result<Self, EtcdTlsError> {
        let EtcdOptions { addresses, files, call_within } = options;
        if let (None, Some(address)) = (&files, addresses.iter().find(|address| address.is_secure)) {
            return Err(EtcdTlsError::Missing(address.clone()));
        }
        let tls = |protocol: &[u8]| files.as_ref().map(|files| address::tls(files, protocol)).transpose();
        Ok(Self {
            calls_tls: tls(b"h2")?,
            pages_tls: tls(b"http/1.1")?,
            addresses,
            call_within,
            turn: AtomicUsize::new(0),
            connection: tokio::sync::Mutex::default(),
            watch: tokio::sync::Mutex::default(),
            trouble: Mutex::default(),
        })
    }

    /// Why the last call that failed did, if none has been answered since.
    #[must_use]
    pub fn trouble(&self) -> Option<EtcdError> {
        self.trouble.lock().clone()
    }

    /// As [`Engine::transact`], with the reason.
    ///
    /// # Errors
    /// [`EtcdError`]; what was asked for may have been done.
    pub async fn ask(&self, transaction: &Transaction) -> Result<Reply, EtcdError> {
        let (address, response): (_, TxnResponse) = self.call("/etcdserverpb.KV/Txn", transaction).await?;
        convert::reply_of(transaction, response)
            .map_err(|problem| EtcdError::Malformed { address, problem: problem.to_owned() })
    }

    /// One call, at whichever server has its turn.
    async fn call<A: Answer>(
        &self,
        method: &'static str,
        request: &(impl Question + Sync),
    ) -> Result<(EtcdAddress, A), EtcdError> {
        let (turn, within) = (self.turn.load(Ordering::Relaxed), self.call_within);
        let called = tokio::time::timeout(within, async {
            let mut connection = self.connection(turn).await?;
            let answer = connection.call(method, request, within).await?;
            Ok((connection.address().clone(), answer))
        });
        let address = self.address(turn);
        let called = called.await.unwrap_or(Err(EtcdError::Late { address, within }));
        self.note(turn, called.as_ref().err());
        called
    }

    /// The next server has its turn after a failure. Of several calls that fail in one turn, one ends it.
    fn note(&self, turn: usize, error: Option<&EtcdError>) {
        if error.is_some_and(EtcdError::is_of_this_server) {
            let next = turn.wrapping_add(1);
            let _ended = self.turn.compare_exchange(turn, next, Ordering::Relaxed, Ordering::Relaxed);
        }
        let mut trouble = self.trouble.lock();
        if trouble.is_some() || error.is_some() {
            *trouble = error.cloned();
        }
    }

    fn address(&self, turn: usize) -> EtcdAddress {
        let nowhere = EtcdAddress { is_secure: true, host: "nowhere".to_owned(), port: 0 };
        let place = turn.checked_rem(self.addresses.len());
        place.and_then(|place| self.addresses.get(place)).cloned().unwrap_or(nowhere)
    }

    /// The connection of this turn. Others wait while it is made, each as long as its own call may take.
    async fn connection(&self, turn: usize) -> Result<Connection, EtcdError> {
        let mut held = self.connection.lock().await;
        if let Some((made, connection)) = held.as_ref()
            && *made == turn
            && !connection.is_closed()
        {
            return Ok(connection.clone());
        }
        *held = None;
        let opened = Connection::open(&self.address(turn), self.calls_tls.as_ref()).await?;
        *held = Some((turn, opened.clone()));
        Ok(opened)
    }

    /// Waits for a change on the watch, which is opened where there is none.
    async fn watched(&self, from: Bytes, to: Bytes) -> Result<(), EtcdError> {
        let mut held = self.watch.lock().await;
        if held.is_none() {
            let turn = self.turn.load(Ordering::Relaxed);
            let request = WatchRequest { from, to };
            let (address, within) = (self.address(turn), self.call_within);
            let opened = tokio::time::timeout(within, async {
                self.connection(turn).await?.stream("/etcdserverpb.Watch/Watch", &request).await
            });
            *held = Some(opened.await.unwrap_or(Err(EtcdError::Late { address, within }))?);
        }
        let Some(stream) = held.as_mut() else { return Ok(()) };
        let heard = stream.next::<WatchResponse>().await;
        match heard {
            Ok(response) if response.canceled => {
                *held = None;
                let (address, reason) =
                    (self.address(self.turn.load(Ordering::Relaxed)), response.cancel_reason);
                Err(EtcdError::Unavailable { address, reason })
            }
            Ok(_) => Ok(()),
            Err(error) => {
                *held = None;
                Err(error)
            }
        }
    }
}

impl Engine for EtcdEngine {
    async fn transact(&self, transaction: Transaction) -> Result<Reply, NoAnswer> {
        self.ask(&transaction).await.map_err(|error| {
            tracing::debug!(%error, "a transaction was not answered");
            NoAnswer
        })
    }

    async fn changed(&self, from: Bytes, to: Bytes) {
        // Looking now and then finds what a watch that broke has missed.
        if let Err(error) = self.watched(from, to).await {
            tracing::debug!(%error, "a watch has ended");
            tokio::time::sleep(WATCH_AGAIN_AFTER).await;
        }
    }

    fn forget_before(&self, through: Revision) -> impl Future<Output = Result<(), NoAnswer>> + Send {
        let request = CompactionRequest { revision: through.0 };
        async move {
            match self.call::<Nothing>("/etcdserverpb.KV/Compact", &request).await {
                Ok(_) => Ok(()),
                // It is done already, by itself or for another member.
                Err(EtcdError::Refused { reason, .. }) if reason.contains("compacted") => Ok(()),
                Err(_) => Err(NoAnswer),
            }
        }
    }
}

impl std::fmt::Debug for EtcdEngine {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("EtcdEngine").field("addresses", &self.addresses).finish_non_exhaustive()
    }
}
