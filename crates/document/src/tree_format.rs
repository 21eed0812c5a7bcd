//! A revision tree as bytes.
//!
//! Layout, version 1 (integers are LEB128). One revision takes 19 bytes.
//!
//! ```text
//! 1 byte    version = 1
//! chains    until the end: one for each leaf, the winner's first; each runs from its head towards the root
//!           until the root or a revision of an earlier chain
//!
//! chain:
//! 1 byte    flags: 1 head deleted, 2 head's body is not stored, 4 head is not a leaf,
//!           8 follows a revision of an earlier chain, 16 more than one revision,
//!           32 some digest is text, 64 some revision after the head is deleted
//! varint    generation of the head; each next revision has one less
//! varint    (flag 16) number of revisions
//! varint    (flag 8) the number, counted over all chains, of the revision that the last one follows
//! bytes     (flag 64) one bit for each revision after the head, lowest bit first: deleted
//! digests   16 bytes each; with flag 32 each preceded by a varint: 0 for 16 bytes, else the length of a text
//! ```

use std::cmp::Reverse;

use scrinium_assertion::never;

use crate::binary::{read_bytes, read_varint, write_varint};
use crate::tree::{Node, rank};
use crate::{Digest, DocumentError, Revision, RevisionTree};

const VERSION: u8 = 1;

const HEAD_DELETED: u8 = 1;
const HEAD_WITHOUT_BODY: u8 = 2;
const HEAD_NOT_LEAF: u8 = 4;
const FOLLOWS: u8 = 8;
const SEVERAL: u8 = 16;
const TEXT: u8 = 32;
const SOME_DELETED: u8 = 64;

const DIGEST_TEXT_MAX: usize = 128;

impl RevisionTree {
    /// The tree as bytes; equal trees give equal bytes, however they came about.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(2 + self.nodes.len() * 17);
        out.push(VERSION);
        // The number of each node in the output; heads in the order of their chains.
        let mut numbers: Vec<Option<u64>> = vec![None; self.nodes.len()];
        let mut next = 0;
        for head in self.heads() {
            let mut chain: Vec<&Node> = Vec::new();
            let mut at = Some(head);
            let mut follows = None;
            while let Some(index) = at {
                let (Some(node), Some(number)) = (self.nodes.get(index), numbers.get_mut(index)) else {
                    break;
                };
                if number.is_some() {
                    follows = *number;
                    break;
                }
                *number = Some(next);
                next += 1;
                chain.push(node);
                at = node.parent;
            }
            write_chain(&mut out, &chain, follows);
        }
        out
    }

    /// The nodes that no node follows: leaves as they would win, then superseded ones.
    fn heads(&self) -> Vec<usize> {
        let mut followed = vec![false; self.nodes.len()];
        for parent in self.nodes.iter().filter_map(|node| node.parent) {
            if let Some(followed) = followed.get_mut(parent) {
                *followed = true;
            }
        }
        let mut heads: Vec<(usize, &Node)> = self
            .nodes
            .iter()
            .enumerate()
            .zip(followed)
            .filter(|(_, followed)| !followed)
            .map(|(head, _)| head)
            .collect();
        heads.sort_unstable_by_key(|(_, node)| Reverse((node.leaf, rank(node))));
        heads.into_iter().map(|(index, _)| index).collect()
    }

    /// Reads what [`encode`](Self::encode) wrote.
    ///
    /// # Errors
    /// [`DocumentError::Damaged`] or [`DocumentError::NewerFormat`]; never panics, whatever the bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, DocumentError> {
        let (&version, mut rest) = bytes.split_first().ok_or_else(|| damaged("no bytes"))?;
        if version > VERSION {
            return Err(DocumentError::NewerFormat { what: "revision tree", version, newest: VERSION });
        }
        if version != VERSION {
            return Err(damaged("version"));
        }
        let mut tree = Self::new();
        while !rest.is_empty() {
            read_chain(&mut rest, &mut tree.nodes)?;
        }
        Ok(tree)
    }
}

fn write_chain(out: &mut Vec<u8>, chain: &[&Node], follows: Option<u64>) {
    let Some((head, tail)) = chain.split_first() else {
        never!("a chain of revisions has one");
        return;
    };
    let text = chain.iter().any(|node| matches!(node.revision.digest(), Digest::Text(_)));
    let some_deleted = tail.iter().any(|node| node.deleted);
    let flag = |condition: bool, flag: u8| if condition { flag } else { 0 };
    out.push(
        flag(head.deleted, HEAD_DELETED)
            | flag(!head.body, HEAD_WITHOUT_BODY)
            | flag(!head.leaf, HEAD_NOT_LEAF)
            | flag(follows.is_some(), FOLLOWS)
            | flag(!tail.is_empty(), SEVERAL)
            | flag(text, TEXT)
            | flag(some_deleted, SOME_DELETED),
    );
    write_varint(out, head.revision.generation());
    if !tail.is_empty() {
        write_varint(out, chain.len() as u64);
    }
    if let Some(follows) = follows {
        write_varint(out, follows);
    }
    if some_deleted {
        for eight in tail.chunks(8) {
            out.push(eight.iter().rev().fold(0, |bits, node| bits << 1 | u8::from(node.deleted)));
        }
    }
    for node in chain {
        match node.revision.digest() {
            Digest::Hash(_) if text => out.push(0),
            Digest::Hash(_) => {}
            Digest::Text(text) => write_varint(out, text.len() as u64),
        }
        out.extend_from_slice(node.revision.digest().as_bytes());
    }
}

fn read_chain(rest: &mut &[u8], nodes: &mut Vec<Node>) -> Result<(), DocumentError> {
    let number = |rest: &mut &[u8]| read_varint(rest).ok_or_else(|| damaged("number"));
    let flags = read_bytes(rest, 1).and_then(|bytes| bytes.first()).copied();
    let flags = flags.ok_or_else(|| damaged("flags"))?;
    let has = |flag: u8| flags & flag != 0;
    let generation = number(rest)?;
    let length = if has(SEVERAL) { number(rest)? } else { 1 };
    let oldest = generation.checked_sub(length.saturating_sub(1)).filter(|oldest| *oldest > 0);
    let oldest = oldest.filter(|_| length > u64::from(has(SEVERAL)) && flags < 128);
    let oldest = oldest.ok_or_else(|| damaged("generation"))?;
    // Every revision takes at least one byte, which bounds what the number can make us reserve.
    let length = usize::try_from(length).ok().filter(|length| *length <= rest.len());
    let length = length.ok_or_else(|| damaged("length"))?;
    let follows = if has(FOLLOWS) {
        let index = usize::try_from(number(rest)?).ok();
        let fits = |node: &Node| !node.leaf && node.revision.generation() == oldest - 1;
        Some(index.filter(|&index| nodes.get(index).is_some_and(fits)).ok_or_else(|| damaged("parent"))?)
    } else {
        None
    };
    let bits = if has(SOME_DELETED) { (length - 1).div_ceil(8) } else { 0 };
    let bits = read_bytes(rest, bits).ok_or_else(|| damaged("deleted bits"))?;
    let first = nodes.len();
    for place in 0..length {
        let digest = read_digest(rest, has(TEXT)).ok_or_else(|| damaged("digest"))?;
        let head = place == 0;
        let deleted = match place.checked_sub(1) {
            None => has(HEAD_DELETED),
            Some(bit) => bits.get(bit / 8).is_some_and(|bits| bits >> (bit % 8) & 1 == 1),
        };
        nodes.push(Node {
            revision: Revision::new(generation - place as u64, digest),
            parent: if place + 1 == length { follows } else { Some(first + place + 1) },
            leaf: head && !has(HEAD_NOT_LEAF),
            deleted,
            body: head && !has(HEAD_WITHOUT_BODY),
        });
    }
    Ok(())
}

fn read_digest(rest: &mut &[u8], text: bool) -> Option<Digest> {
    let length = if text { usize::try_from(read_varint(rest)?).ok()? } else { 0 };
    if length == 0 {
        return read_bytes(rest, 16)?.try_into().ok().map(Digest::Hash);
    }
    if length > DIGEST_TEXT_MAX {
        return None;
    }
    std::str::from_utf8(read_bytes(rest, length)?).ok().map(|text| Digest::Text(text.into()))
}

fn damaged(detail: &'static str) -> DocumentError {
    DocumentError::Damaged { what: "revision tree", detail }
}
