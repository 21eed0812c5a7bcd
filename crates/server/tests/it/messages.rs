//! What the server tells: formats, levels that change, and warnings that do not flood.

use std::io::{self, Write};
use std::sync::Arc;

use parking_lot::Mutex;
use scrinium_clock::Clock;
use scrinium_server::LogDatabase;
use scrinium_server::config::{Settings, TracingSettings};
use scrinium_server::messages::{MessageLevel, subscriber};
use scrinium_statistics::{Registry, breaks_line};
use serde_json::Value;
use tracing::subscriber::with_default;

#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What is logged while `work` runs, and the warnings left out.
fn told(change: impl Fn(&mut TracingSettings), work: impl Fn(&MessageLevel)) -> (String, u64) {
    let mut settings = Settings::default().tracing;
    change(&mut settings);
    let (written, statistics) = (Written::default(), Registry::new());
    let writer = written.clone();
    let made = subscriber(
        &settings,
        false,
        (&statistics, &LogDatabase::new(&statistics, &Clock::system())),
        move || writer.clone(),
    );
    let Ok((subscriber, level)) = made else { return ("no such level".to_owned(), 0) };
    with_default(subscriber, || work(&level));
    let text = String::from_utf8_lossy(&written.0.lock()).into_owned();
    (text, statistics.snapshot().counters["Server.Tracing.Suppressed"])
}

#[test]
fn the_level_can_be_changed_while_running() {
    let (text, _) = told(
        |settings| settings.level = "warn".to_owned(),
        |level| {
            tracing::info!("one");
            level.set("info,it::messages=debug").unwrap();
            tracing::debug!("two");
            assert!(level.set("info,it::messages=loud").is_err());
            tracing::debug!("three");
            level.set("error").unwrap();
            tracing::warn!("four");
        },
    );
    let words = ["one", "two", "three", "four"].map(|word| text.contains(word));
    assert_eq!(words, [false, true, true, false], "{text}");
}

#[test]
fn json_is_an_object_a_line() {
    let (text, _) = told(
        |settings| settings.format = "json".to_owned(),
        |_| tracing::info!(database = "mail/ann", "compacted\nwell"),
    );
    let line: Value = serde_json::from_str(text.trim_end()).unwrap();
    assert_eq!((&line["message"], &line["database"]), (&"compacted\nwell".into(), &"mail/ann".into()));
    assert_eq!((&line["level"], text.lines().count()), (&"INFO".into(), 1));
}

#[test]
fn repeated_warnings_of_one_place_are_left_out_and_counted() {
    let flood = |_: &MessageLevel| {
        for number in 0..50 {
            tracing::warn!(number, "disk is slow");
            tracing::info!(number, "told always");
        }
        tracing::error!("another place");
    };
    let (text, suppressed) = told(|settings| settings.repeats = 3, flood);
    assert_eq!((text.matches("disk is slow").count(), suppressed), (3, 47));
    assert_eq!((text.matches("told always").count(), text.matches("another place").count()), (50, 1));
    let (text, suppressed) = told(|settings| settings.repeats = 0, flood);
    assert_eq!((text.matches("disk is slow").count(), suppressed), (50, 0));
}

/// Text of others that would like to be more than a field.
fn foreign_texts() -> Vec<String> {
    let longest = "y".repeat(1 << 20);
    let texts = [
        "a\r\n2026-11-25T18:00:00Z ERROR forged: line",
        "\u{1b}[31mred\u{1b}[2J\u{7}",
        "\" level=ERROR x=\"1",
        "\u{2028}\u{2029}\u{85}\u{7f}\u{9b}31m",
        "\u{202e}detrever\u{2066}\u{200f}",
        "\u{0}\\n\\",
        &longest,
    ];
    texts.map(str::to_owned).into()
}

/// A line without what stands in quotation marks.
fn unquoted(line: &str) -> String {
    let (mut out, mut inside, mut characters) = (String::new(), false, line.chars());
    while let Some(character) = characters.next() {
        match character {
            '\\' if inside => drop(characters.next()),
            '"' => inside = !inside,
            other if !inside => out.push(other),
            _ => {}
        }
    }
    out
}

#[test]
fn one_event_is_one_line_whatever_others_put_into_it() {
    for text in foreign_texts() {
        let tell = |_: &MessageLevel| {
            let error = std::io::Error::other(text.clone());
            tracing::warn!(display = %text, string = text.as_str(), debug = ?text, %error, "about {text}");
        };
        for format in ["text", "json"] {
            let (line, _) = told(|settings| settings.format = format.to_owned(), tell);
            let line = line.strip_suffix('\n').unwrap_or_else(|| panic!("{format}: {line:.300}"));
            assert!(!line.chars().any(breaks_line), "{format}: {line:?}");
            assert!(line.len() < 32 << 10, "{format}: {} bytes", line.len());
            if format == "json" {
                let read: Value = serde_json::from_str(line).unwrap();
                assert_eq!(
                    (&read["level"], read["display"].is_string()),
                    (&"WARN".into(), true),
                    "{line:.300}"
                );
            } else {
                let told = unquoted(line);
                assert!(told.contains(" WARN ") && !told.contains("ERROR x="), "{told:.300}");
            }
        }
    }
}
