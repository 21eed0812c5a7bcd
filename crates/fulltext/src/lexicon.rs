//! The words that a builder has met, each with the terms that it stands for.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};

use frostem::Stemmer;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::Language;
use crate::fold::{fold_into, lower_into};
use crate::format::{FieldId, TermKind};
use crate::forms::stem_of;

/// A term's number within a builder.
pub(crate) type TermNumber = u32;

/// The terms of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WordTerms {
    pub(crate) written: TermNumber,
    pub(crate) stem: Option<TermNumber>,
}

/// Hashes strings of strangers: a seed keeps them from choosing collisions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeededHash(u64);

impl Default for SeededHash {
    fn default() -> Self {
        Self(RandomState::new().hash_one(0))
    }
}

impl BuildHasher for SeededHash {
    type Hasher = WordHasher;

    fn build_hasher(&self) -> WordHasher {
        WordHasher(self.0)
    }
}

pub(crate) struct WordHasher(u64);

impl Hasher for WordHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxh3_64_with_seed(bytes, self.0);
    }

    fn write_u8(&mut self, byte: u8) {
        self.0 = self.0.rotate_left(7) ^ u64::from(byte);
    }

    fn write_usize(&mut self, number: usize) {
        self.0 ^= number as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Words of one field in one language.
pub(crate) struct FieldWords {
    field: FieldId,
    stemmer: Option<Stemmer>,
    words: HashMap<Box<str>, WordTerms, SeededHash>,
}

/// All terms of a builder.
#[derive(Default)]
pub(crate) struct Lexicon {
    /// Field, kind and content one after the other.
    bytes: Vec<u8>,
    ends: Vec<u32>,
    numbers: HashMap<Box<[u8]>, TermNumber, SeededHash>,
    fields: HashMap<(FieldId, Option<Language>), usize>,
    by_field: Vec<FieldWords>,
    lower: String,
    folded: String,
    key: Vec<u8>,
}

impl Lexicon {
    /// The number of a term.
    pub(crate) fn term(&mut self, field: FieldId, kind: TermKind, content: &[u8]) -> TermNumber {
        self.key.clear();
        kind.push_key(field, content, &mut self.key);
        if let Some(number) = self.numbers.get(self.key.as_slice()) {
            return *number;
        }
        let number = u32::try_from(self.ends.len()).unwrap_or(u32::MAX);
        self.bytes.extend_from_slice(&self.key);
        self.ends.push(u32::try_from(self.bytes.len()).unwrap_or(u32::MAX));
        self.numbers.insert(self.key.clone().into_boxed_slice(), number);
        number
    }

    /// Where words of a field in a language are looked up.
    pub(crate) fn field(&mut self, field: FieldId, language: Option<Language>) -> usize {
        *self.fields.entry((field, language)).or_insert_with(|| {
            let stemmer = language.map(|language| Stemmer::new(language.algorithm()));
            self.by_field.push(FieldWords { field, stemmer, words: HashMap::default() });
            self.by_field.len() - 1
        })
    }

    /// The terms of a word in the field at place `at`.
    pub(crate) fn word(&mut self, at: usize, word: &str, has_stem: bool) -> Option<WordTerms> {
        let mut lower = std::mem::take(&mut self.lower);
        lower_into(word, &mut lower);
        let field = self.by_field.get(at)?;
        let known = field.words.get(lower.as_str()).copied();
        let terms = match known {
            Some(terms) => Some(terms),
            None => self.new_word(at, word, &lower, has_stem),
        };
        self.lower = lower;
        terms
    }

    fn new_word(&mut self, at: usize, word: &str, lower: &str, has_stem: bool) -> Option<WordTerms> {
        let mut folded = std::mem::take(&mut self.folded);
        fold_into(word, &mut folded);
        let entry = self.by_field.get(at)?;
        let field = entry.field;
        let stemmer = entry.stemmer.as_ref().filter(|_| has_stem);
        let stem = stemmer.and_then(|stemmer| stem_of(stemmer, lower, &folded));
        let written = self.term(field, TermKind::Word, folded.as_bytes());
        let stem = stem.map(|stem| self.term(field, TermKind::Stem, stem.as_bytes()));
        self.folded = folded;
        let terms = WordTerms { written, stem };
        self.by_field.get_mut(at)?.words.insert(lower.into(), terms);
        Some(terms)
    }

    /// The key of a term.
    pub(crate) fn key(&self, number: TermNumber) -> &[u8] {
        let at = number as usize;
        let start = at.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or_default();
        let end = self.ends.get(at).copied().unwrap_or_default();
        self.bytes.get(start as usize..end as usize).unwrap_or_default()
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Memory, about.
    pub(crate) fn bytes(&self) -> usize {
        const OF_ONE: usize = 100;
        let words: usize = self.by_field.iter().map(|field| field.words.len()).sum();
        self.bytes.len() * 2 + (self.ends.len() + words) * OF_ONE
    }

    /// Forgets all, but keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.numbers.clear();
        self.fields.clear();
        self.by_field.clear();
    }
}
