//! What follows from an answer.

use scrinium_smtp_wire::{EnhancedCode, Reply};

use crate::server::request::{Answer, Delivery, RecipientVerdict, Refusal};
use crate::server::session::{Chunk, Pending, Refused, ServerSession, SessionState, Transaction, reply};

impl ServerSession {
    /// An answer of a kind that does not fit its request counts as trouble of ours.
    pub(super) fn answered(&mut self, pending: Pending, answer: Answer) {
        match pending {
            Pending::Greet => self.greeted(answer),
            Pending::StartTls => self.tls_started(answer),
            Pending::Account(exchange) => self.account_given(exchange, answer),
            Pending::LogIn(exchange) => self.login_decided(exchange, answer),
            Pending::Sender(sender, parameters, release_ms) => match answer {
                Answer::Accepted => {
                    let transaction = Transaction {
                        sender,
                        parameters: *parameters,
                        release_ms,
                        recipients: Vec::new(),
                        envelope_bytes: 0,
                        incoming: None,
                    };
                    self.transaction = Some(transaction);
                    self.say(&reply(250, (2, 1, 0), "The sender is fine"));
                }
                answer => self.refused(answer),
            },
            Pending::Recipient(recipient, envelope_bytes) => match answer {
                Answer::Recipient(verdict) => self.recipient_decided(&verdict, *recipient, envelope_bytes),
                answer => self.refused(answer),
            },
            Pending::Begin(chunk) => self.begun(answer, chunk),
            Pending::Head => match answer {
                Answer::Head(sender) => {
                    let (options, now_ms) = (self.options.clone(), self.now_ms);
                    if let Some(incoming) = self.incoming_mut() {
                        incoming.close_head(&sender, now_ms, &options.host);
                    }
                }
                answer => self.text_refused(answer),
            },
            Pending::Text => match answer {
                Answer::Accepted => {}
                answer => self.text_refused(answer),
            },
            Pending::Finish => match answer {
                Answer::Finished(delivery) => {
                    let recipients =
                        self.transaction.as_ref().map_or(1, |transaction| transaction.recipients.len());
                    self.finished(&vec![delivery; recipients.max(1)]);
                }
                Answer::FinishedEach(deliveries) => self.finished(&deliveries),
                answer => {
                    let recipients =
                        self.transaction.as_ref().map_or(1, |transaction| transaction.recipients.len());
                    self.finished(&vec![Delivery::Refused(refusal_of(answer)); recipients.max(1)]);
                }
            },
            Pending::Abandon => {}
        }
    }

    fn greeted(&mut self, answer: Answer) {
        match answer {
            Answer::Accepted => {
                let word = if self.options.service == crate::Service::Lmtp { "LMTP" } else { "ESMTP" };
                let line = format!("220 {} {word}", self.options.host);
                self.say_line(&line);
                self.state = SessionState::Commands;
            }
            Answer::Refused(refusal) => self.close(&refusal.reply()),
            _ => self.close(&reply(421, (4, 3, 2), "The server cannot take mail now; try again later")),
        }
    }

    /// RFC 3207, section 4.2: all that was said before is forgotten.
    fn tls_started(&mut self, answer: Answer) {
        let Answer::Encrypted(encryption) = answer else { return self.end_silently() };
        self.encryption = Some(encryption);
        self.hello = None;
        self.person = None;
        self.forget();
        self.drop_input();
        self.state = SessionState::Commands;
    }

    fn refused(&mut self, answer: Answer) {
        match answer {
            Answer::Refused(refusal) if !refusal.is_transient() => self.error(&refusal.reply()),
            answer => self.refuse(&refusal_of(answer)),
        }
    }

    fn recipient_decided(
        &mut self,
        verdict: &RecipientVerdict,
        recipient: crate::EnvelopeRecipient,
        envelope_bytes: usize,
    ) {
        let said = match verdict {
            RecipientVerdict::Accepted => reply(250, (2, 1, 5), "The recipient is fine"),
            RecipientVerdict::Forwarded(to) => {
                forwarded(251, 2, &format!("The message will go on to <{to}>"))
            }
            RecipientVerdict::Moved(to) => {
                // RFC 5321, section 3.4.
                return self.error(&forwarded(
                    551,
                    5,
                    &format!("The recipient has moved; send it to <{to}>"),
                ));
            }
            RecipientVerdict::Unknown => return self.unknown_recipient(),
            RecipientVerdict::Full => {
                let text =
                    "The recipient's mailbox is full; try again later, or reach the recipient another way";
                return self.say(&reply(452, (4, 2, 2), text));
            }
            RecipientVerdict::TooLargeForMailbox => {
                return self.say(&reply(
                    552,
                    (5, 2, 3),
                    "The message is too large for this recipient; send a smaller one",
                ));
            }
            RecipientVerdict::NeedsLogIn => {
                let text = "Messages to other servers are taken only from people who have logged in, on port 465 or 587";
                return self.error(&reply(550, (5, 7, 1), text));
            }
            RecipientVerdict::Refused(refusal) => return self.refused(Answer::Refused(refusal.clone())),
        };
        let Some(transaction) = &mut self.transaction else { return };
        transaction.recipients.push(recipient);
        transaction.envelope_bytes = envelope_bytes;
        self.say(&said);
    }

    fn unknown_recipient(&mut self) {
        self.say(&reply(550, (5, 1, 1), "There is no such recipient here; check the address"));
        self.counts.unknown_recipients = self.counts.unknown_recipients.saturating_add(1);
        if self.counts.unknown_recipients >= self.limits().unknown_recipients {
            let text =
                "Too many recipients are not here; the connection is closed. Check your list of addresses";
            self.close(&reply(421, (4, 7, 0), text));
        }
    }

    fn begun(&mut self, answer: Answer, chunk: Option<Chunk>) {
        match (answer, chunk) {
            (Answer::Begun(id), chunk) => self.text_begins(id, chunk),
            (answer, None) => {
                let refusal = refusal_of(answer);
                // Nothing is left of the message (RFC 5321, section 3.3).
                self.forget();
                if self.rest().is_empty() {
                    return self.refuse(&refusal);
                }
                self.refuse(&refusal);
                let text = "Something was sent behind DATA before its reply; the connection is closed";
                self.close(&reply(421, (4, 5, 0), text));
            }
            (answer, Some(mut chunk)) => {
                let recipients =
                    self.transaction.as_ref().map_or(1, |transaction| transaction.recipients.len());
                let times = self.answers_of_text(recipients, chunk.is_last);
                self.forget();
                chunk.refused = Some(Refused { reply: refusal_of(answer).reply(), times });
                self.state = SessionState::Chunk(chunk);
            }
        }
    }

    /// The surroundings do not want the text: what comes of it is read over, and then they hear that it is abandoned.
    fn text_refused(&mut self, answer: Answer) {
        let refusal = refusal_of(answer);
        if let Some(incoming) = self.incoming_mut() {
            incoming.refuse(refusal);
        }
    }
}

fn refusal_of(answer: Answer) -> Refusal {
    match answer {
        Answer::Refused(refusal) => refusal,
        _ => Refusal::trouble(),
    }
}

/// An address has its brackets and may be beyond ASCII: the reply is written as it is.
fn forwarded(code: u16, class: u8, text: &str) -> Reply {
    Reply::with_enhanced(code, EnhancedCode::new(class, 1, 6), text)
}
