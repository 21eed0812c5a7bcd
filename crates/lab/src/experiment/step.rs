//! A step of a cell, as an experiment's file has it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::definition::Scalar;

/// A step of a cell. What it measures has its name before it: `load.mean_ms`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(try_from = "StepMembers")]
pub struct CellStep {
    /// By default what it does: `load`.
    name: Option<String>,
    /// What it does.
    pub action: StepAction,
}

/// What a step does.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "does", content = "with", rename_all = "kebab-case")]
pub enum StepAction {
    /// Starts the server on the cell's data, and waits until it answers.
    Start(Start),
    /// Makes databases and writes documents into them.
    Fill(Fill),
    /// Users at work.
    Load(Box<Load>),
    /// A probe alone.
    Probe(ProbeStep),
    /// A command on the server's console; waits until its task is done.
    Console(String),
    /// Requests, one after the other in each of some databases, in all of these at once.
    Request(RequestStep),
    /// Messages, sent by SMTP or LMTP until all have arrived.
    Mail(Box<MailStep>),
    /// What waits for the laboratory's own mail server goes out to it.
    Drain(DrainStep),
    /// Waits until the servers neither work nor give memory back, for at most this many seconds.
    Rest(Scalar),
    /// SIGKILL to all servers: the machine's power goes, as far as they can tell.
    Kill,
    /// SIGTERM, and waits for their end.
    Stop,
    /// Seconds in which nothing is done.
    Pause(Scalar),
}

/// A step as it is written: the one member besides its name says what it does.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StepMembers {
    name: Option<String>,
    start: Option<Start>,
    fill: Option<Fill>,
    load: Option<Box<Load>>,
    probe: Option<ProbeStep>,
    console: Option<String>,
    request: Option<RequestStep>,
    mail: Option<Box<MailStep>>,
    drain: Option<DrainStep>,
    rest: Option<Scalar>,
    kill: Option<bool>,
    stop: Option<bool>,
    pause: Option<Scalar>,
}

impl TryFrom<StepMembers> for CellStep {
    type Error = String;

    fn try_from(members: StepMembers) -> Result<Self, String> {
        let is_said = |kind: &str, said: Option<bool>| match said {
            Some(false) => Err(format!("{kind} is true, or left out")),
            other => Ok(other),
        };
        let actions = [
            members.start.map(StepAction::Start),
            members.fill.map(StepAction::Fill),
            members.load.map(StepAction::Load),
            members.probe.map(StepAction::Probe),
            members.console.map(StepAction::Console),
            members.request.map(StepAction::Request),
            members.mail.map(StepAction::Mail),
            members.drain.map(StepAction::Drain),
            members.rest.map(StepAction::Rest),
            is_said("kill", members.kill)?.map(|_| StepAction::Kill),
            is_said("stop", members.stop)?.map(|_| StepAction::Stop),
            members.pause.map(StepAction::Pause),
        ];
        let mut said = actions.into_iter().flatten();
        match (said.next(), said.next()) {
            (Some(action), None) => Ok(Self { name: members.name, action }),
            (Some(one), Some(other)) => {
                Err(format!("a step is one thing; this one is {} and {}", one.kind(), other.kind()))
            }
            (None, _) => Err(format!("a step needs one of {}", StepAction::KINDS.join(", "))),
        }
    }
}

impl StepAction {
    const KINDS: [&str; 12] = [
        "start", "fill", "load", "probe", "console", "request", "mail", "drain", "rest", "kill", "stop",
        "pause",
    ];

    /// Its word in the file.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Start(_) => "start",
            Self::Fill(_) => "fill",
            Self::Load(_) => "load",
            Self::Probe(_) => "probe",
            Self::Console(_) => "console",
            Self::Request(_) => "request",
            Self::Mail(_) => "mail",
            Self::Drain(_) => "drain",
            Self::Rest(_) => "rest",
            Self::Kill => "kill",
            Self::Stop => "stop",
            Self::Pause(_) => "pause",
        }
    }
}

impl CellStep {
    /// What its measurements begin with.
    #[must_use]
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_else(|| self.action.kind())
    }

    /// All that it says.
    pub(super) fn written(&self) -> Value {
        written(self)
    }
}

/// Part of a definition as JSON, without what is left out or has its default: a member that the form gains later changes
/// nothing in the files that do not use it.
pub(super) fn written(part: &impl Serialize) -> Value {
    // Maps have texts as their names, so that every part can be written.
    let mut value = serde_json::to_value(part).unwrap_or_default();
    prune(&mut value);
    value
}

fn prune(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.values_mut().for_each(prune);
            members.retain(|_, member| !is_default(member));
        }
        Value::Array(values) => values.iter_mut().for_each(prune),
        _ => {}
    }
}

fn is_default(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Array(values) => values.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}

/// Calls `visit` with every text of a written part, names of members included.
pub(super) fn each_text(value: &Value, visit: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => visit(text),
        Value::Array(values) => values.iter().for_each(|value| each_text(value, visit)),
        Value::Object(members) => {
            for (name, member) in members {
                visit(name);
                each_text(member, visit);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The server.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Start {
    /// They hold for later starts of the cell, too.
    #[serde(default)]
    pub settings: BTreeMap<String, Scalar>,
    /// Memory of the server's control group, such as `128 MB`; empty or left out: no limit.
    #[serde(default)]
    pub memory: Option<Scalar>,
    /// CPUs that it may use; 0 or left out: all.
    #[serde(default)]
    pub cpus: Option<Scalar>,
    /// Servers, each with data and a port of its own.
    #[serde(default)]
    pub servers: Option<Scalar>,
    /// Whose: by default those of the command line; or `postfix`, `dovecot`, `postfix+dovecot` of this machine, for mail. Where
    /// they are not installed, the cell says so and is left out.
    #[serde(default)]
    pub product: Option<Scalar>,
}

/// Documents.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Fill {
    pub database: String,
    /// Makes this many databases, called `database`, and `database` and a number from 2 on.
    #[serde(default)]
    pub databases: Option<Scalar>,
    pub documents: Scalar,
    #[serde(default)]
    pub body_bytes: Option<Scalar>,
    /// Every document is written this many times, each time as a new revision.
    #[serde(default)]
    pub times: Option<Scalar>,
    /// Puts the design document with the seven views of a discussion there, before the documents.
    #[serde(default)]
    pub views: bool,
}

/// Users at work: `lab load`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Load {
    pub workload: String,
    pub users: Scalar,
    pub duration: Scalar,
    #[serde(default)]
    pub ramp_up: Option<Scalar>,
    #[serde(default)]
    pub speedup: Option<Scalar>,
    #[serde(default)]
    pub messages_per_user: Option<Scalar>,
    #[serde(default)]
    pub user_prefix: Option<String>,
    /// Which of the servers, from 1.
    #[serde(default)]
    pub server: Option<Scalar>,
    /// Variables of the script.
    #[serde(default)]
    pub set: BTreeMap<String, Scalar>,
    /// Over the encrypted port.
    #[serde(default)]
    pub encrypted: Option<Scalar>,
    /// Users read their mail by IMAP, at `{imap_port}` or, encrypted, `{imaps_port}`, and send it by SMTP, at `{smtp_port}`.
    #[serde(default)]
    pub imap: Option<Scalar>,
    /// Which of the servers has the users' replicas, from 1; 0 where they are their own.
    #[serde(default)]
    pub edge: Option<Scalar>,
    /// Asking for compressed answers.
    #[serde(default)]
    pub compressed: Option<Scalar>,
    /// Users close an HTTP connection that was idle for so long; "" where they keep it.
    #[serde(default)]
    pub keep_alive: Option<Scalar>,
    /// In the closed model: users think after each answer.
    #[serde(default)]
    pub closed: Option<Scalar>,
    /// A probe alongside the users.
    #[serde(default)]
    pub probe: Option<ProbeStep>,
    /// Others at work meanwhile, who are not measured; none where their `users` are 0.
    #[serde(default)]
    pub beside: Vec<Load>,
    /// Searches for the largest number of users that reach an objective.
    #[serde(default)]
    pub search: Option<Search>,
}

/// Doubles the users from `Load::users` until the objective is missed, then halves the interval.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Search {
    pub most_users: Scalar,
    pub max_average_ms: Scalar,
    /// How often the interval is halved.
    pub halvings: Scalar,
}

/// `lab probe`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names say it")]
pub struct ProbeStep {
    #[serde(default)]
    pub database: Option<String>,
    #[serde(default)]
    pub view: Option<String>,
    #[serde(default)]
    pub mail: bool,
    pub interval: Scalar,
    /// Only for a probe alone.
    #[serde(default, rename = "for")]
    pub length: Option<Scalar>,
}

/// Requests whose time counts together.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names say it")]
pub struct RequestStep {
    #[serde(default = "get")]
    pub method: String,
    /// Paths; `$database` in them is the database.
    pub paths: Vec<String>,
    /// A JSON text.
    #[serde(default)]
    pub body: Option<String>,
    pub database: String,
    #[serde(default)]
    pub databases: Option<Scalar>,
}

/// Messages, each to one person, sent over connections that carry many.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names say it")]
pub struct MailStep {
    /// `smtp`; `lmtp`; or `submission`, where the first of the people logs in.
    pub by: Scalar,
    pub messages: Scalar,
    #[serde(default)]
    pub bytes: Option<Scalar>,
    #[serde(default)]
    pub connections: Option<Scalar>,
    /// How many people get the messages, in turn.
    #[serde(default)]
    pub people: Option<Scalar>,
    /// `people` of the server, where nothing is said; `next`: of the server after it; `sink`: of the laboratory's own server.
    #[serde(default)]
    pub to: Option<Scalar>,
    /// Whether that one `takes` them, `defers` each, or is `away`; then it is waited until all are in the queue.
    #[serde(default)]
    pub sink: Option<Scalar>,
    /// Over connections that are encrypted after they begin.
    #[serde(default)]
    pub encrypted: Option<Scalar>,
    /// How often the server is killed meanwhile, and started again.
    #[serde(default)]
    pub kills: Option<Scalar>,
}

/// The queue, let go.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names say it")]
pub struct DrainStep {
    /// How often the server is killed meanwhile, and started again.
    #[serde(default)]
    pub kills: Option<Scalar>,
}

fn get() -> String {
    "GET".to_owned()
}
