//! Where mail arrives: people's mail files by HTTP, or the mailboxes of a peer by IMAP.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::domain;
use crate::content::Person;
use crate::driver::{Client, Failure, FoundMessage, ImapSession, Ledger, Scan, path_part};

/// Requests while nothing is measured.
const ANSWERED_WITHIN: Duration = Duration::from_secs(120);

/// At most this many mailboxes are read at a time.
const AT_A_TIME: usize = 4;

/// Rows of a mail file are read this number at once.
const ROWS: usize = 1000;

/// The name of a message's source among the attachments of its document.
const SOURCE: &str = "message.eml";

/// How mailboxes are read.
#[derive(Clone, Debug)]
pub(in crate::experiment) enum Mailboxes {
    /// A server of ours, and the account of its administrator.
    Http { url: String, account: (String, String) },
    /// A port, and everybody's password.
    Imap { port: u16, password: String },
}

impl Mailboxes {
    fn client(url: &str, account: &(String, String)) -> Result<Client, Failure> {
        let account = Some((account.0.as_str(), account.1.as_str()));
        Client::new(url, account, ANSWERED_WITHIN).map_err(Failure::wrong)
    }

    /// Enters people into the directory, if there is one; who is there already stays. Only who logs in needs a password, which costs
    /// the server time.
    pub(in crate::experiment) async fn enter(
        &self,
        people: &[Person],
        server: usize,
        password: Option<&str>,
    ) -> Result<(), Failure> {
        let Self::Http { url, account } = self else { return Ok(()) };
        let domain = domain(server);
        let documents: Vec<Value> = people
            .iter()
            .map(|person| {
                let Person { name, full_name, .. } = person;
                let mut document = json!({"_id": format!("person:{name}"), "Form": "Person", "ShortName": name,
                    "FullName": [full_name], "InternetAddress": format!("{name}@{domain}"),
                    "MailFile": person.mail_database});
                if let (Some(password), Some(fields)) = (password, document.as_object_mut()) {
                    fields.insert("password".to_owned(), json!(password));
                }
                document
            })
            .collect();
        let body = json!({"docs": documents});
        let mut client = Self::client(url, account)?;
        client.ask(http::Method::POST, "/directory/_bulk_docs", Some(&body), &[200, 201, 202]).await?;
        Ok(())
    }

    /// How many documents all mail files hold; `None` where that is not known without reading them.
    pub(in crate::experiment) async fn count(&self, people: &[Person]) -> Result<Option<u64>, Failure> {
        let Self::Http { url, account } = self else { return Ok(None) };
        let mut client = Self::client(url, account)?;
        let mut sum = 0;
        for person in people {
            let found = client.find(&format!("/{}", path_part(&person.mail_database))).await?;
            sum += found.and_then(|found| found.get("doc_count")?.as_u64()).unwrap_or(0);
        }
        Ok(Some(sum))
    }

    /// Reads all messages that lie there, and notes them.
    pub(in crate::experiment) async fn read(
        &self,
        people: &[Person],
        ledger: &Arc<Ledger>,
    ) -> Result<(), Failure> {
        let places = Arc::new(Semaphore::new(AT_A_TIME));
        let mut tasks = JoinSet::new();
        for person in people {
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { break };
            let (mailboxes, person, ledger) = (self.clone(), person.clone(), Arc::clone(ledger));
            tasks.spawn(async move {
                let read = match &mailboxes {
                    Self::Http { url, account } => {
                        read_documents(Self::client(url, account)?, &person, &ledger).await
                    }
                    Self::Imap { port, password } => read_imap(*port, password, &person, &ledger).await,
                };
                drop(place);
                read
            });
        }
        while let Some(read) = tasks.join_next().await {
            read.map_err(|error| Failure::wrong(error.to_string()))??;
        }
        Ok(())
    }
}

async fn read_documents(mut client: Client, person: &Person, ledger: &Ledger) -> Result<(), Failure> {
    let database = path_part(&person.mail_database);
    let mut after: Option<String> = None;
    loop {
        let from =
            after.as_ref().map(|id| format!("&skip=1&start_key={}", path_part(&json!(id).to_string())));
        let path = format!("/{database}/_all_docs?limit={ROWS}{}", from.unwrap_or_default());
        let Some(page) = client.find(&path).await? else { return Ok(()) };
        let rows = page.get("rows").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let ids: Vec<&str> = rows.iter().filter_map(|row| row.get("id")?.as_str()).collect();
        for id in ids.iter().filter(|id| !id.starts_with('_')) {
            let source = client.bytes(&format!("/{database}/{}/{SOURCE}", path_part(id))).await?;
            let mut scan = Scan::new();
            scan.feed(&source);
            scan.finish();
            note(&scan, person, ledger);
        }
        match ids.last() {
            Some(last) if ids.len() >= ROWS => after = Some((*last).to_owned()),
            _ => return Ok(()),
        }
    }
}

async fn read_imap(port: u16, password: &str, person: &Person, ledger: &Ledger) -> Result<(), Failure> {
    let mut imap =
        ImapSession::to_port(port, (&person.name, password), ANSWERED_WITHIN).map_err(Failure::wrong)?;
    imap.log_in().await?;
    imap.select("INBOX").await?;
    imap.see(0);
    for uid in imap.new_messages().await? {
        note(&imap.fetch(uid).await?, person, ledger);
    }
    imap.log_out().await
}

fn note(scan: &Scan, person: &Person, ledger: &Ledger) {
    if let Some(found) = FoundMessage::of(scan, &person.name) {
        ledger.found(&found, &person.name);
    }
}
