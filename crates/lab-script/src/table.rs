//! The one table of the language's commands: how each is written, what it does, whether it can be run, and what becomes
//! of it on a server that is not Scrinium.
//!
//! Source: the command pages of Server.Load in Domino's administration help. What is marked as the laboratory's own is
//! in none of them.

/// Whether the laboratory can run a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// It sends requests to the server.
    Runs,
    /// It steers the script and sends nothing.
    Steers,
    /// The language has it; the laboratory cannot run it.
    Known,
}

/// What a command comes to on a server that has CouchDB's interface and nothing more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elsewhere {
    /// The same requests.
    Same,
    /// Other requests, or none: what is done instead.
    Emulated(&'static str),
    /// The run is refused before it begins.
    Refused,
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
    /// The requests that it sends; empty for one that sends none.
    pub sends: &'static str,
    /// What it comes to on another server.
    pub elsewhere: Elsewhere,
    /// Whether it is the laboratory's and not Server.Load's.
    pub own: bool,
}

impl CommandInfo {
    const fn new(
        support: Support,
        name: &'static str,
        usage: &'static str,
        about: &'static str,
        sends: &'static str,
    ) -> Self {
        Self { name, usage, about, support, sends, elsewhere: Elsewhere::Same, own: false }
    }

    const fn emulated(mut self, instead: &'static str) -> Self {
        self.elsewhere = Elsewhere::Emulated(instead);
        self
    }

    const fn refused(mut self) -> Self {
        self.elsewhere = Elsewhere::Refused;
        self
    }

    const fn own(mut self) -> Self {
        self.own = true;
        self
    }
}

const fn runs(
    name: &'static str,
    usage: &'static str,
    about: &'static str,
    sends: &'static str,
) -> CommandInfo {
    CommandInfo::new(Support::Runs, name, usage, about, sends)
}

const fn steers(name: &'static str, usage: &'static str, about: &'static str) -> CommandInfo {
    CommandInfo::new(Support::Steers, name, usage, about, "")
}

const fn known(name: &'static str, about: &'static str) -> CommandInfo {
    CommandInfo::new(Support::Known, name, name, about, "")
}

const INBOX_IS_VIEW: &str = "the inbox is a view of the design document `mail`";

/// Every command of the language, by name.
#[rustfmt::skip]
pub const COMMANDS: &[CommandInfo] = &[
    steers("@Chance", "@Chance percent", "runs the commands up to @Else or @EndIf in this many of a hundred cases, drawn each time").own(),
    steers("@Else", "@Else", "the commands to run when the condition before it does not hold"),
    steers("@EndIf", "@EndIf", "ends @If, @Chance or @Nth"),
    steers("@If", "@If [value]", "runs the commands up to @Else or @EndIf when the value is not 0"),
    steers("@Nth", "@Nth rounds", "runs the commands up to @Else or @EndIf in every nth round of the main loop; users do not begin with the same one").own(),
    runs("Accept", "Accept [nth]", "accepts the invitation that came last, in every nth round", "a page of the view `invitations`, the invitation, and the answer into `mail.box`").own(),
    runs("Add", "Add count [summary bytes] [body bytes] [-f folder]", "creates documents, in the inbox where nothing else is said", "`PUT /{db}/{id}?folder={folder}`").emulated("the folder is the document's field `Folder`; the inbox is a view"),
    steers("BeginCrit", "BeginCrit", "from here to EndCrit one user at a time"),
    steers("BeginLoop", "BeginLoop", "where Rewind goes back to"),
    steers("BeginLoop2", "BeginLoop2", "where Rewind2 goes back to"),
    steers("Break", "Break 0|errors", "how many errors end the script for a user; 0: none does"),
    runs("Cal", "Cal Appointment|Invitation [recipients] [nth]", "sends an appointment or an invitation", "`PUT /mail.box/{id}`; CalDAV, where there is a target for it: `PUT`"),
    runs("CalDelete", "CalDelete [count]", "deletes events in sight", "CalDAV: `DELETE`").own(),
    runs("CalOpen", "CalOpen [days]", "lists the events of the coming days", "CalDAV: `REPORT`").own(),
    runs("CalRead", "CalRead [count]", "reads events in sight", "CalDAV: `GET`").own(),
    runs("CalUpdate", "CalUpdate [count]", "rewrites events in sight", "CalDAV: `PUT`").own(),
    runs("ChangeTo", "ChangeTo \"server!!database\" [template] [-KeepOpen]", "opens a database; one that is not a user's mail file is made before the run", "`GET /{db}`"),
    runs("CheckForNewMail", "CheckForNewMail [database] [pushlocal]", "asks whether the mail database has changed", "`GET /{db}`"),
    steers("Close", "Close", "closes the view"),
    steers("CloseColl", "CloseColl [view]", "closes a view opened by OpenColl"),
    runs("ColFindKey", "ColFindKey [N7|N8]", "finds the entries of a week past and three to come in the open view, which is one by date", "a page of the view from `startkey` to `endkey`"),
    runs("ColorProfileAdd", "ColorProfileAdd", "adds a colour profile to the database", "`PUT /{db}/profile:color…`, after `GET`"),
    runs("ColorProfileDelete", "ColorProfileDelete", "deletes the colour profile", "`DELETE /{db}/profile:color…`, after `GET`"),
    runs("Console", "Console server command", "sends a command to the server's console, as the administrator", "`POST /_console`").refused(),
    steers("DBClose", "DBClose", "closes the database"),
    runs("DbDelete", "DbDelete database", "deletes a database, as the administrator; those of the server itself are refused", "`DELETE /{db}`"),
    runs("DBGetModNoteInfo", "DBGetModNoteInfo [N7|N8]", "lists what was changed since the last call", "`GET /{db}/_changes?since=…&limit=1000`"),
    runs("Delete", "Delete [count]", "deletes documents, chosen at random from those that were opened", "`DELETE /{db}/{id}?rev=…`, after `GET` where the revision is not known"),
    runs("DeleteFromColl", "DeleteFromColl [view] count [N7|N8]", "deletes the first documents of the page in sight", "`GET` and `DELETE` of each"),
    steers("Drop", "Drop", "drops the connection"),
    steers("EndCrit", "EndCrit", "ends BeginCrit"),
    runs("Entries", "Entries [start] [count]", "reads entries of the view; without a start, the next page of 20", "a page of the view").emulated(INBOX_IS_VIEW),
    steers("ErrorDelay", "ErrorDelay time", "how long a user waits after an error before one more try"),
    runs("FindByKey", "FindByKey \"item#value\" [NO_CASE] [NO_ACCENT] [PARTIAL] [FIRST_EQUAL]", "finds the first entry whose key begins with the value, and reads from there", "a page of the view from `find=`").emulated("from `startkey=`"),
    runs("GetAll", "GetAll", "reads what a client asks for at the opening of a view: a page, and what is unread", "a page of the view, and `GET /{db}/_unread`").emulated("the page alone"),
    runs("GetAllFolderChangesRqst", "GetAllFolderChangesRqst", "asks what came into the inbox and left it since the last call", "`GET /{db}/_folder/Inbox/_changes?since=…`").refused(),
    known("GetCollation", "says how the view is sorted, which a client of this server knows from the design document"),
    steers("If", "If [value] command", "runs the command when the value is not 0"),
    runs("ImailCloseMailbox", "ImailCloseMailbox", "closes the open mailbox", "IMAP: `CLOSE`"),
    runs("ImailDeleteEntry", "ImailDeleteEntry [count]", "deletes messages of the page, those fetched last first", "IMAP: `FETCH`, `STORE`, `EXPUNGE`"),
    runs("ImailFetchEntry", "ImailFetchEntry [CURRENT|NEXT|NEXT_UNSEEN|FIRST]", "fetches one message of the page", "IMAP: `FETCH`"),
    runs("ImailFetchOld", "ImailFetchOld [CURRENT|NEXT] [count]", "fetches messages of the page one by one", "IMAP: `FETCH`"),
    runs("ImailGetLastEntries", "ImailGetLastEntries [count]", "reads the last page of a mailbox", "IMAP: `FETCH`"),
    runs("ImailGetNewMail", "ImailGetNewMail [count]", "asks for what is new and fetches it", "IMAP: `FETCH`"),
    runs("ImailHelp", "ImailHelp", "asks what the server can do", "IMAP: `CAPABILITY`"),
    runs("ImailListMailboxes", "ImailListMailboxes [root] [mailbox] [subscribed]", "lists the mailboxes", "IMAP: `LIST`"),
    runs("ImailLogin", "ImailLogin [host] [user] [password]", "connects and logs in; where, and as whom, the command line says", "IMAP: `LOGIN`"),
    runs("ImailLogout", "ImailLogout", "logs out, which ends the connection", "IMAP: `LOGOUT`"),
    runs("ImailOpenMailbox", "ImailOpenMailbox [mailbox]", "opens a mailbox, or INBOX", "IMAP: `SELECT`"),
    known("ImailPostMessage", "puts a message into a mailbox by IMAP"),
    runs("ImailSetSeen", "ImailSetSeen [CURRENT|NEXT|NEXT_UNSEEN|FIRST]", "marks one message of the page as read", "IMAP: `STORE`"),
    runs("Index", "Index [view]", "brings the view's index up to date", "the view with `limit=0&update=true`").emulated("the view with `limit=0`, which waits for the index as well"),
    known("LDAPLookup", "looks a name up by LDAP"),
    runs("Lookup", "Lookup (server, namespace, name)", "looks a name up in the address book, which the laboratory makes: the database `names`", "`POST /names/_all_docs` with the keys"),
    known("MailRuleDeleteAll", "removes the mail rules of the database, of which this server has none yet"),
    runs("MoveToFolder", "MoveToFolder count folder", "moves documents that were opened to a folder of that name, which is made before the run", "`POST /{db}/_folder/{folder}`").emulated("the field `Folder` of each document is changed").own(),
    runs("NABLookup", "NABLookup [count]", "looks people up in the address book together, chosen at random; Server.Load's name for that is not known", "`POST /names/_all_docs` with the keys").own(),
    known("NABRetrievePOP3Mail", "fetches messages of a person of the directory by POP3"),
    runs("Navigate", "Navigate [count] [NEXT|PREV|CURRENT|PARENT|CHILD|NEXT_UNREAD|…|CIRCULAR]", "opens documents of the page in sight one by one; what is opened as unread is marked as read", "`GET /{db}/{id}`, and `POST /{db}/_unread`").emulated("which documents are unread each user remembers; nothing is sent for it"),
    runs("NewMail", "NewMail(database, polls, ms)", "asks for new mail several times, this far apart", "`GET /{db}` for each"),
    runs("NewMailPoll", "NewMailPoll [N7|N8]", "asks for new mail, and reads the open view again if there is any", "`GET /{db}`, and a page of the view"),
    known("NewReplicateDB", "makes an empty replica on another server"),
    runs("Open", "Open [view] [options]", "opens a view and reads its first page of 30; the views are $Inbox, $All, $Calendar, Topics and those of the design document `mail`", "a page of the view").emulated(INBOX_IS_VIEW),
    runs("OpenColl", "OpenColl view", "opens a view without reading it", "the view with `limit=0`"),
    steers("Pause", "Pause time", "thinks; the time shrinks with the speed-up"),
    runs("Populate", "Populate count [folder] [summary bytes] [body bytes]", "fills the database up to a number of documents", "`GET /{db}`, and `PUT` of what is missing"),
    steers("ProfileClose", "ProfileClose [name]", "closes a profile"),
    runs("ProfileOpen", "ProfileOpen [name]", "opens a profile of the database", "`GET /{db}/profile:{name}`"),
    runs("ProfileUpdate", "ProfileUpdate [name]", "changes the profile that was opened", "`PUT /{db}/profile:{name}`"),
    known("Quit", "ends the driver's program; `--duration` ends a run"),
    runs("Read", "Read [count]", "opens documents of the page in sight, chosen at random", "`GET /{db}/{id}`"),
    runs("Replicate", "Replicate server [PUSH|PULL|BOTH] [database|database…] [options]", "replicates as a client's own replica does: takes what has changed since the last time, and brings ReplicateDocuments of its own (5); with `--edge` the server there has the replica, and does it", "`_changes` and `_bulk_get`; `_revs_diff` and `_bulk_docs`; `PUT /{db}/_local/…`; at the edge: `POST /{replica}/_bulk_docs`, `POST /_replicate`"),
    runs("RetrievePOP3Mail", "RetrievePOP3Mail [user] [password] [count|-1] [host] [LEAVE_ON_SERVER] [USE_SSL]", "fetches messages and deletes them", "POP3: `PASS`, `LIST`, `RETR`, `DELE`, `QUIT`"),
    steers("Rewind", "Rewind [times]", "goes back to BeginLoop; without a number, for ever"),
    steers("Rewind2", "Rewind2 [times]", "goes back to BeginLoop2; without a number, for ever"),
    runs("SendMessage", "SendMessage bytes|profile [recipients] [nth] [attachment]", "sends a memo in every nth round; with NB_MAIL_SAVE_MESSAGE it is kept in one's own mail file too", "`PUT /mail.box/{id}`"),
    runs("SendMessageFromColl", "SendMessageFromColl bytes|profile [recipients] [nth] [attachment] [N7|N8]", "answers a message of the page in sight: reads it and sends a memo", "`GET /{db}/{id}` and `PUT /mail.box/{id}`"),
    runs("SendSMTPMessage", "SendSMTPMessage bytes|profile [line bytes] [recipients] [host] [domain] [client] [nth]", "sends a message in every nth round", "SMTP or LMTP: a message"),
    known("SessionsClose", "closes what SessionsOpen has opened"),
    known("SessionsOpen", "opens a number of sessions at once; here each user has one"),
    runs("SetCalProfile", "SetCalProfile", "makes the user the owner of the calendar", "`PUT /{db}/profile:calendarprofile`, after `GET`"),
    runs("SetCollation", "SetCollation [number]", "reads the open view, $All or Topics, in another order: 0 its own, 1 by sender, 2 by subject", "a page of the view with `resort=`").refused(),
    runs("Stamp", "Stamp [count]", "categorizes documents that were opened before", "`GET` and `PUT /{db}/{id}`"),
    runs("Unread", "Unread [count]", "marks documents of the page in sight as unread, chosen at random", "`POST /{db}/_unread`").emulated("each user remembers them; nothing is sent"),
    runs("Update", "Update [count]", "changes documents that were opened before", "`GET` and `PUT /{db}/{id}`"),
    runs("WebGet", "WebGet -url address [-mir read [delete]] [-mis bytes recipients [nth]] …", "what a browser does, run as the commands that do the same; with an address alone, fetches it", "those of Open, Navigate, Delete, SendMessage, Cal and Accept, or `GET {path}`"),
];

/// The command of that name, in whatever case.
#[must_use]
pub fn find(name: &str) -> Option<&'static CommandInfo> {
    COMMANDS.iter().find(|command| command.name.eq_ignore_ascii_case(name))
}

/// The name that looks most like this one, if any does.
pub(super) fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<String> {
    const ALIKE: f64 = 0.7;
    // Anyone who has written more has not mistyped a name, and comparing would take its time.
    const LONGEST_BYTES: usize = 80;
    if name.len() > LONGEST_BYTES {
        return None;
    }
    let lower = name.to_ascii_lowercase();
    names
        .map(|candidate| (strsim::jaro_winkler(&lower, &candidate.to_ascii_lowercase()), candidate))
        .filter(|(likeness, _)| *likeness > ALIKE)
        .max_by(|left, right| left.0.total_cmp(&right.0))
        .map(|(_, candidate)| candidate.to_owned())
}
