//! The configuration as people read it: the commented file, the page of the documentation, the effective
//! values with their sources, the explanation of one key.

use std::fmt::Write;

use serde_json::{Value as Json, json};

use super::key::{Change, Key, Section};
use super::load::Configuration;
use super::problem::Source;
use super::table::SECTIONS;
use super::volume::{ANY, full_name, volume_section};

/// Lines of comments are at most this long.
const WIDTH: usize = 90;

/// The file with every key, its help and its default, each commented out.
#[must_use]
pub fn default_file() -> String {
    let mut text = String::from(
        "# The configuration of Scrinium: every key with its default. Take away the # before a key to change\n\
         # it. `scrinium config explain KEY` explains it, `scrinium config check` finds mistakes.\n",
    );
    for section in SECTIONS {
        let _ = write!(text, "\n{}[{}]\n", commented(&section.help()), section.name);
        for key in section.keys {
            let _ = write!(text, "\n{}# Takes {}.", commented(&key.help()), key.kind);
            if let Some(domino) = key.domino {
                let _ = write!(text, " Domino: {domino}.");
            }
            let _ = writeln!(text, "\n#{} = {}", key.short_name(), toml_default(key));
        }
    }
    // Names are the administrator's, so that these lines are an example.
    let section = volume_section();
    let _ = write!(text, "\n{}# [volume.{ANY}]\n", commented(&section.help()));
    for key in section.keys {
        let _ = write!(text, "\n{}# Takes {}.", commented(&key.help()), key.kind);
        let _ = writeln!(text, "\n# {} = {}", key.short_name(), toml_default(key));
    }
    text
}

/// The page `docs/reference/configuration.md`.
#[must_use]
pub fn documentation() -> String {
    let mut page = String::from(INTRODUCTION);
    for section in SECTIONS {
        let _ = write!(page, "\n## [{}]\n\n{}\n", section.name, section.help());
        section.keys.iter().for_each(|key| document_key(&mut page, key.name, key));
    }
    let section = volume_section();
    let _ = write!(page, "\n## [volume.{ANY}]\n\n{}\n", section.help());
    for key in section.keys {
        document_key(&mut page, &full_name(ANY, key), key);
    }
    page
}

fn document_key(page: &mut String, name: &str, key: &Key) {
    let _ = write!(page, "\n### {name}\n\n{}\n\n", key.help());
    let _ = writeln!(page, "- Takes {}", key.kind);
    let _ = writeln!(page, "- Default: `{}`", toml_default(key));
    let _ = writeln!(page, "- Environment: `{}`", variable_of(name));
    if let Some(domino) = key.domino {
        let _ = writeln!(page, "- Domino: {domino}");
    }
    let _ = writeln!(page, "- A new value is used {}", when(key));
}

/// The environment variable that sets a key: `SCRINIUM_SECTION__KEY`.
fn variable_of(name: &str) -> String {
    format!("SCRINIUM_{}", name.replace('.', "__")).to_ascii_uppercase()
}

const INTRODUCTION: &str = "\
<!-- Generated from the table of keys: change crates/server/src/config/table.rs, then run
     UPDATE=1 cargo test -p scrinium-server --test it documentation -->

# Configuration

Scrinium reads one TOML file. Every key has a default, so the file may be empty or missing.

The file is the one named by `--config`, else by `SCRINIUM_CONFIG`, else `scrinium.toml` in the folder
where it is started, else `/etc/scrinium/scrinium.toml`. A value is taken from the last of these that has it:

1. the default;
2. the file;
3. the environment: `SCRINIUM_SECTION__KEY`, such as `SCRINIUM_LOG__DIR=/fast/log`;
4. a flag of the command line (`--data-dir`).

While the server runs, `set config KEY=VALUE` on its console changes a value and keeps it in the file. It does not change keys
that say where the server reads and writes, whom it listens to or who is let in: those are set in the file (or its
environment, or the command line) alone, so that an administrator's password gives no hold on the machine.

    scrinium config default > scrinium.toml    the file with every key, commented out
    scrinium config check                      what is wrong, with file and line
    scrinium config dump                       the effective values, and where each comes from
    scrinium config explain memory.budget      one key

Sizes are written with KB, MB, GB or TB (a KB is 1,024 bytes), times with ms, s, min, h or d. In the
environment and on the console, the items of a list are separated by commas.
";

/// All effective values as a TOML file in which comments tell where they come from; `changed` leaves out
/// the defaults.
#[must_use]
pub fn dump_text(configuration: &Configuration, changed: bool) -> String {
    let mut text = String::new();
    let mut last = String::new();
    for (name, key) in configuration.all() {
        let Some(effective) = configuration.get(&name) else { continue };
        if changed && effective.source == Source::Default {
            continue;
        }
        let section = name.rsplit_once('.').map_or("", |(section, _)| section);
        if section != last {
            let gap = if text.is_empty() { "" } else { "\n" };
            let _ = writeln!(text, "{gap}[{section}]");
            section.clone_into(&mut last);
        }
        let assignment = format!("{} = {}", key.short_name(), effective.value.to_toml().to_string().trim());
        let _ = writeln!(text, "{assignment:<40} # {}", effective.source);
    }
    text
}

/// All effective values as an object by name: `{"value", "source"}`, sizes in bytes, times in seconds.
#[must_use]
pub fn dump_json(configuration: &Configuration, changed: bool) -> Json {
    let keys = configuration.all().filter_map(|(name, _)| {
        let effective = configuration.get(&name)?;
        let left_out = changed && effective.source == Source::Default;
        let value = json!({"value": effective.value.to_json(), "source": effective.source.to_string()});
        (!left_out).then_some((name, value))
    });
    Json::Object(keys.collect())
}

/// What there is to know of a key, with its effective value.
#[must_use]
pub fn explain_key(name: &str, key: &Key, configuration: &Configuration) -> String {
    let mut text = String::new();
    if let Some(effective) = configuration.get(name) {
        let value = effective.value.to_toml();
        let _ = writeln!(text, "{name} = {}    ({})", value.to_string().trim(), effective.source);
    }
    let section = name.rsplit_once('.').map_or("", |(section, _)| section);
    let _ = writeln!(text, "{}", wrapped(&key.help(), "  "));
    let _ = writeln!(text, "  takes        {}", key.kind);
    let _ = writeln!(text, "  default      {}", toml_default(key));
    if let Some(domino) = key.domino {
        let _ = writeln!(text, "  Domino       {domino}");
    }
    let _ = writeln!(text, "  file         [{section}] {} = ...", key.short_name());
    let _ = writeln!(text, "  environment  {}", variable_of(name));
    let _ = writeln!(text, "  new value    used {}", when(key));
    text
}

/// What a section is for, and its keys with their effective values.
#[must_use]
pub fn explain_section(section: &Section, configuration: &Configuration) -> String {
    let mut text = format!("[{}]\n{}\n", section.name, wrapped(&section.help(), "  "));
    for key in section.keys {
        text.push('\n');
        text.push_str(&explain_key(key.name, key, configuration));
    }
    text
}

/// What there is to know of a key, as an object.
#[must_use]
pub fn explain_json(name: &str, key: &Key, configuration: &Configuration) -> Json {
    let effective = configuration.get(name);
    json!({
        "key": name,
        "help": key.help(),
        "takes": key.kind.to_string(),
        "default": key.default_value().map(|value| value.to_json()).unwrap_or_default(),
        "value": effective.map(|effective| effective.value.to_json()),
        "source": effective.map(|effective| effective.source.to_string()),
        "environment": variable_of(name),
        "domino": key.domino,
        "changes_while_running": key.change == Change::Running,
        "set_in_file_alone": key.change == Change::File,
    })
}

fn when(key: &Key) -> &'static str {
    match key.change {
        Change::Running => "at once",
        Change::Restart => "from the next start on",
        Change::File => "from the next start on; it is set in the file alone, not on the console",
    }
}

fn toml_default(key: &Key) -> String {
    key.default_value().map_or_else(|_| key.default.to_owned(), |value| value.to_toml().to_string())
}

fn commented(text: &str) -> String {
    let mut lines = wrapped(text, "# ");
    lines.push('\n');
    lines
}

/// Breaks a paragraph into lines that begin with `prefix`.
fn wrapped(text: &str, prefix: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() <= WIDTH => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(format!("{prefix}{word}")),
        }
    }
    lines.join("\n")
}
