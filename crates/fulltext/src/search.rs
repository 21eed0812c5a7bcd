//! The best of what a query finds.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::FullTextError;
use crate::bookmark::{self, Part, Rank};
use crate::chunks::{ChunkReader, IdReader, chunk_end, place_of};
use crate::document::SortKey;
use crate::format::{Address, ChunkKind, FieldId};
use crate::plan::Planner;
use crate::query::Query;
use crate::reader::{Budget, Reader, Readership};
use crate::term_postings::TermPostings;
use crate::walker::Walker;

/// Parts of a query.
pub(crate) const CLAUSES_MAX: u64 = 1024;

/// What is asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    /// Which documents.
    pub query: Query,
    /// Of those that who may be found.
    pub readership: Readership,
    /// In which order; those equal, and those without an order, the newest first.
    pub sort: Vec<Sort>,
    /// How many at most.
    pub first: usize,
    /// Behind this place in the results: [`Found::bookmark`].
    pub bookmark: Option<String>,
    /// Whether all are counted; else reading ends when no better ones can come.
    pub counts: bool,
    /// What it may cost.
    pub limits: SearchLimits,
}

impl Search {
    /// The first `first`, by relevance.
    #[must_use]
    pub fn new(query: Query, readership: Readership, first: usize) -> Self {
        let (sort, limits) = (vec![Sort::Relevance], SearchLimits::default());
        Self { query, readership, sort, first, bookmark: None, counts: false, limits }
    }

    fn digest(&self) -> u32 {
        bookmark::digest(&format!("{:?} {:?}", self.query, self.sort))
    }
}

/// An order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sort {
    /// By how well the words fit (BM25), the best first. Only documents that the reader may find count for it.
    Relevance,
    /// By a field that was added as [sorted](crate::Field::sorted); documents without it come last.
    Field {
        /// Its name.
        name: String,
        /// Whether the greatest come first.
        is_descending: bool,
    },
}

/// What a query may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchLimits {
    /// Documents under terms that are looked at, each time that they are.
    pub postings_max: u64,
    /// Terms that a prefix, a pattern or a range looks at.
    pub terms_max: u64,
    /// Results at once.
    pub hits_max: usize,
}

impl Default for SearchLimits {
    fn default() -> Self {
        Self { postings_max: 50_000_000, terms_max: 200_000, hits_max: 10_000 }
    }
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The best.
    pub hits: Vec<Hit>,
    /// How many there are in all that the reader may find.
    pub total: Total,
    /// Where they go on, if there are more.
    pub bookmark: Option<String>,
}

/// A document that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// Its id.
    pub id: String,
    /// How well it fits, if that was asked for.
    pub score: Option<f32>,
    /// What it was sorted by, in the order of the fields that were asked for.
    pub keys: Vec<Option<SortKey>>,
}

/// How many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Total {
    /// This number.
    Exactly(u64),
    /// This number was seen; reading ended before all were.
    AtLeast(u64),
}

impl Reader {
    /// The best documents of a search.
    ///
    /// # Errors
    /// [`FullTextError::TooBroad`], [`FullTextError::Bookmark`], [`FullTextError::Damaged`], [`FullTextError::Store`].
    pub fn search(&self, search: &Search) -> Result<Found, FullTextError> {
        let most = search.limits.hits_max;
        if search.first > most {
            return Err(FullTextError::TooBroad { what: "hits", limit: most as u64 });
        }
        let digest = search.digest();
        let after = match &search.bookmark {
            Some(text) => {
                Some(bookmark::decode(text, digest, search.sort.len()).ok_or(FullTextError::Bookmark)?)
            }
            None => None,
        };
        let budget = Budget::new(search.limits.postings_max, search.limits.terms_max);
        let mut walker = self.walker(&budget, &search.query, &search.readership)?;
        let needs_score = search.sort.contains(&Sort::Relevance);
        if needs_score {
            self.weigh(&mut walker, &budget, &search.readership)?;
        }
        let mut ranking = Ranking::new(self, search, after);
        let is_whole = ranking.run(&mut walker, &budget)?;
        let (seen, best) = (ranking.seen, ranking.best.into_sorted_vec());
        let bookmark = best.last().filter(|_| best.len() == search.first);
        let bookmark = bookmark.map(|rank| bookmark::encode(rank, digest));
        let mut ids = Documents::new(self);
        let hits = best.iter().map(|rank| Ok(hit_of(rank, &search.sort, ids.id(rank.address)?)));
        let hits = hits.collect::<Result<Vec<_>, FullTextError>>()?;
        Ok(Found {
            hits,
            total: if is_whole { Total::Exactly(seen) } else { Total::AtLeast(seen) },
            bookmark,
        })
    }

    /// Calls `take` with the id of each document that a query finds, the newest first, until it answers `false`.
    ///
    /// # Errors
    /// As [`search`](Self::search).
    pub fn each(
        &self,
        query: &Query,
        readership: &Readership,
        limits: &SearchLimits,
        take: &mut dyn FnMut(&str) -> bool,
    ) -> Result<(), FullTextError> {
        let budget = Budget::new(limits.postings_max, limits.terms_max);
        let mut walker = self.walker(&budget, query, readership)?;
        let mut documents = Documents::new(self);
        let mut target = 0;
        while let Some(at) = walker.advance(target)? {
            budget.take_postings(1)?;
            if documents.is_there(at)? && !take(documents.id(at)?) {
                return Ok(());
            }
            let Some(next) = at.checked_add(1) else { return Ok(()) };
            target = next;
        }
        Ok(())
    }

    fn walker<'r>(
        &'r self,
        budget: &'r Budget,
        query: &Query,
        readership: &Readership,
    ) -> Result<Walker<'r>, FullTextError> {
        let mut planner = Planner { reader: self, budget, clauses_left: CLAUSES_MAX };
        let walker = planner.plan(query, 1.0, 0)?;
        Ok(match planner.readers(readership) {
            Some(readers) => Walker::all_of(vec![walker, readers]),
            None => walker,
        })
    }

    /// Gives each word its weight, by how few documents have it. Those that the reader may not find do not count: they must not
    /// be guessed from the order of others.
    fn weigh<'r>(
        &'r self,
        walker: &mut Walker<'r>,
        budget: &'r Budget,
        readership: &Readership,
    ) -> Result<(), FullTextError> {
        let planner = Planner { reader: self, budget, clauses_left: 0 };
        let all = match planner.readers(readership) {
            Some(readers) => self.count(readers, budget)?,
            None => self.state.documents,
        };
        walker.weigh(&mut |term: &mut TermPostings<'r>| {
            if term.weight == 0.0 {
                return Ok(());
            }
            let with_it = match planner.readers(readership) {
                Some(readers) => {
                    let term = Walker::Term(Box::new(term.again()));
                    self.count(Walker::all_of(vec![term, readers]), budget)?
                }
                None => term.count()?,
            };
            term.weight *= rarity(with_it, all);
            Ok(())
        })
    }

    fn count(&self, mut walker: Walker<'_>, budget: &Budget) -> Result<u64, FullTextError> {
        let mut documents = Documents::new(self);
        let (mut target, mut count) = (0, 0);
        while let Some(at) = walker.advance(target)? {
            budget.take_postings(1)?;
            count += u64::from(documents.is_there(at)?);
            let Some(next) = at.checked_add(1) else { break };
            target = next;
        }
        Ok(count)
    }
}

/// The weight of a word that `with_it` of `all` documents have.
fn rarity(with_it: u64, all: u64) -> f32 {
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "it is a weight")]
    let (with_it, all) = (with_it as f32, all.max(with_it) as f32);
    ((all - with_it + 0.5) / (with_it + 0.5)).ln_1p()
}

fn hit_of(rank: &Rank, sort: &[Sort], id: &str) -> Hit {
    let (mut score, mut keys) = (None, Vec::new());
    for (part, sort) in rank.parts.iter().zip(sort) {
        match (sort, part) {
            (Sort::Relevance, Part::Number(number)) => {
                score = Some(f32::from_bits(u32::try_from(!number).unwrap_or_default()));
            }
            (Sort::Relevance, _) => {}
            (Sort::Field { is_descending, .. }, Part::Number(number)) => {
                keys.push(Some(SortKey::Number(if *is_descending { !number } else { *number })));
            }
            (_, Part::Text(text) | Part::TextDescending(Reverse(text))) => {
                keys.push(Some(SortKey::Text(text.clone())));
            }
            (_, Part::Missing) => keys.push(None),
        }
    }
    Hit { id: id.to_owned(), score, keys }
}

/// What is said of documents, by their addresses.
struct Documents<'r> {
    reader: &'r Reader,
    dead: ChunkReader<'r>,
    lengths: ChunkReader<'r>,
    ids: IdReader<'r>,
    of_tail: String,
}

impl<'r> Documents<'r> {
    fn new(reader: &'r Reader) -> Self {
        let chunks = |kind| ChunkReader::new(&reader.snapshot, reader.keys, kind);
        Self {
            reader,
            dead: chunks(ChunkKind::Dead),
            lengths: chunks(ChunkKind::Lengths),
            ids: IdReader::new(&reader.snapshot, reader.keys),
            of_tail: String::new(),
        }
    }

    /// Whether it can be found.
    fn is_there(&mut self, at: Address) -> Result<bool, FullTextError> {
        let is_dead = self.reader.has_dead && self.dead.is_marked(at)?;
        Ok(!is_dead && (self.reader.hidden.is_empty() || !self.reader.hidden.contains(&at)))
    }

    fn id(&mut self, at: Address) -> Result<&str, FullTextError> {
        let Some(segment) = self.reader.tail_segment(at) else { return self.ids.id(at) };
        let damaged = || self.reader.keys.damaged("a document of its tail cannot be read");
        let document = segment.document(at).ok_or_else(damaged)?;
        self.of_tail.clear();
        self.of_tail.push_str(document.id);
        Ok(&self.of_tail)
    }

    fn words(&mut self, at: Address) -> Result<f32, FullTextError> {
        let Some(segment) = self.reader.tail_segment(at) else { return self.lengths.words(at) };
        #[allow(clippy::cast_precision_loss, reason = "it is rounded elsewhere, too")]
        let words = segment.document(at).map_or(0, |document| document.words) as f32;
        Ok(words)
    }
}

/// One field that results are sorted by.
struct Column<'r> {
    field: FieldId,
    chunks: ChunkReader<'r>,
    is_descending: bool,
}

impl Column<'_> {
    fn part(&self, key: Option<SortKey>) -> Part {
        match (key, self.is_descending) {
            (None, _) => Part::Missing,
            (Some(SortKey::Number(number)), true) => Part::Number(!number),
            (Some(SortKey::Number(number)), false) => Part::Number(number),
            (Some(SortKey::Text(text)), true) => Part::TextDescending(Reverse(text)),
            (Some(SortKey::Text(text)), false) => Part::Text(text),
        }
    }

    /// The best that a chunk has, where that is known.
    fn best_of(&mut self, chunk: u32) -> Result<Option<Part>, FullTextError> {
        let range = self.chunks.range(chunk)?;
        Ok(range.map(|(least, greatest)| Part::Number(if self.is_descending { !greatest } else { least })))
    }
}

/// The best so far.
struct Ranking<'r, 's> {
    reader: &'r Reader,
    documents: Documents<'r>,
    /// `None`: by relevance.
    columns: Vec<Option<Column<'r>>>,
    search: &'s Search,
    after: Option<Rank>,
    /// The worst of them is on top.
    best: BinaryHeap<Rank>,
    seen: u64,
    chunk: Option<u32>,
}

impl<'r, 's> Ranking<'r, 's> {
    fn new(reader: &'r Reader, search: &'s Search, after: Option<Rank>) -> Self {
        let column = |sort: &Sort| match sort {
            Sort::Relevance => None,
            Sort::Field { name, is_descending } => {
                let field = FieldId::of(name);
                let chunks = ChunkReader::new(&reader.snapshot, reader.keys, ChunkKind::Column(field));
                Some(Column { field, chunks, is_descending: *is_descending })
            }
        };
        Self {
            reader,
            documents: Documents::new(reader),
            columns: search.sort.iter().map(column).collect(),
            search,
            after,
            best: BinaryHeap::with_capacity(search.first.saturating_add(1)),
            seen: 0,
            chunk: None,
        }
    }

    /// Looks at all that is found; whether it was all.
    fn run(&mut self, walker: &mut Walker<'r>, budget: &Budget) -> Result<bool, FullTextError> {
        let mut target = 0;
        let mut is_whole = true;
        if self.search.first == 0 && !self.search.counts {
            return Ok(false);
        }
        while let Some(at) = walker.advance(target)? {
            budget.take_postings(1)?;
            let Some(next) = at.checked_add(1) else { break };
            target = next;
            if !self.search.counts && self.is_full() {
                match self.next_that_may_be_better(at)? {
                    Some(better) if better > at => {
                        target = better;
                        is_whole = false;
                        continue;
                    }
                    Some(_) => {}
                    None => return Ok(false),
                }
            }
            if self.documents.is_there(at)? {
                self.seen += 1;
                self.take(at, walker)?;
            }
        }
        Ok(is_whole)
    }

    fn is_full(&self) -> bool {
        self.best.len() >= self.search.first
    }

    /// The first document from `at` on that may be better than the worst of the best. `None`: none can.
    fn next_that_may_be_better(&mut self, at: Address) -> Result<Option<Address>, FullTextError> {
        let worst = self.best.peek().and_then(|worst| worst.parts.first());
        let (number, _) = place_of(at);
        match (self.columns.first_mut(), worst) {
            // Addresses ascend, and nothing else counts.
            (None, _) => Ok(None),
            (Some(Some(column)), Some(worst)) if self.chunk != Some(number) => {
                if self.reader.tail_segment(at).is_some() {
                    return Ok(Some(at));
                }
                self.chunk = Some(number);
                match column.best_of(number)? {
                    // What is as good is better only by what else counts.
                    Some(best) if best > *worst || (best == *worst && self.search.sort.len() == 1) => {
                        self.chunk = None;
                        Ok(chunk_end(number))
                    }
                    _ => Ok(Some(at)),
                }
            }
            _ => Ok(Some(at)),
        }
    }

    fn part(&mut self, number: usize, at: Address, walker: &mut Walker<'r>) -> Result<Part, FullTextError> {
        match self.columns.get_mut(number) {
            Some(Some(column)) => {
                let key = match self.reader.tail_segment(at) {
                    Some(segment) => {
                        let columns =
                            segment.document(at).map(|document| document.columns).unwrap_or_default();
                        columns.into_iter().find(|(field, _)| *field == column.field).map(|(_, key)| key)
                    }
                    None => column.chunks.sort_key(at)?,
                };
                Ok(column.part(key))
            }
            _ => {
                let ratio = self.documents.words(at)? / self.average();
                let score = walker.score(at, ratio)?.max(0.0);
                Ok(Part::Number(!u64::from(score.to_bits())))
            }
        }
    }

    /// Words of an ordinary document. Where some are hidden, their lengths must not be told from the scores of others.
    fn average(&self) -> f32 {
        const ORDINARY: f32 = 250.0;
        let sees_all = self.search.readership == Readership::Everything || self.reader.state.restricted == 0;
        if sees_all { self.reader.average_words() } else { ORDINARY }
    }

    fn take(&mut self, at: Address, walker: &mut Walker<'r>) -> Result<(), FullTextError> {
        let mut parts = Vec::new();
        for number in 0..self.columns.len() {
            let part = self.part(number, at, walker)?;
            if number == 0
                && self.is_full()
                && self.best.peek().is_some_and(|worst| worst.parts.first() < Some(&part))
            {
                return Ok(());
            }
            parts.push(part);
        }
        let rank = Rank { parts, address: at };
        if self.after.as_ref().is_some_and(|after| rank <= *after) {
            return Ok(());
        }
        if !self.is_full() {
            self.best.push(rank);
        } else if let Some(mut worst) = self.best.peek_mut()
            && rank < *worst
        {
            *worst = rank;
        }
        Ok(())
    }
}
