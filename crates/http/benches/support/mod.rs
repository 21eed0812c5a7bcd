//! A server without passwords on a free port, for measuring.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a benchmark stops at the first error")]

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use scrinium_bench::client::Connection;
use scrinium_bench::folder;
use scrinium_catalog::Databases;
use scrinium_database::DatabaseOptions;
use scrinium_http::{
    Administration, Authenticator, ConsoleAnswer, Hashing, HttpOptions, HttpState, Identity, LoginRefusal,
    Parts, PortOptions, Server, Service, Session, SessionToken, Verification,
};
use scrinium_statistics::Registry;
use scrinium_store::{Store, StoreOptions};
use scrinium_worker::{WorkerOptions, WorkerPool};
use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// Everybody is who they say, from memory: passwords are not what is measured. `a` is an administrator, `p1+p2` is `p1`
/// in the group `p2`.
struct Anybody;

impl Authenticator for Anybody {
    fn recall(&self, name: &str, _password: &str, _service: Service, _from: IpAddr) -> Option<Identity> {
        Some(match name.split_once('+') {
            Some((name, group)) => Identity::new(name, vec![group.to_owned()]),
            None if name == "a" => Identity::new(name, vec!["_admin".to_owned()]),
            None => Identity::new(name, Vec::new()),
        })
    }

    fn verify<'a>(
        &'a self,
        _name: &'a str,
        _password: &'a str,
        _service: Service,
        _from: IpAddr,
    ) -> Verification<'a> {
        Box::pin(std::future::ready(Err(LoginRefusal::Wrong)))
    }

    fn hash<'a>(&'a self, _id: &'a str, _password: &'a str, _from: IpAddr) -> Hashing<'a> {
        Box::pin(std::future::ready(Err(LoginRefusal::Wrong)))
    }

    fn open_session(&self, _identity: &Identity) -> SessionToken {
        SessionToken { token: String::new(), max_age_seconds: 0 }
    }

    fn session(&self, _token: &str, _from: IpAddr, _agent: &str) -> Option<Session> {
        None
    }

    fn close_session(&self, _token: &str) -> std::io::Result<()> {
        Ok(())
    }
}

struct Nothing;

impl Administration for Nothing {
    fn console(&self, _command: &str, _by: &Identity, _from: IpAddr) -> Result<ConsoleAnswer, String> {
        Err(String::new())
    }

    fn statistics(&self) -> Value {
        Value::Null
    }

    fn prometheus(&self) -> String {
        String::new()
    }

    fn active_tasks(&self) -> Value {
        Value::Null
    }
}

/// A server on a free port that runs until the process ends. Call it within a runtime.
pub(crate) fn serve(databases: Databases, statistics: &Registry) -> SocketAddr {
    let state = HttpState::new(Parts {
        databases,
        authenticator: Arc::new(Anybody),
        administration: Arc::new(Nothing),
        workers: WorkerPool::new(&WorkerOptions::default(), statistics),
        statistics: statistics.clone(),
        options: HttpOptions::default(),
    });
    let port = PortOptions { listen: SocketAddr::from(([127, 0, 0, 1], 0)), ..PortOptions::default() };
    let server = Server::bind(vec![port], state).unwrap();
    let address = server.addresses()[0];
    tokio::spawn(server.run(std::future::pending(), Duration::ZERO));
    address
}

/// Servers that are compared have the same threads.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());

/// A server over a store of its own, until the process ends.
#[allow(dead_code, reason = "not every benchmark compares sizes")]
pub(crate) struct Served {
    pub(crate) databases: Databases,
    pub(crate) store: Store,
    address: SocketAddr,
    _folder: TempDir,
}

#[allow(dead_code, reason = "not every benchmark compares sizes")]
impl Served {
    pub(crate) fn start(budget_bytes: u64) -> Self {
        Self::start_with(|options| options.budget_bytes = Some(budget_bytes))
    }

    /// With other options of the store.
    pub(crate) fn start_with(choose: impl FnOnce(&mut StoreOptions)) -> Self {
        let folder = folder();
        let mut options = StoreOptions::new(folder.path());
        choose(&mut options);
        let statistics = Registry::new();
        let store = Store::open(options, &statistics).unwrap();
        let databases = Databases::open(&store, DatabaseOptions::default()).unwrap();
        let address = RUNTIME.block_on(async { serve(databases.clone(), &statistics) });
        Self { databases, store, address, _folder: folder }
    }

    pub(crate) fn connect(&self) -> Connection {
        self.connect_as("a")
    }

    pub(crate) fn connect_as(&self, name: &str) -> Connection {
        Connection::open(self.address, name, "b")
    }
}
