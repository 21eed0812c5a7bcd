//! Documents become a segment.

use crate::document::{DocumentText, FieldValue, Readers, SortKey};
use crate::fold::widened;
use crate::format::{FieldId, TermKind, kind_code, push_number, push_part};
use crate::language::LanguageSet;
use crate::lexicon::{Lexicon, TermNumber, WordTerms};
use crate::postings::{BlockWriter, PLACES_MAX, push_places};
use crate::words::{Word, WordKind, each_word};
use crate::{AnalysisOptions, Language, Segment, number};

/// Places between two values of a field, so that no phrase goes over their border.
const GAP: u32 = 100;
/// A term that has no place here.
const NOWHERE: u32 = u32::MAX;
/// Documents of a segment.
pub(crate) const DOCUMENTS_MAX: usize = 1 << 16;

/// A term in a document.
#[derive(Clone, Copy, Debug)]
struct Token {
    term: TermNumber,
    place: u32,
}

#[derive(Debug)]
struct DocumentEntry {
    id: String,
    words: u32,
    columns: Vec<(FieldId, SortKey)>,
    tokens_end: usize,
}

/// Makes a [`Segment`] of documents: analyses, sorts, packs. It needs no store, and several may work at once.
#[derive(Default)]
pub struct SegmentBuilder {
    options: AnalysisOptions,
    lexicon: Lexicon,
    tokens: Vec<Token>,
    documents: Vec<DocumentEntry>,
    languages: LanguageSet,
    restricted: u32,
}

impl std::fmt::Debug for SegmentBuilder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("SegmentBuilder")
            .field("documents", &self.documents.len())
            .finish_non_exhaustive()
    }
}

impl SegmentBuilder {
    /// A builder without documents.
    #[must_use]
    pub fn new(options: AnalysisOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// Adds a document; one that is added later is newer. The time it takes goes with its text alone.
    pub fn add(&mut self, document: &DocumentText<'_>) {
        let detected = self.language_of(document);
        if let Some(language) = detected {
            self.languages.add(language);
        }
        self.readers(&document.readers);
        let mut places: Vec<(FieldId, u32)> = Vec::new();
        let (mut words, mut columns) = (0, Vec::new());
        for field in &document.fields {
            let id = field.id();
            let any = self.lexicon.term(id, TermKind::Any, &[]);
            self.tokens.push(Token { term: any, place: NOWHERE });
            if let Some(key) = field.sort_key() {
                columns.retain(|(other, _)| *other != id);
                columns.push((id, key));
            }
            match &field.value {
                FieldValue::Text(text) => {
                    let first = places.iter().find(|(other, _)| *other == id).map_or(0, |(_, next)| *next);
                    let left = self.options.words_max.saturating_sub(words);
                    let next = self.text(id, detected, text, (first, left));
                    words = words.saturating_add(next - first);
                    places.retain(|(other, _)| *other != id);
                    places.push((id, next.saturating_add(GAP)));
                }
                FieldValue::Exact(text) => self.exact(id, text),
                FieldValue::Number(number) => self.number(id, *number),
            }
        }
        let tokens_end = self.tokens.len();
        self.documents.push(DocumentEntry { id: document.id.to_owned(), words, columns, tokens_end });
    }

    /// The document's own language, or that of its longest text.
    fn language_of(&self, document: &DocumentText<'_>) -> Option<Language> {
        let texts = document.fields.iter().filter_map(|field| match field.value {
            FieldValue::Text(text) => Some(text),
            _ => None,
        });
        document.language.or_else(|| self.options.language.of(texts.max_by_key(|text| text.len())?))
    }

    fn readers(&mut self, readers: &Readers<'_>) {
        match readers {
            Readers::Everybody => {
                let term = self.lexicon.term(FieldId::READERS, TermKind::Any, &[]);
                self.tokens.push(Token { term, place: NOWHERE });
            }
            Readers::Names(names) => {
                self.restricted += 1;
                for name in names {
                    self.exact(FieldId::READERS, name);
                }
            }
        }
    }

    fn exact(&mut self, field: FieldId, text: &str) {
        let term = self.lexicon.term(field, TermKind::Exact, text.as_bytes());
        self.tokens.push(Token { term, place: NOWHERE });
    }

    fn number(&mut self, field: FieldId, number: f64) {
        let ordered = number::ordered(number);
        for shift in number::SHIFTS {
            let term = self.lexicon.term(field, number::kind(shift), &number::term(ordered, shift));
            self.tokens.push(Token { term, place: NOWHERE });
        }
    }

    /// Adds the words of a text, of which the first has place `first`, and at most `left` of them; returns the next place.
    fn text(
        &mut self,
        field: FieldId,
        language: Option<Language>,
        text: &str,
        (first, left): (u32, u32),
    ) -> u32 {
        let at = self.lexicon.field(field, language);
        let (lexicon, tokens) = (&mut self.lexicon, &mut self.tokens);
        let last = first.saturating_add(left);
        let next = each_word(&widened(text), first, &mut |word: Word<'_>| {
            if word.position >= last {
                return false;
            }
            let has_stem = word.kind == WordKind::Plain;
            if let Some(WordTerms { written, stem }) = lexicon.word(at, word.text, has_stem) {
                tokens.push(Token { term: written, place: word.position });
                if let Some(stem) = stem {
                    tokens.push(Token { term: stem, place: NOWHERE });
                }
            }
            true
        });
        next.clamp(first, last)
    }

    /// Number of documents.
    #[must_use]
    pub fn len(&self) -> usize {
        self.documents.len()
    }

    /// Whether there is no document.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.documents.is_empty()
    }

    /// Whether it should be finished: it takes about `memory_bytes`, or has as many documents as a segment may have.
    #[must_use]
    pub fn is_full(&self, memory_bytes: usize) -> bool {
        self.bytes() >= memory_bytes || self.documents.len() >= DOCUMENTS_MAX
    }

    /// Memory in bytes, about, with what finishing takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        const OF_DOCUMENT: usize = 120;
        const OF_TOKEN: usize = 2 * size_of::<Token>() + 4;
        self.lexicon.bytes() + self.tokens.len() * OF_TOKEN + self.documents.len() * OF_DOCUMENT
    }

    /// The segment of all that was added. The builder can be used again.
    pub fn finish(&mut self) -> Segment {
        let mut bytes = Vec::with_capacity(self.tokens.len() * 4 + 64);
        let words = self.documents.iter().map(|document| u64::from(document.words)).sum();
        push_number(&mut bytes, self.documents.len() as u64);
        bytes.extend_from_slice(&self.languages.0.to_le_bytes());
        for document in self.documents.iter().rev() {
            push_document(document, &mut bytes);
        }
        self.push_terms(&mut bytes);
        let documents = u32::try_from(self.documents.len()).unwrap_or(u32::MAX);
        let segment = Segment { bytes, documents, words, restricted: self.restricted };
        self.lexicon.clear();
        self.tokens.clear();
        self.documents.clear();
        (self.languages, self.restricted) = (LanguageSet::default(), 0);
        segment
    }

    /// The tokens of each term together, by address and place, and where those of each term end.
    fn sorted_tokens(&self) -> (Vec<(u32, u32)>, Vec<u32>) {
        let mut ends = vec![0_u32; self.lexicon.len()];
        for token in &self.tokens {
            if let Some(count) = ends.get_mut(token.term as usize) {
                *count += 1;
            }
        }
        let mut before = 0;
        for end in &mut ends {
            // Where the term's tokens begin; filling moves it to their end.
            (*end, before) = (before, before + *end);
        }
        let mut sorted = vec![(0, 0); self.tokens.len()];
        let mut tokens_end = self.tokens.len();
        for (address, at) in (0..).zip((0..self.documents.len()).rev()) {
            let start =
                at.checked_sub(1).and_then(|at| self.documents.get(at)).map_or(0, |before| before.tokens_end);
            for token in self.tokens.get(start..tokens_end).unwrap_or_default() {
                let Some(end) = ends.get_mut(token.term as usize) else { continue };
                if let Some(place) = sorted.get_mut(*end as usize) {
                    *place = (address, token.place);
                }
                *end += 1;
            }
            tokens_end = start;
        }
        (sorted, ends)
    }

    fn push_terms(&self, bytes: &mut Vec<u8>) {
        let (sorted, ends) = self.sorted_tokens();
        let mut terms: Vec<TermNumber> = (0..u32::try_from(self.lexicon.len()).unwrap_or(u32::MAX)).collect();
        terms.sort_unstable_by_key(|term| self.lexicon.key(*term));
        let mut writer = TermWriter::default();
        let mut entries = Vec::with_capacity(sorted.len() * 3);
        let mut offsets: Vec<u8> = Vec::with_capacity(terms.len() * 4);
        for term in &terms {
            let at = *term as usize;
            let start = at.checked_sub(1).and_then(|before| ends.get(before)).copied().unwrap_or_default();
            let end = ends.get(at).copied().unwrap_or_default();
            let tokens = sorted.get(start as usize..end as usize).unwrap_or_default();
            offsets.extend_from_slice(&u32::try_from(entries.len()).unwrap_or(u32::MAX).to_le_bytes());
            writer.push(self.lexicon.key(*term), tokens, &mut entries);
        }
        push_number(bytes, terms.len() as u64);
        bytes.extend_from_slice(&offsets);
        bytes.extend_from_slice(&entries);
    }
}

fn push_document(document: &DocumentEntry, bytes: &mut Vec<u8>) {
    push_part(bytes, document.id.as_bytes());
    push_number(bytes, u64::from(document.words));
    push_number(bytes, document.columns.len() as u64);
    for (field, key) in &document.columns {
        bytes.extend_from_slice(&field.bytes());
        push_sort_key(bytes, key);
    }
}

pub(crate) fn push_sort_key(bytes: &mut Vec<u8>, key: &SortKey) {
    match key {
        SortKey::Number(number) => {
            bytes.push(0);
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        SortKey::Text(text) => {
            bytes.push(1);
            push_part(bytes, text);
        }
    }
}

/// Packs the tokens of a term into its entry in a segment.
#[derive(Default)]
struct TermWriter {
    block: BlockWriter,
    places: Vec<u8>,
    gaps: Vec<u8>,
    value: Vec<u8>,
}

impl TermWriter {
    /// `tokens`: local addresses and places.
    fn push(&mut self, term: &[u8], mut tokens: &[(u32, u32)], entries: &mut Vec<u8>) {
        let details = TermKind::details(kind_code(term));
        push_part(entries, term);
        while let Some((address, _)) = tokens.first().copied() {
            let count = tokens.iter().take_while(|(other, _)| *other == address).count();
            let (of_document, rest) = tokens.split_at_checked(count).unwrap_or((tokens, &[]));
            tokens = rest;
            let frequency = u32::try_from(count).unwrap_or(u32::MAX);
            self.places.clear();
            if details.1 {
                push_places(of_document.iter().take(PLACES_MAX).map(|(_, place)| *place), &mut self.places);
            }
            self.block.push(address, frequency, &self.places);
            if self.block.is_full() || tokens.is_empty() {
                push_number(entries, u64::from(self.block.last().unwrap_or_default()) + 1);
                self.value.clear();
                self.block.finish(details, &mut self.gaps, &mut self.value);
                push_part(entries, &self.value);
            }
        }
        // No block has this address and more.
        push_number(entries, 0);
    }
}
