//! BODY and BODYSTRUCTURE (RFC 9051, section 7.5.2), always whole: clients show messages wrongly where a piece is missing.

use scrinium_imap_wire::{BodyStructure, Disposition, PartBasics, PartExtension, SinglePart};

use crate::envelope::{sendable, sendable_text};
use crate::map::{MapPart, MessageMap, PartKind};
use crate::media::MediaValue;
use crate::part::PartHeader;

/// Builders bound the depth; this is for maps that somebody else has made.
const DEPTH_MAX: usize = 64;

#[derive(Clone, Copy)]
struct Style {
    is_extended: bool,
    utf8: bool,
}

pub(crate) fn structure(map: &MessageMap, is_extended: bool, utf8: bool) -> BodyStructure {
    part(map, map.root(), Style { is_extended, utf8 }, 0)
}

fn part(map: &MessageMap, part: Option<&MapPart>, style: Style, depth: usize) -> BodyStructure {
    let Some(part) = part.filter(|_| depth < DEPTH_MAX) else { return empty_text(style) };
    match part.kind {
        PartKind::Multipart => multipart(map, part, style, depth),
        PartKind::Single | PartKind::Message => single(map, part, style, depth),
    }
}

fn multipart(map: &MessageMap, multi: &MapPart, style: Style, depth: usize) -> BodyStructure {
    let child = |place: &usize| part(map, map.parts.get(*place), style, depth + 1);
    let mut children: Vec<BodyStructure> = multi.children.iter().map(child).collect();
    if children.is_empty() {
        children.push(empty_text(style));
    }
    let media = multi.fields.content_type.clone().unwrap_or_default();
    let extension = style.is_extended.then(|| (parameters(&media, style), extension(&multi.fields, style)));
    BodyStructure::Multipart(children, sendable_text(&media.subtype, style.utf8), extension)
}

fn single(map: &MessageMap, single: &MapPart, style: Style, depth: usize) -> BodyStructure {
    let fields = &single.fields;
    let text = |text: &Option<Vec<u8>>| text.as_ref().map(|text| sendable_text(text, style.utf8));
    let inner = single.children.first().and_then(|child| map.parts.get(*child));
    let is_message = single.kind == PartKind::Message && inner.is_some();
    let media = fields.content_type.clone().unwrap_or_default();
    let is_leaf_of_its_type =
        !media.value.eq_ignore_ascii_case(b"multipart") && (is_message || !is_message_type(fields));
    let (media_type, subtype) = if media.value.is_empty() {
        (b"text".to_vec(), b"plain".to_vec())
    } else if is_leaf_of_its_type {
        (sendable_text(&media.value, style.utf8), sendable_text(&media.subtype, style.utf8))
    } else {
        // Beyond the limits of depth and number nothing is taken apart.
        (b"application".to_vec(), b"octet-stream".to_vec())
    };
    let is_text = media_type.eq_ignore_ascii_case(b"text");
    let mut parameters = parameters(&media, style);
    if is_text && media.parameter("charset").is_none() && media.parameter("charset*").is_none() {
        // RFC 2045, section 5.2.
        parameters.push((b"charset".to_vec(), b"us-ascii".to_vec()));
    }
    let kind = match inner {
        Some(inner) if is_message => {
            let envelope = inner.envelope.as_deref().map(|envelope| sendable(envelope, style.utf8));
            let body = part(map, Some(inner), style, depth + 1);
            SinglePart::Message(Box::new((envelope.unwrap_or_default(), body)), single.lines)
        }
        _ if is_text => SinglePart::Text(single.lines),
        _ => SinglePart::Other,
    };
    let encoding = fields.encoding.as_deref().unwrap_or(b"7bit");
    let basics = PartBasics {
        media_type,
        subtype,
        parameters,
        id: text(&fields.id),
        description: text(&fields.description),
        encoding: sendable_text(encoding, style.utf8),
        octets: single.body.bytes(),
    };
    let extension = style.is_extended.then(|| (text(&fields.md5), extension(fields, style)));
    BodyStructure::Single(basics, kind, extension)
}

pub(crate) fn is_message_type(fields: &PartHeader) -> bool {
    fields.is("message", "rfc822") || fields.is("message", "global")
}

/// A multipart without parts has one: every client expects it.
fn empty_text(style: Style) -> BodyStructure {
    let basics = PartBasics {
        media_type: b"text".to_vec(),
        subtype: b"plain".to_vec(),
        parameters: vec![(b"charset".to_vec(), b"us-ascii".to_vec())],
        encoding: b"7bit".to_vec(),
        ..PartBasics::default()
    };
    let extension = style.is_extended.then(|| (None, PartExtension::default()));
    BodyStructure::Single(basics, SinglePart::Text(0), extension)
}

fn parameters(media: &MediaValue, style: Style) -> Vec<(Vec<u8>, Vec<u8>)> {
    let one = |(name, value): &(Vec<u8>, Vec<u8>)| {
        (sendable_text(name, style.utf8), sendable_text(value, style.utf8))
    };
    media.parameters.iter().map(one).collect()
}

fn extension(fields: &PartHeader, style: Style) -> PartExtension {
    let disposition = fields.disposition.as_ref().map(|found| Disposition {
        kind: sendable_text(&found.value, style.utf8),
        parameters: parameters(found, style),
    });
    PartExtension {
        disposition,
        languages: fields.languages.iter().map(|language| sendable_text(language, style.utf8)).collect(),
        location: fields.location.as_ref().map(|location| sendable_text(location, style.utf8)),
    }
}
