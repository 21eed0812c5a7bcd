//! What the transaction log is used for, and how much of it a restart may have to do again.

/// Whether commits go into the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogStyle {
    /// A commit is durable once it is in the log; extents that are no longer needed are used again.
    #[default]
    Circular,
    /// As [`LogStyle::Circular`], and extents are copied to an archive before they are used again. Everything is
    /// logged, since what is not could not be restored.
    Archive,
    /// There is no log: a commit is answered when the tree's own files hold it. All that wait share one flush.
    Off,
}

/// How a commit is made durable before it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// By the log, with one sync for all that wait. Where the store has no log ([`LogStyle::Off`]) it is
    /// [`Durability::Flushed`].
    Logged,
    /// By the tree's own files, with one flush for all that wait. Readers see the batch a moment earlier. Where the log
    /// is archived ([`LogStyle::Archive`]) it is [`Durability::Logged`]: what is not in the log could not be restored.
    Flushed,
}

impl Durability {
    /// What it is in a store of such a log.
    pub(crate) fn within(self, style: LogStyle) -> Self {
        match style {
            LogStyle::Circular => self,
            LogStyle::Archive => Self::Logged,
            LogStyle::Off => Self::Flushed,
        }
    }
}

impl LogStyle {
    /// The number that statistics show.
    pub(crate) fn code(self) -> u32 {
        match self {
            Self::Off => 0,
            Self::Circular => 1,
            Self::Archive => 2,
        }
    }
}

const MEGABYTE: u64 = 1 << 20;

/// What is favored: few writes while running, or a short restart after a crash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFavor {
    /// Up to 1 GB is done again: the least is written.
    Runtime,
    /// Up to 256 MB.
    #[default]
    Standard,
    /// Up to 64 MB: the restart takes a second.
    Restart,
}

impl LogFavor {
    /// At most this many bytes of log may have to be done again after a crash.
    #[must_use]
    pub fn redo_bytes(self) -> u64 {
        match self {
            Self::Runtime => 1024 * MEGABYTE,
            Self::Standard => 256 * MEGABYTE,
            Self::Restart => 64 * MEGABYTE,
        }
    }

    /// A memtable of one family is written to a file at this size, and those of all others with it.
    pub(crate) fn memtable_bytes(self) -> usize {
        match self {
            Self::Runtime => 256 << 20,
            Self::Standard | Self::Restart => 64 << 20,
        }
    }
}
