//! `lab ...`: from the command line to an exit code. Data goes to standard output, talk to standard error.

use std::path::PathBuf;
use std::sync::Arc;

use crate::arguments::{LabArguments, LabCommand, LoadArguments};
use crate::driver::{Driver, HttpOptions, TargetOptions, Targets};
use crate::error::{LabError, Outcome};
use crate::files::try_folder;
use crate::load::{Cut, Objectives, Plan, StopConditions, load, load_there};
use crate::monitor::is_this_machine;
use crate::output::{has_colours, print};
use crate::probe::{Account, ProbeBeside};
use crate::progress::Progress;
use crate::remote::{Job, Team, drive};
use crate::report::{Report, table};
use crate::schedule::Model;
use crate::script::Variables;
use crate::script_commands;
use crate::workload::Workload;

/// Runs a command of the laboratory.
///
/// # Errors
/// [`LabError`]; its [`LabError::outcome`] is the exit code.
pub async fn run(arguments: LabArguments) -> Result<Outcome, LabError> {
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
        LabCommand::Compare(arguments) => crate::report::compare::run(&arguments),
    }
}

pub(crate) fn given(set: &[(String, String)]) -> Variables {
    let mut variables = Variables::default();
    for (name, value) in set {
        variables.set(name, value);
    }
    variables
}

async fn run_load(arguments: LoadArguments) -> Result<Outcome, LabError> {
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
    let Some(report) = Report::repeated(&reports) else { return Ok(Outcome::Failed) };
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
            return Err(error);
        }
        progress.say(&format!("The report is {}", folder.join("report.html").display()));
    }
    printed?;
    Ok(if report.passed() { Outcome::Done } else { Outcome::Missed })
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
    let mut report = Report::of(&plan, &measured, &command_line());
    if let Some(probe) = probe {
        report.add_probe(probe.end(measured.began, report.hold_s()).await);
    }
    Ok((report, stopped))
}

/// As whom a probe works beside the users.
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

/// Values for the script's variables.
pub(crate) fn variables(arguments: &LoadArguments) -> Variables {
    let mut variables = given(&arguments.script.set);
    if let Some(messages) = arguments.messages_per_user {
        variables.set("NumMailNotesPerUser", &messages.to_string());
    }
    variables
}

fn find_workload(arguments: &LoadArguments) -> Result<Workload, LabError> {
    Workload::find(&arguments.script.workload, &variables(arguments))
}

/// What the command line and the workload say of a run.
pub(crate) fn plan_of(arguments: &LoadArguments, workload: Workload) -> Plan {
    let model = if arguments.closed_model { Model::Closed } else { Model::Open };
    Plan {
        workload: workload.name,
        origin: workload.origin,
        script: Arc::new(workload.script),
        variables: workload.variables,
        users: usize::try_from(arguments.users).unwrap_or(usize::MAX),
        user_prefix: arguments.user_prefix.clone(),
        target: arguments.target.iter().map(|target| without_password(target)).collect::<Vec<_>>().join(", "),
        duration: arguments.duration,
        ramp_up: arguments.ramp_up,
        ramp_down: arguments.ramp_down,
        speedup: arguments.speedup,
        keep_alive: arguments.keep_alive,
        model,
        seed: arguments.seed,
        time_out: arguments.time_out,
        prepare: !arguments.skip_prepare,
        server_pid: arguments.server_pid,
        stop: StopConditions {
            time_outs: arguments.stop_time_outs,
            errors_percent: arguments.stop_errors,
            average_ms: arguments.stop_average,
        },
        objectives: Objectives {
            average_ms: arguments.max_average,
            p99_ms: arguments.max_p99,
            errors_percent: arguments.max_errors,
        },
    }
}

/// The servers that the command line names.
pub(crate) fn driver(arguments: &LoadArguments, plan: &Plan) -> Result<Targets, LabError> {
    let admin = arguments.admin.as_ref().map(|name| (name.clone(), arguments.password.clone()));
    let http = HttpOptions {
        target: String::new(),
        admin,
        login: arguments.login,
        user_password: arguments.user_password.clone(),
        view_language: arguments.view_language,
        directory: arguments.directory.clone(),
        mail_box: arguments.mail_box.clone(),
        time_out: arguments.time_out,
        compressed: arguments.compressed,
    };
    Targets::new(&TargetOptions {
        targets: arguments.target.clone(),
        http,
        domain: arguments
            .mail_domain
            .as_deref()
            .or_else(|| plan.variables.get("RecipientDomain"))
            .unwrap_or("lab.invalid")
            .to_owned(),
        login_name: arguments.login_name.clone(),
        authority: arguments.ca.clone(),
        check_deliveries: match (arguments.check_deliveries, arguments.no_check_deliveries) {
            (true, _) => Some(true),
            (false, true) => Some(false),
            (false, false) => None,
        },
        users: plan.users,
        recipients: plan.script.recipients(),
        delivery_wait: arguments.delivery_wait,
    })
    .map_err(LabError::Usage)
}

fn default_folder(workload: &str) -> PathBuf {
    let now = jiff::Zoned::now().strftime("%Y%m%d-%H%M%S");
    PathBuf::from("reports").join(format!("{}-{now}", workload.to_lowercase()))
}

/// An address without the password that may stand in it.
fn without_password(target: &str) -> String {
    let Some((before, place)) = target.rsplit_once('@') else { return target.to_owned() };
    let Some((scheme, account)) = before.split_once("://") else { return target.to_owned() };
    match account.split_once(':') {
        Some((name, _)) => format!("{scheme}://{name}:***@{place}"),
        None => target.to_owned(),
    }
}

/// Options whose values nobody is shown.
const SECRETS: [&str; 3] = ["--password", "--user-password", "--driver-token"];

/// The command line without what follows a password's option.
pub(crate) fn command_line() -> String {
    let mut secret = false;
    let words: Vec<String> = std::env::args()
        .map(|word| {
            let hidden = std::mem::replace(&mut secret, SECRETS.contains(&word.as_str()));
            match word.split_once('=') {
                _ if hidden => "***".to_owned(),
                Some((name, _)) if SECRETS.contains(&name) => format!("{name}=***"),
                _ if word.contains(' ') => format!("'{word}'"),
                _ => without_password(&word),
            }
        })
        .collect();
    words.join(" ")
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
