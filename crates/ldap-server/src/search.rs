//! Searches of the directory, for somebody.

use std::sync::Arc;

use scrinium_database::{DatabaseError, Identity, ReadOptions, Result, RowQuery};
use scrinium_directory::{ADDRESS_READERS, DIRECTORY_DATABASE, Directory, Found, NameLookup};
use scrinium_ldap::Search;
use scrinium_ldap_wire::{DistinguishedName, Entry, NormalName, Scope, Truth};
use scrinium_mail::Resolver;
use serde_json::Value;

use crate::entries::{Lookup, Named, Names, Sight};

/// Documents that one piece of a search looks at: some ten milliseconds of a thread.
const PIECE_DOCUMENTS: usize = 500;

/// Documents that are held at once, in bytes.
const ROWS_BYTES: usize = 1 << 20;

/// Entries of one answer, in bytes; the last one may be longer.
const ANSWER_BYTES: usize = 1 << 20;

/// An answer is there as entries, as messages and as bytes.
const COPIES: usize = 3;

/// Finds entries for people.
pub(crate) struct Searcher {
    pub(crate) directory: Arc<Directory>,
    pub(crate) resolver: Resolver,
    pub(crate) names: Names,
}

/// What became of one piece of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It went on.
    Searched,
    /// There is no entry where it begins.
    NoSuchEntry,
}

/// What was found so far, and where it goes on.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    entries: Vec<Entry>,
    bytes: usize,
    /// How many of the entries that hold others were looked at.
    above: usize,
    /// The id of the last document that was looked at.
    behind: Option<String>,
    /// Whether nothing is left to look at.
    pub(crate) is_over: bool,
    /// Documents that were looked at.
    pub(crate) examined: usize,
}

impl Progress {
    /// Where a search begins, or goes on. `None`: it is to go on at a place that none of our pages has named.
    pub(crate) fn begin(search: &Search) -> Option<Self> {
        let Some(after) = &search.after else { return Some(Self::default()) };
        let (above, behind) = std::str::from_utf8(after).ok()?.split_at_checked(1)?;
        let behind = Some(behind.to_owned()).filter(|id| !id.is_empty());
        Some(Self { above: above.parse().ok()?, behind, ..Self::default() })
    }

    /// Without pages one more is looked for, so that it is known whether there are more.
    pub(crate) fn is_full(&self, search: &Search) -> bool {
        let wanted = search.entries_max.saturating_add(usize::from(!search.is_paged));
        self.entries.len() >= wanted || self.bytes >= ANSWER_BYTES
    }

    /// What the entries hold until they are sent.
    pub(crate) const fn held_bytes(&self) -> usize {
        self.bytes.saturating_mul(COPIES)
    }

    /// The entries, and where the next ones begin, if there may be more.
    pub(crate) fn into_page(mut self, search: &Search) -> (Vec<Entry>, Option<Vec<u8>>) {
        let has_more = !self.is_over || self.entries.len() > search.entries_max;
        self.entries.truncate(search.entries_max);
        let place = format!("{}{}", self.above, self.behind.unwrap_or_default());
        (self.entries, has_more.then(|| place.into_bytes()))
    }

    fn consider(&mut self, entry: Entry, search: &Search, base: &NormalName) {
        let Ok(name) = DistinguishedName::parse(&entry.name) else { return };
        let is_within = match (search.scope, NormalName::of(&name).depth_below(base)) {
            (_, None) => false,
            (Scope::Base, Some(depth)) => depth == 0,
            (Scope::OneLevel, Some(depth)) => depth == 1,
            (Scope::Subtree, Some(_)) => true,
            (Scope::Subordinates, Some(depth)) => depth > 0,
        };
        if is_within && search.matcher.matches(&entry) == Truth::True {
            let values = entry.attributes.iter().flat_map(|one| &one.values);
            self.bytes += entry.name.len() + values.map(Vec::len).sum::<usize>();
            self.entries.push(entry);
        }
    }
}

impl Searcher {
    /// The directory's database, for somebody who may read it.
    fn open(&self, identity: &Identity) -> Result<Sight> {
        let databases = self.directory.databases();
        let whole = databases.open_for(DIRECTORY_DATABASE, identity)?;
        whole.access().check_reader()?;
        let addresses = databases.open_for(DIRECTORY_DATABASE, &identity.in_group(ADDRESS_READERS))?;
        Ok(Sight { whole, addresses })
    }

    /// One piece of a search.
    ///
    /// # Errors
    /// [`DatabaseError::Forbidden`] for who may not read the directory, and what the store reports.
    pub(crate) fn piece(
        &self,
        identity: &Identity,
        search: &Search,
        progress: &mut Progress,
    ) -> Result<Outcome> {
        let sight = self.open(identity)?;
        let base = NormalName::of(&search.base);
        let named = self.names.find(&search.base);
        let id = match &named {
            Named::Nothing => return Ok(Outcome::NoSuchEntry),
            // Nothing is below a person or group.
            Named::Person(_) | Named::Group(_) => {
                let Some(entry) = self.named(&sight, &named)? else { return Ok(Outcome::NoSuchEntry) };
                progress.consider(entry, search, &base);
                progress.is_over = true;
                return Ok(Outcome::Searched);
            }
            Named::Above => self.only_document(search),
        };
        match id {
            Some(None) => progress.is_over = true,
            Some(Some(id)) => {
                let entry = self.entry_of(&sight, &id)?;
                entry.into_iter().for_each(|entry| progress.consider(entry, search, &base));
                progress.is_over = true;
            }
            None => self.all(&sight, search, &base, progress)?,
        }
        Ok(Outcome::Searched)
    }

    /// The one document whose entry can match, where the filter asks for one short name or address; `Some(None)` where nobody has it.
    fn only_document(&self, search: &Search) -> Option<Option<String>> {
        let key = search.key.as_deref()?;
        let found = match self.directory.find(key) {
            Found::Nobody => self.resolver.find(key),
            found => found,
        };
        match found {
            Found::Person(person) => Some(Some(person.id.clone())),
            Found::Group(group) => Some(Some(group.id.clone())),
            Found::MailIn(_) | Found::Nobody => Some(None),
            Found::Several => None,
        }
    }

    fn all(&self, sight: &Sight, search: &Search, base: &NormalName, progress: &mut Progress) -> Result<()> {
        for entry in self.names.above().into_iter().skip(progress.above) {
            if progress.is_full(search) {
                return Ok(());
            }
            progress.above += 1;
            progress.consider(entry, search, base);
        }
        if search.scope == Scope::Base {
            progress.is_over = true;
            return Ok(());
        }
        self.documents(sight, search, base, progress)
    }

    fn documents(
        &self,
        sight: &Sight,
        search: &Search,
        base: &NormalName,
        progress: &mut Progress,
    ) -> Result<()> {
        let query = RowQuery {
            // The first id that can come next.
            start_key: progress.behind.as_ref().map(|id| Value::from(format!("{id}\0"))),
            limit: Some(PIECE_DOCUMENTS as u64),
            include_documents: true,
            piece_bytes: Some(ROWS_BYTES),
            ..RowQuery::default()
        };
        let mut rows = sight.addresses.all_documents(query)?;
        let mut seen = 0;
        while seen < PIECE_DOCUMENTS {
            let some = rows.next_rows(PIECE_DOCUMENTS - seen)?;
            if some.is_empty() {
                progress.is_over = true;
                return Ok(());
            }
            for row in some {
                if progress.is_full(search) {
                    return Ok(());
                }
                seen += 1;
                progress.examined += 1;
                if let Some(document) = row.document.as_ref().and_then(|document| document.to_object())
                    && let Some(entry) = self.names.entry(&document, &self.lookup(sight))?
                {
                    progress.consider(entry, search, base);
                }
                progress.behind = row.id;
            }
        }
        Ok(())
    }

    fn lookup<'s>(&'s self, sight: &'s Sight) -> Lookup<'s> {
        Lookup { directory: self.directory.as_ref(), resolver: &self.resolver, sight }
    }

    /// The entry of a name.
    fn named(&self, sight: &Sight, named: &Named) -> Result<Option<Entry>> {
        let (Named::Person(name) | Named::Group(name)) = named else { return Ok(None) };
        let id = match (self.directory.find(name), named) {
            (Found::Person(person), Named::Person(_)) => person.id.clone(),
            (Found::Group(group), Named::Group(_)) => group.id.clone(),
            _ => return Ok(None),
        };
        let entry = self.entry_of(sight, &id)?;
        // People answer to further names, which are not those of their entries.
        let is_it = |entry: &Entry| {
            DistinguishedName::parse(&entry.name).is_ok_and(|name| self.names.find(&name).is(named))
        };
        Ok(entry.filter(is_it))
    }

    /// The entry of a document, as somebody may see it.
    fn entry_of(&self, sight: &Sight, id: &str) -> Result<Option<Entry>> {
        match sight.addresses.read(id, &ReadOptions::default()) {
            Ok(found) => match found.json.to_object() {
                Some(document) => self.names.entry(&document, &self.lookup(sight)),
                None => Ok(None),
            },
            Err(DatabaseError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The entry with this name, for a compare.
    ///
    /// # Errors
    /// As [`Searcher::piece`].
    pub(crate) fn entry(&self, identity: &Identity, name: &DistinguishedName) -> Result<Option<Entry>> {
        let sight = self.open(identity)?;
        let named = self.names.find(name);
        if named == Named::Above {
            let base = NormalName::of(name);
            let is_it = |entry: &Entry| {
                DistinguishedName::parse(&entry.name).is_ok_and(|name| NormalName::of(&name) == base)
            };
            return Ok(self.names.above().into_iter().find(is_it));
        }
        self.named(&sight, &named)
    }
}
