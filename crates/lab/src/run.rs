//! `lab ...`: from the command line to an exit code. Data goes to standard output, talk to standard error.

use std::path::PathBuf;

use scrinium_lab_report::run::{Report, table};
use scrinium_lab_script::Workload;
use scrinium_terminal::{CommandOutcome, has_colours, print};

use crate::arguments::{LabArguments, LabCommand, LoadArguments};
use crate::compare_command::compare;
use crate::crew::Plan;
use crate::driver::Driver;
use crate::error::LabError;
use crate::files::try_folder;
use crate::load::{Cut, load, load_there};
use crate::monitor::is_this_machine;
use crate::probe::{Account, ProbeBeside};
use crate::program::command_line;
use crate::progress::Progress;
use crate::remote::{Job, Team, drive};
use crate::report::report_of;
use crate::script_commands;
use crate::setup::{driver, plan_of, variables};

/// Runs a command of the laboratory.
///
/// # Errors
/// [`LabError`]; its [`LabError::outcome`] is the exit code.
pub async fn run(arguments: LabArguments) -> Result<CommandOutcome, LabError> {
    match arguments.command {
        LabCommand::Load(arguments) => Box::pin(run_load(*arguments)).await,
        LabCommand::Drive(arguments) => drive(&arguments).await,
        LabCommand::Check(arguments) => script_commands::check(&arguments),
        LabCommand::Show(arguments) => script_commands::show(&arguments),
        LabCommand::List(arguments) => script_commands::list(arguments),
        LabCommand::Capture(arguments) => script_commands::capture(&arguments),
        LabCommand::Experiment(arguments) => crate::experiment::experiment(*arguments).await,
        LabCommand::Experiments(arguments) => crate::experiment::experiments(&arguments),
        LabCommand::Probe(arguments) => crate::probe::run(*arguments).await,
        LabCommand::Compare(arguments) => compare(&arguments),
    }
}

async fn run_load(arguments: LoadArguments) -> Result<CommandOutcome, LabError> {
    let progress = Progress::new();
    let workload = find_workload(&arguments)?;
    for note in &workload.script.notes {
        progress.say(&format!("{}: line {}: {}", workload.origin, note.line, note.text));
    }
    let folder = arguments.report.clone().unwrap_or_else(|| default_folder(&workload.name));
    if !arguments.no_report {
        try_folder(&folder)?;
    }
    let (mut reports, mut unwritten) = (Vec::new(), None);
    for number in 1..=arguments.repeat {
        let mut of_run = arguments.clone();
        if arguments.fresh {
            let now_s = jiff::Timestamp::now().as_second();
            of_run.user_prefix = format!("{}_{now_s:x}_{number}", arguments.user_prefix);
        }
        if arguments.repeat > 1 {
            progress.say(&format!("Run {number} of {}", arguments.repeat));
        }
        progress.after_this(arguments.repeat - number);
        let (report, stopped) = run_once(&of_run, workload.clone(), &progress).await?;
        if arguments.repeat > 1 && !arguments.no_report {
            // The runs go on, and are shown.
            if let Err(error) = report.write(&folder.join(format!("run-{number}"))) {
                unwritten.get_or_insert(error);
            }
        }
        reports.push(report);
        if stopped {
            break;
        }
    }
    let Some(report) = Report::repeated(&reports) else { return Ok(CommandOutcome::Failed) };
    let printed = if arguments.json {
        let printed = print(&(serde_json::to_string_pretty(&report)? + "\n"));
        progress.say(&table::text(&report));
        printed
    } else {
        print(&coloured(&table::text(&report)))
    };
    if !arguments.no_report {
        report.write(&folder)?;
        if let Some(error) = unwritten {
            return Err(error.into());
        }
        progress.say(&format!("The report is {}", folder.join("report.html").display()));
    }
    printed?;
    Ok(if report.passed() { CommandOutcome::Done } else { CommandOutcome::Missed })
}

/// One run, and whether somebody has stopped it.
async fn run_once(
    arguments: &LoadArguments,
    workload: Workload,
    progress: &Progress,
) -> Result<(Report, bool), LabError> {
    let job =
        Job { arguments: arguments.clone(), origin: workload.origin.clone(), text: workload.text.clone() };
    let plan = plan_of(arguments, workload);
    let driver = driver(arguments, &plan)?;
    if arguments.server_pid.is_none() && driver.processes().is_empty() {
        progress.say("No process of this machine was found behind the target: CPU, memory and disk stay empty (--server-pid names one).");
    }
    for (host, _) in driver.hosts_and_ports() {
        refuse_wrong_place(arguments, &host)?;
    }
    let probe = ProbeBeside::start(&arguments.probe, &account(arguments, &plan))?;
    let measured = match team(arguments, job).await? {
        Some(team) => {
            progress.say(&format!("The users are divided among {}", team.names()));
            load_there(driver, &plan, team, progress).await?
        }
        None => load(driver, &plan, progress).await?,
    };
    let stopped = measured.run.cut == Some(Cut::Operator);
    let mut report = report_of(&plan, &measured, &command_line());
    report.run.notes.clone_from(&arguments.note);
    if let Some(probe) = probe {
        report.add_probe(probe.end(measured.began, report.hold_s()).await);
    }
    Ok((report, stopped))
}

/// As whom a probe works alongside the users.
fn account<'a>(arguments: &'a LoadArguments, plan: &Plan) -> Account<'a> {
    let first = plan.people().into_iter().next();
    Account {
        target: arguments.target.iter().find(|target| target.starts_with("http")).map_or("", String::as_str),
        user: arguments.admin.as_deref().unwrap_or_default(),
        password: &arguments.password,
        mail_box: &arguments.mail_box,
        first_mail_database: first.map(|person| person.mail_database).unwrap_or_default(),
    }
}

/// The processes that are to drive, if it is not this one.
async fn team(arguments: &LoadArguments, job: Job) -> Result<Option<Team>, LabError> {
    if !arguments.driver.is_empty() {
        let token = arguments.driver_token.as_deref().unwrap_or_default();
        return Team::at(&arguments.driver, token, job).await.map(Some);
    }
    match usize::try_from(arguments.drivers) {
        Ok(count) if count > 1 => Team::here(count, job).await.map(Some),
        _ => Ok(None),
    }
}

/// `localhost` is each driver's own machine.
fn refuse_wrong_place(arguments: &LoadArguments, host: &str) -> Result<(), LabError> {
    let elsewhere = arguments.driver.iter().find(|address| {
        let place = address.rsplit_once(':').map_or(address.as_str(), |(place, _)| place);
        is_this_machine(host) && !is_this_machine(place)
    });
    elsewhere.map_or(Ok(()), |address| {
        Err(LabError::Usage(format!(
            "--target with {host} is, for the driver {address}, its own machine; give the server's name or address in the network"
        )))
    })
}

fn find_workload(arguments: &LoadArguments) -> Result<Workload, LabError> {
    Ok(Workload::find(&arguments.script.workload, &variables(arguments))?)
}

fn default_folder(workload: &str) -> PathBuf {
    let now = jiff::Zoned::now().strftime("%Y%m%d-%H%M%S");
    PathBuf::from("reports").join(format!("{}-{now}", workload.to_lowercase()))
}

/// Bold heading, red complaints; on a terminal only.
fn coloured(text: &str) -> String {
    if !has_colours(&std::io::stdout()) {
        return text.to_owned();
    }
    let paint = |(index, line): (usize, &str)| match line {
        _ if index == 0 => format!("\u{1b}[1m{line}\u{1b}[0m\n"),
        _ if line.starts_with("NOT VALID") || line.starts_with("MISSED") => {
            format!("\u{1b}[31m{line}\u{1b}[0m\n")
        }
        _ => format!("{line}\n"),
    };
    text.lines().enumerate().map(paint).collect()
}
