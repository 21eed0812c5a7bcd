//! A message goes out: its envelope, its text, and the replies to both.

use scrinium_smtp_wire::{
    Body, Capability, Command, EnhancedCode, MailParameters, RecipientParameters, Reply,
};

use crate::client::message::{Sending, Stage, TextWriter};
use crate::client::options::Protocol;
use crate::client::outcome::{Outcome, Reason, Said};
use crate::client::session::{ClientSession, Phase, Sent};

impl ClientSession {
    /// What the server cannot take is not sent to it.
    pub(super) fn check_message(&mut self) {
        let offers = |capability| self.capabilities.has(&capability);
        let (takes_utf8, promises_tls) = (offers(Capability::SmtpUtf8), offers(Capability::RequireTls));
        let size_limit = self.capabilities.size_limit();
        let recipients_max = self.recipients_max();
        let is_encrypted = self.is_encrypted;
        let Some(sending) = &mut self.sending else { return };
        let message = &sending.message;
        let needs_utf8 = Said::own(
            Reason::NeedsUtf8,
            (5, 6, 7),
            "The server does not take messages or addresses beyond ASCII, which this one needs",
        );
        let sender_is_ascii = message.sender.mailbox().is_none_or(scrinium_smtp_wire::Mailbox::is_ascii);
        let refused = if message.requires_tls && !(is_encrypted && promises_tls) {
            let text = "The sender asks for encryption all the way, which the server does not promise";
            Some(Said::own(Reason::NeedsRequireTls, (5, 7, 30), text))
        } else if (message.needs_utf8 || !sender_is_ascii) && !takes_utf8 {
            Some(needs_utf8.clone())
        } else if message.text_bytes.is_some_and(|bytes| size_limit.is_some_and(|limit| bytes > limit)) {
            let text = format!(
                "The message is longer than the {} bytes that the server takes",
                size_limit.unwrap_or(0)
            );
            Some(Said::own(Reason::TooLarge, (5, 3, 4), &text))
        } else {
            None
        };
        if let Some(said) = refused {
            sending.settle_all(&said.outcome());
        } else if !takes_utf8 {
            let beyond: Vec<usize> =
                (0..).zip(&message.recipients).filter(|(_, one)| !one.is_ascii()).map(|(at, _)| at).collect();
            for recipient in beyond {
                sending.settle(recipient, || needs_utf8.clone().outcome());
            }
        }
        let open: Vec<usize> =
            (0..).zip(&sending.outcomes).filter(|(_, one)| one.is_none()).map(|(at, _)| at).collect();
        for recipient in open.into_iter().skip(recipients_max) {
            let text = "The server takes fewer recipients at a time";
            sending.settle(recipient, || Said::own(Reason::TooManyRecipients, (4, 5, 3), text).outcome());
        }
        if sending.unsettled_from(0).is_none() {
            sending.stage = Stage::Drain;
        }
    }

    /// RCPTMAX (RFC 9422), or no limit.
    fn recipients_max(&self) -> usize {
        let limit = self.capabilities.list.iter().find_map(|capability| match capability {
            Capability::Limits(limits) => limits.recipients,
            _ => None,
        });
        limit.and_then(|limit| usize::try_from(limit).ok()).map_or(usize::MAX, |limit| limit.max(1))
    }

    fn window(&self) -> usize {
        let pipelines = self.capabilities.has(&Capability::Pipelining);
        if pipelines { self.options.limits.commands_in_flight.max(1) } else { 1 }
    }

    /// Writes as many commands as may go out.
    pub(super) fn pump(&mut self) {
        while self.phase == Phase::Sending
            && self.in_flight.len() < self.window()
            && self.output.len() < self.options.limits.output_bytes
        {
            let Some(mut sending) = self.sending.take() else { return };
            let goes_on = self.pump_one(&mut sending);
            if sending.stage == Stage::Drain && self.in_flight.is_empty() {
                return self.finish(*sending);
            }
            self.sending = Some(sending);
            if !goes_on {
                return;
            }
        }
    }

    /// Writes the next command; whether there was one.
    fn pump_one(&mut self, sending: &mut Sending) -> bool {
        if sending.stage != Stage::Envelope {
            return false;
        }
        if !sending.mail_is_sent {
            sending.mail_is_sent = true;
            let command = self.mail(sending);
            self.write(&command, Sent::Mail);
            return true;
        }
        if let Some(recipient) = sending.unsettled_from(sending.next_recipient) {
            sending.next_recipient = recipient.saturating_add(1);
            let Some(command) = self.recipient(sending, recipient) else { return false };
            self.write(&command, Sent::Recipient(recipient));
            return true;
        }
        sending.next_recipient = sending.outcomes.len();
        if sending.data_is_sent {
            return false;
        }
        let is_certain = self.in_flight.is_empty();
        match sending.writer {
            // DATA goes along with the recipients (RFC 2920, section 3.1).
            TextWriter::Dots(_) if self.window() > 1 || is_certain => {
                if is_certain && sending.taken.is_empty() {
                    sending.stage = Stage::Drain;
                    return false;
                }
                sending.data_is_sent = true;
                self.write(&Command::Data, Sent::Data);
            }
            TextWriter::Chunks(_) if is_certain => {
                sending.data_is_sent = true;
                sending.stage = if sending.taken.is_empty() { Stage::Drain } else { Stage::Text };
            }
            _ => return false,
        }
        true
    }

    fn mail(&self, sending: &Sending) -> Command {
        let message = &sending.message;
        let offers = |capability| self.capabilities.has(&capability);
        let has_size = self.capabilities.list.iter().any(|known| matches!(known, Capability::Size(_)));
        let passes_dsn = offers(Capability::Dsn);
        let is_beyond_ascii = message.needs_utf8
            || message.sender.mailbox().is_some_and(|mailbox| !mailbox.is_ascii())
            || message.recipients.iter().any(|recipient| !recipient.is_ascii());
        let eight_bit = message.has_eight_bit && offers(Capability::EightBitMime);
        let parameters = MailParameters {
            size_bytes: message.text_bytes.filter(|_| has_size),
            body: eight_bit.then_some(Body::EightBitMime),
            utf8: is_beyond_ascii && offers(Capability::SmtpUtf8),
            return_content: message.return_content.filter(|_| passes_dsn),
            envelope_id: message.envelope_id.clone().filter(|_| passes_dsn),
            require_tls: message.requires_tls,
            ..MailParameters::default()
        };
        Command::Mail(message.sender.clone(), parameters)
    }

    fn recipient(&self, sending: &Sending, place: usize) -> Option<Command> {
        let recipient = sending.message.recipients.get(place)?;
        let passes_dsn = self.capabilities.has(&Capability::Dsn);
        let parameters = RecipientParameters {
            notify: recipient.notify.filter(|_| passes_dsn),
            original: recipient.original.clone().filter(|_| passes_dsn),
            other: Vec::new(),
        };
        Some(Command::Recipient(recipient.path.clone(), parameters))
    }

    /// What a 421 says of the command that it answers.
    pub(super) fn settle_reply(&mut self, sent: Sent, reply: &Reply) {
        if let (Some(sending), Sent::Recipient(recipient)) = (&mut self.sending, sent) {
            sending.settle(recipient, || Said::by(sent.step(), reply).outcome());
        }
    }

    pub(super) fn message_reply(&mut self, sent: Sent, reply: &Reply) {
        let Some(mut sending) = self.sending.take() else { return };
        let is_sane = self.take_reply(&mut sending, sent, reply);
        self.sending = Some(sending);
        if !is_sane {
            self.lost(&Said::own(Reason::Protocol, (4, 5, 0), "The server sent a reply that does not fit"));
        }
    }

    /// Whether the reply can be one to this command.
    fn take_reply(&mut self, sending: &mut Sending, sent: Sent, reply: &Reply) -> bool {
        let refused = reply.is_transient() || reply.is_permanent();
        let asks_for_text = sent == Sent::Data && reply.code() == 354;
        if !(refused || reply.is_success() || asks_for_text) {
            return false;
        }
        let said = Said::by(sent.step(), reply);
        if refused {
            sending.last_refusal = Some(said.clone());
        }
        match sent {
            Sent::Mail if refused => {
                sending.settle_all(&said.outcome());
                // What is in flight already is refused as well; nothing more goes out.
                sending.stage = Stage::Drain;
            }
            Sent::Mail => sending.needs_reset = true,
            Sent::Recipient(recipient) if refused && is_too_many(reply) => {
                let enhanced = EnhancedCode::new(4, 5, 3);
                sending.settle(recipient, || Outcome::Deferred(Said { enhanced, ..said }));
            }
            Sent::Recipient(recipient) if refused => sending.settle(recipient, || said.outcome()),
            Sent::Recipient(recipient) => sending.taken.push(recipient),
            Sent::Data if refused => {
                sending.settle_all(&said.outcome());
                sending.stage = Stage::Drain;
            }
            Sent::Data => return self.text_may_come(sending, reply),
            Sent::Chunk { is_last: true } | Sent::End => self.text_answered(sending, sent, said),
            Sent::Chunk { is_last: false } if refused => {
                sending.settle_all(&said.outcome());
                sending.stage = Stage::Drain;
            }
            // A text for nobody: whatever is said of it, nobody has got it.
            Sent::EmptyEnd => sending.needs_reset = false,
            _ => {}
        }
        true
    }

    fn text_may_come(&mut self, sending: &mut Sending, reply: &Reply) -> bool {
        if reply.code() != 354 {
            return false;
        }
        if sending.taken.is_empty() || sending.stage == Stage::Drain {
            // RFC 2920, section 3.1: nobody was taken, and still the server waits for a text.
            self.output.extend_from_slice(b".\r\n");
            self.in_flight.push_back(Sent::EmptyEnd);
            sending.stage = Stage::Drain;
        } else {
            sending.stage = Stage::Text;
        }
        true
    }

    fn text_answered(&mut self, sending: &mut Sending, sent: Sent, said: Said) {
        let dsn_passed_on = self.capabilities.has(&Capability::Dsn);
        let is_taken = said.code.is_some_and(|code| code < 300);
        let outcome = || if is_taken { Outcome::Delivered { said, dsn_passed_on } } else { said.outcome() };
        if self.options.protocol == Protocol::Smtp {
            sending.settle_all(&outcome());
        } else {
            // RFC 2033, section 4.2: in the order of the recipients.
            if let Some(recipient) = sending.taken.get(sending.answered).copied() {
                sending.settle(recipient, outcome);
            }
            sending.answered = sending.answered.saturating_add(1);
            if sending.answered < sending.taken.len() {
                self.in_flight.push_front(sent);
                return;
            }
        }
        sending.needs_reset = false;
        sending.stage = Stage::Drain;
    }

    pub(super) fn wants_text(&self) -> bool {
        let limits = &self.options.limits;
        let chunks_max = if self.window() > 1 { limits.chunks_in_flight.max(1) } else { 1 };
        self.output.len() < limits.output_bytes
            && self.sending.as_ref().is_some_and(|sending| {
                sending.stage == Stage::Text
                    && (matches!(sending.writer, TextWriter::Dots(_)) || self.in_flight.len() < chunks_max)
            })
    }

    /// The next piece of the text, after [`crate::client::ClientRequest::Text`]. It is ignored where no text is wanted any more.
    pub fn give_text(&mut self, text: &[u8]) {
        self.asked();
        self.active_now();
        let Some(mut sending) = self.sending.take() else { return };
        let is_wanted = sending.stage == Stage::Text && !text.is_empty();
        let is_fine = !is_wanted || self.write_text(&mut sending, text, false);
        self.sending = Some(sending);
        if !is_fine {
            self.bare_line_end();
        }
    }

    /// The text is over.
    pub fn end_text(&mut self) {
        self.asked();
        self.active_now();
        let Some(mut sending) = self.sending.take() else { return };
        let is_wanted = sending.stage == Stage::Text;
        let is_fine = !is_wanted || self.write_text(&mut sending, b"", true);
        if is_wanted && is_fine {
            sending.stage = Stage::End;
        }
        self.sending = Some(sending);
        if !is_fine {
            self.bare_line_end();
        }
    }

    /// The message cannot be read any more. The connection ends, so that no half of it is taken for the whole.
    pub fn abort_text(&mut self, text: &str) {
        self.lost(&Said::own(Reason::GivenUp, (4, 3, 0), text));
    }

    fn bare_line_end(&mut self) {
        let text = "The message has a line that does not end with CR LF, which must not be sent";
        self.lost(&Said::own(Reason::BareLineEnd, (5, 6, 11), text));
    }

    /// Whether the text may be sent.
    fn write_text(&mut self, sending: &mut Sending, text: &[u8], is_last: bool) -> bool {
        match &mut sending.writer {
            TextWriter::Dots(writer) => {
                let written = writer.write(text, &mut self.output);
                if written.is_err() || !is_last {
                    return written.is_ok();
                }
                self.in_flight.push_back(Sent::End);
                writer.clone().finish(&mut self.output).is_ok()
            }
            TextWriter::Chunks(writer) => {
                let mut chunk = Vec::new();
                writer.read(text, &mut chunk);
                if is_last {
                    writer.finish(&mut chunk);
                }
                if writer.fault().is_some() {
                    return false;
                }
                // All of it may be a CR whose LF is to come.
                if !chunk.is_empty() || is_last {
                    let command = Command::Chunk(chunk.len() as u64, is_last);
                    self.write(&command, Sent::Chunk { is_last });
                    self.output.extend_from_slice(&chunk);
                }
                true
            }
        }
    }

    /// Everybody has an outcome, and no reply is due.
    fn finish(&mut self, sending: Sending) {
        self.phase = Phase::Idle;
        if sending.needs_reset {
            self.write(&Command::Reset, Sent::Reset);
        }
        self.done(sending);
    }
}

/// RFC 5321, section 4.5.3.1.10: old servers say 552 where they mean that there are too many recipients.
fn is_too_many(reply: &Reply) -> bool {
    reply.code() == 552 && reply.enhanced().is_none_or(|code| (code.subject(), code.detail()) == (5, 3))
}
