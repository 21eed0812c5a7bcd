//! How messages, people and views are written as documents.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use scrinium_lab_script::CalendarKind;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::{FoundMessage, MessageNumber, Person, ViewLanguage};
use crate::content::{self, Form, Message, digest};

/// A message as a document of a mail database or of the mail box.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct MessageDocument<'a> {
    #[serde(rename = "_id")]
    id: &'a str,
    form: &'static str,
    from: &'a str,
    send_to: &'a [String],
    subject: &'a str,
    posted_date: Date,
    #[serde(skip_serializing_if = "Option::is_none")]
    delivered_date: Option<Date>,
    #[serde(rename = "$MessageID")]
    message_id: String,
    categories: [&'static str; 0],
    body: &'a str,
    /// Compared with the body when the document is read again.
    lab_check: String,
    /// Which message of which run it is, and the digest of what a delivery may not change.
    lab_message: String,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    calendar: Option<CalendarFields<'a>>,
    #[serde(rename = "_attachments", skip_serializing_if = "Option::is_none")]
    attachments: Option<Value>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct CalendarFields<'a> {
    chair: &'a str,
    required_attendees: &'a [String],
    /// 0 an appointment, 3 a meeting, as in Domino's calendar documents.
    appointment_type: &'static str,
    start_date_time: Date,
    end_date_time: Date,
}

/// Seconds since 1970, written as RFC 3339 in UTC.
struct Date(i64);

impl Serialize for Date {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let time = jiff::Timestamp::from_second(self.0).unwrap_or_default();
        serializer.collect_str(&format_args!("{time:.3}"))
    }
}

/// Meetings begin some days after they are planned, and last an hour.
const PLANNED_AHEAD_S: i64 = 3 * 86_400;
const MEETING_S: i64 = 3600;

impl<'a> MessageDocument<'a> {
    pub(super) fn of(message: &'a Message) -> Self {
        let calendar = match message.form {
            Form::Memo => None,
            Form::Calendar(kind) => Some(CalendarFields {
                chair: &message.from,
                required_attendees: &message.recipients,
                appointment_type: match kind {
                    CalendarKind::Appointment => "0",
                    CalendarKind::Invitation | CalendarKind::Acceptance => "3",
                },
                start_date_time: Date(message.posted + PLANNED_AHEAD_S),
                end_date_time: Date(message.posted + PLANNED_AHEAD_S + MEETING_S),
            }),
        };
        Self {
            id: &message.id,
            form: match message.form {
                Form::Memo => "Memo",
                Form::Calendar(CalendarKind::Appointment) => "Appointment",
                Form::Calendar(CalendarKind::Invitation) => "Invitation",
                Form::Calendar(CalendarKind::Acceptance) => "Acceptance",
            },
            from: &message.from,
            send_to: &message.recipients,
            subject: &message.subject,
            posted_date: Date(message.posted),
            delivered_date: message.delivered.then_some(Date(message.posted)),
            message_id: format!("<{}@lab.invalid>", message.id),
            categories: [],
            body: &message.body,
            lab_check: digest(&message.body),
            lab_message: lab_message(message),
            calendar,
            attachments: (message.attachment_bytes > 0).then(|| attachment(message.attachment_bytes)),
        }
    }
}

fn lab_message(message: &Message) -> String {
    let MessageNumber { run, sender, sequence } = message.number;
    let id = format!("<{}@lab.invalid>", message.id);
    let digest = message_digest(&message.from, &message.recipients, &id, &message.body);
    format!("{run:08x}/{sender}/{sequence}/{digest}")
}

/// Of what stays as it is from sender to recipient; a subject may be changed by who reads it.
fn message_digest(from: &str, recipients: &[impl AsRef<str>], id: &str, body: &str) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in [from, id, body].into_iter().chain(recipients.iter().map(AsRef::as_ref)) {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
    }
    hasher.finalize().to_hex().chars().take(16).collect()
}

/// Which message of the laboratory's a document in this person's mail database is; `None` if it is not one, or no
/// delivered one.
pub(super) fn message_in(fields: &Map<String, Value>, person: &str) -> Option<FoundMessage> {
    let text = |name: &str| fields.get(name).and_then(Value::as_str);
    let mut parts = text("LabMessage")?.split('/');
    let run = u32::from_str_radix(parts.next()?, 16).ok()?;
    let sender = parts.next()?.parse().ok()?;
    let sequence = parts.next()?.parse().ok()?;
    let wanted = parts.next()?;
    let recipients: Vec<&str> = fields.get("SendTo")?.as_array()?.iter().filter_map(Value::as_str).collect();
    let [from, id, body] = ["From", "$MessageID", "Body"].map(|name| text(name).unwrap_or_default());
    let digest = message_digest(from, &recipients, id, body);
    Some(FoundMessage {
        number: MessageNumber { run, sender, sequence },
        place: recipients.iter().position(|name| *name == person),
        altered: (digest != wanted).then(|| format!("the digest is {digest} and was sent as {wanted}")),
    })
}

fn attachment(bytes: usize) -> Value {
    let data = STANDARD.encode(content::attachment(bytes));
    json!({"attachment.bin": {"content_type": "application/octet-stream", "data": data}})
}

/// A person of the directory. The server keeps a hash of `password`.
pub(super) fn person(person: &Person, password: &str) -> Value {
    json!({
        "_id": person_id(person),
        "Form": "Person",
        "FullName": person.full_name,
        "ShortName": person.name,
        "MailFile": person.mail_database,
        "password": password,
    })
}

pub(super) fn person_id(person: &Person) -> String {
    format!("person:{}", person.name)
}

/// What the inbox shows, as a view or as a folder.
pub(super) fn inbox_columns() -> Value {
    json!([
        {"title": "Date", "formula": "DeliveredDate", "sort": "asc"},
        {"title": "From", "formula": "From"},
        {"title": "Subject", "formula": "Subject"},
        {"title": "Categories", "formula": "Categories"},
    ])
}

/// The design document of a mail database.
pub(super) fn mail_design(language: ViewLanguage) -> Value {
    match language {
        ViewLanguage::Formula => json!({
            "_id": "_design/mail",
            "language": "formula",
            "views": {"inbox": {
                "selection": "SELECT Form = \"Memo\" : \"Appointment\" : \"Invitation\"",
                "columns": inbox_columns(),
            }},
        }),
        ViewLanguage::Javascript => json!({
            "_id": "_design/mail",
            "language": "javascript",
            "views": {"inbox": {"map": "function (document) {\n  if ([\"Memo\", \"Appointment\", \"Invitation\"].indexOf(document.Form) >= 0) {\n    emit([document.DeliveredDate], [document.From, document.Subject, document.Categories]);\n  }\n}"}},
        }),
    }
}
