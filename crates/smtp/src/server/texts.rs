//! Texts: by DATA and by BDAT, and what is answered when one is whole.

use crate::received::{Trace, received_field};
use crate::repeat::{Source, message_repeat_id, repeat_ids};
use crate::server::incoming::{Flow, Incoming};
use crate::server::options::Service;
use crate::server::request::{Delivery, Refusal, Request, TextSummary};
use crate::server::session::{Chunk, Pending, ServerSession, SessionState, StepEnd, Transaction, reply};

impl ServerSession {
    /// The surroundings are ready for a text.
    pub(super) fn text_begins(&mut self, id: String, chunk: Option<Chunk>) {
        let (options, now_ms) = (self.options.clone(), self.now_ms);
        let first = self.received(&id);
        let Some(transaction) = &mut self.transaction else { return };
        let incoming = Incoming::new(&options, chunk.is_some(), id, first, now_ms);
        transaction.incoming = Some(Box::new(incoming));
        match chunk {
            Some(chunk) => self.state = SessionState::Chunk(chunk),
            None => {
                self.say_line("354 Send the message, and end it with a line of one dot");
                self.state = SessionState::Data { is_over: false };
            }
        }
    }

    fn received(&self, id: &str) -> Vec<u8> {
        let Some(transaction) = &self.transaction else { return Vec::new() };
        let recipient = match transaction.recipients.as_slice() {
            [only] => Some(&only.path),
            _ => None,
        };
        let is_hidden = self.options.hides_clients && self.person.is_some();
        received_field(&Trace {
            hello: self.hello.as_ref().filter(|_| !is_hidden).map(|(greeting, name)| (*greeting, name)),
            address: self.peer.address.filter(|_| !is_hidden),
            name: self.peer.name.as_deref(),
            cipher: self.encryption.as_ref().and_then(|encryption| encryption.cipher.as_deref()),
            is_encrypted: self.encryption.is_some(),
            is_authenticated: self.person.is_some(),
            is_utf8: transaction.parameters.utf8,
            host: &self.options.host,
            id,
            recipient,
            now_ms: self.now_ms,
        })
    }

    /// Hands on what came of a text; whether there was something to do.
    fn text_flows(&mut self) -> bool {
        let Some(incoming) = self.incoming_mut() else { return false };
        match incoming.flow() {
            Flow::Piece(piece) => {
                self.ask(Pending::Text, Request::Text(piece));
                true
            }
            Flow::Head => {
                self.head_is_over();
                true
            }
            Flow::Starved => false,
        }
    }

    /// RFC 5322, section 3.6: a message has one author field.
    fn head_is_over(&mut self) {
        let Some(incoming) = self.incoming_mut() else { return };
        let fields = incoming.head_fields().clone();
        let wrong = match fields.from_count {
            0 => Some("The message has no From field; add one"),
            1 if fields.author_is_too_long => Some("The From or Sender field is too long"),
            1 => None,
            _ => Some("The message has more than one From field; keep one"),
        };
        match wrong {
            Some(text) => {
                incoming.refuse(Refusal::new(550, 6, 0, text));
            }
            None => self.ask(Pending::Head, Request::Head(Box::new(fields))),
        }
    }

    pub(super) fn step_data(&mut self) -> StepEnd {
        if self.text_flows() {
            return StepEnd::Done;
        }
        let SessionState::Data { is_over } = self.state else { return StepEnd::Done };
        if is_over {
            let is_unclear = self.incoming().is_some_and(Incoming::is_unclear);
            self.text_is_whole(true);
            if is_unclear {
                // What stands behind this end may be text to the server that has passed it on: nothing of it is a command.
                let text = "Where the message ends is not clear; the connection is closed";
                self.close(&reply(421, (4, 7, 0), text));
            }
            return StepEnd::Done;
        }
        let piece_bytes = self.limits().piece_bytes.max(1);
        if self.rest().is_empty() {
            return StepEnd::Starved;
        }
        let input = self.lend_input();
        let rest = input.get(self.used()..).unwrap_or_default();
        let piece = rest.get(..rest.len().min(piece_bytes)).unwrap_or_default();
        let read = self.incoming_mut().map(|incoming| incoming.read_dots(piece));
        self.return_input(input);
        let (Some((consumed, finished)), Some(incoming)) = (read, self.incoming_mut()) else {
            return StepEnd::Starved;
        };
        let is_endless = incoming.is_endless();
        if finished {
            incoming.end();
            self.state = SessionState::Data { is_over: true };
            self.active_ms_now();
        }
        self.use_input(consumed);
        if is_endless && !finished {
            self.endless();
        }
        StepEnd::Done
    }

    fn endless(&mut self) {
        if let Some(refusal) = self.incoming().and_then(Incoming::refusal).cloned() {
            self.refuse(&refusal);
        }
        self.close(&reply(421, (4, 3, 4), "The message does not end; the connection is closed"));
    }

    pub(super) fn step_chunk(&mut self) -> StepEnd {
        if self.text_flows() {
            return StepEnd::Done;
        }
        let piece_bytes = self.limits().piece_bytes.max(1);
        let input = self.lend_input();
        let rest = input.get(self.used()..).unwrap_or_default();
        let piece = rest.get(..rest.len().min(piece_bytes)).unwrap_or_default();
        let SessionState::Chunk(chunk) = &mut self.state else {
            self.return_input(input);
            return StepEnd::Done;
        };
        let is_refused = chunk.refused.is_some();
        let taken = chunk.reader.take(piece);
        let is_over = chunk.reader.missing() == 0;
        if let Some(incoming) = self.incoming_mut().filter(|_| !is_refused) {
            incoming.read_chunk(taken);
        }
        let taken = taken.len();
        self.return_input(input);
        self.use_input(taken);
        if !is_over {
            return if taken == 0 { StepEnd::Starved } else { StepEnd::Done };
        }
        self.chunk_is_over()
    }

    fn chunk_is_over(&mut self) -> StepEnd {
        let SessionState::Chunk(chunk) = &mut self.state else { return StepEnd::Done };
        let is_last = chunk.is_last;
        if let Some(refused) = chunk.refused.take() {
            self.state = SessionState::Commands;
            self.active_ms_now();
            for _ in 1..refused.times {
                self.say(&refused.reply);
            }
            self.error(&refused.reply);
            return StepEnd::Done;
        }
        if let Some(incoming) = self.incoming_mut().filter(|_| is_last) {
            incoming.end();
        }
        // What the end has brought goes first.
        if self.text_flows() {
            return StepEnd::Done;
        }
        self.active_ms_now();
        if is_last || self.incoming().is_none_or(|incoming| incoming.refusal().is_some()) {
            self.text_is_whole(is_last);
            return StepEnd::Done;
        }
        self.state = SessionState::Commands;
        self.say(&reply(250, (2, 0, 0), "The chunk is here"));
        StepEnd::Done
    }

    /// Nothing more of this text comes, or wants to be seen.
    fn text_is_whole(&mut self, is_last: bool) {
        self.state = SessionState::Commands;
        let Some(transaction) = &self.transaction else { return };
        let Some(incoming) = &transaction.incoming else { return };
        if let Some(refusal) = incoming.refusal().cloned() {
            let times = self.answers_of_text(transaction.recipients.len(), is_last);
            self.counts.messages = self.counts.messages.saturating_add(1);
            self.reset();
            for _ in 0..times {
                self.refuse(&refusal);
            }
            return;
        }
        let summary = self.summary(transaction, incoming);
        self.ask(Pending::Finish, Request::Finish(Box::new(summary)));
    }

    fn summary(&self, transaction: &Transaction, incoming: &Incoming) -> TextSummary {
        let (text_bytes, longest_line_bytes, has_eight_bit, digest) = incoming.counts();
        let head = incoming.head_fields().clone();
        let source = match (&self.person, self.peer.address) {
            (Some(person), _) => Source::Person(person),
            (None, Some(address)) => Source::Network(address),
            (None, None) => Source::Local,
        };
        let paths = transaction.recipients.iter().map(|recipient| &recipient.path);
        let repeat_ids = match head.message_id {
            Some(_) => repeat_ids(source, &transaction.sender, paths, &digest),
            None => Vec::new(),
        };
        let message_repeat_id =
            head.message_id.as_ref().map(|_| message_repeat_id(source, &transaction.sender, &digest));
        TextSummary {
            text_bytes,
            longest_line_bytes,
            has_eight_bit,
            digest,
            head,
            repeat_ids,
            message_repeat_id,
        }
    }

    /// LMTP has an answer for each recipient also where all are refused (RFC 2033, section 4.2).
    pub(super) fn answers_of_text(&self, recipients: usize, is_last: bool) -> usize {
        if self.options.service == Service::Lmtp && is_last { recipients.max(1) } else { 1 }
    }

    pub(super) fn finished(&mut self, deliveries: &[Delivery]) {
        let recipients = self.transaction.as_ref().map_or(0, |transaction| transaction.recipients.len());
        let id = self.incoming().map(|incoming| incoming.id.clone()).unwrap_or_default();
        self.forget();
        let trouble = Delivery::Refused(Refusal::trouble());
        if self.options.service == Service::Lmtp {
            for place in 0..recipients {
                let delivery = deliveries.get(place).unwrap_or(&trouble).clone();
                self.say_delivery(&delivery, &id);
            }
        } else {
            // SMTP has one answer: what may still be delivered is sent again, and nothing is said to be safe that is not.
            let refused = |is_transient: bool| {
                deliveries.iter().find(|delivery| {
                    matches!(delivery, Delivery::Refused(refusal) if refusal.is_transient() == is_transient)
                })
            };
            let delivery = refused(true)
                .or_else(|| refused(false))
                .or_else(|| deliveries.first())
                .unwrap_or(&trouble)
                .clone();
            self.say_delivery(&delivery, &id);
        }
        let is_safe = deliveries.contains(&Delivery::Accepted);
        self.counts.messages = self.counts.messages.saturating_add(1);
        if is_safe {
            self.counts.idle_commands = 0;
        }
    }

    fn say_delivery(&mut self, delivery: &Delivery, id: &str) {
        match delivery {
            Delivery::Accepted => {
                self.say(&reply(250, (2, 0, 0), &format!("The message is safe here as {id}")));
            }
            Delivery::Refused(refusal) => self.refuse(refusal),
        }
    }
}
