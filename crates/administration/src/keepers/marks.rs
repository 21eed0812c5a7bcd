//! What people have read.

use scrinium_database::Result;
use scrinium_views::OpenDatabase;

use crate::keeper::{NameKeeper, NameOrder, Piece};

/// What a mark takes, about.
const MARK_BYTES: u64 = 200;

/// Unread marks, which are kept by the short names of people.
pub(crate) struct Marks;

impl NameKeeper for Marks {
    fn title(&self) -> &'static str {
        "marks"
    }

    fn change(&self, database: &OpenDatabase, order: &NameOrder<'_>, _place: Option<&str>) -> Result<Piece> {
        if !order.is_of_person {
            return Ok(Piece::default());
        }
        let moved = database.move_marks(order.name, order.new_name)? as u64;
        // What was moved is not there any more, so the next piece begins where this one did.
        let next = (moved > 0).then(String::new);
        Ok(Piece { changed: moved, left: 0, next, bytes: moved * MARK_BYTES })
    }
}
