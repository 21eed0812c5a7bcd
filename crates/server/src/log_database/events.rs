//! What the server says on standard error, from level info upwards, as records.

use std::fmt;

use scrinium_statistics::one_line;
use serde_json::{Map, Value, json};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use super::record::TEXT_BYTES_MAX;
use super::{Class, LogDatabase, fields_of};
use crate::messages::text_of;

/// What this folder says itself is not recorded: it may be that nothing can be.
const OWN_TARGET: &str = "scrinium_server::log_database";

/// The fields of an event, without its text, have at most this many bytes together.
const FIELDS_BYTES_MAX: usize = 1500;

/// Records events.
pub(crate) struct EventLayer(pub(crate) LogDatabase);

impl<S: Subscriber> Layer<S> for EventLayer {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        if *metadata.level() > Level::INFO || metadata.target().starts_with(OWN_TARGET) {
            return;
        }
        self.0.record(Class::Event, || {
            let mut seen = Seen::default();
            event.record(&mut seen);
            fields_of(json!({
                "Level": metadata.level().as_str().to_ascii_lowercase(),
                "Source": metadata.target(),
                "Text": one_line(&seen.text, TEXT_BYTES_MAX),
                "Fields": seen.fields,
            }))
        });
    }
}

#[derive(Default)]
struct Seen {
    text: String,
    fields: Map<String, Value>,
    bytes: usize,
}

impl Seen {
    fn add(&mut self, field: &Field, value: Value) {
        self.bytes += field.name().len() + value.to_string().len();
        if self.bytes <= FIELDS_BYTES_MAX {
            self.fields.insert(field.name().to_owned(), value);
        }
    }
}

impl Visit for Seen {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &text_of(value));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            value.clone_into(&mut self.text);
        } else {
            self.add(field, Value::from(one_line(value, TEXT_BYTES_MAX)));
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, Value::from(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, Value::from(value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, Value::from(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, Value::from(value));
    }
}
