//! Lists, messages and deletions, a piece at a time.

use scrinium_mailbox::{NumberSet, Span};
use scrinium_pop3_wire::{BareEnds, DotWriter};

use crate::request::{Answer, Entry, MaildropAnswer, MaildropOutcome, MaildropQuestion, Refusal, Request};
use crate::session::{Pending, ServerSession};

/// What a list tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listing {
    Sizes,
    UniqueIds,
}

/// A command at one of its steps.
pub(crate) enum Work {
    /// LIST and UIDL of all: what is left.
    List(Listing, Option<NumberSet>),
    /// LIST and UIDL of one.
    Entry(Listing, u32),
    /// DELE.
    Mark(u32),
    /// RETR and TOP, before the message is found.
    Find(u32, Option<u32>),
    Text(Box<Text>),
    Delete(NumberSet),
}

/// A message on its way out.
pub(crate) struct Text {
    entry: Entry,
    rest: Span,
    writer: DotWriter,
    /// Of TOP: the lines of the body that are left, and the place in the message.
    lines: Option<TopLines>,
    has_begun: bool,
}

/// Finds the end of a header and some lines of a body.
#[derive(Clone, Copy)]
struct TopLines {
    left: u32,
    in_body: bool,
    at_line_start: bool,
}

impl TopLines {
    /// How much of a piece belongs to it, and whether that is all.
    fn take(&mut self, piece: &[u8]) -> (usize, bool) {
        for (index, byte) in piece.iter().enumerate() {
            if self.in_body && self.left == 0 {
                return (index, true);
            }
            match byte {
                b'\n' if self.in_body => self.left -= 1,
                b'\n' if self.at_line_start => self.in_body = true,
                b'\n' => self.at_line_start = true,
                b'\r' => {}
                _ => self.at_line_start = false,
            }
        }
        (piece.len(), self.in_body && self.left == 0)
    }
}

impl Work {
    pub(crate) fn list(listing: Listing) -> Self {
        Self::List(listing, None)
    }

    pub(crate) fn entry(listing: Listing, number: u32) -> Self {
        Self::Entry(listing, number)
    }

    pub(crate) fn mark(number: u32) -> Self {
        Self::Mark(number)
    }

    pub(crate) fn text(number: u32, lines: Option<u32>) -> Self {
        Self::Find(number, lines)
    }

    pub(crate) fn delete(marked: NumberSet) -> Self {
        Self::Delete(marked)
    }

    pub(crate) fn number(&self) -> Option<u32> {
        match self {
            Self::Entry(_, number) | Self::Mark(number) | Self::Find(number, _) => Some(*number),
            _ => None,
        }
    }

    pub(crate) fn deletes(&self) -> bool {
        matches!(self, Self::Delete(_))
    }
}

impl ServerSession {
    pub(crate) fn advance(&mut self, work: Box<Work>) {
        let numbers = match &*work {
            Work::List(listing, None) => {
                let count = self.maildrop.as_ref().map_or(0, |maildrop| maildrop.count);
                self.ok(&format!("{count} messages"));
                let all = NumberSet::of_ranges((count > 0).then_some((1, count)));
                self.work = Some(Box::new(Work::List(*listing, Some(all))));
                return;
            }
            Work::List(_, Some(rest)) if rest.is_empty() => return self.line("."),
            Work::List(_, Some(rest)) => rest.clone(),
            Work::Entry(_, number) | Work::Mark(number) | Work::Find(number, _) => {
                NumberSet::of_ranges([(*number, *number)])
            }
            Work::Text(_) => return self.send_text(work),
            Work::Delete(numbers) => {
                let numbers = numbers.clone();
                return self.ask_maildrop(work, |view| MaildropQuestion::Delete(view, numbers));
            }
        };
        let limit = self.limits().entries;
        self.ask_maildrop(work, |view| MaildropQuestion::Entries(view, numbers, limit));
    }

    fn ask_maildrop(
        &mut self,
        work: Box<Work>,
        question: impl FnOnce(scrinium_mailbox::FolderView) -> MaildropQuestion,
    ) {
        match self.maildrop.as_mut().and_then(|maildrop| maildrop.view.take()) {
            Some(view) => self.ask(Pending::Work(work), Request::Maildrop(Box::new(question(view)))),
            None => self.lost(),
        }
    }

    /// Numbers would be wrong from now on.
    fn lost(&mut self) {
        self.refuse(&Refusal::trouble());
        self.end_silently();
    }

    pub(crate) fn answered(&mut self, mut work: Box<Work>, answer: Answer) {
        if let Work::Text(text) = &mut *work {
            return match answer {
                Answer::Content(bytes) if !bytes.is_empty() => {
                    self.push_text(text, &bytes);
                    self.work = Some(work);
                }
                _ if text.has_begun => self.end_silently(),
                _ => self.error(None, "The message is gone"),
            };
        }
        let Answer::Maildrop(answer) = answer else { return self.lost() };
        let MaildropAnswer { view, outcome } = *answer;
        if view.is_lost() {
            return self.lost();
        }
        if let Some(maildrop) = &mut self.maildrop {
            maildrop.view = Some(view);
        }
        match outcome {
            MaildropOutcome::Entries { entries, rest } => self.entries(*work, entries, rest),
            MaildropOutcome::Deleted { rest } if rest.is_empty() => {
                self.ok("Goodbye");
                self.end_silently();
            }
            MaildropOutcome::Deleted { rest } => self.work = Some(Box::new(Work::Delete(rest))),
            MaildropOutcome::Refused(refusal) => {
                self.refuse(&refusal);
                if work.deletes() {
                    self.end_silently();
                }
            }
        }
    }

    fn entries(&mut self, work: Work, entries: Vec<Entry>, rest: NumberSet) {
        match work {
            Work::List(listing, _) => {
                for entry in entries {
                    let is_marked =
                        self.maildrop.as_ref().is_some_and(|maildrop| maildrop.marked.contains(entry.number));
                    if !is_marked {
                        let line = self.listed(listing, &entry);
                        self.line(&line);
                    }
                }
                self.work = Some(Box::new(Work::List(listing, Some(rest))));
            }
            work => match entries.into_iter().next() {
                Some(entry) => self.entry(&work, entry),
                None => self.error(None, "The message is gone"),
            },
        }
    }

    fn entry(&mut self, work: &Work, entry: Entry) {
        match work {
            Work::Entry(listing, _) => {
                let line = self.listed(*listing, &entry);
                self.ok(&line);
            }
            Work::Mark(number) => self.mark(*number, entry.bytes),
            Work::Find(_, lines) => {
                let lines = lines.map(|left| TopLines { left, in_body: false, at_line_start: true });
                let rest = Span { start: 0, end: entry.bytes };
                let writer = DotWriter::new(BareEnds::Normalise);
                let text = Text { entry, rest, writer, lines, has_begun: false };
                self.work = Some(Box::new(Work::Text(Box::new(text))));
            }
            _ => {}
        }
    }

    fn mark(&mut self, number: u32, bytes: u64) {
        let ranges_max = self.limits().marked_ranges;
        let Some(maildrop) = &mut self.maildrop else { return };
        if maildrop.marked.insert(number, ranges_max).is_err() {
            return self.error(None, "Too many messages are marked; send QUIT and come again");
        }
        maildrop.marked_bytes = maildrop.marked_bytes.saturating_add(bytes);
        self.ok("Marked");
    }

    fn listed(&self, listing: Listing, entry: &Entry) -> String {
        match listing {
            Listing::Sizes => format!("{} {}", entry.number, entry.bytes),
            Listing::UniqueIds => {
                let view = self.maildrop.as_ref().and_then(|maildrop| maildrop.view.as_ref());
                let validity = view.map_or(0, scrinium_mailbox::FolderView::uid_validity);
                format!("{} {validity}.{}", entry.number, entry.uid)
            }
        }
    }

    fn send_text(&mut self, mut work: Box<Work>) {
        let piece_bytes = self.limits().piece_bytes;
        let Work::Text(text) = &mut *work else { return };
        if text.rest.bytes() == 0 {
            if !text.has_begun {
                self.begin_text(text);
            }
            let writer = std::mem::replace(&mut text.writer, DotWriter::new(BareEnds::Normalise));
            // What stands alone was made a line's end: there are no faults.
            let _ = writer.finish(&mut self.output);
            return;
        }
        let request = Request::Content(text.entry.content.clone(), text.rest.part(0, piece_bytes));
        self.ask(Pending::Work(work), request);
    }

    fn begin_text(&mut self, text: &mut Text) {
        text.has_begun = true;
        self.ok(&format!("{} octets", text.entry.bytes));
    }

    fn push_text(&mut self, text: &mut Text, bytes: &[u8]) {
        if !text.has_begun {
            self.begin_text(text);
        }
        let count = usize::try_from(text.rest.bytes()).unwrap_or(usize::MAX).min(bytes.len());
        let piece = bytes.get(..count).unwrap_or_default();
        let (taken, is_all) = match &mut text.lines {
            Some(lines) => lines.take(piece),
            None => (piece.len(), false),
        };
        let _ = text.writer.write(piece.get(..taken).unwrap_or_default(), &mut self.output);
        text.rest.start = text.rest.start.saturating_add(count as u64).min(text.rest.end);
        if is_all {
            text.rest.start = text.rest.end;
        }
    }
}
