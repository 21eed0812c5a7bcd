//! Blocks of a script: loops, critical regions and conditions, from the line that opens them on.

use crate::command::LoopName;

/// What is open at one place of a script, and the line that opened it.
pub(super) struct Block {
    pub(super) kind: BlockKind,
    pub(super) line: usize,
    /// The statement to which the block's jump, or its loop, is bound.
    pub(super) at: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum BlockKind {
    Loop(LoopName),
    Critical,
    If,
    Chance,
    Nth,
    Else,
}

impl BlockKind {
    pub(super) fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Loop(LoopName::First) => ("BeginLoop", "Rewind"),
            Self::Loop(LoopName::Second) => ("BeginLoop2", "Rewind2"),
            Self::Critical => ("BeginCrit", "EndCrit"),
            Self::If => ("@If", "@EndIf"),
            Self::Chance => ("@Chance", "@EndIf"),
            Self::Nth => ("@Nth", "@EndIf"),
            Self::Else => ("@Else", "@EndIf"),
        }
    }

    /// Whether `@Else` can follow, or `@EndIf` close it.
    pub(super) fn is_condition(self) -> bool {
        matches!(self, Self::If | Self::Chance | Self::Nth)
    }
}
