//! What a user has in sight: the open database, the page of a view, and the documents that were opened.

use rand::rngs::SmallRng;
use rand::seq::index;
use scrinium_lab_script::{Direction, NavigationStep, Stop};

use crate::driver::{EntryPlace, Fetched, From, Page};

/// Documents that a user remembers at most; those opened last are kept.
const REMEMBERED: usize = 64;

/// Documents that a user knows to be unread, at most.
const UNREAD: usize = 256;

#[derive(Debug, Default)]
pub(super) struct UserState {
    pub(super) database: String,
    view: Option<OpenView>,
    /// Documents that were opened or written, with their revisions.
    documents: Vec<(String, String)>,
    /// Documents that were marked as unread and have not been opened since.
    unread: Vec<String>,
    /// The profile that was opened.
    pub(super) profile: Option<Fetched>,
}

#[derive(Debug)]
struct OpenView {
    name: String,
    documents: Vec<String>,
    levels: Vec<u32>,
    last: Option<EntryPlace>,
    /// The document that `Navigate` opened last.
    at: Option<usize>,
}

impl UserState {
    pub(super) fn open_database(&mut self, database: String) {
        self.close_database();
        self.database = database;
    }

    pub(super) fn close_database(&mut self) {
        self.view = None;
        self.documents.clear();
        self.unread.clear();
        self.profile = None;
    }

    /// The name of the open view.
    pub(super) fn view(&self) -> Option<&str> {
        self.view.as_ref().map(|view| view.name.as_str())
    }

    /// Opens a view without a page.
    pub(super) fn open_view(&mut self, name: String) {
        self.view = Some(OpenView { name, documents: Vec::new(), levels: Vec::new(), last: None, at: None });
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
        self.view = Some(OpenView {
            name,
            documents: page.documents,
            levels: page.levels,
            last: page.last,
            at: None,
        });
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
    pub(super) fn turn(&mut self, step: NavigationStep) -> Option<String> {
        let at = self.target(step)?;
        let view = self.view.as_mut()?;
        view.at = Some(at);
        view.documents.get(at).cloned()
    }

    fn target(&self, step: NavigationStep) -> Option<usize> {
        let view = self.view.as_ref()?;
        let length = view.documents.len();
        let last = length.checked_sub(1)?;
        let level = |at: usize| view.levels.get(at).copied().unwrap_or(0);
        let current = view.at.map(|at| at.min(last));
        let level_now = current.map_or(0, level);
        let stops = |at: &usize| match step.stop {
            Stop::Every => true,
            Stop::Main => level(*at) == 0,
            Stop::Peer => level(*at) == level_now,
            Stop::Unread => self.is_unread(view, *at),
            Stop::UnreadMain => level(*at) == 0 && self.is_unread(view, *at),
        };
        let behind = current.map_or(0, |at| at + 1);
        match step.direction {
            Direction::First => Some(0),
            Direction::Last => Some(last),
            Direction::Current => Some(current.unwrap_or(0)),
            Direction::Child => Some(behind).filter(|at| *at < length && level(*at) > level_now),
            Direction::Parent => (0..current?).rev().find(|at| level(*at) < level_now),
            Direction::Next => {
                let again = if step.circular { 0..behind.min(length) } else { 0..0 };
                (behind..length).chain(again).find(stops)
            }
            Direction::Previous => {
                let before = current.unwrap_or(length);
                let again = if step.circular { before..length } else { 0..0 };
                (0..before).rev().chain(again.rev()).find(stops)
            }
        }
    }

    fn is_unread(&self, view: &OpenView, at: usize) -> bool {
        view.documents.get(at).is_some_and(|document| self.unread.contains(document))
    }

    pub(super) fn mark(&mut self, documents: &[String], unread: bool) {
        self.unread.retain(|known| !documents.contains(known));
        if unread {
            self.unread.extend_from_slice(documents);
            let too_many = self.unread.len().saturating_sub(UNREAD);
            self.unread.drain(..too_many);
        }
    }

    /// Some documents of the page in sight, by chance.
    pub(super) fn choose_shown(&self, count: u64, random: &mut SmallRng) -> Vec<String> {
        some_of(&self.shown().iter().collect::<Vec<_>>(), count, random)
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
        self.unread.retain(|known| known != id);
        if let Some(view) = &mut self.view
            && let Some(at) = view.documents.iter().position(|shown| shown == id)
        {
            view.documents.remove(at);
            if at < view.levels.len() {
                view.levels.remove(at);
            }
        }
    }

    /// Some documents that were opened before, or, where there are none, of the page in sight.
    pub(super) fn choose(&self, count: u64, random: &mut SmallRng) -> Vec<String> {
        let opened: Vec<&String> = self.documents.iter().map(|(id, _)| id).collect();
        let from = if opened.is_empty() { self.shown().iter().collect() } else { opened };
        some_of(&from, count, random)
    }
}

fn some_of(from: &[&String], count: u64, random: &mut SmallRng) -> Vec<String> {
    let count = usize::try_from(count).unwrap_or(usize::MAX).min(from.len());
    let chosen = index::sample(random, from.len(), count);
    chosen.iter().filter_map(|index| from.get(index).map(|id| (*id).clone())).collect()
}
