//! What a calibration measures: the cells, as an experiment of the laboratory.

use std::fmt::Write;
use std::path::Path;

use super::Kind;

/// The workload of the ladder.
pub(super) const MIXED: &str = "R5Mail";

/// Bytes of a message in every cell, as R5Mail has them.
pub(super) const MESSAGE_BYTES: f64 = 10_000.0;

/// How much larger mail files are in the cell that is about that.
pub(super) const LARGER_INBOX: u64 = 4;

/// Workloads of mainly one class of requests: name and text.
const CLASSES: [(&str, &str); 4] = [
    ("page", include_str!("../../workloads/page.script")),
    ("read", include_str!("../../workloads/read.script")),
    ("write", include_str!("../../workloads/write.script")),
    ("send", include_str!("../../workloads/send.script")),
];

/// Users of a rush ask again as soon as they are answered.
const RUSHING: [u32; 5] = [1, 2, 4, 8, 16];
const RUSH_SPEEDUP: f64 = 100_000.0;

/// Connected users open their mail file every four minutes at the script's pace.
const CONNECTED_SPEEDUP: f64 = 60.0;

/// The driver's users log in this many a second without filling a small machine.
const LOGINS_PER_S: f64 = 40.0;

/// One round of the mixed workload, in seconds.
const ROUND_S: f64 = 900.0;

/// How large a calibration is made.
#[derive(Clone, Debug, PartialEq)]
pub struct Size {
    /// Users of the largest load of the ladder.
    pub users: u32,
    /// Think times are divided by this.
    pub speedup: f64,
    /// Loads of the ladder.
    pub rungs: u32,
    /// Documents in each mail file.
    pub documents: u64,
    /// Seconds that count of each load.
    pub hold_s: f64,
    /// How often each is measured.
    pub repeats: u32,
}

/// One load to be measured.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Cell {
    pub name: String,
    pub kind: Kind,
    /// A workload's name, or one of the planner's own scripts.
    pub workload: String,
    pub users: u32,
    pub speedup: f64,
    pub documents: u64,
    pub hold_s: f64,
    pub ramp_up_s: f64,
}

impl Cell {
    /// The mixed workload for this many users.
    #[must_use]
    pub fn mixed(name: &str, kind: Kind, users: u32, size: &Size) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            workload: MIXED.to_owned(),
            users,
            speedup: size.speedup,
            documents: size.documents,
            hold_s: size.hold_s,
            // Each has done a round when counting begins, and logins are over.
            ramp_up_s: (ROUND_S / size.speedup).max(f64::from(users) / LOGINS_PER_S).max(1.0),
        }
    }

    fn closed(&self) -> bool {
        self.kind == Kind::Rush
    }
}

impl Size {
    /// All cells of a calibration.
    #[must_use]
    pub fn cells(&self) -> Vec<Cell> {
        let rungs = self.rungs.max(2);
        let rung = |number: u32| (self.users * number / rungs).max(number);
        let mut cells: Vec<Cell> = (1..=rungs)
            .map(|number| Cell::mixed(&format!("ladder-{number}"), Kind::Ladder, rung(number), self))
            .collect();
        let middle = rung(rungs.div_ceil(2));
        cells.push(Cell::mixed("encrypted", Kind::Encrypted, middle, self));
        let inbox = Cell::mixed("inbox", Kind::Inbox, middle, self);
        cells.push(Cell { documents: self.documents * LARGER_INBOX, ..inbox });
        cells.extend(RUSHING.iter().map(|users| Cell {
            speedup: RUSH_SPEEDUP,
            ramp_up_s: 2.0,
            hold_s: (self.hold_s / 2.0).max(1.0),
            ..Cell::mixed(&format!("rush-{users}"), Kind::Rush, *users, self)
        }));
        cells.extend([("connected-1", rung(1)), ("connected-2", rung(rungs))].map(|(name, users)| Cell {
            workload: "Idle".to_owned(),
            speedup: CONNECTED_SPEEDUP,
            documents: 0,
            ramp_up_s: (f64::from(users) / LOGINS_PER_S).max(4.0),
            hold_s: (self.hold_s / 2.0).max(1.0),
            ..Cell::mixed(name, Kind::Connected, users, self)
        }));
        cells.extend(CLASSES.iter().map(|(name, _)| Cell {
            workload: (*name).to_owned(),
            speedup: 1.0,
            ramp_up_s: 2.0,
            ..Cell::mixed(&format!("class-{name}"), Kind::Class, (self.users / 10).clamp(4, 40), self)
        }));
        cells
    }
}

/// The experiment that measures these cells, each on fresh data; scripts of the planner's own are put into `folder`.
///
/// # Errors
/// A script cannot be written.
pub(super) fn experiment(cells: &[Cell], repeats: u32, folder: &Path) -> std::io::Result<String> {
    std::fs::create_dir_all(folder)?;
    for (name, text) in CLASSES {
        std::fs::write(folder.join(format!("{name}.script")), text)?;
    }
    let mut text = format!(
        "title = \"Calibration\"\nhypothesis = \"What requests cost does not depend on how many there are.\"\nsource = \"scrinium plan\"\nrepeats = {{ quick = {repeats}, full = {repeats} }}\n\n[[factor]]\nname = \"point\"\ntitle = \"Point\"\nlevels = [\n"
    );
    for cell in cells {
        let own = CLASSES.iter().any(|(name, _)| *name == cell.workload);
        let workload = if own {
            folder.join(format!("{}.script", cell.workload)).display().to_string()
        } else {
            cell.workload.clone()
        };
        let settings = if cell.kind == Kind::Encrypted {
            ", settings = { \"https.listen\" = \"127.0.0.1:{tls_port}\" }"
        } else {
            ""
        };
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "  {{ label = \"{}\", values = {{ workload = {}, users = {}, speedup = {}, documents = {}, duration = \"{}\", ramp = \"{}\", encrypted = {}, closed = {} }}{settings} }},",
            cell.name,
            serde_json::Value::from(workload),
            cell.users,
            cell.speedup,
            cell.documents,
            cell.hold_s,
            cell.ramp_up_s,
            cell.kind == Kind::Encrypted,
            cell.closed(),
        );
    }
    text.push_str(STEPS);
    Ok(text)
}

/// What is done in each cell. The server is stopped at the end, so that all of its data is in its files.
const STEPS: &str = "]

[[step]]
start = {}

[[step]]
load.workload = \"$workload\"
load.users = \"$users\"
load.speedup = \"$speedup\"
load.ramp_up = \"$ramp\"
load.duration = \"$duration\"
load.messages_per_user = \"$documents\"
load.encrypted = \"$encrypted\"
load.closed = \"$closed\"

[[step]]
stop = true

[[column]]
title = \"Average response\"
value = \"load.mean_ms\"
unit = \"milliseconds\"

[[column]]
title = \"Transactions per minute\"
value = \"load.transactions_per_minute\"

[[column]]
title = \"% CPU\"
value = \"load.cpu_percent\"
unit = \"percent\"

[[column]]
title = \"Memory\"
value = \"load.resident_bytes\"
unit = \"bytes\"

[[figure]]
column = \"Average response\"
rows = \"point\"
";
