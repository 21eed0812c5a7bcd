//! An event as one line, whatever texts of others are in it: every field and the message are escaped and bounded here,
//! for both formats.

use std::fmt::{self, Write as _};

use scrinium_statistics::{breaks_line, one_line};
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::FmtContext;
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::registry::LookupSpan;

/// The message, and each field, have about this many bytes.
const TEXT_BYTES_MAX: usize = 2048;

/// Fields of an event beyond this many bytes together are left out.
const FIELDS_BYTES_MAX: usize = 16 << 10;

/// How events are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineFormat {
    /// `TIME LEVEL TARGET: MESSAGE NAME=VALUE`, values in quotation marks where they could be taken for something else.
    Text,
    /// The same in colours, for a terminal.
    ColoredText,
    /// A JSON object.
    Json,
}

impl<S, N> FormatEvent<S, N> for LineFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut time = String::new();
        SystemTime.format_time(&mut Writer::new(&mut time))?;
        let (level, target) = (*event.metadata().level(), event.metadata().target());
        match self {
            Self::Json => {
                let mut line = JsonLine { fields: Map::new(), bytes: 0 };
                line.fields.insert("timestamp".to_owned(), time.into());
                line.fields.insert("level".to_owned(), level.as_str().into());
                event.record(&mut line);
                line.fields.insert("target".to_owned(), target.into());
                writer.write_str(&escaped_json(&Value::Object(line.fields).to_string()))?;
            }
            Self::Text | Self::ColoredText => {
                let paint = *self == Self::ColoredText;
                let mut line = TextLine { message: String::new(), fields: String::new(), paint };
                event.record(&mut line);
                let (dim, color, plain) =
                    if paint { ("\u{1b}[2m", color_of(level), "\u{1b}[0m") } else { ("", "", "") };
                write!(
                    writer,
                    "{dim}{time}{plain} {color}{:>5}{plain} {dim}{target}:{plain} ",
                    level.as_str()
                )?;
                writer.write_str(&line.message)?;
                writer.write_str(&line.fields)?;
            }
        }
        writeln!(writer)
    }
}

fn color_of(level: Level) -> &'static str {
    match level {
        Level::ERROR => "\u{1b}[31m",
        Level::WARN => "\u{1b}[33m",
        Level::INFO => "\u{1b}[32m",
        Level::DEBUG => "\u{1b}[34m",
        Level::TRACE => "\u{1b}[35m",
    }
}

/// JSON text without those characters that its grammar allows and a line does not.
fn escaped_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for character in json.chars() {
        if breaks_line(character) {
            // All of them are below U+10000, and stand in strings, since the text has no white space of its own.
            let _ = write!(out, "\\u{:04x}", u32::from(character));
        } else {
            out.push(character);
        }
    }
    out
}

struct TextLine {
    message: String,
    fields: String,
    paint: bool,
}

impl TextLine {
    fn add(&mut self, name: &str, value: &str) {
        if name == "message" {
            // What could be taken for the fields behind it is marked apart from them.
            let is_plain = !value.contains(['=', '"']);
            self.message = if is_plain { value.to_owned() } else { quoted(value) };
            return;
        }
        if self.fields.len() + name.len() + value.len() > FIELDS_BYTES_MAX {
            return;
        }
        let (slanted, plain) = if self.paint { ("\u{1b}[3m", "\u{1b}[0m") } else { ("", "") };
        // A value with a blank or an equals sign could be taken for several fields.
        let is_plain = !value.is_empty() && !value.contains([' ', '=', '"']);
        let _ = if is_plain {
            write!(self.fields, " {slanted}{name}{plain}={value}")
        } else {
            write!(self.fields, " {slanted}{name}{plain}={}", quoted(value))
        };
    }
}

/// In quotation marks; backslashes are doubled already.
fn quoted(value: &str) -> String {
    format!("\"{}\"", value.replace('"', "\\\""))
}

impl Visit for TextLine {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field.name(), &one_line(&text_of(value), TEXT_BYTES_MAX));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field.name(), &one_line(value, TEXT_BYTES_MAX));
    }
}

struct JsonLine {
    fields: Map<String, Value>,
    bytes: usize,
}

impl JsonLine {
    fn add(&mut self, field: &Field, value: Value) {
        self.bytes += field.name().len() + value.as_str().map_or(24, str::len);
        if self.bytes <= FIELDS_BYTES_MAX {
            self.fields.insert(field.name().to_owned(), value);
        }
    }
}

impl Visit for JsonLine {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &text_of(value));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, bounded(value).into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value.into());
    }
}

/// What a value says of itself, as far as it is kept; a long one is not built to its end.
pub(crate) fn text_of(value: &dyn fmt::Debug) -> String {
    struct Beginning(String);
    impl fmt::Write for Beginning {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            // One byte more than is kept tells that something was cut.
            let room = (TEXT_BYTES_MAX + 4).saturating_sub(self.0.len());
            self.0.push_str(text.get(..text.floor_char_boundary(room)).unwrap_or_default());
            if room == 0 { Err(fmt::Error) } else { Ok(()) }
        }
    }
    let mut beginning = Beginning(String::new());
    // An error says that there was no more room.
    let _ = write!(beginning, "{value:?}");
    beginning.0
}

fn bounded(text: &str) -> String {
    let kept = text.get(..text.floor_char_boundary(TEXT_BYTES_MAX)).unwrap_or_default();
    if kept.len() == text.len() { kept.to_owned() } else { format!("{kept}…") }
}
