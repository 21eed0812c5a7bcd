//! The terms that a word is found by.
//!
//! Each word is kept as it is written, folded, where it stands. If its stem in the text's language is another word, that is kept,
//! too, without places: a phrase is looked for as it was written. Who looks for a word looks for it, and for its
//! stem in each language that the index has met.

use std::borrow::Cow;

use frostem::Stemmer;

use crate::fold::{fold_into, folded, lower_into, widened};
use crate::language::LanguageSet;
use crate::words::{Word, WordKind, each_word};
use crate::{Language, LanguageChoice};

/// What the analysis makes of a text stands in indexes: with each change of it, or of the stemmers' version, this goes up, and
/// indexes are built again.
pub(crate) const ANALYSIS_VERSION: u16 = 1;

/// Longer words are no words of a language.
const STEMMED_BYTES_MAX: usize = 40;
/// Shorter ones have no stem.
const STEMMED_CHARS_MIN: usize = 3;

/// How text becomes words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnalysisOptions {
    /// Which language words are stemmed in.
    pub language: LanguageChoice,
    /// How many words of a document are looked at.
    pub words_max: u32,
}

impl Default for AnalysisOptions {
    fn default() -> Self {
        Self { language: LanguageChoice::Detected { otherwise: Some(Language::English) }, words_max: 200_000 }
    }
}

impl AnalysisOptions {
    /// A number for what the options make of text.
    pub(crate) fn code(&self) -> u8 {
        match self.language {
            LanguageChoice::Detected { otherwise: None } => 0,
            LanguageChoice::None => 1,
            LanguageChoice::Detected { otherwise: Some(language) } => 64 + language.number(),
            LanguageChoice::Fixed(language) => 128 + language.number(),
        }
    }
}

/// What a text is found by, in the order in which it is there: each word folded, and behind it its stem, if that is another
/// word. At most `words_max` words are looked at.
#[must_use]
pub fn tokens(text: &str, options: AnalysisOptions) -> Vec<String> {
    let stemmer = options.language.of(text).map(|language| Stemmer::new(language.algorithm()));
    let (mut tokens, mut lower) = (Vec::new(), String::new());
    each_word(&widened(text), 0, &mut |word: Word<'_>| {
        if word.position >= options.words_max {
            return false;
        }
        let written = folded(word.text);
        lower.clear();
        lower_into(word.text, &mut lower);
        let stemmer = stemmer.as_ref().filter(|_| word.kind == WordKind::Plain);
        let stem = stemmer.and_then(|stemmer| stem_of(stemmer, &lower, &written));
        tokens.extend([Some(written), stem].into_iter().flatten());
        true
    });
    tokens
}

/// A word's stem, folded, if it is another word.
pub(crate) fn stem_of(stemmer: &Stemmer, lower: &str, written: &str) -> Option<String> {
    let is_short = lower.chars().nth(STEMMED_CHARS_MIN - 1).is_none();
    if is_short || lower.len() > STEMMED_BYTES_MAX || !lower.chars().all(char::is_alphabetic) {
        return None;
    }
    let stem: Cow<'_, str> = stemmer.stem(lower);
    let stem = folded(&stem);
    (!stem.is_empty() && stem != written).then_some(stem)
}

/// The forms of a word that somebody looks for: as written, and its stems, each once, the word itself among them where it has
/// none in some language.
pub(crate) struct QueryForms {
    pub(crate) written: String,
    /// Words whose stem it is are found by these.
    pub(crate) stems: Vec<String>,
}

pub(crate) fn query_forms(word: &str, languages: LanguageSet) -> QueryForms {
    let (mut lower, mut written) = (String::new(), String::new());
    lower_into(word, &mut lower);
    fold_into(word, &mut written);
    let mut stems: Vec<String> = Vec::new();
    for language in languages.languages() {
        let stemmer = Stemmer::new(language.algorithm());
        let stem = stem_of(&stemmer, &lower, &written).unwrap_or_else(|| written.clone());
        if !stems.contains(&stem) {
            stems.push(stem);
        }
    }
    QueryForms { written, stems }
}
