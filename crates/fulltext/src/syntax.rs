//! Lucene's query syntax, as CouchDB's Nouveau takes it.
//!
//! ```text
//! query  = clause ([AND | && | OR | ||] clause)*
//! clause = [+ | - | ! | NOT] [field :] (term | phrase | range | "(" query ")") [^ number]
//! term   = letters, with \ before what would mean something, [~ [number]]; * and ? stand for letters
//! phrase = " words " [~ number]
//! range  = ("[" | "{") bound TO bound ("]" | "}")
//! ```
//!
//! As there, without AND or OR one of the clauses is enough, unless the caller says that all are wanted. A query of negations
//! alone, which finds nothing there, finds all other documents here.

use std::ops::Bound;

use crate::FullTextError;
use crate::query::{Bounds, Query, Value};

/// The longest query.
const BYTES_MAX: usize = 16 << 10;
const DEPTH_MAX: u32 = 32;
const CLAUSES_MAX: u32 = 512;

/// Reads a query; words without a field are looked for in any of `fields`. With `wants_all`, AND stands between clauses where
/// nothing does.
///
/// # Errors
/// [`FullTextError::Syntax`], [`FullTextError::TooBroad`].
pub fn parse_query(text: &str, fields: &[&str], wants_all: bool) -> Result<Query, FullTextError> {
    if text.len() > BYTES_MAX {
        return Err(FullTextError::TooBroad { what: "bytes", limit: BYTES_MAX as u64 });
    }
    let characters: Vec<char> = text.chars().collect();
    let mut parser = Parser { characters: &characters, at: 0, fields, wants_all, clauses: 0 };
    let query = parser.query(None, 0)?;
    parser.skip_blanks();
    if parser.at < characters.len() {
        return Err(parser.error("a parenthesis is closed that was not opened"));
    }
    Ok(query)
}

struct Parser<'p> {
    characters: &'p [char],
    at: usize,
    fields: &'p [&'p str],
    wants_all: bool,
    clauses: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Occurs {
    Should,
    Must,
    MustNot,
}

/// What stands before a clause.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Conjunction {
    None,
    And,
    Or,
}

impl Parser<'_> {
    fn error(&self, what: &'static str) -> FullTextError {
        FullTextError::Syntax { at: self.at, what }
    }

    fn peek(&self) -> Option<char> {
        self.characters.get(self.at).copied()
    }

    fn take(&mut self, wanted: char) -> bool {
        let is_there = self.peek() == Some(wanted);
        self.at += usize::from(is_there);
        is_there
    }

    fn skip_blanks(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.at += 1;
        }
    }

    /// Takes a word of the syntax, behind which a word must end.
    fn keyword(&mut self, word: &str) -> bool {
        let end = self.at + word.len();
        let is_there =
            self.characters.get(self.at..end).is_some_and(|found| found.iter().copied().eq(word.chars()));
        let is_symbol = !word.starts_with(char::is_alphabetic);
        let ends =
            self.characters.get(end).is_none_or(|next| next.is_whitespace() || "(\"[{!+-".contains(*next));
        if is_there && (is_symbol || ends) {
            self.at = end;
            return true;
        }
        false
    }

    fn query(&mut self, field: Option<&str>, depth: u32) -> Result<Query, FullTextError> {
        if depth > DEPTH_MAX {
            return Err(self.error("it has too many parentheses within one another"));
        }
        let mut clauses: Vec<(Occurs, Query)> = Vec::new();
        loop {
            self.skip_blanks();
            if self.peek().is_none_or(|next| next == ')') {
                return Ok(joined(clauses));
            }
            let conjunction = self.conjunction();
            if conjunction != Conjunction::None && clauses.is_empty() {
                return Err(self.error("AND or OR has nothing before it"));
            }
            self.skip_blanks();
            let occurs = self.modifier();
            self.skip_blanks();
            if self.peek().is_none_or(|next| next == ')') {
                return Err(self.error("something to look for is missing"));
            }
            self.clauses += 1;
            if self.clauses > CLAUSES_MAX {
                return Err(FullTextError::TooBroad { what: "clauses", limit: u64::from(CLAUSES_MAX) });
            }
            let query = self.clause(field, depth)?;
            self.add(&mut clauses, conjunction, occurs, query);
        }
    }

    fn conjunction(&mut self) -> Conjunction {
        if self.keyword("AND") || self.keyword("&&") {
            Conjunction::And
        } else if self.keyword("OR") || self.keyword("||") {
            Conjunction::Or
        } else {
            Conjunction::None
        }
    }

    fn modifier(&mut self) -> Occurs {
        if self.take('+') {
            Occurs::Must
        } else if self.take('-') || self.take('!') || self.keyword("NOT") {
            Occurs::MustNot
        } else {
            Occurs::Should
        }
    }

    /// As Lucene does: AND makes what stands on both sides of it wanted, and OR what is not said to be.
    fn add(
        &self,
        clauses: &mut Vec<(Occurs, Query)>,
        conjunction: Conjunction,
        occurs: Occurs,
        query: Query,
    ) {
        if let Some((before, _)) = clauses.last_mut() {
            match (conjunction, *before) {
                (Conjunction::And, Occurs::Should) => *before = Occurs::Must,
                (Conjunction::Or, Occurs::Must) if self.wants_all => *before = Occurs::Should,
                _ => {}
            }
        }
        let is_wanted = match conjunction {
            Conjunction::And => true,
            Conjunction::Or => false,
            Conjunction::None => self.wants_all,
        };
        let occurs = if occurs == Occurs::Should && is_wanted { Occurs::Must } else { occurs };
        clauses.push((occurs, query));
    }

    fn clause(&mut self, field: Option<&str>, depth: u32) -> Result<Query, FullTextError> {
        let own_field = self.field()?;
        let field = own_field.as_deref().or(field);
        let query = match self.peek() {
            Some('(') => {
                self.at += 1;
                let query = self.query(field, depth + 1)?;
                if !self.take(')') {
                    return Err(self.error("a parenthesis is not closed"));
                }
                query
            }
            Some('"') => self.phrase(field)?,
            Some('[' | '{') => self.range(field)?,
            Some('/') => {
                return Err(self.error("regular expressions are not taken; * and ? stand for letters"));
            }
            _ => self.term(field)?,
        };
        if !self.take('^') {
            return Ok(query);
        }
        let times = self.number()?.ok_or_else(|| self.error("behind ^ comes a number"))?;
        #[allow(clippy::cast_possible_truncation, reason = "it is a weight, and bounded later")]
        let times = times as f32;
        Ok(Query::Boost(Box::new(query), times))
    }

    /// The name before a colon, if there is one.
    fn field(&mut self) -> Result<Option<String>, FullTextError> {
        let start = self.at;
        if self.peek() == Some('*') && self.characters.get(self.at + 1) == Some(&':') {
            self.at += 2;
            return Ok(Some("*".to_owned()));
        }
        let word = self.letters()?;
        if !word.has_wildcard && !word.text.is_empty() && self.take(':') {
            return Ok(Some(word.text));
        }
        self.at = start;
        Ok(None)
    }

    fn number(&mut self) -> Result<Option<f64>, FullTextError> {
        let digits: String = self
            .characters
            .iter()
            .skip(self.at)
            .take_while(|next| next.is_ascii_digit() || **next == '.')
            .collect();
        self.at += digits.len();
        if digits.is_empty() {
            return Ok(None);
        }
        digits.parse().map(Some).map_err(|_| self.error("this is no number"))
    }

    /// Letters up to what ends a term, without the `\` before any of them.
    fn letters(&mut self) -> Result<Letters, FullTextError> {
        let mut letters = Letters { text: String::new(), pattern: String::new(), has_wildcard: false };
        while let Some(next) = self.peek() {
            if next.is_whitespace() || "()[]{}\"^~:".contains(next) {
                break;
            }
            self.at += 1;
            match next {
                '\\' => {
                    let escaped = self.peek().ok_or_else(|| self.error("nothing comes behind \\"))?;
                    self.at += 1;
                    letters.text.push(escaped);
                    letters.pattern.push(escaped);
                }
                '*' | '?' => {
                    letters.has_wildcard = true;
                    letters.pattern.push(next);
                }
                next => {
                    letters.text.push(next);
                    letters.pattern.push(next);
                }
            }
        }
        Ok(letters)
    }

    fn in_fields(&self, field: Option<&str>, of: impl Fn(&str) -> Query) -> Query {
        match (field, self.fields) {
            (Some(field), _) => of(field),
            (None, [field]) => of(field),
            (None, fields) => Query::in_any(fields, of),
        }
    }

    fn term(&mut self, field: Option<&str>) -> Result<Query, FullTextError> {
        let letters = self.letters()?;
        if letters.pattern.is_empty() {
            return Err(self.error("this means something else here; put \\ before it to look for it"));
        }
        if self.take('~') {
            let distance = self.number()?.unwrap_or(2.0);
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is from 0 to 2")]
            let distance = distance.clamp(0.0, 2.0) as u8;
            let similar = |field: &str| Query::Similar {
                field: field.to_owned(),
                text: letters.text.clone(),
                distance,
            };
            return Ok(self.in_fields(field, similar));
        }
        if letters.pattern == "*" {
            return Ok(match field {
                None | Some("*") => Query::All,
                Some(field) => Query::Exists { field: field.to_owned() },
            });
        }
        if letters.has_wildcard {
            let is_beginning = letters.pattern.strip_suffix('*') == Some(letters.text.as_str());
            let wild = |field: &str| match is_beginning {
                true => Query::prefix(field, &letters.text),
                false => Query::Pattern { field: field.to_owned(), pattern: letters.pattern.clone() },
            };
            return Ok(self.in_fields(field, wild));
        }
        Ok(match field {
            Some(field) => any_value(field, &letters.text, Query::word(field, &letters.text)),
            None => self.in_fields(None, |field| Query::word(field, &letters.text)),
        })
    }

    fn phrase(&mut self, field: Option<&str>) -> Result<Query, FullTextError> {
        self.at += 1;
        let mut text = String::new();
        loop {
            let next = self.peek().ok_or_else(|| self.error("a quotation mark is not closed"))?;
            self.at += 1;
            match next {
                '"' => break,
                '\\' => {
                    text.push(self.peek().ok_or_else(|| self.error("nothing comes behind \\"))?);
                    self.at += 1;
                }
                next => text.push(next),
            }
        }
        let mut slop = 0;
        if self.take('~') {
            let places = self.number()?.ok_or_else(|| self.error("behind ~ comes a number of places"))?;
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "it is from 0 to 10,000"
            )]
            let places = places.clamp(0.0, 10_000.0) as u32;
            slop = places;
        }
        let phrase = |field: &str| Query::Phrase { field: field.to_owned(), text: text.clone(), slop };
        Ok(match field {
            Some(field) => {
                Query::Or(vec![phrase(field), Query::Exact { field: field.to_owned(), text: text.clone() }])
            }
            None => self.in_fields(None, phrase),
        })
    }

    fn range(&mut self, field: Option<&str>) -> Result<Query, FullTextError> {
        let is_open = self.take('{');
        self.at += usize::from(!is_open);
        let from = self.bound()?;
        self.skip_blanks();
        if !self.keyword("TO") {
            return Err(self.error("between the ends of a range stands TO"));
        }
        let to = self.bound()?;
        self.skip_blanks();
        let is_open_above = match self.peek() {
            Some('}') => true,
            Some(']') => false,
            _ => return Err(self.error("a range is not closed")),
        };
        self.at += 1;
        let end = |text: &Option<String>, is_open: bool, value: &dyn Fn(&str) -> Value| match text {
            None => Bound::Unbounded,
            Some(text) if is_open => Bound::Excluded(value(text)),
            Some(text) => Bound::Included(value(text)),
        };
        let bounds = |value: &dyn Fn(&str) -> Value| Bounds {
            from: end(&from, is_open, value),
            to: end(&to, is_open_above, value),
        };
        let is_number = |text: &Option<String>| text.as_ref().is_none_or(|text| text.parse::<f64>().is_ok());
        let are_numbers = is_number(&from) && is_number(&to);
        let query = |field: &str| {
            let range = |bounds| Query::Range { field: field.to_owned(), bounds };
            let of_texts = range(bounds(&|text| Value::Text(text.to_owned())));
            if !are_numbers || (from.is_none() && to.is_none()) {
                return of_texts;
            }
            let of_numbers = range(bounds(&|text| Value::Number(text.parse().unwrap_or_default())));
            Query::Or(vec![of_numbers, of_texts])
        };
        Ok(self.in_fields(field, query))
    }

    /// One end of a range; `None`: it is open.
    fn bound(&mut self) -> Result<Option<String>, FullTextError> {
        self.skip_blanks();
        if self.peek() == Some('"') {
            self.at += 1;
            let rest = self.characters.get(self.at..).unwrap_or_default();
            let count = rest.iter().position(|next| *next == '"');
            let count = count.ok_or_else(|| self.error("a quotation mark is not closed"))?;
            let text = rest.iter().take(count).collect();
            self.at += count + 1;
            return Ok(Some(text));
        }
        let letters = self.letters()?;
        match letters.pattern.as_str() {
            "" => Err(self.error("an end of a range is missing; * is for none")),
            "*" => Ok(None),
            _ => Ok(Some(letters.pattern)),
        }
    }
}

struct Letters {
    text: String,
    /// The same with `*` and `?`.
    pattern: String,
    has_wildcard: bool,
}

/// A value of a named field, which may have words, whole values or numbers.
fn any_value(field: &str, text: &str, word: Query) -> Query {
    let mut kinds = vec![word, Query::Exact { field: field.to_owned(), text: text.to_owned() }];
    if let Ok(number) = text.parse::<f64>() {
        kinds.push(Query::numbers(field, number, number));
    }
    Query::Or(kinds)
}

fn joined(clauses: Vec<(Occurs, Query)>) -> Query {
    let (mut must, mut must_not, mut should) = (Vec::new(), Vec::new(), Vec::new());
    for (occurs, query) in clauses {
        match occurs {
            Occurs::Must => must.push(query),
            Occurs::MustNot => must_not.push(Query::Not(Box::new(query))),
            Occurs::Should => should.push(query),
        }
    }
    if must.is_empty() && should.len() == 1 {
        must.append(&mut should);
    }
    if must.is_empty() && !should.is_empty() {
        must.push(Query::Or(std::mem::take(&mut should)));
    }
    must.append(&mut must_not);
    let all = match (must.len(), must.pop()) {
        (_, None) => return Query::Nothing,
        (1, Some(one)) => one,
        (_, Some(last)) => {
            must.push(last);
            Query::And(must)
        }
    };
    if should.is_empty() { all } else { Query::Preferred(Box::new(all), should) }
}
