//! `scrinium config …`

use serde_json::json;

use super::arguments::ConfigCommand;
use super::{Failure, Terminal};
use crate::config::{
    ConfigError, Configuration, SECTIONS, Source, Sources, default_file, dump_json, dump_text, explain_json,
    explain_key, explain_section, keys, named, nearest_key,
};

pub(super) fn config(sources: &Sources, command: &ConfigCommand, terminal: &Terminal) -> Result<(), Failure> {
    match command {
        ConfigCommand::Check => check(sources, terminal),
        ConfigCommand::Dump { changed } => {
            let configuration = Configuration::load(sources)?;
            terminal.data(&dump_text(&configuration, *changed), &dump_json(&configuration, *changed))
        }
        ConfigCommand::Explain { key } => explain(&Configuration::load(sources)?, key, terminal),
        ConfigCommand::Default => terminal.data(&default_file(), &json!(default_file())),
    }
}

fn check(sources: &Sources, terminal: &Terminal) -> Result<(), Failure> {
    let place = sources.file.as_ref().map(|file| file.display().to_string());
    let loaded = Configuration::load(sources).and_then(|configuration| {
        let problems = configuration.missing_certificates();
        if problems.is_empty() { Ok(configuration) } else { Err(ConfigError::Invalid(problems)) }
    });
    match loaded {
        Ok(configuration) => {
            let set = configuration.all().filter_map(|(name, _)| configuration.get(&name).cloned());
            let set = set.filter(|effective| effective.source != Source::Default).count();
            let named = place.clone().unwrap_or_else(|| "no configuration file".to_owned());
            let mut text = format!("{named}: fine; {set} of {} keys are set\n", keys().count());
            let remarks = configuration.remarks();
            text.extend(remarks.iter().map(|remark| format!("remark: {remark}\n")));
            let told = json!({"ok": true, "file": place, "set": set, "problems": [], "remarks": remarks});
            terminal.data(&text, &told)
        }
        Err(error) => {
            let problems = error.problems();
            if terminal.wants_json() {
                let told = problems.iter().map(|problem| {
                    let line = match &problem.source {
                        Source::File { line, .. } => Some(line),
                        _ => None,
                    };
                    json!({"source": problem.source.to_string(), "line": line, "problem": problem.what})
                });
                let told: Vec<_> = told.collect();
                terminal.data("", &json!({"ok": false, "file": place, "problems": told}))?;
            }
            let count = problems.len();
            let plural = if count == 1 { "problem" } else { "problems" };
            match error {
                ConfigError::Unreadable { .. } => Err(error.into()),
                ConfigError::Invalid(_) => Err(Failure::Use(format!("{count} {plural}\n{error}"))),
            }
        }
    }
}

fn explain(configuration: &Configuration, name: &str, terminal: &Terminal) -> Result<(), Failure> {
    if let Some(section) = SECTIONS.iter().find(|section| section.name.eq_ignore_ascii_case(name)) {
        let data = section.keys.iter().map(|key| explain_json(key.name, key, configuration)).collect();
        return terminal.data(&explain_section(section, configuration), &data);
    }
    match named(name) {
        Some((name, key)) => {
            terminal.data(&explain_key(&name, key, configuration), &explain_json(&name, key, configuration))
        }
        None => Err(Failure::Use(match nearest_key(name) {
            Some(nearest) => format!("there is no key {name}; did you mean {nearest}?"),
            None => format!("there is no key {name}; scrinium config default shows all"),
        })),
    }
}
