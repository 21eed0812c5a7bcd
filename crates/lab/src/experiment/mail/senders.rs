//! Those who hand messages to a server: each has one connection and sends message after message, as servers do that have much to
//! say. What is not acknowledged is sent again, byte for byte, as a server must (RFC 5321, section 4.5.4.1).

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::people;
use crate::content::{Form, Person, Writer};
use crate::driver::{Dialect, Failure, FailureKind, Ledger, Letter, SmtpSender};
use crate::measure::Times;

/// No reply takes longer.
const REPLY_WITHIN: Duration = Duration::from_secs(120);

/// One message is tried for so long, through kills and refusals for the time being.
const TRIED_FOR: Duration = Duration::from_secs(180);
const BETWEEN_TRIES: Duration = Duration::from_millis(20);

/// What is to be sent, and to whom.
#[derive(Clone, Debug)]
pub(in crate::experiment) struct SendOrder {
    pub(in crate::experiment) port: u16,
    pub(in crate::experiment) dialect: Dialect,
    /// Certificates to believe, if the connection is encrypted.
    pub(in crate::experiment) authority: Option<PathBuf>,
    /// Name and password, for a server that asks for them.
    pub(in crate::experiment) login: (String, String),
    pub(in crate::experiment) from_domain: String,
    pub(in crate::experiment) to_domain: String,
    /// Messages go to that many people in turn.
    pub(in crate::experiment) people: usize,
    pub(in crate::experiment) messages: u64,
    pub(in crate::experiment) bytes: usize,
    pub(in crate::experiment) connections: usize,
}

/// What senders share.
#[derive(Debug, Default)]
struct Shared {
    next: AtomicU64,
    acknowledged: Arc<AtomicU64>,
}

/// Sends all messages, and notes them in the ledger. `acknowledged` counts while it goes on.
///
/// # Errors
/// What a server refuses for good, or does not take within minutes.
pub(in crate::experiment) async fn send_all(
    order: SendOrder,
    ledger: Arc<Ledger>,
    acknowledged: Arc<AtomicU64>,
) -> Result<Times, Failure> {
    let shared = Arc::new(Shared { next: AtomicU64::new(0), acknowledged });
    let order = Arc::new(order);
    let mut senders = JoinSet::new();
    for number in 1..=order.connections {
        let (order, ledger, shared) = (Arc::clone(&order), Arc::clone(&ledger), Arc::clone(&shared));
        senders.spawn(async move { send(number, &order, &ledger, &shared).await });
    }
    let mut times = Times::default();
    while let Some(ended) = senders.join_next().await {
        times.merge(&ended.map_err(|error| Failure::wrong(error.to_string()))??);
    }
    Ok(times)
}

/// One sender, until there is nothing left to send; how long the server took for each message.
async fn send(number: usize, order: &SendOrder, ledger: &Ledger, shared: &Shared) -> Result<Times, Failure> {
    let login = (order.login.0.as_str(), order.login.1.as_str());
    let sender =
        SmtpSender::to_port(order.port, order.dialect, order.authority.as_ref(), login, REPLY_WITHIN)
            .map_err(Failure::wrong)?;
    let recipients = people(order.people);
    let from = Person {
        number,
        ..recipients.first().cloned().ok_or_else(|| Failure::wrong("nobody is written to"))?
    };
    let mut writer = Writer::new(&from, 1, ledger.run());
    let mut times = Times::default();
    let mut connection = None;
    loop {
        let next = shared.next.fetch_add(1, Ordering::Relaxed);
        if next >= order.messages {
            return Ok(times);
        }
        let to = usize::try_from(next).ok().and_then(|next| recipients.get(next % recipients.len().max(1)));
        let to = to.map(|person| person.name.clone()).into_iter().collect();
        let message = writer.write(Form::Memo, order.bytes, 0, to, jiff::Timestamp::now().as_second());
        let letter = Letter::between(&message, &order.from_domain, &order.to_domain);
        let begun = Instant::now();
        loop {
            let answer = hand_in(&sender, &mut connection, &letter).await;
            ledger.sent(message.number, 1, &answer);
            match answer {
                Ok(()) => break,
                Err(failure) if is_final(&failure) || begun.elapsed() > TRIED_FOR => return Err(failure),
                Err(_) => {
                    connection = None;
                    tokio::time::sleep(BETWEEN_TRIES).await;
                }
            }
        }
        times.record(begun.elapsed());
        shared.acknowledged.fetch_add(1, Ordering::Relaxed);
    }
}

async fn hand_in(
    sender: &SmtpSender,
    connection: &mut Option<crate::driver::SmtpConnection>,
    letter: &Letter,
) -> Result<(), Failure> {
    let open = match connection {
        Some(open) => open,
        None => connection.insert(sender.open().await?),
    };
    sender.send_on(open, letter).await
}

/// Replies of 500 and more are for good (RFC 5321, section 4.2.1), and what is no SMTP will not become any.
fn is_final(failure: &Failure) -> bool {
    match failure.kind {
        FailureKind::Status(status) => status >= 500,
        FailureKind::WrongAnswer => true,
        _ => false,
    }
}
