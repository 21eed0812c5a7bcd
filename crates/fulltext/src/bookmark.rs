//! Where a page of results ended, as a text that clients hand back.
//!
//! ```text
//! bookmark = base64url of: 01, digest of query and order (4), parts, address (4)
//! part     = 00 number (8) | 01 text | 02 text, descending | 03 nothing
//! ```

use std::cmp::Reverse;

use data_encoding::BASE64URL_NOPAD;
use xxhash_rust::xxh3::xxh3_64;

use crate::format::{Address, Bytes, push_number, push_part};

const VERSION: u8 = 1;
const LONGEST: usize = 4096;

/// A document's place in the order of results: the best comes first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    pub(crate) parts: Vec<Part>,
    pub(crate) address: Address,
}

/// What a document is sorted by. A descending number is its complement.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    Number(u64),
    Text(Box<[u8]>),
    TextDescending(Reverse<Box<[u8]>>),
    Missing,
}

/// A number for a query and its order.
pub(crate) fn digest(search: &str) -> u32 {
    u32::try_from(xxh3_64(search.as_bytes()) >> 32).unwrap_or_default()
}

pub(crate) fn encode(rank: &Rank, digest: u32) -> String {
    let mut bytes = vec![VERSION];
    bytes.extend_from_slice(&digest.to_le_bytes());
    push_number(&mut bytes, rank.parts.len() as u64);
    for part in &rank.parts {
        match part {
            Part::Number(number) => {
                bytes.push(0);
                bytes.extend_from_slice(&number.to_le_bytes());
            }
            Part::Text(text) => {
                bytes.push(1);
                push_part(&mut bytes, text);
            }
            Part::TextDescending(Reverse(text)) => {
                bytes.push(2);
                push_part(&mut bytes, text);
            }
            Part::Missing => bytes.push(3),
        }
    }
    bytes.extend_from_slice(&rank.address.to_le_bytes());
    BASE64URL_NOPAD.encode(&bytes)
}

/// `None`: it is no bookmark of this search, which has this number of parts.
pub(crate) fn decode(text: &str, digest: u32, parts: usize) -> Option<Rank> {
    if text.len() > LONGEST {
        return None;
    }
    let bytes = BASE64URL_NOPAD.decode(text.as_bytes()).ok()?;
    let mut bytes = Bytes(&bytes);
    let begins = (bytes.byte()?, bytes.fixed().map(u32::from_le_bytes)?, bytes.size()?);
    if begins != (VERSION, digest, parts) {
        return None;
    }
    let mut read = Vec::new();
    for _ in 0..parts {
        read.push(match bytes.byte()? {
            0 => Part::Number(u64::from_le_bytes(bytes.fixed()?)),
            1 => Part::Text(bytes.part()?.into()),
            2 => Part::TextDescending(Reverse(bytes.part()?.into())),
            3 => Part::Missing,
            _ => return None,
        });
    }
    let address = Address::from_le_bytes(bytes.fixed()?);
    bytes.0.is_empty().then_some(Rank { parts: read, address })
}
