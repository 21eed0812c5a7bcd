//! IDLE (RFC 2177) and what NOTIFY tells: changes as they happen.

use scrinium_imap_wire::{FetchModifiers, SequenceSet, SetNumber, StatusItem, Tag, Value};

use crate::announce::AnnounceTask;
use crate::notify::Watch;
use crate::request::{Answer, EventQuestion, MailboxEvent, Request};
use crate::session::{ServerSession, SessionState};
use crate::task::{Ending, Flow, Task};

/// Events of one answer.
const EVENTS_MAX: usize = 200;

/// What happened elsewhere, and then what there is of new messages here.
pub(crate) struct EventTask {
    new_from: Option<u32>,
}

impl ServerSession {
    pub(crate) fn idle(&mut self) -> Flow {
        let Some(tag) = self.tag.take() else { return Flow::Rest };
        self.kept_ms = self.now_ms;
        self.say_go_on("idling");
        self.state = SessionState::Idle(tag);
        // The client hears first what has happened up to now.
        self.wake(self.now_ms);
        Flow::Rest
    }

    /// DONE, in any case; anything else is a command that a client has sent too early (RFC 2177, section 3).
    pub(crate) fn idle_line(&mut self, tag: Tag, line: &[u8]) -> Flow {
        self.tag = Some(tag);
        if line.trim_ascii().eq_ignore_ascii_case(b"DONE") {
            return Ending::ok("Done").telling(crate::task::Changes::All).into();
        }
        Ending::bad("DONE ends IDLE").into()
    }

    pub(crate) fn notify(&mut self, values: &[Value]) -> Flow {
        match Watch::parse(values, self.names()) {
            Ok(watch) => {
                self.watch = watch.map(Box::new);
                let ending = Ending::ok("Done");
                if self.watch.is_some() {
                    // Numbers of mailboxes stand before the answer (RFC 5465, section 3.1).
                    return self.ask_events(EventTask { new_from: None }).unwrap_or_else(|| ending.into());
                }
                ending.into()
            }
            Err(ending) => ending.into(),
        }
    }

    /// What the client hears now, without a command.
    pub(crate) fn event_task(&mut self, is_idle: bool) -> Option<Task> {
        let selected_events = self.watch.as_ref().and_then(|watch| watch.selected.as_ref());
        let wants_selected = is_idle || selected_events.is_some();
        let tells_gone = selected_events.is_none_or(|events| !events.is_delayed || is_idle);
        let wants_items = selected_events.is_some_and(|events| !events.items.is_empty());
        let view = self.selected.as_ref().and_then(|selected| selected.view.as_ref());
        let new_from = view.map(|view| view.state().uid_next).filter(|_| wants_items);
        let has_others = self.watch.as_ref().is_some_and(|watch| watch.has_others());
        let events = (has_others || new_from.is_some()).then_some(EventTask { new_from });
        if wants_selected && view.is_some() {
            return Some(Task::Announce(Box::new(AnnounceTask::at_once(tells_gone, events))));
        }
        events.map(|events| Task::Events(Box::new(events)))
    }

    fn ask_events(&mut self, task: EventTask) -> Option<Flow> {
        let watch = self.watch.as_ref().filter(|watch| watch.has_others())?;
        let question = EventQuestion {
            groups: watch.groups.clone(),
            cursor: watch.cursor,
            wants_status: watch.wants_status,
            limit: EVENTS_MAX,
            selected: self.selected.as_ref().map(|selected| selected.folder),
        };
        Some(Flow::Ask(Request::Events(Box::new(question)), Task::Events(Box::new(task))))
    }

    pub(crate) fn events_advance(&mut self, task: EventTask) -> Flow {
        let new_from = task.new_from;
        self.ask_events(task).unwrap_or_else(|| self.tell_new(new_from))
    }

    pub(crate) fn events_answered(&mut self, task: Box<EventTask>, answer: Answer) -> Flow {
        let Answer::Events { events, cursor, is_more } = answer else {
            return match self.tag {
                Some(_) => Ending::of_answer(answer).into(),
                None => Flow::Rest,
            };
        };
        if let Some(watch) = &mut self.watch {
            watch.cursor = Some(cursor);
        }
        for event in events {
            self.tell_event(&event);
        }
        if is_more {
            return Flow::Go(Task::Events(task));
        }
        if self.tag.is_some() {
            return Ending::ok("Done").into();
        }
        self.tell_new(task.new_from)
    }

    fn tell_event(&mut self, event: &MailboxEvent) {
        match event {
            MailboxEvent::Changed(mailbox, numbers) => {
                let mut items = vec![
                    StatusItem::Messages,
                    StatusItem::UidNext,
                    StatusItem::UidValidity,
                    StatusItem::Unseen,
                ];
                if self.enabled.condstore {
                    items.push(StatusItem::HighestModSeq);
                }
                self.say_numbers(mailbox, numbers, &items);
            }
            MailboxEvent::Named(info, old_name) => self.say_name_event(info, old_name.as_deref()),
        }
    }

    /// Items of messages that have come since.
    fn tell_new(&mut self, new_from: Option<u32>) -> Flow {
        let items = self.watch.as_ref().and_then(|watch| watch.selected.as_ref());
        let items = items.map(|events| events.items.clone()).unwrap_or_default();
        let view = self.selected.as_ref().and_then(|selected| selected.view.as_ref());
        match (new_from, view.map(|view| view.state().uid_next)) {
            (Some(from), Some(next)) if next > from && !items.is_empty() => {
                let set = SequenceSet::range(SetNumber::Number(from), SetNumber::Number(next - 1));
                self.fetch(true, set, items, FetchModifiers::default())
            }
            _ => Flow::Rest,
        }
    }
}
