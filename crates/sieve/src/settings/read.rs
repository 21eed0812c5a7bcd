//! Settings read from a script. What is found here may be wrong; the caller makes a script of it again and compares.

use super::{Absence, CalendarDay, Forwarding, MoveRule, RULE, RuleCondition, RuleField, Settings};
use crate::limits::Limits;
use crate::syntax::{self, Argument, Command, Test, Text, Value};

/// What a rule looks at that names this field alone.
pub(super) fn field_of(name: &str) -> RuleField {
    match name {
        "from" => RuleField::Sender,
        "subject" => RuleField::Subject,
        other => RuleField::Other(other.to_owned()),
    }
}

pub(super) fn settings(script: &str, limits: &Limits) -> Option<Settings> {
    let mut settings = Settings::default();
    for command in syntax::parse(script.as_bytes(), limits).ok()? {
        let Command { head, block } = &command;
        match (head.name.as_str(), block.as_deref()) {
            ("require" | "stop", None) => {}
            ("vacation", None) => settings.absence = Some(absence(head)?),
            ("redirect", None) => {
                let keeps_copy = tag_at(&head.arguments, 0) == Some("copy");
                let forwarding = Forwarding { addresses: Vec::new(), keeps_copy };
                let forwarding = settings.forwarding.get_or_insert(forwarding);
                forwarding.addresses.push(text(head.arguments.last()?)?.to_owned());
            }
            ("if", Some([vacation])) => settings.absence = Some(dated_absence(head, vacation)?),
            ("if", Some([fileinto, _stop])) => settings.rules.push(rule(head, fileinto, script)?),
            _ => return None,
        }
    }
    Some(settings)
}

fn tag_at(arguments: &[Argument], place: usize) -> Option<&str> {
    match &arguments.get(place)?.value {
        Value::Tag(name) => Some(name),
        _ => None,
    }
}

fn text(argument: &Argument) -> Option<&str> {
    match &argument.value {
        Value::Text(text) => Some(&text.text),
        _ => None,
    }
}

fn texts(argument: &Argument) -> Option<&[Text]> {
    match &argument.value {
        Value::Text(text) => Some(std::slice::from_ref(text)),
        Value::List(texts) => Some(texts),
        _ => None,
    }
}

fn absence(vacation: &Test) -> Option<Absence> {
    let (last, arguments) = vacation.arguments.split_last()?;
    let mut found = Absence {
        first_day: None,
        last_day: None,
        subject: None,
        text: text(last)?.replace("\r\n", "\n"),
        days: 0,
        addresses: Vec::new(),
    };
    for pair in arguments.chunks(2) {
        let [tag, argument] = pair else { return None };
        match &tag.value {
            Value::Tag(name) if name == "days" => {
                let Value::Number(days) = argument.value else { return None };
                found.days = u32::try_from(days).ok()?;
            }
            Value::Tag(name) if name == "subject" => found.subject = Some(text(argument)?.to_owned()),
            Value::Tag(name) if name == "addresses" => {
                found.addresses = texts(argument)?.iter().map(|text| text.text.clone()).collect();
            }
            _ => return None,
        }
    }
    Some(found)
}

fn dated_absence(head: &Test, vacation: &Command) -> Option<Absence> {
    let mut found = absence(&vacation.head)?;
    for test in &head.tests.first()?.tests {
        let [_, relation, _, day] = test.arguments.as_slice() else { return None };
        let day = CalendarDay::parse(text(day)?)?;
        match text(relation)? {
            "ge" => found.first_day = Some(day),
            "le" => found.last_day = Some(day),
            _ => return None,
        }
    }
    Some(found)
}

fn rule(head: &Test, fileinto: &Command, script: &str) -> Option<MoveRule> {
    let test = head.tests.first()?;
    // Its name stands in the line before it, which is no part of a string: a command begins behind it.
    let line = usize::try_from(head.position.line).ok()?;
    let name = script.split('\n').nth(line.checked_sub(2)?)?.strip_prefix(RULE)?;
    let conditions: Option<Vec<RuleCondition>> = test.tests.iter().map(condition).collect();
    Some(MoveRule {
        name: name.to_owned(),
        needs_all: test.name == "allof",
        conditions: conditions?,
        mailbox: text(fileinto.head.arguments.last()?)?.to_owned(),
    })
}

fn condition(test: &Test) -> Option<RuleCondition> {
    let [kind, field, wanted] = test.arguments.as_slice() else { return None };
    let field = match &field.value {
        Value::List(_) => RuleField::Recipients,
        Value::Text(name) => field_of(&name.text),
        _ => return None,
    };
    let is_whole = matches!(&kind.value, Value::Tag(name) if name == "is");
    Some(RuleCondition { field, is_whole, text: text(wanted)?.to_owned() })
}
