//! After a run: are all messages where they belong?

use std::sync::Arc;
use std::time::{Duration, Instant};

use scrinium_lab_report::run::Deliveries;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::driver::{Driver, Failure, Ledger, Person};
use crate::progress::Progress;

/// At most this many mailboxes are read at a time.
const AT_A_TIME: usize = 8;

/// Messages that are on their way are looked for again after so long at first.
const FIRST_WAIT: Duration = Duration::from_secs(1);

/// Where each mailbox ends before the run, so that only what came since is read.
pub(super) async fn mark<D: Driver>(driver: &Arc<D>, people: &[Person]) -> Result<Arc<[String]>, Failure> {
    let places = Arc::new(Semaphore::new(AT_A_TIME));
    let mut tasks = JoinSet::new();
    for (index, person) in people.iter().enumerate() {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { break };
        let (driver, person) = (Arc::clone(driver), person.clone());
        tasks.spawn(async move {
            let mark = driver.mark_mailbox(&person).await;
            drop(place);
            (index, mark)
        });
    }
    let mut marks = vec![String::new(); people.len()];
    while let Some(marked) = tasks.join_next().await {
        let Ok((index, mark)) = marked else { continue };
        if let Some(slot) = marks.get_mut(index) {
            *slot = mark?;
        }
    }
    Ok(marks.into())
}

/// Reads all mailboxes, and again while messages are missing that may still be on their way.
pub(super) async fn check<D: Driver>(
    driver: &Arc<D>,
    ledger: &Arc<Ledger>,
    people: &[Person],
    marks: &Arc<[String]>,
    progress: &Progress,
) -> Deliveries {
    let began = Instant::now();
    let mut wait = FIRST_WAIT;
    loop {
        ledger.begin_reading();
        progress.begin("deliveries", people.len() as u64);
        read_all(driver, ledger, people, marks, progress).await;
        progress.end();
        let deliveries = ledger.deliveries();
        if deliveries.missing == 0 || began.elapsed() + wait > ledger.wait() {
            return deliveries;
        }
        progress.say(&format!(
            "{} of {} deliveries are still on their way; looking again in {} s",
            deliveries.missing,
            deliveries.promised,
            wait.as_secs()
        ));
        tokio::time::sleep(wait).await;
        wait *= 2;
    }
}

async fn read_all<D: Driver>(
    driver: &Arc<D>,
    ledger: &Arc<Ledger>,
    people: &[Person],
    marks: &Arc<[String]>,
    progress: &Progress,
) {
    let places = Arc::new(Semaphore::new(AT_A_TIME));
    let mut tasks: JoinSet<()> = JoinSet::new();
    for (index, person) in people.iter().enumerate() {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { break };
        let (driver, ledger, marks) = (Arc::clone(driver), Arc::clone(ledger), Arc::clone(marks));
        let person = person.clone();
        tasks.spawn(async move {
            let since = marks.get(index).map_or("", String::as_str);
            let mut visit = |found| ledger.found(&found, &person.name);
            if let Err(failure) = driver.read_mailbox(&person, since, &mut visit).await {
                ledger.unread(&person.name, &failure);
            }
            drop(place);
        });
        while tasks.try_join_next().is_some() {
            progress.step();
        }
    }
    while tasks.join_next().await.is_some() {
        progress.step();
    }
}
