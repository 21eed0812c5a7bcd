//! Programs that look at whole messages before they are stored: those that speak milter's protocol, as ClamAV, OpenDKIM and SpamAssassin
//! do, and rspamd over HTTP.
//!
//! They are asked one after the other when a message is there, each within a time. What one says of a
//! recipient holds for the message. Nobody's thread waits for them.

mod changes;
mod rspamd;
mod talk;

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use scrinium_mail::{MessageSource, SenderVerdict};
use scrinium_mail_filters::RspamdError;
use scrinium_mail_filters::milter::{MilterError, Verdict};
use scrinium_smtp::{Envelope, Refusal};
use scrinium_statistics::{Counter, Registry};
use scrinium_worker::WorkerPool;

use changes::apply;
pub use rspamd::{Rspamd, RspamdMessage};
use talk::{Conclusion, Talk};

/// Where a filter listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilterAddress {
    /// A host and a port.
    Network(String),
    /// A socket of the file system.
    Socket(PathBuf),
}

impl FilterAddress {
    /// Reads `HOST:PORT` or `unix:PATH`.
    ///
    /// # Errors
    /// Says what is wrong with the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!("{text:?} is no filter's address: write it like 127.0.0.1:11332 or unix:/run/filter.sock")
        };
        if let Some(path) = text.strip_prefix("unix:") {
            let fine = path.starts_with('/') && !path.contains('\0');
            return fine.then(|| Self::Socket(path.into())).ok_or_else(wrong);
        }
        let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        let is_port = port.parse::<u16>().is_ok_and(|port| port > 0);
        let is_host = !host.is_empty()
            && host.chars().all(|letter| letter.is_ascii_alphanumeric() || ".-:[]".contains(letter));
        (is_port && is_host).then(|| Self::Network(text.to_owned())).ok_or_else(wrong)
    }
}

impl std::fmt::Display for FilterAddress {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Network(address) => formatter.write_str(address),
            Self::Socket(path) => write!(formatter, "unix:{}", path.display()),
        }
    }
}

/// Which programs look at messages.
#[derive(Clone, Debug)]
pub struct FilterOptions {
    /// In the order in which they are asked.
    pub milters: Vec<FilterAddress>,
    /// Where rspamd answers over HTTP, if it is asked; after the milters.
    pub rspamd: Option<FilterAddress>,
    /// Whether a message goes on without a filter that does not answer. Otherwise its sender is to try again later.
    pub passes_unfiltered: bool,
    /// Whether what a filter wants aside is kept back until an administrator lets it go. Otherwise it comes into the folder Junk.
    pub keeps_back: bool,
    /// How long a filter may take for one message.
    pub timeout: Duration,
    /// What this server calls itself.
    pub server: String,
}

/// Why a filter said nothing that can be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FilterFault {
    /// No connection.
    #[error("it cannot be reached: {0}")]
    Unreachable(std::io::Error),
    /// The connection ended in the middle of an answer.
    #[error("its connection broke: {0}")]
    Broken(std::io::Error),
    /// The connection ended before an answer.
    #[error("it hung up")]
    HungUp,
    /// No answer within the time for one message.
    #[error("it took too long")]
    Time,
    /// A milter says what its protocol does not allow.
    #[error(transparent)]
    Protocol(#[from] MilterError),
    /// An HTTP status that is no answer to the question.
    #[error("it answers with the status {0}")]
    Status(u16),
    /// An answer of rspamd that cannot be read.
    #[error(transparent)]
    Rspamd(#[from] RspamdError),
    /// What stands in the file for its password cannot be sent.
    #[error("its password has letters that no HTTP header may have")]
    Password,
    /// The fault is here: the message cannot be read.
    #[error("the message cannot be read: {0}")]
    Message(std::io::Error),
}

impl FilterFault {
    /// Whether the same question may have an answer a little later.
    #[must_use]
    pub const fn is_temporary(&self) -> bool {
        matches!(
            self,
            Self::Unreachable(_)
                | Self::Broken(_)
                | Self::HungUp
                | Self::Time
                | Self::Status(429 | 500..=599)
        )
    }
}

/// A message on its way through filters.
pub(crate) struct FilteredMessage {
    /// Its head as it is now.
    pub(crate) head: Vec<u8>,
    /// The message as it came.
    pub(crate) source: MessageSource,
    /// Where in `source` the head ends.
    pub(crate) head_end: u64,
    /// The body that a filter has put in the place of the one in `source`.
    pub(crate) body: Option<Bytes>,
}

/// What became of a message that was not refused.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Filtered {
    /// It goes on; `aside` is why a filter wants it put aside, if one does.
    GoesOn { aside: Option<String> },
    /// Its sender hears that it was taken, and nobody gets it.
    Discarded,
}

/// A filter.
#[derive(Clone, Copy)]
enum Program<'f> {
    Milter(&'f FilterAddress),
    Rspamd(&'f Rspamd),
}

impl<'f> Program<'f> {
    const fn address(self) -> &'f FilterAddress {
        match self {
            Self::Milter(address) => address,
            Self::Rspamd(rspamd) => rspamd.address(),
        }
    }
}

/// Asks filters.
pub(crate) struct Filters {
    options: FilterOptions,
    rspamd: Option<Rspamd>,
    workers: WorkerPool,
    refused: Counter,
    discarded: Counter,
    failed: Counter,
}

impl Filters {
    /// Registers `PROTOCOL.Filters.Refused`, `PROTOCOL.Filters.Discarded` and `PROTOCOL.Filters.Failed`.
    pub(crate) fn register(
        protocol: &str,
        options: FilterOptions,
        workers: WorkerPool,
        registry: &Registry,
    ) -> Self {
        let counter = |name: &str| registry.counter(&format!("{protocol}.Filters.{name}"));
        let (refused, discarded, failed) = (counter("Refused"), counter("Discarded"), counter("Failed"));
        let rspamd = options.rspamd.clone().map(|address| Rspamd::new(address, workers.clone()));
        Self { options, rspamd, workers, refused, discarded, failed }
    }

    /// Lets a message through all filters, which may change it.
    pub(crate) async fn pass(
        &self,
        message: &mut FilteredMessage,
        (envelope, submitter): (&Envelope, Option<&str>),
    ) -> Result<Filtered, Refusal> {
        let mut aside = None;
        let milters = self.options.milters.iter().map(Program::Milter);
        for program in milters.chain(self.rspamd.as_ref().map(Program::Rspamd)) {
            let asked = self.ask(program, message, (envelope, submitter));
            let asked = tokio::time::timeout(self.options.timeout, asked).await;
            let address = program.address();
            match asked.unwrap_or(Err(FilterFault::Time)) {
                Ok(Conclusion::Changes(changes)) => {
                    aside = apply(message, changes, address).or(aside);
                }
                Ok(Conclusion::Discarded) => {
                    self.discarded.add(1);
                    return Ok(Filtered::Discarded);
                }
                Ok(Conclusion::Refused(verdict)) => {
                    self.refused.add(1);
                    return Err(refusal(verdict));
                }
                Err(error) => self.failed(address, &error)?,
            }
        }
        Ok(Filtered::GoesOn { aside })
    }

    async fn ask(
        &self,
        program: Program<'_>,
        message: &FilteredMessage,
        (envelope, submitter): (&Envelope, Option<&str>),
    ) -> Result<Conclusion, FilterFault> {
        let server = &self.options.server;
        match program {
            Program::Milter(address) => {
                Talk { address, server, submitter, workers: &self.workers }.about(message, envelope).await
            }
            Program::Rspamd(rspamd) => rspamd.about(message, envelope, (server, submitter)).await,
        }
    }

    /// What is written into the envelope of a message that a filter wants aside: why it is kept back, or what is thought of its sender.
    pub(crate) fn put_aside(
        &self,
        reason: String,
        sender: Option<SenderVerdict>,
    ) -> (Option<String>, Option<SenderVerdict>) {
        if self.options.keeps_back {
            return (Some(reason), sender);
        }
        let known =
            sender.unwrap_or_else(|| SenderVerdict { is_vouched_for: true, ..SenderVerdict::default() });
        (None, Some(SenderVerdict { is_suspect: true, ..known }))
    }

    /// A filter that said nothing: the message goes on without it, or waits.
    fn failed(&self, address: &FilterAddress, error: &FilterFault) -> Result<(), Refusal> {
        self.failed.add(1);
        let passes = self.options.passes_unfiltered;
        tracing::warn!(filter = %address, %error, passes, "a filter of mail does not do its work");
        if passes {
            return Ok(());
        }
        Err(Refusal::new(451, 3, 0, "A filter of this server does not answer now. Try again later"))
    }
}

/// What the client hears.
fn refusal(verdict: Verdict) -> Refusal {
    match verdict {
        Verdict::Reply(code, text) => {
            let (enhanced, words) = text.split_once(' ').unwrap_or(("", &text));
            let mut numbers = enhanced.split('.').map(str::parse::<u16>);
            match (numbers.next(), numbers.next(), numbers.next(), numbers.next()) {
                (Some(Ok(_)), Some(Ok(subject)), Some(Ok(detail)), None) => {
                    Refusal::new(code, subject, detail, words)
                }
                _ => Refusal::new(code, 7, 1, &text),
            }
        }
        Verdict::Reject => Refusal::new(550, 7, 1, "A filter of this server refuses the message"),
        _ => {
            Refusal::new(451, 7, 1, "A filter of this server does not take the message now. Try again later")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_what_is_none_is_refused() {
        for text in ["127.0.0.1:11332", "[::1]:8891", "filter.example:1", "unix:/run/clamav/milter.sock"] {
            assert_eq!(FilterAddress::parse(text).map(|address| address.to_string()), Ok(text.to_owned()));
        }
        for text in ["", "host", "host:", ":1", "host:0", "host:70000", "a b:1", "unix:relative", "unix:/a\0"]
        {
            assert!(FilterAddress::parse(text).is_err(), "{text:?}");
        }
    }
}
