//! The one table of the language's commands: how each is written, what it does, and whether it can be run.
//!
//! Source: the command pages of Server.Load in Domino's administration help.

/// Whether the laboratory can run a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// It sends requests to the server.
    Runs,
    /// It steers the script and sends nothing.
    Steers,
    /// The language has it; the laboratory cannot run it yet.
    Known,
}

/// One command of the language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandInfo {
    /// As it is written in reports; a script may write it in any case.
    pub name: &'static str,
    /// The command with its words; those in brackets may be left out.
    pub usage: &'static str,
    /// One line for people.
    pub about: &'static str,
    /// Whether it can be run.
    pub support: Support,
}

const fn runs(name: &'static str, usage: &'static str, about: &'static str) -> CommandInfo {
    CommandInfo { name, usage, about, support: Support::Runs }
}

const fn steers(name: &'static str, usage: &'static str, about: &'static str) -> CommandInfo {
    CommandInfo { name, usage, about, support: Support::Steers }
}

const fn known(name: &'static str, about: &'static str) -> CommandInfo {
    CommandInfo { name, usage: name, about, support: Support::Known }
}

/// Every command of the language, by name.
pub const COMMANDS: &[CommandInfo] = &[
    steers("@Else", "@Else", "the commands to run when the value of @If is 0"),
    steers("@EndIf", "@EndIf", "ends @If"),
    steers("@If", "@If [value]", "runs the commands up to @Else or @EndIf when the value is not 0"),
    runs("Add", "Add count [summary bytes] [body bytes] [-f folder]", "creates documents"),
    steers("BeginCrit", "BeginCrit", "from here to EndCrit one user at a time"),
    steers("BeginLoop", "BeginLoop", "where Rewind goes back to"),
    steers("BeginLoop2", "BeginLoop2", "where Rewind2 goes back to"),
    steers("Break", "Break 0|errors", "how many errors end the script for a user; 0 is none"),
    runs("Cal", "Cal Appointment|Invitation [recipients] [nth]", "sends an appointment or an invitation"),
    runs("CalDelete", "CalDelete [count]", "CalDAV, ours: deletes events in sight"),
    runs("CalOpen", "CalOpen [days]", "CalDAV, ours: lists the events of the coming days"),
    runs("CalRead", "CalRead [count]", "CalDAV, ours: reads events in sight"),
    runs("CalUpdate", "CalUpdate [count]", "CalDAV, ours: writes events in sight anew"),
    runs("ChangeTo", "ChangeTo \"server!!database\" [template] [-KeepOpen]", "opens a database"),
    runs("CheckForNewMail", "CheckForNewMail [database]", "asks whether the mail database has changed"),
    steers("Close", "Close", "closes the view"),
    known("CloseColl", "closes a view opened by OpenColl"),
    known("ColFindKey", "finds the entries of four weeks in a collection"),
    known("ColorProfileAdd", "adds a colour profile to the mail database"),
    known("ColorProfileDelete", "deletes the colour profile"),
    known("Console", "sends a command to the server's console"),
    steers("DBClose", "DBClose", "closes the database"),
    known("DbDelete", "deletes a database"),
    known("DBGetModNoteInfo", "lists what was changed since the last call"),
    runs("Delete", "Delete [count]", "deletes documents, chosen at random"),
    known("DeleteFromColl", "deletes documents of a view"),
    steers("Drop", "Drop", "drops the connection"),
    steers("EndCrit", "EndCrit", "ends BeginCrit"),
    runs("Entries", "Entries [start] [count]", "reads entries of the view; without a start, the next page"),
    steers("ErrorDelay", "ErrorDelay time", "how long a user waits after an error before one more try"),
    known("GetAll", "reads what a client asks for at the opening of a view"),
    steers("If", "If [value] command", "runs the command when the value is not 0"),
    runs(
        "ImailDeleteEntry",
        "ImailDeleteEntry [count]",
        "IMAP: deletes messages of the page, those fetched last first",
    ),
    runs(
        "ImailFetchOld",
        "ImailFetchOld [CURRENT|NEXT] [count]",
        "IMAP: fetches messages of the page one by one",
    ),
    runs("ImailGetLastEntries", "ImailGetLastEntries [count]", "IMAP: reads the last page of a mailbox"),
    runs("ImailGetNewMail", "ImailGetNewMail [count]", "IMAP: asks for what is new and fetches it"),
    runs("ImailHelp", "ImailHelp", "IMAP: asks what the server can do"),
    runs("ImailListMailboxes", "ImailListMailboxes", "IMAP: lists the mailboxes"),
    runs("ImailLogin", "ImailLogin [host] [user] [password]", "IMAP: connects and logs in"),
    runs("ImailOpenMailbox", "ImailOpenMailbox [mailbox]", "IMAP: opens a mailbox, or INBOX"),
    known("Index", "brings the view's index up to date"),
    known("NABLookup", "looks a name up in the directory"),
    runs(
        "Navigate",
        "Navigate [count] [NEXT|PREV|CURRENT] [CIRCULAR]",
        "opens documents of the view one by one",
    ),
    known("NewMail", "asks for new mail some times"),
    known("NewMailPoll", "asks for new mail and refreshes the view"),
    runs("Open", "Open [view]", "opens a view and reads its first page"),
    known("OpenColl", "opens a view without reading it"),
    steers("Pause", "Pause time", "thinks; the time shrinks with the speed-up"),
    runs(
        "Populate",
        "Populate count [folder] [summary bytes] [body bytes]",
        "fills the database up to a number of documents",
    ),
    known("ProfileClose", "closes a profile"),
    known("ProfileOpen", "opens a profile"),
    known("ProfileUpdate", "changes a profile"),
    runs("Read", "Read [count]", "opens documents of the view, chosen at random"),
    known("Replicate", "replicates a database"),
    runs(
        "RetrievePOP3Mail",
        "RetrievePOP3Mail [user] [password] [count|-1] [host] [-Keep]",
        "POP3: fetches messages and deletes them",
    ),
    steers("Rewind", "Rewind [times]", "goes back to BeginLoop; without a number, for ever"),
    steers("Rewind2", "Rewind2 [times]", "goes back to BeginLoop2; without a number, for ever"),
    runs("SendMessage", "SendMessage bytes|profile [recipients] [nth] [attachment bytes]", "sends a memo"),
    known("SendMessageFromColl", "answers a message of the view"),
    runs(
        "SendSMTPMessage",
        "SendSMTPMessage bytes|profile [line bytes] [recipients] [host] [domain] [client] [nth]",
        "SMTP or LMTP: sends a message",
    ),
    known("SetCalProfile", "makes the user the owner of the calendar"),
    known("SetCollation", "chooses how the view is sorted"),
    runs("Stamp", "Stamp [count]", "categorizes documents that were opened before"),
    known("Unread", "marks documents as unread"),
    runs("Update", "Update [count]", "changes documents that were opened before"),
];

/// The command of that name, in whatever case.
#[must_use]
pub fn find(name: &str) -> Option<&'static CommandInfo> {
    COMMANDS.iter().find(|command| command.name.eq_ignore_ascii_case(name))
}

/// The name that looks most like this one, if any does.
pub(super) fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<String> {
    const ALIKE: f64 = 0.7;
    let lower = name.to_ascii_lowercase();
    names
        .map(|candidate| (strsim::jaro_winkler(&lower, &candidate.to_ascii_lowercase()), candidate))
        .filter(|(likeness, _)| *likeness > ALIKE)
        .max_by(|left, right| left.0.total_cmp(&right.0))
        .map(|(_, candidate)| candidate.to_owned())
}
