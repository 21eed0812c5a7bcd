//! `scrinium log`: looking at the transaction log of a server that is stopped, and recovering it when it is damaged.

use std::fmt::Write;

use scrinium_catalog::FIRST_VOLUME;
use scrinium_store::{Missing, Plan, StoreError, Surveyed, plan_salvage, salvage, survey_log};
use serde_json::{Map, Value, json};

use crate::cli::{Failure, LogCommand, Terminal};
use crate::config::{Configuration, Settings};
use crate::volumes::{all_options, options_of};

/// Places and ranges that are told to people; JSON has all that are known.
const TOLD: usize = 20;

pub(crate) fn run(
    configuration: &Configuration,
    command: &LogCommand,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let settings = configuration.settings();
    match command {
        LogCommand::Verify => verify(&settings, terminal),
        LogCommand::Salvage { yes: false, volume } => {
            let plan = plan_salvage(&options_of(&settings, volume.as_deref())?).map_err(told)?;
            terminal.data(&planned(&plan), &plan_json(&plan))
        }
        LogCommand::Salvage { yes: true, volume } => {
            let plan = salvage(&options_of(&settings, volume.as_deref())?).map_err(told)?;
            terminal.data(&planned(&plan), &plan_json(&plan))
        }
    }
}

/// Reads the logs of all stores.
fn verify(settings: &Settings, terminal: &Terminal) -> Result<(), Failure> {
    let (mut text, mut volumes, mut all_whole) = (String::new(), Map::new(), true);
    let mut first = Value::Null;
    for (name, options) in all_options(settings) {
        let dir = options.log_dir.unwrap_or_else(|| options.dir.join("log"));
        let found = survey_log(&dir).map_err(told)?;
        let whole = found.damaged_places == 0 && found.missing.is_empty();
        all_whole &= whole;
        let json = survey_json(&found, whole);
        if name == FIRST_VOLUME {
            first = json;
        } else {
            text.push_str(&format!("Volume {name}: "));
            volumes.insert(name, json);
        }
        text.push_str(&verified(&found, whole));
    }
    if let Some(first) = first.as_object_mut()
        && !volumes.is_empty()
    {
        first.insert("volumes".to_owned(), volumes.into());
    }
    terminal.data(&text, &first)?;
    if all_whole {
        return Ok(());
    }
    Err(Failure::Work(
        "the log is damaged: put its files back from a mirror or a backup, or see what `scrinium log salvage` would do \
         (docs/operate/logging.md)"
            .to_owned(),
    ))
}

fn told(error: StoreError) -> Failure {
    match error {
        StoreError::Locked { .. } => {
            Failure::Work(format!("{error}; this is done while the server is stopped"))
        }
        other => Failure::work(other),
    }
}

fn verified(found: &Surveyed, whole: bool) -> String {
    let Surveyed { extents, extent_bytes, frames, records, bytes, first, next, .. } = found;
    let mut text = format!(
        "{extents} extents of {extent_bytes} bytes, read to the end: {records} records ({} to {}) in {frames} groups, \
         {bytes} bytes\n",
        first.0,
        next.0.saturating_sub(1)
    );
    if whole {
        text.push_str("Nothing is damaged.\n");
    }
    for damage in found.damage.iter().take(TOLD) {
        let _infallible = writeln!(
            text,
            "DAMAGED  {} at byte {}: {}",
            damage.file.display(),
            damage.offset,
            damage.problem
        );
    }
    let shown = u64::try_from(found.damage.len().min(TOLD)).unwrap_or(0);
    if found.damaged_places > shown {
        let _infallible = writeln!(text, "... and {} more places", found.damaged_places - shown);
    }
    for missing in found.missing.iter().take(TOLD) {
        let _infallible = writeln!(text, "MISSING  {}", range(missing));
    }
    if found.missing.len() > TOLD {
        let _infallible = writeln!(text, "... and {} more ranges", found.missing.len() - TOLD);
    }
    text
}

fn range(missing: &Missing) -> String {
    match missing.last {
        Some(last) if last == missing.first => format!("record {}", last.0),
        Some(last) => format!("records {} to {}", missing.first.0, last.0),
        None => format!("record {} and an unknown number after it", missing.first.0),
    }
}

fn planned(plan: &Plan) -> String {
    let done = plan.set_aside.is_some();
    let mut text = match &plan.unreadable {
        Some(reason) => format!("Nothing of the log can be read: {reason}\n"),
        None if plan.interrupted => {
            "A salvage was interrupted. All that it could bring in is there, and what it found lost is in salvage.txt; \
             a new log is still to be begun.\n"
                .to_owned()
        }
        None => verified(&plan.surveyed, plan.is_whole()),
    };
    let mut line = |line: String| {
        text.push_str(&line);
        text.push('\n');
    };
    line(format!("The databases' own files hold everything up to record {}.", plan.position));
    if plan.reached > plan.position {
        let verb = if done { "were brought" } else { "can be brought" };
        line(format!("Records {} to {} {verb} into them from the log.", plan.position + 1, plan.reached));
    }
    match &plan.lost {
        None if plan.interrupted => {}
        None => line("No record is lost.".to_owned()),
        Some(lost) => line(format!("LOST: {}.", range(lost))),
    }
    if plan.kept > 0 {
        line(format!(
            "{} of these can be read, but build on others that cannot; they are not brought in, and kept.",
            plan.kept
        ));
    }
    match &plan.set_aside {
        Some(dir) => line(format!(
            "The former log is kept in {}. A new one begins with record {}; the server can be started.",
            dir.display(),
            plan.next
        )),
        None if plan.is_whole() => line("There is nothing to salvage.".to_owned()),
        None => line("Nothing was changed. To do it: scrinium log salvage --yes".to_owned()),
    }
    text
}

fn missing_json(missing: &Missing) -> Value {
    json!({"first": missing.first.0, "last": missing.last.map(|last| last.0)})
}

fn survey_json(found: &Surveyed, whole: bool) -> Value {
    let damage = found.damage.iter().map(
        |damage| json!({"file": damage.file.display().to_string(), "offset": damage.offset, "problem": damage.problem}),
    );
    json!({
        "whole": whole,
        "extents": found.extents,
        "extent_bytes": found.extent_bytes,
        "groups": found.frames,
        "records": found.records,
        "bytes": found.bytes,
        "first": found.first.0,
        "next": found.next.0,
        "damaged_places": found.damaged_places,
        "damage": damage.collect::<Vec<_>>(),
        "missing": found.missing.iter().map(missing_json).collect::<Vec<_>>(),
    })
}

fn plan_json(plan: &Plan) -> Value {
    json!({
        "done": plan.set_aside.is_some(),
        "log_dir": plan.log_dir.display().to_string(),
        "unreadable": plan.unreadable,
        "survey": survey_json(&plan.surveyed, plan.is_whole()),
        "position": plan.position,
        "reached": plan.reached,
        "lost": plan.lost.as_ref().map(missing_json),
        "readable_but_lost": plan.kept,
        "interrupted": plan.interrupted,
        "next": plan.next,
        "set_aside": plan.set_aside.as_ref().map(|dir| dir.display().to_string()),
    })
}
