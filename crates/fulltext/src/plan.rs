//! A query becomes walkers over an index.

use memchr::memmem::Finder;
use std::ops::Bound;

use scrinium_store::prefix_end;

use crate::address_set::AddressSet;
use crate::fold::{folded, widened};
use crate::format::{FIELD_BYTES, FieldId, TermKind};
use crate::forms::query_forms;
use crate::number::{self, TermRange};
use crate::query::{Bounds, Query, Value};
use crate::reader::{Budget, Reader, Readership};
use crate::scan::TermScan;
use crate::term_postings::TermPostings;
use crate::walker::{AndWalker, Answer, Branch, PhraseWalker, Walker};
use crate::words::{Word, WordKind, each_word};
use crate::{FullTextError, search};

/// No query is deeper.
const DEPTH_MAX: u32 = 64;
/// A phrase has no more words.
const PHRASE_WORDS_MAX: usize = 64;
/// Words do not differ by more letters.
const DISTANCE_MAX: u8 = 2;

/// Makes walkers.
pub(crate) struct Planner<'r> {
    pub(crate) reader: &'r Reader,
    pub(crate) budget: &'r Budget,
    pub(crate) clauses_left: u64,
}

/// A text that is looked for, cut into words.
struct QueryWords {
    /// With their places.
    words: Vec<(String, u32, WordKind)>,
    /// The compound that the whole text is.
    whole: Option<String>,
}

impl QueryWords {
    fn of(text: &str) -> Self {
        let (mut words, mut whole) = (Vec::new(), None);
        let trimmed = text.trim_matches(|character: char| !character.is_alphanumeric());
        each_word(&widened(text), 0, &mut |word: Word<'_>| {
            match word.kind {
                WordKind::Compound if word.text == trimmed => whole = Some(word.text.to_owned()),
                WordKind::Compound => {}
                kind => words.push((word.text.to_owned(), word.position, kind)),
            }
            words.len() < PHRASE_WORDS_MAX
        });
        Self { words, whole }
    }
}

impl<'r> Planner<'r> {
    /// Whom somebody may find; `None`: all.
    pub(crate) fn readers(&self, readership: &Readership) -> Option<Walker<'r>> {
        let Readership::Names(names) = readership else { return None };
        if self.reader.state.restricted == 0 {
            return None;
        }
        let open = TermKind::Any.key(FieldId::READERS, &[]);
        let named = names.iter().map(|name| TermKind::Exact.key(FieldId::READERS, name.as_bytes()));
        let branches = std::iter::once(open).chain(named).map(|term| Branch::new(self.term(term, 0.0)));
        Some(Walker::Or(branches.collect()))
    }

    fn term(&self, term: Vec<u8>, weight: f32) -> Walker<'r> {
        let mut postings = TermPostings::new(self.reader, self.budget, term);
        postings.weight = weight;
        Walker::Term(Box::new(postings))
    }

    /// The walker of a query, whose words count `boost` times.
    pub(crate) fn plan(
        &mut self,
        query: &Query,
        boost: f32,
        depth: u32,
    ) -> Result<Walker<'r>, FullTextError> {
        let limit = search::CLAUSES_MAX;
        self.clauses_left = self
            .clauses_left
            .checked_sub(1)
            .filter(|_| depth < DEPTH_MAX)
            .ok_or(FullTextError::TooBroad { what: "clauses", limit })?;
        match query {
            Query::All => Ok(Walker::All(self.reader.state.next)),
            Query::Nothing => Ok(Walker::Nothing),
            Query::Word { field, text } => self.word(FieldId::of(field), text, boost),
            Query::Phrase { field, text, slop } => {
                let words = QueryWords::of(text).words;
                self.phrase(FieldId::of(field), &words, *slop, boost)
            }
            Query::Prefix { field, text } => self.prefix(FieldId::of(field), text, boost),
            Query::Pattern { field, pattern } => self.pattern(FieldId::of(field), pattern, boost),
            Query::Similar { field, text, distance } => {
                self.similar(FieldId::of(field), text, *distance, boost)
            }
            Query::Exact { field, text } => {
                Ok(self.term(TermKind::Exact.key(FieldId::of(field), text.as_bytes()), boost))
            }
            Query::Range { field, bounds } => self.range(FieldId::of(field), bounds, boost),
            Query::Exists { field } => Ok(self.term(TermKind::Any.key(FieldId::of(field), &[]), 0.0)),
            Query::And(parts) => self.all_of(parts, boost, depth),
            Query::Or(parts) => {
                let branches = parts.iter().map(|part| Ok(Branch::new(self.plan(part, boost, depth + 1)?)));
                Ok(Walker::Or(branches.collect::<Result<_, FullTextError>>()?))
            }
            Query::Not(_) => self.all_of(std::slice::from_ref(query), boost, depth),
            Query::Preferred(part, better) => {
                let must = vec![self.plan(part, boost, depth + 1)?];
                let should = better.iter().map(|part| self.plan(part, boost, depth + 1));
                let should = should.collect::<Result<_, _>>()?;
                Ok(Walker::And(Box::new(AndWalker { must, should, ..AndWalker::default() })))
            }
            Query::Boost(part, times) => {
                let times = if times.is_finite() { times.clamp(0.0, 1000.0) } else { 1.0 };
                self.plan(part, boost * times, depth + 1)
            }
        }
    }

    fn all_of(&mut self, parts: &[Query], boost: f32, depth: u32) -> Result<Walker<'r>, FullTextError> {
        let mut and = AndWalker::default();
        for part in parts {
            match part {
                Query::Not(part) => and.must_not.push(self.plan(part, 0.0, depth + 1)?),
                part => and.must.push(self.plan(part, boost, depth + 1)?),
            }
        }
        if and.must.is_empty() {
            and.must.push(Walker::All(self.reader.state.next));
        }
        Ok(Walker::And(Box::new(and)))
    }

    /// A word in all its forms.
    fn word(&mut self, field: FieldId, text: &str, boost: f32) -> Result<Walker<'r>, FullTextError> {
        let words = QueryWords::of(text);
        if let Some(whole) = words.whole {
            return Ok(self.term(TermKind::Word.key(field, folded(&whole).as_bytes()), boost));
        }
        match words.words.as_slice() {
            [] => Ok(Walker::Nothing),
            [(word, _, WordKind::Pair)] if word.chars().nth(1).is_none() => {
                self.beginning(field, word, boost)
            }
            [(word, _, _)] => {
                let forms = query_forms(word, self.reader.state.languages);
                let mut terms = vec![TermKind::Word.key(field, forms.written.as_bytes())];
                for stem in &forms.stems {
                    let as_word = TermKind::Word.key(field, stem.as_bytes());
                    if !terms.contains(&as_word) {
                        terms.push(as_word);
                    }
                    terms.push(TermKind::Stem.key(field, stem.as_bytes()));
                }
                let branches = terms.into_iter().map(|term| Branch::new(self.term(term, boost)));
                Ok(Walker::Or(branches.collect()))
            }
            several => self.phrase(field, several, 0, boost),
        }
    }

    fn phrase(
        &mut self,
        field: FieldId,
        words: &[(String, u32, WordKind)],
        slop: u32,
        boost: f32,
    ) -> Result<Walker<'r>, FullTextError> {
        if let [(word, _, kind)] = words {
            if *kind == WordKind::Pair && word.chars().nth(1).is_none() {
                return self.beginning(field, word, boost);
            }
            return Ok(self.term(TermKind::Word.key(field, folded(word).as_bytes()), boost));
        }
        if words.is_empty() {
            return Ok(Walker::Nothing);
        }
        let word = |(word, offset, _): &(String, u32, WordKind)| {
            let key = TermKind::Word.key(field, folded(word).as_bytes());
            let mut postings = TermPostings::new(self.reader, self.budget, key);
            postings.weight = boost;
            (postings, *offset)
        };
        let words: Vec<_> = words.iter().map(word).collect();
        let lists = vec![Vec::new(); words.len()];
        Ok(Walker::Phrase(Box::new(PhraseWalker {
            words,
            slop,
            lists,
            places: Vec::new(),
            answer: Answer::default(),
        })))
    }

    /// Words that begin so, as one set.
    fn beginning(&self, field: FieldId, text: &str, boost: f32) -> Result<Walker<'r>, FullTextError> {
        self.scan(&TermKind::Word.key(field, folded(text).as_bytes()), &|_| true, boost)
    }

    /// Terms that begin with `from` and that `accept` takes.
    fn scan(
        &self,
        from: &[u8],
        accept: &dyn Fn(&[u8]) -> bool,
        boost: f32,
    ) -> Result<Walker<'r>, FullTextError> {
        let to = prefix_end(from).unwrap_or_default();
        let mut set = AddressSet::default();
        TermScan { from, to: &to }.collect(self.reader, self.budget, accept, &mut set)?;
        Ok(Walker::Set(set, boost))
    }

    fn prefix(&mut self, field: FieldId, text: &str, boost: f32) -> Result<Walker<'r>, FullTextError> {
        let words = QueryWords::of(text);
        if let Some(whole) = words.whole {
            return self.beginning(field, &whole, boost);
        }
        let Some(((last, _, kind), before)) = words.words.split_last() else { return Ok(Walker::Nothing) };
        let is_whole_pair = *kind == WordKind::Pair && last.chars().nth(1).is_some();
        if is_whole_pair {
            return self.phrase(field, &words.words, 0, boost);
        }
        let last = self.beginning(field, last, boost)?;
        if before.is_empty() {
            return Ok(last);
        }
        Ok(Walker::all_of(vec![self.phrase(field, before, 0, boost)?, last]))
    }

    fn pattern(&self, field: FieldId, pattern: &str, boost: f32) -> Result<Walker<'r>, FullTextError> {
        let pattern = folded(pattern);
        let between = pattern.strip_prefix('*').and_then(|rest| rest.strip_suffix('*'));
        if let Some(between) = between.filter(|between| !between.contains(['*', '?'])) {
            // What stands anywhere in a word is looked for in bytes: there may be many words.
            let finder = Finder::new(between);
            let accept = |word: &[u8]| finder.find(word).is_some();
            return self.scan(&TermKind::Word.key(field, &[]), &accept, boost);
        }
        let pattern: Vec<char> = pattern.chars().collect();
        let literal: String = pattern.iter().take_while(|letter| !matches!(letter, '*' | '?')).collect();
        let accept = |word: &[u8]| {
            std::str::from_utf8(word).is_ok_and(|word| matches(&pattern, &word.chars().collect::<Vec<_>>()))
        };
        self.scan(&TermKind::Word.key(field, literal.as_bytes()), &accept, boost)
    }

    fn similar(
        &self,
        field: FieldId,
        text: &str,
        distance: u8,
        boost: f32,
    ) -> Result<Walker<'r>, FullTextError> {
        let word = folded(text);
        let Some(first) = word.chars().next() else { return Ok(Walker::Nothing) };
        let most = usize::from(distance.min(DISTANCE_MAX));
        let accept = |other: &[u8]| {
            other.len().abs_diff(word.len()) <= most * 4
                && std::str::from_utf8(other).is_ok_and(|other| strsim::osa_distance(&word, other) <= most)
        };
        self.scan(&TermKind::Word.key(field, first.to_string().as_bytes()), &accept, boost)
    }

    fn range(&self, field: FieldId, bounds: &Bounds, boost: f32) -> Result<Walker<'r>, FullTextError> {
        let mut set = AddressSet::default();
        if bounds.has_text() {
            for kind in [TermKind::Word, TermKind::Exact] {
                let (from, to) = text_ends(field, kind, bounds);
                if from < to {
                    TermScan { from: &from, to: &to }.collect(
                        self.reader,
                        self.budget,
                        &|_| true,
                        &mut set,
                    )?;
                }
            }
        }
        if bounds.has_numbers() {
            let Some((first, last)) = number_ends(bounds) else { return Ok(Walker::Nothing) };
            for TermRange { shift, first, last } in number::ranges(first, last) {
                let from = number::kind(shift).key(field, &number::term(first, shift));
                let mut to = number::kind(shift).key(field, &number::term(last, shift));
                to.push(1);
                TermScan { from: &from, to: &to }.collect(self.reader, self.budget, &|_| true, &mut set)?;
            }
        }
        Ok(Walker::Set(set, boost))
    }
}

impl Bounds {
    fn has(&self, is_kind: impl Fn(&Value) -> bool) -> bool {
        [&self.from, &self.to].into_iter().all(|bound| match bound {
            Bound::Included(value) | Bound::Excluded(value) => is_kind(value),
            Bound::Unbounded => true,
        })
    }

    fn has_text(&self) -> bool {
        self.has(|value| matches!(value, Value::Text(_)))
    }

    fn has_numbers(&self) -> bool {
        self.has(|value| matches!(value, Value::Number(_)))
    }
}

/// The terms from which, and up to which.
fn text_ends(field: FieldId, kind: TermKind, bounds: &Bounds) -> (Vec<u8>, Vec<u8>) {
    let key = |value: &Value| match value {
        Value::Text(text) if kind == TermKind::Word => kind.key(field, folded(text).as_bytes()),
        Value::Text(text) => kind.key(field, text.as_bytes()),
        Value::Number(_) => kind.key(field, &[]),
    };
    // What is behind a term and before the next one: terms have no byte 00.
    let behind = |mut key: Vec<u8>| {
        key.push(1);
        key
    };
    let all = kind.key(field, &[]);
    let from = match &bounds.from {
        Bound::Included(value) => key(value),
        Bound::Excluded(value) => behind(key(value)),
        Bound::Unbounded => all.clone(),
    };
    let to = match &bounds.to {
        Bound::Included(value) => behind(key(value)),
        Bound::Excluded(value) => key(value),
        Bound::Unbounded => prefix_end(all.get(..=FIELD_BYTES).unwrap_or(&all)).unwrap_or_default(),
    };
    (from, to)
}

/// The first number and the last one; `None` if there is none between the bounds.
fn number_ends(bounds: &Bounds) -> Option<(u64, u64)> {
    let ordered = |value: &Value| match value {
        Value::Number(number) => number::ordered(*number),
        Value::Text(_) => 0,
    };
    let first = match &bounds.from {
        Bound::Included(value) => ordered(value),
        Bound::Excluded(value) => ordered(value).checked_add(1)?,
        Bound::Unbounded => 0,
    };
    let last = match &bounds.to {
        Bound::Included(value) => ordered(value),
        Bound::Excluded(value) => ordered(value).checked_sub(1)?,
        // What is no number is in no range.
        Bound::Unbounded => u64::MAX - 1,
    };
    (first <= last).then_some((first, last))
}

/// Whether a word has the pattern; in time that goes with the product of their lengths at most.
fn matches(pattern: &[char], word: &[char]) -> bool {
    let (mut at_pattern, mut at_word) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while let Some(letter) = word.get(at_word) {
        match pattern.get(at_pattern) {
            Some('*') => {
                star = Some((at_pattern, at_word));
                at_pattern += 1;
            }
            Some(wanted) if *wanted == '?' || wanted == letter => {
                at_pattern += 1;
                at_word += 1;
            }
            _ => {
                let Some((after, from)) = star else { return false };
                star = Some((after, from + 1));
                (at_pattern, at_word) = (after + 1, from + 1);
            }
        }
    }
    pattern.iter().skip(at_pattern).all(|letter| *letter == '*')
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_take_words() {
        let check = |pattern: &str, word: &str| {
            matches(&pattern.chars().collect::<Vec<_>>(), &word.chars().collect::<Vec<_>>())
        };
        for (pattern, word) in [("a*", "a"), ("a?c", "abc"), ("*a*b", "xaxbxb"), ("*", ""), ("?*", "ü")] {
            assert!(check(pattern, word), "{pattern} {word}");
        }
        for (pattern, word) in [("a?c", "ac"), ("*ab", "abx"), ("?", ""), ("a", "ab")] {
            assert!(!check(pattern, word), "{pattern} {word}");
        }
    }
}
