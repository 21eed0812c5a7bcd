//! Who may send as whom, as sessions ask it.

use scrinium_directory::Person;
use scrinium_mail::{Resolver, SendRight};

/// Knows who may send as whom.
pub trait SendRights: Send + Sync {
    /// Whether a person may send as `address`, which is `local@domain`, in any case. It is asked for each message, and must not
    /// block.
    fn right(&self, person: &Person, address: &str) -> SendRight;
}

/// Everybody sends as who they are, and as those who let them.
impl SendRights for Resolver {
    fn right(&self, person: &Person, address: &str) -> SendRight {
        self.send_right(person, address)
    }
}
