//! The command line of the planner.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

const AFTER_HELP: &str = "\
Steps:    scrinium plan calibrate --quick        what this machine can do, in some minutes
          scrinium plan --example > my.toml      who is to be served: change it
          scrinium plan my.toml                  how many machines, and what they need
          scrinium plan my.toml --what-if users=2x --what-if inbox=4x,encryption=on
          scrinium plan check                    compares a forecast with a measurement

--what-if changes the organisation; several words with commas between are one change. Words:
  users=2x       or a number: of all groups together
  inbox=4x       documents and bytes of each mail file
  load=2x        what is done in the busy hour
  encryption=on  or off
  servers=2      how many there are, in place of how many are needed
  cores=8        of each server
  memory=\"32 GB\" of each server, at most
  lost=1         servers that may fail; mail has at least one copy more
  years=5        of growth
  average=50     objective: milliseconds; also p99=500 and cpu=70 (percent)

Exit codes: 0 the objective is held; 1 the plan could not be made; 2 a file or the command line is wrong;
99 the objective is not held, or a check was off by more than allowed.";

/// `plan ...`: the planner.
#[derive(Debug, Args)]
#[command(
    after_help = AFTER_HELP,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true
)]
pub struct PlanArguments {
    /// What to do instead of planning.
    #[command(subcommand)]
    pub command: Option<PlanCommand>,
    /// What is planned, and how it is shown.
    #[command(flatten)]
    pub planning: PlanningArguments,
}

/// What else the planner does.
#[derive(Debug, Subcommand)]
pub enum PlanCommand {
    /// Measure this machine: starts servers of its own, and leaves a calibration for later plans
    Calibrate(CalibrateArguments),
    /// Forecast four times the calibration's largest load, run it, and say by how much the forecast is off
    Check(CheckArguments),
}

/// A plan.
#[derive(Debug, Args)]
pub struct PlanningArguments {
    /// The organisation's file (--example prints one)
    #[arg(required_unless_present = "example")]
    pub organisation: Option<PathBuf>,
    /// Print a commented organisation file
    #[arg(long, exclusive = true)]
    pub example: bool,
    /// The machine's calibration [default: scrinium/calibration.json below the user's data folder]
    #[arg(long, value_name = "FILE")]
    pub calibration: Option<PathBuf>,
    /// Plan it once more with this changed, such as users=2x; may be given several times
    #[arg(long, value_name = "WORD=VALUE")]
    pub what_if: Vec<String>,
    /// Print the plan as JSON
    #[arg(long)]
    pub json: bool,
    /// Print the plan as Markdown
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
    /// Write plan.html, plan.md and plan.json into this folder
    #[arg(long, value_name = "DIR")]
    pub report: Option<PathBuf>,
}

/// What is measured, and where.
#[derive(Clone, Debug, Args)]
pub struct MeasuringArguments {
    /// Where reports go [default: reports/calibration-DATE or reports/check-DATE]
    #[arg(long, value_name = "DIR")]
    pub report: Option<PathBuf>,
    /// Where servers keep their data while they are measured: the device that counts [default: below the reports' folder]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Resume an interrupted run, in the folder of --report
    #[arg(long, requires = "report")]
    pub resume: bool,
    /// What starts a server, as for lab experiment [default: this program]
    #[arg(long, value_name = "COMMAND")]
    pub server_command: Option<String>,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

/// What `plan calibrate` can be told.
#[derive(Clone, Debug, Args)]
pub struct CalibrateArguments {
    /// The short form: fewer users, shorter, and noisier
    #[arg(long)]
    pub quick: bool,
    /// The calibration's file [default: scrinium/calibration.json below the user's data folder]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Users of the largest load [default: 1000; quick: 100]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(8..=100_000))]
    pub users: Option<u32>,
    /// Divide think times by this [default: 20; quick: 60]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub speedup: Option<u32>,
    /// Loads of the ladder, up to the largest
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(2..=20))]
    pub rungs: u32,
    /// Documents in each mail file [default: 100; quick: 30]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub documents: Option<u64>,
    /// What counts of each load, such as 30s [default: 30s; quick: 10s]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub duration: Option<Duration>,
    /// Measure everything this many times
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=20))]
    pub repeats: u32,
    /// Where, and by what.
    #[command(flatten)]
    pub measuring: MeasuringArguments,
}

/// What `plan check` can be told.
#[derive(Clone, Debug, Args)]
pub struct CheckArguments {
    /// The calibration that is checked
    #[arg(long, value_name = "FILE")]
    pub calibration: Option<PathBuf>,
    /// This many times the users of the calibration's largest load
    #[arg(long, value_name = "K", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub times: u32,
    /// What counts of the run [default: 60s; with --quick: 10s]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub duration: Option<Duration>,
    /// The short form: noisier
    #[arg(long)]
    pub quick: bool,
    /// Run it this many times
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=20))]
    pub repeats: u32,
    /// End with 99 if the average response is off by more than this
    #[arg(long, value_name = "PERCENT")]
    pub max_error: Option<f64>,
    /// Where, and by what.
    #[command(flatten)]
    pub measuring: MeasuringArguments,
}

fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text} is no time from 1 s to 1 h; write 30s or 2m");
    let (digits, unit_s) = match text.strip_suffix('m') {
        Some(digits) => (digits, 60.0),
        None => (text.strip_suffix('s').unwrap_or(text), 1.0),
    };
    let seconds = digits.trim().parse::<f64>().map_err(|_| wrong())? * unit_s;
    if (1.0..=3600.0).contains(&seconds) { Ok(Duration::from_secs_f64(seconds)) } else { Err(wrong()) }
}
