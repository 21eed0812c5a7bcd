//! The tree walk (RFC 9989 §4.10): from a name upwards, at most eight questions.

use crate::dns::{Answer, Answers, Missing, Question};
use crate::name::DomainName;

use super::record::{DmarcRecord, PublicSuffix};

/// Labels to which a long name is cut after the first question (RFC 9989 §4.10, step 4).
const LABELS_MAX: usize = 7;

/// Records that a walk found, from the longest name to the shortest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Walk {
    pub(crate) found: Vec<(DomainName, DmarcRecord)>,
    /// A question on the way was not answered.
    pub(crate) has_failed: bool,
}

/// Walks up from a name, until a record says where an organization ends.
pub(crate) fn walk(start: &DomainName, answers: &Answers) -> Result<Walk, Missing> {
    let mut walk = Walk::default();
    let mut next = Some(start.clone());
    while let Some(name) = next {
        match record(&name, answers)? {
            Found::Record(record) => {
                let is_end = record.public_suffix != PublicSuffix::Unknown;
                walk.found.push((name.clone(), record));
                // Steps 2 and 6.
                if is_end {
                    break;
                }
            }
            Found::Nothing => {}
            Found::Failed => walk.has_failed = true,
        }
        next = if name.labels() > LABELS_MAX { Some(name.last_labels(LABELS_MAX)) } else { name.parent() };
    }
    Ok(walk)
}

enum Found {
    Record(DmarcRecord),
    Nothing,
    Failed,
}

fn record(name: &DomainName, answers: &Answers) -> Result<Found, Missing> {
    let Some(name) = name.below("_dmarc") else { return Ok(Found::Nothing) };
    let texts = match answers.get(Question::Texts(name))? {
        Answer::Texts(texts) => texts,
        Answer::NoSuchName | Answer::NoRecords => return Ok(Found::Nothing),
        _ => return Ok(Found::Failed),
    };
    let mut records = texts.iter().filter(|text| DmarcRecord::is_dmarc(text));
    // Steps 2 and 6: of several, all are discarded.
    match (records.next(), records.next()) {
        (Some(record), None) => Ok(DmarcRecord::parse(record).map_or(Found::Nothing, Found::Record)),
        _ => Ok(Found::Nothing),
    }
}

impl Walk {
    /// The organizational domain of the name that the walk began at (RFC 9989 §4.10.2).
    pub(crate) fn organization(&self, start: &DomainName) -> DomainName {
        for (name, record) in &self.found {
            match record.public_suffix {
                PublicSuffix::No => return name.clone(),
                PublicSuffix::Yes if name != start => return start.last_labels(name.labels() + 1),
                _ => {}
            }
        }
        self.found.last().map_or_else(|| start.clone(), |(name, _)| name.clone())
    }

    /// The record that applies to the name that the walk began at (RFC 9989 §4.10.1): its own, its organization's, or that of the
    /// public suffix above.
    pub(crate) fn policy(&self, start: &DomainName) -> Option<&(DomainName, DmarcRecord)> {
        let at = |wanted: &DomainName| self.found.iter().find(|(name, _)| name == wanted);
        let suffix = || self.found.iter().find(|(_, record)| record.public_suffix == PublicSuffix::Yes);
        at(start).or_else(|| at(&self.organization(start))).or_else(suffix)
    }
}
