//! `show tasks` and `tell NUMBER quit|pause|resume`.

use scrinium_clock::unix_s;
use scrinium_statistics::{PauseError, TaskState, TaskStatus, Tasks};
use serde_json::{Value, json};

use super::table::{Align, grouped, number, spoken, table};
use super::{ConsoleError, Reply};

/// Ended tasks that people are shown. Programs have all that are known: one may look for a task that it has begun.
const ENDED_SHOWN: usize = 10;

pub(super) fn show_tasks(tasks: &Tasks) -> Reply {
    let (running, mut ended) = (tasks.running(), tasks.ended());
    // One that ended between the two questions is in both answers.
    ended.retain(|ended| !running.iter().any(|running| running.id == ended.id));
    let mut text = String::new();
    if running.is_empty() {
        text.push_str("No task is running.\n");
    } else {
        text.push_str(&lines(&running, &[]));
    }
    if !ended.is_empty() {
        text.push_str("\nEnded lately:\n");
        text.push_str(&lines(&[], ended.get(..ENDED_SHOWN).unwrap_or(&ended)));
    }
    let data = |tasks: &[TaskStatus]| tasks.iter().map(task_data).collect::<Value>();
    Reply { text, data: json!({"running": data(&running), "ended": data(&ended)}) }
}

/// Asks a task to stop; it does so when it next looks.
pub(super) fn quit(tasks: &Tasks, id: u64) -> Result<Reply, ConsoleError> {
    if !tasks.cancel(id) {
        return Err(ConsoleError::NotFound(format!("no task {id} is running; show tasks lists them")));
    }
    Ok(Reply { text: format!("Task {id} was asked to stop.\n"), data: json!({"asked": id}) })
}

/// Asks a task to wait, or to go on.
pub(super) fn pause(tasks: &Tasks, id: u64, paused: bool) -> Result<Reply, ConsoleError> {
    tasks.pause(id, paused).map_err(|error| {
        ConsoleError::NotFound(match error {
            PauseError::NotRunning => format!("no task {id} is running; show tasks lists them"),
            PauseError::Unable { kind } => {
                format!("task {id} ({kind}) cannot pause; tell {id} quit stops it")
            }
        })
    })?;
    let text = if paused {
        format!("Task {id} was asked to pause; tell {id} resume continues it.\n")
    } else {
        format!("Task {id} continues.\n")
    };
    Ok(Reply { text, data: json!({"asked": id, "paused": paused}) })
}

fn lines(running: &[TaskStatus], ended: &[TaskStatus]) -> String {
    use Align::{Left, Right};
    let columns = [
        ("Task", Right),
        ("Kind", Left),
        ("Database", Left),
        ("Done", Right),
        ("Of", Right),
        ("%", Right),
        ("Per second", Right),
        (if ended.is_empty() { "Left" } else { "Took" }, Right),
        ("State", Left),
    ];
    let rows: Vec<Vec<String>> = running.iter().chain(ended).map(row).collect();
    table(&columns, &rows)
}

fn row(task: &TaskStatus) -> Vec<String> {
    let time = match task.state {
        TaskState::Running => task.remaining,
        _ => task.updated.duration_since(task.started).ok(),
    };
    let state = match &task.state {
        TaskState::Running if task.cancel_requested => "stopping".to_owned(),
        TaskState::Running if task.paused => "paused".to_owned(),
        TaskState::Failed(reason) => format!("failed: {reason}"),
        state => state.name().to_owned(),
    };
    vec![
        task.id.to_string(),
        task.kind.clone(),
        task.database.clone().unwrap_or_default(),
        grouped(task.done),
        task.total.map(grouped).unwrap_or_default(),
        task.percent().map(|percent| percent.to_string()).unwrap_or_default(),
        number((task.rate * 10.0).round() / 10.0),
        time.map(spoken).unwrap_or_default(),
        state,
    ]
}

fn task_data(task: &TaskStatus) -> Value {
    let reason = match &task.state {
        TaskState::Failed(reason) => Some(reason),
        _ => None,
    };
    json!({
        "task": task.id,
        "kind": task.kind,
        "database": task.database,
        "done": task.done,
        "total": task.total,
        "percent": task.percent(),
        "per_second": task.rate,
        "remaining_seconds": task.remaining.map(|remaining| remaining.as_secs_f64().round()),
        "started_on": unix_s(task.started),
        "updated_on": unix_s(task.updated),
        "state": task.state.name(),
        "reason": reason,
        "cancel_requested": task.cancel_requested,
        "paused": task.paused,
        "details": task.details,
    })
}
