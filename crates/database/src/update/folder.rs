//! Folders are made, changed, renamed and dropped.

use scrinium_store::Family;
use serde_json::Value;

use super::Transaction;
use crate::error::{DatabaseError, InvalidInput, Result};
use crate::folder::name::{SEPARATOR, folded, validate};
use crate::folder::record::{FolderRecord, FolderState, SpecialUse};
use crate::folder::{FolderUse, MAX_FOLDER_PROPERTIES_BYTES, MAX_FOLDERS, columns_text, missing_folder};
use crate::keys;

impl Transaction<'_> {
    /// The number of a folder, if it is there.
    pub(super) fn folder_number(&mut self, name: &str) -> Result<Option<u32>> {
        if let Some(number) = self.folders.get(name) {
            return Ok(Some(*number));
        }
        let number = self.folder_record(name)?.map(|record| record.number);
        if let Some(number) = number {
            self.folders.insert(name.to_owned(), number);
        }
        Ok(number)
    }

    pub(super) fn folder_record(&self, name: &str) -> Result<Option<FolderRecord>> {
        let stored = self.records.get(&keys::folder(self.database.number(), &folded(name)))?;
        let decode = |stored: bytes::Bytes| {
            FolderRecord::decode(&stored).ok_or_else(|| DatabaseError::damaged("folder", name))
        };
        stored.map(decode).transpose()
    }

    /// Checks what [`Transaction::make_folder`] would make.
    ///
    /// # Errors
    /// `illegal_folder_name`, `compilation_error`, `too_many_folders`.
    pub(super) fn check_new_folder(&self, name: &str, columns: Option<&Value>) -> Result<()> {
        validate(name)?;
        columns_text(&*self.database.context.server.designs, name, columns)?;
        if self.header.folder_count < MAX_FOLDERS {
            return Ok(());
        }
        Err(DatabaseError::Invalid {
            input: InvalidInput::FolderCount,
            reason: format!("A database has at most {MAX_FOLDERS} folders."),
        })
    }

    /// Makes a folder unless it is there; `None` stands for the usual columns. Whether it was made.
    pub(super) fn make_folder(
        &mut self,
        name: &str,
        columns: Option<&Value>,
        special_use: Option<SpecialUse>,
    ) -> Result<bool> {
        if self.folder_number(name)?.is_some() {
            return Ok(false);
        }
        let columns = columns_text(&*self.database.context.server.designs, name, columns)?;
        self.header.last_folder += 1;
        self.header.folder_count += 1;
        // IMAP's clients take a folder's contents for those they know while this is the same.
        let now_s = self.now_ms / 1000;
        self.header.last_uid_validity = now_s.max(self.header.last_uid_validity + 1);
        let too_many =
            || DatabaseError::Internal { reason: "The numbers of folders are used up.".to_owned() };
        let record = FolderRecord {
            number: u32::try_from(self.header.last_folder).map_err(|_| too_many())?,
            name: name.to_owned(),
            uid_validity: u32::try_from(self.header.last_uid_validity).map_err(|_| too_many())?,
            columns,
            special_use,
            ..FolderRecord::default()
        };
        self.put_folder(&record);
        self.states.insert(record.number, FolderState::NEW);
        Ok(true)
    }

    /// Makes a folder, or gives one that is there other columns. Whether it was made.
    ///
    /// # Errors
    /// As [`Transaction::check_new_folder`].
    pub(crate) fn define_folder(&mut self, name: &str, columns: Option<&Value>) -> Result<bool> {
        let Some(mut record) = self.folder_record(name)? else {
            self.check_new_folder(name, columns)?;
            return self.make_folder(name, columns, None);
        };
        if let Some(columns) = columns {
            record.columns = columns_text(&*self.database.context.server.designs, name, Some(columns))?;
            self.put_folder(&record);
        }
        Ok(false)
    }

    /// # Errors
    /// [`DatabaseError::NotFound`].
    pub(crate) fn set_folder_use(&mut self, name: &str, folder_use: FolderUse) -> Result<()> {
        let record = self.folder_record(name)?.ok_or_else(|| missing_folder(name))?;
        let kind = folder_use.kind.unwrap_or(record.kind);
        let special_use = folder_use.special_use.unwrap_or(record.special_use);
        let keep_days = folder_use.keep_days.unwrap_or(record.keep_days);
        if (kind, special_use, keep_days) != (record.kind, record.special_use, record.keep_days) {
            self.put_folder(&FolderRecord { kind, special_use, keep_days, ..record });
        }
        Ok(())
    }

    /// # Errors
    /// [`DatabaseError::NotFound`], and what is too long.
    pub(crate) fn set_folder_properties(&mut self, name: &str, properties: &[u8]) -> Result<()> {
        if properties.len() > MAX_FOLDER_PROPERTIES_BYTES {
            return Err(DatabaseError::bad_request(format!(
                "Clients may keep {MAX_FOLDER_PROPERTIES_BYTES} bytes with a folder."
            )));
        }
        let record = self.folder_record(name)?.ok_or_else(|| missing_folder(name))?;
        if record.properties != properties {
            self.put_folder(&FolderRecord { properties: properties.to_vec(), ..record });
        }
        Ok(())
    }

    /// Gives a folder another name, and those within it names that begin with it.
    ///
    /// # Errors
    /// `illegal_folder_name`, [`DatabaseError::NotFound`], [`DatabaseError::Exists`].
    pub(crate) fn rename_folder(&mut self, from: &str, to: &str) -> Result<()> {
        validate(to)?;
        let number = self.database.number();
        let record = self.folder_record(from)?.ok_or_else(|| missing_folder(from))?;
        let within = format!("{}{SEPARATOR}", folded(from));
        let mut renamed = vec![record];
        for (_, stored) in self.records.beginning_with(&keys::folder(number, &within))? {
            renamed
                .push(FolderRecord::decode(&stored).ok_or_else(|| DatabaseError::damaged("folder", from))?);
        }
        let old: Vec<String> = renamed.iter().map(|record| folded(&record.name)).collect();
        for record in &mut renamed {
            // Both begin with the same parts, which may differ in case and so in length.
            let depth = from.split(SEPARATOR).count();
            let rest = record.name.split(SEPARATOR).skip(depth);
            record.name = std::iter::once(to).chain(rest).collect::<Vec<_>>().join(&SEPARATOR.to_string());
            validate(&record.name)?;
            let name = folded(&record.name);
            if !old.contains(&name) && self.folder_record(&name)?.is_some() {
                return Err(DatabaseError::Exists {
                    reason: format!("There is a folder `{}` already.", record.name),
                });
            }
        }
        for name in old {
            self.records.delete(&mut self.batch, keys::folder(number, &name));
        }
        renamed.iter().for_each(|record| self.put_folder(record));
        self.folders.clear();
        Ok(())
    }

    /// Drops a folder; the documents stay. What is stored of what was in it is removed later.
    ///
    /// # Errors
    /// [`DatabaseError::NotFound`].
    pub(crate) fn drop_folder(&mut self, name: &str) -> Result<()> {
        let number = self.database.number();
        let folder = self.folder_record(name)?.ok_or_else(|| missing_folder(name))?.number;
        let total = self.state(folder)?.total;
        self.header.membership_count = self.header.membership_count.saturating_sub(total);
        self.header.folder_count = self.header.folder_count.saturating_sub(1);
        self.records.delete(&mut self.batch, keys::folder(number, &folded(name)));
        self.records.delete(&mut self.batch, keys::folder_state(number, folder));
        self.batch.put(Family::Meta, &keys::dropped_folder(number, folder), &[]);
        self.states.remove(&folder);
        self.folders.clear();
        Ok(())
    }

    fn put_folder(&mut self, record: &FolderRecord) {
        let key = keys::folder(self.database.number(), &folded(&record.name));
        self.records.put(&mut self.batch, key, record.encode());
    }
}
