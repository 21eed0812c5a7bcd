//! The selected mailbox, and questions to its folder.

use scrinium_imap_wire::{Flag, MailboxName, Response, ResponseCode, Status};
use scrinium_mailbox::FolderView;

use crate::request::{Answer, FolderOutcome, FolderQuestion, FolderRequest, Refusal, Request};
use crate::session::{ServerSession, word};
use crate::task::{Ending, Flow, Task};

/// Ranges of changes of the session's own that are remembered; beyond them a client hears what it knows.
const OWN_RANGES_MAX: usize = 64;

/// Keywords that are remembered to tell new ones.
const KEYWORDS_MAX: usize = 1000;

/// What a session keeps of its mailbox.
pub(crate) struct Selected {
    pub(crate) folder: u64,
    pub(crate) mailbox: MailboxName,
    /// It is with the surroundings while they answer.
    pub(crate) view: Option<FolderView>,
    pub(crate) read_only: bool,
    /// How many messages the client believes there are.
    pub(crate) told_exists: u32,
    /// Changes of flags up to it were told.
    pub(crate) told_to: u64,
    /// Changes of flags that the session has made, and the client knows.
    own: Vec<(u64, u64)>,
    /// Keywords that the client has heard of.
    pub(crate) keywords: Vec<Flag>,
}

impl Selected {
    pub(crate) fn new(mailbox: MailboxName, view: FolderView, read_only: bool, keywords: Vec<Flag>) -> Self {
        Self {
            folder: view.folder(),
            mailbox,
            read_only,
            told_exists: view.exists(),
            told_to: view.state().change,
            view: Some(view),
            own: Vec::new(),
            keywords,
        }
    }

    pub(crate) fn held_bytes(&self) -> usize {
        self.view.as_ref().map_or(0, FolderView::held_bytes) + self.own.len() * 16 + self.keywords.len() * 32
    }

    /// The session has made these changes, and has told its client.
    pub(crate) fn own_changes(&mut self, first: u64, last: u64) {
        let count = self.own.len();
        match self.own.last_mut() {
            Some((_, end)) if first <= end.saturating_add(1) => *end = (*end).max(last),
            _ if count < OWN_RANGES_MAX => self.own.push((first, last)),
            _ => {}
        }
    }

    pub(crate) fn is_own(&self, change: u64) -> bool {
        self.own.iter().any(|(first, last)| (*first..=*last).contains(&change))
    }

    /// Everything up to it was told.
    pub(crate) fn told(&mut self, change: u64) {
        self.told_to = self.told_to.max(change);
        self.own.retain(|(_, last)| *last > change);
    }
}

impl ServerSession {
    /// Asks the folder; the view goes along.
    pub(crate) fn ask_folder(&mut self, question: FolderQuestion, task: Task) -> Flow {
        let Some(selected) = &mut self.selected else { return no_mailbox() };
        let read_only = selected.read_only;
        let Some(view) = selected.view.take() else { return no_mailbox() };
        Flow::Ask(Request::Folder(Box::new(FolderRequest { view, read_only, question })), task)
    }

    /// Takes the view back. What is not the outcome of a question ends the session: its numbers would be wrong.
    pub(crate) fn outcome(&mut self, answer: Answer) -> Result<FolderOutcome, Flow> {
        let Answer::Folder(answer) = answer else {
            self.bye(word("UNAVAILABLE"), "Something went wrong here; connect again");
            return Err(Flow::Rest);
        };
        let Some(selected) = &mut self.selected else { return Err(no_mailbox()) };
        if matches!(answer.outcome, FolderOutcome::Closed) {
            self.bye(None, "The mailbox is gone, or you may not see it any more");
            return Err(Flow::Rest);
        }
        if answer.view.is_lost() || answer.view.folder() != selected.folder {
            let text = "Too many messages are gone that the client could not be told of; connect again";
            self.bye(word("LIMIT"), text);
            return Err(Flow::Rest);
        }
        selected.view = Some(answer.view);
        Ok(answer.outcome)
    }

    /// Tells how many messages there are, if there are more.
    pub(crate) fn tell_exists(&mut self) {
        let Some(selected) = &mut self.selected else { return };
        let Some(view) = &selected.view else { return };
        let exists = view.exists();
        if exists > selected.told_exists {
            selected.told_exists = exists;
            self.say(&Response::Exists(exists));
        }
    }

    /// Tells of keywords that the client has not heard of, before they are used (RFC 9051, section 7.3.5).
    pub(crate) fn tell_keywords(&mut self, used: &[Flag]) {
        let Some(selected) = &mut self.selected else { return };
        let before = selected.keywords.len();
        for flag in used {
            let is_known = selected.keywords.iter().any(|known| known.is(flag.as_str()));
            if !is_known && selected.keywords.len() < KEYWORDS_MAX {
                selected.keywords.push(flag.clone());
            }
        }
        if selected.keywords.len() > before {
            let flags = self.all_flags();
            self.say(&Response::Flags(flags));
        }
    }

    /// Flags that messages here may have.
    pub(crate) fn all_flags(&self) -> Vec<Flag> {
        let system = crate::request::SystemFlags::all().names().filter_map(Flag::new);
        let keywords = self.selected.iter().flat_map(|selected| selected.keywords.iter().cloned());
        system.chain(keywords).collect()
    }

    /// Leaves the mailbox (RFC 9051, section 7.1, `CLOSED`).
    pub(crate) fn leave(&mut self, says_so: bool) {
        if self.selected.take().is_some() && says_so && (self.enabled.qresync || self.enabled.rev2) {
            self.say_status(Status::Ok, Some(ResponseCode::Closed), "The mailbox was left");
        }
        self.saved = scrinium_mailbox::NumberSet::default();
    }
}

fn no_mailbox() -> Flow {
    Ending::bad("Select a mailbox first").into()
}

impl Ending {
    /// An outcome that the question does not have.
    pub(crate) fn of_outcome(outcome: FolderOutcome) -> Self {
        match outcome {
            FolderOutcome::Refused(refusal) => Self::refused(refusal),
            _ => Self::refused(Refusal::trouble()),
        }
    }
}
