//! Views.
use crate::error::Result;
use crate::rows::Row;
use scrinium_store::Store;
#[derive(Default)]
pub(crate) struct Views {}
impl Views {
    pub(crate) fn design_changed(&self) {}
}
pub(crate) struct ViewRows {}
impl ViewRows {
    pub(crate) fn next_rows(&mut self, _max: usize) -> Result<Vec<Row>> {
        Ok(vec![])
    }
}
pub(crate) fn drop_all(_store: &Store, _number: u32) -> Result<()> {
    Ok(())
}
