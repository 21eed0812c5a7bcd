//! Makes and fills what the users need, before the run.

use std::sync::Arc;

use scrinium_lab_script::Needs;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::crew::Plan;
use crate::driver::{Driver, Filling, Person, Prepared};
use crate::error::LabError;
use crate::progress::Progress;

/// At most this many users are prepared at a time.
const AT_A_TIME: usize = 8;

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
            let prepared = async {
                let prepared = driver.prepare_user(&person, &senders, filling).await?;
                driver.prepare_mail_surroundings(&needs, &person).await?;
                Ok(prepared)
            };
            let prepared = prepared.await;
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
