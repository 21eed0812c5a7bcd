//! Documents packed for an index: what is said of each, and the blocks of their terms.
//!
//! ```text
//! segment  = documents, languages (8, little endian), documents × document, terms, terms × offset (4), terms × entry
//! document = id, words, columns × (field (6), sort key)          the newest first
//! sort key = 00 number (8) | 01 text
//! entry    = term, (last address + 1, block)*, 00                 ordered by term
//! ```
//!
//! Addresses count from 0, which is the newest document. Texts and blocks have their length before them.

use crate::document::SortKey;
use crate::format::{Bytes, FIELD_BYTES, FieldId};
use crate::language::LanguageSet;

/// Documents that were analysed and packed by a [`SegmentBuilder`](crate::SegmentBuilder).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    pub(crate) bytes: Vec<u8>,
    pub(crate) documents: u32,
    pub(crate) words: u64,
    pub(crate) restricted: u32,
}

impl Segment {
    /// Number of documents.
    #[must_use]
    pub fn len(&self) -> usize {
        self.documents as usize
    }

    /// Whether there is no document.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.documents == 0
    }

    /// Its size in bytes.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        self.bytes.len()
    }
}

/// Where a segment's parts lie.
#[derive(Clone, Debug)]
pub(crate) struct SegmentParts {
    pub(crate) documents: u32,
    languages: LanguageSet,
    documents_at: usize,
    /// Where each document begins, so that one is read without those before it.
    document_starts: Vec<usize>,
    documents_end: usize,
    offsets_at: usize,
    entries_at: usize,
}

impl SegmentParts {
    /// `None`: they are damaged.
    pub(crate) fn read(whole: &[u8]) -> Option<Self> {
        let mut bytes = Bytes(whole);
        let place = |bytes: Bytes<'_>| whole.len() - bytes.0.len();
        let documents = bytes.number()?;
        let languages = LanguageSet(u64::from_le_bytes(bytes.fixed()?));
        let documents_at = place(bytes);
        // A damaged number of documents may be any, so that no room is made for it.
        let mut document_starts = Vec::new();
        for _ in 0..documents {
            document_starts.push(place(bytes));
            skip_document(&mut bytes)?;
        }
        let documents_end = place(bytes);
        let terms = bytes.size()?;
        let offsets_at = place(bytes);
        bytes.take(terms.checked_mul(4)?)?;
        let entries_at = place(bytes);
        Some(Self {
            documents,
            languages,
            documents_at,
            document_starts,
            documents_end,
            offsets_at,
            entries_at,
        })
    }

    /// Document number `at` of the segment that they were read from.
    pub(crate) fn document<'b>(&self, whole: &'b [u8], at: usize) -> Option<DocumentView<'b>> {
        let start = *self.document_starts.get(at)?;
        read_document(&mut Bytes(whole.get(start..)?))
    }

    /// The parts of the segment that they were read from.
    pub(crate) fn view<'b>(&self, whole: &'b [u8]) -> SegmentView<'b> {
        SegmentView {
            documents: self.documents,
            languages: self.languages,
            of_documents: whole.get(self.documents_at..self.documents_end).unwrap_or_default(),
            offsets: whole.get(self.offsets_at..self.entries_at).unwrap_or_default(),
            entries: whole.get(self.entries_at..).unwrap_or_default(),
        }
    }
}

/// A segment's parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SegmentView<'b> {
    pub(crate) documents: u32,
    pub(crate) languages: LanguageSet,
    /// The documents as they are stored.
    pub(crate) of_documents: &'b [u8],
    offsets: &'b [u8],
    entries: &'b [u8],
}

/// A document of a segment.
#[derive(Clone, Debug)]
pub(crate) struct DocumentView<'b> {
    pub(crate) id: &'b str,
    pub(crate) words: u32,
    pub(crate) columns: Vec<(FieldId, SortKey)>,
}

/// A term of a segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryView<'b> {
    pub(crate) term: &'b [u8],
    blocks: Bytes<'b>,
}

impl<'b> SegmentView<'b> {
    /// The documents, the newest first.
    pub(crate) fn documents(&self) -> impl Iterator<Item = DocumentView<'b>> + use<'b> {
        let (mut bytes, count) = (Bytes(self.of_documents), self.documents);
        (0..count).map_while(move |_| read_document(&mut bytes))
    }

    pub(crate) fn terms(&self) -> usize {
        self.offsets.len() / 4
    }

    /// Term number `at`. `None` at the end, or if it is damaged.
    pub(crate) fn entry(&self, at: usize) -> Option<EntryView<'b>> {
        let offset = self.offsets.get(at.checked_mul(4)?..)?.first_chunk::<4>()?;
        let mut bytes = Bytes(self.entries.get(u32::from_le_bytes(*offset) as usize..)?);
        let term = bytes.part()?;
        Some(EntryView { term, blocks: bytes })
    }

    /// The number of the first term that is not before `term`.
    pub(crate) fn first_from(&self, term: &[u8]) -> usize {
        let (mut low, mut high) = (0, self.terms());
        while low < high {
            let middle = usize::midpoint(low, high);
            match self.entry(middle) {
                Some(entry) if entry.term < term => low = middle + 1,
                _ => high = middle,
            }
        }
        low
    }

    pub(crate) fn find(&self, term: &[u8]) -> Option<EntryView<'b>> {
        self.entry(self.first_from(term)).filter(|entry| entry.term == term)
    }
}

impl<'b> EntryView<'b> {
    /// The blocks of the term: the last address in it, and the block. An error ends them; it is seen by who reads the block.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = (u32, &'b [u8])> + use<'b> {
        let mut bytes = self.blocks;
        std::iter::from_fn(move || {
            let last = bytes.number()?.checked_sub(1)?;
            Some((last, bytes.part().unwrap_or_default()))
        })
    }
}

fn read_document<'b>(bytes: &mut Bytes<'b>) -> Option<DocumentView<'b>> {
    let id = std::str::from_utf8(bytes.part()?).ok()?;
    let words = bytes.number()?;
    let count = bytes.size()?;
    let mut columns = Vec::new();
    for _ in 0..count {
        let field = FieldId::from_bytes(bytes.take(FIELD_BYTES)?)?;
        columns.push((field, read_sort_key(bytes)?));
    }
    Some(DocumentView { id, words, columns })
}

pub(crate) fn read_sort_key(bytes: &mut Bytes<'_>) -> Option<SortKey> {
    match bytes.byte()? {
        0 => Some(SortKey::Number(u64::from_le_bytes(bytes.fixed()?))),
        1 => Some(SortKey::Text(bytes.part()?.into())),
        _ => None,
    }
}

fn skip_document(bytes: &mut Bytes<'_>) -> Option<()> {
    bytes.part()?;
    bytes.number()?;
    for _ in 0..bytes.size()? {
        bytes.take(FIELD_BYTES)?;
        match bytes.byte()? {
            0 => bytes.take(8)?,
            1 => bytes.part()?,
            _ => return None,
        };
    }
    Some(())
}
