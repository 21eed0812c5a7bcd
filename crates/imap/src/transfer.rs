//! COPY and MOVE (RFC 9051, sections 6.4.7 and 6.4.8), a batch at a time.

use scrinium_imap_wire::{MailboxName, ResponseCode, SequenceSet, SetNumber, Status};
use scrinium_mailbox::Messages;

use crate::append::NO_TARGET;
use crate::capability::Capability;
use crate::request::{Answer, FolderOutcome, FolderQuestion, Refusal};
use crate::session::{ServerSession, word};
use crate::task::{Changes, Ending, EndingCode, Flow, Task};

pub(crate) struct TransferTask {
    by_uid: bool,
    moves: bool,
    messages: Messages,
    target: MailboxName,
    uid_validity: u32,
    /// UIDs here and there, as long as they are few enough to be told.
    copied: Option<Pairs>,
}

/// Runs of UIDs here and there.
#[derive(Default)]
struct Pairs {
    runs: Vec<((u32, u32), (u32, u32))>,
}

impl Pairs {
    /// Whether there was room.
    fn push(&mut self, here: u32, there: u32, runs_max: usize) -> bool {
        let count = self.runs.len();
        match self.runs.last_mut() {
            Some(((_, here_last), (_, there_last)))
                if here_last.checked_add(1) == Some(here) && there_last.checked_add(1) == Some(there) =>
            {
                (*here_last, *there_last) = (here, there);
                true
            }
            _ if count >= runs_max => false,
            _ => {
                self.runs.push(((here, here), (there, there)));
                true
            }
        }
    }

    /// The two sets of COPYUID, which pair in their order (RFC 4315, section 3).
    fn sets(&self) -> Option<(SequenceSet, SequenceSet)> {
        let set = |ranges: Vec<(u32, u32)>| {
            let mut joined: Vec<(SetNumber, SetNumber)> = Vec::with_capacity(ranges.len());
            let mut last_end = None;
            for (from, to) in ranges {
                match joined.last_mut() {
                    // Order is what pairs them, so that only neighbours are put together.
                    Some((_, end)) if last_end == from.checked_sub(1) => *end = SetNumber::Number(to),
                    _ => joined.push((SetNumber::Number(from), SetNumber::Number(to))),
                }
                last_end = Some(to);
            }
            SequenceSet::Ranges(joined)
        };
        let (here, there) = self.runs.iter().copied().unzip();
        (!self.runs.is_empty()).then(|| (set(here), set(there)))
    }
}

impl ServerSession {
    pub(crate) fn transfer(
        &mut self,
        set: SequenceSet,
        by_uid: bool,
        target: MailboxName,
        moves: bool,
    ) -> Flow {
        if moves && self.selected.as_ref().is_some_and(|selected| selected.read_only) {
            return Ending::no(word("READ-ONLY"), "The mailbox was opened to be read").into();
        }
        let messages = self.messages(set, by_uid);
        let copied = Some(Pairs::default());
        let task = TransferTask { by_uid, moves, messages, target, uid_validity: 0, copied };
        Flow::Go(Task::Transfer(Box::new(task)))
    }

    pub(crate) fn transfer_advance(&mut self, task: Box<TransferTask>) -> Flow {
        // UIDs stay what they are; numbers would change with what the client hears.
        if task.moves && task.by_uid && !self.say_gone() {
            return Flow::Go(Task::Transfer(task));
        }
        let question = FolderQuestion::Transfer {
            messages: task.messages.clone(),
            target: task.target.clone(),
            moves: task.moves,
            limit: self.limits().entries,
        };
        self.ask_folder(question, Task::Transfer(task))
    }

    pub(crate) fn transfer_answered(&mut self, mut task: Box<TransferTask>, answer: Answer) -> Flow {
        let (uid_validity, pairs, rest) = match self.outcome(answer) {
            Ok(FolderOutcome::Transferred { uid_validity, pairs, rest }) => (uid_validity, pairs, rest),
            Ok(FolderOutcome::NoMailbox) => {
                return Ending::refused(Refusal::new("TRYCREATE", NO_TARGET)).into();
            }
            Ok(outcome) => return Ending::of_outcome(outcome).telling(Changes::All).into(),
            Err(flow) => return flow,
        };
        self.tell_exists();
        task.uid_validity = uid_validity;
        let runs_max = self.limits().result_ranges;
        for (here, there) in pairs {
            let fits = task.copied.as_mut().is_some_and(|copied| copied.push(here, there, runs_max));
            if !fits {
                task.copied = None;
            }
        }
        if task.moves {
            // The client hears what was moved before it is gone from here (RFC 6851, section 4.3).
            if let Some(code) = self.copy_code(&task) {
                self.say_status(Status::Ok, Some(code), "Moved");
            }
            task.copied = Some(Pairs::default());
        }
        if let Some(rest) = rest {
            task.messages = Messages::Rest(rest);
            return Flow::Go(Task::Transfer(task));
        }
        if task.moves {
            let ending = Ending::ok("Moved").with_code(EndingCode::HighestModSeq);
            return ending.telling(Changes::All).into();
        }
        // COPY names numbers that stay (RFC 9051, section 7.5.1, has it not among those that forbid EXPUNGE).
        let ending = Ending::ok("Copied").telling(Changes::All);
        match self.copy_code(&task) {
            Some(code) => ending.with(code).into(),
            None => ending.into(),
        }
    }

    fn copy_code(&self, task: &TransferTask) -> Option<ResponseCode> {
        let shown = self.has(Capability::UidPlus) && (task.by_uid || !self.enabled.uid_only);
        let (here, there) = task.copied.as_ref().filter(|_| shown)?.sets()?;
        Some(ResponseCode::CopyUid(task.uid_validity, here, there))
    }
}
