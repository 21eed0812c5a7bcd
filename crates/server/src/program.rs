//! What the binary's commands do.

use crate::cli::{DemoArguments, Failure, ImportMailArguments, LabArguments, Program, Terminal};
use crate::config::Configuration;
use crate::ground::Ground;

/// The binary `scrinium`.
#[derive(Clone, Copy, Debug)]
pub struct Scrinium;

impl Program for Scrinium {
    fn serve(&self, configuration: Configuration, terminal: &Terminal) -> Result<(), Failure> {
        Ground::run(configuration, terminal, |ground| async move {
            ground.shutdown().wait().await;
            Ok(())
        })
    }

    fn demo(&self, _: Configuration, _: &DemoArguments, _: &Terminal) -> Result<(), Failure> {
        Err(Failure::work("this build has no databases to show"))
    }

    fn import_mail(&self, _: Configuration, _: &ImportMailArguments, _: &Terminal) -> Result<(), Failure> {
        Err(Failure::work("this build has no mail databases to import into"))
    }

    fn lab(&self, _: &LabArguments, _: &Terminal) -> Result<(), Failure> {
        Err(Failure::work("this build has no laboratory"))
    }
}
