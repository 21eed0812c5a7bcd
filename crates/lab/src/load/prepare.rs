//! Makes and fills what the users need, before the run.

use std::sync::Arc;
use std::time::Duration;

use scrinium_lab_script::Needs;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::crew::Plan;
use crate::driver::{Driver, Failure, Filling, Person, Prepared};
use crate::error::LabError;
use crate::progress::Progress;

/// At most this many users are prepared at a time.
const AT_A_TIME: usize = 8;

/// A user whom the server is too busy to prepare is tried again so often, first after [`BUSY_WAIT`], then after twice as
/// long each time: half a minute in all.
const BUSY_RETRIES: u32 = 5;
const BUSY_WAIT: Duration = Duration::from_secs(1);

/// What the preparation did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Preparation {
    pub databases_created: u64,
    pub documents_added: u64,
}

/// Registers all users, and makes and fills their mail databases. What is there already is left alone.
pub(super) async fn prepare<D: Driver>(
    driver: &Arc<D>,
    plan: &Plan,
    people: &[Person],
    progress: &Progress,
) -> Result<Preparation, LabError> {
    driver
        .prepare_server()
        .await
        .map_err(|failure| LabError::Prepare { what: "directory and mail box".to_owned(), failure })?;
    let filling = Filling {
        documents: plan.number("NumMailNotesPerUser", 0),
        size: plan.normal_message_size(),
        seed: plan.seed,
    };
    let needs = Arc::new(Needs::of(&plan.script));
    let senders: Arc<[String]> = people.iter().map(|person| person.name.clone()).collect();
    let places = Arc::new(Semaphore::new(AT_A_TIME));
    let mut tasks: JoinSet<Result<Prepared, LabError>> = JoinSet::new();
    let mut done = Preparation::default();
    progress.begin("prepare", people.len() as u64);
    for person in people {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { break };
        let (driver, senders, person) = (Arc::clone(driver), Arc::clone(&senders), person.clone());
        let (filling, needs) = (filling.clone(), Arc::clone(&needs));
        tasks.spawn(async move {
            let prepared = prepare_user(&*driver, &person, &senders, &filling, &needs).await;
            drop(place);
            prepared.map_err(|failure| LabError::Prepare { what: person.name, failure })
        });
        while let Some(finished) = tasks.try_join_next() {
            add(&mut done, finished, progress)?;
        }
    }
    while let Some(finished) = tasks.join_next().await {
        add(&mut done, finished, progress)?;
    }
    driver
        .prepare_surroundings(&needs, people)
        .await
        .map_err(|failure| LabError::Prepare { what: "what the script needs".to_owned(), failure })?;
    progress.end();
    Ok(done)
}

/// Registers a user, with the mail database and what the script needs in it. A server that is busy says that it is to be
/// asked again (RFC 6585 §4, RFC 9110 §15.6.4); what it did before is found and not done twice.
async fn prepare_user<D: Driver>(
    driver: &D,
    person: &Person,
    senders: &[String],
    filling: &Filling,
    needs: &Needs,
) -> Result<Prepared, Failure> {
    let mut done = Prepared::default();
    let mut retries = 0;
    loop {
        let prepared = async {
            let prepared = driver.prepare_user(person, senders, filling.clone()).await?;
            done.created |= prepared.created;
            done.documents_added += prepared.documents_added;
            driver.prepare_mail_surroundings(needs, person).await
        };
        match prepared.await {
            Err(failure) if failure.kind.is_busy() && retries < BUSY_RETRIES => {
                tokio::time::sleep(BUSY_WAIT * 2_u32.pow(retries)).await;
                retries += 1;
            }
            outcome => return outcome.map(|()| done),
        }
    }
}

fn add(
    done: &mut Preparation,
    finished: Result<Result<Prepared, LabError>, tokio::task::JoinError>,
    progress: &Progress,
) -> Result<(), LabError> {
    let prepared =
        finished.map_err(|error| LabError::Usage(format!("preparing was interrupted: {error}")))??;
    done.databases_created += u64::from(prepared.created);
    done.documents_added += prepared.documents_added;
    progress.step();
    Ok(())
}
