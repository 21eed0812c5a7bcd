//! The command line: what can be typed, and its way to what does it.
//!
//! Data goes to standard output, everything else to standard error. Exit codes: 0 done, 1 it could not be
//! done, 2 the command line or the configuration is wrong, 3 damage was found that could not be repaired, 4 a data folder is to be upgraded, 99 an
//! objective of a laboratory run or of a plan was missed.

mod advise;
mod arguments;
mod config;
mod connect;
mod console;
mod failure;
mod formula;
mod mail_arguments;
mod pages;
mod people_arguments;
mod terminal;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use crate::config::{Configuration, Sources};
use crate::private;

pub use arguments::{
    AdviseArguments, Arguments, BackupArguments, BackupCommand, CommandLine, ConfigCommand,
    ConnectionArguments, ConsoleArguments, DemoArguments, ExportCommand, FixupArguments, GlobalArguments,
    HealthcheckArguments, ImportCalendarArguments, ImportCommand, ImportContactsArguments,
    ImportImapArguments, ImportMailArguments, InspectArguments, LabArguments, LogCommand, MailCommand,
    MailRereadArguments, PlanArguments, RestoreArguments, UpgradeArguments, VerifyArguments,
};
pub(crate) use connect::connect;
pub use failure::Failure;
pub use formula::{FormulaCheckArguments, FormulaCommand, FormulaEvalArguments, FormulaPurpose, FormulaText};
pub use mail_arguments::{MailMoveArguments, MailPurgeArguments, MailSearchArguments, MailUndeleteArguments};
pub use people_arguments::{
    AppPasswordCommand, DomainCommand, EntryRemoveArguments, GroupAddArguments, GroupCommand,
    GroupRenameArguments, MailInCommand, PersonAddArguments, PersonCommand, PersonImportArguments,
    PersonLinkArguments, PersonNameArguments, PersonPasswordArguments, PersonRenameArguments, SetArguments,
    TotpCommand,
};
pub use terminal::Terminal;

/// Where a configuration file is looked for, if none is named.
const USUAL_FILES: [&str; 2] = ["scrinium.toml", "/etc/scrinium/scrinium.toml"];

/// What the commands do that are not about the program itself. Each gives back when it is done.
pub trait Program {
    /// Serves until told to stop.
    ///
    /// # Errors
    /// [`Failure`] says why it could not.
    fn serve(&self, configuration: Configuration, terminal: &Terminal) -> Result<(), Failure>;

    /// Shows the whole on one machine: server, people, real mail, load, report.
    ///
    /// # Errors
    /// [`Failure`] says why it could not.
    fn demo(
        &self,
        configuration: Configuration,
        arguments: &DemoArguments,
        terminal: &Terminal,
    ) -> Result<(), Failure>;

    /// Imports messages into a person's mail database.
    ///
    /// # Errors
    /// [`Failure`] says why it could not.
    fn import_mail(
        &self,
        configuration: Configuration,
        arguments: &ImportMailArguments,
        terminal: &Terminal,
    ) -> Result<(), Failure>;

    /// Brings people's mail from another server.
    ///
    /// # Errors
    /// [`Failure`] says why it could not.
    fn import_imap(
        &self,
        configuration: Configuration,
        arguments: &ImportImapArguments,
        terminal: &Terminal,
    ) -> Result<(), Failure>;

    /// Imports events and to-dos into a person's mail database.
    ///
    /// # Errors
    /// [`Failure`] says why it could not.
    fn import_calendars(
        &self,
        configuration: Configuration,
        arguments: &ImportCalendarArguments,
        terminal: &Terminal,
    ) -> Result<(), Failure>;

    /// Imports contacts into a person's mail database.
    ///
    /// # Errors
    /// [`Failure`] says why it could not.
    fn import_contacts(
        &self,
        configuration: Configuration,
        arguments: &ImportContactsArguments,
        terminal: &Terminal,
    ) -> Result<(), Failure>;

    /// Writes a person's mail as files.
    ///
    /// # Errors
    /// [`Failure`] says why it could not.
    fn export_mail(
        &self,
        configuration: Configuration,
        command: &ExportCommand,
        terminal: &Terminal,
    ) -> Result<(), Failure>;

    /// Reads stored messages again.
    ///
    /// # Errors
    /// [`Failure`] says why it could not.
    fn reread_mail(
        &self,
        configuration: Configuration,
        arguments: &MailRereadArguments,
        terminal: &Terminal,
    ) -> Result<(), Failure>;

    /// Checks and repairs databases that no server uses.
    ///
    /// # Errors
    /// [`Failure`] says why it could not; [`Failure::Damage`] that something could not be repaired.
    fn fixup(
        &self,
        configuration: Configuration,
        arguments: &FixupArguments,
        terminal: &Terminal,
    ) -> Result<(), Failure>;

    /// Adds and lists people, and sets their passwords.
    ///
    /// # Errors
    /// [`Failure`] says why it could not.
    fn person(
        &self,
        configuration: Configuration,
        command: &PersonCommand,
        terminal: &Terminal,
    ) -> Result<(), Failure>;

    /// Adds and lists groups.
    ///
    /// # Errors
    /// [`Failure`] says why it could not.
    fn group(
        &self,
        configuration: Configuration,
        command: &GroupCommand,
        terminal: &Terminal,
    ) -> Result<(), Failure>;

    /// Adds, lists and removes domains.
    ///
    /// # Errors
    /// [`Failure`] says why it could not.
    fn domain(
        &self,
        configuration: Configuration,
        command: &DomainCommand,
        terminal: &Terminal,
    ) -> Result<(), Failure>;

    /// Adds, lists and removes mail-in databases.
    ///
    /// # Errors
    /// [`Failure`] says why it could not.
    fn mail_in(
        &self,
        configuration: Configuration,
        command: &MailInCommand,
        terminal: &Terminal,
    ) -> Result<(), Failure>;

    /// Shows raw records.
    ///
    /// # Errors
    /// [`Failure`] says why it could not.
    fn inspect(&self, arguments: &InspectArguments, terminal: &Terminal) -> Result<(), Failure>;
    /// Makes a backup, or looks after those that there are.
    ///
    /// # Errors
    /// [`Failure`] says why it could not, or what is damaged.
    fn backup(
        &self,
        configuration: Configuration,
        arguments: &BackupArguments,
        terminal: &Terminal,
    ) -> Result<(), Failure>;

    /// Restores a server, or a database.
    ///
    /// # Errors
    /// [`Failure`] says why it could not.
    fn restore(
        &self,
        configuration: Configuration,
        arguments: &RestoreArguments,
        terminal: &Terminal,
    ) -> Result<(), Failure>;

    /// Says what this release makes of a data folder, or does it.
    ///
    /// # Errors
    /// [`Failure::ToBeUpgraded`] if something is to change; [`Failure`] says why this release cannot open it.
    fn upgrade(
        &self,
        configuration: Configuration,
        arguments: &UpgradeArguments,
        terminal: &Terminal,
    ) -> Result<(), Failure>;

    /// Asks whether the server of this machine answers.
    ///
    /// # Errors
    /// [`Failure`] says that it does not.
    fn healthcheck(
        &self,
        configuration: Configuration,
        arguments: &HealthcheckArguments,
        terminal: &Terminal,
    ) -> Result<(), Failure>;

    /// Looks at the transaction log of a stopped server, or salvages it.
    ///
    /// # Errors
    /// [`Failure`] says why it could not, or that the log is damaged.
    fn log(
        &self,
        configuration: Configuration,
        command: &LogCommand,
        terminal: &Terminal,
    ) -> Result<(), Failure>;

    /// Runs the laboratory.
    ///
    /// # Errors
    /// [`Failure`] says why it could not; [`Failure::Objective`] that an objective was missed.
    fn lab(&self, arguments: &LabArguments, terminal: &Terminal) -> Result<(), Failure>;

    /// Runs the planner.
    ///
    /// # Errors
    /// [`Failure`] says why it could not; [`Failure::Objective`] that the objective is not held.
    fn plan(&self, arguments: &PlanArguments, terminal: &Terminal) -> Result<(), Failure>;
}

/// Runs the command of `arguments` (the program's name first) in this environment.
pub fn run(
    arguments: impl IntoIterator<Item = OsString>,
    environment: Vec<(String, String)>,
    program: &dyn Program,
) -> ExitCode {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(told) => {
            // Help and version come here too.
            let terminal = Terminal::new(&GlobalArguments::default(), &environment);
            let done = terminal.tell_usage(&told);
            return done.map_or_else(|failure| failure.tell(&terminal), |()| ExitCode::SUCCESS);
        }
    };
    let terminal = Terminal::new(&arguments.global, &environment);
    let done = dispatch(arguments, environment, program, &terminal);
    done.map_or_else(|failure| failure.tell(&terminal), |()| ExitCode::SUCCESS)
}

fn dispatch(
    arguments: Arguments,
    environment: Vec<(String, String)>,
    program: &dyn Program,
    terminal: &Terminal,
) -> Result<(), Failure> {
    if !is_for_others(&arguments.command) {
        private::set_mask();
    }
    let sources = sources(&arguments.global, environment);
    let load = || Configuration::load(&sources).map_err(Failure::from);
    match arguments.command {
        CommandLine::Serve => program.serve(load()?, terminal),
        CommandLine::Demo(demo) => program.demo(load()?, &demo, terminal),
        CommandLine::Import { command: ImportCommand::Imap(imap) } => {
            program.import_imap(load()?, &imap, terminal)
        }
        CommandLine::Import { command: ImportCommand::Mail(mail) } => {
            program.import_mail(load()?, &mail, terminal)
        }
        CommandLine::Import { command: ImportCommand::Ics(ics) } => {
            program.import_calendars(load()?, &ics, terminal)
        }
        CommandLine::Import { command: ImportCommand::Vcf(vcf) } => {
            program.import_contacts(load()?, &vcf, terminal)
        }
        CommandLine::Export { command } => program.export_mail(load()?, &command, terminal),
        CommandLine::Mail { command: MailCommand::Reread(reread) } => {
            program.reread_mail(load()?, &reread, terminal)
        }
        CommandLine::Mail { command: MailCommand::Trace(asked) } => {
            console::trace(&load()?, &asked, &sources.environment, terminal)
        }
        CommandLine::Mail { command: MailCommand::Undelete(asked) } => {
            console::undelete(&load()?, &asked, &sources.environment, terminal)
        }
        CommandLine::Mail { command: MailCommand::Search(asked) } => {
            let parts = (&load()?, &asked.connection, sources.environment.as_slice(), terminal);
            console::search_mail(parts, &asked.command())
        }
        CommandLine::Mail { command: MailCommand::Move(asked) } => {
            let command = format!("move mail {} {}", asked.search, crate::console::quoted(&asked.folder));
            let parts = (&load()?, &asked.connection, sources.environment.as_slice(), terminal);
            console::search_mail(parts, &command)
        }
        CommandLine::Mail { command: MailCommand::Purge(asked) } => {
            let parts = (&load()?, &asked.connection, sources.environment.as_slice(), terminal);
            console::search_mail(parts, &format!("purge mail {}", asked.search))
        }
        CommandLine::Mail { command: MailCommand::Quarantine { command } } => {
            console::quarantine(&load()?, &command, &sources.environment, terminal)
        }
        CommandLine::Person { command } => program.person(load()?, &command, terminal),
        CommandLine::Group { command } => program.group(load()?, &command, terminal),
        CommandLine::Domain { command } => program.domain(load()?, &command, terminal),
        CommandLine::MailIn { command } => program.mail_in(load()?, &command, terminal),
        CommandLine::Backup(backup) => program.backup(load()?, &backup, terminal),
        CommandLine::Restore(restore) => program.restore(load()?, &restore, terminal),
        CommandLine::Upgrade(upgrade) => program.upgrade(load()?, &upgrade, terminal),
        CommandLine::Healthcheck(asked) => program.healthcheck(load()?, &asked, terminal),
        CommandLine::Console(asked) => console::console(&load()?, &asked, &sources.environment, terminal),
        CommandLine::Advise(asked) => advise::advise(&load()?, &asked, &sources.environment, terminal),
        CommandLine::Config { command } => config::config(&sources, &command, terminal),
        CommandLine::Formula { command } => formula::formula(&command, terminal),
        CommandLine::Fixup(fixup) => program.fixup(load()?, &fixup, terminal),
        CommandLine::Inspect(inspect) => program.inspect(&inspect, terminal),
        CommandLine::Log { command } => program.log(load()?, &command, terminal),
        CommandLine::Completions { shell } => pages::completions(shell, terminal),
        CommandLine::ManualPages { dir } => pages::manual(&dir),
        CommandLine::Lab(lab) => program.lab(&lab, terminal),
        CommandLine::Plan(plan) => program.plan(&plan, terminal),
    }
}

/// Whether what a command writes is meant to be shown to others: reports of measurements and plans, which hold no secret.
/// All other commands may come to write data, and do so for their own user alone.
fn is_for_others(command: &CommandLine) -> bool {
    matches!(command, CommandLine::Lab(_) | CommandLine::Plan(_))
}

/// What the configuration is read from.
fn sources(global: &GlobalArguments, environment: Vec<(String, String)>) -> Sources {
    let usual = || USUAL_FILES.iter().map(PathBuf::from).find(|file| file.exists());
    let data_dir = global.data_dir.iter().map(|data_dir| ("--data-dir", "server.data_dir", data_dir.clone()));
    Sources { file: global.config.clone().or_else(usual), environment, command_line: data_dir.collect() }
}
