//! How many memos a second the router delivers: `router_speed [MEMOS]`. Memos of 10 KB to 3 of 200 people each,
//! deposited by 16 writers while the router runs, as in the R5Mail workload.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use scrinium_catalog::Databases;
use scrinium_database::{Access, DatabaseOptions, Edit, EditMode};
use scrinium_directory::{DIRECTORY_DATABASE, Directory};
use scrinium_mail::{Mailboxes, Resolver, Router, RouterOptions};
use scrinium_statistics::Registry;
use scrinium_store::{Store, StoreOptions};
use serde_json::{Value, json};

/// Tests and measurements may do everything.
static SERVER: Access = Access::of_the_server("a measurement");

const PEOPLE: usize = 200;
const WRITERS: usize = 16;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let memos: usize = std::env::args().nth(1).map_or(Ok(20_000), |text| text.parse())?;
    let folder = tempfile::tempdir()?;
    let statistics = Registry::new();
    let store = Store::open(StoreOptions::new(folder.path()), &statistics)?;
    let databases = Databases::open(&store, DatabaseOptions::default())?;
    let directory = Arc::new(Directory::open(&databases)?);
    let people = (0..PEOPLE).map(|number| {
        let person = json!({"_id": format!("person:p{number}"), "Form": "Person", "ShortName": format!("p{number}"),
            "FullName": [format!("Person {number}")], "MailFile": format!("mail/p{number}")});
        Edit { json: person.to_string().into(), ..Edit::default() }
    });
    databases.get(DIRECTORY_DATABASE)?.update(people.collect(), EditMode::Interactive, &SERVER)?.wait()?;
    for number in 0..PEOPLE {
        databases.create(&format!("mail/p{number}"), &scrinium_database::InitialAccess::Everybody)?;
    }
    let mailboxes = Mailboxes::open(&databases, 4, &statistics)?;
    let resolver = Resolver::new(directory, &[]);
    let router = Router::open(&databases, &mailboxes, resolver, RouterOptions::default(), &statistics)?;
    let handle = router.start();
    let started = Instant::now();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..WRITERS {
            scope.spawn(|| deposit_some(&mailboxes, &next, memos));
        }
    });
    let deposited = started.elapsed();
    let routed = statistics.counter("Mail.Routed");
    while routed.value() < memos as u64 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let seconds = started.elapsed().as_secs_f64();
    handle.stop().await;
    let snapshot = statistics.snapshot();
    #[allow(clippy::cast_precision_loss, reason = "a rate needs few digits")]
    let rates = (memos as f64 / deposited.as_secs_f64(), memos as f64 / seconds);
    println!("{memos} memos: deposited {:.0}/s, routed {:.0}/s (3 deliveries each)", rates.0, rates.1);
    for name in ["MAIL_DEPOSIT", "MAIL_DELIVER"] {
        println!("{name}: {:?}", snapshot.operations.get(name));
    }
    for name in ["Mail.AverageDeliverTime", "Log.GroupSize.Average"] {
        println!("{name}: {:?}", snapshot.gauges.get(name));
    }
    drop((mailboxes, databases));
    store.close()?;
    Ok(())
}

fn deposit_some(mailboxes: &Mailboxes, next: &AtomicUsize, memos: usize) {
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= memos {
            return;
        }
        let names: Vec<String> =
            [1, 7, 31].iter().map(|step| format!("p{}", number * step % PEOPLE)).collect();
        let body: String =
            (0..1_300_usize).map(|word| format!("{:06x} ", word * number % 9_999_991)).collect();
        let memo = json!({"Form": "Memo", "From": "p0", "SendTo": names, "Subject": format!("memo {number}"), "Body": body});
        let Value::Object(memo) = memo else { return };
        if let Err(error) = mailboxes.deposit(memo, Vec::new()) {
            eprintln!("memo {number}: {error}");
        }
    }
}
