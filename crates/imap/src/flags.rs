//! FETCH of flags and UIDs alone, by which mail programs learn what has become of a whole mailbox: what the folder itself says is
//! enough, and it is written as it comes.

use std::collections::VecDeque;
use std::io::Write;

use scrinium_imap_wire::FetchAttribute;
use scrinium_mailbox::Messages;

use crate::request::{Answer, FolderOutcome, FolderQuestion, MessageFlags};
use crate::session::ServerSession;
use crate::task::{Flow, Task};

/// Messages of one answer: each is a line.
const FLAGS_AT_ONCE: u32 = 4000;

pub(crate) struct FlagsTask {
    pub(crate) by_uid: bool,
    /// Flags and UIDs, in the order in which they are told.
    attributes: Vec<FetchAttribute>,
    messages: Messages,
    flags: VecDeque<MessageFlags>,
    is_last: bool,
    pub(crate) missing: u32,
}

impl FlagsTask {
    /// `None` where more is asked for.
    pub(crate) fn new(by_uid: bool, attributes: &[FetchAttribute], messages: Messages) -> Option<Self> {
        let is_enough =
            |attribute: &FetchAttribute| matches!(attribute, FetchAttribute::Flags | FetchAttribute::Uid);
        if attributes.is_empty() || !attributes.iter().all(is_enough) {
            return None;
        }
        let attributes = attributes.to_vec();
        Some(Self { by_uid, attributes, messages, flags: VecDeque::new(), is_last: false, missing: 0 })
    }
}

impl ServerSession {
    pub(crate) fn flags_advance(&mut self, mut task: Box<FlagsTask>) -> Flow {
        while self.output.len() < self.limits().output_bytes {
            if let Some(flags) = task.flags.pop_front() {
                self.tell_keywords(&flags.keywords);
                self.say_flags(&task, &flags);
            } else if task.is_last {
                return self.fetched(task.by_uid, task.missing, false);
            } else {
                let messages = task.messages.clone();
                let question = FolderQuestion::Flags { messages, limit: FLAGS_AT_ONCE };
                return self.ask_folder(question, Task::Flags(task));
            }
        }
        Flow::Go(Task::Flags(task))
    }

    pub(crate) fn flags_answered(&mut self, mut task: Box<FlagsTask>, answer: Answer) -> Flow {
        match self.outcome(answer) {
            Ok(FolderOutcome::Flags { flags, rest, missing }) => {
                self.tell_exists();
                task.missing = task.missing.saturating_add(missing);
                task.flags = flags.into();
                task.is_last = rest.is_none();
                if let Some(rest) = rest {
                    task.messages = Messages::Rest(rest);
                }
                Flow::Go(Task::Flags(task))
            }
            Ok(outcome) => crate::task::Ending::of_outcome(outcome).into(),
            Err(flow) => flow,
        }
    }

    /// One line, as [`Response::Fetch`](scrinium_imap_wire::Response) or its form with UIDs alone would be written.
    fn say_flags(&mut self, task: &FlagsTask, message: &MessageFlags) {
        let mut line = Vec::with_capacity(80);
        let uid_only = self.enabled.uid_only;
        let (number, word) = if uid_only { (message.uid, "UIDFETCH") } else { (message.number, "FETCH") };
        // A vector takes whatever is written.
        let _ = write!(line, "* {number} {word} (");
        if task.by_uid && !uid_only && !task.attributes.contains(&FetchAttribute::Uid) {
            let _ = write!(line, "UID {} ", message.uid);
        }
        for (place, attribute) in task.attributes.iter().enumerate() {
            if place > 0 {
                line.push(b' ');
            }
            match attribute {
                FetchAttribute::Uid => {
                    let _ = write!(line, "UID {}", message.uid);
                }
                _ => write_flags(&mut line, message),
            }
        }
        line.extend_from_slice(b")\r\n");
        self.output.push(&line);
    }
}

fn write_flags(line: &mut Vec<u8>, message: &MessageFlags) {
    line.extend_from_slice(b"FLAGS (");
    let begun = line.len();
    let mut write = |flag: &str| {
        if line.len() > begun {
            line.push(b' ');
        }
        line.extend_from_slice(flag.as_bytes());
    };
    message.flags.names().for_each(&mut write);
    message.keywords.iter().for_each(|keyword| write(keyword.as_str()));
    line.push(b')');
}
