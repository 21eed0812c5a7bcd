//! What filters change of a message.

use scrinium_mail_filters::milter::Change;
use scrinium_sender_authentication::Head;

use super::{FilterAddress, FilteredMessage};

/// A reason is no longer.
const REASON_MAX_CHARACTERS: usize = 200;

/// Changes a message. Why it is to be put aside, if it is.
pub(super) fn apply(
    message: &mut FilteredMessage,
    changes: Vec<Change>,
    filter: &FilterAddress,
) -> Option<String> {
    if changes.is_empty() {
        return None;
    }
    let mut aside = None;
    let mut fields: Vec<Vec<u8>> =
        Head::parse(&message.head).fields.iter().map(|field| field.raw.to_vec()).collect();
    for change in changes {
        match change {
            Change::AddField { name, value } => fields.push(field(&name, &value)),
            Change::InsertField { index, name, value } => {
                let place = usize::try_from(index).unwrap_or(usize::MAX).min(fields.len());
                fields.insert(place, field(&name, &value));
            }
            Change::ChangeField { index, name, value } => change_field(&mut fields, (index, &name), value),
            Change::Body(body) => message.body = Some(body.into()),
            Change::Quarantine(reason) => {
                tracing::info!(%filter, reason, "a filter puts a message aside");
                let plain = reason.chars().filter(|c| !c.is_control()).take(REASON_MAX_CHARACTERS);
                aside = Some(plain.collect());
            }
            // Whom a message is for was settled with the client.
            Change::AddRecipient(_) | Change::RemoveRecipient(_) | Change::ChangeSender(_) => {
                tracing::warn!(%filter, "a filter wants another sender or other recipients, which is not done");
            }
        }
    }
    message.head = fields.concat();
    aside
}

/// Changes the field with this number of those with this name, or removes it. One that is not there is added.
fn change_field(fields: &mut Vec<Vec<u8>>, (index, name): (u32, &str), value: Option<Vec<u8>>) {
    let is_named = |raw: &[u8]| Head::parse(raw).fields.first().is_some_and(|field| field.is_named(name));
    let number = usize::try_from(index).unwrap_or(usize::MAX).saturating_sub(1);
    let place =
        fields.iter().enumerate().filter(|(_, raw)| is_named(raw)).map(|(place, _)| place).nth(number);
    match (place, value) {
        (Some(place), Some(value)) => {
            if let Some(raw) = fields.get_mut(place) {
                *raw = field(name, &value);
            }
        }
        (Some(place), None) => drop(fields.remove(place)),
        (None, Some(value)) => fields.push(field(name, &value)),
        (None, None) => {}
    }
}

/// A whole field. A filter that has asked for it says itself what stands behind the colon.
fn field(name: &str, value: &[u8]) -> Vec<u8> {
    let space: &[u8] = if matches!(value.first(), Some(b' ' | b'\t')) { b"" } else { b" " };
    [name.as_bytes(), b":", space, value, b"\r\n"].concat()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use scrinium_mail::MessageSource;

    use super::*;

    #[test]
    fn fields_are_added_changed_and_removed_where_the_filter_says() {
        let mut message = FilteredMessage {
            head: b"A: 1\r\nB: 2\r\n folded\r\nb: 3\r\n".to_vec(),
            source: MessageSource::from(bytes::Bytes::new()),
            head_end: 0,
            body: None,
        };
        let text = |text: &str| text.as_bytes().to_vec();
        let name = |name: &str| name.to_owned();
        let changes = vec![
            Change::AddField { name: name("End"), value: text("e\r\n\tf") },
            Change::InsertField { index: 0, name: name("Top"), value: text("\tt") },
            Change::InsertField { index: 900, name: name("Far"), value: text("x") },
            Change::ChangeField { index: 2, name: name("B"), value: Some(text("three")) },
            Change::ChangeField { index: 1, name: name("b"), value: None },
            Change::ChangeField { index: 7, name: name("A"), value: Some(text("new")) },
            Change::ChangeField { index: 7, name: name("C"), value: None },
            Change::AddRecipient(text("<a@b.example>")),
            Change::Quarantine(name("spam")),
        ];
        let filter = FilterAddress::parse("127.0.0.1:1").unwrap();
        assert_eq!(apply(&mut message, changes, &filter).as_deref(), Some("spam"));
        let expected = "Top:\tt\r\nA: 1\r\nB: three\r\nEnd: e\r\n\tf\r\nFar: x\r\nA: new\r\n";
        assert_eq!(String::from_utf8(message.head).unwrap(), expected);
    }
}
