//! Histories in which each answer carries the number of a record: a write's own, or that up to which a read saw everything.

use scrinium_log::Sequence;

/// One operation that was answered. Times are of one clock, in any unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Witnessed {
    /// When it was asked for.
    pub begun: u64,
    /// When it was answered.
    pub ended: u64,
    /// The number that the answer carried.
    pub number: Sequence,
    /// Whether it wrote the record of this number; else it read everything up to it.
    pub wrote: bool,
}

/// Two operations that no order explains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{later:?} does not follow {earlier:?}, which had been answered before it began")]
pub struct OrderViolation {
    /// The one that had been answered.
    pub earlier: Witnessed,
    /// The one that began afterwards; or, of two writes with one number, the other one.
    pub later: Witnessed,
}

/// Checks that numbers follow time: of two operations of which one was answered before the other began, the later one has
/// no smaller number, and a greater one if it wrote; and that each number was written once.
///
/// # Errors
/// The first [`OrderViolation`], by the time at which the later operation began.
pub fn check_order(operations: &[Witnessed]) -> Result<(), OrderViolation> {
    let mut by_number: Vec<&Witnessed> = operations.iter().filter(|operation| operation.wrote).collect();
    by_number.sort_by_key(|operation| operation.number);
    for (earlier, later) in by_number.iter().zip(by_number.iter().skip(1)) {
        if earlier.number == later.number {
            return Err(OrderViolation { earlier: **earlier, later: **later });
        }
    }
    let mut by_begin: Vec<&Witnessed> = operations.iter().collect();
    by_begin.sort_by_key(|operation| operation.begun);
    let mut by_end: Vec<&Witnessed> = operations.iter().collect();
    by_end.sort_by_key(|operation| operation.ended);
    let mut ended = by_end.into_iter().peekable();
    let mut newest: Option<&Witnessed> = None;
    for later in by_begin {
        while let Some(earlier) = ended.next_if(|earlier| earlier.ended < later.begun) {
            if newest.is_none_or(|newest| newest.number < earlier.number) {
                newest = Some(earlier);
            }
        }
        let Some(earlier) = newest else { continue };
        if later.number < earlier.number || later.wrote && later.number == earlier.number {
            return Err(OrderViolation { earlier: *earlier, later: *later });
        }
    }
    Ok(())
}
