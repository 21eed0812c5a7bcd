//! Whether objects that somebody needs are there, by lists of what is there: a thousand at a time.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

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

/// Looks for objects one after the other, best in the order of their digests: then each folder of a store is listed once,
/// and few names are in memory.
pub struct Survey<'a> {
    objects: &'a Objects,
    deep: bool,
    /// Of one first byte of digests, the folders of all addresses that came up.
    listed: HashMap<(String, String), HashMap<String, u64>>,
    first: Option<u8>,
}

impl<'a> Survey<'a> {
    /// With `deep` each object is read and checked; else its length is looked at.
    #[must_use]
    pub fn new(objects: &'a Objects, deep: bool) -> Self {
        Self { objects, deep, listed: HashMap::new(), first: None }
    }

    /// Why an object is lost; `None`: it is there.
    ///
    /// # Errors
    /// That its store cannot be asked.
    pub fn look(&mut self, Needed { address, stored }: &Needed) -> Result<Option<String>, ObjectError> {
        let first = stored.name.digest.first().copied();
        if self.first != first {
            self.first = first;
            self.listed.clear();
        }
        let folder = match self.listed.entry((address.clone(), stored.name.folder())) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let found = self.objects.list(address, &stored.name.folder())?;
                entry.insert(found.into_iter().collect())
            }
        };
        let object = format!("{address}/{}", stored.name);
        let problem = match folder.get(&stored.name.to_string()) {
            None => format!("{object} is missing"),
            Some(bytes) if *bytes != stored.stored_bytes => {
                format!("{object} has {bytes} bytes instead of {}", stored.stored_bytes)
            }
            Some(_) if self.deep => {
                match self.objects.reader(address, *stored).each(|_| Ok::<_, ObjectError>(true)) {
                    Ok(()) => return Ok(None),
                    Err(error) if error.is_lost() => error.to_string(),
                    Err(error) => return Err(error),
                }
            }
            Some(_) => return Ok(None),
        };
        Ok(Some(problem))
    }
}
