//! The place in a text that shows why it was found.

use std::collections::HashMap;

use frostem::Stemmer;

use crate::fold::{folded, lower_into};
use crate::forms::stem_of;
use crate::query::Query;
use crate::words::{Word, WordKind, each_word};
use crate::{Language, LanguageChoice};

/// A text is looked at so far.
const BYTES_MAX: usize = 1 << 20;
/// Words before the first that was looked for.
const WORDS_BEFORE: usize = 5;

/// How a snippet is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnippetOptions {
    /// How many words it has at most.
    pub words_max: usize,
    /// Which language the text is in.
    pub language: LanguageChoice,
}

impl Default for SnippetOptions {
    fn default() -> Self {
        Self { words_max: 30, language: LanguageChoice::Detected { otherwise: Some(Language::English) } }
    }
}

/// A piece of a snippet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// As it stands in the text; who shows it escapes it.
    pub text: String,
    /// Whether it was looked for.
    pub is_match: bool,
}

/// The words of a query, each with its number.
#[derive(Default)]
struct Terms {
    written: HashMap<String, usize>,
    stems: HashMap<String, usize>,
    beginnings: Vec<(String, usize)>,
    count: usize,
}

struct TextWord {
    start: usize,
    end: usize,
    /// The number of the word of the query that it is.
    of_query: Option<usize>,
}

/// The stretch of `text` that has most of the different words of `query`, whatever their fields; its beginning if it has none.
#[must_use]
pub fn snippet(text: &str, query: &Query, options: SnippetOptions) -> Vec<Fragment> {
    let text = crate::words::cut(text, BYTES_MAX);
    let stemmer = options.language.of(text).map(|language| Stemmer::new(language.algorithm()));
    let mut terms = Terms::default();
    terms.gather(query, stemmer.as_ref(), 0);
    let words = terms.words_of(text, stemmer.as_ref());
    let (from, to) = best_window(&words, terms.count, options.words_max.max(1));
    fragments(text, words.get(from..to).unwrap_or_default())
}

fn stem(stemmer: Option<&Stemmer>, word: &str, written: &str) -> Option<String> {
    let mut lower = String::new();
    lower_into(word, &mut lower);
    stemmer.and_then(|stemmer| stem_of(stemmer, &lower, written))
}

impl Terms {
    fn gather(&mut self, query: &Query, stemmer: Option<&Stemmer>, depth: u32) {
        const DEPTH_MAX: u32 = 64;
        if depth > DEPTH_MAX {
            return;
        }
        match query {
            Query::Word { text, .. } => {
                for word in words(text) {
                    let written = folded(word);
                    let stem = stem(stemmer, word, &written).unwrap_or_else(|| written.clone());
                    let number = self.number(written);
                    self.stems.entry(stem).or_insert(number);
                }
            }
            Query::Phrase { text, .. } | Query::Similar { text, .. } | Query::Exact { text, .. } => {
                for word in words(text) {
                    self.number(folded(word));
                }
            }
            Query::Prefix { text, .. } => {
                for word in words(text) {
                    self.beginnings.push((folded(word), self.count));
                    self.count += 1;
                }
            }
            Query::And(parts) | Query::Or(parts) => {
                parts.iter().for_each(|part| self.gather(part, stemmer, depth + 1));
            }
            Query::Preferred(part, others) => {
                self.gather(part, stemmer, depth + 1);
                others.iter().for_each(|part| self.gather(part, stemmer, depth + 1));
            }
            Query::Boost(part, _) => self.gather(part, stemmer, depth + 1),
            _ => {}
        }
    }

    fn words_of(&self, text: &str, stemmer: Option<&Stemmer>) -> Vec<TextWord> {
        let mut found = Vec::new();
        each_word(text, 0, &mut |word: Word<'_>| {
            if word.kind != WordKind::Compound {
                let written = folded(word.text);
                let stem = if self.stems.is_empty() { None } else { stem(stemmer, word.text, &written) };
                let of_query = self.number_of(&written, stem.as_deref());
                found.push(TextWord { start: word.start, end: word.start + word.text.len(), of_query });
            }
            true
        });
        found
    }

    /// The number of a word of the query.
    fn number(&mut self, written: String) -> usize {
        let number = *self.written.entry(written).or_insert(self.count);
        self.count += usize::from(number == self.count);
        number
    }

    /// The number of the word of the query that a word of the text is.
    fn number_of(&self, written: &str, stem: Option<&str>) -> Option<usize> {
        let whole = self.written.get(written).or_else(|| self.stems.get(stem.unwrap_or(written)));
        let of_beginning =
            || self.beginnings.iter().find(|(beginning, _)| written.starts_with(beginning.as_str()));
        whole.copied().or_else(|| of_beginning().map(|(_, number)| *number))
    }
}

fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    each_word(text, 0, &mut |word: Word<'_>| {
        if word.kind != WordKind::Compound {
            words.push(word.text);
        }
        true
    });
    words
}

/// The window with most different words of the `of_query` that were looked for; of these, the first.
fn best_window(words: &[TextWord], of_query: usize, most: usize) -> (usize, usize) {
    let mut counts = vec![0_usize; of_query];
    let (mut different, mut best) = (0, (0, 0));
    for (at, word) in words.iter().enumerate() {
        if let Some(count) = word.of_query.and_then(|number| counts.get_mut(number)) {
            *count += 1;
            different += usize::from(*count == 1);
        }
        let gone = at.checked_sub(most).and_then(|gone| words.get(gone)).and_then(|word| word.of_query);
        if let Some(count) = gone.and_then(|number| counts.get_mut(number)) {
            *count -= 1;
            different -= usize::from(*count == 0);
        }
        if different > best.0 {
            best = (different, at);
        }
    }
    let earliest = (best.1 + 1).saturating_sub(most);
    let first = words.iter().enumerate().skip(earliest).find(|(_, word)| word.of_query.is_some());
    let first = first.map_or(0, |(at, _)| at);
    let room = most.saturating_sub(best.1.saturating_sub(first) + 1);
    let from = first.saturating_sub(room.min(WORDS_BEFORE));
    (from, words.len().min(from + most))
}

fn fragments(text: &str, words: &[TextWord]) -> Vec<Fragment> {
    let (Some(first), Some(last)) = (words.first(), words.last()) else { return Vec::new() };
    let mut fragments: Vec<Fragment> = Vec::new();
    let mut push = |from: usize, to: usize, is_match: bool| {
        let Some(piece) = text.get(from..to).filter(|piece| !piece.is_empty()) else { return };
        match fragments.last_mut() {
            Some(before) if before.is_match == is_match => before.text.push_str(piece),
            _ => fragments.push(Fragment { text: piece.to_owned(), is_match }),
        }
    };
    let mut at = first.start;
    // Pairs of characters overlap, those that were looked for come out whole.
    for word in words.iter().filter(|word| word.of_query.is_some()) {
        push(at, word.start, false);
        push(word.start.max(at), word.end, true);
        at = at.max(word.end);
    }
    push(at, last.end, false);
    fragments
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, query: &Query, words_max: usize) -> String {
        let options = SnippetOptions { words_max, language: LanguageChoice::Fixed(Language::English) };
        let show = |fragment: Fragment| match fragment.is_match {
            true => format!("[{}]", fragment.text),
            false => fragment.text,
        };
        snippet(text, query, options).into_iter().map(show).collect()
    }

    #[test]
    fn it_shows_where_the_words_stand() {
        let text = "One two three four five six. The Running man; he eats cafés and <b>runs</b> far away from here, he does.";
        let query =
            Query::Or(vec![Query::word("b", "run"), Query::word("b", "cafe"), Query::prefix("b", "aw")]);
        assert_eq!(
            shown(text, &query, 12),
            "The [Running] man; he eats [cafés] and <b>[runs]</b> far [away"
                .replace("far [away", "far [away]")
        );
        assert_eq!(shown(text, &Query::word("b", "nothing"), 3), "One two three");
        assert_eq!(shown("", &query, 3), "");
        assert_eq!(shown("東京都庁", &Query::word("b", "京都"), 9), "東[京都]庁");
        let query = Query::Or(vec![Query::phrase("b", "one two"), Query::word("b", "run")]);
        assert_eq!(shown("One three four. Running one.", &query, 2), "[Running] [one]");
    }
}
