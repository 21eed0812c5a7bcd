//! What the server tells while it runs: text or JSON lines on standard error, at a level that can be
//! changed, without floods of the same warning.

mod lines;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use scrinium_statistics::{Counter, Registry};
use tracing::callsite::Identifier;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::filter::{FilterExt, Targets};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::{Context, Filter, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Layer, reload};

use crate::config::TracingSettings;
use crate::log_database::{EventLayer, LogDatabase};
use lines::LineFormat;
pub(crate) use lines::text_of;

/// Warnings of one place in the program are counted over this time.
const WINDOW: Duration = Duration::from_secs(10);

/// Changes the level of a running subscriber.
#[derive(Clone)]
pub struct MessageLevel {
    set: Arc<dyn Fn(Targets) -> Result<(), String> + Send + Sync>,
}

impl MessageLevel {
    /// Sets the level, such as `debug` or `info,scrinium_store=debug`.
    ///
    /// # Errors
    /// Says what is wrong with the text.
    pub fn set(&self, level: &str) -> Result<(), String> {
        (self.set)(targets(level)?)
    }
}

/// Makes the subscriber that the settings describe, writing to `writer`, in colour where `color` says so
/// and the format is text; what is logged from level info upwards is recorded in `log_database` too. Suppressed warnings
/// are counted as `Server.Tracing.Suppressed`.
///
/// # Errors
/// Says what is wrong with the level.
pub fn subscriber<W>(
    settings: &TracingSettings,
    color: bool,
    (statistics, log_database): (&Registry, &LogDatabase),
    writer: W,
) -> Result<(impl Subscriber + Send + Sync + use<W>, MessageLevel), String>
where
    W: for<'writer> MakeWriter<'writer> + Send + Sync + 'static,
{
    let (level, handle) = reload::Layer::new(targets(&settings.level)?);
    let repeats = Repeats {
        limit: settings.repeats,
        suppressed: statistics.counter("Server.Tracing.Suppressed"),
        places: Mutex::default(),
    };
    let lines = tracing_subscriber::fmt::layer().with_writer(writer);
    let format = match settings.format.as_str() {
        "json" => LineFormat::Json,
        _ if color => LineFormat::ColoredText,
        _ => LineFormat::Text,
    };
    let lines = lines.with_ansi(color).event_format(format);
    let subscriber = tracing_subscriber::registry()
        .with(lines.and_then(EventLayer(log_database.clone())).with_filter(level.and(repeats)));
    let set = move |filter| handle.reload(filter).map_err(|error| error.to_string());
    Ok((subscriber, MessageLevel { set: Arc::new(set) }))
}

fn targets(level: &str) -> Result<Targets, String> {
    level.parse().map_err(|error| format!("{level:?} is no level: {error}"))
}

/// Lets each place in the program tell this many warnings or errors in a while.
struct Repeats {
    /// 0 lets all pass.
    limit: usize,
    suppressed: Counter,
    /// As many entries as the program has places that warn.
    places: Mutex<HashMap<Identifier, (Instant, usize)>>,
}

impl Repeats {
    fn passes(&self, place: Identifier, now: Instant) -> bool {
        let mut places = self.places.lock();
        let (since, told) = places.entry(place).or_insert((now, 0));
        if now.duration_since(*since) >= WINDOW {
            (*since, *told) = (now, 0);
        }
        *told += 1;
        *told <= self.limit
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Filter<S> for Repeats {
    fn enabled(&self, _: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        true
    }

    fn event_enabled(&self, event: &Event<'_>, _: &Context<'_, S>) -> bool {
        let metadata = event.metadata();
        if self.limit == 0 || *metadata.level() > Level::WARN {
            return true;
        }
        let passes = self.passes(metadata.callsite(), Instant::now());
        if !passes {
            self.suppressed.add(1);
        }
        passes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_may_speak_again_after_a_while() {
        let repeats = Repeats { limit: 2, suppressed: Counter::default(), places: Mutex::default() };
        let callsite =
            tracing::callsite!(name: "here", kind: tracing::metadata::Kind::EVENT, fields: message);
        let place = tracing::callsite::Callsite::metadata(callsite).callsite();
        let start = Instant::now();
        let told = |seconds| repeats.passes(place.clone(), start + Duration::from_secs(seconds));
        assert_eq!([told(0), told(1), told(2), told(9)], [true, true, false, false]);
        assert_eq!([told(10), told(11), told(12)], [true, true, false]);
    }
}
