//! What to change of a running server: a table of rules, each a pure function over one [`Observation`].
//!
//! An observation is made of two [`Moment`]s, each of which is what some console commands answer ([`Source`]). [`judge`]
//! puts every rule of [`rules()`] to it; the [`Report`] has what to change, in the order of effect, and what could not be
//! judged and why. Nothing here knows how a server is asked, and nothing is changed.

mod advice;
mod moment;
mod observation;
mod page;
mod report;
mod rule;
mod rules;
mod text;
mod words;

pub use advice::{Advice, AdvisedStep, Figure, Gain, Unit};
pub use moment::{AskError, Moment, Source};
pub use observation::{
    DatabaseUse, Event, Observation, ObservationError, Operation, Setting, TaskRun, VolumeUse,
};
pub use page::documentation;
pub use report::{Recommended, Report, judge};
pub use rule::{Judgement, Rule, Subject, Support, Unjudged, Verdict};
pub use rules::{needs_restart, rules};
