//! `lab experiment` and `lab experiments`: from the command line to reports.

use std::path::{Path, PathBuf};

use clap::Args;
use scrinium_lab_report::experiment::{ExperimentReport, Form, cell_count, terminal_text, write_index};
use scrinium_lab_report::time;
use scrinium_terminal::{CommandOutcome, print};

use super::cells::Plan;
use super::error::ExperimentError;
use super::estimate::{cell_s, group_s};
use super::library::Experiment;
use super::run::{Order, run};
use super::server::ServerCommand;
use crate::error::LabError;
use crate::files::try_folder;
use crate::program;
use crate::progress::Progress;
use crate::values::variable;

/// What `lab experiment` can be told.
#[derive(Debug, Args)]
pub struct ExperimentArguments {
    /// An experiment's name, or the path of its file
    pub name: String,
    /// The short form: minutes in place of hours
    #[arg(long)]
    pub quick: bool,
    /// Give a parameter another value, or a factor other levels (with commas between); repeats=N measures
    /// each cell N times
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = variable)]
    pub set: Vec<(String, String)>,
    /// Measure only the cells with this level; may be given several times
    #[arg(long, value_name = "LEVEL")]
    pub only: Vec<String>,
    /// Where results and reports go [default: reports/NAME-FORM-date]
    #[arg(long, value_name = "DIR")]
    pub report: Option<PathBuf>,
    /// Go on with an experiment that was broken off, in the folder of --report
    #[arg(long, requires = "report")]
    pub resume: bool,
    /// What starts a server; {data}, {port} and {tls_port} stand for its folder and ports, settings come in the
    /// environment (SCRINIUM_SECTION__KEY) [default: this program, serve --data-dir {data}]
    #[arg(long, value_name = "COMMAND")]
    pub server_command: Option<String>,
    /// The administrator that such a server has
    #[arg(long, value_name = "NAME", default_value = "admin")]
    pub server_admin: String,
    /// The administrator's password, which the server takes from SCRINIUM_ADMIN_PASSWORD [default: one drawn by lot]
    #[arg(long, env = "SCRINIUM_LAB_SERVER_PASSWORD", hide_env_values = true)]
    pub server_password: Option<String>,
    /// Where servers keep their data while they are measured: the device that counts [default: below the report's folder]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Print the report as JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Say what would be done, and how long it would take
    #[arg(long)]
    pub dry_run: bool,
}

/// What `lab experiments` can be told.
#[derive(Debug, Args)]
pub struct ExperimentsArguments {
    /// Rewrite the pages of all experiments' reports below this folder from their experiment.json, and a page that
    /// links them
    #[arg(long, value_name = "DIR")]
    pub index: Option<PathBuf>,
    /// Print only the names
    #[arg(long)]
    pub names: bool,
}

/// Lists the experiments, or makes the page of their reports.
pub(crate) fn experiments(arguments: &ExperimentsArguments) -> Result<CommandOutcome, LabError> {
    if let Some(folder) = &arguments.index {
        let page = write_index(folder)?;
        print(&format!("The page is {}\n", page.display()))?;
        return Ok(CommandOutcome::Done);
    }
    let mut text = String::new();
    let mut sums = [0.0, 0.0];
    for name in Experiment::names() {
        if arguments.names {
            text.push_str(&format!("{name}\n"));
            continue;
        }
        let experiment = match Experiment::find(&name) {
            Ok(experiment) => experiment,
            Err(error) => {
                text.push_str(&format!("{name:<21}(has errors: {error})\n"));
                continue;
            }
        };
        let mut lengths = [0.0, 0.0];
        for (length, form) in lengths.iter_mut().zip([Form::Quick, Form::Full]) {
            let plan = Plan::new(&experiment.definition, form, &[], &[])?;
            *length = length_s(&experiment, &plan);
        }
        sums.iter_mut().zip(lengths).for_each(|(sum, length)| *sum += length);
        text.push_str(&format!(
            "{name:<21}{:>9}{:>9}  {}\n",
            time(lengths[0]),
            time(lengths[1]),
            experiment.definition.title
        ));
    }
    if !arguments.names {
        text = format!(
            "{:<21}{:>9}{:>9}\n{text}{:<21}{:>9}{:>9}\n",
            "",
            "quick",
            "full",
            "all",
            time(sums[0]),
            time(sums[1])
        );
    }
    print(&text)?;
    Ok(CommandOutcome::Done)
}

fn length_s(experiment: &Experiment, plan: &Plan) -> f64 {
    let groups = plan.groups();
    let once: f64 =
        groups.iter().map(|group| group_s(&experiment.definition, plan, group, plan.turns())).sum();
    once * f64::from(plan.repeats)
}

/// Runs one experiment.
pub(crate) async fn experiment(arguments: ExperimentArguments) -> Result<CommandOutcome, LabError> {
    let experiment = Experiment::find(&arguments.name)?;
    let plan = Plan::new(&experiment.definition, form_of(&arguments), &arguments.set, &arguments.only)?;
    if arguments.dry_run {
        print(&dry(&experiment, &plan))?;
        return Ok(CommandOutcome::Done);
    }
    let progress = Progress::new();
    let (report, folder) = measure_plan(&arguments, &experiment, &plan, &progress).await?;
    let printed = if arguments.json {
        let printed = print(&(serde_json::to_string_pretty(&report)? + "\n"));
        progress.say(&terminal_text(&report));
        printed
    } else {
        print(&terminal_text(&report))
    };
    report.write(&folder)?;
    progress.say(&format!("The report is {}", folder.join("experiment.html").display()));
    printed?;
    Ok(match report.has_failed() {
        true => CommandOutcome::Failed,
        false if report.is_whole() && report.holds() => CommandOutcome::Done,
        false => CommandOutcome::Missed,
    })
}

fn form_of(arguments: &ExperimentArguments) -> Form {
    if arguments.quick { Form::Quick } else { Form::Full }
}

/// Runs one experiment for another program, which does with the report as it likes; gives it, and the folder where it
/// and the reports of its runs are.
///
/// # Errors
/// [`LabError`]: what is wrong with the experiment, or why it could not be run.
pub async fn measure(
    arguments: &ExperimentArguments,
    progress: &Progress,
) -> Result<(ExperimentReport, PathBuf), LabError> {
    let experiment = Experiment::find(&arguments.name)?;
    let plan = Plan::new(&experiment.definition, form_of(arguments), &arguments.set, &arguments.only)?;
    let (report, folder) = measure_plan(arguments, &experiment, &plan, progress).await?;
    report.write(&folder)?;
    Ok((report, folder))
}

async fn measure_plan(
    arguments: &ExperimentArguments,
    experiment: &Experiment,
    plan: &Plan,
    progress: &Progress,
) -> Result<(ExperimentReport, PathBuf), LabError> {
    let form = form_of(arguments);
    let server = server_command(arguments)?;
    let folder = arguments.report.clone().unwrap_or_else(|| {
        let now = jiff::Zoned::now().strftime("%Y%m%d-%H%M%S");
        PathBuf::from("reports").join(format!("{}-{}-{now}", experiment.name, form.name()))
    });
    // Servers run in folders of their own, so their data is named from the root.
    let folder = absolute(&folder)?;
    try_folder(&folder)?;
    let data = match &arguments.data {
        Some(data) => absolute(data)?,
        None => folder.join("data"),
    };
    let command = program::command_line();
    let order = Order {
        experiment,
        plan,
        form,
        server: &server,
        folder: &folder,
        data: &data,
        resume: arguments.resume,
        command: &command,
    };
    if arguments.data.is_none() {
        // Of an experiment that was killed.
        let _ = std::fs::remove_dir_all(&data);
    }
    let report = run(&order, progress).await?;
    // It is empty now, unless somebody else uses it too.
    let _ = std::fs::remove_dir(&data);
    Ok((report, folder))
}

fn absolute(path: &Path) -> Result<PathBuf, ExperimentError> {
    std::path::absolute(path).map_err(|source| ExperimentError::File {
        what: "use the folder",
        path: path.display().to_string(),
        source,
    })
}

fn dry(experiment: &Experiment, plan: &Plan) -> String {
    let mut text = format!("{}\n{}\n\n", experiment.definition.title, experiment.definition.hypothesis);
    for cell in &plan.cells {
        let length = time(cell_s(&experiment.definition, cell));
        text.push_str(&format!("  {:<50} {length:>9}\n", cell.labels.join(", ")));
    }
    text.push_str("\nParameters, changed by --set:\n");
    for (name, value) in &plan.parameters {
        let about =
            experiment.definition.parameters.get(name).map_or("", |parameter| parameter.about.as_str());
        text.push_str(&format!("  {:<50} {about}\n", format!("{name}={value}")));
    }
    text.push_str(&format!(
        "\n{}, {} of each: about {}\n",
        cell_count(plan.cells.len()),
        if plan.runs() == 1 { "one run".to_owned() } else { format!("{} runs", plan.runs()) },
        time(length_s(experiment, plan))
    ));
    text
}

/// The server's command: the one given, or this program's own, or the server next to this program.
fn server_command(arguments: &ExperimentArguments) -> Result<ServerCommand, LabError> {
    let words = match &arguments.server_command {
        Some(command) => command.split_whitespace().map(str::to_owned).collect(),
        None => {
            let program = program::server().ok_or_else(|| {
                LabError::Usage(
                    "this program has no server: say what starts one by --server-command".to_owned(),
                )
            })?;
            let mut words = vec![program.display().to_string()];
            words.extend(["serve", "--data-dir", "{data}"].map(str::to_owned));
            words
        }
    };
    if words.is_empty() {
        return Err(LabError::Usage("--server-command is empty".to_owned()));
    }
    let password =
        arguments.server_password.clone().unwrap_or_else(|| format!("{:032x}", rand::random::<u128>()));
    Ok(ServerCommand { words, admin: arguments.server_admin.clone(), password })
}
