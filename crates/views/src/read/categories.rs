//! Pages in which the categories of a view are rows themselves, which can be collapsed.
//!
//! In the direction of reading, the row of a category lies right before what is in it: forward at the beginning that
//! all its keys share, backward behind the last key that can begin so. Where a page stands is therefore one place in
//! the order of keys, the *edge* of what is left of a range. A category that the edge lies within is one whose row was
//! given or lies before the page; nothing else has to be remembered from row to row, or from page to page.

use std::collections::HashSet;
use std::sync::Arc;

use scrinium_assertion::never;
use scrinium_database::rows::bytes_of;
use scrinium_database::{CategoryQuery, DatabaseError, InvalidInput, Result, Row, RowQuery, keys};
use scrinium_document::json::JsonText;
use scrinium_store::Direction;
use serde_json::Value;

use super::ViewRows;
use super::range::{KeyColumns, Range, key_prefix};
use super::totals::{Totals, category_key, wanted_totals};
use crate::collection::Collection;
use crate::definition::Source;
use crate::entries::StoredEntry;
use crate::group::View;

/// Keys of categories in one list of a query.
const MOST_KEYS: usize = 1000;

/// Categories within a category that are counted; each costs a look into the index.
const MOST_CHILDREN: u64 = 100;

/// Which rows a page with categories has.
pub(super) struct Categories {
    /// This many elements of the key make a category of each level.
    lengths: Vec<usize>,
    /// Categories of lower levels are expanded.
    level: usize,
    /// What the keys in categories begin with that are expanded, or collapsed, whatever their level.
    expanded: HashSet<Vec<u8>>,
    collapsed: HashSet<Vec<u8>>,
    totals: Totals,
}

/// Checks what a query says of categories. `None`: they are no rows.
pub(super) fn wanted_categories(
    view: &View,
    query: &RowQuery,
    columns: &KeyColumns,
) -> Result<Option<Categories>> {
    let Some(wanted) = &query.categories else { return Ok(None) };
    let definition = &view.definition;
    match definition.source {
        Source::Formulas { .. } => {}
        Source::Script(_) => {
            return Err(wrong("A JavaScript view has no categories: `group_level` gives its totals."));
        }
        Source::Mango(_) => return Err(wrong("A Mango index has no categories.")),
    }
    if wanted_totals(view, query, columns)?.is_some() {
        return Err(wrong(
            "Categories bring their totals: `reduce` and `group` cannot be combined with them.",
        ));
    }
    let CategoryQuery { level, expand, collapse } = wanted;
    let (expanded, collapsed) = (prefixes(expand, columns)?, prefixes(collapse, columns)?);
    if !expanded.is_disjoint(&collapsed) {
        return Err(wrong("A category is in both `expand` and `collapse`."));
    }
    // A column that sorts before them takes categories apart, so that those behind it are none.
    let lengths = definition.sorted().zip(1..).take_while(|((column, _), _)| column.category);
    Ok(Some(Categories {
        lengths: lengths.map(|(_, length)| length).collect(),
        level: level.map_or(usize::MAX, |level| usize::try_from(level).unwrap_or(usize::MAX)),
        expanded,
        collapsed,
        totals: Totals::of_columns(definition),
    }))
}

fn wrong(reason: &str) -> DatabaseError {
    DatabaseError::Invalid { input: InvalidInput::Query, reason: reason.to_owned() }
}

fn prefixes(keys: &[Value], columns: &KeyColumns) -> Result<HashSet<Vec<u8>>> {
    if keys.len() > MOST_KEYS {
        return Err(wrong(&format!("`expand` and `collapse` take at most {MOST_KEYS} keys each.")));
    }
    Ok(keys.iter().map(|key| key_prefix(key, columns)).collect())
}

/// What comes next, going by the next entry.
enum CategoryStep {
    /// The row of its category of this level.
    Category(usize),
    /// Nothing of its category of this level, which is collapsed and behind its row.
    Over(usize),
    /// The entry's own row.
    Entry,
}

impl Categories {
    fn is_expanded(&self, level: usize, prefix: &[u8]) -> bool {
        let is_usual = level < self.level;
        if is_usual { !self.collapsed.contains(prefix) } else { self.expanded.contains(prefix) }
    }

    /// `None`: the entry is damaged.
    fn step(&self, entry: &StoredEntry<'_>, edge: &[u8]) -> Option<CategoryStep> {
        for (level, length) in self.lengths.iter().enumerate() {
            let prefix = entry.category(*length)?;
            let is_within = edge.len() > prefix.len() && edge.starts_with(prefix);
            if !is_within {
                return Some(CategoryStep::Category(level));
            }
            if !self.is_expanded(level, prefix) {
                return Some(CategoryStep::Over(level));
            }
        }
        Some(CategoryStep::Entry)
    }

    /// What all entries begin with that are in the entry's category of this level; of no level, nothing.
    fn prefix<'a>(&self, entry: &StoredEntry<'a>, level: Option<usize>) -> Option<&'a [u8]> {
        match level {
            None => Some(&[]),
            Some(level) => entry.category(*self.lengths.get(level)?),
        }
    }
}

/// What is left of a range.
struct Rest {
    range: Range,
    direction: Direction,
}

impl Rest {
    fn edge(&self) -> &[u8] {
        match self.direction {
            Direction::Forward => &self.range.0,
            Direction::Backward => &self.range.1,
        }
    }

    fn set_edge(&mut self, edge: Vec<u8>) {
        match self.direction {
            Direction::Forward => self.range.0 = edge,
            Direction::Backward => self.range.1 = edge,
        }
    }

    /// Where a page ended whose last row was this category's: a place within it, before what is in it.
    fn place_of_category(&self, prefix: &[u8]) -> Vec<u8> {
        match self.direction {
            Direction::Forward => prefix.to_vec(),
            // No sort key begins with this byte.
            Direction::Backward => [prefix, &[u8::MAX]].concat(),
        }
    }

    /// Goes on behind a row that lies at `place`.
    fn go_behind(&mut self, place: &[u8]) {
        self.set_edge(match self.direction {
            Direction::Forward => keys::next(place),
            Direction::Backward => place.to_vec(),
        });
    }

    /// Goes on behind all that is in a category.
    fn go_over(&mut self, prefix: &[u8]) {
        self.set_edge(match self.direction {
            Direction::Forward => keys::successor(prefix),
            Direction::Backward => prefix.to_vec(),
        });
    }

    /// Goes on at an entry.
    fn go_to(&mut self, key: &[u8]) {
        self.set_edge(match self.direction {
            Direction::Forward => key.to_vec(),
            Direction::Backward => keys::next(key),
        });
    }

    /// What is left of it in a category that the edge lies within, or in all.
    fn within(&self, prefix: &[u8]) -> Range {
        let (from, to) = self.range.clone();
        let end = if prefix.is_empty() { to.clone() } else { keys::successor(prefix) };
        (from.max(prefix.to_vec()), to.min(end))
    }
}

impl ViewRows {
    /// Takes up the categories and goes to where the page begins. Returns the number of entries before it, unless they
    /// would have to be gone through for that.
    pub(super) fn begin_with_categories(
        &mut self,
        mut categories: Categories,
        at: bool,
    ) -> Result<Option<u64>> {
        if at {
            self.expand_first(&mut categories)?;
        }
        let categories = Arc::new(categories);
        self.categories = Some(Arc::clone(&categories));
        let mut rest = Rest { range: (Vec::new(), Vec::new()), direction: self.direction };
        while let Some(range) = self.ranges.pop_front() {
            rest.range = range;
            self.skip_in(&categories, &mut rest)?;
            if self.skip == 0 && self.has_rows(&categories, &mut rest)? {
                self.ranges.push_front(rest.range.clone());
                break;
            }
        }
        if !self.collection.counts_at_once() {
            return Ok(None);
        }
        let before = self.collection.position(rest.edge())?;
        Ok(Some(match self.direction {
            Direction::Forward => before,
            Direction::Backward => self.collection.len()?.saturating_sub(before),
        }))
    }

    /// Expands the categories that the first entry lies in.
    fn expand_first(&self, categories: &mut Categories) -> Result<()> {
        let Some((from, to)) = self.ranges.iter().find(|(from, to)| from < to) else { return Ok(()) };
        let mut cursor = self.collection.cursor(from, to, self.direction, 0)?;
        let Some(entry) = cursor.next()? else { return Ok(()) };
        let entry = self.stored(&entry)?;
        for level in 0..categories.lengths.len() {
            let prefix = categories.prefix(&entry, Some(level)).ok_or_else(|| self.damaged())?;
            categories.collapsed.remove(prefix);
            categories.expanded.insert(prefix.to_vec());
        }
        Ok(())
    }

    /// Leaves out rows of a range: one look into the index for the row of each category and one for all entries of it.
    fn skip_in(&mut self, categories: &Categories, rest: &mut Rest) -> Result<()> {
        let collection = self.collection.clone();
        while self.skip > 0 {
            let (from, to) = &rest.range;
            let mut cursor = collection.cursor(from, to, self.direction, 0)?;
            let Some(entry) = cursor.next()? else { return Ok(()) };
            let entry = self.stored(&entry)?;
            let prefix = |level| categories.prefix(&entry, level).ok_or_else(|| self.damaged());
            match categories.step(&entry, rest.edge()).ok_or_else(|| self.damaged())? {
                CategoryStep::Category(level) => {
                    rest.go_behind(&rest.place_of_category(prefix(Some(level))?));
                    self.skip -= 1;
                }
                CategoryStep::Over(level) => rest.go_over(prefix(Some(level))?),
                CategoryStep::Entry => {
                    let lowest = prefix(categories.lengths.len().checked_sub(1))?;
                    let (first, last) = rest.within(lowest);
                    let count = collection.count_range(&first, &last)?;
                    if count <= self.skip {
                        self.skip -= count;
                        match self.direction {
                            Direction::Forward => rest.set_edge(last),
                            Direction::Backward => rest.set_edge(first),
                        }
                    } else {
                        let mut cursor = collection.cursor(&first, &last, self.direction, self.skip)?;
                        if let Some(entry) = cursor.next()? {
                            rest.go_to(entry.key);
                        }
                        self.skip = 0;
                    }
                }
            }
        }
        Ok(())
    }

    /// The next rows of a range; what is left of it comes next.
    pub(super) fn take_categories(
        &mut self,
        range: Range,
        max_rows: usize,
        rows: &mut Vec<Row>,
    ) -> Result<()> {
        let categories = self.categories.clone();
        let categories = categories.ok_or_else(|| never!("a page with categories knows them"))?;
        let collection = self.collection.clone();
        let mut rest = Rest { range, direction: self.direction };
        let mut bytes = bytes_of(rows);
        // One cursor for the entries that lie side by side, and another behind each collapsed category.
        'cursors: loop {
            let mut cursor = collection.cursor(&rest.range.0, &rest.range.1, self.direction, 0)?;
            loop {
                let Some(stored) = cursor.next()? else { return Ok(()) };
                let entry = self.stored(&stored)?;
                loop {
                    let step = categories.step(&entry, rest.edge()).ok_or_else(|| self.damaged())?;
                    if let CategoryStep::Over(level) = step {
                        rest.go_over(categories.prefix(&entry, Some(level)).ok_or_else(|| self.damaged())?);
                        continue 'cursors;
                    }
                    if self.left == 0 || rows.len() == max_rows || bytes >= self.piece_bytes {
                        self.ranges.push_front(rest.range);
                        return Ok(());
                    }
                    let is_entry = matches!(step, CategoryStep::Entry);
                    let place = match step {
                        CategoryStep::Category(level) => {
                            rows.push(self.category_row(&categories, &entry, level)?);
                            let prefix = categories.prefix(&entry, Some(level));
                            rest.place_of_category(prefix.ok_or_else(|| self.damaged())?)
                        }
                        CategoryStep::Over(_) | CategoryStep::Entry => {
                            let level = u32::try_from(categories.lengths.len()).unwrap_or_default();
                            let level = Some(level + entry.level().unwrap_or_default());
                            let row = Row { level, ..self.row(&entry)? };
                            bytes += row.bytes();
                            rows.push(row);
                            stored.key.to_vec()
                        }
                    };
                    rest.go_behind(&place);
                    self.left -= 1;
                    if self.left == 0 && self.tell_next {
                        self.last = Some(place);
                    }
                    if is_entry {
                        break;
                    }
                }
            }
        }
    }

    /// Whether what is left of a range has rows.
    pub(super) fn has_more(&self, categories: &Categories, range: Range) -> Result<bool> {
        self.has_rows(categories, &mut Rest { range, direction: self.direction })
    }

    /// Goes to the first row of what is left of a range; false if there is none.
    fn has_rows(&self, categories: &Categories, rest: &mut Rest) -> Result<bool> {
        loop {
            let (from, to) = &rest.range;
            let mut cursor = self.collection.cursor(from, to, self.direction, 0)?;
            let Some(entry) = cursor.next()? else { return Ok(false) };
            let entry = self.stored(&entry)?;
            match categories.step(&entry, rest.edge()).ok_or_else(|| self.damaged())? {
                CategoryStep::Category(_) | CategoryStep::Entry => return Ok(true),
                CategoryStep::Over(level) => {
                    rest.go_over(categories.prefix(&entry, Some(level)).ok_or_else(|| self.damaged())?);
                }
            }
        }
    }

    /// The row of the category of this level that an entry lies in, with its totals.
    fn category_row(&self, categories: &Categories, entry: &StoredEntry<'_>, level: usize) -> Result<Row> {
        let damaged = || self.damaged();
        let prefix = categories.prefix(entry, Some(level)).ok_or_else(damaged)?;
        let parent = categories.prefix(entry, level.checked_sub(1)).ok_or_else(damaged)?;
        let above = if parent.is_empty() { vec![u8::MAX] } else { keys::successor(parent) };
        let bounds = (prefix, keys::successor(prefix));
        let collection = &self.collection;
        let mut value = categories.totals.of(collection, (bounds.0, &bounds.1), (parent, &above))?;
        let children = match categories.lengths.get(level + 1) {
            Some(length) => self.children(*length, bounds.0, &bounds.1)?.into(),
            None => value.get("count").cloned().unwrap_or_default(),
        };
        value.insert("children".to_owned(), children);
        let length = categories.lengths.get(level).copied();
        let length =
            length.ok_or_else(|| never!("a category has the length of its level", "level {level}"))?;
        let key = match self.direction {
            Direction::Forward => category_key(&entry.key_json(&self.definition), length),
            // Keys that count as the same may be spelled in different ways: the first one's is shown either way.
            Direction::Backward => {
                let mut cursor = collection.cursor(bounds.0, &bounds.1, Direction::Forward, 0)?;
                let first = cursor.next()?.ok_or_else(damaged)?;
                category_key(&self.stored(&first)?.key_json(&self.definition), length)
            }
        };
        Ok(Row {
            key: key.ok_or_else(damaged)?,
            value: Some(JsonText::from(&Value::Object(value))),
            level: u32::try_from(level).ok(),
            expanded: Some(categories.is_expanded(level, prefix)),
            ..Row::default()
        })
    }

    /// Number of categories of this many elements between two keys; `None`: more than are counted.
    fn children(&self, length: usize, from: &[u8], to: &[u8]) -> Result<Option<u64>> {
        let (collection, mut from): (&Collection, Vec<u8>) = (&self.collection, from.to_vec());
        for count in 0..=MOST_CHILDREN {
            let mut cursor = collection.cursor(&from, to, Direction::Forward, 0)?;
            let Some(entry) = cursor.next()? else { return Ok(Some(count)) };
            let entry = self.stored(&entry)?;
            from = keys::successor(entry.category(length).ok_or_else(|| self.damaged())?);
        }
        Ok(None)
    }
}
