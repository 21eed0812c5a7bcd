//! How edits meet what is stored.

/// How edits meet what is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EditMode {
    /// An edit must build on a leaf; it gets a new revision.
    Interactive,
    /// An edit brings its revision and its history (`new_edits=false`), and never conflicts.
    Replicated,
}
