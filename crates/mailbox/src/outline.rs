//! What is found out about a message when its source is stored, so that nobody has to read it whole for that again: its map, and
//! where places of the form that clients get lie in the source.

use crate::builder::{MapBuilder, MapLimits};
use crate::map::MessageMap;
use crate::sent::SentDate;
use crate::stored;

/// Of a source whose lines end otherwise than those of a client's form, a place is kept each time after about this number of bytes.
const PLACES_BYTES: usize = 64 << 10;

/// A longer outline is not kept: what has thousands of parts is taken apart when somebody looks at it.
const STORED_BYTES_MAX: usize = 64 << 10;

/// A place in a message, and in its source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Place {
    pub form: u64,
    pub source: u64,
    /// Whether the byte before it is a carriage return.
    pub behind_return: bool,
}

/// What is known of a message once it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outline {
    /// Its map, in the form of clients.
    pub map: MessageMap,
    /// Where places of the client's form lie in the source, if not in the same distance from the start.
    pub places: Option<Vec<Place>>,
}

impl Outline {
    /// As it is kept; `None` for one that is too long for that.
    #[must_use]
    pub fn encode(&self) -> Option<Vec<u8>> {
        let bytes = stored::encode(self);
        (bytes.len() <= STORED_BYTES_MAX).then_some(bytes)
    }

    /// What was kept; `None` if it is of another version, or damaged.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        if bytes.len() > STORED_BYTES_MAX {
            return None;
        }
        stored::decode(bytes)
    }

    /// When the message was sent, of an outline as it is kept, for those who look at many; `None` as of [`Self::decode`].
    #[must_use]
    pub fn decode_sent(bytes: &[u8]) -> Option<Option<SentDate>> {
        stored::decode_sent(bytes)
    }
}

/// Turns a source into the form that clients get: a line feed without a carriage return before it gets one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Form {
    /// How many bytes there are so far.
    pub position: u64,
    /// Whether the last one is a carriage return.
    pub behind_return: bool,
}

impl Form {
    /// Where a place is.
    #[must_use]
    pub const fn at(place: Place) -> Self {
        Self { position: place.form, behind_return: place.behind_return }
    }

    /// Gives each byte with its position.
    pub fn each(&mut self, piece: &[u8], mut take: impl FnMut(u64, u8)) {
        for byte in piece {
            if *byte == b'\n' && !self.behind_return {
                take(self.position, b'\r');
                self.position += 1;
            }
            take(self.position, *byte);
            self.position += 1;
            self.behind_return = *byte == b'\r';
        }
    }
}

/// Reads a source while its bytes come.
#[derive(Debug)]
pub struct OutlineBuilder {
    builder: MapBuilder,
    form: Form,
    source: u64,
    places: Vec<Place>,
    is_other: bool,
    converted: Vec<u8>,
}

impl Default for OutlineBuilder {
    fn default() -> Self {
        Self {
            builder: MapBuilder::new(MapLimits::default()),
            form: Form::default(),
            source: 0,
            places: Vec::new(),
            is_other: false,
            converted: Vec::new(),
        }
    }
}

impl OutlineBuilder {
    /// Takes the next bytes of the source.
    pub fn push(&mut self, mut piece: &[u8]) {
        while !piece.is_empty() {
            let within = usize::try_from(self.source % PLACES_BYTES as u64).unwrap_or(0);
            if within == 0 {
                let Form { position, behind_return } = self.form;
                self.places.push(Place { form: position, source: self.source, behind_return });
            }
            let (part, rest) = piece.split_at(piece.len().min(PLACES_BYTES - within));
            piece = rest;
            self.source += part.len() as u64;
            self.converted.clear();
            let converted = &mut self.converted;
            self.form.each(part, |_, byte| converted.push(byte));
            self.is_other |= self.converted.len() != part.len();
            self.builder.push(&self.converted);
        }
    }

    /// Nothing follows.
    #[must_use]
    pub fn finish(self) -> Outline {
        Outline { map: self.builder.finish(), places: self.is_other.then_some(self.places) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_of_clients_has_a_carriage_return_before_each_line_feed() {
        for (source, wanted) in
            [("a\nb\r\nc\r\r\n\n", "a\r\nb\r\nc\r\r\n\r\n"), ("", ""), ("\n", "\r\n"), ("\r", "\r")]
        {
            for cut in 0..=source.len() {
                let mut form = Form::default();
                let mut found = Vec::new();
                let (one, other) = source.as_bytes().split_at(cut);
                for piece in [one, other] {
                    form.each(piece, |position, byte| {
                        assert_eq!(position, found.len() as u64);
                        found.push(byte);
                    });
                }
                assert_eq!(found, wanted.as_bytes(), "{source:?}");
            }
        }
    }
}
