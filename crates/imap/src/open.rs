//! SELECT and EXAMINE (RFC 9051, section 6.3.2; RFC 7162, section 3.2.5).

use scrinium_imap_wire::{
    FetchItem, Flag, MailboxName, QresyncParameters, Response, ResponseCode, SelectParameters, Status,
};
use scrinium_mailbox::Messages;

use crate::capability::Capability;
use crate::request::{
    Answer, EntriesQuestion, FolderOutcome, FolderQuestion, MailboxRequest, MapNeed, OpenedMailbox, Request,
    SystemFlags,
};
use crate::selected::Selected;
use crate::session::ServerSession;
use crate::task::{Changes, Ending, Flow, Task};

/// Ranges of one VANISHED.
const VANISHED_RANGES: usize = 1000;

pub(crate) struct OpenTask {
    mailbox: MailboxName,
    read_only: bool,
    qresync: Option<QresyncParameters>,
    stage: Stage,
}

enum Stage {
    Open,
    /// What has gone since the client was here, from this UID on.
    Vanished(u32),
    /// What has changed since.
    Changed(Messages),
}

impl ServerSession {
    pub(crate) fn select(
        &mut self,
        mailbox: MailboxName,
        parameters: SelectParameters,
        read_only: bool,
    ) -> Flow {
        let SelectParameters { condstore, qresync } = parameters;
        if (condstore && !self.has(Capability::Condstore)) || (qresync.is_some() && !self.enabled.qresync) {
            // RFC 7162, section 3.2.5.
            return Ending::bad("ENABLE QRESYNC comes first").into();
        }
        self.enabled.condstore |= condstore;
        // The old mailbox is left in any case (RFC 9051, section 6.3.2).
        self.leave(true);
        let task = OpenTask { mailbox, read_only, qresync, stage: Stage::Open };
        Flow::Go(Task::Open(Box::new(task)))
    }

    pub(crate) fn open_advance(&mut self, task: Box<OpenTask>) -> Flow {
        match &task.stage {
            Stage::Open => {
                let request =
                    MailboxRequest::Open { mailbox: task.mailbox.clone(), read_only: task.read_only };
                Flow::Ask(Request::Mailbox(Box::new(request)), Task::Open(task))
            }
            Stage::Vanished(from_uid) => {
                let Some(qresync) = &task.qresync else { return self.opened_whole() };
                let question = FolderQuestion::Vanished {
                    since: qresync.change,
                    known: qresync.known_uids.clone(),
                    from_uid: *from_uid,
                    limit: VANISHED_RANGES,
                };
                self.ask_folder(question, Task::Open(task))
            }
            Stage::Changed(messages) => {
                let Some(qresync) = &task.qresync else { return self.opened_whole() };
                let question = FolderQuestion::Entries(EntriesQuestion {
                    messages: messages.clone(),
                    limit: self.limits().entries,
                    changed_since: Some(qresync.change),
                    partial: None,
                    map: MapNeed::Nothing,
                    source_bytes: 0,
                    marks_seen: false,
                    threads: false,
                });
                self.ask_folder(question, Task::Open(task))
            }
        }
    }

    pub(crate) fn open_answered(&mut self, mut task: Box<OpenTask>, answer: Answer) -> Flow {
        if let Stage::Open = task.stage {
            let Answer::Opened(opened) = answer else { return Ending::of_answer(answer).into() };
            return self.opened(task, *opened);
        }
        match self.outcome(answer) {
            Ok(FolderOutcome::Vanished { uids, next_uid }) => {
                if let Some(uids) = uids.sequence_set() {
                    self.say(&Response::Vanished { earlier: true, uids });
                }
                task.stage = match next_uid {
                    Some(next) => Stage::Vanished(next),
                    None => {
                        let known = task.qresync.as_ref().and_then(|qresync| qresync.known_uids.clone());
                        Stage::Changed(known.map_or_else(Messages::all, |known| Messages::Named(known, true)))
                    }
                };
                Flow::Go(Task::Open(task))
            }
            Ok(FolderOutcome::Entries { entries, rest, .. }) => {
                for entry in entries {
                    self.tell_keywords(&entry.keywords);
                    let flags = FetchItem::Flags(entry.all_flags());
                    let items = vec![FetchItem::Uid(entry.uid), flags, FetchItem::ModSeq(entry.mod_seq)];
                    self.say_fetch(entry.number, entry.uid, items);
                }
                match rest {
                    Some(rest) => {
                        task.stage = Stage::Changed(Messages::Rest(rest));
                        Flow::Go(Task::Open(task))
                    }
                    None => self.opened_whole(),
                }
            }
            Ok(outcome) => Ending::of_outcome(outcome).into(),
            Err(flow) => flow,
        }
    }

    fn opened(&mut self, mut task: Box<OpenTask>, opened: OpenedMailbox) -> Flow {
        let view = opened.view;
        let (state, uid_validity) = (view.state(), view.uid_validity());
        let read_only = opened.read_only || task.read_only;
        self.selected = Some(Box::new(Selected::new(task.mailbox.clone(), view, read_only, opened.keywords)));
        let flags = self.all_flags();
        self.say(&Response::Flags(flags));
        self.say(&Response::Exists(state.count));
        if !self.enabled.rev2 {
            self.say(&Response::Recent(opened.recent));
            if let Some(first) = opened.first_unseen {
                self.say_status(Status::Ok, Some(ResponseCode::Unseen(first)), "The first unseen message");
            }
        }
        let permanent = self.permanent_flags(read_only, opened.changeable, opened.new_keywords);
        self.say_status(Status::Ok, Some(ResponseCode::PermanentFlags(permanent)), "Flags that stay");
        let uid_next = ResponseCode::UidNext(state.uid_next);
        self.say_status(Status::Ok, Some(uid_next), "The next UID");
        self.say_status(Status::Ok, Some(ResponseCode::UidValidity(uid_validity)), "UIDs are valid");
        if self.has(Capability::Condstore) {
            let mod_seq = opened.mod_seq.max(1);
            self.say_status(Status::Ok, Some(ResponseCode::HighestModSeq(mod_seq)), "The last change");
        }
        if self.has(Capability::ObjectId) && !opened.mailbox_id.is_empty() {
            let code = ResponseCode::MailboxId(opened.mailbox_id);
            self.say_status(Status::Ok, Some(code), "The mailbox's id");
        }
        if self.enabled.rev2 {
            self.say_selected_name(task.mailbox.clone());
        }
        // Of other UIDs nothing is known (RFC 7162, section 3.2.5).
        match &task.qresync {
            Some(qresync) if qresync.uid_validity == uid_validity => {
                task.stage = Stage::Vanished(1);
                Flow::Go(Task::Open(task))
            }
            _ => self.opened_whole(),
        }
    }

    fn permanent_flags(&self, read_only: bool, changeable: SystemFlags, new_keywords: bool) -> Vec<Flag> {
        if read_only {
            return Vec::new();
        }
        let system = changeable.names().filter_map(Flag::new);
        let keywords = self.selected.iter().flat_map(|selected| selected.keywords.iter().cloned());
        let any = new_keywords.then(|| Flag::new("\\*")).flatten();
        system.chain(keywords).chain(any).collect()
    }

    fn opened_whole(&self) -> Flow {
        let read_only = self.selected.as_ref().is_some_and(|selected| selected.read_only);
        let code = if read_only { ResponseCode::ReadOnly } else { ResponseCode::ReadWrite };
        Ending::ok("Selected").with(code).telling(Changes::Nothing).into()
    }

    /// CLOSE takes messages with `\Deleted` away in silence (RFC 9051, section 6.4.1).
    pub(crate) fn close_mailbox(&mut self) -> Flow {
        let read_only = self.selected.as_ref().is_none_or(|selected| selected.read_only);
        if read_only {
            self.leave(false);
            return Ending::ok("Closed").into();
        }
        self.expunge_silently()
    }
}
