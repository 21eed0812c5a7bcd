//! What a run may still spend.

use crate::error::RunFault;
use crate::limits::Limits;

#[derive(Clone, Debug)]
pub(crate) struct Budget {
    steps: u32,
    bytes: u64,
}

impl Budget {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self { steps: limits.steps, bytes: limits.work_bytes }
    }

    /// A command or test is executed.
    pub(crate) fn step(&mut self) -> Result<(), RunFault> {
        self.steps = self.steps.checked_sub(1).ok_or(RunFault::TooMuchWork)?;
        Ok(())
    }

    /// Bytes are looked at.
    pub(crate) fn work(&mut self, bytes: usize) -> Result<(), RunFault> {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.bytes = self.bytes.checked_sub(bytes).ok_or(RunFault::TooMuchWork)?;
        Ok(())
    }
}
