//! Other orders of a view on request: by a column that the reader names, then by the view's own columns.
//!
//! Each is a view of its own, with the same rows and an index that belongs to what it is. The index is begun when
//! somebody first asks for the order, and kept up to date from then on with the views of the design document; after
//! a restart it is known by being stored.

use std::sync::{Arc, OnceLock};

use scrinium_contents::hex;
use scrinium_database::{DatabaseError, InvalidInput, Result, RowQuery};
use serde_json::json;

use crate::definition::{Definition, Sort, Source};
use crate::design::identity_of;
use crate::group::{Group, View};
use crate::open::OpenDatabase;
use crate::registry;

/// An order that a view can be read in: by one of its columns first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Resort {
    /// The number of the column in the view.
    pub(crate) column: usize,
    pub(crate) sort: Sort,
}

/// A view in such an order.
pub(crate) struct Resorted {
    base: Arc<Definition>,
    resort: Resort,
    /// Of its index.
    identity: [u8; 16],
    /// Once somebody has asked for it.
    view: OnceLock<View>,
}

impl Resorted {
    /// All orders of some views; those that are stored are begun.
    pub(super) fn all(database: &OpenDatabase, views: &[View]) -> Result<Vec<Self>> {
        let orders = views
            .iter()
            .flat_map(|view| view.definition.keys.resorts.iter().map(move |resort| (view, *resort)));
        let resorted = |(view, resort): (&View, Resort)| {
            let (base, collation) = (Arc::clone(&view.definition), view.index.collation);
            let definition = resort.definition(&base);
            let identity = registry::stored_identity(&definition.identity, collation);
            let index = registry::stored_index(database, &definition, collation)?;
            let view = index.map(|index| View { definition: Arc::new(definition), index, folder: None });
            Ok(Self { base, resort, identity, view: view.map_or_else(OnceLock::new, OnceLock::from) })
        };
        orders.map(resorted).collect()
    }

    /// Its view, with the index that is stored or a new one.
    fn begin(&self, database: &OpenDatabase) -> Result<&View> {
        if let Some(view) = self.view.get() {
            return Ok(view);
        }
        let definition = self.resort.definition(&self.base);
        let index = registry::index(database, &definition)?;
        Ok(self.view.get_or_init(|| View { definition: Arc::new(definition), index, folder: None }))
    }

    fn answers(&self, view: &str, query: &RowQuery) -> bool {
        let title = self.base.columns.get(self.resort.column).map(|column| column.title.as_str());
        let is_descending = self.resort.sort == Sort::Descending;
        self.base.name == view
            && title == query.resort.as_deref()
            && query.resort_descending.is_none_or(|descending| descending == is_descending)
    }
}

impl Resort {
    fn identity(self, base: &Definition) -> [u8; 16] {
        let order = match self.sort {
            Sort::Ascending => "asc",
            Sort::Descending => "desc",
        };
        identity_of(&json!({"resorted": hex(&base.identity), "column": self.column, "order": order}))
    }

    /// The view whose columns begin with this one; it shows them in the order of the view.
    fn definition(self, base: &Definition) -> Definition {
        let mut definition = base.clone();
        to_the_front(&mut definition.columns, self.column);
        if let Some(first) = definition.columns.first_mut() {
            first.sort = Some(self.sort);
        }
        if let Source::Formulas { columns, .. } = &mut definition.source {
            to_the_front(columns, self.column);
        }
        let place = |column: usize| match column.cmp(&self.column) {
            std::cmp::Ordering::Less => column + 1,
            std::cmp::Ordering::Equal => 0,
            std::cmp::Ordering::Greater => column,
        };
        definition.keys.shown = Some((0..base.columns.len()).map(place).collect());
        definition.keys.resorts = Vec::new();
        definition.identity = self.identity(base);
        definition
    }
}

fn to_the_front<T>(list: &mut [T], place: usize) {
    if let Some(part) = list.get_mut(..=place) {
        part.rotate_right(1);
    }
}

impl Group {
    /// The views that are kept up to date: those of the design document, and their orders that were asked for.
    pub(crate) fn kept(&self) -> impl Iterator<Item = &View> {
        self.views.iter().chain(self.resorted.iter().filter_map(|resorted| resorted.view.get()))
    }

    /// The identities of the indexes of all views and of all their orders, asked for or not.
    pub(super) fn identities(&self) -> impl Iterator<Item = [u8; 16]> {
        let own = self.views.iter().map(|view| view.index.identity);
        own.chain(self.resorted.iter().map(|resorted| resorted.identity))
    }

    /// The view that answers a query: in its own order or in the one asked for, if somebody has begun that.
    pub(super) fn answering(&self, view: &str, query: &RowQuery) -> Option<&View> {
        if query.resort.is_none() {
            return self.view(view);
        }
        self.resorted.iter().find(|resorted| resorted.answers(view, query))?.view.get()
    }

    /// Begins the order that a query asks for, if nobody has yet. Without any there is nothing to do.
    ///
    /// # Errors
    /// `query_parse_error`, naming the columns that the view can be sorted by.
    pub(super) fn begin_order(&self, database: &OpenDatabase, view: &View, query: &RowQuery) -> Result<()> {
        let wrong = |reason: String| Err(DatabaseError::Invalid { input: InvalidInput::Query, reason });
        let Some(title) = &query.resort else {
            return match query.resort_descending {
                None => Ok(()),
                Some(_) => wrong("`resort_order` is of `resort`, which names a column.".to_owned()),
            };
        };
        let name = &view.definition.name;
        let mut answering = self.resorted.iter().filter(|resorted| resorted.answers(name, query));
        match (answering.next(), answering.next()) {
            (Some(resorted), None) => resorted.begin(database).map(|_| ()),
            (Some(_), Some(_)) => wrong(format!(
                "Column `{title}` can be sorted both ways: `resort_order` must be \"asc\" or \"desc\"."
            )),
            (None, _) => wrong(format!(
                "View `{name}` cannot be sorted by `{title}` in this order; available are {}.",
                view.definition.resort_titles()
            )),
        }
    }
}

impl Definition {
    /// The columns that the view can be sorted by, for people.
    fn resort_titles(&self) -> String {
        let mut titles: Vec<String> = Vec::new();
        for resort in &self.keys.resorts {
            let Some(column) = self.columns.get(resort.column) else { continue };
            let order = match resort.sort {
                Sort::Ascending => "asc",
                Sort::Descending => "desc",
            };
            titles.push(format!("`{}` ({order})", column.title));
        }
        if titles.is_empty() { "no column".to_owned() } else { titles.join(", ") }
    }
}
