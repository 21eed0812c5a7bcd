//! The tag of a meeting (RFC 6638, section 3.2.10): it is another one when its organizer changes something, and stays when somebody
//! answers.

use scrinium_dav_wire::content::{Component, ContentLine};

use super::is_meeting;

/// Lines that do not count: when a program wrote it, and which one.
const ASIDE: [&str; 6] = ["DTSTAMP", "LAST-MODIFIED", "CREATED", "PRODID", "CALSCALE", "REQUEST-STATUS"];

/// Parameters that do not count: answers, and what becomes of messages.
const ASIDE_PARAMETERS: [&str; 4] = ["PARTSTAT", "RSVP", "DELEGATED-TO", "DELEGATED-FROM"];

/// The tag; nothing for what is no meeting. Programs order and fold lines as they like, which makes no other one.
pub(crate) fn schedule_tag(calendar: &Component) -> Option<String> {
    if !is_meeting(calendar) {
        return None;
    }
    let mut lines = Vec::new();
    for part in calendar.components().filter(|part| part.name() != "VTIMEZONE") {
        let instance =
            part.line("RECURRENCE-ID").map(|line| line.value().trim().to_owned()).unwrap_or_default();
        lines.extend(
            part.lines()
                .filter(|line| !ASIDE.contains(&line.name()) && !line.name().starts_with("X-"))
                .map(|line| format!("{}\n{instance}\n{}", part.name(), essence(line))),
        );
    }
    lines.sort_unstable();
    let mut hasher = blake3::Hasher::new();
    for line in lines {
        hasher.update(line.as_bytes()).update(b"\n\n");
    }
    Some(hasher.finalize().to_hex().chars().take(32).collect())
}

fn essence(line: &ContentLine) -> String {
    let counts = |name: &str| {
        !ASIDE_PARAMETERS.contains(&name) && !name.starts_with("SCHEDULE-") && !name.starts_with("X-")
    };
    let mut parameters: Vec<String> = line
        .parameters()
        .iter()
        .map(|parameter| (parameter.name.to_ascii_uppercase(), parameter.values.join(",")))
        .filter(|(name, _)| counts(name))
        .map(|(name, values)| format!("{name}={values}"))
        .collect();
    parameters.sort_unstable();
    format!("{};{}:{}", line.name(), parameters.join(";"), line.decoded_value().trim())
}

#[cfg(test)]
mod tests {
    use scrinium_dav_wire::content::ContentLimits;

    use super::*;

    fn tag(lines: &str) -> Option<String> {
        let text =
            format!("BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nUID:1\r\n{lines}END:VEVENT\r\nEND:VCALENDAR\r\n");
        schedule_tag(&Component::parse(text.as_bytes(), ContentLimits::default()).unwrap())
    }

    #[test]
    fn an_answer_leaves_the_tag_and_a_change_of_the_organizer_does_not() {
        let organizer = "ORGANIZER:mailto:ada@acme.example\r\n";
        let attendee = |answer: &str| format!("ATTENDEE{answer}:mailto:bob@acme.example\r\n");
        let first = tag(&format!(
            "SUMMARY:a\r\nDTSTAMP:1\r\n{organizer}{}",
            attendee(";PARTSTAT=NEEDS-ACTION;RSVP=TRUE")
        ));
        let answered =
            tag(&format!("{organizer}{}DTSTAMP:2\r\nSUMMARY:a\r\n", attendee(";PARTSTAT=ACCEPTED")));
        let changed =
            tag(&format!("{organizer}{}DTSTAMP:2\r\nSUMMARY:b\r\n", attendee(";PARTSTAT=ACCEPTED")));
        assert!(first.is_some());
        assert_eq!(first, answered);
        assert_ne!(first, changed);
        assert_eq!(tag("SUMMARY:alone\r\n"), None);
    }
}
