//! A connection to a world, and what a client that obeys makes of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use scrinium_imap::{Encryption, Peer, Request, ServerOptions, ServerSession};
use scrinium_imap_wire::{
    FetchItem, FrameLimits, FrameReader, FrameStep, NameEncoding, Response, Speaker, ValueLimits,
};

use crate::world::{NOW_MS, World};

/// A session and its number in the world.
pub(crate) struct Connection {
    pub(crate) session: ServerSession,
    number: usize,
    /// What arrives in one piece.
    pub(crate) piece: usize,
}

impl Connection {
    pub(crate) fn with(options: ServerOptions, number: usize) -> Self {
        let encryption = Some(Encryption::default());
        let session = ServerSession::new(Arc::new(options), Peer::default(), encryption, NOW_MS);
        Self { session, number, piece: usize::MAX }
    }

    /// Somebody who has logged in.
    pub(crate) fn logged_in(world: &mut World, number: usize) -> Self {
        let mut connection = Self::with(ServerOptions::new("imap.test"), number);
        connection.say(world, "");
        let answer = connection.say(world, "x LOGIN ada secret\r\n");
        assert!(answer.contains("x OK"), "{answer}");
        connection
    }

    /// With the inbox selected.
    pub(crate) fn selected(world: &mut World, number: usize) -> Self {
        let mut connection = Self::logged_in(world, number);
        let answer = connection.say(world, "x SELECT INBOX\r\n");
        assert!(answer.contains("x OK [READ-WRITE]"), "{answer}");
        connection
    }

    /// Sends text, and gives what is answered.
    pub(crate) fn say(&mut self, world: &mut World, text: &str) -> String {
        String::from_utf8_lossy(&self.send(world, text.as_bytes())).into_owned()
    }

    pub(crate) fn send(&mut self, world: &mut World, bytes: &[u8]) -> Vec<u8> {
        self.send_and(world, bytes, |_, _| {})
    }

    /// As [`Self::send`]; `meanwhile` may change the world before each request is answered.
    pub(crate) fn send_and(
        &mut self,
        world: &mut World,
        bytes: &[u8],
        mut meanwhile: impl FnMut(&mut World, &Request),
    ) -> Vec<u8> {
        let mut out = Vec::new();
        let mut rest = bytes;
        loop {
            while let Some(request) = self.step(&mut out) {
                meanwhile(world, &request);
                let answer = world.answer(self.number, request);
                self.session.answer(answer, NOW_MS);
            }
            if rest.is_empty() || self.session.is_closed() {
                return out;
            }
            let piece = &rest[..rest.len().min(self.piece)];
            let taken = self.session.receive(piece, NOW_MS);
            assert!(taken > 0 || !self.session.wants_input());
            rest = &rest[taken..];
        }
    }

    fn step(&mut self, out: &mut Vec<u8>) -> Option<Request> {
        loop {
            let request = self.session.next(NOW_MS);
            let output = self.session.take_output();
            assert!(output.len() < 1 << 20, "output has a limit");
            let is_idle = output.is_empty();
            out.extend(output);
            if request.is_some() || is_idle {
                return request;
            }
        }
    }

    /// Something has changed that the session watches.
    pub(crate) fn wake(&mut self, world: &mut World) -> String {
        self.session.wake(NOW_MS);
        self.say(world, "")
    }
}

/// The responses of a text.
pub(crate) fn responses(bytes: &[u8]) -> Vec<Response> {
    let limits = FrameLimits { bytes: 1 << 22, literals: 10_000, bare_line_feed: false };
    let mut reader = FrameReader::new(limits, Speaker::Server);
    let mut rest = bytes;
    let mut all = Vec::new();
    while !rest.is_empty() {
        let (taken, step) = reader.read(rest).unwrap();
        rest = &rest[taken..];
        match step {
            FrameStep::Announced(_) => {
                assert_eq!(reader.decide(scrinium_imap_wire::Decision::Keep), Ok(None));
            }
            FrameStep::Frame(parts) => {
                let response = Response::parse(&parts, NameEncoding::Utf7, ValueLimits::default());
                all.push(response.unwrap_or_else(|error| panic!("{error}: {parts:?}")));
            }
            _ => {}
        }
    }
    assert!(reader.is_idle(), "a response has no end");
    all
}

/// What a client believes of its mailbox.
#[derive(Clone, Debug, Default)]
pub(crate) struct Belief {
    /// UIDs in the order of numbers, where they are known.
    pub(crate) uids: Vec<Option<u32>>,
    pub(crate) flags: BTreeMap<u32, Vec<String>>,
    pub(crate) mod_seqs: BTreeMap<u32, u64>,
}

fn names(flags: &[scrinium_imap_wire::Flag]) -> Vec<String> {
    let mut names: Vec<String> = flags.iter().map(|flag| flag.as_str().to_owned()).collect();
    names.sort();
    names
}

impl Belief {
    pub(crate) fn hear(&mut self, bytes: &[u8]) {
        for response in responses(bytes) {
            match response {
                Response::Exists(count) => {
                    assert!(count as usize >= self.uids.len(), "EXISTS {count} is less than before");
                    self.uids.resize(count as usize, None);
                }
                Response::Expunge(number) => {
                    let gone = self.uids.remove(number as usize - 1);
                    self.forget(gone);
                }
                Response::Vanished { earlier: false, uids } => {
                    for uid in uids.resolve(u32::MAX).into_iter().flat_map(|(from, to)| from..=to) {
                        let known = self.uids.iter().position(|known| *known == Some(uid));
                        let place = known.or_else(|| self.uids.iter().position(Option::is_none));
                        self.uids.remove(place.expect("a message of that UID"));
                        self.forget(Some(uid));
                    }
                }
                Response::Vanished { earlier: true, uids } => {
                    for uid in uids.resolve(u32::MAX).into_iter().flat_map(|(from, to)| from..=to) {
                        self.forget(Some(uid));
                    }
                }
                Response::Fetch { number, items } => {
                    let place = self.uids.get_mut(number as usize - 1).expect("a message of that number");
                    let uid = items.iter().find_map(|item| match item {
                        FetchItem::Uid(uid) => Some(*uid),
                        _ => None,
                    });
                    if let Some(uid) = uid {
                        assert!(place.is_none_or(|known| known == uid), "{uid} is not {place:?}");
                        *place = Some(uid);
                    }
                    let uid = *place;
                    self.learn(uid, &items);
                }
                Response::UidFetch { uid, items } => {
                    if !self.uids.contains(&Some(uid)) {
                        let place = self.uids.iter().position(Option::is_none).expect("a new message");
                        self.uids[place] = Some(uid);
                    }
                    self.learn(Some(uid), &items);
                }
                _ => {}
            }
        }
    }

    /// The client's own change, of which it is not told again: of the messages that it has the numbers or UIDs of.
    pub(crate) fn change_silently(&mut self, command: &str, from: u32, to: u32) {
        if !command.contains(".SILENT") {
            return;
        }
        let (from, to) = (from.min(to), from.max(to));
        let by_uid = command.starts_with("UID ");
        for (number, uid) in (1..).zip(self.uids.clone()) {
            let Some(uid) = uid else { continue };
            let named = if by_uid { uid } else { number };
            let Some(flags) = self.flags.get_mut(&uid).filter(|_| (from..=to).contains(&named)) else {
                continue;
            };
            let changed: Vec<String> =
                command.split(['(', ')']).nth(1).unwrap().split(' ').map(str::to_owned).collect();
            if command.contains(" FLAGS") {
                flags.clear();
            }
            for flag in changed {
                if !flags.contains(&flag) {
                    flags.push(flag);
                }
            }
            flags.sort();
        }
    }

    fn forget(&mut self, uid: Option<u32>) {
        if let Some(uid) = uid {
            self.flags.remove(&uid);
            self.mod_seqs.remove(&uid);
        }
    }

    fn learn(&mut self, uid: Option<u32>, items: &[FetchItem]) {
        let Some(uid) = uid else { return };
        for item in items {
            match item {
                FetchItem::Flags(flags) => {
                    self.flags.insert(uid, names(flags));
                }
                FetchItem::ModSeq(mod_seq) => {
                    self.mod_seqs.insert(uid, *mod_seq);
                }
                _ => {}
            }
        }
    }

    /// What the world has, in the same form.
    pub(crate) fn truth(world: &World) -> Vec<(u32, Vec<String>)> {
        let flags = |message: &crate::world::Message| {
            let mut names: Vec<String> = message.flags.names().map(str::to_owned).collect();
            names.extend(message.keywords.iter().map(|keyword| keyword.as_str().to_owned()));
            names.sort();
            names
        };
        world.inbox().messages.iter().map(|message| (message.uid, flags(message))).collect()
    }
}
