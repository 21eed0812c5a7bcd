//! APPEND (RFC 9051, section 6.3.12; RFC 3502) and REPLACE (RFC 8508): messages go on while they come, and are stored together.

use crate::capability::Capability;
use crate::request::{Answer, FolderOutcome, FolderQuestion, NewMessage, Refusal, Request, SystemFlags};
use crate::session::{ServerSession, word};
use crate::task::{Changes, Ending, Flow, Task};
use scrinium_imap_wire::{
    AppendMessage, Command, Decision, Flag, Literal, MailboxName, MessageData, Part, ResponseCode,
    SequenceSet, TaggedCommand,
};

/// Messages that are on their way in.
#[derive(Default)]
pub(crate) struct AppendState {
    /// How many have begun, of the command that comes.
    begun: usize,
    /// The literal that waits for the surroundings.
    literal: Option<Literal>,
    /// What the client hears once the rest of the command has gone by.
    refusal: Option<Ending>,
    /// The surroundings have messages that do not come.
    is_abandoned: bool,
    /// What comes is dropped: it was refused while it came.
    drops: bool,
}

impl AppendState {
    pub(crate) fn abandon(&mut self) {
        self.is_abandoned = self.is_abandoned || self.begun > 0;
        self.begun = 0;
        self.literal = None;
    }

    /// The answer to a beginning comes to nobody.
    pub(crate) fn abandon_unanswered(&mut self) {
        self.is_abandoned = true;
    }

    pub(crate) fn take_abandoned(&mut self) -> bool {
        std::mem::take(&mut self.is_abandoned)
    }

    pub(crate) fn refuse(&mut self, ending: Ending) {
        self.refusal.get_or_insert(ending);
    }

    pub(crate) fn take_refusal(&mut self) -> Option<Ending> {
        self.drops = false;
        self.refusal.take()
    }
}

impl ServerSession {
    /// What happens with a literal that is a message; `None` for any other.
    pub(crate) fn literal_of_message(&mut self, literal: Literal) -> Option<Flow> {
        self.person.as_ref()?;
        if self.append.refusal.is_some() {
            return Some(self.refuse_literal(Ending::bad("The command was refused")));
        }
        let parts = self.message_so_far(literal)?;
        let (mailbox, message) = match self.new_message(&parts) {
            Ok(new) => new,
            Err(ending) => return Some(self.refuse_literal(ending)),
        };
        let unasked = literal.waits
            || self.has(Capability::LiteralPlus)
            || (self.has(Capability::LiteralMinus) && literal.bytes <= 4096);
        if !unasked {
            return Some(self.refuse_literal(Ending::bad("The literal is too long to be sent unasked")));
        }
        if literal.bytes > self.limits().message_bytes {
            let text = format!("A message may have {} bytes", self.limits().message_bytes);
            return Some(self.refuse_literal(Ending::no(word("TOOBIG"), &text)));
        }
        if literal.bytes == 0 {
            // RFC 3502, section 6.3.11: the client has changed its mind.
            return Some(self.refuse_literal(Ending::no(None, "A message cannot be empty")));
        }
        let (flags, keywords) = split_flags(&message.flags);
        let new = NewMessage {
            mailbox,
            flags,
            keywords,
            date: message.date,
            bytes: literal.bytes,
            utf8: message.utf8,
            is_binary: literal.binary,
            index: self.append.begun,
        };
        self.append.literal = Some(literal);
        Some(Flow::Ask(Request::BeginAppend(Box::new(new)), Task::BeginAppend))
    }

    fn new_message(&self, parts: &[Part]) -> Result<(MailboxName, AppendMessage), Ending> {
        let command = TaggedCommand::parse(parts, self.command_options());
        let command = command.map_err(|error| Ending::bad(&error.to_string()))?.command;
        if let Some(ending) = self.refused_here(&command) {
            return Err(ending);
        }
        let (mailbox, message) = match command {
            Command::Append { mailbox, mut messages } => {
                (mailbox, messages.pop().ok_or_else(|| Ending::bad("A message is missing"))?)
            }
            Command::Replace { mailbox, message, .. } => (mailbox, message),
            _ => return Err(Ending::bad("A message is not expected here")),
        };
        if message.utf8 && !self.is_utf8() {
            return Err(Ending::bad("Say ENABLE UTF8=ACCEPT first"));
        }
        Ok((mailbox, message))
    }

    pub(crate) fn append_begun(&mut self, answer: Answer) -> Flow {
        let Some(literal) = self.append.literal.take() else { return Flow::Rest };
        match answer {
            Answer::Accepted => {
                self.append.begun += 1;
                self.decide(literal, Decision::Stream)
            }
            answer => self.refuse_literal(Ending::of_answer(answer)),
        }
    }

    pub(crate) fn append_data(&mut self, bytes: Vec<u8>) -> Flow {
        if self.append.drops {
            return Flow::Rest;
        }
        Flow::Ask(Request::AppendData(bytes), Task::AppendData)
    }

    pub(crate) fn append_data_taken(&mut self, answer: Answer) -> Flow {
        if !matches!(answer, Answer::Accepted) {
            // The rest comes all the same.
            self.append.refuse(Ending::of_answer(answer));
            self.append.abandon();
            self.append.drops = true;
        }
        Flow::Rest
    }

    /// The command is whole.
    pub(crate) fn append(&mut self, messages: &[AppendMessage]) -> Flow {
        if let Some(ending) = self.unfinished(messages) {
            return ending.into();
        }
        self.append.begun = 0;
        Flow::Ask(Request::FinishAppend, Task::FinishAppend)
    }

    fn unfinished(&mut self, messages: &[AppendMessage]) -> Option<Ending> {
        if let Some(ending) = self.append.take_refusal() {
            self.append.abandon();
            return Some(ending);
        }
        let all_came = messages.iter().all(|message| matches!(message.data, MessageData::Streamed(..)));
        if !all_came || messages.len() != self.append.begun {
            self.append.abandon();
            return Some(Ending::bad("A message is sent as a literal"));
        }
        None
    }

    pub(crate) fn append_finished(&mut self, answer: Answer) -> Flow {
        match answer {
            Answer::Appended { uid_validity, uids } => {
                let ending = Ending::ok("Stored").telling(Changes::All);
                match uids.sequence_set().filter(|_| self.has(Capability::UidPlus)) {
                    Some(set) => ending.with(ResponseCode::AppendUid(uid_validity, set)).into(),
                    None => ending.into(),
                }
            }
            answer => Ending::of_answer(answer).into(),
        }
    }

    /// REPLACE: the new message is stored and the old one goes, both or neither.
    pub(crate) fn replace(&mut self, by_uid: bool, number: u32, message: AppendMessage) -> Flow {
        if let Some(ending) = self.unfinished(&[message]) {
            return ending.into();
        }
        self.append.begun = 0;
        let named = self.messages(SequenceSet::from(number), by_uid);
        self.ask_folder(FolderQuestion::Replace(named), Task::Replace)
    }

    pub(crate) fn replaced(&mut self, answer: Answer) -> Flow {
        match self.outcome(answer) {
            Ok(FolderOutcome::Replaced { uid_validity, uid }) => {
                // RFC 8508, section 3.4.
                let code = ResponseCode::AppendUid(uid_validity, SequenceSet::from(uid));
                self.say_status(scrinium_imap_wire::Status::Ok, Some(code), "Replaced");
                Ending::ok("Done").telling(Changes::All).into()
            }
            Ok(FolderOutcome::NoMailbox) => Ending::refused(Refusal::new("TRYCREATE", NO_TARGET)).into(),
            Ok(outcome) => Ending::of_outcome(outcome).into(),
            Err(flow) => flow,
        }
    }
}

pub(crate) const NO_TARGET: &str = "There is no such mailbox; it can be made";

/// Flags of the protocol, and keywords. `\Recent` is nobody's to set.
pub(crate) fn split_flags(flags: &[Flag]) -> (SystemFlags, Vec<Flag>) {
    let mut system = SystemFlags::default();
    let mut keywords: Vec<Flag> = Vec::new();
    for flag in flags {
        match system.place(flag) {
            Some(place) => *place = true,
            None if flag.as_str().starts_with('\\') => {}
            None if keywords.iter().any(|known| known.is(flag.as_str())) => {}
            None => keywords.push(flag.clone()),
        }
    }
    system.recent = false;
    (system, keywords)
}
