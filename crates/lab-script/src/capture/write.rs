//! The average round as a script.

use std::fmt::Write;
use std::time::Duration;

use super::log::{Action, OperationLog};
use super::rounds::{RoundStep, Rounds};

/// What comes in this many rounds, or more, stands in the script as if it came in all.
const ALWAYS: f64 = 0.995;

/// What comes in fewer rounds is left out.
const NEVER: f64 = 0.0005;

/// A message as the server's clients write it is larger than its body by about so much.
const AROUND_A_BODY_BYTES: u64 = 500;

pub(super) fn script(name: &str, file: &str, log: &OperationLog, rounds: &Rounds) -> String {
    let mut text = String::new();
    header(&mut text, name, file, log, rounds);
    text.push_str("\nPause 0-1min\nErrorDelay 1-2min\n");
    if rounds.steps.iter().any(|step| step.action == (Action::ChangeTo { own: false })) {
        text.push_str("BeginCrit\n  ChangeTo \"[MailServer]!![DiscussionDB]\" shared\n  Populate [NumSharedNotes]\nEndCrit\n");
    }
    text.push_str("ChangeTo MAIL\nOpen\n\nBeginLoop\n");
    for step in rounds.steps.iter().filter(|step| step.share >= NEVER) {
        write_step(&mut text, step, rounds);
    }
    text.push_str("Rewind\n");
    text
}

fn header(text: &mut String, name: &str, file: &str, log: &OperationLog, rounds: &Rounds) {
    // Two asterisks would end a comment.
    let clean = |text: &str| text.replace('*', "").replace(['\n', '\r'], " ");
    let (name, file) = (clean(name), clean(file));
    let hours = rounds.at_work.as_secs_f64() / 3600.0;
    #[allow(clippy::cast_precision_loss, reason = "a mean")]
    let session_min = 60.0 * hours / rounds.sessions.max(1) as f64;
    let _ = writeln!(text, "**Workload: {name}**");
    let _ = writeln!(text, "**Title: what {} users of a server did on average**", rounds.users);
    let _ = writeln!(
        text,
        "**Source: the operation log {file}: {} operations in {} sessions of {session_min:.1} minutes on average, {hours:.2} hours of work, {} rounds**",
        log.done.len(),
        rounds.sessions,
        rounds.rounds,
    );
    text.push_str("**Choice: A round begins where a database is opened; its operations stand in the order in which they come on average. Which follows which is lost beyond that, as are who writes to whom, how many a message goes to, which documents are popular, and the time of day.**\n");
    text.push_str("**Choice: A document that was read less than a second before it was written counts as one Update.**\n");
    let left_out: Vec<String> =
        log.left_out.iter().map(|(operation, count)| format!("{operation} {count}")).collect();
    if !left_out.is_empty() {
        let _ = writeln!(
            text,
            "**Choice: Left out, since no command stands for it or it was refused: {}**",
            left_out.join(", ")
        );
    }
    text.push_str("**Variable: NumMailNotesPerUser = 100 (documents in each mail file at the start; not known from the log)**\n");
    let normal = sizes(rounds, Action::Add).or_else(|| sizes(rounds, Action::SendMessage));
    let normal = normal.unwrap_or_else(|| "1000".to_owned());
    let _ = writeln!(text, "**Variable: NormalMessageSize = {normal} (bytes of a document that is added)**");
    text.push_str(
        "**Variable: NumMessageRecipients = 1 (people that each message goes to; not known from the log)**\n",
    );
    text.push_str("**Variable: DiscussionDB = discussion (the shared database)**\n");
    text.push_str("**Variable: NumSharedNotes = 500 (documents in the shared database at the start)**\n");
}

fn write_step(text: &mut String, step: &RoundStep, rounds: &Rounds) {
    let chance = step.share < ALWAYS;
    let indent = if chance { "  " } else { "" };
    if chance {
        let _ = writeln!(text, "@Chance {:.4}", step.share * 100.0);
    }
    let (low, high) = step.pause;
    if high > Duration::ZERO {
        let _ = writeln!(
            text,
            "{indent}Pause {:.1}-{:.1}",
            1000.0 * low.as_secs_f64(),
            1000.0 * high.as_secs_f64()
        );
    }
    let _ = writeln!(text, "{indent}{}", command(step.action, rounds));
    if chance {
        text.push_str("@EndIf\n");
    }
}

fn command(action: Action, rounds: &Rounds) -> String {
    let sized = |action: Action| sizes(rounds, action).unwrap_or_else(|| "[NormalMessageSize]".to_owned());
    match action {
        Action::ChangeTo { own: true } => "ChangeTo MAIL".to_owned(),
        Action::ChangeTo { own: false } => "ChangeTo \"[MailServer]!![DiscussionDB]\" shared".to_owned(),
        Action::Open => "Open".to_owned(),
        Action::Entries => "Entries".to_owned(),
        Action::FindByKey => "FindByKey \"Date#20\"".to_owned(),
        Action::Navigate => "Navigate 1 NEXT|CIRCULAR".to_owned(),
        Action::Update => "Update 1".to_owned(),
        Action::Add => format!("Add 1 0 {}", sized(Action::Add)),
        Action::Delete => "Delete 1".to_owned(),
        Action::Move => "MoveToFolder 1 Moved".to_owned(),
        Action::Unread => "Unread 1".to_owned(),
        Action::GetAll => "GetAll".to_owned(),
        Action::ModifiedNotes => "DBGetModNoteInfo".to_owned(),
        Action::FolderChanges => "GetAllFolderChangesRqst".to_owned(),
        Action::SendMessage => format!("SendMessage {} [NumMessageRecipients]", sized(Action::SendMessage)),
    }
}

/// Sizes with equal weights, without what is around a body.
fn sizes(rounds: &Rounds, action: Action) -> Option<String> {
    let sizes = rounds.sizes.get(&action).filter(|sizes| !sizes.is_empty())?;
    let mut weighted: Vec<(u64, u32)> = Vec::new();
    for bytes in sizes.iter().map(|bytes| bytes.saturating_sub(AROUND_A_BODY_BYTES)) {
        match weighted.last_mut() {
            Some((last, weight)) if *last == bytes => *weight += 1,
            _ => weighted.push((bytes, 1)),
        }
    }
    if let [(bytes, _)] = weighted.as_slice() {
        return Some(bytes.to_string());
    }
    let texts: Vec<String> = weighted.iter().map(|(bytes, weight)| format!("{bytes}:{weight}")).collect();
    Some(texts.join("|"))
}
