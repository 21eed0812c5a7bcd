//! `scrinium person import`: people and groups of a file.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use scrinium_people_source::plan::{PersonChange, Standing};
use scrinium_people_source::{
    DirectoryKind, LdifLimits, Plan, PlanOptions, SourceRecords, TableLimits, entries_of, read_ldif,
    read_table, records_of,
};
use serde_json::{Value, json};

use super::apply::{Applied, Comparison};
use crate::cli::{Failure, PersonImportArguments, Terminal};
use crate::config::Settings;
use crate::registry;

/// How often progress is shown.
const TOLD_EVERY: Duration = Duration::from_secs(5);

/// Lines of a plan that people are shown, of each kind.
const SHOWN: usize = 20;

/// Carries out `scrinium person import`.
pub(crate) fn import(
    settings: &Settings,
    asked: &PersonImportArguments,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let records = read(&asked.file)?;
    let registry = registry::open(settings, &asked.connection, terminal)?;
    let source = asked.source.as_deref().unwrap_or("file");
    let comparison = Comparison::read(registry.as_ref(), source)?;
    let options = PlanOptions {
        is_complete: asked.complete,
        takes_over: asked.take_over,
        most_disabled_percent: asked.most_disabled,
    };
    let plan = comparison.plan(&records, options).map_err(|error| Failure::Work(error.to_string()))?;
    let mut data = data_of(&plan, &records);
    if asked.dry_run {
        add(&mut data, "dry_run", json!(true));
        return terminal.data(&text_of(&plan, &records), &data);
    }
    let mut told_at = Instant::now();
    let all =
        plan.new_people.len() + plan.changed_people.len() + plan.new_groups.len() + plan.changed_groups.len();
    let mut applied = comparison.carry_out(&plan, registry.as_ref(), &mut |written| {
        if told_at.elapsed() >= TOLD_EVERY {
            told_at = Instant::now();
            terminal.say(&format!("{written} of {all} documents written"));
        }
    })?;
    for rename in std::mem::take(&mut applied.renames) {
        if let Err(error) = registry.change_name(&rename, terminal) {
            applied.refused.push(format!("{}: {}", rename.name, error.reason()));
        }
    }
    add(&mut data, "written", json!(applied.written));
    add(&mut data, "refused", json!(applied.refused));
    terminal.data(&(text_of(&plan, &records) + &told(&applied)), &data)?;
    if applied.refused.is_empty() { Ok(()) } else { Err(Failure::Found) }
}

/// Says one thing more of what was done.
fn add(data: &mut Value, name: &str, value: Value) {
    if let Some(members) = data.as_object_mut() {
        members.insert(name.to_owned(), value);
    }
}

/// Reads a file by its name's end.
fn read(path: &Path) -> Result<SourceRecords, Failure> {
    let cannot = |error: &dyn std::fmt::Display| Failure::Use(format!("{}: {error}", path.display()));
    let end = path.extension().and_then(|end| end.to_str()).unwrap_or_default().to_ascii_lowercase();
    let limit = match end.as_str() {
        "csv" => TableLimits::default().bytes,
        "ldif" => LdifLimits::default().bytes,
        _ => return Err(cannot(&"a file of people is a table, NAME.csv, or LDIF, NAME.ldif")),
    };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| cannot(&error))?;
    // One byte more than may be, so that the reader says what is too large.
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    file.take(most).read_to_end(&mut bytes).map_err(|error| cannot(&error))?;
    if end == "csv" {
        return read_table(&bytes, TableLimits::default()).map_err(|error| cannot(&error));
    }
    let records = read_ldif(&bytes, LdifLimits::default()).map_err(|error| cannot(&error))?;
    let entries = entries_of(records).map_err(|error| cannot(&error))?;
    let has_guid = entries
        .iter()
        .any(|entry| entry.attributes.iter().any(|one| one.name.eq_ignore_ascii_case("objectGUID")));
    let kind = if has_guid { DirectoryKind::ActiveDirectory } else { DirectoryKind::Standard };
    Ok(records_of(&entries, kind))
}

fn is_disabled_by(change: &PersonChange) -> bool {
    change.standing == Some(Standing::DisabledBySource)
}

fn text_of(plan: &Plan, records: &SourceRecords) -> String {
    let mut text = String::new();
    let list = |text: &mut String, what: &str, names: &mut dyn Iterator<Item = String>, count: usize| {
        if count == 0 {
            return;
        }
        text.push_str(&format!("{count} {what}\n"));
        for name in names.take(SHOWN) {
            text.push_str(&format!("  {name}\n"));
        }
        if count > SHOWN {
            text.push_str(&format!("  and {} more\n", count - SHOWN));
        }
    };
    let (disabled, changed): (Vec<_>, Vec<_>) =
        plan.changed_people.iter().partition(|change| is_disabled_by(change));
    list(
        &mut text,
        "people are new",
        &mut plan.new_people.iter().map(|new| new.short_name.clone()),
        plan.new_people.len(),
    );
    list(&mut text, "people change", &mut changed.iter().map(|change| change.id.clone()), changed.len());
    list(
        &mut text,
        "people are disabled",
        &mut disabled.iter().map(|change| change.id.clone()),
        disabled.len(),
    );
    list(
        &mut text,
        "groups are new",
        &mut plan.new_groups.iter().map(|new| new.name.clone()),
        plan.new_groups.len(),
    );
    list(
        &mut text,
        "groups change",
        &mut plan.changed_groups.iter().map(|change| change.id.clone()),
        plan.changed_groups.len(),
    );
    let left_out = records.left_out.iter().map(|one| format!("{}: {}", one.place, one.fault));
    list(&mut text, "records cannot be taken", &mut left_out.into_iter(), records.left_out_count);
    list(
        &mut text,
        "records contradict others",
        &mut plan.conflicts.iter().map(ToString::to_string),
        plan.conflicts.len(),
    );
    let unknown = plan.unknown_members.iter().map(|one| format!("{} in {}", one.member, one.group));
    list(&mut text, "members of groups are nobody", &mut unknown.into_iter(), plan.unknown_members.len());
    text.push_str(&format!(
        "{} people and {} groups stay as they are\n",
        plan.unchanged_people, plan.unchanged_groups
    ));
    if !records.ignored.is_empty() {
        text.push_str(&format!("Nothing is made of the columns {}\n", records.ignored.join(", ")));
    }
    if plan.disables_nobody {
        text.push_str("Nobody is disabled: of some records it cannot be told whom they are about.\n");
    }
    text
}

fn told(applied: &Applied) -> String {
    let mut text = format!("{} documents were written\n", applied.written);
    for refused in &applied.refused {
        text.push_str(&format!("refused: {refused}\n"));
    }
    text
}

fn data_of(plan: &Plan, records: &SourceRecords) -> Value {
    let left_out: Vec<Value> = records
        .left_out
        .iter()
        .map(|one| json!({"place": one.place.to_string(), "fault": one.fault.to_string()}))
        .collect();
    let disabled: Vec<&String> =
        plan.changed_people.iter().filter(|change| is_disabled_by(change)).map(|change| &change.id).collect();
    let changed: Vec<&String> = plan
        .changed_people
        .iter()
        .filter(|change| !is_disabled_by(change))
        .map(|change| &change.id)
        .collect();
    json!({
        "dry_run": false,
        "new_people": plan.new_people.iter().map(|new| &new.short_name).collect::<Vec<_>>(),
        "changed_people": changed,
        "disabled_people": disabled,
        "unchanged_people": plan.unchanged_people,
        "new_groups": plan.new_groups.iter().map(|new| &new.name).collect::<Vec<_>>(),
        "changed_groups": plan.changed_groups.iter().map(|change| &change.id).collect::<Vec<_>>(),
        "unchanged_groups": plan.unchanged_groups,
        "left_out": left_out,
        "left_out_count": records.left_out_count,
        "conflicts": plan.conflicts.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "unknown_members": plan.unknown_members.iter().map(|one| json!({"group": one.group, "member": one.member})).collect::<Vec<_>>(),
        "ignored_columns": records.ignored,
    })
}
