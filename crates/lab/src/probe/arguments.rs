//! The command line of the probe.

use std::time::Duration;

use clap::Args;

use crate::values::duration;

/// Everything that a probe can be told.
#[derive(Debug, Args)]
pub struct ProbeArguments {
    /// Where the server is
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:5984")]
    pub target: String,
    /// As whom the probe works
    #[arg(long, value_name = "NAME", default_value = "admin")]
    pub user: String,
    /// That person's password
    #[arg(long, env = "SCRINIUM_LAB_PASSWORD", hide_env_values = true, default_value = "")]
    pub password: String,

    /// The shared database
    #[arg(long, value_name = "DB", requires = "view")]
    pub database: Option<String>,
    /// What to read there: DESIGN/VIEW, or the name of a folder
    #[arg(long, requires = "database")]
    pub view: Option<String>,
    /// Send messages to oneself, and wait until they can be read
    #[arg(long)]
    pub mail: bool,
    /// Where they arrive [default: mail/ and the user's name]
    #[arg(long, value_name = "DB", requires = "mail")]
    pub mail_database: Option<String>,
    /// The database into which messages are put to be delivered
    #[arg(long, default_value = "mail.box")]
    pub mail_box: String,

    /// Time from the start of one round to the next
    #[arg(long, default_value = "10s", value_parser = duration)]
    pub interval: Duration,
    /// How long to probe, such as 1h; until it is interrupted if left out
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub length: Option<Duration>,
    /// How long to wait for an answer
    #[arg(long, default_value = "30s", value_parser = duration)]
    pub time_out: Duration,

    /// Print a line of JSON for each round, and one with the summary at the end
    #[arg(long)]
    pub json: bool,
    /// Serve the results at http://127.0.0.1:PORT/metrics, in Prometheus' format; 0: a free port
    #[arg(long, value_name = "PORT")]
    pub prometheus: Option<u16>,
    /// Objective: average response of the shared database, in milliseconds; exit code 99 when it is missed
    #[arg(long, value_name = "MS")]
    pub max_average: Option<f64>,
    /// Objective: 99th percentile of it; exit code 99 when it is missed
    #[arg(long, value_name = "MS")]
    pub max_p99: Option<f64>,
    /// Objective: 99th percentile of the time until a message can be read; exit code 99 when it is missed
    #[arg(long, value_name = "MS")]
    pub max_mail_p99: Option<f64>,
    /// Objective: share of rounds that may fail; exit code 99 when it is missed
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0)]
    pub max_errors: f64,
}
