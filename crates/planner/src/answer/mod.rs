//! The answer: how many machines, what each needs, what users will wait, what breaks first, and how far all of this goes
//! beyond what was measured.

mod figures;
mod limits;
mod servers;

use serde::Serialize;

use crate::calibration::Calibration;
use crate::demand::Demand;
use crate::error::PlanError;
use crate::fit::Model;
use crate::organisation::Organisation;
use crate::range::{Case, Range};

pub use limits::Limit;
use servers::Servers;

/// The form of `plan.json`. A reader that finds another number behind the slash must not guess.
pub const FORMAT: &str = "scrinium-plan/1";

/// What a figure is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the names say it")]
pub enum Unit {
    Count,
    PerSecond,
    Percent,
    Milliseconds,
    Bytes,
    BytesPerSecond,
    Cores,
}

/// One number of an answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Figure {
    /// A name for programs.
    pub key: &'static str,
    pub title: &'static str,
    /// Not finite where there is none, such as the response of a server that cannot keep up.
    #[serde(flatten)]
    pub range: Range,
    pub unit: Unit,
    /// The runs that it comes from, or what is assumed.
    pub source: String,
}

/// Something in which the plan goes beyond the calibration, or does not.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Reach {
    pub what: &'static str,
    pub asked: f64,
    pub measured: f64,
    /// In words.
    pub text: String,
}

/// A configuration key that should not be left at its default.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Setting {
    pub key: &'static str,
    pub value: String,
    pub why: String,
}

/// Everything that can be said of an organisation.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Answer {
    pub format: &'static str,
    pub organisation: String,
    /// The sentence that matters.
    pub summary: String,
    /// The objective and all limits are held, also with the servers lost that may be.
    pub holds: bool,
    /// Why not.
    pub problems: Vec<String>,
    pub figures: Vec<Figure>,
    /// What is reached first if more is asked, and when.
    pub breaks_first: String,
    pub reach: Vec<Reach>,
    pub settings: Vec<Setting>,
    pub assumptions: Vec<String>,
    /// The calibration, in a line.
    pub calibration: String,
    pub run_folder: String,
    /// What a reader should know of the calibration.
    pub notes: Vec<String>,
}

impl Answer {
    /// A figure by its key.
    #[must_use]
    pub fn figure(&self, key: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.key == key)
    }
}

/// Configuration keys that an answer may name.
pub const SETTINGS: [&str; 4] =
    ["memory.budget", "https.listen", "http.max_connections", "server.max_concurrent_transactions"];

/// Answers for an organisation, on machines like the one of a calibration.
///
/// # Errors
/// A workload is unknown or was not measured.
pub fn answer(
    organisation: &Organisation,
    calibration: &Calibration,
    model: &Model,
) -> Result<Answer, PlanError> {
    let calibrated_bytes = calibration.points.iter().map(|point| point.message_bytes).fold(0.0, f64::max);
    let demand = Demand::of(organisation, calibrated_bytes)?;
    let servers = Servers::new(organisation, &demand, model);
    let counts = Case::ALL.map(|case| servers.fewest(case));
    let fixed = organisation.machine.servers;
    let [low, expected, high] = counts;
    // Where no number is enough, what one more server would be like says why.
    let installed = fixed.or(expected).unwrap_or_else(|| servers.least());
    let count = match (fixed, low, expected, high) {
        (Some(fixed), ..) => Some(Range::exactly(f64::from(fixed))),
        (None, low, Some(expected), high) => Some(Range::of(
            f64::from(low.unwrap_or(expected)),
            f64::from(expected),
            high.map_or(f64::INFINITY, f64::from),
        )),
        (None, _, None, _) => None,
    };
    let problems = problems(&servers, installed, expected.is_some() || fixed.is_some());
    let holds = problems.is_empty();
    let factor = servers.load_until_limit(installed, Case::Expected);
    let figures = figures::of(&servers, installed, count);
    Ok(Answer {
        format: FORMAT,
        organisation: organisation.name.clone(),
        summary: summary(&servers, installed, count, holds),
        holds,
        problems,
        breaks_first: breaks_first(&servers, installed, factor),
        reach: figures::reach(&servers, installed, bytes_as_float(calibration.machine.memory_bytes)),
        settings: figures::settings(&servers, installed),
        assumptions: figures::assumptions(&servers),
        figures,
        calibration: format!(
            "{} CPUs ({}), {} of memory, Scrinium {}, {}{}",
            calibration.machine.cpus,
            calibration.machine.cpu_model,
            scrinium_lab_report::bytes(bytes_as_float(calibration.machine.memory_bytes)),
            calibration.scrinium_version,
            calibration.made,
            if calibration.quick { ", the quick form" } else { "" }
        ),
        run_folder: calibration.run_folder.clone(),
        notes: calibration.notes.clone(),
    })
}

#[allow(clippy::cast_precision_loss, reason = "memory needs no more than 53 bits")]
pub(crate) fn bytes_as_float(bytes: u64) -> f64 {
    bytes as f64
}

fn problems(servers: &Servers<'_>, installed: u32, found: bool) -> Vec<String> {
    let running = servers.running(installed);
    let missed = servers.missed(running, 1.0, Case::Expected);
    let sentences = missed.iter().map(|limit| {
        let sentence = limit.sentence(servers, running);
        if found { sentence } else { format!("{sentence}, however many servers there are") }
    });
    let mut sentences: Vec<String> = if found {
        sentences.collect()
    } else {
        let many = servers.missed(crate::organisation::MOST_SERVERS, 1.0, Case::Expected);
        let all = crate::organisation::MOST_SERVERS;
        many.iter()
            .map(|limit| format!("{}, however many servers there are", limit.sentence(servers, all)))
            .collect()
    };
    if installed <= servers.lost() {
        sentences.insert(
            0,
            format!("with {} lost, none of {installed} is left: nobody is served then", servers.lost()),
        );
    }
    sentences
}

fn summary(servers: &Servers<'_>, installed: u32, count: Option<Range>, holds: bool) -> String {
    let users = scrinium_lab_report::thousands(servers.demand.users);
    let what = |count: u32| if count == 1 { "1 server".to_owned() } else { format!("{count} servers") };
    let machines = format!("{} of {} cores", what(installed), servers.cores());
    if count.is_none() {
        return format!("No number of servers is enough for {users} users and this objective.");
    }
    let lost = match servers.lost() {
        0 => String::new(),
        lost => format!(", also while {} of them {} lost", lost, if lost == 1 { "is" } else { "are" }),
    };
    if holds {
        let verb = if installed == 1 { "holds" } else { "hold" };
        format!("{machines} {verb} {users} users{lost}.")
    } else {
        let verb = if installed == 1 { "does" } else { "do" };
        format!("{machines} {verb} not hold {users} users{lost}.")
    }
}

fn breaks_first(servers: &Servers<'_>, installed: u32, factor: f64) -> String {
    let running = servers.running(installed);
    if factor >= servers::MOST_LOAD {
        return "Nothing, up to a thousand times the load.".to_owned();
    }
    let missed = servers.missed(running, factor * 1.02, Case::Expected);
    let Some(limit) = missed.first() else { return "Nothing that the model knows.".to_owned() };
    let users = scrinium_lab_report::thousands((servers.demand.users * factor).floor());
    format!("{}, at {factor:.1} times the load ({users} users).", limit.name())
}
