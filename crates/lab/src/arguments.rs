//! The command line of the laboratory.

use std::path::PathBuf;
use std::time::Duration;

use crate::compare_command::CompareArguments;
use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};

use crate::driver::{Login, ViewLanguage};
use crate::experiment::{ExperimentArguments, ExperimentsArguments};
use crate::probe::{ProbeArguments, ProbeBesideArguments};
use crate::values::{duration, variable};

/// `lab ...`: the performance laboratory.
#[derive(Debug, Args)]
#[command(about = "The performance laboratory: scripted users against any server, measured from outside")]
pub struct LabArguments {
    /// What to do.
    #[command(subcommand)]
    pub command: LabCommand,
}

/// The commands of the laboratory.
#[derive(Debug, Subcommand)]
pub enum LabCommand {
    /// Simulate users at work, and report how the server did
    Load(Box<LoadArguments>),
    /// Simulate users for `lab load --driver`, which runs on another machine
    Drive(DriveArguments),
    /// Check a script, and report its mistakes
    Check(ScriptArguments),
    /// Print a workload with what it does in an hour
    Show(ShowArguments),
    /// List the workloads
    List(ListArguments),
    /// Make a workload from a server's operation log (http.operation_log)
    Capture(CaptureArguments),
    /// Run an experiment: cells of settings, users and sizes, each on fresh data
    Experiment(Box<ExperimentArguments>),
    /// List the experiments, or make a page of their reports
    Experiments(ExperimentsArguments),
    /// Act as one end user of a server, and report its response times
    Probe(Box<ProbeArguments>),
    /// Compare the reports of two or more runs, or of experiments
    Compare(CompareArguments),
}

/// What `lab show` can be told.
#[derive(Debug, Args)]
pub struct ShowArguments {
    /// The workload, and values for its variables.
    #[command(flatten)]
    pub script: ScriptArguments,
    /// Print what is expected as JSON, without the script
    #[arg(long)]
    pub json: bool,
}

/// What `lab list` can be told.
#[derive(Clone, Copy, Debug, Args)]
pub struct ListArguments {
    /// Print the list as JSON
    #[arg(long)]
    pub json: bool,
}

/// What `lab capture` can be told.
#[derive(Debug, Args)]
pub struct CaptureArguments {
    /// The operation log; the file next to it that ends in .1 is read first
    pub log: PathBuf,
    /// Write the workload into this file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The workload's name
    #[arg(long, default_value = "Captured")]
    pub name: String,
}

/// Where a driver listens for its controller.
#[derive(Debug, Args)]
pub struct DriveArguments {
    /// Where to listen for a controller
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:7650")]
    pub listen: String,
    /// The token that a controller must present; without it one is generated and shown
    #[arg(long, env = "SCRINIUM_LAB_TOKEN", hide_env_values = true, value_parser = token)]
    pub token: Option<String>,
    /// One run, for the process that holds standard input
    #[arg(long, hide = true)]
    pub local: bool,
}

/// A workload, and values for its variables.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct ScriptArguments {
    /// A workload's name, or the path of a script
    pub workload: String,
    /// Give a variable of the script a value
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = variable)]
    pub set: Vec<(String, String)>,
}

/// Everything that a run can be told.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
#[allow(clippy::struct_excessive_bools, reason = "switches of a command line")]
pub struct LoadArguments {
    /// The workload, and values for its variables.
    #[command(flatten)]
    pub script: ScriptArguments,

    /// Number of simulated users
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub users: u32,
    /// Where the server is; once for each ability: http:// or postgres://, smtp:// or lmtp://, imap://, pop3://,
    /// caldav:// (an s or +starttls behind the name of a protocol of mail encrypts it)
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:5984")]
    pub target: Vec<String>,
    /// How long the users work once all have begun, such as 90s, 15m or 6h
    #[arg(long, default_value = "60s", value_parser = duration)]
    pub duration: Duration,
    /// Divide all think times by this
    #[arg(long, default_value_t = 1.0, value_parser = speedup)]
    pub speedup: f64,
    /// Print the report as JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Write report.html, report.json and report.csv into this folder
    #[arg(long, value_name = "DIR", conflicts_with = "no_report")]
    pub report: Option<PathBuf>,
    /// Write no files
    #[arg(long)]
    pub no_report: bool,
    /// Put a sentence among the notes of the report, such as what went before; may be given several times
    #[arg(long, value_name = "TEXT")]
    pub note: Vec<String>,

    /// Documents that each mail database begins with
    #[arg(long, value_name = "N")]
    pub messages_per_user: Option<u64>,
    /// Start the users spread over this time, and count from its end.
    /// Without it, one round of the script, and counting begins when everyone has done a round
    #[arg(long, value_parser = duration)]
    pub ramp_up: Option<Duration>,
    /// Stop the users spread over this time
    #[arg(long, default_value = "3s", value_parser = duration)]
    pub ramp_down: Duration,
    /// Users close an HTTP connection that was idle for this long, as browsers do. Without it they keep theirs
    #[arg(long, value_name = "TIME", value_parser = duration)]
    #[serde(default)]
    pub keep_alive: Option<Duration>,
    /// A user's next action is due whatever the server does; latency counts from then (the default)
    #[arg(long, conflicts_with = "closed_model")]
    pub open_model: bool,
    /// A user thinks after each answer; latency counts from the sending
    #[arg(long)]
    pub closed_model: bool,
    /// The same seed makes the same users
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// Users are called this and a number
    #[arg(long, default_value = "user", value_parser = prefix)]
    pub user_prefix: String,
    /// The password that the users get
    #[arg(long, default_value = "scrinium-lab", env = "SCRINIUM_LAB_USER_PASSWORD", hide_env_values = true)]
    pub user_password: String,
    /// Name of an administrator, who creates databases and registers the users
    #[arg(long, value_name = "NAME")]
    pub admin: Option<String>,
    /// The administrator's password
    #[arg(long, env = "SCRINIUM_LAB_PASSWORD", hide_env_values = true, default_value = "")]
    pub password: String,
    /// As whom the users log in: admin is for servers without a directory
    #[arg(long, value_enum, default_value_t = Login::Users)]
    pub login: Login,
    /// The domain of the users' addresses; without it the script's RecipientDomain, or else lab.invalid
    #[arg(long, value_name = "NAME")]
    pub mail_domain: Option<String>,
    /// As what the users log in to mail and calendars; {user} and {domain} are put in
    #[arg(long, value_name = "NAME", default_value = "{user}")]
    pub login_name: String,
    /// Trust the certificates in this file (PEM) instead of the system's
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Read all mailboxes after the run and check that each message arrived once, byte for byte
    /// (the default where a target sends mail and one reads it)
    #[arg(long, overrides_with = "no_check_deliveries")]
    pub check_deliveries: bool,
    /// Do not
    #[arg(long)]
    pub no_check_deliveries: bool,
    /// How long messages may be on their way after the run before they count as missing
    #[arg(long, default_value = "120s", value_parser = duration)]
    pub delivery_wait: Duration,
    /// The language of the inbox's view, where it has to be created
    #[arg(long, value_enum, default_value_t = ViewLanguage::Formula)]
    pub view_language: ViewLanguage,
    /// The database of people
    #[arg(long, default_value = "directory")]
    pub directory: String,
    /// The database into which messages are put to be delivered
    #[arg(long, default_value = "mail.box")]
    pub mail_box: String,
    /// The databases exist and are full: skip preparing them
    #[arg(long)]
    pub skip_prepare: bool,

    /// A probe alongside the users.
    #[command(flatten)]
    pub probe: ProbeBesideArguments,
    /// Divide the users among this many processes of this machine
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "driver", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub drivers: u32,
    /// Let `lab drive` on another machine simulate the users; several divide them
    #[arg(long, value_name = "HOST:PORT", requires = "driver_token")]
    pub driver: Vec<String>,
    /// The token of those drivers
    #[arg(long, env = "SCRINIUM_LAB_TOKEN", hide_env_values = true, value_parser = token)]
    #[serde(skip)]
    pub driver_token: Option<String>,
    /// Run this many times, and show how far the results are apart
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub repeat: u32,
    /// Give each run its own users and mail files
    #[arg(long)]
    pub fresh: bool,

    /// The server's process; found by its port when it runs on this machine
    #[arg(long, value_name = "PID")]
    pub server_pid: Option<u32>,
    /// How long to wait for an answer
    #[arg(long, default_value = "30s", value_parser = duration)]
    pub time_out: Duration,
    /// Another server, http://HOST:PORT, that has a replica for each user and replicates it where a script says Replicate.
    /// It has the same administrator, and may connect to the target
    #[arg(long, value_name = "URL", requires = "admin")]
    #[serde(default)]
    pub edge: Option<String>,
    /// Ask for compressed answers (gzip); only `http://`, of a server that is set to compress
    #[arg(long)]
    pub compressed: bool,

    /// Stop when this many requests have timed out
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub stop_time_outs: u64,
    /// Stop when this share of the requests of ten seconds has failed
    #[arg(long, value_name = "PERCENT", default_value_t = 50.0)]
    pub stop_errors: f64,
    /// Stop when the average latency of ten seconds is above this
    #[arg(long, value_name = "MS")]
    pub stop_average: Option<f64>,
    /// Objective: average latency, in milliseconds; exit code 99 when it is missed
    #[arg(long, value_name = "MS")]
    pub max_average: Option<f64>,
    /// Objective: 99th percentile of latency, in milliseconds; exit code 99 when it is missed
    #[arg(long, value_name = "MS")]
    pub max_p99: Option<f64>,
    /// Objective: share of requests that may fail; exit code 99 when it is missed
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0)]
    pub max_errors: f64,
}

fn speedup(text: &str) -> Result<f64, String> {
    let speedup: f64 = text.parse().map_err(|_| format!("{text} is no number"))?;
    if (0.01..=100_000.0).contains(&speedup) {
        Ok(speedup)
    } else {
        Err("a speed-up is from 0.01 to 100000".to_owned())
    }
}

fn prefix(text: &str) -> Result<String, String> {
    let right = !text.is_empty()
        && text.len() <= 32
        && text.starts_with(|first: char| first.is_ascii_lowercase())
        && text.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_');
    if right { Ok(text.to_owned()) } else { Err("small letters, digits and _, up to 32".to_owned()) }
}

fn token(text: &str) -> Result<String, String> {
    if text.len() < 16 { Err("a token has 16 characters or more".to_owned()) } else { Ok(text.to_owned()) }
}
