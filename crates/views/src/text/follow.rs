//! Indexes of words that follow the documents by themselves, and those that are needed no more.

use std::collections::HashSet;

use scrinium_database::{Access, ReadOptions, Result};
use scrinium_document::DESIGN_PREFIX;
use scrinium_document::json::stored_value;

use super::definition;
use super::definition::TextDefinition;
use super::registry::{self, text_error};
use crate::group::access_for_designs;
use crate::open::OpenDatabase;

/// The index of a whole database is brought up to date in the background when it is this many changes behind: fewer are taken
/// in by the next reader, who does not notice them.
const BEHIND: u64 = super::update::SHORT_CHANGES / 2;

impl OpenDatabase {
    /// Whether the database has an index that follows by itself.
    pub(crate) fn follows_text(&self) -> bool {
        self.properties().full_text
    }

    /// Brings the index of the whole database up to date, if there is one and it is far enough behind.
    pub(crate) fn update_followed_text(&self) -> Result<()> {
        if !self.follows_text() {
            return Ok(());
        }
        let text = self.own_text_index()?;
        let reached = match text.index.figures() {
            Ok(figures) => figures.reached,
            Err(error) if error.needs_rebuild() => 0,
            Err(error) => return Err(text_error(error)),
        };
        if self.visible_change_number().saturating_sub(reached) < BEHIND {
            return Ok(());
        }
        self.update_text(&text)
    }

    /// Builds the indexes of words again, from all documents: that of the whole database, and those of design documents of one
    /// name, or all. Returns how many.
    pub(crate) fn update_all_texts(&self, name: Option<&str>, rebuild: bool) -> Result<usize> {
        let mut count = 0;
        for definition in self.text_definitions()? {
            if name.is_some_and(|name| name != definition.name) {
                continue;
            }
            let text = registry::open(self, definition)?;
            if rebuild {
                let _updating = text.updater.lock();
                scrinium_fulltext::FullTextIndex::reset(self.store(), text.id).map_err(text_error)?;
            }
            self.update_text(&text)?;
            count += 1;
        }
        Ok(count)
    }

    /// Removes indexes of words that nothing defines any more. Returns how many.
    pub(crate) fn clean_up_texts(&self) -> Result<usize> {
        let used: HashSet<[u8; 16]> =
            self.text_definitions()?.into_iter().map(|definition| definition.identity).collect();
        registry::drop_unused(self, &used)
    }

    /// All indexes of words that the database has.
    pub(super) fn text_definitions(&self) -> Result<Vec<TextDefinition>> {
        let access: Access = access_for_designs();
        let mut definitions = Vec::new();
        if self.follows_text() {
            definitions.push(TextDefinition::of_documents());
        }
        for design in self.design_names()? {
            let json = self.read(&format!("{DESIGN_PREFIX}{design}"), &ReadOptions::default(), &access)?.json;
            let parsed = stored_value(json.as_str()).unwrap_or_default();
            definitions.extend(definition::parse_stored(&parsed));
        }
        Ok(definitions)
    }
}
