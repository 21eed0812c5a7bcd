//! A maildrop in memory.

use std::sync::Arc;

use scrinium_credentials::sasl::ClaimedProof;
use scrinium_mailbox::{FolderIndex, FolderState, FolderView, NumberSet, Selection, select};
use scrinium_pop3::{
    Answer, ContentId, Encryption, Entry, LoginVerdict, Maildrop, MaildropAnswer, MaildropOutcome,
    MaildropQuestion, Peer, Refusal, Request, ServerOptions, ServerSession,
};
use scrinium_pop3_wire::ResponseCode;

pub(crate) const NOW_MS: u64 = 1_795_684_851_000;

#[derive(Default)]
pub(crate) struct World {
    pub(crate) messages: Vec<(u32, Vec<u8>)>,
    left: Vec<(u64, u32)>,
    change: u64,
    uid_next: u32,
    pub(crate) in_use: bool,
}

struct Index<'a>(&'a [(u32, Vec<u8>)]);

impl FolderIndex for Index<'_> {
    fn position(&self, uid: u32) -> u32 {
        u32::try_from(self.0.partition_point(|(known, _)| *known < uid)).unwrap()
    }

    fn uids_at(&self, position: u32, count: u32) -> Vec<u32> {
        self.0.iter().skip(position as usize).take(count as usize).map(|(uid, _)| *uid).collect()
    }
}

impl World {
    pub(crate) fn with(messages: &[&[u8]]) -> Self {
        let mut world = Self { uid_next: 1, ..Self::default() };
        messages.iter().for_each(|message| world.add(message));
        world
    }

    pub(crate) fn add(&mut self, message: &[u8]) {
        self.change += 1;
        self.messages.push((self.uid_next, message.to_vec()));
        self.uid_next += 1;
    }

    pub(crate) fn remove(&mut self, uid: u32) {
        self.change += 1;
        self.left.push((self.change, uid));
        self.messages.retain(|(known, _)| *known != uid);
    }

    fn state(&self) -> FolderState {
        FolderState {
            change: self.change,
            uid_next: self.uid_next,
            count: u32::try_from(self.messages.len()).unwrap(),
            last_uid: self.messages.last().map_or(0, |(uid, _)| *uid),
        }
    }

    fn catch_up(&self, view: &mut FolderView) {
        let since = view.state().change;
        let left = self.left.iter().filter(|(change, _)| *change > since).map(|(_, uid)| *uid);
        view.catch_up(self.state(), left.collect::<Vec<_>>(), |uid| Index(&self.messages).position(uid));
    }

    pub(crate) fn answer(&mut self, request: Request) -> Answer {
        match request {
            Request::Greet(_) => Answer::Accepted,
            Request::StartTls => Answer::Encrypted(Encryption::default()),
            Request::Account(_) => Answer::Trouble,
            Request::LogIn(claim) => {
                let is_right = claim.name.as_deref() == Some("ada")
                    && claim.proof == ClaimedProof::Password("se cret".to_owned());
                let admitted = LoginVerdict::Admitted("ada".to_owned());
                Answer::Login(if is_right { admitted } else { LoginVerdict::Wrong })
            }
            Request::Open(_) if self.in_use => {
                Answer::Refused(Refusal::new(Some(ResponseCode::InUse), "Another session has the maildrop"))
            }
            Request::Open(_) => {
                self.in_use = true;
                let bytes = self.messages.iter().map(|(_, message)| message.len() as u64).sum();
                Answer::Opened(Box::new(Maildrop { view: FolderView::new(1, 77, self.state()), bytes }))
            }
            Request::Release => {
                self.in_use = false;
                Answer::Accepted
            }
            Request::Content(id, span) => {
                let uid = u32::from_be_bytes(id.0.as_ref().try_into().unwrap());
                match self.messages.iter().find(|(known, _)| *known == uid) {
                    Some((_, message)) => {
                        Answer::Content(message[span.start as usize..span.end as usize].to_vec())
                    }
                    None => Answer::Gone,
                }
            }
            Request::Maildrop(question) => Answer::Maildrop(Box::new(self.maildrop(*question))),
        }
    }

    fn maildrop(&mut self, question: MaildropQuestion) -> MaildropAnswer {
        match question {
            MaildropQuestion::Entries(mut view, numbers, limit) => {
                self.catch_up(&mut view);
                let limit = limit.min(2);
                let selection = Selection::Numbers(numbers.clone());
                let picked = select(&Index(&self.messages), &view, &selection, limit);
                let rest = match picked.last().filter(|_| picked.len() == limit as usize) {
                    Some(last) => numbers.above(last.number),
                    None => NumberSet::default(),
                };
                let entry = |uid: u32, number: u32| {
                    let (_, message) = self.messages.iter().find(|(known, _)| *known == uid).unwrap();
                    let content = ContentId(Arc::from(uid.to_be_bytes()));
                    Entry { number, uid, bytes: message.len() as u64, content }
                };
                let entries = picked.iter().map(|picked| entry(picked.uid, picked.number)).collect();
                MaildropAnswer { view, outcome: MaildropOutcome::Entries { entries, rest } }
            }
            MaildropQuestion::Delete(mut view, numbers) => {
                self.catch_up(&mut view);
                let selection = Selection::Numbers(numbers.clone());
                let picked = select(&Index(&self.messages), &view, &selection, 1);
                let mut rest = NumberSet::default();
                if let Some(first) = picked.first() {
                    self.remove(first.uid);
                    rest = numbers.above(first.number);
                }
                MaildropAnswer { view, outcome: MaildropOutcome::Deleted { rest } }
            }
        }
    }
}

pub(crate) struct Connection {
    pub(crate) session: ServerSession,
    pub(crate) piece: usize,
}

impl Connection {
    pub(crate) fn with(options: ServerOptions) -> Self {
        let encryption = Some(Encryption::default());
        let session = ServerSession::new(Arc::new(options), Peer::default(), encryption, NOW_MS);
        Self { session, piece: usize::MAX }
    }

    pub(crate) fn say(&mut self, world: &mut World, text: &str) -> String {
        String::from_utf8_lossy(&self.send(world, text.as_bytes())).into_owned()
    }

    pub(crate) fn send(&mut self, world: &mut World, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut rest = bytes;
        loop {
            loop {
                let request = self.session.next(NOW_MS);
                let output = self.session.take_output();
                let is_idle = output.is_empty();
                out.extend(output);
                match request {
                    Some(request) => {
                        let answer = world.answer(request);
                        self.session.answer(answer, NOW_MS);
                    }
                    None if is_idle => break,
                    None => {}
                }
            }
            if rest.is_empty() || self.session.is_closed() {
                return out;
            }
            let piece = &rest[..rest.len().min(self.piece)];
            let taken = self.session.receive(piece, NOW_MS);
            rest = &rest[taken..];
        }
    }
}
