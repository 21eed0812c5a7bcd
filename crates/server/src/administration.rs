//! The server as its HTTP port shows and commands it.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use scrinium_administration::NewRequest;
use scrinium_http::{Administration, Audit, AuditAction, AuditEntry, ConsoleAnswer, Identity};
use scrinium_statistics::{couchdb_stats, prometheus_text};
use serde_json::{Value, json};

use crate::console::{
    Command, Console, DeletedQuery, HoldOrder, MailSearchOrder, MailSearches, ReplicateOrder, Reply,
    ServerParts, UndeleteOrder, change_hold, criteria_on_record, plain, requests, show_deleted, undelete,
};
use crate::ground::Ground;

/// What administrators see of a server, and tell it.
pub(crate) struct Administrated {
    ground: Arc<Ground>,
    console: Console,
    searches: MailSearches,
}

impl Administrated {
    pub(crate) fn new(ground: &Arc<Ground>) -> Self {
        Self { ground: Arc::clone(ground), console: ground.console(), searches: MailSearches::default() }
    }
}

impl Administrated {
    /// Begins a replication, or ends one.
    fn replicate(&self, order: &ReplicateOrder, by: &Identity) -> Result<ConsoleAnswer, String> {
        let replicator = self.ground.replicator().ok_or_else(|| "the server is about to stop".to_owned())?;
        let members = order.members();
        let (word, id) = if order.cancel {
            ("ended", replicator.cancel(&members, by).map_err(|error| error.to_string())?)
        } else {
            ("begun", replicator.order(&members, by).map_err(|error| error.to_string())?.id.clone())
        };
        let text = format!("The replication was {word}; show replication shows what runs.\n");
        Ok(ConsoleAnswer { text, data: Some(json!({"id": id, "done": word})) })
    }

    /// Sets or lifts a legal hold, and puts that on record.
    fn change_hold(
        &self,
        order: &HoldOrder,
        sets: bool,
        (by, from): (&Identity, IpAddr),
    ) -> Result<ConsoleAnswer, String> {
        let (databases, people) = self.ground.people().ok_or("the server is about to stop")?;
        let name = by.name().unwrap_or_default();
        let reply = change_hold(&databases, people.as_ref(), (order, sets), name);
        let reply = reply.map_err(|error| error.to_string())?;
        let entry = AuditEntry {
            action: if sets { AuditAction::HoldSet } else { AuditAction::HoldLifted },
            target: reply.data.get("database").and_then(Value::as_str).unwrap_or_default(),
            person: by.name(),
            address: Some(from),
            details: Some(&reply.data),
        };
        Audit::record(self.ground.log_database(), &entry);
        Ok(ConsoleAnswer { text: reply.text, data: Some(reply.data) })
    }

    /// Shows deleted messages of somebody's, and puts on record that somebody looked.
    fn show_deleted(
        &self,
        query: &DeletedQuery,
        by: &Identity,
        from: IpAddr,
    ) -> Result<ConsoleAnswer, String> {
        let (databases, people) = self.ground.people().ok_or("the server is about to stop")?;
        let reply = show_deleted(&databases, people.as_ref(), query).map(plain);
        let reply = reply.map_err(|error| error.to_string())?;
        let details = json!({"what": "deleted messages"});
        Ok(self.on_record(AuditAction::MailFileOpened, &details, reply, (by, from)))
    }

    /// Restores deleted messages of somebody's, and puts that on record.
    fn undelete(&self, order: &UndeleteOrder, by: &Identity, from: IpAddr) -> Result<ConsoleAnswer, String> {
        let (databases, people) = self.ground.people().ok_or("the server is about to stop")?;
        let reply =
            undelete(&databases, people.as_ref(), order).map(plain).map_err(|error| error.to_string())?;
        let restored = reply.data.get("restored").and_then(Value::as_array).map_or(0, Vec::len);
        let details = json!({"messages": restored});
        Ok(self.on_record(AuditAction::MailRestored, &details, reply, (by, from)))
    }

    /// Begins to look through all mail, or to move or delete what was found; both the order and what came of it are on record.
    fn search_mail(
        &self,
        order: &MailSearchOrder,
        by: &Identity,
        from: IpAddr,
    ) -> Result<ConsoleAnswer, String> {
        let (databases, _) = self.ground.people().ok_or("the server is about to stop")?;
        let action = match order {
            MailSearchOrder::Search(_) | MailSearchOrder::Show(_) => AuditAction::MailSearched,
            MailSearchOrder::Move(..) => AuditAction::MailMoved,
            MailSearchOrder::Purge(_) => AuditAction::MailPurged,
        };
        let (ground, name) = (Arc::clone(&self.ground), by.name().map(str::to_owned));
        let told = move |came: &Value| {
            let person = name.as_deref();
            let entry =
                AuditEntry { action, target: "mail", person, address: Some(from), details: Some(came) };
            Audit::record(ground.log_database(), &entry);
        };
        let parts = (&databases, ServerParts::tasks(self.ground.as_ref()));
        let answer = self.searches.order(parts, order, told).map(plain).map_err(|error| error.to_string())?;
        let Some(details) = criteria_on_record(order) else {
            return Ok(ConsoleAnswer { text: answer.text, data: Some(answer.data) });
        };
        let entry = AuditEntry {
            action,
            target: "mail",
            person: by.name(),
            address: Some(from),
            details: Some(&details),
        };
        Audit::record(self.ground.log_database(), &entry);
        Ok(ConsoleAnswer { text: answer.text, data: Some(answer.data) })
    }

    /// Puts on record what a command has done with a database, which its answer names.
    fn on_record(
        &self,
        action: AuditAction,
        details: &Value,
        reply: Reply,
        (by, from): (&Identity, IpAddr),
    ) -> ConsoleAnswer {
        let entry = AuditEntry {
            action,
            target: reply.data.get("database").and_then(Value::as_str).unwrap_or_default(),
            person: by.name(),
            address: Some(from),
            details: Some(details),
        };
        Audit::record(self.ground.log_database(), &entry);
        ConsoleAnswer { text: reply.text, data: Some(reply.data) }
    }

    /// Takes a request to rename or remove somebody, and puts it on record.
    fn request(&self, new: NewRequest, by: &Identity, from: IpAddr) -> Result<ConsoleAnswer, String> {
        let requests = ServerParts::requests(self.ground.as_ref());
        let requests = requests.ok_or_else(|| "the server is about to stop".to_owned())?;
        let new = NewRequest { requested_by: by.name().unwrap_or_default().to_owned(), ..new };
        let reply = requests::order(&requests, &new)?;
        let entry = AuditEntry {
            action: AuditAction::NameRequested,
            target: reply.data.get("entry").and_then(Value::as_str).unwrap_or_default(),
            person: by.name(),
            address: Some(from),
            details: Some(&reply.data),
        };
        Audit::record(self.ground.log_database(), &entry);
        Ok(ConsoleAnswer { text: reply.text, data: Some(reply.data) })
    }

    /// Puts on record that a key was set; `told` is what the console answered with.
    fn audit(&self, command: &Command, told: &Value, by: &Identity, from: IpAddr) {
        let Command::SetConfiguration { name, .. } = command else { return };
        let entry = AuditEntry {
            action: AuditAction::ConfigurationSet,
            target: told.get("key").and_then(Value::as_str).unwrap_or(name),
            person: by.name(),
            address: Some(from),
            details: Some(told),
        };
        Audit::record(self.ground.log_database(), &entry);
    }
}

impl Administration for Administrated {
    fn console(&self, command: &str, by: &Identity, from: IpAddr) -> Result<ConsoleAnswer, String> {
        // People who watch a server ask every few seconds; what changes something is worth a line.
        if Command::parse(command).is_ok_and(|command| command.only_shows()) {
            tracing::debug!(command, by = by.name(), "console");
        } else {
            tracing::info!(command, by = by.name(), "console");
        }
        if let Ok(Command::Replicate(order)) = Command::parse(command) {
            return self.replicate(&order, by);
        }
        let parsed = Command::parse(command);
        if let Ok(Command::SetHold(order) | Command::LiftHold(order)) = &parsed {
            return self.change_hold(order, matches!(parsed, Ok(Command::SetHold(_))), (by, from));
        }
        match &parsed {
            Ok(Command::ShowDeleted(query)) => return self.show_deleted(query, by, from),
            Ok(Command::Undelete(order)) => return self.undelete(order, by, from),
            Ok(Command::MailSearch(order)) => return self.search_mail(order, by, from),
            _ => {}
        }
        if let Ok(Command::Request(new)) = parsed {
            return self.request(new, by, from);
        }
        let reply = self.console.execute(command).map_err(|error| error.to_string())?;
        if let Ok(command @ Command::SetConfiguration { .. }) = Command::parse(command) {
            self.audit(&command, &reply.data, by, from);
        }
        Ok(ConsoleAnswer { text: reply.text, data: Some(reply.data) })
    }

    fn only_shows(&self, command: &str) -> bool {
        Command::parse(command).is_ok_and(|command| command.only_shows())
    }

    fn statistics(&self) -> Value {
        couchdb_stats(&ServerParts::statistics(self.ground.as_ref()))
    }

    fn prometheus(&self) -> String {
        prometheus_text(&ServerParts::statistics(self.ground.as_ref()))
    }

    fn frozen(&self) -> Option<Duration> {
        self.ground.freezes().left()
    }

    fn active_tasks(&self) -> Value {
        ServerParts::tasks(self.ground.as_ref()).active_tasks()
    }
}
