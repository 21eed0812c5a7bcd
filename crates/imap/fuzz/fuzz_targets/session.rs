//! Any bytes as a client's, and surroundings that answer as they like: no panic, no more memory than the limits, and whole lines.

#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use scrinium_imap::{
    Answer, CapabilitySet, ContentId, Encryption, Entry, FolderAnswer, FolderOutcome, FolderQuestion, FolderRequest,
    LoginVerdict, MailboxInfo, MailboxNumbers, MailboxRequest, MessageFlags, OpenedMailbox, Peer, Refusal, Request, ServerOptions,
    ServerSession, StoredEntry, SystemFlags,
};
use scrinium_imap_wire::{DateTime, Flag};
use scrinium_mailbox::{FolderState, FolderView, MapBuilder, NumberSet, Picked};

const SOURCE: &[u8] = b"Subject: x\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\none\r\n--b\r\n\r\ntwo\r\n--b--\r\n";

fn entry(choice: u8) -> Option<Entry> {
    Some(Entry {
        uid: u32::from(choice % 9) + 1,
        number: u32::from(choice % 9) + 1,
        flags: SystemFlags { seen: choice & 1 != 0, ..SystemFlags::default() },
        keywords: Flag::new("$Work").into_iter().collect(),
        mod_seq: u64::from(choice) + 1,
        arrival: 1,
        bytes: SOURCE.len() as u64,
        internal_date: DateTime::parse("26-Nov-2026 10:20:51 +0100").ok()?,
        save_date: None,
        email_id: "E".to_owned(),
        thread_id: None,
        content: ContentId(Arc::from([1])),
        map: (choice & 2 == 0).then(|| Arc::new(MapBuilder::map(SOURCE))),
        source: SOURCE[..usize::from(choice) % SOURCE.len()].to_vec(),
        was_changed: choice & 4 != 0,
    })
}

fn folder(request: FolderRequest, choice: u8, change: &mut u64) -> Answer {
    let FolderRequest { mut view, question, .. } = request;
    *change += 1;
    let state = view.state();
    let leaves = choice & 8 != 0 && state.count > 0;
    let count = if leaves { state.count - 1 } else { state.count };
    let state = FolderState { change: *change, count, uid_next: state.uid_next + 1, ..state };
    view.catch_up(state, leaves.then_some(u32::from(choice % 7) + 1), |uid| uid.saturating_sub(1).min(count));
    let picked = Picked { uid: u32::from(choice % 9) + 1, number: u32::from(choice % 9) + 1 };
    let entries: Vec<Entry> = entry(choice).into_iter().collect();
    let progress = (1, 2);
    let outcome = match (choice % 11, question) {
        (0, _) => FolderOutcome::Refused(Refusal::trouble()),
        (1, _) => FolderOutcome::NoMailbox,
        (2, FolderQuestion::Sync { .. }) => FolderOutcome::Closed,
        (_, FolderQuestion::Sync { .. }) => FolderOutcome::Synced { changed: entries, told_to: *change, is_more: false },
        (_, FolderQuestion::Flags { .. }) => {
            let flags = |entry: Entry| {
                let Entry { uid, number, flags, keywords, .. } = entry;
                MessageFlags { uid, number, flags, keywords }
            };
            let flags = entries.into_iter().map(flags).collect();
            FolderOutcome::Flags { flags, rest: None, missing: u32::from(choice & 1) }
        }
        (_, FolderQuestion::Entries(_)) => FolderOutcome::Entries { entries, rest: None, missing: u32::from(choice & 1) },
        (_, FolderQuestion::Store(_)) => {
            let entries = entries.into_iter().map(|entry| StoredEntry { entry, mod_seq_before: 1 }).collect();
            let changes = Some((*change, *change));
            FolderOutcome::Stored { entries, modified: vec![picked], rest: None, missing: 0, changes }
        }
        (_, FolderQuestion::Transfer { .. }) => {
            FolderOutcome::Transferred { uid_validity: 1, pairs: vec![(1, 2), (2, 3)], rest: None }
        }
        (_, FolderQuestion::Expunge { .. }) => FolderOutcome::Expunged { rest: None },
        (_, FolderQuestion::Search(_)) => FolderOutcome::Found { found: vec![picked], mod_seq: 3, cursor: None, progress },
        (_, FolderQuestion::Thread(..)) => FolderOutcome::Threads { threads: Vec::new(), cursor: None, progress },
        (_, FolderQuestion::Vanished { .. }) => {
            FolderOutcome::Vanished { uids: NumberSet::of_ranges([(1, 3)]), next_uid: None }
        }
        (_, FolderQuestion::Batches { .. }) => FolderOutcome::Batches(vec![(9, 1)]),
        (_, FolderQuestion::Replace(_)) => FolderOutcome::Replaced { uid_validity: 1, uid: 9 },
    };
    Answer::Folder(Box::new(FolderAnswer { view, outcome }))
}

fn answer(request: Request, choice: u8, is_open: &mut bool, change: &mut u64) -> Answer {
    match request {
        Request::BeginAppend(_) if choice % 4 != 0 => *is_open = true,
        Request::AppendData(_) => assert!(*is_open),
        Request::FinishAppend | Request::AbandonAppend => {
            assert!(*is_open);
            *is_open = false;
        }
        _ => {}
    }
    match request {
        Request::BeginAppend(_) if choice % 4 == 0 => Answer::Refused(Refusal::new("TRYCREATE", "No")),
        Request::AppendData(_) if choice % 8 == 0 => Answer::Trouble,
        Request::Greet(_) | Request::BeginAppend(_) | Request::AppendData(_) | Request::AbandonAppend => Answer::Accepted,
        Request::StartTls => Answer::Encrypted(Encryption::default()),
        Request::Account(_) => Answer::Trouble,
        Request::LogIn(_) => Answer::Login(LoginVerdict::Admitted("ada".to_owned(), CapabilitySet::NONE)),
        Request::Identify(_) => Answer::Hide(CapabilitySet::NONE),
        Request::Folder(request) => folder(*request, choice, change),
        Request::Content(_, span) if choice % 16 != 0 => {
            let from = usize::try_from(span.start).unwrap_or(0).min(SOURCE.len());
            Answer::Content(SOURCE[from..usize::try_from(span.end).unwrap_or(0).min(SOURCE.len())].to_vec())
        }
        Request::Content(..) => Answer::Gone,
        Request::FinishAppend => Answer::Appended { uid_validity: 1, uids: NumberSet::of_ranges([(1, 2)]) },
        Request::Events(_) => Answer::Events { events: Vec::new(), cursor: 1, is_more: false },
        Request::Mailbox(request) => match *request {
            MailboxRequest::Open { .. } => {
                let state = FolderState { change: *change, uid_next: 10, count: 9, last_uid: 9 };
                Answer::Opened(Box::new(OpenedMailbox {
                    view: FolderView::new(1, 7, state),
                    read_only: choice & 16 != 0,
                    keywords: Vec::new(),
                    new_keywords: true,
                    changeable: SystemFlags::all(),
                    first_unseen: Some(1),
                    recent: 0,
                    mailbox_id: "F".to_owned(),
                    mod_seq: *change,
                }))
            }
            MailboxRequest::List(_) => {
                let mailbox = MailboxInfo { name: "INBOX".to_owned(), ..MailboxInfo::default() };
                Answer::Mailboxes { mailboxes: vec![mailbox], is_more: false }
            }
            MailboxRequest::Status(..) => Answer::Status(Box::new(MailboxNumbers::default())),
            _ if choice & 1 == 0 => Answer::Accepted,
            _ => Answer::Refused(Refusal::no_mailbox()),
        },
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Some(([kind, piece, choices @ ..], input)) = bytes.split_first_chunk::<18>() else { return };
    let mut options = ServerOptions::new("imap.test");
    options.hidden = CapabilitySet::NONE;
    options.has_certificate = true;
    options.requires_tls = kind & 1 != 0;
    options.limits.message_bytes = 2000;
    options.limits.piece_bytes = 64;
    options.limits.output_bytes = 200;
    options.limits.errors = 1000;
    let encryption = (kind & 2 != 0).then(Encryption::default);
    let mut session = ServerSession::new(Arc::new(options), Peer::default(), encryption, 1000);
    let (mut is_open, mut asked, mut change) = (false, 0_usize, 10);
    let mut text: Vec<u8> = Vec::new();
    if kind & 4 != 0 {
        text.extend_from_slice(b"x LOGIN ada secret\r\nx ENABLE CONDSTORE\r\nx SELECT INBOX\r\n");
    }
    text.extend_from_slice(input);
    let mut rest = text.as_slice();
    loop {
        let request = session.next(1000);
        let output = session.take_output();
        assert!(output.len() < 1 << 20);
        assert!(session.held_bytes() < 2 << 20);
        match request {
            Some(request) => {
                let choice = choices[asked % choices.len()];
                asked += 1;
                if asked > 5000 {
                    break;
                }
                session.answer(answer(request, choice, &mut is_open, &mut change), 1000);
            }
            None if !output.is_empty() => {}
            None if rest.is_empty() || session.is_closed() => break,
            None => {
                if choices[asked % choices.len()] & 32 != 0 {
                    session.wake(1000);
                }
                let taken = session.receive(&rest[..rest.len().min(usize::from(*piece).max(1))], 1000);
                rest = &rest[taken..];
                if taken == 0 {
                    break;
                }
            }
        }
    }
    session.disconnected();
    while let Some(request) = session.next(1000) {
        session.answer(answer(request, 3, &mut is_open, &mut change), 1000);
    }
    assert!(!is_open, "a message is left open");
});
