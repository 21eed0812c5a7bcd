//! Languages that words are stemmed in.

use frostem::Algorithm;
use whatlang::Lang;

use crate::words::cut;

/// How much of a text tells its language.
const SAMPLE_BYTES: usize = 400;

/// A language with a stemmer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names say it")]
#[repr(u8)]
pub enum Language {
    Arabic,
    Armenian,
    Catalan,
    Czech,
    Danish,
    Dutch,
    English,
    Estonian,
    Finnish,
    French,
    German,
    Greek,
    Hindi,
    Hungarian,
    Indonesian,
    Italian,
    Lithuanian,
    Norwegian,
    Persian,
    Polish,
    Portuguese,
    Romanian,
    Russian,
    Serbian,
    Spanish,
    Swedish,
    Tamil,
    Turkish,
    Ukrainian,
    Yiddish,
}

/// What is known of a language.
struct Row(Language, &'static str, Algorithm, Lang);

/// In the order of [`Language`], whose numbers stand in indexes: a new one goes to the end.
const TABLE: [Row; 30] = [
    Row(Language::Arabic, "ar", Algorithm::Arabic, Lang::Ara),
    Row(Language::Armenian, "hy", Algorithm::Armenian, Lang::Hye),
    Row(Language::Catalan, "ca", Algorithm::Catalan, Lang::Cat),
    Row(Language::Czech, "cs", Algorithm::Czech, Lang::Ces),
    Row(Language::Danish, "da", Algorithm::Danish, Lang::Dan),
    Row(Language::Dutch, "nl", Algorithm::Dutch, Lang::Nld),
    Row(Language::English, "en", Algorithm::English, Lang::Eng),
    Row(Language::Estonian, "et", Algorithm::Estonian, Lang::Est),
    Row(Language::Finnish, "fi", Algorithm::Finnish, Lang::Fin),
    Row(Language::French, "fr", Algorithm::French, Lang::Fra),
    Row(Language::German, "de", Algorithm::German, Lang::Deu),
    Row(Language::Greek, "el", Algorithm::Greek, Lang::Ell),
    Row(Language::Hindi, "hi", Algorithm::Hindi, Lang::Hin),
    Row(Language::Hungarian, "hu", Algorithm::Hungarian, Lang::Hun),
    Row(Language::Indonesian, "id", Algorithm::Indonesian, Lang::Ind),
    Row(Language::Italian, "it", Algorithm::Italian, Lang::Ita),
    Row(Language::Lithuanian, "lt", Algorithm::Lithuanian, Lang::Lit),
    Row(Language::Norwegian, "no", Algorithm::Norwegian, Lang::Nob),
    Row(Language::Persian, "fa", Algorithm::Persian, Lang::Pes),
    Row(Language::Polish, "pl", Algorithm::Polish, Lang::Pol),
    Row(Language::Portuguese, "pt", Algorithm::Portuguese, Lang::Por),
    Row(Language::Romanian, "ro", Algorithm::Romanian, Lang::Ron),
    Row(Language::Russian, "ru", Algorithm::Russian, Lang::Rus),
    Row(Language::Serbian, "sr", Algorithm::Serbian, Lang::Srp),
    Row(Language::Spanish, "es", Algorithm::Spanish, Lang::Spa),
    Row(Language::Swedish, "sv", Algorithm::Swedish, Lang::Swe),
    Row(Language::Tamil, "ta", Algorithm::Tamil, Lang::Tam),
    Row(Language::Turkish, "tr", Algorithm::Turkish, Lang::Tur),
    Row(Language::Ukrainian, "uk", Algorithm::Ukrainian, Lang::Ukr),
    Row(Language::Yiddish, "yi", Algorithm::Yiddish, Lang::Yid),
];

impl Language {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|row| row.0)
    }

    /// The language of a tag such as `en`, `pt-BR` or `nb` (RFC 5646), if its words can be stemmed.
    #[must_use]
    pub fn of_tag(tag: &str) -> Option<Self> {
        let primary = tag.split(['-', '_']).next()?;
        let primary =
            if ["nb", "nn"].iter().any(|tag| primary.eq_ignore_ascii_case(tag)) { "no" } else { primary };
        TABLE.iter().find(|row| row.1.eq_ignore_ascii_case(primary)).map(|row| row.0)
    }

    /// Its tag, such as `en`.
    #[must_use]
    pub fn tag(self) -> &'static str {
        TABLE.get(usize::from(self.number())).map_or("", |row| row.1)
    }

    /// The language that a text is written in, if it is long and plain enough to tell.
    #[must_use]
    pub fn detect(text: &str) -> Option<Self> {
        let found = whatlang::detect(cut(text, SAMPLE_BYTES))?;
        let row = TABLE.iter().find(|row| row.3 == found.lang())?;
        found.is_reliable().then_some(row.0)
    }

    pub(crate) fn number(self) -> u8 {
        self as u8
    }

    pub(crate) fn algorithm(self) -> Algorithm {
        TABLE.get(usize::from(self.number())).map_or(Algorithm::English, |row| row.2)
    }
}

/// Which language a document's words are stemmed in, where it does not say so itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LanguageChoice {
    /// The one that its text is written in, or else this one.
    Detected {
        /// For texts too short or too mixed to tell.
        otherwise: Option<Language>,
    },
    /// This one.
    Fixed(Language),
    /// Words are not stemmed.
    None,
}

impl LanguageChoice {
    /// The language of a text.
    pub(crate) fn of(self, text: &str) -> Option<Language> {
        match self {
            Self::Detected { otherwise } => Language::detect(text).or(otherwise),
            Self::Fixed(language) => Some(language),
            Self::None => None,
        }
    }
}

/// A set of languages, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LanguageSet(pub(crate) u64);

impl LanguageSet {
    pub(crate) fn add(&mut self, language: Language) {
        self.0 |= 1 << language.number();
    }

    pub(crate) fn languages(self) -> impl Iterator<Item = Language> {
        Language::all().filter(move |language| self.0 & (1 << language.number()) != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_numbers() {
        for (number, language) in (0..).zip(Language::all()) {
            assert_eq!(language.number(), number);
            assert_eq!(Language::of_tag(language.tag()), Some(language));
        }
        assert_eq!(Language::of_tag("pt-BR"), Some(Language::Portuguese));
        assert_eq!(Language::of_tag("nb_NO"), Some(Language::Norwegian));
        assert_eq!(Language::of_tag("tlh"), None);
    }

    #[test]
    fn texts_tell_their_language() {
        let german = "Sehr geehrte Damen und Herren, anbei sende ich Ihnen die Unterlagen, die Sie gestern erbeten haben.";
        let english = "Please find attached the documents that you have asked for yesterday; we look forward to your answer.";
        assert_eq!(Language::detect(german), Some(Language::German));
        assert_eq!(Language::detect(english), Some(Language::English));
        assert_eq!(Language::detect(""), None);
        assert_eq!(Language::detect("1234 5678"), None);
    }
}
