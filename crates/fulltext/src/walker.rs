//! The documents that a query finds, one after the other.

use crate::FullTextError;
use crate::address_set::AddressSet;
use crate::format::{ADDRESSES_END, Address};
use crate::phrase;
use crate::term_postings::TermPostings;

/// BM25: how soon more of a word counts no more, and how much the length of a document counts.
const SATURATION: f32 = 1.2;
const LENGTH: f32 = 0.75;

/// A part of a query at work.
pub(crate) enum Walker<'r> {
    Nothing,
    /// Every address from here on.
    All(Address),
    Term(Box<TermPostings<'r>>),
    Set(AddressSet, f32),
    And(Box<AndWalker<'r>>),
    Or(Vec<Branch<'r>>),
    Phrase(Box<PhraseWalker<'r>>),
}

/// All of some, none of others; yet others make the score better.
#[derive(Default)]
pub(crate) struct AndWalker<'r> {
    pub(crate) must: Vec<Walker<'r>>,
    pub(crate) must_not: Vec<Walker<'r>>,
    pub(crate) should: Vec<Walker<'r>>,
    pub(crate) answer: Answer,
}

/// What a walker answered last. Its parts have gone on since, and it may be asked for less than it found.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Answer {
    asked: Address,
    found: Option<Option<Address>>,
}

impl Answer {
    /// The same answer, if it is that to `target` as well.
    fn to(&self, target: Address) -> Option<Option<Address>> {
        self.found.filter(|found| self.asked <= target && found.is_none_or(|found| target <= found))
    }

    fn note(&mut self, asked: Address, found: Option<Address>) -> Option<Address> {
        *self = Self { asked, found: Some(found) };
        found
    }
}

/// One of several, and where it stands: `None` at its end.
pub(crate) struct Branch<'r> {
    walker: Walker<'r>,
    at: Option<Address>,
    has_begun: bool,
}

impl<'r> Branch<'r> {
    pub(crate) fn new(walker: Walker<'r>) -> Self {
        Self { walker, at: None, has_begun: false }
    }
}

/// Words near one another.
pub(crate) struct PhraseWalker<'r> {
    /// With their places in the phrase.
    pub(crate) words: Vec<(TermPostings<'r>, u32)>,
    pub(crate) slop: u32,
    pub(crate) lists: Vec<Vec<i64>>,
    pub(crate) places: Vec<u32>,
    pub(crate) answer: Answer,
}

impl<'r> Walker<'r> {
    /// What all of these find.
    pub(crate) fn all_of(must: Vec<Self>) -> Self {
        Self::And(Box::new(AndWalker { must, ..AndWalker::default() }))
    }

    /// The first document from `target` on. Targets ascend.
    pub(crate) fn advance(&mut self, target: Address) -> Result<Option<Address>, FullTextError> {
        match self {
            Self::Nothing => Ok(None),
            Self::All(first) => Ok(Some(target.max(*first)).filter(|address| *address < ADDRESSES_END)),
            Self::Term(term) => term.advance(target),
            Self::Set(set, _) => Ok(set.from(target)),
            Self::And(and) => and.advance(target),
            Self::Or(branches) => advance_any(branches, target),
            Self::Phrase(phrase) => phrase.advance(target),
        }
    }

    /// What the document at which this stands gets for its score; `ratio` is its length in average lengths.
    pub(crate) fn score(&mut self, at: Address, ratio: f32) -> Result<f32, FullTextError> {
        Ok(match self {
            Self::Nothing | Self::All(_) => 0.0,
            Self::Term(term) => score_of(term, at, ratio)?,
            Self::Set(set, weight) => {
                if set.from(at) == Some(at) {
                    *weight
                } else {
                    0.0
                }
            }
            Self::And(and) => {
                let mut sum = 0.0;
                for walker in &mut and.must {
                    sum += walker.score(at, ratio)?;
                }
                for walker in &mut and.should {
                    if walker.advance(at)? == Some(at) {
                        sum += walker.score(at, ratio)?;
                    }
                }
                sum
            }
            Self::Or(branches) => {
                let mut sum = 0.0;
                for branch in branches.iter_mut().filter(|branch| branch.at == Some(at)) {
                    sum += branch.walker.score(at, ratio)?;
                }
                sum
            }
            Self::Phrase(phrase) => {
                let weight: f32 = phrase.words.iter().map(|(term, _)| term.weight).sum();
                saturated(weight, 1.0, ratio)
            }
        })
    }

    /// Calls `each` with all terms that count for the score.
    pub(crate) fn weigh(
        &mut self,
        each: &mut dyn FnMut(&mut TermPostings<'r>) -> Result<(), FullTextError>,
    ) -> Result<(), FullTextError> {
        match self {
            Self::Nothing | Self::All(_) | Self::Set(..) => Ok(()),
            Self::Term(term) => each(term),
            Self::And(and) => {
                and.must.iter_mut().chain(&mut and.should).try_for_each(|walker| walker.weigh(each))
            }
            Self::Or(branches) => branches.iter_mut().try_for_each(|branch| branch.walker.weigh(each)),
            Self::Phrase(phrase) => phrase.words.iter_mut().try_for_each(|(term, _)| each(term)),
        }
    }
}

fn saturated(weight: f32, frequency: f32, ratio: f32) -> f32 {
    let length = SATURATION * (1.0 - LENGTH + LENGTH * ratio);
    weight * frequency * (SATURATION + 1.0) / (frequency + length)
}

fn score_of(term: &mut TermPostings<'_>, at: Address, ratio: f32) -> Result<f32, FullTextError> {
    if term.weight == 0.0 || term.current() != Some(at) {
        return Ok(0.0);
    }
    let weight = term.weight;
    #[allow(clippy::cast_precision_loss, reason = "more of a word hardly counts")]
    let frequency = term.frequency()? as f32;
    Ok(saturated(weight, frequency, ratio))
}

fn advance_any(branches: &mut [Branch<'_>], target: Address) -> Result<Option<Address>, FullTextError> {
    let mut least: Option<Address> = None;
    for branch in branches {
        let is_behind = branch.at.is_some_and(|at| at < target);
        if is_behind || !branch.has_begun {
            branch.at = branch.walker.advance(target)?;
            branch.has_begun = true;
        }
        least = match (least, branch.at) {
            (Some(least), Some(at)) => Some(least.min(at)),
            (least, at) => least.or(at),
        };
    }
    Ok(least)
}

/// The first address from `target` on that all parts have; with no parts, `target`.
fn meeting<P>(
    parts: &mut [P],
    target: Address,
    mut advance: impl FnMut(&mut P, Address) -> Result<Option<Address>, FullTextError>,
) -> Result<Option<Address>, FullTextError> {
    let mut at = target;
    'from_there: loop {
        for part in &mut *parts {
            match advance(part, at)? {
                None => return Ok(None),
                Some(further) if further > at => {
                    at = further;
                    continue 'from_there;
                }
                Some(_) => {}
            }
        }
        return Ok(Some(at));
    }
}

impl AndWalker<'_> {
    fn advance(&mut self, target: Address) -> Result<Option<Address>, FullTextError> {
        if let Some(found) = self.answer.to(target) {
            return Ok(found);
        }
        let found = self.find(target)?;
        Ok(self.answer.note(target, found))
    }

    fn find(&mut self, target: Address) -> Result<Option<Address>, FullTextError> {
        let mut target = target;
        while let Some(at) = meeting(&mut self.must, target, Walker::advance)? {
            if !self.is_excluded(at)? {
                return Ok(Some(at));
            }
            let Some(next) = at.checked_add(1) else { break };
            target = next;
        }
        Ok(None)
    }

    fn is_excluded(&mut self, at: Address) -> Result<bool, FullTextError> {
        for walker in &mut self.must_not {
            if walker.advance(at)? == Some(at) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl PhraseWalker<'_> {
    fn advance(&mut self, target: Address) -> Result<Option<Address>, FullTextError> {
        if let Some(found) = self.answer.to(target) {
            return Ok(found);
        }
        let found = self.find(target)?;
        Ok(self.answer.note(target, found))
    }

    fn find(&mut self, target: Address) -> Result<Option<Address>, FullTextError> {
        let mut target = target;
        while let Some(at) = meeting(&mut self.words, target, |(word, _), at| word.advance(at))? {
            if self.fits()? {
                return Ok(Some(at));
            }
            let Some(next) = at.checked_add(1) else { break };
            target = next;
        }
        Ok(None)
    }

    fn fits(&mut self) -> Result<bool, FullTextError> {
        for ((word, offset), list) in self.words.iter_mut().zip(&mut self.lists) {
            word.places(&mut self.places)?;
            list.clear();
            list.extend(self.places.iter().map(|place| i64::from(*place) - i64::from(*offset)));
        }
        Ok(phrase::fits(&self.lists, self.slop))
    }
}
