//! What the administrators of a domain may write into the directory: people and groups of their domains, and of these nothing that
//! reaches beyond. An administrator of the server needs none of this.
//!
//! Access lists, lists of readers and mailing lists may name somebody who is not there, and a role is compared with groups. So
//! what a domain's administrators may call people and groups ends with the domain, where it opens anything.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use scrinium_database::{EditMode, Identity, Result, Submission};
use serde_json::{Map, Value};

use crate::directory::Directory;
use crate::domain::domain_of;
use crate::lookup::names_of;
use crate::names::fold_name;
use crate::person::usual_mail_file;
use crate::record::PASSWORD_HASH;
use crate::writing::{Entry, check_revision, forbidden};
use crate::{Found, GROUP_PREFIX, Group, NameLookup, PERSON_PREFIX, Person};

/// Somebody who administers domains, and who writes.
pub(crate) struct DomainAdministrator<'d> {
    directory: &'d Directory,
    person: Arc<Person>,
    domains: BTreeSet<String>,
}

impl Directory {
    /// The one who writes, if they administer domains.
    pub(crate) fn domain_administrator(
        &self,
        submission: &Submission<'_>,
    ) -> Option<DomainAdministrator<'_>> {
        let name = submission.access.identity().and_then(Identity::name)?;
        let Found::Person(person) = self.find(name) else { return None };
        let domains = self.administered_by(&person);
        let is_one = person.short_name == name && !domains.is_empty();
        is_one.then_some(DomainAdministrator { directory: self, person, domains })
    }
}

impl DomainAdministrator<'_> {
    /// Whether the document is the writer's own, or that of a group that they own: then they may at least what others may.
    pub(crate) fn owns(&self, before: &Entry) -> bool {
        match before {
            Entry::Person(person) => person.id == self.person.id,
            Entry::Group(group) => self.directory.is_listed(&self.person.short_name, &group.owners),
            Entry::MailIn(_) | Entry::Other => false,
        }
    }

    /// Refuses what is not for administrators of a domain.
    pub(crate) fn check(
        &self,
        submission: &Submission<'_>,
        (id, document): (&str, &Map<String, Value>),
        present: Option<&Map<String, Value>>,
        is_deleted: bool,
    ) -> Result<()> {
        if submission.mode == EditMode::Replicated {
            return refuse("bring documents from another server");
        }
        if is_deleted {
            return refuse("remove anything; disable the person, or take out the members of the group");
        }
        if document.contains_key(PASSWORD_HASH) {
            return refuse("bring a password's hash");
        }
        let after = Entry::read(document);
        match (present.map(Entry::read), &after) {
            (None, Entry::Person(after)) => self.new_person(id, after)?,
            (Some(Entry::Person(before)), Entry::Person(after)) => self.changed_person(&before, after)?,
            (None, Entry::Group(after)) => self.new_group(id, after)?,
            (Some(Entry::Group(before)), Entry::Group(after)) => self.changed_group(&before, after)?,
            _ => return refuse("write anything but people and groups of the domain"),
        }
        check_revision(submission, document, present)
    }

    fn new_person(&self, id: &str, after: &Person) -> Result<()> {
        let domain = self.own_domain(after.internet_address.as_deref())?;
        if !after.short_name.to_lowercase().ends_with(&format!(".{domain}")) {
            return Err(forbidden(format!(
                "the short name of a person whom an administrator of the domain adds ends with \".{domain}\"; the person logs in with an \
                 address as well"
            )));
        }
        if id != format!("{PERSON_PREFIX}{}", after.short_name) {
            return refuse("give a person another id than \"person:\" and the short name");
        }
        if !after.roles.is_empty() || !after.other_names.is_empty() {
            return refuse("give roles or other names");
        }
        let is_plain = after.forwarding == crate::Forwarding::default()
            && *after.delegates == crate::Delegates::default();
        if !is_plain {
            return refuse("say where mail of somebody else goes, and who acts for them");
        }
        let is_free = self.directory.people_of_mail_file(&after.mail_file) == 0;
        if !is_free || after.mail_file != usual_mail_file(&after.short_name) {
            return refuse("choose a mail database");
        }
        self.check_new_names(&HashSet::new(), &names_of(after))
    }

    fn changed_person(&self, before: &Person, after: &Person) -> Result<()> {
        self.own_domain(before.internet_address.as_deref())?;
        self.own_domain(after.internet_address.as_deref())?;
        if before.roles.iter().any(|role| role.starts_with('_')) {
            return refuse("change somebody who has a role in the server");
        }
        if !self.directory.administered_by(before).is_subset(&self.domains) {
            return refuse("change somebody who administers another domain");
        }
        let kept = |person: &Person| {
            let Person { short_name, other_names, mail_file, roles, .. } = person.clone();
            (short_name, other_names, mail_file, roles)
        };
        if kept(before) != kept(after) {
            return refuse("change short names, other names, mail databases or roles");
        }
        let is_own = before.id == self.person.id;
        let opens = (&before.forwarding, &before.delegates) != (&after.forwarding, &after.delegates);
        if opens && !is_own {
            return refuse("say where mail of somebody else goes, and who acts for them");
        }
        if before.account != after.account && is_own {
            return refuse("change how their own account stands");
        }
        self.check_new_names(&names_of(before).into_iter().collect(), &names_of(after))
    }

    fn new_group(&self, id: &str, after: &Group) -> Result<()> {
        self.own_domain(after.internet_address.as_deref())?;
        if !id.starts_with(GROUP_PREFIX) || !self.is_within(&id.to_lowercase()) {
            return refuse("add a group whose id does not end with \"/\" and the domain");
        }
        self.check_group_names(&HashSet::new(), after)?;
        self.check_members(&HashSet::new(), after)
    }

    fn changed_group(&self, before: &Group, after: &Group) -> Result<()> {
        self.own_domain(before.internet_address.as_deref())?;
        self.own_domain(after.internet_address.as_deref())?;
        self.check_group_names(&called(before), after)?;
        self.check_members(&before.members.iter().map(String::as_str).collect(), after)
    }

    /// The domain of a main address, if it is one of the writer's.
    fn own_domain(&self, address: Option<&str>) -> Result<String> {
        let domain = address.and_then(domain_of).filter(|domain| self.domains.contains(domain));
        domain.ok_or_else(|| {
            let domains: Vec<&str> = self.domains.iter().map(String::as_str).collect();
            forbidden(format!(
                "Administrators of a domain may only write people and groups whose InternetAddress is there ({}).",
                domains.join(", ")
            ))
        })
    }

    /// Refuses names that are addresses elsewhere: mail for them would come to this person.
    fn check_new_names(&self, before: &HashSet<String>, after: &[String]) -> Result<()> {
        for name in after.iter().filter(|name| !before.contains(*name)) {
            if name.contains('@') && domain_of(name).is_none_or(|domain| !self.domains.contains(&domain)) {
                return refuse("give an address of another domain");
            }
        }
        Ok(())
    }

    /// Refuses names and addresses that do not end with the domain.
    fn check_group_names(&self, before: &HashSet<String>, after: &Group) -> Result<()> {
        match called(after).difference(before).find(|name| !self.is_within(name)) {
            None => Ok(()),
            Some(name) => Err(forbidden(format!(
                "the name of a group that an administrator of a domain makes ends with \"/\" and the domain, and its addresses are \
                 there; {name:?} does not"
            ))),
        }
    }

    /// Whether a folded name ends with one of the writer's domains, as names of groups and addresses do.
    fn is_within(&self, name: &str) -> bool {
        self.domains.iter().any(|domain| {
            let before = name.strip_suffix(domain.as_str());
            before.is_some_and(|before| before.ends_with(['/', '@']) && before.len() > 1)
        })
    }

    /// Refuses a group of another domain as a member, unless they own it: mail would reach people to whom they may not write.
    fn check_members(&self, before: &HashSet<&str>, after: &Group) -> Result<()> {
        for member in after.members.iter().filter(|member| !before.contains(member.as_str())) {
            let Found::Group(inner) = self.directory.find(member) else { continue };
            let is_own = self.own_domain(inner.internet_address.as_deref()).is_ok();
            if !is_own && !self.directory.is_listed(&self.person.short_name, &inner.owners) {
                return Err(forbidden(format!("the group {member:?} is of another domain")));
            }
        }
        Ok(())
    }
}

/// Every folded name of a group, its addresses among them.
fn called(group: &Group) -> HashSet<String> {
    let names = std::iter::once(&group.list_name).chain(&group.other_names);
    let addresses = group.internet_address.iter().chain(&group.addresses);
    names.chain(addresses).map(|name| fold_name(name)).collect()
}

fn refuse(what: &str) -> Result<()> {
    Err(forbidden(format!(
        "An administrator of a domain may not {what}; an administrator of the server may."
    )))
}
