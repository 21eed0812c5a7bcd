//! What every server keeps by name: documents' fields of names, access lists, unread marks.

mod documents;
mod lists;
mod marks;

use std::sync::Arc;

pub(crate) use documents::Documents;
pub(crate) use lists::{AccessLists, add_new_names};
pub(crate) use marks::Marks;

use crate::keeper::NameKeeper;

/// All of them, in the order in which they are asked: who may do something may do it until documents have the new name.
pub(crate) fn all() -> Vec<Arc<dyn NameKeeper>> {
    vec![Arc::new(Documents), Arc::new(Marks), Arc::new(AccessLists)]
}
