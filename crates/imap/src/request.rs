//! What a session asks its surroundings, and what it is answered.

use std::sync::Arc;

use scrinium_credentials::sasl::{Claim, ScramAccount};
use scrinium_imap_wire::{
    DateTime, Flag, MailboxName, Namespace, ResponseCode, SearchKey, SequenceSet, SortKey, StatusItem,
    StoreAction, Thread,
};
use scrinium_mailbox::{FolderView, MessageMap, Messages, NumberSet, Picked, Selection, Span};

use crate::capability::CapabilitySet;
use crate::options::{Encryption, Peer};

/// Something that only the surroundings know or can do. They answer each one, and then ask for the next.
#[derive(Debug)]
pub enum Request {
    /// Somebody is there. [`Answer::Accepted`] greets, [`Answer::Refused`] sends away.
    Greet(Peer),
    /// TLS begins: what waits to be sent is sent, then hands are shaken. [`Answer::Encrypted`]; on any other the connection ends.
    StartTls,
    /// SCRAM needs the keys of this prepared name. [`Answer::Account`], also for a name that nobody has.
    Account(String),
    /// May this person come in? [`Answer::Login`]
    LogIn(Claim),
    /// The client has said what it is. [`Answer::Hide`] with what it does not get along with.
    Identify(Vec<(String, Option<String>)>),
    /// Something about mailboxes by name.
    Mailbox(Box<MailboxRequest>),
    /// Something about the messages of the selected folder. [`Answer::Folder`], which gives the view back.
    Folder(Box<FolderRequest>),
    /// Bytes of a message in its CRLF form. [`Answer::Content`], or [`Answer::Gone`].
    Content(ContentId, Span),
    /// A message comes to a mailbox: the first one, or one more of the same command. [`Answer::Accepted`] or [`Answer::Refused`],
    /// before any of it is read.
    BeginAppend(Box<NewMessage>),
    /// More of it. [`Answer::Accepted`] or [`Answer::Refused`]
    AppendData(Vec<u8>),
    /// All messages are whole: they are stored together or not at all. [`Answer::Appended`] when they are safe.
    FinishAppend,
    /// The messages that have begun do not come. Any answer will do.
    AbandonAppend,
    /// What has happened in folders that NOTIFY watches since this cursor; `None` begins. [`Answer::Events`]
    Events(Box<EventQuestion>),
}

/// Where the content of a message is, as the surroundings know it; it holds as long as the message is anywhere.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ContentId(pub Arc<[u8]>);

/// About mailboxes by name.
#[derive(Clone, Debug, PartialEq)]
pub enum MailboxRequest {
    /// SELECT and EXAMINE. [`Answer::Opened`]
    Open {
        /// Which.
        mailbox: MailboxName,
        /// Nothing is changed by it.
        read_only: bool,
    },
    /// Mailboxes in the order of their names, levels first, that begin with a text, behind another one. [`Answer::Mailboxes`]
    List(ListQuestion),
    /// [`Answer::Status`]
    Status(MailboxName, Vec<StatusItem>),
    /// Makes a mailbox and those above it. [`Answer::Created`]
    Create(MailboxName, Vec<String>),
    /// [`Answer::Accepted`]
    Delete(MailboxName),
    /// [`Answer::Accepted`]
    Rename(MailboxName, MailboxName),
    /// [`Answer::Accepted`]
    Subscribe(MailboxName, bool),
    /// [`Answer::Namespaces`]
    Namespace,
    /// The roots that count for a mailbox. [`Answer::Quota`]
    QuotaRoot(MailboxName),
    /// [`Answer::Quota`]
    Quota(String),
    /// [`Answer::Quota`]
    SetQuota(String, Vec<(String, u64)>),
    /// [`Answer::Rights`]
    GetAcl(MailboxName),
    /// Rights that an identifier gets: in place of what it has, added, or taken away. [`Answer::Accepted`]
    SetAcl(MailboxName, String, RightsChange),
    /// [`Answer::Accepted`]
    DeleteAcl(MailboxName, String),
    /// [`Answer::ListedRights`]
    ListRights(MailboxName, String),
    /// [`Answer::MyRights`]
    MyRights(MailboxName),
    /// Entries of a mailbox, or of the server where the name is missing. [`Answer::Metadata`]
    GetMetadata(Option<MailboxName>, Vec<String>, Option<u8>),
    /// [`Answer::Accepted`]
    SetMetadata(Option<MailboxName>, Vec<(String, Option<Vec<u8>>)>),
}

/// A change of rights (RFC 4314, section 3.1).
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum RightsChange {
    Set(String),
    Add(String),
    Remove(String),
}

/// What LIST needs to know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListQuestion {
    /// Names begin with it; none that does not can match.
    pub prefix: String,
    /// Names behind this one.
    pub behind: Option<String>,
    /// At most as many.
    pub limit: usize,
    /// Only what is subscribed, also where there is no such mailbox.
    pub only_subscribed: bool,
    /// Whether rights are asked for.
    pub wants_rights: bool,
    /// Numbers that are asked for.
    pub status: Vec<StatusItem>,
    /// Entries of metadata that are asked for.
    pub metadata: Vec<String>,
}

/// A mailbox as LIST shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct MailboxInfo {
    pub name: String,
    /// It is no mailbox that can be selected: a level of a name, a namespace.
    pub no_select: bool,
    /// It does not exist and is subscribed, or has levels below it.
    pub non_existent: bool,
    pub has_children: bool,
    pub subscribed: bool,
    /// Something below it is subscribed.
    pub subscribed_below: bool,
    /// `\Sent` and its kin.
    pub special_uses: Vec<String>,
    pub rights: Option<String>,
    pub status: Option<MailboxNumbers>,
    pub metadata: Vec<(String, Option<Vec<u8>>)>,
}

/// What STATUS tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct MailboxNumbers {
    pub messages: u32,
    pub recent: u32,
    pub uid_next: u32,
    pub uid_validity: u32,
    pub unseen: u32,
    pub deleted: u32,
    pub bytes: u64,
    pub deleted_bytes: u64,
    /// From 1.
    pub mod_seq: u64,
    pub mailbox_id: String,
    pub append_limit: Option<u64>,
}

/// A mailbox that was opened.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenedMailbox {
    /// The folder as it is now.
    pub view: FolderView,
    /// Whether nothing may be changed here, whatever was asked for.
    pub read_only: bool,
    /// Keywords that messages here have.
    pub keywords: Vec<Flag>,
    /// Whether there can be more.
    pub new_keywords: bool,
    /// Flags of the protocol that the person may change here.
    pub changeable: SystemFlags,
    /// The number of the first unseen message.
    pub first_unseen: Option<u32>,
    /// Messages that this session is the first to hear of.
    pub recent: u32,
    /// RFC 8474.
    pub mailbox_id: String,
    /// The highest mod-sequence, from 1.
    pub mod_seq: u64,
}

/// Flags of the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag")]
pub struct SystemFlags {
    pub seen: bool,
    pub answered: bool,
    pub flagged: bool,
    pub deleted: bool,
    pub draft: bool,
    pub recent: bool,
}

impl SystemFlags {
    /// All that clients may set.
    #[must_use]
    pub const fn all() -> Self {
        Self { seen: true, answered: true, flagged: true, deleted: true, draft: true, recent: false }
    }

    /// Their names.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        [
            (self.answered, "\\Answered"),
            (self.flagged, "\\Flagged"),
            (self.deleted, "\\Deleted"),
            (self.seen, "\\Seen"),
            (self.draft, "\\Draft"),
            (self.recent, "\\Recent"),
        ]
        .into_iter()
        .filter_map(|(is_set, name)| is_set.then_some(name))
    }

    /// The place of a flag; `None` for a keyword.
    pub fn place(&mut self, flag: &Flag) -> Option<&mut bool> {
        Some(match flag.as_str() {
            "\\Seen" => &mut self.seen,
            "\\Answered" => &mut self.answered,
            "\\Flagged" => &mut self.flagged,
            "\\Deleted" => &mut self.deleted,
            "\\Draft" => &mut self.draft,
            "\\Recent" => &mut self.recent,
            _ => return None,
        })
    }
}

/// A question about the messages of the selected folder.
#[derive(Debug)]
pub struct FolderRequest {
    /// The folder as the session has told it. Who answers brings it up to the snapshot that the answer comes from.
    pub view: FolderView,
    /// Whether the folder was opened to be read alone.
    pub read_only: bool,
    /// What is asked.
    pub question: FolderQuestion,
}

/// What is asked about messages. Each answer is one step: it holds no lock and no snapshot beyond itself.
#[derive(Clone, Debug, PartialEq)]
pub enum FolderQuestion {
    /// What has changed: messages whose flags changed behind this change number, the oldest change first, up to a limit.
    /// [`FolderOutcome::Synced`]
    Sync {
        /// Changes up to it were announced.
        told_to: u64,
        /// At most as many.
        limit: u32,
    },
    /// Messages, ascending. [`FolderOutcome::Entries`]
    Entries(EntriesQuestion),
    /// Flags of messages, ascending. [`FolderOutcome::Flags`]
    Flags {
        /// Of which.
        messages: Messages,
        /// At most as many.
        limit: u32,
    },
    /// Changes flags; one step is one batch. [`FolderOutcome::Stored`]
    Store(StoreQuestion),
    /// Copies or moves messages; one step is one batch. [`FolderOutcome::Transferred`]
    Transfer {
        /// Which.
        messages: Messages,
        /// Where to.
        target: MailboxName,
        /// They leave this folder.
        moves: bool,
        /// At most as many in one batch.
        limit: u32,
    },
    /// Takes messages with `\Deleted` away; one step is one batch. [`FolderOutcome::Expunged`]
    Expunge {
        /// Which; all, if nothing is said.
        messages: Messages,
        /// At most as many in one batch.
        limit: u32,
    },
    /// Looks for messages. [`FolderOutcome::Found`]
    Search(SearchQuestion),
    /// Puts messages that are found into threads. [`FolderOutcome::Threads`]
    Thread(SearchQuestion, ThreadAlgorithm),
    /// UIDs below `uid_next` that are not there any more and left behind a change; more than necessary is allowed. [`FolderOutcome::Vanished`]
    Vanished {
        /// Left behind it.
        since: u64,
        /// Of these UIDs; all, if nothing is said.
        known: Option<SequenceSet>,
        /// UIDs from this one on.
        from_uid: u32,
        /// Ranges at most.
        limit: usize,
    },
    /// UIDs that divide the folder into batches, the newest first (RFC 10022). [`FolderOutcome::Batches`]
    Batches {
        /// Messages in a batch.
        size: u32,
        /// The first and the last batch that are asked for, from 1.
        range: (u32, u32),
    },
    /// The message that was appended takes the place of this one (RFC 8508), in one batch. [`FolderOutcome::Replaced`]
    Replace(Messages),
}

/// What of a message's map is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MapNeed {
    /// Nothing.
    Nothing,
    /// What the header of the message says, and where it ends: a map of its first bytes will do, with the message's length.
    Header,
    /// All parts.
    Whole,
}

/// What is wanted of messages.
#[derive(Clone, Debug, PartialEq)]
pub struct EntriesQuestion {
    /// Which.
    pub messages: Messages,
    /// At most as many.
    pub limit: u32,
    /// Only those that changed behind it.
    pub changed_since: Option<u64>,
    /// Only those from and to this place among them, counted from the end where it is negative (RFC 9394).
    pub partial: Option<(i64, i64)>,
    /// What of their maps is needed.
    pub map: MapNeed,
    /// How much of the beginning of each message is of use.
    pub source_bytes: u32,
    /// They are seen by it.
    pub marks_seen: bool,
    /// Whether the conversations that they belong to are asked for ([`Entry::thread_id`]).
    pub threads: bool,
}

/// A change of flags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreQuestion {
    /// Of which messages.
    pub messages: Messages,
    /// What happens to them.
    pub action: StoreAction,
    /// Flags of the protocol.
    pub system: SystemFlags,
    /// Keywords.
    pub keywords: Vec<Flag>,
    /// Only of messages that did not change behind it (RFC 7162, section 3.1.3).
    pub unchanged_since: Option<u64>,
    /// At most as many in one batch.
    pub limit: u32,
}

/// A search.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchQuestion {
    /// All of these hold. Sets are as the client sent them; `$` is [`Self::saved`].
    pub keys: Vec<SearchKey>,
    /// UIDs of the last result that was saved.
    pub saved: NumberSet,
    /// In which order results come.
    pub order: SearchOrder,
    /// Where an earlier answer stopped.
    pub cursor: Option<u64>,
    /// Results at most.
    pub limit: u32,
}

/// In which order results come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SearchOrder {
    /// By UID.
    Ascending,
    /// By UID, the greatest first.
    Descending,
    /// By these keys, reversed or not, and then by UID.
    Sorted(Vec<(SortKey, bool)>),
}

/// How threads are made (RFC 5256).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum ThreadAlgorithm {
    OrderedSubject,
    References,
}

/// What a folder answers: the view comes back in any case.
#[derive(Debug)]
pub struct FolderAnswer {
    /// The view, up to date.
    pub view: FolderView,
    /// What came of the question.
    pub outcome: FolderOutcome,
}

/// What came of a question.
#[derive(Debug)]
#[allow(missing_docs, reason = "the question says it")]
pub enum FolderOutcome {
    Synced {
        /// Messages whose flags changed, in the order of their changes.
        changed: Vec<Entry>,
        /// Changes up to it are among them, or were left out for good.
        told_to: u64,
        /// There is more behind it.
        is_more: bool,
    },
    Entries {
        entries: Vec<Entry>,
        /// What is left of the selection.
        rest: Option<Selection>,
        /// How many of the messages that were named have left.
        missing: u32,
    },
    Flags {
        flags: Vec<MessageFlags>,
        /// As of [`FolderOutcome::Entries`].
        rest: Option<Selection>,
        missing: u32,
    },
    Stored {
        entries: Vec<StoredEntry>,
        /// Messages that had changed in between, by UID and number.
        modified: Vec<Picked>,
        rest: Option<Selection>,
        missing: u32,
        /// Change numbers of the batch: the session does not announce its own doing.
        changes: Option<(u64, u64)>,
    },
    Transferred {
        uid_validity: u32,
        /// UIDs here, and there.
        pairs: Vec<(u32, u32)>,
        rest: Option<Selection>,
    },
    Expunged {
        rest: Option<Selection>,
    },
    Found {
        found: Vec<Picked>,
        /// The highest mod-sequence of these.
        mod_seq: u64,
        /// Where the next answer goes on; `None` at the end.
        cursor: Option<u64>,
        /// How many messages of how many were looked at.
        progress: (u32, u32),
    },
    Threads {
        /// By number, or by UID where the question is one of UIDs.
        threads: Vec<Thread>,
        cursor: Option<u64>,
        progress: (u32, u32),
    },
    Vanished {
        uids: NumberSet,
        /// UIDs from here on; `None` at the end.
        next_uid: Option<u32>,
    },
    Batches(Vec<(u32, u32)>),
    Replaced {
        uid_validity: u32,
        uid: u32,
    },
    /// The target of a copy is not there.
    NoMailbox,
    /// The folder is gone, or the person may not see it any more.
    Closed,
    Refused(Refusal),
}

/// A message.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Entry {
    pub uid: u32,
    /// In the view that comes with it.
    pub number: u32,
    pub flags: SystemFlags,
    pub keywords: Vec<Flag>,
    /// From 1 to 2⁶³-1.
    pub mod_seq: u64,
    /// The change by which it came into the folder.
    pub arrival: u64,
    /// In CRLF form.
    pub bytes: u64,
    pub internal_date: DateTime,
    pub save_date: Option<DateTime>,
    pub email_id: String,
    /// Where it is asked for.
    pub thread_id: Option<String>,
    pub content: ContentId,
    /// Where it is asked for.
    pub map: Option<Arc<MessageMap>>,
    /// The beginning of its content, where it is asked for and at hand: clients that read many headers wait for one answer.
    pub source: Vec<u8>,
    /// Its flags were changed by the question.
    pub was_changed: bool,
}

impl Entry {
    /// All of its flags.
    #[must_use]
    pub fn all_flags(&self) -> Vec<Flag> {
        self.flags.names().filter_map(Flag::new).chain(self.keywords.iter().cloned()).collect()
    }
}

/// The flags of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "as of [`Entry`]")]
pub struct MessageFlags {
    pub uid: u32,
    pub number: u32,
    pub flags: SystemFlags,
    pub keywords: Vec<Flag>,
}

/// A message whose flags were changed.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredEntry {
    /// The message as it is now.
    pub entry: Entry,
    /// Its mod-sequence before.
    pub mod_seq_before: u64,
}

/// A message that comes.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct NewMessage {
    pub mailbox: MailboxName,
    pub flags: SystemFlags,
    pub keywords: Vec<Flag>,
    pub date: Option<DateTime>,
    /// As announced.
    pub bytes: u64,
    /// Its header may go beyond ASCII.
    pub utf8: bool,
    /// It may hold NUL.
    pub is_binary: bool,
    /// From 0, within one command.
    pub index: usize,
}

/// What NOTIFY watches beyond the selected mailbox (RFC 5465).
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct EventQuestion {
    pub groups: Vec<crate::notify::EventGroup>,
    /// Where an earlier answer stopped; `None` begins now, with the state of all mailboxes where the client has asked for it.
    pub cursor: Option<u64>,
    pub wants_status: bool,
    pub limit: usize,
    /// The selected mailbox, which the session announces itself.
    pub selected: Option<u64>,
}

/// Something that happened to a mailbox.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum MailboxEvent {
    /// Its numbers now.
    Changed(MailboxName, MailboxNumbers),
    /// It was made, deleted, renamed from the second name, or its subscription changed.
    Named(Box<MailboxInfo>, Option<String>),
}

/// Roots, and of each resource its name, what is used and what is allowed.
pub type QuotaRoots = Vec<(String, Vec<(String, u64, u64)>)>;

/// Answers to requests.
#[derive(Debug)]
#[allow(missing_docs, reason = "the requests say it")]
pub enum Answer {
    /// Go on; it is done.
    Accepted,
    /// The client hears NO, and what it wanted is not done.
    Refused(Refusal),
    /// Something of ours does not work: the client hears NO and tries again later.
    Trouble,
    Encrypted(Encryption),
    Account(ScramAccount),
    Login(LoginVerdict),
    Hide(CapabilitySet),
    Opened(Box<OpenedMailbox>),
    Mailboxes {
        mailboxes: Vec<MailboxInfo>,
        is_more: bool,
    },
    Status(Box<MailboxNumbers>),
    /// The new mailbox's id.
    Created(String),
    Namespaces {
        personal: Namespace,
        other_users: Namespace,
        shared: Namespace,
    },
    /// Roots, and of each resource what is used and allowed.
    Quota(QuotaRoots),
    Rights(Vec<(String, String)>),
    /// What is always granted, and what may be, in groups.
    ListedRights(Vec<String>),
    MyRights(String),
    Metadata(Vec<(String, Option<Vec<u8>>)>),
    Folder(Box<FolderAnswer>),
    Content(Vec<u8>),
    Gone,
    Appended {
        uid_validity: u32,
        uids: NumberSet,
    },
    Events {
        events: Vec<MailboxEvent>,
        cursor: u64,
        is_more: bool,
    },
}

/// Whether somebody comes in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoginVerdict {
    /// They do: the id of the person that they are, and what is hidden from them.
    Admitted(String, CapabilitySet),
    /// The proof is wrong, or there is no such person, which the client cannot tell apart.
    Wrong,
    /// There were too many failures, of this name or from this network.
    TooMany,
    /// They would come in, but for something that they must be told, such as an app password that is needed.
    Refused(Refusal),
}

/// Why something is not done: a NO.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// For the client's program.
    pub code: Option<ResponseCode>,
    /// For the person: what to do.
    pub text: String,
}

impl Refusal {
    /// With a code of RFC 5530 or another one without arguments, in capitals.
    #[must_use]
    pub fn new(code: &str, text: &str) -> Self {
        let code = match code {
            "" => None,
            "TRYCREATE" => Some(ResponseCode::TryCreate),
            "ALERT" => Some(ResponseCode::Alert),
            code => Some(ResponseCode::Word(code.to_owned())),
        };
        Self { code, text: text.to_owned() }
    }

    /// Trouble of ours.
    #[must_use]
    pub fn trouble() -> Self {
        Self::new("UNAVAILABLE", "Something went wrong here; try again later")
    }

    /// There is no such mailbox.
    #[must_use]
    pub fn no_mailbox() -> Self {
        Self::new("NONEXISTENT", "There is no such mailbox")
    }
}
