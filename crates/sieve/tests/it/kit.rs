//! Scripts run over messages, and what they came to in one line for each action.

use scrinium_sieve::{Action, Delivery, Host, Limits, NoHost, Script, ScriptOutcome, Target};

use crate::message::TestMessage;

/// 2026-11-26, 03:30:13 UTC, a Thursday.
pub(crate) const NOW: i64 = 1_795_663_813;

pub(crate) const ENVIRONMENT: [(&str, &str); 3] =
    [("name", "Scrinium"), ("domain", "example.org"), ("remote-ip", "192.0.2.7")];

pub(crate) fn delivery<'a>() -> Delivery<'a> {
    Delivery {
        sender: "ada@example.net",
        recipient: "bob+sales@example.org",
        own_addresses: &["bob@example.org"],
        now_seconds: NOW,
        zone_seconds: 3_600,
        environment: &ENVIRONMENT,
        separator: '+',
    }
}

pub(crate) fn compile(script: &str) -> Script {
    Script::compile(script.as_bytes(), &Limits::default()).unwrap_or_else(|error| panic!("{error}\n{script}"))
}

pub(crate) fn outcome(
    script: &str,
    message: &str,
    delivery: &Delivery<'_>,
    host: &dyn Host,
) -> ScriptOutcome {
    compile(script).run(&TestMessage::new(message), delivery, host, &Limits::default())
}

pub(crate) fn run(script: &str, message: &str) -> ScriptOutcome {
    outcome(script, message, &delivery(), &NoHost)
}

/// Actions in one line.
pub(crate) fn actions(script: &str, message: &str) -> String {
    shown(&run(script, message))
}

pub(crate) fn shown(outcome: &ScriptOutcome) -> String {
    if let Some(error) = &outcome.error {
        assert_eq!(
            outcome.actions,
            [Action::Keep { flags: Vec::new(), edits: 0, is_implicit: true }],
            "a run that fails keeps the message"
        );
        return format!("error {error}");
    }
    if outcome.actions.is_empty() {
        return "discard".to_owned();
    }
    outcome.actions.iter().map(action).collect::<Vec<_>>().join("; ")
}

fn flags(flags: &[String]) -> String {
    if flags.is_empty() { String::new() } else { format!(" [{}]", flags.join(" ")) }
}

fn target(target: &Target) -> String {
    let mut shown = format!("{}{}", target.mailbox, flags(&target.flags));
    if target.create {
        shown.push_str(" create");
    }
    if let Some(special_use) = &target.special_use {
        shown.push_str(&format!(" use={special_use}"));
    }
    if let Some(id) = &target.mailbox_id {
        shown.push_str(&format!(" id={id}"));
    }
    shown
}

fn action(action: &Action) -> String {
    match action {
        Action::Keep { flags: given, is_implicit, .. } => {
            format!("{}{}", if *is_implicit { "implicit" } else { "keep" }, flags(given))
        }
        Action::FileInto { target: into, .. } => format!("fileinto {}", target(into)),
        Action::Redirect { address, .. } => format!("redirect {address}"),
        Action::Reject { kind, reason } => format!("{kind:?} {}", reason.trim_end()).to_lowercase(),
        Action::Vacation(reply) => format!("vacation {} {}", reply.period_seconds, reply.subject),
        Action::Notify(notification) => format!(
            "notify {} {} {}",
            notification.to.join(","),
            notification.importance,
            notification.subject
        ),
    }
}

/// Whether a test is true of a message; `require` is written for it.
pub(crate) fn holds(require: &str, test: &str, message: &str) -> bool {
    let require = if require.is_empty() { String::new() } else { format!("require [{require}]; ") };
    let script = format!("{require}if {test} {{ discard; }}");
    match actions(&script, message).as_str() {
        "discard" => true,
        "implicit" => false,
        other => panic!("{other}: {script}"),
    }
}
