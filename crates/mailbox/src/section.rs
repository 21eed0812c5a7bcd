//! Sections (RFC 9051, section 6.4.5): which bytes of a message they are.

use scrinium_imap_wire::{Section, SectionText};

use crate::map::{MapPart, MessageMap, PartKind, Span};

/// What a section is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SectionContent {
    /// These bytes.
    Bytes(Span),
    /// Fields of the header that these bytes are, and an empty line.
    Fields(Span, Vec<String>, bool),
}

/// Where a section lies; `None` if the message has no such part.
#[must_use]
pub fn locate(map: &MessageMap, section: &Section) -> Option<SectionContent> {
    let root = map.root()?;
    let Some(text) = &section.text else {
        return Some(SectionContent::Bytes(match section.part.as_slice() {
            [] => Span { start: 0, end: map.bytes },
            path => locate_part(map, path)?.body,
        }));
    };
    if *text == SectionText::Mime {
        return locate_part(map, &section.part).map(|part| SectionContent::Bytes(part.header));
    }
    // The header and text of a message: of the whole one, or of one that a part is.
    let message = match section.part.as_slice() {
        [] => root,
        path => {
            let part = locate_part(map, path).filter(|part| part.kind == PartKind::Message)?;
            map.parts.get(*part.children.first()?)?
        }
    };
    Some(match text {
        SectionText::Text => SectionContent::Bytes(message.body),
        SectionText::HeaderFields(names, excluded) => {
            SectionContent::Fields(message.header, names.clone(), *excluded)
        }
        SectionText::Header | SectionText::Mime => SectionContent::Bytes(message.header),
    })
}

/// The part of these numbers. A message that is no multipart has one part, its body.
#[must_use]
pub fn locate_part<'a>(map: &'a MessageMap, path: &[u32]) -> Option<&'a MapPart> {
    let mut part = map.root()?;
    let mut is_message = true;
    for number in path {
        if part.kind == PartKind::Message && !is_message {
            part = map.parts.get(*part.children.first()?)?;
            is_message = true;
        }
        let index = usize::try_from(*number).ok()?.checked_sub(1)?;
        if part.kind == PartKind::Multipart {
            part = map.parts.get(*part.children.get(index)?)?;
            is_message = false;
        } else if is_message && index == 0 {
            // Its own body: another number behind it is a part of the message that it may be.
            is_message = false;
        } else {
            return None;
        }
    }
    Some(part)
}
