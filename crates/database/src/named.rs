//! Documents that name somebody in fields of names, found by looking at all of them, piece by piece.
//!
//! Deleted leaves are not looked at. It costs a look at each document's record, and none of its contents unless a field is so
//! long that it lies outside.

use std::borrow::Cow;

use scrinium_document::json::stored_value_of_bytes;
use scrinium_document::{FieldValue, is_design};
use scrinium_store::{Direction, Family, KeyRange, Snapshot};
use serde_json::Value;

use crate::database::Database;
use crate::error::{DatabaseError, Result};
use crate::keys;
use crate::leaf::Leaf;

/// The place where the losing leaves begin, behind all winners.
const LOSERS: &str = "c";

/// What a place among the winners begins with; the id of the last document that was looked at follows.
const WINNERS: &str = "b";

/// What is looked for.
#[derive(Clone, Copy)]
pub struct NamedSearch<'a> {
    /// The fields that hold names: a text, or a list of texts.
    pub fields: &'a [&'a str],
    /// Whether a text names whom is looked for.
    pub is_meant: &'a dyn Fn(&str) -> bool,
    /// Leaves that are found at a time, at most.
    pub found_max: usize,
    /// Leaves that are looked at, at most; of a document all or none.
    pub examined_max: usize,
}

/// A leaf in which somebody is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedLeaf {
    /// The document.
    pub id: String,
    /// The leaf's revision.
    pub revision: String,
    /// Whether it is the leaf that everybody finds.
    pub is_winner: bool,
}

/// A piece of what [`Database::named_leaves`] finds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedLeaves {
    /// The leaves.
    pub leaves: Vec<NamedLeaf>,
    /// Where the next piece begins; `None`: this was the last one.
    pub next: Option<String>,
    /// How many leaves were looked at.
    pub examined: usize,
}

impl Database {
    /// Leaves whose fields name somebody, from `place` on, where an earlier piece ended. Design documents are none.
    ///
    /// # Errors
    /// The database is gone, a place of another kind, and what the store reports.
    pub fn named_leaves(&self, search: &NamedSearch<'_>, place: Option<&str>) -> Result<NamedLeaves> {
        self.check_there()?;
        let snapshot = self.store().snapshot();
        let place = place.unwrap_or(WINNERS);
        if let Some(behind) = place.strip_prefix(WINNERS) {
            return self.named_winners(&snapshot, search, behind);
        }
        let behind = place.strip_prefix(LOSERS);
        let behind = behind.ok_or_else(|| DatabaseError::bad_request("a place begins with b or c"))?;
        self.named_losers(&snapshot, search, behind)
    }

    fn named_winners(
        &self,
        snapshot: &Snapshot,
        search: &NamedSearch<'_>,
        behind: &str,
    ) -> Result<NamedLeaves> {
        let (mut from, to) = keys::winner_range(self.number());
        if !behind.is_empty() {
            // The first id that can come next.
            from = keys::winner(self.number(), &format!("{behind}\0"));
        }
        let range = KeyRange { from: &from, to: Some(&to) };
        let mut cursor = snapshot.cursor(Family::Scan, range, Direction::Forward);
        let mut piece = NamedLeaves { next: Some(LOSERS.to_owned()), ..NamedLeaves::default() };
        while let Some((key, stored)) = cursor.next()? {
            let id = keys::id_of(key).ok_or_else(|| DatabaseError::damaged("document", self.name()))?;
            let leaf = Leaf::decode(id, stored)?;
            piece.examined += 1;
            if !leaf.deleted && !is_design(id) && self.names_meant(id, &leaf, search)? {
                let revision = leaf.revision.to_owned();
                piece.leaves.push(NamedLeaf { id: id.to_owned(), revision, is_winner: true });
            }
            if piece.is_full(search) {
                piece.next = Some(format!("{WINNERS}{id}"));
                break;
            }
        }
        Ok(piece)
    }

    fn named_losers(
        &self,
        snapshot: &Snapshot,
        search: &NamedSearch<'_>,
        behind: &str,
    ) -> Result<NamedLeaves> {
        let (mut from, to) = keys::loser_range(self.number());
        if !behind.is_empty() {
            from = keys::successor(&keys::losers(self.number(), behind));
        }
        let range = KeyRange { from: &from, to: Some(&to) };
        let mut cursor = snapshot.cursor(Family::Scan, range, Direction::Forward);
        let (mut piece, mut last) = (NamedLeaves::default(), String::new());
        while let Some((key, stored)) = cursor.next()? {
            let id = keys::id_of_loser(key).ok_or_else(|| DatabaseError::damaged("document", self.name()))?;
            if id != last && !last.is_empty() && piece.is_full(search) {
                piece.next = Some(format!("{LOSERS}{last}"));
                break;
            }
            id.clone_into(&mut last);
            let leaf = Leaf::decode(id, stored)?;
            piece.examined += 1;
            if !leaf.deleted && !is_design(id) && self.names_meant(id, &leaf, search)? {
                let revision = leaf.revision.to_owned();
                piece.leaves.push(NamedLeaf { id: id.to_owned(), revision, is_winner: false });
            }
        }
        Ok(piece)
    }

    fn names_meant(&self, id: &str, leaf: &Leaf<'_>, search: &NamedSearch<'_>) -> Result<bool> {
        let fields = leaf.fields(id)?;
        for field in search.fields {
            let json = match fields.value(field) {
                None => continue,
                Some(FieldValue::Json(json)) => Cow::Borrowed(json.as_bytes()),
                Some(FieldValue::Outside(value)) => match self.context.contents.read_all(&value.digest) {
                    Ok(json) => Cow::Owned(json),
                    // What is lost names nobody.
                    Err(error) if error.is_damage() => continue,
                    Err(error) => return Err(error.into()),
                },
            };
            let names_one = match stored_value_of_bytes(&json) {
                Some(Value::String(name)) => (search.is_meant)(&name),
                Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).any(search.is_meant),
                _ => false,
            };
            if names_one {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl NamedLeaves {
    fn is_full(&self, search: &NamedSearch<'_>) -> bool {
        self.leaves.len() >= search.found_max || self.examined >= search.examined_max
    }
}
