//! Attendees in Domino's five lists.

use scrinium_dav_wire::Parameter;
use scrinium_dav_wire::content::{Component, ContentLine};

use super::FieldError;
use crate::address::{attendees, comparable, parsed_mailbox};

/// A list of attendees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AttendeeList {
    Required,
    Optional,
    Informed,
    Room,
    Resource,
}

impl AttendeeList {
    pub(super) const ALL: [Self; 5] =
        [Self::Required, Self::Optional, Self::Informed, Self::Room, Self::Resource];

    pub(super) fn field(self) -> &'static str {
        match self {
            Self::Required => "RequiredAttendees",
            Self::Optional => "OptionalAttendees",
            Self::Informed => "FYIAttendees",
            Self::Room => "Room",
            Self::Resource => "Resources",
        }
    }

    pub(super) fn of_field(field: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|list| list.field() == field)
    }

    /// The list that a line belongs to (RFC 5545, sections 3.2.3 and 3.2.16); none for the chair.
    pub(super) fn of(line: &ContentLine) -> Option<Self> {
        let parameter = |name: &str| line.parameter(name).unwrap_or_default().to_ascii_uppercase();
        match (parameter("CUTYPE").as_str(), parameter("ROLE").as_str()) {
            ("ROOM", _) => Some(Self::Room),
            ("RESOURCE", _) => Some(Self::Resource),
            (_, "CHAIR") => None,
            (_, "OPT-PARTICIPANT") => Some(Self::Optional),
            (_, "NON-PARTICIPANT") => Some(Self::Informed),
            _ => Some(Self::Required),
        }
    }

    /// The parameters that say so.
    fn parameters(self) -> [(&'static str, Option<&'static str>); 2] {
        match self {
            Self::Required => [("CUTYPE", None), ("ROLE", Some("REQ-PARTICIPANT"))],
            Self::Optional => [("CUTYPE", None), ("ROLE", Some("OPT-PARTICIPANT"))],
            Self::Informed => [("CUTYPE", None), ("ROLE", Some("NON-PARTICIPANT"))],
            Self::Room => [("CUTYPE", Some("ROOM")), ("ROLE", Some("NON-PARTICIPANT"))],
            Self::Resource => [("CUTYPE", Some("RESOURCE")), ("ROLE", Some("NON-PARTICIPANT"))],
        }
    }
}

/// A line for somebody; an error if the text has no address.
pub(super) fn person_line(
    name: &str,
    field: &str,
    text: &str,
    more: &[(&str, Option<&str>)],
) -> Result<ContentLine, FieldError> {
    let wrong = || FieldError::NotAMailbox { field: field.to_owned(), value: text.to_owned() };
    let (common_name, address) = parsed_mailbox(text).ok_or_else(wrong)?;
    let common_name = common_name.map(|common_name| Parameter::new("CN", &common_name));
    let more = more.iter().filter_map(|(name, value)| Some(Parameter::new(name, (*value)?)));
    ContentLine::new(name, common_name.into_iter().chain(more).collect(), &format!("mailto:{address}"))
        .ok_or_else(wrong)
}

/// Makes a list these mailboxes. Who stays keeps the line, with answer and all; who comes from another list keeps it but for
/// what says the list.
pub(super) fn set_list(
    component: &mut Component,
    list: AttendeeList,
    mailboxes: &[String],
) -> Result<(), FieldError> {
    let old: Vec<ContentLine> = attendees(component).cloned().collect();
    let wanted: Vec<(String, &String)> = mailboxes
        .iter()
        .map(|mailbox| {
            (
                parsed_mailbox(mailbox).map_or_else(|| mailbox.clone(), |(_, address)| comparable(&address)),
                mailbox,
            )
        })
        .collect();
    let mut lines = Vec::new();
    for line in &old {
        let is_wanted = wanted.iter().any(|(address, _)| *address == comparable(line.value()));
        let mut line = line.clone();
        if is_wanted && AttendeeList::of(&line) != Some(list) {
            for (name, value) in list.parameters() {
                line.set_parameter(name, value);
            }
        }
        if is_wanted || AttendeeList::of(&line) != Some(list) {
            lines.push(line);
        }
    }
    for (address, mailbox) in wanted {
        if !lines.iter().any(|line| comparable(line.value()) == address) {
            let [kind, role] = list.parameters();
            let more = [kind, role, ("PARTSTAT", Some("NEEDS-ACTION")), ("RSVP", Some("TRUE"))];
            lines.push(person_line("ATTENDEE", list.field(), mailbox, &more)?);
        }
    }
    component.replace("ATTENDEE", lines);
    Ok(())
}
