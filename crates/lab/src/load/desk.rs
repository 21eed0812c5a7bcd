//! What a user has in sight: the open database, the page of a view, and the documents that were opened.

use rand::rngs::SmallRng;
use rand::seq::index;

use crate::driver::{EntryPlace, From, Page};
use crate::script::Direction;

/// Documents that a user remembers at most; those opened last are kept.
const REMEMBERED: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Desk {
    pub(super) database: String,
    view: Option<OpenView>,
    /// Documents that were opened or written, with their revisions.
    documents: Vec<(String, String)>,
}

#[derive(Debug)]
struct OpenView {
    name: String,
    documents: Vec<String>,
    last: Option<EntryPlace>,
    /// The document that `Navigate` opened last.
    at: Option<usize>,
}

impl Desk {
    pub(super) fn open_database(&mut self, database: String) {
        self.close_database();
        self.database = database;
    }

    pub(super) fn close_database(&mut self) {
        self.view = None;
        self.documents.clear();
    }

    pub(super) fn close_view(&mut self) {
        self.view = None;
    }

    /// Puts a page in sight. Scrolling on at the end of a view leaves the last page there, and goes to the
    /// first one next.
    pub(super) fn show(&mut self, name: String, page: Page) {
        if let Some(view) = self.view.as_mut().filter(|view| page.documents.is_empty() && view.name == name) {
            view.last = None;
            return;
        }
        self.view = Some(OpenView { name, documents: page.documents, last: page.last, at: None });
    }

    /// The open view, and where its next page begins; after the last page comes the first again.
    pub(super) fn next_page(&self) -> Option<(String, From)> {
        let view = self.view.as_ref()?;
        let from = view.last.clone().map_or(From::Position(0), From::After);
        Some((view.name.clone(), from))
    }

    /// The documents of the page in sight.
    pub(super) fn shown(&self) -> &[String] {
        self.view.as_ref().map_or(&[], |view| &view.documents)
    }

    /// Goes to another document of the page; `None` when there is none there.
    pub(super) fn turn(&mut self, direction: Direction, circular: bool) -> Option<String> {
        let view = self.view.as_mut()?;
        let last = view.documents.len().checked_sub(1)?;
        let at = match (direction, view.at) {
            (Direction::Next, None) | (Direction::Current, None) => Some(0),
            (Direction::Previous, None) => Some(last),
            (Direction::Current, Some(at)) => Some(at.min(last)),
            (Direction::Next, Some(at)) if at < last => Some(at + 1),
            (Direction::Next, Some(_)) => circular.then_some(0),
            (Direction::Previous, Some(0)) => circular.then_some(last),
            (Direction::Previous, Some(at)) => Some((at - 1).min(last)),
        }?;
        view.at = Some(at);
        view.documents.get(at).cloned()
    }

    /// The last known revision of a document.
    pub(super) fn revision(&self, id: &str) -> Option<String> {
        self.documents.iter().find(|(known, _)| known == id).map(|(_, revision)| revision.clone())
    }

    pub(super) fn know(&mut self, id: &str, revision: &str) {
        self.documents.retain(|(known, _)| known != id);
        if self.documents.len() >= REMEMBERED {
            self.documents.remove(0);
        }
        self.documents.push((id.to_owned(), revision.to_owned()));
    }

    /// The document is gone.
    pub(super) fn forget(&mut self, id: &str) {
        self.documents.retain(|(known, _)| known != id);
        if let Some(view) = &mut self.view {
            view.documents.retain(|shown| shown != id);
        }
    }

    /// Some documents that were opened before, or, where there are none, of the page in sight.
    pub(super) fn choose(&self, count: u64, random: &mut SmallRng) -> Vec<String> {
        let opened: Vec<&String> = self.documents.iter().map(|(id, _)| id).collect();
        let from = if opened.is_empty() { self.shown().iter().collect() } else { opened };
        let count = usize::try_from(count).unwrap_or(usize::MAX).min(from.len());
        let chosen = index::sample(random, from.len(), count);
        chosen.iter().filter_map(|index| from.get(index).map(|id| (*id).clone())).collect()
    }
}
