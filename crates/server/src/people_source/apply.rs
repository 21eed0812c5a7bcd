//! A plan, carried out on the directory's documents.

use std::collections::HashMap;

use scrinium_administration::{NewRequest, RequestKind};
use scrinium_directory::{GROUP_PREFIX, PERSON_PREFIX};
use scrinium_people_source::plan::{KnownGroup, KnownPerson};
use scrinium_people_source::{Plan, PlanError, PlanOptions, SourceRecords, plan};
use serde_json::Value;

use super::mapping;
use crate::cli::Failure;
use crate::registry::{Entry, Registry};

/// The directory's people and groups, and what a source says of them.
pub(super) struct Comparison {
    entries: HashMap<String, Entry>,
    people: Vec<KnownPerson>,
    groups: Vec<KnownGroup>,
    source: String,
}

/// The result of carrying a plan out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Applied {
    /// Documents that were written.
    pub(super) written: u64,
    /// Names that others are to have: requests for them.
    pub(super) renames: Vec<NewRequest>,
    /// Documents that the directory refused, and why.
    pub(super) refused: Vec<String>,
}

/// Documents written at a time.
const AT_ONCE: usize = 100;

/// After this number of refusals nothing more is tried.
const REFUSED_MAX: usize = 100;

impl Comparison {
    /// Reads the directory for a source of this name.
    pub(super) fn read(registry: &dyn Registry, source: &str) -> Result<Self, Failure> {
        let mut entries = HashMap::new();
        let (mut people, mut groups) = (Vec::new(), Vec::new());
        for entry in registry.entries(PERSON_PREFIX)? {
            people.extend(mapping::known_person(&entry, source));
            entries.insert(id_of(&entry), entry);
        }
        for entry in registry.entries(GROUP_PREFIX)? {
            groups.extend(mapping::known_group(&entry, source));
            entries.insert(id_of(&entry), entry);
        }
        Ok(Self { entries, people, groups, source: source.to_owned() })
    }

    pub(super) fn plan(&self, records: &SourceRecords, options: PlanOptions) -> Result<Plan, PlanError> {
        plan(&self.people, &self.groups, records, options)
    }

    /// Carries a plan out: what somebody gives up comes before what another one gets. `told` hears how many documents are written.
    pub(super) fn carry_out(
        &self,
        plan: &Plan,
        registry: &dyn Registry,
        told: &mut dyn FnMut(u64),
    ) -> Result<Applied, Failure> {
        let mut applied = Applied::default();
        let mut current = self.entries.clone();
        let mut given_up = Vec::new();
        for change in &plan.changed_people {
            let entry = current.get(&change.id).cloned();
            given_up.extend(entry.and_then(|entry| mapping::without_lost_addresses(entry, change)));
        }
        let ids: Vec<String> = given_up.iter().map(id_of).collect();
        write(registry, &given_up, &mut applied, told)?;
        for id in ids {
            // They have other revisions now.
            let again = registry.entries(&id)?.into_iter().find(|entry| id_of(entry) == id);
            current.extend(again.map(|entry| (id, entry)));
        }
        let changed = self.changed_people(plan, &current, &mut applied);
        write(registry, &changed, &mut applied, told)?;
        let new = plan.new_people.iter().map(|new| mapping::new_person(new, &self.source));
        write(registry, &new.collect::<Vec<_>>(), &mut applied, told)?;
        let changed = self.changed_groups(plan, &current, &mut applied);
        write(registry, &changed, &mut applied, told)?;
        let new = plan.new_groups.iter().map(|new| mapping::new_group(new, &self.source));
        write(registry, &new.collect::<Vec<_>>(), &mut applied, told)?;
        Ok(applied)
    }

    fn changed_people(
        &self,
        plan: &Plan,
        current: &HashMap<String, Entry>,
        applied: &mut Applied,
    ) -> Vec<Entry> {
        let mut entries = Vec::new();
        for change in &plan.changed_people {
            let Some(entry) = current.get(&change.id) else { continue };
            let changed = mapping::changed_person(entry.clone(), change, &self.source);
            if changed != *entry {
                entries.push(changed);
            }
            if let Some(new_name) = &change.short_name {
                let name = entry.get("ShortName").and_then(Value::as_str).unwrap_or_default();
                applied.renames.push(rename(RequestKind::RenamePerson, name, new_name));
            }
        }
        entries
    }

    fn changed_groups(
        &self,
        plan: &Plan,
        current: &HashMap<String, Entry>,
        applied: &mut Applied,
    ) -> Vec<Entry> {
        let mut entries = Vec::new();
        for change in &plan.changed_groups {
            let Some(entry) = current.get(&change.id) else { continue };
            let changed = mapping::changed_group(entry.clone(), change, &self.source);
            if changed != *entry {
                entries.push(changed);
            }
            if let Some(new_name) = &change.name {
                let name = entry.get("ListName").and_then(Value::as_str).unwrap_or_default();
                applied.renames.push(rename(RequestKind::RenameGroup, name, new_name));
            }
        }
        entries
    }
}

/// Writes documents, some at a time.
fn write(
    registry: &dyn Registry,
    entries: &[Entry],
    applied: &mut Applied,
    told: &mut dyn FnMut(u64),
) -> Result<(), Failure> {
    for some in entries.chunks(AT_ONCE) {
        for (result, entry) in registry.write_all(some)?.into_iter().zip(some) {
            match result {
                Ok(()) => applied.written += 1,
                Err(error) if applied.refused.len() < REFUSED_MAX => {
                    applied.refused.push(format!("{}: {}", id_of(entry), error.reason()));
                }
                Err(error) => return Err(error),
            }
        }
        told(applied.written);
    }
    Ok(())
}

fn rename(kind: RequestKind, name: &str, new_name: &str) -> NewRequest {
    let mut new = NewRequest::new(kind, name, "");
    new.new_name = Some(new_name.to_owned());
    new
}

fn id_of(entry: &Entry) -> String {
    entry.get("_id").and_then(Value::as_str).unwrap_or_default().to_owned()
}
