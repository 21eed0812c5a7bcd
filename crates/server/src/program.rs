//! What the binary's commands do.

use crate::backup::command;
use crate::cli::{
    BackupArguments, DemoArguments, DomainCommand, ExportCommand, Failure, FixupArguments, GroupCommand,
    HealthcheckArguments, ImportCalendarArguments, ImportContactsArguments, ImportImapArguments,
    ImportMailArguments, InspectArguments, LabArguments, LogCommand, MailInCommand, MailRereadArguments,
    PersonCommand, PlanArguments, Program, RestoreArguments, Terminal, UpgradeArguments,
};
use crate::config::Configuration;
use crate::console::ServerParts;
use crate::ground::Ground;
use crate::running::Running;
use crate::service_manager::ServiceManager;
use crate::{
    allocators, calendar_import, directory_command, domain_command, fixup_command, healthcheck, imap_import,
    inspect_command, laboratory, log_command, mail_export, mail_import, people_command, reread, upgrade,
};

/// The binary `scrinium`.
#[derive(Clone, Copy, Debug)]
pub struct Scrinium;

impl Program for Scrinium {
    fn serve(&self, configuration: Configuration, terminal: &Terminal) -> Result<(), Failure> {
        allocators::settle();
        Ground::run(configuration, terminal, |ground| async move {
            let manager = ServiceManager::find(|name| std::env::var_os(name));
            let running = Running::start(&ground, terminal)?;
            upgrade::note_release(&ground.settings().server.data_dir);
            manager.ready(&format!("serves {}", ground.report().ports.join(", ")));
            tokio::select! {
                () = ground.shutdown().wait() => {}
                () = manager.stay_alive() => {}
            }
            manager.stopping();
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
        laboratory::demo(&configuration, arguments, terminal)
    }

    fn import_mail(
        &self,
        configuration: Configuration,
        arguments: &ImportMailArguments,
        terminal: &Terminal,
    ) -> Result<(), Failure> {
        mail_import::run(&configuration, arguments, terminal)
    }

    fn import_imap(
        &self,
        configuration: Configuration,
        arguments: &ImportImapArguments,
        terminal: &Terminal,
    ) -> Result<(), Failure> {
        imap_import::run(&configuration, arguments, terminal)
    }

    fn import_calendars(
        &self,
        configuration: Configuration,
        arguments: &ImportCalendarArguments,
        terminal: &Terminal,
    ) -> Result<(), Failure> {
        calendar_import::run_calendars(&configuration, arguments, terminal)
    }

    fn import_contacts(
        &self,
        configuration: Configuration,
        arguments: &ImportContactsArguments,
        terminal: &Terminal,
    ) -> Result<(), Failure> {
        calendar_import::run_contacts(&configuration, arguments, terminal)
    }

    fn export_mail(
        &self,
        configuration: Configuration,
        command: &ExportCommand,
        terminal: &Terminal,
    ) -> Result<(), Failure> {
        mail_export::run(&configuration, command, terminal)
    }

    fn reread_mail(
        &self,
        configuration: Configuration,
        arguments: &MailRereadArguments,
        terminal: &Terminal,
    ) -> Result<(), Failure> {
        reread::run(&configuration, arguments, terminal)
    }

    fn person(
        &self,
        configuration: Configuration,
        command: &PersonCommand,
        terminal: &Terminal,
    ) -> Result<(), Failure> {
        people_command::person(&configuration.settings(), command, terminal)
    }

    fn group(
        &self,
        configuration: Configuration,
        command: &GroupCommand,
        terminal: &Terminal,
    ) -> Result<(), Failure> {
        people_command::group(&configuration.settings(), command, terminal)
    }

    fn domain(
        &self,
        configuration: Configuration,
        command: &DomainCommand,
        terminal: &Terminal,
    ) -> Result<(), Failure> {
        domain_command::domain(&configuration.settings(), command, terminal)
    }

    fn mail_in(
        &self,
        configuration: Configuration,
        command: &MailInCommand,
        terminal: &Terminal,
    ) -> Result<(), Failure> {
        directory_command::mail_in(&configuration.settings(), command, terminal)
    }

    fn fixup(
        &self,
        configuration: Configuration,
        arguments: &FixupArguments,
        terminal: &Terminal,
    ) -> Result<(), Failure> {
        fixup_command::run(&configuration, arguments, terminal)
    }

    fn inspect(&self, arguments: &InspectArguments, terminal: &Terminal) -> Result<(), Failure> {
        inspect_command::run(arguments, terminal)
    }

    fn backup(
        &self,
        configuration: Configuration,
        arguments: &BackupArguments,
        terminal: &Terminal,
    ) -> Result<(), Failure> {
        command::backup(&configuration, arguments, terminal)
    }

    fn restore(
        &self,
        configuration: Configuration,
        arguments: &RestoreArguments,
        terminal: &Terminal,
    ) -> Result<(), Failure> {
        command::restore_command(&configuration, arguments, terminal)
    }

    fn upgrade(
        &self,
        configuration: Configuration,
        arguments: &UpgradeArguments,
        terminal: &Terminal,
    ) -> Result<(), Failure> {
        upgrade::run(&configuration, arguments, terminal)
    }

    fn healthcheck(
        &self,
        configuration: Configuration,
        arguments: &HealthcheckArguments,
        terminal: &Terminal,
    ) -> Result<(), Failure> {
        healthcheck::run(&configuration, arguments, terminal)
    }

    fn log(
        &self,
        configuration: Configuration,
        command: &LogCommand,
        terminal: &Terminal,
    ) -> Result<(), Failure> {
        log_command::run(&configuration, command, terminal)
    }

    fn lab(&self, arguments: &LabArguments, terminal: &Terminal) -> Result<(), Failure> {
        laboratory::lab(arguments, terminal)
    }

    fn plan(&self, arguments: &PlanArguments, terminal: &Terminal) -> Result<(), Failure> {
        laboratory::plan(arguments, terminal)
    }
}
