//! Scheduling by mail (RFC 6047): what the parts of a message are, and what people read in it, in their language.

use scrinium_dav_wire::content::{Component, ContentLine};
use scrinium_dav_wire::value::unescape_text;

use crate::address::{attendee, mailbox};
use crate::civil::CivilTime;
use crate::event::Event;
use crate::itip::{Message, Method};
use crate::time::TimeKind;
use crate::zone::{Instant, Zone, ZoneNames};

/// Instances that one text lists.
const LISTED_MAX: usize = 20;
/// Characters of a description.
const DESCRIPTION_MAX: usize = 4_000;

/// The language of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Language {
    #[default]
    English,
    German,
}

impl Language {
    /// By a language tag: `de-AT`. What is not known is English.
    #[must_use]
    pub fn of_tag(tag: &str) -> Self {
        let primary = tag.split(['-', '_']).next().unwrap_or_default();
        if primary.eq_ignore_ascii_case("de") { Self::German } else { Self::English }
    }
}

/// A part of a mail. Writers of mail encode it in base64, since lines of calendars may be longer than mail's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailPart {
    /// With parameters: `text/calendar; method=REQUEST; charset=utf-8; component=VEVENT`.
    pub content_type: String,
    /// For attachments.
    pub file_name: Option<&'static str>,
    /// The bytes.
    pub content: Vec<u8>,
}

/// A mail: `mixed { alternative { … }, attachment }`. Outlook takes a calendar outside of the alternative for an attachment, and
/// other programs look for nothing but a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchedulingMail {
    /// Subject.
    pub subject: String,
    /// Plain text and calendar, the richest last.
    pub alternatives: Vec<MailPart>,
    /// `invite.ics`.
    pub attachment: MailPart,
    /// Fields to be added: Auto-Submitted (RFC 3834).
    pub fields: [(&'static str, &'static str); 1],
}

impl SchedulingMail {
    /// The mail of a message, in the language and zone of who gets it.
    #[must_use]
    pub fn new(message: &Message, language: Language, zone: &Zone) -> Self {
        let bytes = message.calendar.to_bytes();
        let component = parts(&message.calendar).next().map_or("VEVENT", Component::name).to_owned();
        let name = message.method.name();
        let (subject, text) = texts(message, language, zone);
        let calendar = format!("text/calendar; method={name}; charset=utf-8; component={component}");
        Self {
            subject,
            alternatives: vec![
                MailPart {
                    content_type: "text/plain; charset=utf-8".to_owned(),
                    file_name: None,
                    content: text.into_bytes(),
                },
                MailPart { content_type: calendar, file_name: None, content: bytes.clone() },
            ],
            attachment: MailPart {
                content_type: "application/ics; name=\"invite.ics\"".to_owned(),
                file_name: Some("invite.ics"),
                content: bytes,
            },
            fields: [("Auto-Submitted", "auto-generated")],
        }
    }
}

fn parts(calendar: &Component) -> impl Iterator<Item = &Component> {
    calendar.components().filter(|part| matches!(part.name(), "VEVENT" | "VTODO" | "VJOURNAL" | "VFREEBUSY"))
}

/// Words of a language.
struct Words {
    answers: [(&'static str, &'static str); 4],
    responded: &'static str,
    prefixes: [(Method, &'static str); 8],
    updated: &'static str,
    untitled: &'static str,
    when: &'static str,
    place: &'static str,
    organizer: &'static str,
    repeats: &'static str,
    instance: &'static str,
    all_day: &'static str,
    more: &'static str,
}

const ENGLISH: Words = Words {
    answers: [
        ("ACCEPTED", "Accepted"),
        ("DECLINED", "Declined"),
        ("TENTATIVE", "Tentatively accepted"),
        ("DELEGATED", "Delegated"),
    ],
    responded: "Answered",
    prefixes: [
        (Method::Publish, "Event"),
        (Method::Request, "Invitation"),
        (Method::Reply, "Answer"),
        (Method::Add, "Added"),
        (Method::Cancel, "Cancelled"),
        (Method::Refresh, "Please send again"),
        (Method::Counter, "New time proposed"),
        (Method::DeclineCounter, "Proposal declined"),
    ],
    updated: "Updated",
    untitled: "(no title)",
    when: "When",
    place: "Where",
    organizer: "Organizer",
    repeats: "Repeats",
    instance: "This date only",
    all_day: "all day",
    more: "and others",
};

const GERMAN: Words = Words {
    answers: [
        ("ACCEPTED", "Zugesagt"),
        ("DECLINED", "Abgesagt"),
        ("TENTATIVE", "Mit Vorbehalt zugesagt"),
        ("DELEGATED", "Weitergegeben"),
    ],
    responded: "Beantwortet",
    prefixes: [
        (Method::Publish, "Termin"),
        (Method::Request, "Einladung"),
        (Method::Reply, "Antwort"),
        (Method::Add, "Hinzugefügt"),
        (Method::Cancel, "Fällt aus"),
        (Method::Refresh, "Bitte noch einmal senden"),
        (Method::Counter, "Neue Zeit vorgeschlagen"),
        (Method::DeclineCounter, "Vorschlag abgelehnt"),
    ],
    updated: "Geändert",
    untitled: "(ohne Titel)",
    when: "Wann",
    place: "Wo",
    organizer: "Veranstalter",
    repeats: "Wiederholt sich",
    instance: "Nur dieser Termin",
    all_day: "ganztägig",
    more: "und weitere",
};

fn words(language: Language) -> &'static Words {
    match language {
        Language::English => &ENGLISH,
        Language::German => &GERMAN,
    }
}

/// Subject and plain text.
fn texts(message: &Message, language: Language, zone: &Zone) -> (String, String) {
    let words = words(language);
    let first = parts(&message.calendar).next();
    let title = first
        .and_then(|part| part.line("SUMMARY"))
        .map(|line| one_line(&unescape_text(&line.decoded_value())));
    let title = title.filter(|title| !title.is_empty()).unwrap_or_else(|| words.untitled.to_owned());
    let heading = heading(message, first, words);
    let mut lines = vec![title.clone(), String::new()];
    if message.method == Method::Reply {
        lines
            .extend(answering(first, message).map(|line| format!("{heading}: {}", one_line(&mailbox(line)))));
    } else {
        lines.push(heading.clone());
    }
    let mut zones = ZoneNames::new(&message.calendar, zone.clone());
    for (place, part) in parts(&message.calendar).enumerate() {
        if place == LISTED_MAX {
            lines.push(words.more.to_owned());
            break;
        }
        lines.extend(times(part, words, language, zone, &mut zones));
    }
    let text_of =
        |name: &str| first.and_then(|part| part.line(name)).map(|line| unescape_text(&line.decoded_value()));
    lines.extend(text_of("LOCATION").map(|place| format!("{}: {}", words.place, one_line(&place))));
    let organizer = first.and_then(|part| part.line("ORGANIZER"));
    lines.extend(organizer.map(|line| format!("{}: {}", words.organizer, one_line(&mailbox(line)))));
    for name in ["COMMENT", "DESCRIPTION"] {
        if let Some(text) = text_of(name).filter(|text| !text.trim().is_empty()) {
            lines.push(String::new());
            lines.push(text.chars().take(DESCRIPTION_MAX).collect());
        }
    }
    (format!("{heading}: {title}"), lines.join("\n") + "\n")
}

fn answering<'a>(part: Option<&'a Component>, message: &Message) -> Option<&'a ContentLine> {
    attendee(part?, &[&message.from])
}

fn heading(message: &Message, part: Option<&Component>, words: &'static Words) -> String {
    let is_update = part.is_some_and(|part| crate::event::sequence(part) > 0);
    match message.method {
        Method::Reply => {
            let answer =
                answering(part, message).and_then(|line| line.parameter("PARTSTAT")).unwrap_or_default();
            let known = words.answers.iter().find(|(name, _)| name.eq_ignore_ascii_case(answer));
            known.map_or(words.responded, |(_, word)| *word).to_owned()
        }
        Method::Request if is_update => words.updated.to_owned(),
        method => {
            let known = words.prefixes.iter().find(|(known, _)| *known == method);
            known.map_or(words.updated, |(_, word)| *word).to_owned()
        }
    }
}

/// When a part is.
fn times(
    part: &Component,
    words: &Words,
    language: Language,
    zone: &Zone,
    zones: &mut ZoneNames<'_>,
) -> Vec<String> {
    let event = Event::read(0, part, zones);
    let Some(start) = &event.start else { return Vec::new() };
    let end = event.extent.end_key(start);
    let text = match start.kind() {
        TimeKind::Day => {
            let last = CivilTime(end - 1).max(start.civil());
            let days = if last.day() > start.civil().day() {
                format!("{} – {}", date(start.civil(), language), date(last, language))
            } else {
                date(start.civil(), language)
            };
            format!("{days}, {}", words.all_day)
        }
        TimeKind::Floating => span(start.civil(), CivilTime(end), language),
        TimeKind::Zoned(_) => {
            let civil = |instant| zone.civil_of(instant);
            let span = span(civil(start.instant(zone)), civil(Instant(end)), language);
            format!("{span} ({})", zone.name())
        }
    };
    let mut lines = vec![format!("{}: {text}", words.when)];
    if part.line("RRULE").is_some() || part.line("RDATE").is_some() {
        lines.push(words.repeats.to_owned());
    }
    if part.line("RECURRENCE-ID").is_some() {
        lines.push(words.instance.to_owned());
    }
    lines
}

fn span(start: CivilTime, end: CivilTime, language: Language) -> String {
    let from = format!("{}, {}", date(start, language), clock(start));
    match (end > start, end.day() == start.day()) {
        (false, _) => from,
        (true, true) => format!("{from} – {}", clock(end)),
        (true, false) => format!("{from} – {}, {}", date(end, language), clock(end)),
    }
}

fn clock(time: CivilTime) -> String {
    let second = time.second_of_day();
    format!("{:02}:{:02}", second / 3_600, second / 60 % 60)
}

/// `Monday, 5 January 2026`, `Montag, 5. Januar 2026`.
fn date(time: CivilTime, language: Language) -> String {
    let (year, month, day) = time.date();
    let (days, months) = match language {
        Language::English => (
            ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"],
            [
                "January",
                "February",
                "March",
                "April",
                "May",
                "June",
                "July",
                "August",
                "September",
                "October",
                "November",
                "December",
            ],
        ),
        Language::German => (
            ["Montag", "Dienstag", "Mittwoch", "Donnerstag", "Freitag", "Samstag", "Sonntag"],
            [
                "Januar",
                "Februar",
                "März",
                "April",
                "Mai",
                "Juni",
                "Juli",
                "August",
                "September",
                "Oktober",
                "November",
                "Dezember",
            ],
        ),
    };
    let weekday = days.get(usize::from(crate::civil::weekday_of(time.day()))).copied().unwrap_or_default();
    let month = months.get(usize::from(month.saturating_sub(1))).copied().unwrap_or_default();
    match language {
        Language::English => format!("{weekday}, {day} {month} {year}"),
        Language::German => format!("{weekday}, {day}. {month} {year}"),
    }
}

/// What somebody else wrote, without line ends and other control characters: it becomes part of a header.
fn one_line(text: &str) -> String {
    let text: String = text.chars().map(|one| if one.is_control() { ' ' } else { one }).take(500).collect();
    text.trim().to_owned()
}

/// Whether a part of a mail is a calendar, as programs write its type.
#[must_use]
pub fn is_calendar_type(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    matches!(
        essence.as_str(),
        "text/calendar" | "application/ics" | "text/x-vcalendar" | "application/calendar"
    )
}
