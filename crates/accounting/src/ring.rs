//! Lists in the order of adding, whose members know their neighbours, so that each can leave in constant time.

/// Where a member stands in one list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Links {
    before: Option<usize>,
    after: Option<usize>,
}

/// The ends of one list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ring {
    first: Option<usize>,
    last: Option<usize>,
}

/// Gives the links of the member at an index.
pub(crate) trait Members {
    /// `None` where there is no such member.
    fn links(&mut self, index: usize) -> Option<&mut Links>;
}

impl Ring {
    /// The member that was added before all others.
    pub(crate) const fn oldest(self) -> Option<usize> {
        self.first
    }

    /// Adds a member that is in no place of this list.
    pub(crate) fn push(&mut self, members: &mut impl Members, index: usize) {
        let Some(links) = members.links(index) else { return };
        *links = Links { before: self.last, after: None };
        match self.last.and_then(|last| members.links(last)) {
            Some(last) => last.after = Some(index),
            None => self.first = Some(index),
        }
        self.last = Some(index);
    }

    /// Takes out a member of this list.
    pub(crate) fn remove(&mut self, members: &mut impl Members, index: usize) {
        let Some(links) = members.links(index) else { return };
        let Links { before, after } = std::mem::take(links);
        match before.and_then(|before| members.links(before)) {
            Some(before) => before.after = after,
            None => self.first = after,
        }
        match after.and_then(|after| members.links(after)) {
            Some(after) => after.before = before,
            None => self.last = before,
        }
    }
}
