//! Stands in for methods of `Database` that are on their way; inherent methods win over these.
use scrinium_database::{Database, DatabaseError, Edit, RowQuery, Rows};
use std::sync::Arc;
fn soon<T>() -> Result<T, DatabaseError> {
    Err(DatabaseError::Unavailable { reason: "not yet".to_owned() })
}
pub(crate) trait Soon {
    fn copy_edit(&self, _: &str, _: Option<&str>, _: &str, _: Option<&str>) -> Result<Edit, DatabaseError> {
        soon()
    }
    fn compact(&self) -> Result<(), DatabaseError> {
        soon()
    }
    fn view_info(&self, _: &str) -> Result<serde_json::Value, DatabaseError> {
        soon()
    }
    fn view(&self, _: &str, _: &str, _: RowQuery) -> Result<Rows, DatabaseError> {
        soon()
    }
}
impl Soon for Arc<Database> {}
