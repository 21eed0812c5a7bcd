//! `show configuration` and `set configuration`.

use serde_json::json;

use super::{ConsoleError, Reply};
use crate::config::{
    Change, Changed, Kept, RunningConfiguration, SECTIONS, dump_json, dump_text, explain_json, explain_key,
    explain_section, named, nearest_key,
};

pub(super) fn show_configuration(
    running: &RunningConfiguration,
    name: Option<&str>,
) -> Result<Reply, ConsoleError> {
    let configuration = running.configuration();
    let Some(name) = name else {
        return Ok(Reply { text: dump_text(&configuration, false), data: dump_json(&configuration, false) });
    };
    if let Some(section) = SECTIONS.iter().find(|section| section.name.eq_ignore_ascii_case(name)) {
        let data = section.keys.iter().map(|key| explain_json(key.name, key, &configuration)).collect();
        return Ok(Reply { text: explain_section(section, &configuration), data });
    }
    match named(name) {
        Some((name, key)) => Ok(Reply {
            text: explain_key(&name, key, &configuration),
            data: explain_json(&name, key, &configuration),
        }),
        None => Err(ConsoleError::NotFound(match nearest_key(name) {
            Some(nearest) => format!("there is no key {name}; did you mean {nearest}?"),
            None => format!("there is no key {name}; show config lists all"),
        })),
    }
}

pub(super) fn set_configuration(
    running: &RunningConfiguration,
    name: &str,
    value: &str,
) -> Result<Reply, ConsoleError> {
    let changed = running.set(name, value)?;
    let kept_in = match &changed.kept {
        Kept::File(path) | Kept::Overridden(path, _) => Some(path.display().to_string()),
        Kept::Nowhere | Kept::Failed(..) => None,
    };
    let data = json!({
        "key": changed.key,
        "old": changed.old.to_json(),
        "new": changed.new.to_json(),
        "used": match changed.change { Change::Running => "now", Change::Restart | Change::File => "next start" },
        "kept_in": kept_in,
    });
    Ok(Reply { text: told(&changed), data })
}

fn told(changed: &Changed) -> String {
    let used = match changed.change {
        Change::Running => "It is used from now on",
        Change::Restart | Change::File => "It is used from the next start on",
    };
    let kept = match &changed.kept {
        Kept::File(path) => format!("and kept in {}.", path.display()),
        Kept::Overridden(path, source) => {
            format!("and kept in {}, but {source} wins at the next start.", path.display())
        }
        Kept::Nowhere => "until the server ends: it runs without a configuration file.".to_owned(),
        Kept::Failed(path, reason) => format!("but it was not kept in {}: {reason}", path.display()),
    };
    format!("{} = {} (was {})\n{used}, {kept}\n", changed.key, changed.new.to_toml(), changed.old.to_toml())
}
