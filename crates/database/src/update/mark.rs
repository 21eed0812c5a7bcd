//! What people have read, and how much of it is in which folder.

use scrinium_store::Family;

use super::Transaction;
use super::place::check_placeable;
use crate::error::{DatabaseError, Oversized, Result};
use crate::folder::record::{Mark, MarkChange, Membership, ReadCounts, decode_count, encode_count};
use crate::keys;
use crate::unread::{MAX_READERS, Marked};

impl Transaction<'_> {
    /// Marks a document as read by a person, or as unread.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`], and [`DatabaseError::TooLarge`] for one who would be one reader too many.
    pub(crate) fn mark(&mut self, person: &str, id: String, read: bool) -> Result<Marked> {
        let marked = self.mark_one(person, id, read);
        self.keep_whole(marked)
    }

    fn mark_one(&mut self, person: &str, id: String, read: bool) -> Result<Marked> {
        check_placeable(&id)?;
        if !self.is_alive(&id)? {
            return Err(DatabaseError::missing());
        }
        let number = self.database.number();
        let key = keys::mark(number, &id, person);
        let before = self.records.get(&key)?;
        let before = before.map(|stored| decode(&stored, &id)).transpose()?;
        if before.map_or(!read, |mark| mark.read == read) {
            return Ok(Marked { id, changed: false });
        }
        let memberships = self.memberships(&id)?;
        if before.is_none() {
            self.count_person(&id)?;
        }
        let change_number = self.next_change();
        self.turn(&id, person, before, Mark { read, change_number }, &memberships)?;
        Ok(Marked { id, changed: true })
    }

    /// Gives a mark of one person to another, or to nobody; whether there was one. What either of them has read, the other one has
    /// read then.
    pub(crate) fn move_mark(&mut self, from: &str, to: Option<&str>, id: &str) -> Result<bool> {
        let moved = self.move_one_mark(from, to, id);
        self.keep_whole(moved)
    }

    fn move_one_mark(&mut self, from: &str, to: Option<&str>, id: &str) -> Result<bool> {
        let number = self.database.number();
        let key = keys::mark(number, id, from);
        let Some(stored) = self.records.get(&key)? else { return Ok(false) };
        let mark = decode(&stored, id)?;
        let memberships = self.memberships(id)?;
        if mark.read {
            self.count_read(from, false, &memberships)?;
        }
        self.records.delete(&mut self.batch, key);
        let change = keys::mark_change(number, from, mark.change_number);
        self.batch.delete(Family::Churn, &change);
        let of_other = match to {
            None => None,
            Some(to) => self.records.get(&keys::mark(number, id, to))?,
        };
        let of_other = of_other.map(|stored| decode(&stored, id)).transpose()?;
        match to.filter(|_| mark.read) {
            Some(to) if of_other.is_none_or(|other| !other.read) => {
                let change_number = self.next_change();
                self.turn(id, to, of_other, Mark { read: true, change_number }, &memberships)?;
                if of_other.is_some() {
                    self.count_one_less(id)?;
                }
            }
            _ => self.count_one_less(id)?,
        }
        Ok(true)
    }

    /// What others have read is unread once somebody has edited it.
    pub(super) fn unread_for_others(
        &mut self,
        (id, memberships): (&str, &[(u32, Membership)]),
        editor: Option<&str>,
        change_number: u64,
    ) -> Result<()> {
        let mut marks = self.marks(id)?;
        marks.retain(|(person, mark)| mark.read && Some(person.as_str()) != editor);
        for (person, mark) in marks {
            self.turn(id, &person, Some(mark), Mark { read: false, change_number }, memberships)?;
        }
        Ok(())
    }

    /// Takes away the marks of a document that is gone.
    pub(super) fn forget_marks(&mut self, id: &str, memberships: &[(u32, Membership)]) -> Result<()> {
        let number = self.database.number();
        let marks = self.marks(id)?;
        if !marks.is_empty() {
            self.records.delete(&mut self.batch, keys::marks(number, id));
        }
        for (person, mark) in marks {
            if mark.read {
                self.count_read(&person, false, memberships)?;
            }
            self.header.mark_count = self.header.mark_count.saturating_sub(1);
            self.records.delete(&mut self.batch, keys::mark(number, id, &person));
            let change = keys::mark_change(number, &person, mark.change_number);
            self.batch.delete(Family::Churn, &change);
        }
        Ok(())
    }

    /// Writes a mark that says other than `before`.
    fn turn(
        &mut self,
        id: &str,
        person: &str,
        before: Option<Mark>,
        after: Mark,
        memberships: &[(u32, Membership)],
    ) -> Result<()> {
        let number = self.database.number();
        self.count_read(person, after.read, memberships)?;
        if let Some(before) = before {
            let change = keys::mark_change(number, person, before.change_number);
            self.batch.delete(Family::Churn, &change);
        }
        self.records.put(&mut self.batch, keys::mark(number, id, person), after.encode());
        let change = MarkChange { read: after.read, id: id.to_owned() };
        let key = keys::mark_change(number, person, after.change_number);
        self.batch.put(Family::Churn, &key, &change.encode());
        Ok(())
    }

    fn count_read(&mut self, person: &str, read: bool, memberships: &[(u32, Membership)]) -> Result<()> {
        let counts = self.counts_of(person)?;
        counts.count(read);
        for (folder, _) in memberships {
            counts.count_in(*folder, read);
        }
        Ok(())
    }

    /// How much a person has read, to be changed.
    pub(super) fn counts_of(&mut self, person: &str) -> Result<&mut ReadCounts> {
        if !self.counts.contains_key(person) {
            let stored = self.records.get(&keys::read_counts(self.database.number(), person))?;
            let counts = match stored {
                None => ReadCounts::default(),
                Some(stored) => ReadCounts::decode(&stored)
                    .ok_or_else(|| DatabaseError::damaged("count of what was read", person))?,
            };
            self.counts.insert(person.to_owned(), counts);
        }
        Ok(self.counts.entry(person.to_owned()).or_default())
    }

    /// Who has read a document.
    pub(super) fn readers(&self, id: &str) -> Result<Vec<String>> {
        let readers = self.marks(id)?.into_iter().filter(|(_, mark)| mark.read);
        Ok(readers.map(|(person, _)| person).collect())
    }

    fn marks(&self, id: &str) -> Result<Vec<(String, Mark)>> {
        if self.header.mark_count == 0 {
            return Ok(Vec::new());
        }
        let prefix = keys::marks(self.database.number(), id);
        let mut marks = Vec::new();
        for (key, stored) in self.records.beginning_with(&prefix)? {
            let person = key.get(prefix.len()..).and_then(|person| std::str::from_utf8(person).ok());
            match person.ok_or_else(|| DatabaseError::damaged("mark", id))? {
                // How many there are.
                "" => {}
                person => marks.push((person.to_owned(), decode(&stored, id)?)),
            }
        }
        Ok(marks)
    }

    /// Counts one person less with a mark on a document.
    fn count_one_less(&mut self, id: &str) -> Result<()> {
        let key = keys::marks(self.database.number(), id);
        let stored = self.records.get(&key)?;
        let count = stored.and_then(|stored| decode_count(&stored));
        let count = count.ok_or_else(|| DatabaseError::damaged("count of marks", id))?;
        if count > 1 {
            self.records.put(&mut self.batch, key, encode_count(count - 1));
        } else {
            self.records.delete(&mut self.batch, key);
        }
        self.header.mark_count = self.header.mark_count.saturating_sub(1);
        Ok(())
    }

    /// Counts one more person with a mark on a document.
    fn count_person(&mut self, id: &str) -> Result<()> {
        let key = keys::marks(self.database.number(), id);
        let stored = self.records.get(&key)?;
        let damaged = || DatabaseError::damaged("count of marks", id);
        let count = stored.map_or(Ok(0), |stored| decode_count(&stored).ok_or_else(damaged))?;
        if count >= MAX_READERS {
            return Err(DatabaseError::TooLarge {
                what: Oversized::Readers,
                reason: format!("At most {MAX_READERS} people can have marked one document as read."),
            });
        }
        self.records.put(&mut self.batch, key, encode_count(count + 1));
        self.header.mark_count += 1;
        Ok(())
    }
}

fn decode(stored: &[u8], id: &str) -> Result<Mark> {
    Mark::decode(stored).ok_or_else(|| DatabaseError::damaged("mark", id))
}
