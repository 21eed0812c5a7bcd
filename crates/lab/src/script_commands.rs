//! `lab check`, `lab show`, `lab list` and `lab capture`: what is said about scripts without running them.

use scrinium_lab_script::{
    Ability, COMMANDS, Estimate, Support, Variables, Workload, WorkloadError, capture, find_command,
};
use scrinium_terminal::{CommandOutcome, print, say};
use serde_json::{Value, json};

use crate::arguments::{CaptureArguments, ListArguments, ScriptArguments, ShowArguments};
use crate::driver::target_form;
use crate::error::LabError;
use crate::setup::given;

pub(crate) fn check(arguments: &ScriptArguments) -> Result<CommandOutcome, LabError> {
    let workload = Workload::find(&arguments.workload, &given(&arguments.set))?;
    let (mut text, mut notes) = (String::new(), String::new());
    for (line, name) in workload.script.cannot_run() {
        let about = find_command(name).map_or("", |command| command.about);
        text.push_str(&format!(
            "{}: line {line}: {name} is known, and cannot be run yet: it {about}\n",
            workload.origin
        ));
    }
    for note in &workload.script.notes {
        notes.push_str(&format!("{}: line {}: {}\n", workload.origin, note.line, note.text));
    }
    let outcome = if text.is_empty() {
        text = format!("{}: {} commands, nothing wrong\n", workload.origin, workload.script.statements.len());
        for needed in workload.script.abilities() {
            let all = |of: fn(Ability) -> &'static str| {
                needed.iter().copied().map(of).collect::<Vec<_>>().join(" or ")
            };
            text.push_str(&format!(
                "needs a server for {}: --target {}\n",
                all(Ability::name),
                all(target_form)
            ));
        }
        CommandOutcome::Done
    } else {
        CommandOutcome::Failed
    };
    print(&(notes + &text))?;
    Ok(outcome)
}

pub(crate) fn show(arguments: &ShowArguments) -> Result<CommandOutcome, LabError> {
    let script = &arguments.script;
    let workload = Workload::find(&script.workload, &given(&script.set))?;
    let estimate = Estimate::of(&workload.script);
    if arguments.json {
        let text = serde_json::to_string_pretty(&as_json(&workload, &estimate))?;
        print(&(text + "\n"))?;
        return Ok(CommandOutcome::Done);
    }
    let mut text = workload.text.trim_end().to_owned();
    text.push_str("\n\n");
    let minutes = |time: std::time::Duration| time.as_secs_f64() / 60.0;
    if estimate.one_loop.is_zero() {
        text.push_str("The script is run once.\n");
    } else {
        text.push_str(&format!(
            "A round takes {:.2} minutes of think time on average; before the first, {:.2}.\n",
            minutes(estimate.one_loop),
            minutes(estimate.before_loop)
        ));
    }
    text.push_str(&format!("\n{:<24}{:>10}{:>16}\n", "Command", "a round", "a user's hour"));
    for command in &estimate.commands {
        text.push_str(&format!(
            "{:<24}{:>10.2}{:>16.2}\n",
            command.command, command.per_loop, command.per_hour
        ));
    }
    text.push_str(&format!(
        "\n{:<24}{:<24}{:>10}{:>16}\n",
        "Request of", "counted as", "a round", "a user's hour"
    ));
    for request in &estimate.requests {
        text.push_str(&format!(
            "{:<24}{:<24}{:>10.2}{:>16.2}\n",
            request.operation.command(),
            request.operation.transaction(),
            request.per_loop,
            request.per_hour
        ));
    }
    let all: f64 = estimate.requests.iter().map(|request| request.per_hour).sum();
    text.push_str(&format!("{:<48}{:>26.2}\n", "All", all));
    if workload.script.cannot_run().next().is_some() {
        text.push_str("\nCommands that cannot be run yet are not counted (lab check names them).\n");
    }
    print(&text)?;
    Ok(CommandOutcome::Done)
}

fn as_json(workload: &Workload, estimate: &Estimate) -> Value {
    let commands: Vec<Value> = estimate
        .commands
        .iter()
        .map(|command| json!({"command": command.command, "per_round": command.per_loop, "per_hour": command.per_hour}))
        .collect();
    let requests: Vec<Value> = estimate
        .requests
        .iter()
        .map(|request| {
            json!({"command": request.operation.command(), "transaction": request.operation.transaction(),
                   "per_round": request.per_loop, "per_hour": request.per_hour})
        })
        .collect();
    json!({
        "name": workload.name,
        "title": workload.script.header.title,
        "origin": workload.origin,
        "source": workload.script.header.source,
        "choices": workload.script.header.choices,
        "published": workload.script.header.published,
        "round_s": estimate.one_loop.as_secs_f64(),
        "before_first_round_s": estimate.before_loop.as_secs_f64(),
        "commands": commands,
        "requests": requests,
        "cannot_run": workload.script.cannot_run().map(|(line, name)| json!({"line": line, "command": name})).collect::<Vec<_>>(),
    })
}

pub(crate) fn list(arguments: ListArguments) -> Result<CommandOutcome, LabError> {
    let names = Workload::names();
    let found: Vec<(&String, Result<Workload, WorkloadError>)> =
        names.iter().map(|name| (name, Workload::find(name, &Variables::default()))).collect();
    if arguments.json {
        let list: Vec<Value> = found
            .iter()
            .map(|(name, workload)| match workload {
                Ok(workload) => as_json(workload, &Estimate::of(&workload.script)),
                Err(error) => json!({"name": name, "error": error.to_string()}),
            })
            .collect();
        print(&(serde_json::to_string_pretty(&list)? + "\n"))?;
        return Ok(CommandOutcome::Done);
    }
    let width = names.iter().map(String::len).max().unwrap_or(0) + 2;
    let mut text = String::new();
    for (name, workload) in found {
        text.push_str(&match workload {
            Ok(workload) => {
                format!("{:<width$}{}\n", workload.name, workload.script.header.title.unwrap_or_default())
            }
            Err(_) => format!("{name:<width$}(has errors: lab check {name})\n"),
        });
    }
    let count = |support| COMMANDS.iter().filter(|command| command.support == support).count();
    text.push_str(&format!(
        "\nThe script language has {} commands; {} can be run. `lab show NAME` prints a workload with its sources.\n",
        COMMANDS.len(),
        count(Support::Runs) + count(Support::Steers)
    ));
    print(&text)?;
    Ok(CommandOutcome::Done)
}

pub(crate) fn capture(arguments: &CaptureArguments) -> Result<CommandOutcome, LabError> {
    let captured = capture::capture(&arguments.log, &arguments.name)?;
    match &arguments.output {
        Some(path) => std::fs::write(path, &captured.script).map_err(|source| LabError::File {
            what: "write",
            path: path.display().to_string(),
            source,
        })?,
        None => print(&captured.script)?,
    }
    let left_out: u64 = captured.left_out.iter().map(|(_, count)| count).sum();
    say(&format!(
        "{} operations of {} users; {left_out} left out, {} lines unreadable",
        captured.operations, captured.users, captured.unreadable
    ));
    if let Some(path) = &arguments.output {
        say(&format!("Next: lab show {}", path.display()));
    }
    Ok(CommandOutcome::Done)
}
