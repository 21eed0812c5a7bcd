//! FETCH (RFC 9051, section 6.4.5): messages one after the other, and their content as fast as the client takes it.

use std::collections::VecDeque;

use scrinium_imap_wire::{FetchAttribute, FetchModifiers, Next, Response, Segment, SequenceSet};
use scrinium_mailbox::{Messages, Span};

use crate::flags::FlagsTask;
use crate::item::{Built, Content, ItemStyle, Measure, build};
use crate::request::{Answer, EntriesQuestion, Entry, FolderOutcome, FolderQuestion, MapNeed, Request};
use crate::session::{ServerSession, word};
use crate::task::{Changes, Ending, Flow, Task};

/// Messages of one answer where their content is sent as well.
const CONTENT_ENTRIES: u32 = 32;

/// Messages of one answer where their maps are needed.
const MAP_ENTRIES: u32 = 100;

/// What is asked for of each message at once where its header is enough.
const HEADER_BYTES: u32 = 16 * 1024;

/// Ranges of one VANISHED.
const VANISHED_RANGES: usize = 1000;

pub(crate) struct FetchTask {
    by_uid: bool,
    attributes: Vec<FetchAttribute>,
    question: EntriesQuestion,
    /// VANISHED comes first: what has gone since, of these.
    vanished: Option<(u64, SequenceSet, u32)>,
    entries: VecDeque<Entry>,
    is_last: bool,
    missing: u32,
    /// An encoding that nobody here knows.
    is_unknown: bool,
    sending: Option<Sending>,
}

/// A message on its way out.
struct Sending {
    entry: Entry,
    measured: Vec<u64>,
    measure: Option<Measure>,
    segments: VecDeque<Segment>,
    contents: VecDeque<Content>,
    content: Option<Content>,
    /// The beginning of its answer was said.
    has_begun: bool,
}

impl FetchTask {
    pub(crate) fn held_bytes(&self) -> usize {
        let sources: usize = self.entries.iter().map(|entry| entry.source.len()).sum();
        sources + self.sending.as_ref().map_or(0, |sending| sending.entry.source.len())
    }
}

impl ServerSession {
    pub(crate) fn fetch(
        &mut self,
        by_uid: bool,
        set: SequenceSet,
        mut attributes: Vec<FetchAttribute>,
        modifiers: FetchModifiers,
    ) -> Flow {
        let FetchModifiers { changed_since, vanished, partial } = modifiers;
        if vanished && (!self.enabled.qresync || !by_uid || changed_since.is_none()) {
            // RFC 7162, section 3.2.6.
            return Ending::bad("VANISHED is for UID FETCH with CHANGEDSINCE, behind ENABLE QRESYNC").into();
        }
        if partial.is_some() && !by_uid {
            return Ending::bad("PARTIAL is for UID FETCH").into();
        }
        // RFC 7162, section 3.1.
        self.enabled.condstore |= changed_since.is_some() || attributes.contains(&FetchAttribute::ModSeq);
        if changed_since.is_some() && !attributes.contains(&FetchAttribute::ModSeq) {
            // RFC 7162, section 3.1.4.1.
            attributes.push(FetchAttribute::ModSeq);
        }
        let vanished = changed_since.filter(|_| vanished).map(|since| (since, set.clone(), 1));
        let messages = self.messages(set, by_uid);
        if changed_since.is_none()
            && partial.is_none()
            && let Some(task) = FlagsTask::new(by_uid, &attributes, messages.clone())
        {
            return Flow::Go(Task::Flags(Box::new(task)));
        }
        let question = self.entries_question(messages, &attributes, changed_since, partial);
        Flow::Go(Task::Fetch(Box::new(FetchTask {
            by_uid,
            attributes,
            question,
            vanished,
            entries: VecDeque::new(),
            is_last: false,
            missing: 0,
            is_unknown: false,
            sending: None,
        })))
    }

    fn entries_question(
        &self,
        messages: Messages,
        attributes: &[FetchAttribute],
        changed_since: Option<u64>,
        partial: Option<(i64, i64)>,
    ) -> EntriesQuestion {
        let mut question = EntriesQuestion {
            messages,
            limit: self.limits().entries,
            changed_since,
            partial,
            map: MapNeed::Nothing,
            source_bytes: 0,
            marks_seen: false,
            threads: attributes.contains(&FetchAttribute::ThreadId),
        };
        let read_only = self.selected.as_ref().is_none_or(|selected| selected.read_only);
        for attribute in attributes {
            let Need { map, source_bytes, seen } = need(attribute, self.limits().piece_bytes);
            question.map = question.map.max(map);
            question.source_bytes = question.source_bytes.max(source_bytes);
            question.marks_seen |= seen && !read_only;
        }
        let most = match (question.source_bytes, question.map) {
            (0, MapNeed::Nothing) if !question.threads => u32::MAX,
            (0, _) => MAP_ENTRIES,
            _ => CONTENT_ENTRIES,
        };
        question.limit = question.limit.min(most);
        question
    }

    pub(crate) fn fetch_advance(&mut self, mut task: Box<FetchTask>) -> Flow {
        if let Some((since, known, from_uid)) = &task.vanished {
            let (since, known, from_uid) = (*since, Some(known.clone()), *from_uid);
            let limit = VANISHED_RANGES;
            let question = FolderQuestion::Vanished { since, known, from_uid, limit };
            return self.ask_folder(question, Task::Fetch(task));
        }
        while self.output.len() < self.limits().output_bytes {
            if let Some(mut sending) = task.sending.take() {
                match self.send(&mut task, &mut sending) {
                    Sent::Done => {}
                    Sent::Full => {
                        task.sending = Some(sending);
                        break;
                    }
                    Sent::Needs(span) => {
                        let request = Request::Content(sending.entry.content.clone(), span);
                        task.sending = Some(sending);
                        return Flow::Ask(request, Task::Fetch(task));
                    }
                }
            } else if let Some(entry) = task.entries.pop_front() {
                self.tell_keywords(&entry.keywords);
                if let Some(selected) = self.selected.as_mut().filter(|_| entry.was_changed) {
                    // Its flags are told with it.
                    selected.own_changes(entry.mod_seq, entry.mod_seq);
                }
                task.sending = Some(Sending::new(entry));
            } else if task.is_last {
                return self.fetched(task.by_uid, task.missing, task.is_unknown);
            } else {
                let question = FolderQuestion::Entries(task.question.clone());
                return self.ask_folder(question, Task::Fetch(task));
            }
        }
        Flow::Go(Task::Fetch(task))
    }

    pub(crate) fn fetch_answered(&mut self, mut task: Box<FetchTask>, answer: Answer) -> Flow {
        if task.sending.is_some() {
            return self.content_given(task, answer);
        }
        match self.outcome(answer) {
            Ok(FolderOutcome::Vanished { uids, next_uid }) => {
                if let Some(uids) = uids.sequence_set() {
                    self.say(&Response::Vanished { earlier: true, uids });
                }
                task.vanished = match (task.vanished.take(), next_uid) {
                    (Some((since, known, _)), Some(next)) => Some((since, known, next)),
                    _ => None,
                };
            }
            Ok(FolderOutcome::Entries { entries, rest, missing }) => {
                self.tell_exists();
                task.missing = task.missing.saturating_add(missing);
                task.entries = entries.into();
                task.is_last = rest.is_none();
                task.question.partial = None;
                if let Some(rest) = rest {
                    task.question.messages = Messages::Rest(rest);
                }
            }
            Ok(outcome) => return Ending::of_outcome(outcome).into(),
            Err(flow) => return flow,
        }
        Flow::Go(Task::Fetch(task))
    }

    fn content_given(&mut self, mut task: Box<FetchTask>, answer: Answer) -> Flow {
        let Some(sending) = &mut task.sending else { return Flow::Go(Task::Fetch(task)) };
        match answer {
            Answer::Content(bytes) if !bytes.is_empty() => {
                if let Some(measure) = &mut sending.measure {
                    measure.push(&bytes);
                } else if let Some(content) =
                    sending.content.as_mut().or_else(|| sending.contents.front_mut())
                {
                    content.give(bytes);
                }
            }
            // Nothing can be said any more in place of the bytes that were announced.
            _ if sending.has_begun => self.bye(word("UNAVAILABLE"), "A message could not be read to its end"),
            _ => {
                task.sending = None;
                task.missing = task.missing.saturating_add(1);
            }
        }
        Flow::Go(Task::Fetch(task))
    }

    /// Sends what there is room for.
    fn send(&mut self, task: &mut FetchTask, sending: &mut Sending) -> Sent {
        if !sending.has_begun {
            if let Some(sent) = self.prepare(task, sending) {
                return sent;
            }
            sending.has_begun = true;
        }
        loop {
            if let Some(content) = &mut sending.content {
                let room = self.limits().output_bytes.saturating_sub(self.output.len());
                if room == 0 {
                    return Sent::Full;
                }
                let piece_bytes = self.options.limits.piece_bytes as u64;
                let output = &mut self.output;
                match content.next(&sending.entry.source, room, |bytes| output.push(bytes)) {
                    Some(span) if span.bytes() > 0 => return Sent::Needs(span.part(0, piece_bytes)),
                    Some(_) => continue,
                    None => sending.content = None,
                }
            }
            let Some(segment) = sending.segments.pop_front() else { return Sent::Done };
            self.output.push(&segment.bytes);
            if let Next::Data { .. } = segment.next {
                sending.content = sending.contents.pop_front();
            }
        }
    }

    /// Finds out what is said of a message before a byte of it is said. `None` when that is known.
    fn prepare(&mut self, task: &mut FetchTask, sending: &mut Sending) -> Option<Sent> {
        let piece_bytes = self.limits().piece_bytes as u64;
        while sending.segments.is_empty() {
            if let Some(measure) = sending.measure.take() {
                match measure.needs() {
                    Some(span) => {
                        sending.measure = Some(measure);
                        return Some(Sent::Needs(span.part(0, piece_bytes)));
                    }
                    None => sending.measured.push(measure.bytes()),
                }
            }
            let style = ItemStyle {
                utf8: self.is_utf8(),
                condstore: self.enabled.condstore,
                tells_uid: task.by_uid && !self.enabled.uid_only,
            };
            match build(&sending.entry, &task.attributes, &sending.measured, style) {
                Built::Measure(measure) => sending.measure = Some(*measure),
                Built::Whole { items, contents, is_unknown } => {
                    task.is_unknown |= is_unknown;
                    if items.is_empty() {
                        return Some(Sent::Done);
                    }
                    let (number, uid) = (sending.entry.number, sending.entry.uid);
                    let response = if self.enabled.uid_only {
                        Response::UidFetch { uid, items }
                    } else {
                        Response::Fetch { number, items }
                    };
                    sending.segments = response.write(self.names(), self.write_options()).into();
                    sending.contents = contents.into();
                }
            }
        }
        // The first bytes are there before any are announced: the message may be gone.
        let first = sending.contents.front()?;
        let span = first.needs(&sending.entry.source)?;
        Some(Sent::Needs(span.part(0, piece_bytes)))
    }

    /// `is_unknown`: an encoding is not known.
    pub(crate) fn fetched(&self, by_uid: bool, missing: u32, is_unknown: bool) -> Flow {
        let changes = if by_uid { Changes::All } else { Changes::Flags };
        let ending = if is_unknown {
            // RFC 3516, section 4.3.
            Ending::no(word("UNKNOWN-CTE"), "A part is encoded in a way that is not known here")
        } else if missing > 0 && !by_uid {
            // RFC 5530; RFC 2180, section 4.1.2.
            Ending::no(word("EXPUNGEISSUED"), "Some of the messages are gone")
        } else {
            Ending::ok("Fetched")
        };
        ending.telling(changes).into()
    }

    /// What a set names; `$` is the last result that was saved. Numbers that the client has not heard of are nobody's: what is new
    /// is not changed by a command that was sent before it came.
    pub(crate) fn messages(&self, set: SequenceSet, by_uid: bool) -> Messages {
        let told = self.selected.as_ref().map_or(0, |selected| selected.told_exists);
        match set {
            SequenceSet::Saved => Messages::Rest(scrinium_mailbox::Selection::Uids(self.saved.clone())),
            set if by_uid => Messages::Named(set, true),
            set => {
                let numbers = scrinium_mailbox::NumberSet::of_ranges(set.resolve(told));
                Messages::Rest(scrinium_mailbox::Selection::Numbers(numbers.up_to(told)))
            }
        }
    }
}

enum Sent {
    Done,
    /// The client takes something first.
    Full,
    /// Bytes of the message.
    Needs(Span),
}

impl Sending {
    fn new(entry: Entry) -> Self {
        Self {
            entry,
            measured: Vec::new(),
            measure: None,
            segments: VecDeque::new(),
            contents: VecDeque::new(),
            content: None,
            has_begun: false,
        }
    }
}

struct Need {
    map: MapNeed,
    source_bytes: u32,
    seen: bool,
}

/// What an item needs to be answered.
fn need(attribute: &FetchAttribute, piece_bytes: usize) -> Need {
    use scrinium_imap_wire::SectionText;
    let piece = u32::try_from(piece_bytes).unwrap_or(u32::MAX);
    let of = |map, source_bytes, seen| Need { map, source_bytes, seen };
    match attribute {
        FetchAttribute::Flags
        | FetchAttribute::InternalDate
        | FetchAttribute::Rfc822Size
        | FetchAttribute::Uid
        | FetchAttribute::ModSeq
        | FetchAttribute::EmailId
        | FetchAttribute::ThreadId
        | FetchAttribute::SaveDate => of(MapNeed::Nothing, 0, false),
        FetchAttribute::Envelope => of(MapNeed::Header, 0, false),
        FetchAttribute::Body
        | FetchAttribute::BodyStructure
        | FetchAttribute::Preview(_)
        | FetchAttribute::BinarySize(_) => of(MapNeed::Whole, 0, false),
        FetchAttribute::Rfc822 => of(MapNeed::Whole, piece, true),
        FetchAttribute::Rfc822Header => of(MapNeed::Header, HEADER_BYTES, false),
        FetchAttribute::Rfc822Text => of(MapNeed::Whole, piece, true),
        FetchAttribute::BodySection { peek, section, .. } => {
            let is_header = section.part.is_empty()
                && matches!(section.text, Some(SectionText::Header | SectionText::HeaderFields(..)));
            let map = if is_header { MapNeed::Header } else { MapNeed::Whole };
            of(map, if is_header { HEADER_BYTES } else { piece }, !peek)
        }
        FetchAttribute::Binary { peek, .. } => of(MapNeed::Whole, piece, !peek),
    }
}
