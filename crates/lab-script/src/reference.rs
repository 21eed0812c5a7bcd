//! The page about workloads and their language, made from the table of commands and the workloads themselves.

use std::fmt::Write;

use crate::table::{COMMANDS, CommandInfo, Elsewhere, Support};
use crate::workload::Workload;
use crate::{Estimate, Variables};

const INTRODUCTION: &str = "# Workloads

A workload is a script: what one simulated user does, and how long they think in between. `scrinium lab load NAME` runs
it for many users at once. The language is that of Domino's Server.Load, so that an administrator's script runs as it
is. This page is made from the program's table of commands and from the workloads that it carries.

```sh
scrinium lab list                     # the workloads
scrinium lab show N8Mail              # one of them, with what a user does in an hour
```

<!-- not run: needs a script and a log of yours, and loads a server for minutes -->
```sh
scrinium lab check my.script          # what is wrong with a script, by line and word
scrinium lab load N8Mail --users 200 --set NumMailNotesPerUser=500
scrinium lab capture operations.log   # a workload made of what a server's users really did
```

## The workloads

Each file says in its header where it was published, what the source leaves open and what was chosen for it. What one
user does in an hour follows from the script; the tests compare it with the published mix where there is one.
";

const LANGUAGE: &str = "
Mail files are made and filled before the run, with `NumMailNotesPerUser` documents of the size `NormalMessageSize`:
bytes, `profile`, or sizes with weights. The profile is Server.Load's: 10 % of 500 bytes, 30 % of 10,000, 40 % of
50,000, 10 % of 50,000 with 50,000 attached, 9.5 % of 150,000 and 0.5 % of 1,000 with 10,000,000 attached. Bodies are
generated from common English words and compress about as prose does. Shared databases that `ChangeTo` names, folders
and views that a script uses are made too; `Populate` fills a shared database at the beginning of the run.

## The language

- One command a line, in any case. Words with spaces stand in quotation marks.
- `**text**` is a comment, over several lines too; so is a line that begins with one `*`, or with a row of them.
- `[Name]` is a variable. Its value comes from `--set Name=value`, else from the header. `[#]` is the user's number,
  `[user]` the user's name. A `--set` with a name that neither the script nor the table below has is an error.
- A header is comments: `**Workload: Name**`, `**Title: …**`, `**Source: …**`, `**Choice: …**`, `**Published: …**`,
  and `**Variable: Name = value (what it means)**`.
- Times are `500` (milliseconds), `5000-10000` (evenly from the one to the other), `10-20sec`, `8-12min`, `1hour`.
- Sizes of messages are bytes, `profile`, or sizes with their weights: `500:10|10000:30|50000:60`.
- `attachment` of a message is a number of bytes, or as in Server.Load the name of a file, in whose place `AttachmentBytes`
  bytes are attached; `lab check` names such lines.
- `nth` of a command means: in every nth round of the main loop. Users do not begin with the same round.
- `MAIL`, `mail[#]` and the name of the own mail file are the user's mail database; a server's name before `!!` and the
  ending `.nsf` are left out. Any other name is a database that all users share, which is made before the run.
- The main loop is the one whose `Rewind` has no number.

These variables have a meaning of their own:

| variable | |
|---|---|
| `NumMailNotesPerUser` | documents in each mail file at the start |
| `NormalMessageSize` | size of a message where a command does not say |
| `AttachmentBytes` | bytes of an attachment that a command names as a file, 50,000: the file is not read |
| `NB_MAIL_SAVE_MESSAGE` | 1: who sends a memo keeps a copy |
| `RecipientSkew` | `20:80`: 20 % of the users get 80 % of all messages |
| `ReplicateDocuments` | documents that `Replicate` brings along |
| `nb_dbdir` | the folder of mail databases, `mail/` |

## Commands

The third column says what is sent. On a server that has CouchDB's interface and nothing more the requests are the
same, unless the last column says what is done instead. A command that is *refused* there ends the run before it
begins. Commands marked with * are the laboratory's own; Server.Load has none of that name.

| command | what it does | what is sent | on another server |
|---|---|---|---|
";

const STEERING: &str = "
These send nothing:

| command | what it does |
|---|---|
";

const KNOWN: &str = "
These are commands of Server.Load that the laboratory does not offer. They are distinguished from mistakes; a script with
one of them is refused before the run:

| command | what it does |
|---|---|
";

const CAPTURE: &str = "
## A workload of one's own users

The server writes what is done to it into a file, if `http.operation_log` names one: time, operation, bytes and
milliseconds, with person and database as numbers that only tell the same from another. There are no names, ids, keys or
contents in it. Requests never wait for it: what the writing cannot keep up with is left out and counted
(`HTTP.OperationLog.LeftOut`). It takes up to twice `http.operation_log_bytes` of disk, some 80 bytes a request.

`scrinium lab capture FILE` makes a workload of that: the average round from one opening of a database to the next, its
operations in the order in which they come, with how often they do, the pauses before them (as ranges with the same mean
and spread) and the sizes. So a simulated user does as much in an hour as a real one did.

What is lost: which operation follows which beyond that, who writes to whom and to how many, which documents are popular,
and the time of day. All shared databases become one. Operations of replication, administration and attachments are
counted in the header and left out of the script.
";

/// The page `docs/reference/workloads.md`.
#[must_use]
pub fn reference_markdown() -> String {
    let mut page = INTRODUCTION.to_owned();
    page.push_str("\n| workload | a user | a round | requests an hour |\n|---|---|---|---|\n");
    for workload in Workload::carried() {
        let estimate = Estimate::of(&workload.script);
        let round = if estimate.one_loop.is_zero() {
            "once".to_owned()
        } else {
            format!("{:.1} min", estimate.one_loop.as_secs_f64() / 60.0)
        };
        let requests: f64 = estimate.requests.iter().map(|request| request.per_hour).sum();
        let title = workload.script.header.title.as_deref().unwrap_or_default();
        let _ = writeln!(page, "| `{}` | {title} | {round} | {requests:.1} |", workload.name);
    }
    page.push_str(LANGUAGE);
    for info in of(Support::Runs) {
        let elsewhere = match info.elsewhere {
            Elsewhere::Same => "",
            Elsewhere::Emulated(instead) => instead,
            Elsewhere::Refused => "refused",
        };
        let usage = usage(info);
        let _ = writeln!(page, "| {usage} | {} | {} | {elsewhere} |", info.about, info.sends);
    }
    page.push_str(STEERING);
    for info in of(Support::Steers) {
        let _ = writeln!(page, "| {} | {} |", usage(info), info.about);
    }
    page.push_str(KNOWN);
    for info in of(Support::Known) {
        let _ = writeln!(page, "| {} | {} |", usage(info), info.about);
    }
    page.push_str(CAPTURE);
    page
}

fn of(support: Support) -> impl Iterator<Item = &'static CommandInfo> {
    COMMANDS.iter().filter(move |info| info.support == support)
}

/// A bar would end the cell of the table.
fn usage(info: &CommandInfo) -> String {
    format!("`{}`{}", info.usage.replace('|', "\\|"), if info.own { " *" } else { "" })
}

impl Workload {
    /// The workloads that the program carries, with the values of their headers.
    fn carried() -> Vec<Self> {
        Self::carried_names()
            .filter_map(|name| Self::find_carried(name, &Variables::default()).ok())
            .collect()
    }
}
