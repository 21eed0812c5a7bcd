//! Bringing a database of another store in, under a new name: how one database is restored next to the live one.
//!
//! Everything that is the database's own comes along as [`crate::transfer`] says. Indexes are rebuilt.

use scrinium_database::header::Header;
use scrinium_database::{DatabaseError, Result, keys};
use scrinium_store::{Direction, Family, KeyRange, ScanOptions};
use scrinium_views::OpenDatabase;

use crate::databases::Databases;
use crate::names;
use crate::transfer::Transfer;

impl Databases {
    /// Makes a database called `name` of the one that `others`, of another store, call `from`. It is there as a whole
    /// when this returns, or not at all. `advance` gets the number of further keys that were copied, and stops it by `false`.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`] if there is none to bring in, [`DatabaseError::Exists`], a name that is not
    /// allowed, [`DatabaseError::Unavailable`] if it was stopped, and what the stores report.
    pub fn adopt(
        &self,
        others: &Self,
        from: &str,
        name: &str,
        advance: &mut dyn FnMut(u64) -> bool,
    ) -> Result<OpenDatabase> {
        names::validate(name)?;
        self.check_free(name)?;
        let (old, source) = others.place_of(from)?;
        let snapshot = source.store.snapshot();
        let header = snapshot.get(Family::Meta, &keys::header(old))?;
        let header = header.and_then(|header| Header::decode(&header));
        let header = header.ok_or_else(|| DatabaseError::damaged("header", from))?;
        let header = Header { name: name.to_owned(), uuid: rand::random(), ..header };
        let to = self.volume_for_new(name, None)?;
        // Until it has its name it counts as one that was dropped, so that a crash leaves nothing.
        let (new, _adopting) = self.reserve_number(&to, &header)?;
        let mut transfer = Transfer::new(&source.contents, &to, (old, new));
        transfer.without_lost = true;
        let mut keys_copied = 0;
        let (first, end) = keys::database_range(old);
        for family in keys::FAMILIES {
            let options = ScanOptions::long(Direction::Forward);
            let mut cursor = snapshot.cursor_with(family, KeyRange::new(&first, &end), options);
            while let Some((key, value)) = cursor.next()? {
                transfer.set(family, key, Some(value))?;
                keys_copied += 1;
                if transfer.is_full() {
                    transfer.commit()?;
                    go_on(advance(std::mem::take(&mut keys_copied)))?;
                }
            }
        }
        transfer.set_apart(&snapshot)?;
        transfer.commit()?;
        go_on(advance(keys_copied))?;
        self.give_name(&to, new, name)
    }
}

fn go_on(may: bool) -> Result<()> {
    let stopped = || DatabaseError::Unavailable { reason: "It was stopped; nothing was made.".to_owned() };
    may.then_some(()).ok_or_else(stopped)
}
