//! Updating indexes, one or several as one.

use parking_lot::MutexGuard;
use scrinium_assertion::always;
use scrinium_store::{Batch, Snapshot};

use crate::format::IndexState;
use crate::plan::{Net, Plan, net};
use crate::recent::{Packed, Recent};
use crate::tree::Tree;
use crate::{Change, Index, IndexError};

/// What changes in one index.
#[derive(Debug)]
pub struct Update<'a> {
    /// The index.
    pub index: &'a Index,
    /// Its changes, as [`Index::update`] takes them.
    pub changes: Vec<Change>,
    /// The change number that it reaches.
    pub reached: u64,
}

/// An index under way from one state to the next.
struct IndexStep<'a> {
    index: &'a Index,
    recent: MutexGuard<'a, Recent>,
    nets: Vec<Net>,
    reached: u64,
}

/// What an index becomes.
struct Next {
    tree: Tree,
    state: IndexState,
    packed: Packed,
}

impl Update<'_> {
    /// As [`Index::update`].
    pub(crate) fn carry_out(self, extra: Batch) -> Result<(), IndexError> {
        Self::all(vec![self], extra)
    }

    /// Carries out the updates of several indexes of one store, and the changes of `extra`, in one batch: a crash
    /// leaves all or nothing of it. Readers see each index change as a whole, one after the other.
    ///
    /// # Errors
    /// As [`Index::update`], and [`IndexError::Unsupported`] if an index comes twice; nothing was changed then.
    pub fn all(mut updates: Vec<Update<'_>>, mut extra: Batch) -> Result<(), IndexError> {
        // In one order for all, so that nobody waits for somebody who waits for him.
        updates.sort_by_key(|update| update.index.layout.id);
        let number = |update: &Update<'_>| update.index.layout.id;
        if updates.windows(2).any(|pair| matches!(pair, [one, next] if number(one) == number(next))) {
            return Err(IndexError::Unsupported { what: "two updates of one index at once" });
        }
        let Some(store) = updates.first().map(|update| update.index.store.clone()) else { return Ok(()) };
        let steps = updates.into_iter().map(IndexStep::begin).collect::<Result<Vec<_>, _>>()?;
        let snapshot = store.snapshot();
        let mut written =
            steps.iter().map(|step| step.write(&snapshot, &mut extra)).collect::<Result<Vec<Next>, _>>();
        if written.is_ok()
            && let Err(error) = store.derived().write(extra)
        {
            written = Err(error.into());
        }
        match written {
            Ok(written) => {
                for (mut step, next) in steps.into_iter().zip(written) {
                    step.recent.take(&next.packed);
                    step.index.publish(next.tree, next.state);
                }
                Ok(())
            }
            Err(error) => {
                steps.iter().for_each(|step| step.index.unfreeze());
                Err(error)
            }
        }
    }
}

impl<'a> IndexStep<'a> {
    fn begin(update: Update<'a>) -> Result<Self, IndexError> {
        let index = update.index;
        let nets = net(update.changes, index.layout.columns)?;
        Ok(Self { index, recent: index.writer.lock(), nets, reached: update.reached })
    }

    /// Adds what changes to the batch. Readers see the present state until the next one is published.
    fn write(&self, snapshot: &Snapshot, batch: &mut Batch) -> Result<Next, IndexError> {
        let layout = self.index.layout;
        let published = self.index.freeze_at(snapshot);
        let plan = Plan::new(layout, snapshot, published.tree, published.state.next_place);
        let (tree, next_place, packed) = plan.carry_out(&self.nets, &self.recent, batch)?;
        let packs = self.recent.numbers_after(&packed);
        let state = IndexState { next_place, reached: self.reached, entries: tree.count(), packs };
        always!(
            next_place >= published.state.next_place
                && packs.0 >= published.state.packs.0
                && packs.0 <= packs.1,
            "no place and no pack of an index is used twice",
            "{state:?} after {:?}",
            published.state
        )?;
        layout.put_state(batch, state);
        Ok(Next { tree, state, packed })
    }
}
