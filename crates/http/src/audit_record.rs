//! What requests put on record, see [`crate::audit`].

use std::net::IpAddr;
use std::sync::Arc;

use scrinium_catalog::is_mail_file;
use scrinium_database::{Identity, Level};
use serde_json::{Value, json};

use crate::access::Opened;
use crate::audit::{AuditAction, AuditEntry};
use crate::authority::PersonChange;
use crate::context::Context;
use crate::state::HttpState;

impl Context {
    /// Puts on record what the sender of this request has done to `target`.
    pub(crate) fn audit(&self, action: AuditAction, target: &str, details: Option<&Value>) {
        if let Some(audit) = self.state.audit() {
            let (person, address) = (self.identity.name(), Some(self.client.address));
            audit.record(&AuditEntry { action, target, person, address, details });
        }
    }
}

/// Puts on record that an administrator has opened a database that shows them less for anything but their office: another's
/// mail, or documents that `Readers` may hide, which nobody else can mend or delete.
pub(crate) fn by_office(state: &HttpState, opened: &Opened, by: &Identity, address: IpAddr) {
    let (Some(audit), Some(person), target) = (state.audit(), by.name(), opened.name()) else { return };
    let has_list = !matches!(opened.access_list(), Ok(None));
    if !has_list && !is_mail_file(target) {
        return;
    }
    let own_roles: Vec<String> = by.roles().iter().filter(|role| !role.starts_with('_')).cloned().collect();
    let themselves = Identity::new(person, own_roles);
    // What they have without the office; where it cannot be read, that is nothing.
    let level = opened.access_of(&themselves).map_or(Level::NoAccess, |access| access.level());
    let action = if level < Level::Reader && is_mail_file(target) {
        AuditAction::MailFileOpened
    } else if has_list && !opened.shows_all_to(&themselves).unwrap_or(false) {
        AuditAction::FullAccessUsed
    } else {
        return;
    };
    if state.openings.is_new(person, target, state.databases.clock()) {
        let details = json!({"level": level.text()});
        let (person, address) = (Some(person), Some(address));
        audit.record(&AuditEntry { action, target, person, address, details: Some(&details) });
    }
}

/// Puts on record what a request has changed of people. Whatever it was answered, it may have written before it failed.
pub(crate) async fn people(context: &Context, database: &str, id: Option<String>) {
    let (authenticator, owned) = (Arc::clone(&context.state.authenticator), database.to_owned());
    let by = context.identity.clone();
    let changed = move || Ok(authenticator.changed_people(&owned, id.as_deref(), &by));
    let changes = context.state.run(changed).await;
    // Where the pool is busy or closed they are told later, as changed by nobody.
    for PersonChange { action, id, details } in changes.unwrap_or_default() {
        context.audit(action, &id, details.as_ref());
    }
}

/// Puts on record what was changed otherwise than by requests.
pub(crate) fn changed_otherwise(state: &HttpState) {
    let Some(audit) = state.audit() else { return };
    for PersonChange { action, id, details } in state.authenticator.changed_otherwise() {
        audit.record(&AuditEntry {
            action,
            target: &id,
            person: None,
            address: None,
            details: details.as_ref(),
        });
    }
}
