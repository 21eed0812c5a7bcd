//! Entries read in pages, all or those that changed, with values that come in ranges.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;

use scrinium_ldap_wire::{
    DereferenceAliases, Entry, Filter, GeneralizedTime, Identifier, LdapResult, Message, Operation,
    PAGED_RESULTS, PagedResults, ResultCode, Scope, SearchRequest,
};
use thiserror::Error;

use super::{ClientError, Event, SourceClient, Step, Task, accepted};
use crate::entries::{DirectoryKind, ValueRange};

/// Pages without an entry, one after the other.
const EMPTY_PAGES_MAX: usize = 1000;

/// What is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading {
    /// All entries.
    All,
    /// Those that changed since. Some may come again that did not. Who is gone does not come: read
    /// [`Reading::Identities`] for that.
    ChangedSince(Mark),
    /// All entries, of each its identity alone.
    Identities,
}

/// How far a server was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The server, where numbers are its own; else empty.
    pub server: String,
    /// How far.
    pub position: Position,
}

/// A place in the order of a server's changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// The latest `modifyTimestamp` that came.
    Time(GeneralizedTime),
    /// Active Directory's `highestCommittedUSN`, which each of its servers counts by itself.
    Number(u64),
}

/// A text is no [`Mark`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("this is no mark of how far a directory was read")]
pub struct MarkError;

impl fmt::Display for Mark {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.position {
            Position::Time(time) => write!(formatter, "time {time} {}", self.server),
            Position::Number(number) => write!(formatter, "number {number} {}", self.server),
        }
    }
}

impl FromStr for Mark {
    type Err = MarkError;

    fn from_str(text: &str) -> Result<Self, MarkError> {
        let mut words = text.splitn(3, ' ');
        let (kind, position, server) = (words.next(), words.next(), words.next());
        let (position, server) = (position.ok_or(MarkError)?, server.ok_or(MarkError)?);
        let position = match kind {
            Some("time") => Position::Time(GeneralizedTime::parse(position).ok_or(MarkError)?),
            Some("number") => Position::Number(position.parse().map_err(|_| MarkError)?),
            _ => return Err(MarkError),
        };
        Ok(Self { server: server.to_owned(), position })
    }
}

/// What was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Whether all entries came: those that changed were asked for, and another server answered, which counts its changes
    /// by itself.
    pub is_complete: bool,
    /// Where [`Reading::ChangedSince`] goes on; `None` if the server does not say.
    pub mark: Option<Mark>,
    /// References to other servers, which are not followed.
    pub references: usize,
}

/// How far the client is.
#[derive(Debug, Default)]
pub(super) struct Progress {
    has_pages: bool,
    server: String,
    number: Option<u64>,
    latest: Option<GeneralizedTime>,
    is_complete: bool,
    entries: usize,
    page_entries: usize,
    empty_pages: usize,
    references: usize,
    cookie: Vec<u8>,
    /// Whether the values that were asked for came.
    is_answered: bool,
    /// Entries of this page of which values are missing.
    waiting: VecDeque<(Entry, Vec<ValueRange>)>,
}

impl SourceClient {
    /// Asks the server what it can do, and how far its changes are. That comes before the entries, so that what changes
    /// meanwhile is read next time.
    pub(super) fn ask_root(&mut self) {
        let attributes = ["supportedControl", "highestCommittedUSN", "dsServiceName"];
        let search = SearchRequest {
            base: String::new(),
            scope: Scope::Base,
            filter: Filter::any_entry(),
            attributes: attributes.iter().map(|&name| name.to_owned()).collect(),
            ..self.search()
        };
        self.send(Operation::Search(search), Step::Root);
    }

    fn search(&self) -> SearchRequest {
        SearchRequest {
            base: self.options.base.clone(),
            scope: Scope::Subtree,
            aliases: DereferenceAliases::Never,
            size_limit: 0,
            time_limit_s: 0,
            types_only: false,
            filter: self.options.filter.clone(),
            attributes: Vec::new(),
        }
    }

    pub(super) fn found(&mut self, message: Message) -> Result<(), ClientError> {
        match (self.step, message.operation) {
            (_, Operation::SearchReference(_)) => {
                self.read.references = self.read.references.saturating_add(1);
                Ok(())
            }
            (Step::Root, Operation::SearchEntry(root)) => {
                self.learn(&root);
                Ok(())
            }
            (Step::Root, Operation::SearchDone(_)) => self.begin(),
            (Step::Page, Operation::SearchEntry(entry)) => self.entry(entry),
            (Step::Page, Operation::SearchDone(result)) => {
                let page = message.controls.iter().find(|control| control.oid == PAGED_RESULTS);
                let page = page.map(PagedResults::parse).transpose();
                let page = page.map_err(|_| ClientError::Unexpected("its pages"))?;
                self.page_ended(&result, page)
            }
            (Step::Range, Operation::SearchEntry(entry)) => self.range(entry),
            (Step::Range, Operation::SearchDone(result)) => {
                if result.code != ResultCode::NO_SUCH_OBJECT {
                    accepted("the values of an entry", &result)?;
                }
                self.range_ended()
            }
            _ => Err(ClientError::Unexpected("its kind")),
        }
    }

    /// What the root says.
    fn learn(&mut self, root: &Entry) {
        self.read.has_pages = root.values("supportedControl").any(|oid| oid == PAGED_RESULTS.as_bytes());
        self.read.number = root.text("highestCommittedUSN").and_then(|number| number.parse().ok());
        root.text("dsServiceName").unwrap_or_default().clone_into(&mut self.read.server);
    }

    fn begin(&mut self) -> Result<(), ClientError> {
        self.read.is_complete = match &self.task {
            Task::Read(Reading::ChangedSince(mark)) => !self.continues(mark),
            _ => true,
        };
        self.ask_page()
    }

    /// Whether the server counts its changes as the one did that the mark is of.
    fn continues(&self, mark: &Mark) -> bool {
        match (self.options.kind, mark.position) {
            (DirectoryKind::Standard, Position::Time(_)) => true,
            (DirectoryKind::ActiveDirectory, Position::Number(number)) => {
                // A number behind the server's own is of the time before it was restored from a backup.
                mark.server == self.read.server && self.read.number.is_some_and(|now| number <= now)
            }
            _ => false,
        }
    }

    fn ask_page(&mut self) -> Result<(), ClientError> {
        let mut search = self.search();
        let Task::Read(reading) = &self.task else { return Err(ClientError::Step) };
        search.attributes = match reading {
            Reading::Identities => {
                ["objectGUID", "entryUUID", "ipaUniqueID", "nsUniqueId"].map(str::to_owned).to_vec()
            }
            Reading::All | Reading::ChangedSince(_) => self.options.kind.attributes(),
        };
        if let (Reading::ChangedSince(mark), false) = (reading, self.read.is_complete) {
            let (attribute, value) = match mark.position {
                Position::Time(time) => ("modifyTimestamp", time.to_string()),
                // The mark's own change was read.
                Position::Number(number) => ("uSNChanged", number.saturating_add(1).to_string()),
            };
            let attribute = Identifier::parse(attribute).ok_or(ClientError::Step)?;
            let since = Filter::GreaterOrEqual(attribute, value.into_bytes());
            search.filter = Filter::And(vec![search.filter, since]);
        }
        let page = PagedResults { size: self.options.page_size, cookie: self.read.cookie.clone() };
        let controls = if self.read.has_pages { vec![page.control(false)] } else { Vec::new() };
        self.read.page_entries = 0;
        self.send_with(Operation::Search(search), controls, Step::Page);
        Ok(())
    }

    fn entry(&mut self, mut entry: Entry) -> Result<(), ClientError> {
        self.read.entries += 1;
        self.read.page_entries += 1;
        if self.read.entries > self.options.entries_max {
            return Err(ClientError::TooManyEntries(self.options.entries_max));
        }
        let time = entry.text("modifyTimestamp").and_then(GeneralizedTime::parse);
        self.read.latest = self.read.latest.max(time);
        let missing = ValueRange::join(&mut entry);
        check_values(&entry, self.options.values_max)?;
        if missing.is_empty() {
            self.events.push_back(Event::Entry(entry));
        } else {
            self.read.waiting.push_back((entry, missing));
        }
        Ok(())
    }

    fn page_ended(&mut self, result: &LdapResult, page: Option<PagedResults>) -> Result<(), ClientError> {
        accepted("the search", result)?;
        self.read.empty_pages = if self.read.page_entries == 0 { self.read.empty_pages + 1 } else { 0 };
        if self.read.empty_pages > EMPTY_PAGES_MAX {
            return Err(ClientError::EmptyPages);
        }
        self.read.cookie = page.map(|page| page.cookie).unwrap_or_default();
        self.go_on()
    }

    /// The values that are missing, then the next page, then the end.
    fn go_on(&mut self) -> Result<(), ClientError> {
        if let Some((entry, missing)) = self.read.waiting.front()
            && let Some(range) = missing.last()
        {
            let first = range.next.unwrap_or_default();
            let search = SearchRequest {
                base: entry.name.clone(),
                scope: Scope::Base,
                filter: Filter::any_entry(),
                attributes: vec![format!("{};range={first}-*", range.attribute)],
                ..self.search()
            };
            self.send(Operation::Search(search), Step::Range);
            return Ok(());
        }
        if !self.read.cookie.is_empty() {
            return self.ask_page();
        }
        let outcome = Outcome {
            is_complete: self.read.is_complete,
            mark: self.mark(),
            references: self.read.references,
        };
        self.finish(Event::Done(outcome));
        Ok(())
    }

    fn mark(&self) -> Option<Mark> {
        let before = match &self.task {
            Task::Read(Reading::ChangedSince(mark)) => Some(mark),
            Task::Read(Reading::All) => None,
            // Of identities alone nobody knows what changed.
            Task::Read(Reading::Identities) | Task::CheckPassword => return None,
        };
        match self.options.kind {
            DirectoryKind::ActiveDirectory => {
                let number = self.read.number;
                number.map(|number| Mark {
                    server: self.read.server.clone(),
                    position: Position::Number(number),
                })
            }
            DirectoryKind::Standard => match self.read.latest {
                Some(latest) => Some(Mark { server: String::new(), position: Position::Time(latest) }),
                None => before.cloned(),
            },
        }
    }

    /// More values of the entry that waits.
    fn range(&mut self, mut more: Entry) -> Result<(), ClientError> {
        let missing = ValueRange::join(&mut more);
        let Some((entry, ranges)) = self.read.waiting.front_mut() else { return Err(ClientError::Step) };
        // What was asked for is answered. Without a value and without an end it would go on for ever.
        let asked_for = ranges.pop();
        let has_more = more.attributes.iter().any(|attribute| !attribute.values.is_empty());
        let goes_on = |range: &ValueRange| {
            asked_for.as_ref().is_some_and(|asked_for| {
                range.attribute.eq_ignore_ascii_case(&asked_for.attribute) && range.next > asked_for.next
            })
        };
        ranges.extend(missing.into_iter().filter(|range| has_more && goes_on(range)));
        for attribute in more.attributes {
            let known =
                entry.attributes.iter_mut().find(|known| known.name.eq_ignore_ascii_case(&attribute.name));
            match known {
                Some(known) => known.values.extend(attribute.values),
                None => entry.attributes.push(attribute),
            }
        }
        check_values(entry, self.options.values_max)?;
        self.read.is_answered = true;
        Ok(())
    }

    fn range_ended(&mut self) -> Result<(), ClientError> {
        if !std::mem::take(&mut self.read.is_answered) {
            // The entry went in the meantime: the next reading says so.
            self.read.waiting.pop_front();
        } else if self.read.waiting.front().is_some_and(|(_, missing)| missing.is_empty())
            && let Some((entry, _)) = self.read.waiting.pop_front()
        {
            self.events.push_back(Event::Entry(entry));
        }
        self.go_on()
    }
}

fn check_values(entry: &Entry, limit: usize) -> Result<(), ClientError> {
    let values: usize = entry.attributes.iter().map(|attribute| attribute.values.len()).sum();
    if values > limit {
        return Err(ClientError::TooManyValues { name: crate::record::quoted(&entry.name), limit });
    }
    Ok(())
}
