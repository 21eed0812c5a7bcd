//! The way out when the log is damaged before its end, or gone: everything that can still be read is brought into
//! the tree, the damaged log is set aside, and a new one begins. What is thereby lost is said by number.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use scrinium_log::{Log, LogError, Missing, Record, Sequence, Survey, Surveyed};

use crate::applier::apply_again;
use crate::budget::Budget;
use crate::folder::{Folder, LogMark};
use crate::progress::Progress;
use crate::store::log_options;
use crate::tree::{Direct, Tree};
use crate::{StoreError, StoreOptions};

/// Where nobody can say how many records there were, the new log continues after this many numbers, lest one stand for
/// two different records.
const NUMBERS_PASSED_OVER: u64 = 1 << 32;

/// What a salvage finds and does.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The log's folder.
    pub log_dir: PathBuf,
    /// What can be read of the log.
    pub surveyed: Surveyed,
    /// Why nothing of it can be read, if so.
    pub unreadable: Option<String>,
    /// The last record that the tree's files hold.
    pub position: u64,
    /// The last record that they hold after the salvage.
    pub reached: u64,
    /// Records that are lost: the first of them that cannot be read, and all after it.
    pub lost: Option<Missing>,
    /// How many of the lost records can be read. They build on those that cannot, so they are not applied, but kept.
    pub kept: u64,
    /// The number of the next record.
    pub next: u64,
    /// A salvage was broken off when the tree's files held everything; what is left to do is to begin a new log.
    pub interrupted: bool,
    /// Where the damaged log was put; `None` while it was not.
    pub set_aside: Option<PathBuf>,
}

impl Plan {
    /// Whether the log is as it should be, so that there is nothing to salvage.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.unreadable.is_none()
            && !self.interrupted
            && self.lost.is_none()
            && self.surveyed.damaged_places == 0
            && self.surveyed.missing.is_empty()
    }

    fn report(&self) -> String {
        let lost = match self.lost {
            None => "none".to_owned(),
            Some(Missing { first, last: Some(last) }) => format!("{} to {}", first.0, last.0),
            Some(Missing { first, last: None }) => format!("{} and all after it", first.0),
        };
        format!(
            "position {}\nreached {}\nlost {lost}\nreadable-but-lost {}\nnext {}\n",
            self.position, self.reached, self.kept, self.next
        )
    }
}

/// Reads a whole log, of a store that is not open, and says what of it is damaged.
///
/// # Errors
/// [`StoreError::Locked`] while a server runs, [`StoreError::DamagedLog`] if nothing of the log can be read, and those
/// of the file system.
pub fn survey_log(log_dir: &Path) -> Result<Surveyed, StoreError> {
    let mut survey = Survey::begin(log_dir)?;
    while survey.next_frame()?.is_some() {}
    Ok(survey.found().clone())
}

/// Says what [`salvage`] would do, and changes nothing.
///
/// # Errors
/// [`StoreError::Locked`] while a server runs, and what else keeps the store's tree or the log's folder from being
/// read.
pub fn plan_salvage(options: &StoreOptions) -> Result<Plan, StoreError> {
    let (_, tree) = open(options)?;
    plan(&tree)
}

/// Brings what can be read of the log into the tree, puts the log's files into a folder within the log's folder, and
/// begins a new log. After a crash in the middle of it, it is run again.
///
/// # Errors
/// As [`plan_salvage`], and those of the file system.
pub fn salvage(options: &StoreOptions) -> Result<Plan, StoreError> {
    let (mark, tree) = open(options)?;
    let mut plan = plan(&tree)?;
    let log_dir = plan.log_dir.clone();
    fs::create_dir_all(&log_dir).map_err(|error| StoreError::io("make", &log_dir, error))?;
    if !plan.interrupted {
        write_report(&log_dir, &plan)?;
    }
    if plan.reached > plan.position {
        let survey = Survey::begin(&log_dir)?;
        let records = Readable {
            survey,
            next: plan.position + 1,
            end: plan.reached + 1,
            frame: Vec::new().into_iter(),
        };
        let position = Sequence(plan.position);
        apply_again(&tree, records, position, plan.reached - plan.position, &Progress::default())?;
    }
    tree.flush()?;
    let mut write = tree.start_write();
    write.reach(Sequence(plan.next - 1));
    write.finish()?;
    tree.flush()?;
    let aside = set_aside(&log_dir, options.clock.now_s())?;
    if mark == LogMark::Missing {
        tree.folder.mark_log()?;
    }
    let mut log_options = log_options(options, &tree.folder);
    log_options.first = Sequence(plan.next);
    let (log, _) = Log::open(log_options)?;
    log.close()?;
    // The report goes last: as long as it lies next to the log, a salvage has not come to its end.
    move_files(&log_dir, &aside, |name| name == REPORT)?;
    plan.set_aside = Some(aside);
    Ok(plan)
}

fn open(options: &StoreOptions) -> Result<(LogMark, Tree), StoreError> {
    let (folder, mark) = Folder::open_without_log(options)?;
    let (budget, direct) = (Arc::new(Budget::new(options.budget_bytes)), Direct::of(options, &folder));
    let tree = Tree::open(folder, budget, direct, options.log_favor.memtable_bytes())?;
    Ok((mark, tree))
}

fn plan(tree: &Tree) -> Result<Plan, StoreError> {
    let position = tree.position()?.0;
    let log_dir = tree.folder.log.clone();
    let mut plan = Plan {
        log_dir: log_dir.clone(),
        surveyed: Surveyed::default(),
        unreadable: None,
        position,
        reached: position,
        lost: None,
        kept: 0,
        next: position + 1,
        interrupted: false,
        set_aside: None,
    };
    let was_interrupted = was_interrupted(&log_dir, position);
    let mut survey = match Survey::begin(&log_dir) {
        Ok(survey) => survey,
        Err(error @ (LogError::Missing { .. } | LogError::Damaged { .. })) => {
            plan.interrupted = was_interrupted;
            if !was_interrupted {
                plan.unreadable = Some(error.to_string());
                plan.lost = Some(Missing { first: Sequence(position + 1), last: None });
                plan.next = position + 1 + NUMBERS_PASSED_OVER;
            }
            return Ok(plan);
        }
        Err(error) => return Err(error.into()),
    };
    while let Some(frame) = survey.next_frame()? {
        if frame.first.0 <= plan.reached + 1 {
            plan.reached = plan.reached.max(frame.next().0 - 1);
        } else {
            plan.kept += frame.next().0 - frame.first.0;
        }
    }
    plan.surveyed = survey.found().clone();
    // The new log begins behind the position.
    plan.interrupted = was_interrupted && plan.surveyed.first.0 <= position;
    if plan.interrupted {
        return Ok(plan);
    }
    // A log that ends before the store is an older copy, or a new one: what this store's held is not known.
    let end_is_unknown = plan.surveyed.next.0 <= position
        || plan.surveyed.missing.iter().any(|missing| missing.last.is_none());
    let last_known = plan.surveyed.next.0.saturating_sub(1).max(plan.reached);
    plan.next = last_known + 1 + if end_is_unknown { NUMBERS_PASSED_OVER } else { 0 };
    if end_is_unknown || last_known > plan.reached {
        let last = (!end_is_unknown).then_some(Sequence(last_known));
        plan.lost = Some(Missing { first: Sequence(plan.reached + 1), last });
    }
    Ok(plan)
}

/// The records from `next` to `end`, all of which can be read.
struct Readable {
    survey: Survey,
    next: u64,
    end: u64,
    frame: std::vec::IntoIter<Record>,
}

impl Iterator for Readable {
    type Item = Result<Record, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.next < self.end {
            if let Some(record) = self.frame.next() {
                if record.sequence.0 == self.next {
                    self.next += 1;
                    return Some(Ok(record));
                }
                continue;
            }
            match self.survey.next_frame() {
                Ok(Some(frame)) => self.frame = frame.records().collect::<Vec<_>>().into_iter(),
                Ok(None) => return None,
                Err(error) => {
                    self.next = self.end;
                    return Some(Err(error.into()));
                }
            }
        }
        None
    }
}

const REPORT: &str = "salvage.txt";

/// Its name once it is past.
const REPORT_OF_DONE: &str = "salvage-done.txt";

/// Whether the tree's files stand where a salvage has brought them that has not come to its end.
fn was_interrupted(log_dir: &Path, position: u64) -> bool {
    let report = fs::read_to_string(log_dir.join(REPORT)).unwrap_or_default();
    let next = report.lines().find_map(|line| line.strip_prefix("next ")?.parse::<u64>().ok());
    next.is_some_and(|next| next == position + 1)
}

/// A store that could be opened has a log that fits: no salvage is under way, wherever it was broken off.
pub(crate) fn note_opened(log_dir: &Path) {
    let done = fs::rename(log_dir.join(REPORT), log_dir.join(REPORT_OF_DONE));
    if let Err(error) = done
        && error.kind() != std::io::ErrorKind::NotFound
    {
        tracing::warn!(%error, dir = %log_dir.display(), "the report of a salvage could not be renamed");
    }
}

/// Written first, so that a salvage that was interrupted can still be understood.
fn write_report(log_dir: &Path, plan: &Plan) -> Result<(), StoreError> {
    let path = log_dir.join(REPORT);
    let written = fs::write(&path, plan.report()).and_then(|()| fs::File::open(&path)?.sync_all());
    written.map_err(|error| StoreError::io("write", &path, error))
}

/// Moves the log's files into a folder next to them, since the log's folder may be a whole device. The control file
/// goes first: a log without it is never taken for a whole one.
fn set_aside(log_dir: &Path, now_s: u64) -> Result<PathBuf, StoreError> {
    let aside = log_dir.join(format!("damaged-{now_s}"));
    let io = |action| move |error| StoreError::io(action, log_dir, error);
    fs::create_dir_all(&aside).map_err(io("make a folder in"))?;
    let of_log = |name: &str| {
        Path::new(name).extension().is_some_and(|extension| extension == "TXN")
            || name.starts_with("log.control")
            || name == "extent.new"
    };
    move_files(log_dir, &aside, of_log)?;
    Ok(aside)
}

fn move_files(from: &Path, to: &Path, is_meant: impl Fn(&str) -> bool) -> Result<(), StoreError> {
    let io = |action| move |error| StoreError::io(action, from, error);
    let mut names = Vec::new();
    for entry in fs::read_dir(from).map_err(io("list"))? {
        names.extend(entry.map_err(io("list"))?.file_name().into_string());
    }
    names.retain(|name| is_meant(name));
    names.sort_by_key(|name| !name.starts_with("log.control"));
    for name in names {
        fs::rename(from.join(&name), to.join(&name)).map_err(io("move a file within"))?;
    }
    for dir in [to, from] {
        fs::File::open(dir).and_then(|dir| dir.sync_all()).map_err(io("sync"))?;
    }
    Ok(())
}
