//! The header as a script sees it: unfolded, decoded, and with the changes that the script has made.

use std::borrow::Cow;

use crate::action::HeaderEdit;
use crate::limits::Limits;
use crate::message::Message;

type Bytes<'a> = Cow<'a, [u8]>;

/// Where a field of the present header comes from.
#[derive(Clone, Debug)]
enum Origin {
    /// From the message, by its number there.
    Message(usize),
    Added {
        name: String,
        value: String,
    },
}

#[derive(Clone)]
pub(crate) struct Fields<'a> {
    message: &'a dyn Message,
    /// The header since its first change; before that it is the message's.
    changed: Option<Vec<Origin>>,
    fields_max: usize,
    field_bytes: usize,
}

impl<'a> Fields<'a> {
    /// With the usual limits.
    pub(crate) fn of(message: &'a dyn Message) -> Self {
        Self::new(message, &Limits::default())
    }

    pub(crate) fn new(message: &'a dyn Message, limits: &Limits) -> Self {
        Self { message, changed: None, fields_max: limits.header_fields, field_bytes: limits.field_bytes }
    }

    /// Name and raw value of a field.
    fn field(&self, index: usize) -> Option<(Bytes<'_>, Bytes<'_>)> {
        let of_message = |index: usize| {
            let field = self.message.field(index)?;
            let value = field.value.get(..self.field_bytes).unwrap_or(field.value);
            Some((Cow::Borrowed(field.name), Cow::Borrowed(value)))
        };
        match &self.changed {
            None if index < self.fields_max => of_message(index),
            None => None,
            Some(changed) => match changed.get(index)? {
                Origin::Message(index) => of_message(*index),
                Origin::Added { name, value } => {
                    Some((Cow::Borrowed(name.as_bytes()), Cow::Borrowed(value.as_bytes())))
                }
            },
        }
    }

    /// How many fields there are.
    pub(crate) fn count(&self) -> usize {
        match &self.changed {
            Some(changed) => changed.len(),
            None => (0..self.fields_max).take_while(|index| self.message.field(*index).is_some()).count(),
        }
    }

    /// The numbers of the fields of a name, from the top.
    pub(crate) fn places(&self, name: &str) -> Vec<usize> {
        let mut places = Vec::new();
        let mut index = 0;
        while let Some((found, _)) = self.field(index) {
            if found.trim_ascii_end().eq_ignore_ascii_case(name.as_bytes()) {
                places.push(index);
            }
            index += 1;
        }
        places
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        !self.places(name).is_empty()
    }

    /// A value without folds and the blanks around it (RFC 5228, section 2.4.2.2), its encoded words as they are.
    pub(crate) fn raw_value(&self, index: usize) -> String {
        self.field(index)
            .map_or_else(String::new, |(_, value)| String::from_utf8_lossy(&unfolded(&value)).into_owned())
    }

    /// The same with encoded words decoded (RFC 5228, section 2.7.2).
    pub(crate) fn value(&self, index: usize) -> String {
        let text = self.field(index).map(|(_, value)| self.message.decode(&unfolded(&value)));
        text.map_or_else(String::new, |text| text.trim().to_owned())
    }

    pub(crate) fn values(&self, name: &str) -> Vec<String> {
        self.places(name).into_iter().map(|place| self.value(place)).collect()
    }

    pub(crate) fn raw_values(&self, name: &str) -> Vec<String> {
        self.places(name).into_iter().map(|place| self.raw_value(place)).collect()
    }

    /// Makes a change.
    pub(crate) fn edit(&mut self, edit: &HeaderEdit) {
        let count = self.count();
        let changed = self.changed.get_or_insert_with(|| (0..count).map(Origin::Message).collect());
        match edit {
            HeaderEdit::Add { name, value, last } => {
                let place = if *last { changed.len() } else { 0 };
                changed.insert(place, Origin::Added { name: name.clone(), value: value.clone() });
            }
            HeaderEdit::Delete { index } if *index < changed.len() => {
                changed.remove(*index);
            }
            HeaderEdit::Delete { .. } => {}
        }
    }
}

/// Line ends go, the blanks behind them stay (RFC 5322, section 2.2.3).
fn unfolded(value: &[u8]) -> Vec<u8> {
    value
        .iter()
        .copied()
        .filter(|byte| !matches!(byte, b'\r' | b'\n'))
        .collect::<Vec<u8>>()
        .trim_ascii()
        .to_vec()
}

/// A digest of texts, none of which can run into the next.
pub(crate) fn digest(parts: &[&str]) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize().to_hex().to_string()
}
