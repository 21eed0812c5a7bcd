//! Frames and lines of the client, and what happens with literals.

use scrinium_imap_wire::{
    CommandFault, Decision, FrameError, FrameStep, Literal, Part, ResponseCode, Status, Tag, TaggedCommand,
    ValueLimits, parse_values,
};

use scrinium_line_wire::Line;

use crate::capability::Capability;
use crate::session::{ServerSession, SessionState, StepEnd};
use crate::task::{Ending, Flow};

/// What a client may send unasked under LITERAL- (RFC 7888, section 5).
const UNASKED_MAX_BYTES: u64 = 4096;

impl ServerSession {
    /// Looks at input as a part of a command.
    pub(crate) fn step_frame(&mut self) -> StepEnd {
        if self.rest().is_empty() && !self.refill() {
            return StepEnd::Starved;
        }
        let input = std::mem::take(&mut self.input);
        let rest = input.get(self.used..).unwrap_or_default();
        let rest = rest.get(..rest.len().min(self.limits().piece_bytes)).unwrap_or_default();
        let read = self.frames.read(rest);
        let used_before = self.used;
        let (flow, taken) = match read {
            Ok((taken, step)) => {
                let flow = match step {
                    FrameStep::More => None,
                    FrameStep::Announced(literal) => Some(FoundInput::Literal(literal)),
                    FrameStep::Data(bytes) => Some(FoundInput::Data(bytes.to_vec())),
                    FrameStep::Frame(parts) => Some(FoundInput::Frame(parts)),
                    FrameStep::Refused(parts) => Some(FoundInput::Refused(parts)),
                };
                (flow, taken)
            }
            Err(error) => (Some(FoundInput::Error(error)), 0),
        };
        self.input = input;
        self.used = used_before.saturating_add(taken).min(self.input.len());
        let Some(found) = flow else {
            return if self.rest().is_empty() { StepEnd::Starved } else { StepEnd::Done };
        };
        let flow = self.found(found);
        self.follow_input(flow);
        StepEnd::Done
    }

    fn found(&mut self, found: FoundInput) -> Flow {
        match found {
            FoundInput::Literal(literal) => self.literal(literal),
            FoundInput::Data(bytes) => self.append_data(bytes),
            FoundInput::Frame(parts) => self.frame(&parts),
            FoundInput::Refused(parts) => self.refused_frame(&parts),
            FoundInput::Error(error) => {
                let text = match error {
                    FrameError::Undecided => "Something went wrong here",
                    FrameError::BareLineFeed => "Lines end with CR LF",
                    FrameError::TooLong(_) | FrameError::TooManyLiterals(_) => "The command is too long",
                };
                self.say_status(Status::Bad, None, text);
                self.bye(crate::session::word("LIMIT"), text);
                Flow::Rest
            }
        }
    }

    fn frame(&mut self, parts: &[Part]) -> Flow {
        self.active_ms = self.now_ms;
        match TaggedCommand::parse(parts, self.command_options()) {
            Ok(TaggedCommand { tag, command }) => {
                self.tag = Some(tag);
                self.command(command)
            }
            Err(error) => self.fault(error.tag, error.fault),
        }
    }

    /// What came is no command.
    fn fault(&mut self, tag: Option<Tag>, fault: CommandFault) -> Flow {
        self.append.abandon();
        let _ = self.append.take_refusal();
        let Some(tag) = tag else {
            self.count_error();
            self.say_status(Status::Bad, None, &sentence(fault));
            return Flow::Rest;
        };
        self.tag = Some(tag);
        if fault == CommandFault::Charset {
            // RFC 9051, section 6.4.4.
            let known = ["US-ASCII", "UTF-8"].map(str::to_owned).to_vec();
            return Ending::no(Some(ResponseCode::BadCharset(known)), "The character set is not known")
                .into();
        }
        Ending::bad(&sentence(fault)).into()
    }

    /// A frame of which a literal was refused is over.
    fn refused_frame(&mut self, parts: &[Part]) -> Flow {
        self.append.abandon();
        let ending = self.append.take_refusal().unwrap_or_else(|| Ending::bad("The command is too long"));
        match TaggedCommand::tag_of(parts) {
            Some(tag) => {
                self.tag = Some(tag);
                ending.into()
            }
            None => {
                self.count_error();
                self.say_status(Status::Bad, None, &ending.text);
                Flow::Rest
            }
        }
    }

    /// A literal is announced: nothing of it is read before it is decided what happens with it.
    fn literal(&mut self, literal: Literal) -> Flow {
        if let Some(flow) = self.literal_of_message(literal) {
            return flow;
        }
        let unasked_max = if self.person.is_some() && self.has(Capability::LiteralPlus) {
            u64::MAX
        } else if self.has(Capability::LiteralPlus) || self.has(Capability::LiteralMinus) {
            UNASKED_MAX_BYTES
        } else {
            0
        };
        if !literal.waits && literal.bytes > unasked_max {
            return self.refuse_literal(Ending::bad("The literal is too long to be sent unasked"));
        }
        self.keep_literal(literal)
    }

    fn keep_literal(&mut self, literal: Literal) -> Flow {
        let room = if self.person.is_some() {
            self.limits().command_bytes
        } else {
            self.limits().login_command_bytes
        };
        if usize::try_from(literal.bytes).map_or(true, |bytes| bytes > room) {
            let ending = Ending::no(crate::session::word("TOOBIG"), "The literal is too long");
            return self.refuse_literal(ending);
        }
        self.decide(literal, Decision::Keep)
    }

    /// Decides, and tells a client that waits to go on.
    pub(crate) fn decide(&mut self, literal: Literal, decision: Decision) -> Flow {
        match self.frames.decide(decision) {
            Ok(Some(parts)) => self.refused_frame(&parts),
            Ok(None) => {
                if literal.waits && decision != Decision::Refuse {
                    self.say_go_on("Go on");
                }
                Flow::Rest
            }
            Err(_) => {
                self.refuse_literal(Ending::no(crate::session::word("TOOBIG"), "The command is too long"))
            }
        }
    }

    pub(crate) fn refuse_literal(&mut self, ending: Ending) -> Flow {
        self.append.refuse(ending);
        match self.frames.decide(Decision::Refuse) {
            Ok(Some(parts)) => self.refused_frame(&parts),
            Ok(None) => Flow::Rest,
            Err(_) => {
                self.bye(None, "The command is too long");
                Flow::Rest
            }
        }
    }

    pub(crate) fn say_go_on(&mut self, text: &str) {
        self.say(&scrinium_imap_wire::Response::Continuation(text.to_owned()));
    }

    /// The parts of a command so far, with a literal behind them, as one that can be read. `None` while the literal is a word
    /// of the command, such as the name of a mailbox.
    pub(crate) fn message_so_far(&self, literal: Literal) -> Option<Vec<Part>> {
        let parts = self.frames.parts();
        let limits = ValueLimits { depth: 4, values: 1 << 14 };
        let Some(Part::Text(text)) = parts.first() else { return None };
        let mut words = text.split(|byte| *byte == b' ').skip(1).filter(|word| !word.is_empty());
        let mut word = words.next()?.to_ascii_uppercase();
        let mut before = 2;
        if word == b"UID" {
            word = words.next()?.to_ascii_uppercase();
            before += 1;
        }
        match word.as_slice() {
            b"APPEND" => {}
            b"REPLACE" => before += 1,
            _ => return None,
        }
        let mut whole = parts.to_vec();
        whole.push(Part::Streamed(literal.bytes, literal.binary));
        if matches!(parts.last(), Some(Part::Text(text)) if text.ends_with(b"(")) {
            whole.push(Part::Text(b")".to_vec()));
        }
        // With the literal there must be the mailbox and something behind it.
        match parse_values(&whole, limits) {
            Ok(values) if values.len() <= before + 1 => None,
            _ => Some(whole),
        }
    }

    /// Looks at input as a line: of SASL, or DONE.
    pub(crate) fn step_line(&mut self) -> StepEnd {
        if self.rest().is_empty() && !self.refill() {
            return StepEnd::Starved;
        }
        let rest = self.input.get(self.used..).unwrap_or_default();
        match self.scanner.find(rest) {
            Ok(None) => StepEnd::Starved,
            Ok(Some(Line { text, consumed })) => {
                let line = text.to_vec();
                self.used = self.used.saturating_add(consumed).min(self.input.len());
                let flow = match std::mem::replace(&mut self.state, SessionState::Commands) {
                    SessionState::Login(login) => self.login_line(*login, &line),
                    SessionState::Idle(tag) => self.idle_line(tag, &line),
                    state => {
                        self.state = state;
                        Flow::Rest
                    }
                };
                self.follow_input(flow);
                StepEnd::Done
            }
            Err(_) => {
                self.bye(None, "The line is too long");
                StepEnd::Done
            }
        }
    }

    /// More of what is compressed, where the room was not enough before. Whether there was any.
    fn refill(&mut self) -> bool {
        let room = self.limits().input_bytes;
        let Some(inflater) = &mut self.inflater else { return false };
        self.input.clear();
        self.used = 0;
        inflater.inflate(&[], &mut self.input, room).is_ok() && !self.input.is_empty()
    }
}

enum FoundInput {
    Literal(Literal),
    Data(Vec<u8>),
    Frame(Vec<Part>),
    Refused(Vec<Part>),
    Error(FrameError),
}

/// A fault as a sentence.
fn sentence(fault: CommandFault) -> String {
    let text = fault.to_string();
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
