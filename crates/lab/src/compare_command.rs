//! `lab compare A B`: reports held against the first of them.

use std::path::PathBuf;

use clap::Args;
use scrinium_lab_report::compare::{Comparison, Side};
use scrinium_terminal::{CommandOutcome, print, say};

use crate::error::LabError;
use crate::program::command_line;

/// What `lab compare` can be told.
#[derive(Debug, Args)]
pub struct CompareArguments {
    /// Reports: a report.json or experiment.json, a folder with one, or a folder with folders of several runs of the same
    #[arg(required = true, num_args = 2..=8, value_name = "REPORT")]
    pub reports: Vec<PathBuf>,
    /// Write comparison.html, comparison.json, comparison.md and comparison.csv into this folder
    #[arg(long, value_name = "DIR")]
    pub report: Option<PathBuf>,
    /// Print the comparison as JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// `lab compare`.
pub(crate) fn compare(arguments: &CompareArguments) -> Result<CommandOutcome, LabError> {
    let sides: Result<Vec<Side>, _> =
        arguments.reports.iter().zip('A'..).map(|(path, name)| Side::read(&name.to_string(), path)).collect();
    let sides = sides?;
    let comparison = Comparison::of(&sides, &command_line())?;
    let printed = if arguments.json {
        print(&(serde_json::to_string_pretty(&comparison)? + "\n"))
    } else {
        print(&comparison.text())
    };
    if let Some(folder) = &arguments.report {
        comparison.write(&sides, folder)?;
        say(&format!("The comparison is {}", folder.join("comparison.html").display()));
    }
    printed?;
    Ok(CommandOutcome::Done)
}
