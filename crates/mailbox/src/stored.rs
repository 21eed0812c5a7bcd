//! An outline as bytes. It is derived: what cannot be read is made once more.

use scrinium_imap_wire::{Address, Envelope};

use crate::decode::TransferEncoding;
use crate::map::{MapPart, MessageMap, PartKind, Span};
use crate::media::MediaValue;
use crate::outline::{Outline, Place};
use crate::part::PartHeader;
use crate::sent::SentDate;

/// Another version is not read. It changes with what the builder makes of a message, too.
const VERSION: u8 = 1;

const KINDS: [PartKind; 3] = [PartKind::Single, PartKind::Multipart, PartKind::Message];
const ENCODINGS: [TransferEncoding; 4] = [
    TransferEncoding::Identity,
    TransferEncoding::Base64,
    TransferEncoding::QuotedPrintable,
    TransferEncoding::Unknown,
];

pub(crate) fn encode(outline: &Outline) -> Vec<u8> {
    let Outline { map, places } = outline;
    let MessageMap { bytes, parts, preview, sent, references } = map;
    let mut out = Writer(vec![VERSION]);
    out.number(*bytes);
    out.option(sent.as_ref(), |out, sent| {
        out.signed(sent.utc_seconds);
        out.signed(sent.local_day);
    });
    out.option(preview.as_ref(), |out, preview| out.bytes(preview.as_bytes()));
    out.list(references, |out, reference| out.bytes(reference.as_bytes()));
    out.list(parts, Writer::part);
    out.option(places.as_ref(), |out, places| {
        out.list(places, |out, place| {
            out.number(place.form);
            out.number(place.source);
            out.number(u64::from(place.behind_return));
        });
    });
    out.0
}

pub(crate) fn decode(bytes: &[u8]) -> Option<Outline> {
    let mut input = Reader(bytes);
    if input.byte()? != VERSION {
        return None;
    }
    let bytes = input.number()?;
    let sent = input.option(Reader::sent)?;
    let preview = input.option(Reader::text)?;
    let references = input.list(Reader::text)?;
    let parts = input.list(Reader::part)?;
    let places = input.option(|input| {
        input.list(|input| {
            Some(Place {
                form: input.number()?,
                source: input.number()?,
                behind_return: input.number()? == 1,
            })
        })
    })?;
    let is_whole = input.0.is_empty() && is_tree(&parts);
    is_whole.then_some(Outline { map: MessageMap { bytes, parts, preview, sent, references }, places })
}

/// When a message was sent, without the rest of its outline.
pub(crate) fn decode_sent(bytes: &[u8]) -> Option<Option<SentDate>> {
    let mut input = Reader(bytes);
    if input.byte()? != VERSION {
        return None;
    }
    input.number()?;
    input.option(Reader::sent)
}

/// Whether each part is below one that stands before it, and below one alone: so nobody goes in circles.
fn is_tree(parts: &[MapPart]) -> bool {
    let mut has_parent = vec![false; parts.len()];
    let children = parts
        .iter()
        .enumerate()
        .flat_map(|(place, part)| part.children.iter().map(move |child| (place, *child)));
    for (place, child) in children {
        match has_parent.get_mut(child) {
            Some(found) if child > place && !*found => *found = true,
            _ => return false,
        }
    }
    true
}

struct Writer(Vec<u8>);

impl Writer {
    /// Seven bits a byte, the lowest first.
    fn number(&mut self, mut number: u64) {
        let seven = |number: u64| u8::try_from(number & 0x7f).unwrap_or(0);
        while number >= 0x80 {
            self.0.push(seven(number) | 0x80);
            number >>= 7;
        }
        self.0.push(seven(number));
    }

    /// Small numbers of either sign are short.
    fn signed(&mut self, number: i64) {
        self.number((number.wrapping_shl(1) ^ (number >> 63)).cast_unsigned());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn option<T>(&mut self, value: Option<&T>, write: impl FnOnce(&mut Self, &T)) {
        self.0.push(u8::from(value.is_some()));
        if let Some(value) = value {
            write(self, value);
        }
    }

    fn text(&mut self, text: Option<&Vec<u8>>) {
        self.option(text, |out, text| out.bytes(text));
    }

    fn list<T>(&mut self, all: &[T], mut write: impl FnMut(&mut Self, &T)) {
        self.number(all.len() as u64);
        for one in all {
            write(self, one);
        }
    }

    fn span(&mut self, span: Span) {
        self.number(span.start);
        self.number(span.bytes());
    }

    fn choice<T: PartialEq>(&mut self, all: &[T], one: &T) {
        let place = all.iter().position(|other| other == one);
        self.number(place.unwrap_or(all.len()) as u64);
    }

    fn part(&mut self, part: &MapPart) {
        let MapPart { kind, header, body, lines, children, encoding, decoded_bytes, fields, envelope } = part;
        self.choice(&KINDS, kind);
        self.span(*header);
        self.span(*body);
        self.number(*lines);
        self.list(children, |out, child| out.number(*child as u64));
        self.choice(&ENCODINGS, encoding);
        self.number(*decoded_bytes);
        self.fields(fields);
        self.option(envelope.as_deref(), Self::envelope);
    }

    fn fields(&mut self, fields: &PartHeader) {
        self.option(fields.content_type.as_ref(), Self::media);
        for text in [&fields.encoding, &fields.id, &fields.description, &fields.md5] {
            self.text(text.as_ref());
        }
        self.option(fields.disposition.as_ref(), Self::media);
        self.list(&fields.languages, |out, language| out.bytes(language));
        self.text(fields.location.as_ref());
    }

    fn media(&mut self, media: &MediaValue) {
        self.bytes(&media.value);
        self.bytes(&media.subtype);
        self.list(&media.parameters, |out, (name, value)| {
            out.bytes(name);
            out.bytes(value);
        });
    }

    fn envelope(&mut self, envelope: &Envelope) {
        let Envelope { date, subject, from, sender, reply_to, to, cc, bcc, in_reply_to, message_id } =
            envelope;
        for text in [date, subject, in_reply_to, message_id] {
            self.text(text.as_ref());
        }
        for list in [from, sender, reply_to, to, cc, bcc] {
            self.list(list, |out, address| {
                for text in [&address.name, &address.route, &address.mailbox, &address.host] {
                    out.text(text.as_ref());
                }
            });
        }
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f).checked_shl(shift)?;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn place(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok()
    }

    fn signed(&mut self) -> Option<i64> {
        let number = self.number()?;
        Some((number >> 1).cast_signed() ^ (number & 1).cast_signed().wrapping_neg())
    }

    fn bytes(&mut self) -> Option<Vec<u8>> {
        let count = self.place()?;
        let (bytes, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(bytes.to_vec())
    }

    fn text(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?).ok()
    }

    fn option<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        match self.byte()? {
            0 => Some(None),
            1 => Some(Some(read(self)?)),
            _ => None,
        }
    }

    fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.place()?;
        // Each takes a byte at least, so that no number makes room for what is not there.
        let mut all = Vec::with_capacity(count.min(self.0.len()).min(64));
        for _ in 0..count {
            all.push(read(self)?);
        }
        Some(all)
    }

    fn sent(&mut self) -> Option<SentDate> {
        Some(SentDate { utc_seconds: self.signed()?, local_day: self.signed()? })
    }

    fn span(&mut self) -> Option<Span> {
        let (start, bytes) = (self.number()?, self.number()?);
        Some(Span { start, end: start.checked_add(bytes)? })
    }

    fn choice<T: Copy>(&mut self, all: &[T]) -> Option<T> {
        let place = self.place()?;
        all.get(place).copied()
    }

    fn part(&mut self) -> Option<MapPart> {
        Some(MapPart {
            kind: self.choice(&KINDS)?,
            header: self.span()?,
            body: self.span()?,
            lines: self.number()?,
            children: self.list(Self::place)?,
            encoding: self.choice(&ENCODINGS)?,
            decoded_bytes: self.number()?,
            fields: self.fields()?,
            envelope: self.option(Self::envelope)?.map(Box::new),
        })
    }

    fn fields(&mut self) -> Option<PartHeader> {
        Some(PartHeader {
            content_type: self.option(Self::media)?,
            encoding: self.option(Self::bytes)?,
            id: self.option(Self::bytes)?,
            description: self.option(Self::bytes)?,
            md5: self.option(Self::bytes)?,
            disposition: self.option(Self::media)?,
            languages: self.list(Self::bytes)?,
            location: self.option(Self::bytes)?,
        })
    }

    fn media(&mut self) -> Option<MediaValue> {
        Some(MediaValue {
            value: self.bytes()?,
            subtype: self.bytes()?,
            parameters: self.list(|input| Some((input.bytes()?, input.bytes()?)))?,
        })
    }

    fn envelope(&mut self) -> Option<Envelope> {
        let date = self.option(Self::bytes)?;
        let subject = self.option(Self::bytes)?;
        let in_reply_to = self.option(Self::bytes)?;
        let message_id = self.option(Self::bytes)?;
        let mut list = || self.list(Self::address);
        Some(Envelope {
            date,
            subject,
            in_reply_to,
            message_id,
            from: list()?,
            sender: list()?,
            reply_to: list()?,
            to: list()?,
            cc: list()?,
            bcc: list()?,
        })
    }

    fn address(&mut self) -> Option<Address> {
        Some(Address {
            name: self.option(Self::bytes)?,
            route: self.option(Self::bytes)?,
            mailbox: self.option(Self::bytes)?,
            host: self.option(Self::bytes)?,
        })
    }
}
