//! From recipients, through groups and people who pass mail on, to those who get it.

use std::collections::HashSet;
use std::sync::Arc;

use scrinium_directory::{Found, Group, MailIn, Person, fold_name};
use scrinium_mail_queue::MESSAGE_RECIPIENTS_MAX;
use scrinium_smtp_wire::Mailbox;

use super::{Expansion, MOST_PEOPLE, OutsideRecipient, Resolver, Undeliverable, UndeliverableReason, Writer};

/// Of more failures than these nobody reads.
const MOST_FAILURES: usize = 1_000;

/// One memo goes into no more mail-in databases.
const MOST_DATABASES: usize = 1_000;

/// Mail that this many have passed on stays with the last of them.
const MOST_PASSED_ON: usize = 10;

/// One who is to be visited.
struct Step {
    written: String,
    /// The group that names the recipient.
    group: Option<Arc<Group>>,
    passed_on: Option<Arc<PassedOn>>,
}

/// Somebody who passes mail on, and who passed it on to them.
struct PassedOn {
    person: Arc<Person>,
    before: Option<Arc<Self>>,
    length: usize,
}

impl PassedOn {
    fn has(&self, id: &str) -> bool {
        let mut link = Some(self);
        // It ends: there are at most MOST_PASSED_ON.
        while let Some(passed_on) = link {
            if passed_on.person.id == id {
                return true;
            }
            link = passed_on.before.as_deref();
        }
        false
    }
}

/// A walk over everybody whom a memo may reach.
pub(super) struct Walk<'r> {
    resolver: &'r Resolver,
    writer: &'r Writer,
    expansion: Expansion,
    /// Ids of people and groups that were met, and folded names of those who were not found.
    seen: HashSet<String>,
    /// Ids of people who get it.
    reached: HashSet<String>,
}

impl<'r> Walk<'r> {
    pub(super) fn new(resolver: &'r Resolver, writer: &'r Writer) -> Self {
        Self {
            resolver,
            writer,
            expansion: Expansion::default(),
            seen: HashSet::new(),
            reached: HashSet::new(),
        }
    }

    pub(super) fn run(mut self, written: &[String]) -> Expansion {
        // They wait on a list of our own, so that no nesting is too deep.
        let first = |name: &String| Step { written: name.clone(), group: None, passed_on: None };
        let mut waiting: Vec<Step> = written.iter().rev().map(first).collect();
        while let Some(step) = waiting.pop() {
            self.visit(&step, &mut waiting);
        }
        self.expansion
    }

    /// Takes up one recipient; those whom they lead to are to be visited next.
    fn visit(&mut self, step: &Step, waiting: &mut Vec<Step>) {
        match self.resolver.recipient(&step.written) {
            Found::Person(person) => self.meet(person, step, waiting),
            Found::Group(group) => self.enter(&group, step, waiting),
            Found::MailIn(database) => self.mail_in(database, step),
            Found::Nobody => match self.resolver.outside(&step.written) {
                Some(address) => self.leave(step, address),
                None => self.fail(step, UndeliverableReason::Unknown),
            },
            Found::Several => self.fail(step, UndeliverableReason::Ambiguous),
        }
    }

    fn meet(&mut self, person: Arc<Person>, step: &Step, waiting: &mut Vec<Step>) {
        let before = &step.passed_on;
        if !self.seen.insert(person.id.clone()) {
            // What comes back to somebody who passes it on stays there, so that no circle loses it.
            if before.as_ref().is_some_and(|before| before.has(&person.id)) {
                self.reach(person, step);
            }
            return;
        }
        let length = before.as_ref().map_or(0, |before| before.length) + 1;
        let passes_on = !person.forwarding.to.is_empty() && length <= MOST_PASSED_ON;
        if !passes_on || !person.forwarding.keeps_none {
            self.reach(Arc::clone(&person), step);
        }
        if !passes_on {
            return;
        }
        let passed_on = Arc::new(PassedOn { person: Arc::clone(&person), before: before.clone(), length });
        waiting.extend(person.forwarding.to.iter().rev().map(|name| Step {
            written: name.clone(),
            group: None,
            passed_on: Some(Arc::clone(&passed_on)),
        }));
    }

    fn enter(&mut self, group: &Arc<Group>, step: &Step, waiting: &mut Vec<Step>) {
        if step.group.is_none() && !self.resolver.may_write(self.writer, group) {
            return self.fail(step, UndeliverableReason::NotAllowed);
        }
        let is_new = self.seen.insert(group.id.clone());
        if let Some(passed_on) = step.passed_on.as_ref().filter(|_| !is_new || group.members.is_empty()) {
            // It may be this very group through which the mail came: then nobody else would get it.
            self.reach(Arc::clone(&passed_on.person), step);
        }
        if is_new {
            waiting.extend(group.members.iter().rev().map(|name| Step {
                written: name.clone(),
                group: Some(Arc::clone(group)),
                passed_on: step.passed_on.clone(),
            }));
        }
    }

    /// Adds somebody who gets it.
    fn reach(&mut self, person: Arc<Person>, step: &Step) {
        if self.reached.contains(&person.id) {
            return;
        }
        if self.expansion.people.len() >= MOST_PEOPLE {
            return self.note(step, UndeliverableReason::TooMany);
        }
        self.reached.insert(person.id.clone());
        self.expansion.people.push(person);
    }

    /// Adds a mail-in database.
    fn mail_in(&mut self, database: Arc<MailIn>, step: &Step) {
        if self.reached.contains(&database.id) {
            return;
        }
        if self.expansion.databases.len() >= MOST_DATABASES {
            return self.fail(step, UndeliverableReason::TooMany);
        }
        self.reached.insert(database.id.clone());
        self.expansion.databases.push(database);
    }

    /// Adds a recipient of another server.
    fn leave(&mut self, step: &Step, address: Mailbox) {
        if self.expansion.outside.len() >= MESSAGE_RECIPIENTS_MAX {
            return self.fail(step, UndeliverableReason::TooMany);
        }
        if self.seen.insert(format!("\r{address}")) {
            self.expansion.outside.push(OutsideRecipient { address, written: step.written.clone() });
        }
    }

    /// One whom it cannot reach. What somebody would have passed on there stays with them: its sender knows nothing of that.
    fn fail(&mut self, step: &Step, reason: UndeliverableReason) {
        match &step.passed_on {
            Some(passed_on) => self.reach(Arc::clone(&passed_on.person), step),
            None => self.note(step, reason),
        }
    }

    fn note(&mut self, step: &Step, reason: UndeliverableReason) {
        // Told apart from ids, which never begin with a line end.
        if self.expansion.failures.len() < MOST_FAILURES
            && self.seen.insert(format!("\n{}", fold_name(&step.written)))
        {
            self.expansion.failures.push(Undeliverable {
                written: step.written.clone(),
                group: step.group.as_ref().map(|group| group.list_name.clone()),
                reason,
            });
        }
    }
}
