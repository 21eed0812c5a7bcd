//! What a command does while it needs more than one step, and how commands end.

use scrinium_imap_wire::{ResponseCode, Status};

use crate::announce::AnnounceTask;
use crate::capability::CapabilitySet;
use crate::events::EventTask;
use crate::expunge::ExpungeTask;
use crate::fetch::FetchTask;
use crate::flags::FlagsTask;
use crate::list::ListTask;
use crate::login::Login;
use crate::mailboxes::MailboxReply;
use crate::open::OpenTask;
use crate::request::{Answer, Refusal, Request};
use crate::search::SearchTask;
use crate::session::ServerSession;
use crate::store::StoreTask;
use crate::transfer::TransferTask;

/// A command that runs, at one of its steps.
pub(crate) enum Task {
    Greet,
    StartTls,
    Account(Box<Login>),
    LogIn(Box<Login>),
    Identify,
    BeginAppend,
    AppendData,
    FinishAppend,
    Replace,
    Abandoned,
    Mailbox(Box<MailboxReply>),
    List(Box<ListTask>),
    Open(Box<OpenTask>),
    Fetch(Box<FetchTask>),
    Flags(Box<FlagsTask>),
    Store(Box<StoreTask>),
    Transfer(Box<TransferTask>),
    Expunge(Box<ExpungeTask>),
    Search(Box<SearchTask>),
    Batches,
    Announce(Box<AnnounceTask>),
    Events(Box<EventTask>),
}

impl Task {
    /// Tells what has changed, and then the answer to the command.
    pub(crate) fn announce(ending: Ending) -> Self {
        Self::Announce(Box::new(AnnounceTask::before(ending)))
    }

    /// Bytes that it holds.
    pub(crate) fn held_bytes(&self) -> usize {
        match self {
            Self::Fetch(task) => task.held_bytes(),
            Self::Search(task) => task.held_bytes(),
            _ => 0,
        }
    }
}

/// What comes after a step.
pub(crate) enum Flow {
    /// The surroundings are asked; the task goes on with their answer.
    Ask(Request, Task),
    /// The task goes on when there is room for output.
    Go(Task),
    /// Nothing: what comes next is the client's.
    Rest,
    /// The command is done.
    End(Ending),
}

/// What the client hears of others' changes with the answer to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Changes {
    /// Nothing.
    Nothing,
    /// New messages and flags: numbers stay (RFC 9051, section 7.5.1).
    Flags,
    /// Also messages that are gone.
    All,
}

/// The code of an answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum EndingCode {
    Nothing,
    Code(ResponseCode),
    /// The mod-sequence that everything told so far goes up to (RFC 7162, section 3.2.7).
    HighestModSeq,
    /// What there is now (RFC 9051, section 7.1).
    Capabilities,
}

/// The answer to a command.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ending {
    pub(crate) status: Status,
    pub(crate) code: EndingCode,
    pub(crate) text: String,
    pub(crate) changes: Changes,
}

impl Ending {
    fn new(status: Status, code: Option<ResponseCode>, text: &str) -> Self {
        let code = code.map_or(EndingCode::Nothing, EndingCode::Code);
        Self { status, code, text: text.to_owned(), changes: Changes::Nothing }
    }

    pub(crate) fn ok(text: &str) -> Self {
        Self::new(Status::Ok, None, text)
    }

    pub(crate) fn no(code: Option<ResponseCode>, text: &str) -> Self {
        Self::new(Status::No, code, text)
    }

    pub(crate) fn bad(text: &str) -> Self {
        Self::new(Status::Bad, None, text)
    }

    pub(crate) fn refused(refusal: Refusal) -> Self {
        Self::new(Status::No, refusal.code, &refusal.text)
    }

    /// The answer of the surroundings was none that fits: `NO`.
    pub(crate) fn of_answer(answer: Answer) -> Self {
        match answer {
            Answer::Refused(refusal) => Self::refused(refusal),
            _ => Self::refused(Refusal::trouble()),
        }
    }

    pub(crate) fn with(self, code: ResponseCode) -> Self {
        Self { code: EndingCode::Code(code), ..self }
    }

    pub(crate) fn with_code(self, code: EndingCode) -> Self {
        Self { code, ..self }
    }

    pub(crate) fn telling(self, changes: Changes) -> Self {
        Self { changes, ..self }
    }

    pub(crate) fn tells_changes(&self) -> bool {
        self.changes != Changes::Nothing
    }

    pub(crate) fn code_for(&self, session: &ServerSession) -> Option<ResponseCode> {
        match &self.code {
            EndingCode::Nothing => None,
            EndingCode::Code(code) => Some(code.clone()),
            EndingCode::HighestModSeq => {
                let selected = session.selected.as_ref().filter(|_| session.enabled.condstore)?;
                Some(ResponseCode::HighestModSeq(selected.told_to.max(1)))
            }
            EndingCode::Capabilities => Some(ResponseCode::Capability(session.capability_words())),
        }
    }
}

impl From<Ending> for Flow {
    fn from(ending: Ending) -> Self {
        Self::End(ending)
    }
}

impl ServerSession {
    /// A step that needs no answer.
    pub(crate) fn advance(&mut self, task: Task) -> Flow {
        match task {
            Task::List(task) => self.list_advance(task),
            Task::Open(task) => self.open_advance(task),
            Task::Fetch(task) => self.fetch_advance(task),
            Task::Flags(task) => self.flags_advance(task),
            Task::Store(task) => self.store_advance(task),
            Task::Transfer(task) => self.transfer_advance(task),
            Task::Expunge(task) => self.expunge_advance(task),
            Task::Search(task) => self.search_advance(task),
            Task::Announce(task) => self.announce_advance(task),
            Task::Events(task) => self.events_advance(*task),
            _ => Flow::Rest,
        }
    }

    /// The answer to what a task has asked.
    pub(crate) fn resume(&mut self, task: Task, answer: Answer) -> Flow {
        match task {
            Task::Greet => self.greeted(answer),
            Task::StartTls => self.encrypted(answer),
            Task::Account(login) => self.account_given(login, answer),
            Task::LogIn(login) => self.login_decided(login, answer),
            Task::Identify => self.identified(&answer),
            Task::BeginAppend => self.append_begun(answer),
            Task::AppendData => self.append_data_taken(answer),
            Task::FinishAppend => self.append_finished(answer),
            Task::Replace => self.replaced(answer),
            Task::Abandoned => Flow::Rest,
            Task::Mailbox(reply) => self.mailbox_answered(*reply, answer),
            Task::List(task) => self.list_answered(task, answer),
            Task::Open(task) => self.open_answered(task, answer),
            Task::Fetch(task) => self.fetch_answered(task, answer),
            Task::Flags(task) => self.flags_answered(task, answer),
            Task::Store(task) => self.store_answered(task, answer),
            Task::Transfer(task) => self.transfer_answered(task, answer),
            Task::Expunge(task) => self.expunge_answered(task, answer),
            Task::Search(task) => self.search_answered(task, answer),
            Task::Batches => self.batches_answered(answer),
            Task::Announce(task) => self.announce_answered(task, answer),
            Task::Events(task) => self.events_answered(task, answer),
        }
    }

    pub(crate) fn hidden_from_person(&mut self, hidden: CapabilitySet) {
        self.hidden = self.hidden.and(hidden);
    }
}
