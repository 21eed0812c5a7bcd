//! What the environment asks of a test.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rand::Rng;

use crate::Broken;

/// A test that was not told how many disks it makes begins no other run after this.
const USUAL_TIME: Duration = Duration::from_secs(60);

/// How long a test runs, and what it repeats: from `SCRINIUM_SEED`, `SCRINIUM_IMAGES`, `SCRINIUM_IMAGE` and
/// `SCRINIUM_JOURNAL`.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What all choices come from.
    pub seed: u64,
    /// How many disks are checked.
    pub images: u64,
    /// Only this one of them.
    pub only: Option<u64>,
    /// A recorded run, instead of a new one. Threads take other turns in a new one, whatever the seed.
    pub journal: Option<PathBuf>,
    /// When it is to begin no other run; `None` if the environment says how many disks it makes.
    pub until: Option<Instant>,
}

/// How many cases a property test tries: `usual`, times `SCRINIUM_TIMES`.
///
/// `PROPTEST_CASES` would give every test the same number, whether a case is a line of text or a store that is built.
#[must_use]
pub fn cases(usual: u32) -> u32 {
    let times = std::env::var("SCRINIUM_TIMES").ok().and_then(|times| times.parse().ok());
    usual.saturating_mul(times.unwrap_or(1))
}

impl Plan {
    /// With this many disks unless the environment names another number, and a seed of its own likewise.
    #[must_use]
    pub fn from_environment(images: u64) -> Self {
        let number = |name: &str| std::env::var(name).ok()?.parse().ok();
        Self {
            seed: number("SCRINIUM_SEED").unwrap_or_else(|| rand::rng().random()),
            images: number("SCRINIUM_IMAGES").unwrap_or(images),
            until: number("SCRINIUM_IMAGES").is_none().then(|| Instant::now() + USUAL_TIME),
            only: number("SCRINIUM_IMAGE"),
            journal: std::env::var_os("SCRINIUM_JOURNAL").map(PathBuf::from),
        }
    }

    /// The numbers of this many runs, as long as there is time; the first one always.
    pub fn runs(&self, count: u64) -> impl Iterator<Item = u64> + use<> {
        let until = self.until;
        (0..count).take_while(move |run| *run == 0 || until.is_none_or(|until| Instant::now() < until))
    }

    /// Keeps the journal of a run in which a disk did not pass in `folder`, and tells how it is repeated.
    #[must_use]
    pub fn keep(&self, journal: &Path, folder: &Path, broken: &Broken) -> String {
        let kept = folder.join(format!("{}.journal", self.seed));
        // Copied onto itself it would be empty.
        let copied = if journal == kept { Ok(0) } else { std::fs::copy(journal, &kept) };
        let place = match copied {
            Ok(_) => kept.display().to_string(),
            Err(error) => format!("(it could not be kept in {}: {error})", kept.display()),
        };
        let number = broken.number;
        format!("{broken}\nrepeat with {self} SCRINIUM_IMAGE={number} SCRINIUM_JOURNAL={place}")
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SCRINIUM_SEED={} SCRINIUM_IMAGES={}", self.seed, self.images)
    }
}
