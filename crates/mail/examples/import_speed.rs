//! How many messages a second an import stores, durably: `import_speed MAIL [STORE_FOLDER]`, where MAIL is an
//! mbox, a Maildir or a folder of messages. To measure one core: `taskset -c 0 import_speed MAIL`.

use std::path::Path;
use std::time::Instant;

use scrinium_database::{DatabaseOptions, Databases};
use scrinium_mail::import::{ImportOptions, Importer, MailDatabase};
use scrinium_statistics::Registry;
use scrinium_store::{Store, StoreOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mail = Path::new(arguments.first().ok_or("usage: import_speed MAIL [STORE_FOLDER]")?);
    let temporary = tempfile::tempdir()?;
    let folder = arguments.get(1).map_or_else(|| temporary.path(), Path::new);
    let statistics = Registry::new();
    let store = Store::open(StoreOptions::new(folder), &statistics)?;
    let databases = Databases::open(&store, DatabaseOptions::default())?;
    let database = databases.create("mail/ada")?;
    let target = MailDatabase::new(database, mail);
    let started = Instant::now();
    let report = Importer::new(&target, ImportOptions::for_person("ada"))
        .run(mail, |progress| eprintln!("{} messages, {:.0}/s", progress.messages, progress.rate()))?;
    let seconds = started.elapsed().as_secs_f64();
    #[allow(clippy::cast_precision_loss, reason = "a rate needs few digits")]
    let rate = report.messages as f64 / seconds;
    println!("{} messages in {seconds:.2} s, {rate:.0}/s; {report:?}", report.messages);
    drop((target, databases));
    store.close()?;
    Ok(())
}
