//! In the place of `laboratory.rs`, what its commands say in a build without the feature `lab`.

use crate::cli::{DemoArguments, Failure, LabArguments, PlanArguments, Terminal};
use crate::config::Configuration;

pub(crate) fn demo(_: &Configuration, _: &DemoArguments, _: &Terminal) -> Result<(), Failure> {
    Err(refused("demo"))
}

pub(crate) fn lab(_: &LabArguments, _: &Terminal) -> Result<(), Failure> {
    Err(refused("lab"))
}

pub(crate) fn plan(_: &PlanArguments, _: &Terminal) -> Result<(), Failure> {
    Err(refused("plan"))
}

fn refused(command: &str) -> Failure {
    Failure::Use(format!(
        "this build has no laboratory, so it has no command {command}; build with the feature lab, or use scrinium-lab"
    ))
}
