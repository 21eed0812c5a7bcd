//! What is asked of a stranger before a text comes: lists in DNS (RFC 5782), and greylisting (RFC 6647).

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use scrinium_accounting::{AddressRange, is_within};
use scrinium_clock::Clock;
use scrinium_mail_filters::greylist::{GreyDecision, GreyKey, GreyPolicy, GreyRecord, GreyStore, decide};
use scrinium_mail_filters::{DnsList, ListVerdict, judge};
use scrinium_sender_authentication::{Answers, settle};
use scrinium_smtp::{RecipientQuestion, Refusal};
use scrinium_smtp_wire::ForwardPath;
use scrinium_statistics::{Counter, Registry};
use scrinium_worker::WorkerPool;
use tokio::time::Instant;

use crate::desk::address_of;
use crate::sender_check::{Bounded, SenderDns};

/// How long DNS may take for all lists.
const DNS_TIME: Duration = Duration::from_secs(10);

/// Everybody may complain here about what the lists say (RFC 5321 §4.5.1).
const POSTMASTER: &str = "postmaster";

/// Lists in DNS, and what it takes to be refused.
#[derive(Clone, Debug)]
pub struct ListOptions {
    /// The lists with their weights.
    pub lists: Vec<DnsList>,
    /// Who weighs this much together, or more, is refused.
    pub refused_from: i32,
}

/// What strangers have to pass.
#[derive(Clone)]
pub struct GateOptions {
    /// Answers what the lists say.
    pub dns: Arc<dyn SenderDns>,
    /// Lists, if any are asked.
    pub lists: Option<ListOptions>,
    /// How long who is unknown has to wait, and where it is written down who is known; `None`: nobody has to.
    pub greylist: Option<(GreyPolicy, Arc<dyn GreyStore + Send + Sync>)>,
    /// Servers in these networks pass.
    pub trusted: Vec<AddressRange>,
    /// The time.
    pub clock: Clock,
}

/// What one connection has been found to be.
#[derive(Default)]
pub(crate) struct Passage {
    /// What the lists say of its address, once they were asked.
    listed: Option<Option<Refusal>>,
}

/// Asks strangers.
pub(crate) struct Gate {
    options: GateOptions,
    workers: WorkerPool,
    listed: Counter,
    silent: Counter,
    greylisted: Counter,
}

impl Gate {
    /// Registers `SMTP.Lists.Refused`, `SMTP.Lists.Silent` and `SMTP.Greylisted`.
    pub(crate) fn register(options: GateOptions, workers: WorkerPool, registry: &Registry) -> Self {
        Self {
            options,
            workers,
            listed: registry.counter("SMTP.Lists.Refused"),
            silent: registry.counter("SMTP.Lists.Silent"),
            greylisted: registry.counter("SMTP.Greylisted"),
        }
    }

    /// Why a stranger may not send to a recipient now, if not.
    pub(crate) async fn refusal(
        &self,
        address: IpAddr,
        passage: &mut Passage,
        question: &RecipientQuestion,
    ) -> Option<Refusal> {
        let address = address.to_canonical();
        if is_within(&self.options.trusted, address) || is_postmaster(&question.recipient.path) {
            return None;
        }
        if passage.listed.is_none() {
            passage.listed = Some(self.listed(address).await);
        }
        if let Some(Some(refusal)) = &passage.listed {
            self.listed.add(1);
            return Some(refusal.clone());
        }
        self.greylisted(address, question).await
    }

    async fn listed(&self, address: IpAddr) -> Option<Refusal> {
        let ListOptions { lists, refused_from } = self.options.lists.as_ref()?;
        let dns = Bounded { dns: &*self.options.dns, until: Instant::now() + DNS_TIME };
        let mut answers = Answers::default();
        let verdict = settle(&dns, &mut answers, |answers| judge(address, lists, answers)).await;
        if !verdict.silent.is_empty() {
            self.silent.add(verdict.silent.len() as u64);
            tracing::info!(lists = ?verdict.silent, "lists in DNS do not answer this server");
        }
        (verdict.weight >= *refused_from).then(|| listed_refusal(address, &verdict))
    }

    async fn greylisted(&self, address: IpAddr, question: &RecipientQuestion) -> Option<Refusal> {
        let (policy, records) = self.options.greylist.clone()?;
        let sender = question.sender.mailbox().map(ToString::to_string).unwrap_or_default();
        let key = GreyKey::new(address, &sender, &address_of(&question.recipient.path));
        let now_seconds = self.options.clock.now_ms() / 1000;
        let decided = self.workers.run(move || decide(&Kept(records), &key, &policy, now_seconds)).await;
        match decided {
            Ok(GreyDecision::Pass) => None,
            Ok(GreyDecision::Defer(seconds)) => {
                self.greylisted.add(1);
                let text = format!("This server does not know you yet. Try again in {seconds} seconds");
                Some(Refusal::new(451, 7, 1, &text))
            }
            // Who cannot be looked up is no stranger for it.
            Err(error) => {
                tracing::warn!(%error, "greylisting was left out");
                None
            }
        }
    }
}

/// Where it is written down who is known, whatever that is.
struct Kept(Arc<dyn GreyStore + Send + Sync>);

impl GreyStore for Kept {
    fn get(&self, key: &GreyKey) -> Option<GreyRecord> {
        self.0.get(key)
    }

    fn keep(&self, key: &GreyKey, record: GreyRecord, until_seconds: u64) {
        self.0.keep(key, record, until_seconds);
    }
}

fn is_postmaster(path: &ForwardPath) -> bool {
    let address = address_of(path);
    let local = address.split('@').next().unwrap_or_default();
    local.eq_ignore_ascii_case(POSTMASTER)
}

fn listed_refusal(address: IpAddr, verdict: &ListVerdict) -> Refusal {
    let worst = verdict.listings.iter().max_by_key(|listing| listing.weight);
    let zone = worst.map(|listing| listing.zone.to_string()).unwrap_or_default();
    let reason = worst.and_then(|listing| listing.reason.clone()).unwrap_or_default();
    Refusal::new(550, 7, 1, format!("{address} is on the list {zone} {reason}").trim_end())
}
