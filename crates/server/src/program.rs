//! What the binary's commands do.

use crate::cli::{DemoArguments, Failure, ImportMailArguments, LabArguments, Program, Terminal};
use crate::config::Configuration;
use crate::ground::Ground;
use crate::running::Running;
use crate::{allocators, demo, lab_command, mail_import};

/// The binary `scrinium`.
#[derive(Clone, Copy, Debug)]
pub struct Scrinium;

impl Program for Scrinium {
    fn serve(&self, configuration: Configuration, terminal: &Terminal) -> Result<(), Failure> {
        allocators::settle();
        Ground::run(configuration, terminal, |ground| async move {
            let running = Running::start(&ground, terminal)?;
            ground.shutdown().wait().await;
            running.stop(&ground).await;
            Ok(())
        })
    }

    fn demo(
        &self,
        configuration: Configuration,
        arguments: &DemoArguments,
        terminal: &Terminal,
    ) -> Result<(), Failure> {
        demo::run(&configuration, arguments, terminal)
    }

    fn import_mail(
        &self,
        configuration: Configuration,
        arguments: &ImportMailArguments,
        terminal: &Terminal,
    ) -> Result<(), Failure> {
        mail_import::run(&configuration, arguments, terminal)
    }

    fn lab(&self, arguments: &LabArguments, _: &Terminal) -> Result<(), Failure> {
        lab_command::run(arguments)
    }
}
