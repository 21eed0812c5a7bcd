//! What others have changed: told before the answer to a command, or at once in IDLE (RFC 9051, section 7.5.1).
//!
//! Flags come first, under the numbers that the client has; then new messages are counted; then it hears what is gone, from the end, so that
//! what is left keeps its number. Each step waits until the client has taken what was said before it.

use scrinium_imap_wire::{FetchItem, Response};

use crate::events::EventTask;
use crate::request::{Answer, Entry, FolderOutcome, FolderQuestion};
use crate::session::ServerSession;
use crate::task::{Changes, Ending, Flow, Task};

/// Ranges of one VANISHED.
const RANGES_MAX: usize = 1000;

pub(crate) struct AnnounceTask {
    /// `None`: nothing was asked, the client hears it at once.
    ending: Option<Ending>,
    tells_gone: bool,
    /// How far flags were asked for in this round.
    told_to: Option<u64>,
    stage: Stage,
    /// What follows it.
    events: Option<EventTask>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Ask,
    Gone,
}

impl AnnounceTask {
    pub(crate) fn before(ending: Ending) -> Self {
        let tells_gone = ending.changes == Changes::All;
        Self { ending: Some(ending), tells_gone, told_to: None, stage: Stage::Ask, events: None }
    }

    pub(crate) fn at_once(tells_gone: bool, events: Option<EventTask>) -> Self {
        Self { ending: None, tells_gone, told_to: None, stage: Stage::Ask, events }
    }
}

impl ServerSession {
    pub(crate) fn announce_advance(&mut self, task: Box<AnnounceTask>) -> Flow {
        match task.stage {
            Stage::Ask => {
                let told_to =
                    task.told_to.or_else(|| self.selected.as_ref().map(|selected| selected.told_to));
                let limit = self.limits().entries;
                let question = FolderQuestion::Sync { told_to: told_to.unwrap_or(0), limit };
                self.ask_folder(question, Task::Announce(task))
            }
            Stage::Gone => self.tell_gone(task),
        }
    }

    pub(crate) fn announce_answered(&mut self, mut task: Box<AnnounceTask>, answer: Answer) -> Flow {
        let (changed, told_to, is_more) = match self.outcome(answer) {
            Ok(FolderOutcome::Synced { changed, told_to, is_more }) => (changed, told_to, is_more),
            Ok(_) => (Vec::new(), task.told_to.unwrap_or(0), false),
            Err(flow) => return flow,
        };
        self.tell_exists();
        for entry in &changed {
            self.tell_flags(entry);
        }
        task.told_to = Some(told_to);
        if !is_more {
            if let Some(selected) = &mut self.selected {
                selected.told(told_to);
            }
            task.stage = Stage::Gone;
        }
        Flow::Go(Task::Announce(task))
    }

    /// One message's flags that somebody else has changed.
    fn tell_flags(&mut self, entry: &Entry) {
        let Some(selected) = &self.selected else { return };
        // A message that is new is the client's to ask for.
        if selected.is_own(entry.mod_seq) || entry.arrival == entry.mod_seq {
            return;
        }
        self.tell_keywords(&entry.keywords);
        let mut items = vec![FetchItem::Uid(entry.uid), FetchItem::Flags(entry.all_flags())];
        if self.enabled.condstore {
            items.push(FetchItem::ModSeq(entry.mod_seq));
        }
        self.say_fetch(entry.number, entry.uid, items);
    }

    fn tell_gone(&mut self, task: Box<AnnounceTask>) -> Flow {
        if task.tells_gone && !self.say_gone() {
            return Flow::Go(Task::Announce(task));
        }
        if let Some(ending) = task.ending {
            self.finish_command(&ending);
        }
        task.events.map_or(Flow::Rest, |events| Flow::Go(Task::Events(Box::new(events))))
    }

    /// Says what is gone, as far as there is room. Whether all was said.
    pub(crate) fn say_gone(&mut self) -> bool {
        let by_uid = self.enabled.qresync || self.enabled.uid_only;
        loop {
            if self.output.len() >= self.limits().output_bytes {
                return false;
            }
            let Some(selected) = &mut self.selected else { return true };
            let Some(view) = &mut selected.view else { return true };
            let response = if by_uid {
                let gone = view.take_last_ranges(RANGES_MAX);
                gone.sequence_set().map(|uids| Response::Vanished { earlier: false, uids })
            } else {
                view.take_last_ghost().map(Response::Expunge)
            };
            selected.told_exists = selected.told_exists.min(view.exists());
            match response {
                Some(response) => self.say(&response),
                None => return true,
            }
        }
    }

    /// A response about one message. After UIDONLY nothing has a number (RFC 9586, section 3.3).
    pub(crate) fn say_fetch(&mut self, number: u32, uid: u32, items: Vec<FetchItem>) {
        if !self.enabled.uid_only {
            return self.say(&Response::Fetch { number, items });
        }
        let items = items.into_iter().filter(|item| !matches!(item, FetchItem::Uid(_))).collect();
        self.say(&Response::UidFetch { uid, items });
    }
}
