//! Words of names, by which people and groups are found while somebody types.

use std::collections::{BTreeSet, HashSet};
use std::ops::Bound;
use std::sync::Arc;

/// Words of one name, or of what is typed; names have fewer.
const WORDS_MAX: usize = 16;

/// Keys that one question looks at.
const KEYS_MAX: usize = 5_000;

/// The words of everybody's names, each with the id of the document.
#[derive(Default)]
pub(crate) struct NameWords(BTreeSet<(Box<str>, Arc<str>)>);

impl NameWords {
    pub(crate) fn add(&mut self, names: &[String], id: &Arc<str>) {
        self.0.extend(words_of(names).into_iter().map(|word| (word.into_boxed_str(), Arc::clone(id))));
    }

    /// Takes away what [`Self::add`] was given.
    pub(crate) fn remove(&mut self, names: &[String], id: &Arc<str>) {
        for word in words_of(names) {
            self.0.remove(&(word.into_boxed_str(), Arc::clone(id)));
        }
    }

    /// The ids of those with a word that begins so, each once, in the order of the words.
    pub(crate) fn beginning(&self, prefix: &str) -> Vec<&Arc<str>> {
        let first = (Box::<str>::from(prefix), Arc::<str>::from(""));
        let keys = self.0.range((Bound::Included(first), Bound::Unbounded));
        let mut seen = HashSet::new();
        keys.take_while(|(word, _)| word.starts_with(prefix))
            .take(KEYS_MAX)
            .map(|(_, id)| id)
            .filter(|id| seen.insert(*id))
            .collect()
    }
}

/// Whether one of the words of these folded names begins with each of the prefixes.
pub(crate) fn has_all(names: &[String], prefixes: &[String]) -> bool {
    let words = words_of(names);
    prefixes.iter().all(|prefix| words.iter().any(|word| word.starts_with(prefix.as_str())))
}

/// The words of folded names. Of a hierarchical name and of an address what many have in common is left out.
fn words_of(names: &[String]) -> BTreeSet<String> {
    names.iter().flat_map(|name| words_in(name.split(['/', '@']).next().unwrap_or_default())).collect()
}

/// The words of a text, in small letters.
pub(crate) fn words_in(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    words.take(WORDS_MAX).map(str::to_lowercase)
}
