//! Protocol Buffers' bytes, as far as etcd's messages have them: numbers, bytes and messages, written in the order of calls and
//! read field by field. What is read shares the memory of the message; how deep it goes is the reader's own choice.

use bytes::{Buf, BufMut, Bytes, BytesMut};

const NUMBER: u64 = 0;
const EIGHT_BYTES: u64 = 1;
const LENGTH: u64 = 2;
const FOUR_BYTES: u64 = 5;

/// A message that is being written.
#[derive(Debug, Default)]
pub(super) struct Writer(BytesMut);

impl Writer {
    /// A number. 0 is what a field without a value means, and is left out.
    pub(super) fn number(&mut self, field: u64, number: u64) {
        if number != 0 {
            self.chosen_number(field, number);
        }
    }

    /// A number that also says, by being there, which of several fields was chosen.
    pub(super) fn chosen_number(&mut self, field: u64, number: u64) {
        self.varint((field << 3) | NUMBER);
        self.varint(number);
    }

    pub(super) fn bytes(&mut self, field: u64, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.varint((field << 3) | LENGTH);
            self.varint(bytes.len() as u64);
            self.0.put_slice(bytes);
        }
    }

    pub(super) fn message(&mut self, field: u64, write: impl FnOnce(&mut Self)) {
        let mut inner = Self::default();
        write(&mut inner);
        self.varint((field << 3) | LENGTH);
        self.varint(inner.0.len() as u64);
        self.0.unsplit(inner.0);
    }

    pub(super) fn finish(self) -> Bytes {
        self.0.freeze()
    }

    fn varint(&mut self, mut number: u64) {
        loop {
            let [low, ..] = number.to_le_bytes();
            number >>= 7;
            if number == 0 {
                return self.0.put_u8(low & 0x7f);
            }
            self.0.put_u8(low | 0x80);
        }
    }
}

/// What a field holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Number(u64),
    Bytes(Bytes),
    /// A kind that no field which is used has.
    Other,
}

impl Value {
    pub(super) fn number(self) -> Result<u64, &'static str> {
        if let Self::Number(number) = self { Ok(number) } else { Err("a field is no number") }
    }

    pub(super) fn bytes(self) -> Result<Bytes, &'static str> {
        if let Self::Bytes(bytes) = self { Ok(bytes) } else { Err("a field is neither bytes nor a message") }
    }

    pub(super) fn text(self) -> Result<String, &'static str> {
        let bytes = self.bytes()?;
        std::str::from_utf8(&bytes).map(str::to_owned).map_err(|_| "a text is not UTF-8")
    }
}

/// The fields of a message, one after the other, with their numbers. It ends after an error.
pub(super) fn fields(message: Bytes) -> impl Iterator<Item = Result<(u64, Value), &'static str>> {
    let mut rest = message;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let read = field(&mut rest);
        if read.is_err() {
            rest.clear();
        }
        Some(read)
    })
}

fn field(rest: &mut Bytes) -> Result<(u64, Value), &'static str> {
    let key = varint(rest)?;
    let value = match key & 7 {
        NUMBER => Value::Number(varint(rest)?),
        LENGTH => {
            let length = usize::try_from(varint(rest)?).ok().filter(|length| *length <= rest.len());
            Value::Bytes(rest.split_to(length.ok_or("a field is longer than its message")?))
        }
        EIGHT_BYTES => skip(rest, 8)?,
        FOUR_BYTES => skip(rest, 4)?,
        _ => return Err("a field has a kind that there is not"),
    };
    Ok((key >> 3, value))
}

fn skip(rest: &mut Bytes, length: usize) -> Result<Value, &'static str> {
    if rest.len() < length {
        return Err("a field is longer than its message");
    }
    rest.advance(length);
    Ok(Value::Other)
}

fn varint(rest: &mut Bytes) -> Result<u64, &'static str> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let byte = rest.try_get_u8().map_err(|_| "a message ends within a number")?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err("a number is longer than numbers are")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            wanted in proptest::collection::vec((1_u64..200, any::<u64>(), proptest::collection::vec(any::<u8>(), 1..300)), 0..6),
        ) {
            let mut writer = Writer::default();
            for (number, value, bytes) in &wanted {
                writer.chosen_number(*number, *value);
                writer.bytes(*number, bytes);
                writer.message(*number, |inner| inner.bytes(*number, bytes));
            }
            let read: Vec<(u64, Value)> = fields(writer.finish()).map(Result::unwrap).collect();
            prop_assert_eq!(read.len(), 3 * wanted.len());
            for (read, (number, value, bytes)) in read.chunks(3).zip(wanted) {
                prop_assert_eq!(&read[0], &(number, Value::Number(value)));
                prop_assert_eq!(&read[1], &(number, Value::Bytes(bytes.clone().into())));
                let inner = fields(read[2].1.clone().bytes().unwrap()).next().unwrap().unwrap();
                prop_assert_eq!(inner, (number, Value::Bytes(bytes.into())));
            }
        }

        #[test]
        fn bytes_of_anybody_end(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let length = bytes.len();
            let read: Vec<_> = fields(bytes.into()).collect();
            prop_assert!(read.len() <= length);
            prop_assert!(read.iter().rev().skip(1).all(Result::is_ok));
        }
    }
}
