//! What a rule has to say.

use crate::words;

/// How a number is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Unit {
    Count,
    Bytes,
    Percent,
    Milliseconds,
    Seconds,
    Days,
    /// 1 or 0.
    Truth,
}

impl Unit {
    /// Its name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Bytes => "bytes",
            Self::Percent => "percent",
            Self::Milliseconds => "milliseconds",
            Self::Seconds => "seconds",
            Self::Days => "days",
            Self::Truth => "truth",
        }
    }
}

/// Something that was seen.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// A statistic, an operation, a configuration key or a console command.
    pub name: &'static str,
    /// Which number of it, such as `average`; empty where there is only one.
    pub of: &'static str,
    /// The number, if it is one.
    pub value: Option<f64>,
    /// How to read it.
    pub unit: Unit,
    /// As people read it.
    pub text: String,
}

/// What is won.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gain {
    /// Time in which requests are answered.
    Response,
    /// Time of the processors.
    Processor,
    /// Room on the disk.
    Disk,
    /// Bytes that the disk has to write.
    Writes,
    /// Time until the server serves again after a crash.
    Restart,
    /// Time in which views are built.
    Builds,
    /// What could be lost, refused or damaged.
    Safety,
}

impl Gain {
    /// Its name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Response => "response_time",
            Self::Processor => "processor_time",
            Self::Disk => "disk_space",
            Self::Writes => "bytes_written",
            Self::Restart => "restart_time",
            Self::Builds => "build_time",
            Self::Safety => "safety",
        }
    }

    pub(crate) const fn spoken(self) -> &'static str {
        match self {
            Self::Response => "less response time",
            Self::Processor => "less processor time",
            Self::Disk => "less room on the disk",
            Self::Writes => "fewer bytes written",
            Self::Restart => "less time to serve again after a crash",
            Self::Builds => "less time to build views",
            Self::Safety => "nothing is lost or refused for this reason",
        }
    }
}

/// Something to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdvisedStep {
    /// A key gets another value.
    Set {
        /// The key.
        key: String,
        /// The value, as the console takes it.
        value: String,
    },
    /// A command on the console.
    Console(String),
    /// What no command does, in words.
    ByHand(String),
}

/// What is best changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Advice {
    /// The share of response time, processor time or room that is about to be won, 0 to 1; what could be lost counts as
    /// the share of the time that would be spoiled. It gives the order.
    pub weight: f64,
    /// What was seen.
    pub seen: Vec<Figure>,
    /// What it means, in one sentence.
    pub means: String,
    /// What to do, in this order.
    pub steps: Vec<AdvisedStep>,
    /// What is won.
    pub gain: Gain,
    /// How much of it in percent, at least and at most; none where it is no matter of degree.
    pub expected_percent: Option<[f64; 2]>,
}

impl Advice {
    /// Advice without figures and steps.
    pub(crate) fn new(weight: f64, means: impl Into<String>) -> Self {
        Self {
            weight: weight.clamp(0.0, 1.0),
            seen: Vec::new(),
            means: means.into(),
            steps: Vec::new(),
            gain: Gain::Safety,
            expected_percent: None,
        }
    }

    /// Adds a number that was seen.
    pub(crate) fn saw(self, name: &'static str, value: f64, unit: Unit) -> Self {
        self.saw_of(name, "", value, unit)
    }

    /// As [`Self::saw`], of one of several numbers of a name.
    pub(crate) fn saw_of(mut self, name: &'static str, of: &'static str, value: f64, unit: Unit) -> Self {
        let text = words::value(value, unit);
        self.seen.push(Figure { name, of, value: Some(value), unit, text });
        self
    }

    /// Adds what was seen and is no number.
    pub(crate) fn saw_text(mut self, name: &'static str, text: impl Into<String>) -> Self {
        self.seen.push(Figure { name, of: "", value: None, unit: Unit::Count, text: text.into() });
        self
    }

    /// A key gets another value.
    pub(crate) fn set(self, key: &str, value: impl Into<String>) -> Self {
        self.step(AdvisedStep::Set { key: key.to_owned(), value: value.into() })
    }

    /// A key gets another value that the console does not set.
    pub(crate) fn set_in_file(self, key: &str, value: &str) -> Self {
        let (section, name) = key.split_once('.').unwrap_or(("", key));
        self.by_hand(format!(
            "Write {name} = \"{value}\" under [{section}] in the configuration file, and start the server again."
        ))
    }

    /// A command on the console.
    pub(crate) fn console(self, command: impl Into<String>) -> Self {
        self.step(AdvisedStep::Console(command.into()))
    }

    /// What no command does.
    pub(crate) fn by_hand(self, what: impl Into<String>) -> Self {
        self.step(AdvisedStep::ByHand(what.into()))
    }

    pub(crate) fn step(mut self, step: AdvisedStep) -> Self {
        self.steps.push(step);
        self
    }

    /// What is won, as parts of the whole (0 to 1).
    pub(crate) fn wins(mut self, gain: Gain, least: f64, most: f64) -> Self {
        let percent = |part: f64| (part.clamp(0.0, 1.0) * 100.0).round();
        self.gain = gain;
        self.expected_percent = Some([percent(least), percent(most)]);
        self
    }
}
