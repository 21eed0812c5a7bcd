//! EXPUNGE, UID EXPUNGE and CLOSE (RFC 9051, sections 6.4.1, 6.4.3 and 6.4.9): a batch at a time; the client hears of each at once.

use scrinium_imap_wire::SequenceSet;
use scrinium_mailbox::Messages;

use crate::request::{Answer, FolderOutcome, FolderQuestion};
use crate::session::{ServerSession, word};
use crate::task::{Changes, Ending, EndingCode, Flow, Task};

pub(crate) struct ExpungeTask {
    messages: Messages,
    /// CLOSE: the client hears nothing, and the mailbox is left.
    closes: bool,
}

impl ServerSession {
    pub(crate) fn expunge(&mut self, uids: Option<SequenceSet>) -> Flow {
        if self.selected.as_ref().is_some_and(|selected| selected.read_only) {
            return Ending::no(word("READ-ONLY"), "The mailbox was opened to be read").into();
        }
        let messages = uids.map_or_else(Messages::all, |uids| self.messages(uids, true));
        Flow::Go(Task::Expunge(Box::new(ExpungeTask { messages, closes: false })))
    }

    pub(crate) fn expunge_silently(&self) -> Flow {
        Flow::Go(Task::Expunge(Box::new(ExpungeTask { messages: Messages::all(), closes: true })))
    }

    pub(crate) fn expunge_advance(&mut self, task: Box<ExpungeTask>) -> Flow {
        // The client hears of each batch before the next one: what it has not heard takes memory.
        if task.closes {
            if let Some(view) = self.selected.as_mut().and_then(|selected| selected.view.as_mut()) {
                let _ = view.take_last_ranges(usize::MAX);
            }
        } else if !self.say_gone() {
            return Flow::Go(Task::Expunge(task));
        }
        let question =
            FolderQuestion::Expunge { messages: task.messages.clone(), limit: self.limits().entries };
        self.ask_folder(question, Task::Expunge(task))
    }

    pub(crate) fn expunge_answered(&mut self, mut task: Box<ExpungeTask>, answer: Answer) -> Flow {
        match self.outcome(answer) {
            Ok(FolderOutcome::Expunged { rest: Some(rest) }) => {
                self.tell_exists();
                task.messages = Messages::Rest(rest);
                Flow::Go(Task::Expunge(task))
            }
            Ok(FolderOutcome::Expunged { rest: None }) if task.closes => {
                self.leave(false);
                Ending::ok("Closed").into()
            }
            Ok(FolderOutcome::Expunged { rest: None }) => {
                let ending = Ending::ok("Done").with_code(EndingCode::HighestModSeq);
                ending.telling(Changes::All).into()
            }
            // Who may not take messages away may leave.
            Ok(_) if task.closes => {
                self.leave(false);
                Ending::ok("Closed; nothing was taken away").into()
            }
            Ok(outcome) => Ending::of_outcome(outcome).telling(Changes::All).into(),
            Err(flow) => flow,
        }
    }
}
