//! Whether objects that somebody needs are there, by lists of what is there: a thousand at a time.

use std::collections::HashMap;

use crate::error::ObjectError;
use crate::objects::{Objects, Stored};

/// An object that somebody needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Needed {
    /// Its store.
    pub address: String,
    /// The object.
    pub stored: Stored,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surveyed {
    /// Objects that were looked for.
    pub objects: u64,
    /// Bytes of those that are there, as their stores have them.
    pub bytes: u64,
    /// Those that are missing or damaged, with why; so many at most as were asked for.
    pub lost: Vec<String>,
    /// How many those are.
    pub lost_count: u64,
}

impl Surveyed {
    fn lose(&mut self, problem: String, told_max: usize) {
        self.lost_count += 1;
        if self.lost.len() < told_max {
            self.lost.push(problem);
        }
    }
}

/// Looks for objects, which come in the order of their digests so that few are in memory at once. With `deep` each is
/// read and checked as well; else its length is looked at. At most `told_max` of the lost ones are named. `advance` is
/// told of the bytes of the next object, and ends it by `false`.
///
/// # Errors
/// That a store cannot be asked, or what `needed` answers.
pub fn survey<E: From<ObjectError>>(
    objects: &Objects,
    needed: impl Iterator<Item = Result<Needed, E>>,
    (deep, told_max): (bool, usize),
    mut advance: impl FnMut(u64) -> bool,
) -> Result<Surveyed, E> {
    let mut surveyed = Surveyed::default();
    // Of one first byte of digests, the folders of all addresses that came up.
    let mut listed: HashMap<(String, String), HashMap<String, u64>> = HashMap::new();
    let mut first = None;
    for needed in needed {
        let Needed { address, stored } = needed?;
        if first != stored.name.digest.first().copied() {
            first = stored.name.digest.first().copied();
            listed.clear();
        }
        let key = (address.clone(), stored.name.folder());
        let folder = match listed.entry(key) {
            std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::hash_map::Entry::Vacant(entry) => {
                let found = objects.list(&address, &stored.name.folder())?;
                entry.insert(found.into_iter().collect())
            }
        };
        surveyed.objects += 1;
        let object = format!("{address}/{}", stored.name);
        match folder.get(&stored.name.to_string()) {
            None => surveyed.lose(format!("{object} is missing"), told_max),
            Some(bytes) if *bytes != stored.stored_bytes => {
                let problem = format!("{object} has {bytes} bytes instead of {}", stored.stored_bytes);
                surveyed.lose(problem, told_max);
            }
            Some(bytes) => {
                surveyed.bytes += bytes;
                if deep {
                    match objects.reader(&address, stored).each(|_| Ok::<_, ObjectError>(true)) {
                        Err(error) if error.is_lost() => surveyed.lose(error.to_string(), told_max),
                        read => read?,
                    }
                }
            }
        }
        if !advance(stored.stored_bytes) {
            break;
        }
    }
    Ok(surveyed)
}
