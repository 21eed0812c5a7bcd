//! The thread that writes into the member's own log what was agreed on elsewhere.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use scrinium_log::{Chain, Committer, LogError, Sequence};

use super::inbox::Inbox;

/// More than the entries of one look, before which nothing further is handed out.
const MOST_WORK: usize = 256;

/// How often it is looked whether the log still takes records.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// After which pause a full disk is tried again.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(250);

/// The member's own log, with what is made of it.
pub trait LocalLog: Send + 'static {
    /// Writes records that were agreed on, syncs and applies them. `chain` is the digest of all records up to the last of these.
    ///
    /// # Errors
    /// Errors that [may pass](LogError::may_pass) have changed nothing, and the same is tried again; all others stop the member.
    fn follow(&mut self, first: Sequence, records: &[Bytes], chain: Chain) -> Result<(), LogError>;

    /// Why it takes nothing any more, if so: a member that cannot write does not lead.
    fn failure(&self) -> Option<LogError>;
}

impl LocalLog for Arc<Committer> {
    fn follow(&mut self, first: Sequence, records: &[Bytes], _: Chain) -> Result<(), LogError> {
        Committer::follow(self, first, records)
    }

    fn failure(&self) -> Option<LogError> {
        Committer::failure(self)
    }
}

/// Records to be written.
pub(super) struct Work {
    pub(super) first: Sequence,
    pub(super) records: Vec<Bytes>,
    pub(super) chain: Chain,
}

/// It ends with the sender of its work.
pub(super) fn start(inbox: Arc<Inbox>, log: impl LocalLog) -> io::Result<(SyncSender<Work>, JoinHandle<()>)> {
    let (sender, work) = sync_channel(MOST_WORK);
    let thread = std::thread::Builder::new().name("cluster-follow".to_owned());
    let thread = thread.spawn(move || follow(&inbox, log, &work))?;
    Ok((sender, thread))
}

fn follow(inbox: &Inbox, mut log: impl LocalLog, work: &Receiver<Work>) {
    loop {
        let written = match work.recv_timeout(CHECK_EVERY) {
            Ok(work) => write(inbox, &mut log, &work),
            Err(RecvTimeoutError::Timeout) => log.failure().map_or(Ok(()), Err),
            Err(RecvTimeoutError::Disconnected) => return,
        };
        if let Err(error) = written {
            tracing::error!(%error, "this member of the cluster stops: its own log takes nothing any more");
            inbox.set_trouble(Some(format!("its own log takes nothing any more: {error}")));
            inbox.end();
            return;
        }
    }
}

fn write(inbox: &Inbox, log: &mut impl LocalLog, work: &Work) -> Result<(), LogError> {
    let mut waits = false;
    while !inbox.has_ended() {
        match log.follow(work.first, &work.records, work.chain) {
            Ok(()) => {
                if waits {
                    inbox.set_trouble(None);
                }
                inbox.note_applied(work.chain.last());
                return Ok(());
            }
            Err(error) if error.may_pass() => {
                if !std::mem::replace(&mut waits, true) {
                    tracing::warn!(%error, "what the cluster has agreed on cannot be written for now, and is tried again");
                    inbox.set_trouble(Some(format!("it falls behind: {error}")));
                }
                std::thread::sleep(TRY_AGAIN_AFTER);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
