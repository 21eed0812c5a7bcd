//! Tagged arguments that many tests and actions share.

use super::Compiler;
use super::arguments::{Reader, once};
use crate::error::{Position, ScriptError, ScriptFault};
use crate::extension::Extension;
use crate::lexer::shortened;
use crate::matching::{Comparator, MatchKind, Matching, Relation};
use crate::program::{AddressPart, ProgramPlace};
use crate::syntax::Text;

/// What was said of the way to match, the part of an address, and the place of a field.
#[derive(Default)]
pub(crate) struct MatchOptions {
    comparator: Option<(Comparator, Position)>,
    kind: Option<(MatchKind, &'static str, Position)>,
    part: Option<AddressPart>,
    index: Option<u32>,
    last: Option<Position>,
}

impl MatchOptions {
    /// Takes a tag that says how to match; `false` if it is another one.
    pub(crate) fn matching_tag(
        &mut self,
        compiler: &Compiler<'_>,
        (tag, position): (&str, Position),
        reader: &mut Reader<'_>,
    ) -> Result<bool, ScriptError> {
        let what = || format!("\":{tag}\"");
        let kind = match tag {
            "comparator" => {
                let comparator = comparator(compiler, reader.text("the name of a comparator")?)?;
                once(&mut self.comparator, (comparator, position), tag, position)?;
                return Ok(true);
            }
            "is" => (MatchKind::Is, "is", position),
            "contains" => (MatchKind::Contains, "contains", position),
            "matches" => (MatchKind::Matches, "matches", position),
            "regex" => {
                compiler.need(Extension::Regex, what, position)?;
                (MatchKind::Regex, "regex", position)
            }
            "value" => {
                compiler.need(Extension::Relational, what, position)?;
                (MatchKind::Value(relation(reader)?), "value", position)
            }
            "count" => {
                compiler.need(Extension::Relational, what, position)?;
                (MatchKind::Count(relation(reader)?), "count", position)
            }
            _ => return Ok(false),
        };
        once(&mut self.kind, kind, tag, position)?;
        Ok(true)
    }

    /// Takes a tag that says which part of an address is meant (RFC 5228, section 2.7.4; RFC 5233).
    pub(crate) fn address_tag(
        &mut self,
        compiler: &Compiler<'_>,
        (tag, position): (&str, Position),
    ) -> Result<bool, ScriptError> {
        let part = match tag {
            "all" => AddressPart::All,
            "localpart" => AddressPart::LocalPart,
            "domain" => AddressPart::Domain,
            "user" => AddressPart::User,
            "detail" => AddressPart::Detail,
            _ => return Ok(false),
        };
        if matches!(part, AddressPart::User | AddressPart::Detail) {
            compiler.need(Extension::Subaddress, || format!("\":{tag}\""), position)?;
        }
        once(&mut self.part, part, tag, position)?;
        Ok(true)
    }

    /// Takes `:index` and `:last` (RFC 5260, section 6).
    pub(crate) fn place_tag(
        &mut self,
        compiler: &Compiler<'_>,
        (tag, position): (&str, Position),
        reader: &mut Reader<'_>,
        extension: Extension,
    ) -> Result<bool, ScriptError> {
        match tag {
            "index" => {
                compiler.need(extension, || "\":index\"".to_owned(), position)?;
                let number = reader.number("the number of a field")?;
                let index = u32::try_from(number).ok().filter(|index| *index > 0);
                let index = index.ok_or_else(|| {
                    let expected = "the number of a field, from 1".to_owned();
                    ScriptFault::Value { expected, found: format!("{number}") }.at(position)
                })?;
                once(&mut self.index, index, tag, position)?;
            }
            "last" => {
                compiler.need(extension, || "\":last\"".to_owned(), position)?;
                once(&mut self.last, position, tag, position)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    pub(crate) fn part(&self) -> AddressPart {
        self.part.unwrap_or(AddressPart::All)
    }

    /// # Errors
    /// `:last` stands without `:index`.
    pub(crate) fn place(&self) -> Result<Option<ProgramPlace>, ScriptError> {
        match (self.index, self.last) {
            (Some(index), last) => Ok(Some(ProgramPlace { index, from_last: last.is_some() })),
            (None, None) => Ok(None),
            (None, Some(position)) => {
                let what = "\":index\"".to_owned();
                Err(ScriptFault::Missing { owner: ":last".to_owned(), what }.at(position))
            }
        }
    }

    /// How to match, by default `:is` and `i;ascii-casemap` (RFC 5228, sections 2.7.1 and 2.7.3).
    ///
    /// # Errors
    /// The comparator cannot do it.
    pub(crate) fn matching(&self) -> Result<Matching, ScriptError> {
        let comparator = self.comparator.map_or(Comparator::AsciiCasemap, |(comparator, _)| comparator);
        let kind = self.kind.map_or(MatchKind::Is, |(kind, ..)| kind);
        if comparator == Comparator::AsciiNumeric
            && let Some((MatchKind::Contains | MatchKind::Matches | MatchKind::Regex, tag, position)) =
                self.kind
        {
            let fault = ScriptFault::Comparator {
                comparator: comparator.name().to_owned(),
                matching: tag.to_owned(),
            };
            return Err(fault.at(position));
        }
        Ok(Matching { comparator, kind })
    }
}

fn comparator(compiler: &Compiler<'_>, text: &Text) -> Result<Comparator, ScriptError> {
    let Some(comparator) = Comparator::parse(&text.text) else {
        return Err(
            ScriptFault::UnknownExtension(format!("comparator-{}", shortened(&text.text))).at(text.position)
        );
    };
    // The other two need not be required (RFC 5228, section 2.7.3).
    if comparator == Comparator::AsciiNumeric {
        compiler.need(Extension::ComparatorAsciiNumeric, || "this comparator".to_owned(), text.position)?;
    }
    Ok(comparator)
}

fn relation(reader: &mut Reader<'_>) -> Result<Relation, ScriptError> {
    let text = reader.text("a relation")?;
    Relation::parse(&text.text).ok_or_else(|| {
        let expected = "one of \"gt\", \"ge\", \"lt\", \"le\", \"eq\", \"ne\"".to_owned();
        ScriptFault::Value { expected, found: format!("\"{}\"", shortened(&text.text)) }.at(text.position)
    })
}
