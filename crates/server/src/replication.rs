//! Replications of this server: as whom they act, and where they may go.

use std::net::SocketAddr;
use std::sync::Arc;

use scrinium_catalog::Databases;
use scrinium_clock::Clock;
use scrinium_database::{DatabaseError, Guarded, Identity, Secret, SecretChange, Submission};
use scrinium_directory::{Directory, Found, NameLookup};
use scrinium_http::HttpState;
use scrinium_replication::{
    AddressRules, People, REPLICATOR_DATABASE, Replicator, ReplicatorOptions, merged_secret, prepare_document,
};
use serde_json::Value;

use crate::config::Settings;
use crate::ground::Ground;

/// The people of the directory, as they are at the moment.
struct DirectoryPeople {
    directory: Arc<Directory>,
    clock: Clock,
}

impl People for DirectoryPeople {
    fn present(&self, identity: &Identity) -> Option<Identity> {
        self.named(identity.name()?)
    }

    fn named(&self, name: &str) -> Option<Identity> {
        let Found::Person(person) = self.directory.find(name) else { return None };
        let is_over = person.account.expires_ms.is_some_and(|expires_ms| expires_ms <= self.clock.now_ms());
        if person.short_name != name || person.account.is_disabled || is_over {
            return None;
        }
        let groups = self.directory.groups_of(&person);
        Some(Identity::with_groups(&person.short_name, &person.roles, &groups))
    }
}

/// Lets replications be ordered by HTTP and on the console. `own` are the addresses at which this server listens.
pub(crate) fn replicator(
    (ground, settings, own): (&Ground, &Settings, &[SocketAddr]),
    directory: &Arc<Directory>,
    (databases, state): (&Databases, &HttpState),
) -> Replicator {
    let allowed = settings.replication.allowed_networks.iter().filter_map(|range| range.parse().ok());
    // Those of HTTP are bound first.
    let http_ports = settings.http.listen.len() + settings.https.listen.len();
    let own_ports = own.iter().take(http_ports).map(SocketAddr::port).collect();
    let options = ReplicatorOptions {
        jobs_max: settings.replication.max_jobs,
        pages_at_once: settings.replication.max_batches,
        rules: AddressRules::new(allowed.collect(), own_ports),
        node: format!("scrinium@{}", ground.name()),
        ..ReplicatorOptions::default()
    };
    let people = DirectoryPeople { directory: Arc::clone(directory), clock: ground.clock().clone() };
    let replicator =
        Replicator::new(databases, ground.workers(), Arc::new(people), (options, ground.statistics()));
    state.set_replicator(replicator.clone());
    ground.set_replicator(Some(replicator.clone()));
    replicator
}

/// Whether a database orders replications.
pub(crate) fn orders_replications(database: &str) -> bool {
    database == REPLICATOR_DATABASE
}

/// A document that orders a replication, as it may be stored: with the name of who answers for it, and without its
/// credentials, which are kept apart from it.
pub(crate) fn check_order(submission: Submission<'_>) -> Result<Guarded, DatabaseError> {
    let mut document = submission.document;
    let brought = prepare_document(&mut document, submission.access.identity())
        .map_err(|reason| DatabaseError::Forbidden { reason })?;
    let order = document.clone();
    let change = move |known: Option<&[u8]>| {
        let kept = merged_secret(&order, &brought, known);
        Ok((!kept.is_empty()).then(|| Value::from(kept).to_string().into()))
    };
    Ok(Guarded { document, secret: Secret::Change(SecretChange::new(change)) })
}
