//! Where views are, and how their pages are read.

use http::Method;
use serde_json::{Value, json};

use super::check;
use super::connection::Connection;
use super::failure::Failure;
use super::http::part;
use super::{From, Page, ViewLanguage};

/// The inbox, where it is a view.
pub(super) const INBOX_VIEW: &str = "inbox";

/// The design document of the laboratory's own views.
pub(super) const LAB_DESIGN: &str = "_design/lab";

/// `$Inbox` and `($Inbox)` are the inbox.
pub(super) fn view_name(view: &str) -> String {
    view.trim_matches(['(', ')', '$']).to_ascii_lowercase()
}

/// The path of a view, or of the folder that the inbox is.
pub(super) fn collection_path(database: &str, view: &str, inbox_is_folder: bool) -> String {
    let view = view_name(view);
    let database = part(database);
    match view.as_str() {
        INBOX_VIEW if inbox_is_folder => format!("/{database}/_folder/Inbox"),
        view if own_view(view).is_some() => format!("/{database}/{LAB_DESIGN}/_view/{view}"),
        view => format!("/{database}/_design/mail/_view/{}", part(view)),
    }
}

/// Reads a page. `from` says at which entry it begins, as far as that is known.
pub(super) async fn view_page(
    connection: &mut Connection,
    path: &str,
    count: u64,
    from: From,
) -> Result<Page, Failure> {
    let answer = connection.exchange(Method::GET, path, None).await?.expect(&[200])?;
    let position = match from {
        From::Position(u64::MAX) | From::After(_) => None,
        From::Position(position) => Some(position),
    };
    check::page(&answer, count, position)
}

/// A view that the laboratory makes where a script opens it.
pub(super) struct OwnView {
    forms: &'static [&'static str],
    /// The field that it is sorted by.
    date: &'static str,
}

/// `$All` and `Topics` by date, `$Calendar` by the time that something begins, `Invitations` by date.
pub(super) fn own_view(name: &str) -> Option<OwnView> {
    const MESSAGES: &[&str] = &["Memo", "Appointment", "Invitation", "Acceptance"];
    Some(match name {
        "all" | "topics" => OwnView { forms: MESSAGES, date: "PostedDate" },
        "calendar" => OwnView { forms: &["Appointment", "Invitation"], date: "StartDateTime" },
        "invitations" => OwnView { forms: &["Invitation"], date: "PostedDate" },
        _ => return None,
    })
}

/// The column that a view can be read by in another order.
pub(crate) fn sorted_column(number: u64) -> Option<&'static str> {
    match number {
        1 => Some("From"),
        2 => Some("Subject"),
        _ => None,
    }
}

impl OwnView {
    /// Its definition in a design document.
    pub(super) fn definition(&self, language: ViewLanguage) -> Value {
        match language {
            ViewLanguage::Formula => {
                let forms: Vec<String> = self.forms.iter().map(|form| format!("\"{form}\"")).collect();
                json!({
                    "selection": format!("SELECT Form = {}", forms.join(" : ")),
                    "columns": [
                        {"title": "Date", "formula": self.date, "sort": "asc"},
                        {"title": "From", "formula": "From", "resort": "asc"},
                        {"title": "Subject", "formula": "Subject", "resort": "asc"},
                    ],
                })
            }
            ViewLanguage::Javascript => {
                let forms = json!(self.forms);
                let map = format!(
                    "function (document) {{\n  if ({forms}.indexOf(document.Form) >= 0) {{\n    emit([document.{}], [document.From, document.Subject]);\n  }}\n}}",
                    self.date
                );
                json!({"map": map})
            }
        }
    }
}
