//! STORE (RFC 9051, section 6.4.6; RFC 7162, section 3.1.3).

use scrinium_imap_wire::{FetchItem, Flag, ResponseCode, SequenceSet, StoreAction};
use scrinium_mailbox::{Messages, NumberSet};

use crate::append::split_flags;
use crate::request::{Answer, FolderOutcome, FolderQuestion, StoreQuestion, StoredEntry};
use crate::session::{ServerSession, word};
use crate::task::{Changes, Ending, Flow, Task};

pub(crate) struct StoreTask {
    by_uid: bool,
    silent: bool,
    question: StoreQuestion,
    modified: NumberSet,
    missing: u32,
}

impl ServerSession {
    pub(crate) fn store(
        &mut self,
        (set, by_uid): (SequenceSet, bool),
        unchanged_since: Option<u64>,
        (action, silent): (StoreAction, bool),
        flags: &[Flag],
    ) -> Flow {
        if self.selected.as_ref().is_some_and(|selected| selected.read_only) {
            return Ending::no(word("READ-ONLY"), "The mailbox was opened to be read").into();
        }
        if unchanged_since.is_some() {
            if !self.has(crate::capability::Capability::Condstore) {
                return Ending::bad("UNCHANGEDSINCE is not known").into();
            }
            self.enabled.condstore = true;
        }
        let (system, keywords) = split_flags(flags);
        let messages = self.messages(set, by_uid);
        let limit = self.limits().entries;
        let question = StoreQuestion { messages, action, system, keywords, unchanged_since, limit };
        let task = StoreTask { by_uid, silent, question, modified: NumberSet::default(), missing: 0 };
        Flow::Go(Task::Store(Box::new(task)))
    }

    pub(crate) fn store_advance(&mut self, task: Box<StoreTask>) -> Flow {
        let question = FolderQuestion::Store(task.question.clone());
        self.ask_folder(question, Task::Store(task))
    }

    pub(crate) fn store_answered(&mut self, mut task: Box<StoreTask>, answer: Answer) -> Flow {
        let (entries, modified, rest, missing, changes) = match self.outcome(answer) {
            Ok(FolderOutcome::Stored { entries, modified, rest, missing, changes }) => {
                (entries, modified, rest, missing, changes)
            }
            Ok(outcome) => {
                let changes = if task.by_uid { Changes::All } else { Changes::Flags };
                return Ending::of_outcome(outcome).telling(changes).into();
            }
            Err(flow) => return flow,
        };
        self.tell_exists();
        for stored in &entries {
            self.say_stored(&task, stored);
        }
        if let (Some((first, last)), Some(selected)) = (changes, &mut self.selected) {
            selected.own_changes(first, last);
        }
        task.missing = task.missing.saturating_add(missing);
        let ranges_max = self.limits().result_ranges;
        for picked in modified {
            let number = if task.by_uid { picked.uid } else { picked.number };
            if task.modified.insert(number, ranges_max).is_err() {
                return Ending::no(word("LIMIT"), "Too many messages had changed")
                    .telling(Changes::Flags)
                    .into();
            }
        }
        match rest {
            Some(rest) => {
                task.question.messages = Messages::Rest(rest);
                Flow::Go(Task::Store(task))
            }
            None => stored(&task).into(),
        }
    }

    /// SILENT is silent of what the client knows, not of what somebody else has changed as well.
    fn say_stored(&mut self, task: &StoreTask, stored: &StoredEntry) {
        let StoredEntry { entry, mod_seq_before } = stored;
        let told_to = self.selected.as_ref().map_or(0, |selected| selected.told_to);
        let is_known = *mod_seq_before <= told_to
            || self.selected.as_ref().is_some_and(|selected| selected.is_own(*mod_seq_before));
        let tells_flags = !task.silent || !is_known;
        if !tells_flags && !self.enabled.condstore {
            return;
        }
        self.tell_keywords(&entry.keywords);
        let mut items = Vec::new();
        if task.by_uid || self.enabled.qresync {
            items.push(FetchItem::Uid(entry.uid));
        }
        if tells_flags {
            items.push(FetchItem::Flags(entry.all_flags()));
        }
        // RFC 7162, section 3.1.4.2: also with SILENT.
        if self.enabled.condstore {
            items.push(FetchItem::ModSeq(entry.mod_seq));
        }
        self.say_fetch(entry.number, entry.uid, items);
    }
}

fn stored(task: &StoreTask) -> Ending {
    let changes = if task.by_uid { Changes::All } else { Changes::Flags };
    let ending = match task.modified.sequence_set() {
        // RFC 7162, section 3.1.3: an OK; a NO where messages are gone.
        Some(set) if task.missing == 0 || task.by_uid => {
            Ending::ok("Some messages had changed").with(ResponseCode::Modified(set))
        }
        Some(set) => Ending::no(Some(ResponseCode::Modified(set)), "Some messages had changed or are gone"),
        None if task.missing > 0 && !task.by_uid => {
            Ending::no(word("EXPUNGEISSUED"), "Some of the messages are gone")
        }
        None => Ending::ok("Stored"),
    };
    ending.telling(changes)
}
