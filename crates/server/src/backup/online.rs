//! Asking a running server, and showing how far its task is.

use std::time::Duration;

use indicatif::ProgressBar;
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::{Failure, Terminal};
use crate::client::{ClientError, ConsoleClient};
use crate::config::Settings;

/// How often the server is asked how far it is.
const ASK_EVERY: Duration = Duration::from_millis(500);

/// So often the server may not answer before it is given up.
const PATIENCE: u32 = 20;

/// A bar for bytes.
pub(crate) fn bar(terminal: &Terminal) -> ProgressBar {
    terminal.bar(0, "{bar:30} {bytes}/{total_bytes}  {bytes_per_sec}  {msg}  {eta} left")
}

/// Makes the server of these settings carry out a command that begins a task, and waits for its end. ^C stops the task.
/// Returns what the task's result is.
pub(crate) fn run(settings: &Settings, line: &str, terminal: &Terminal) -> Result<Value, Failure> {
    let client = ConsoleClient::of_own_server(settings)?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::work)?;
    let bar = bar(terminal);
    let result = runtime.block_on(follow(&client, line, &bar));
    bar.finish_and_clear();
    result
}

/// Makes the server of these settings carry out a command that is done when it answers.
pub(crate) fn tell(settings: &Settings, line: &str, terminal: &Terminal) -> Result<(), Failure> {
    let client = ConsoleClient::of_own_server(settings)?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::work)?;
    let reply = runtime.block_on(client.send(line)).map_err(Failure::work)?;
    terminal.data(&reply.text, &reply.data)
}

async fn follow(client: &ConsoleClient, line: &str, bar: &ProgressBar) -> Result<Value, Failure> {
    let begun = client.send(line).await.map_err(Failure::work)?;
    let task = begun.data.get("task").and_then(Value::as_u64);
    let task = task.ok_or_else(|| Failure::Work(format!("the server did not begin it: {}", begun.text)))?;
    let mut silent = 0;
    // One that comes while the server is asked waits here until it is looked for.
    let mut interrupts = signal(SignalKind::interrupt()).map_err(Failure::work)?;
    loop {
        tokio::select! {
            () = tokio::time::sleep(ASK_EVERY) => {}
            _ = interrupts.recv() => {
                // It says how the task ended, below.
                client.send(&format!("tell {task} quit")).await.map_err(Failure::work)?;
            }
        }
        match client.send("show tasks").await {
            Ok(reply) => {
                silent = 0;
                if let Some(result) = look(&reply.data, task, bar)? {
                    return Ok(result);
                }
            }
            Err(error @ (ClientError::NotAllowed { .. } | ClientError::Refused(_))) => {
                return Err(Failure::work(error));
            }
            Err(error) => {
                silent += 1;
                if silent >= PATIENCE {
                    return Err(Failure::work(error));
                }
            }
        }
    }
}

/// The task's result, once it has ended.
fn look(tasks: &Value, task: u64, bar: &ProgressBar) -> Result<Option<Value>, Failure> {
    let find = |list: &str| {
        let mut list = tasks.get(list).and_then(Value::as_array).into_iter().flatten();
        list.find(|entry| entry.get("task").and_then(Value::as_u64) == Some(task)).cloned()
    };
    if let Some(running) = find("running") {
        let number = |name: &str| running.get(name).and_then(Value::as_u64);
        if let Some(total) = number("total") {
            bar.set_length(total);
        }
        bar.set_position(number("done").unwrap_or_default());
        let step = running.pointer("/details/step").and_then(Value::as_str);
        bar.set_message(step.unwrap_or_default().to_owned());
        return Ok(None);
    }
    let Some(ended) = find("ended") else {
        return Err(Failure::Work(
            "the server does not know about it any more; was it restarted?".to_owned(),
        ));
    };
    match ended.get("state").and_then(Value::as_str) {
        Some("finished") => Ok(Some(ended.pointer("/details/result").cloned().unwrap_or_default())),
        Some("cancelled") => Err(Failure::Work("it was cancelled; nothing was made".to_owned())),
        _ => {
            let reason = ended.get("reason").and_then(Value::as_str).unwrap_or("it failed");
            Err(Failure::Work(reason.to_owned()))
        }
    }
}
