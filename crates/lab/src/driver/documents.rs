//! How messages, people and views are written as documents.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::{Person, ViewLanguage};
use crate::content::{Form, Message, digest};
use crate::script::CalendarKind;

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
            calendar,
            attachments: (message.attachment_bytes > 0).then(|| attachment(message.attachment_bytes)),
        }
    }
}

/// Bytes that repeat only after 251 of them.
fn attachment(bytes: usize) -> Value {
    let content: Vec<u8> = (0..=250).cycle().take(bytes).collect();
    json!({"attachment.bin": {"content_type": "application/octet-stream", "data": STANDARD.encode(content)}})
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
