//! From the command line to an exit code. Data goes to standard output, talk to standard error.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use scrinium_terminal::{CommandOutcome, print, say};

use crate::answer::answer;
use crate::arguments::{
    CalibrateArguments, CheckArguments, MeasuringArguments, PlanArguments, PlanCommand, PlanningArguments,
};
use crate::calibration::{Calibration, Measuring, Size, measure, measure_cells, usual_path};
use crate::check::{Check, Forecast, cell};
use crate::error::PlanError;
use crate::fit::Model;
use crate::organisation::{EXAMPLE, Organisation};
use crate::report::{Plan, Scenario, calibration_text, check_markdown, check_text, markdown, plan_text};
use crate::what_if::changed;

/// Runs a command of the planner.
///
/// # Errors
/// [`PlanError`]; its [`PlanError::outcome`] is the exit code.
pub async fn run(arguments: PlanArguments) -> Result<CommandOutcome, PlanError> {
    let environment: BTreeMap<String, String> = std::env::vars().collect();
    match arguments.command {
        Some(PlanCommand::Calibrate(arguments)) => calibrate(&arguments, &environment).await,
        Some(PlanCommand::Check(arguments)) => check(&arguments, &environment).await,
        None => plan(&arguments.planning, &environment),
    }
}

fn plan(
    arguments: &PlanningArguments,
    environment: &BTreeMap<String, String>,
) -> Result<CommandOutcome, PlanError> {
    if arguments.example {
        print(EXAMPLE)?;
        return Ok(CommandOutcome::Done);
    }
    let Some(path) = &arguments.organisation else {
        return Err(PlanError::Usage("name the organisation\u{2019}s file; --example prints one".to_owned()));
    };
    let organisation = Organisation::read(path)?;
    let calibration = read_calibration(arguments.calibration.as_ref(), environment)?;
    let model = Model::of(&calibration)?;
    let what_if = arguments.what_if.iter().map(|change| {
        let plan = answer(&changed(&organisation, change)?, &calibration, &model)?;
        Ok(Scenario { change: change.clone(), plan })
    });
    let what_if = what_if.collect::<Result<Vec<Scenario>, PlanError>>()?;
    let plan = Plan { plan: answer(&organisation, &calibration, &model)?, what_if };
    let printed = if arguments.json {
        print(&(serde_json::to_string_pretty(&plan)? + "\n"))
    } else if arguments.markdown {
        print(&markdown(&plan))
    } else {
        print(&plan_text(&plan))
    };
    if let Some(folder) = &arguments.report {
        plan.write(&calibration, &model, folder)?;
        say(&format!("The report is {}", folder.join("plan.html").display()));
    }
    printed?;
    Ok(if plan.plan.holds { CommandOutcome::Done } else { CommandOutcome::Missed })
}

fn read_calibration(
    named: Option<&PathBuf>,
    environment: &BTreeMap<String, String>,
) -> Result<Calibration, PlanError> {
    Calibration::read(&named.cloned().unwrap_or_else(|| usual_path(environment)))
}

async fn calibrate(
    arguments: &CalibrateArguments,
    environment: &BTreeMap<String, String>,
) -> Result<CommandOutcome, PlanError> {
    let of_form = |quick, usual| if arguments.quick { quick } else { usual };
    let size = Size {
        users: arguments.users.unwrap_or_else(|| of_form(100, 1000)),
        speedup: f64::from(arguments.speedup.unwrap_or_else(|| of_form(60, 20))),
        rungs: arguments.rungs,
        documents: arguments.documents.unwrap_or(if arguments.quick { 30 } else { 100 }),
        hold_s: arguments
            .duration
            .map_or(if arguments.quick { 10.0 } else { 30.0 }, |time| time.as_secs_f64()),
        repeats: arguments.repeats,
    };
    let measuring = measuring(&arguments.measuring, "calibration", arguments.quick)?;
    let calibration = measure(&size, &measuring).await?;
    // What was measured is kept where its reports are, even if nothing can be made of it.
    calibration.write(&measuring.folder.join("calibration.json"))?;
    let model = Model::of(&calibration)?;
    let path = arguments.out.clone().unwrap_or_else(|| usual_path(environment));
    calibration.write(&path)?;
    let printed = if arguments.measuring.json {
        print(&(serde_json::to_string_pretty(&calibration)? + "\n"))
    } else {
        print(&calibration_text(&calibration, &model))
    };
    say(&format!(
        "The calibration is {}; the runs\u{2019} reports are in {}",
        path.display(),
        measuring.folder.display()
    ));
    say(&format!(
        "Next: scrinium plan --example > my.toml, then scrinium plan my.toml{}",
        option(arguments.out.as_deref())
    ));
    printed?;
    Ok(CommandOutcome::Done)
}

/// How the next command has to be told where the calibration is.
fn option(out: Option<&Path>) -> String {
    out.map_or_else(String::new, |path| format!(" --calibration {}", path.display()))
}

async fn check(
    arguments: &CheckArguments,
    environment: &BTreeMap<String, String>,
) -> Result<CommandOutcome, PlanError> {
    let calibration = read_calibration(arguments.calibration.as_ref(), environment)?;
    let model = Model::of(&calibration)?;
    let unusable = || PlanError::Unusable { why: "it has no ladder of loads".to_owned() };
    let forecast = Forecast::of(&calibration, &model, arguments.times).ok_or_else(unusable)?;
    let hold_s =
        arguments.duration.map_or(if arguments.quick { 10.0 } else { 60.0 }, |time| time.as_secs_f64());
    let cell = cell(&calibration, &forecast, hold_s).ok_or_else(unusable)?;
    let measuring = measuring(&arguments.measuring, "check", arguments.quick)?;
    std::fs::create_dir_all(&measuring.folder)
        .map_err(PlanError::file("make the folder", &measuring.folder))?;
    let folder = measuring.folder.display().to_string();
    let (points, _) = measure_cells(&[cell], arguments.repeats, &measuring).await?;
    let found = points.first().and_then(|point| Check::of(&calibration, &forecast, point, folder.clone()));
    let check =
        found.ok_or_else(|| PlanError::NothingMeasured { why: "no run was seen".to_owned(), folder })?;
    let json = serde_json::to_string_pretty(&check)? + "\n";
    let path = measuring.folder.join("check.md");
    write(&path, &check_markdown(&check, &calibration, &model))?;
    write(&measuring.folder.join("check.json"), &json)?;
    let printed = print(&if arguments.measuring.json { json } else { check_text(&check) });
    say(&format!("The report is {}", path.display()));
    printed?;
    let off = arguments.max_error.is_some_and(|most| check.response_error_percent() > most);
    Ok(if off || !check.invalid.is_empty() { CommandOutcome::Missed } else { CommandOutcome::Done })
}

fn write(path: &Path, text: &str) -> Result<(), PlanError> {
    std::fs::write(path, text).map_err(PlanError::file("write", path))
}

fn measuring(arguments: &MeasuringArguments, what: &str, quick: bool) -> Result<Measuring, PlanError> {
    let folder = arguments.report.clone().unwrap_or_else(|| {
        PathBuf::from("reports").join(format!("{what}-{}", jiff::Zoned::now().strftime("%Y%m%d-%H%M%S")))
    });
    // Servers and drivers run in folders of their own.
    let absolute = |path: &Path| std::path::absolute(path).map_err(PlanError::file("use the folder", path));
    Ok(Measuring {
        folder: absolute(&folder)?,
        data: arguments.data.as_deref().map(absolute).transpose()?,
        server_command: arguments.server_command.clone(),
        quick,
        resume: arguments.resume,
    })
}
