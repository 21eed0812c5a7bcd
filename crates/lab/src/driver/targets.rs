//! All servers that a run talks to, one for each ability: documents, sending mail, reading mail, calendars.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use scrinium_lab_script::{Ability, Needs};

use super::caldav::{CalendarSession, CalendarTarget};
use super::connection::Connection;
use super::endpoint::Endpoint;
use super::failure::Failure;
use super::http::{HttpDriver, HttpOptions, basic};
use super::imap::ImapSession;
use super::ledger::{FoundMessage, Ledger};
use super::letter::Letter;
use super::mail::{Account, MailOptions};
use super::pop3::Pop3Session;
use super::postgres::PostgresDriver;
use super::session::{DocumentsSession, Protocols, TargetsSession};
use super::smtp::{Dialect, SmtpSender};
use super::tls::Tls;
use super::{Driver, Filling, Person, Prepared, ServerCounts, ServerDescription, nothing_to_read};
use crate::content::{Form, Writer};
use crate::monitor::process_listening;

/// How the command line names the servers.
#[derive(Clone, Debug)]
pub struct TargetOptions {
    /// `http://..`, `postgres://..`, `smtp://..`, `lmtp://..`, `imap://..`, `pop3://..`, `caldav://..`: one of each
    /// ability.
    pub targets: Vec<String>,
    /// For `http://`; its own target is put in.
    pub http: HttpOptions,
    /// What stands behind the @ of everyone's address.
    pub domain: String,
    /// As what people log in to mail: `{user}` and `{domain}` are put in.
    pub login_name: String,
    /// A file of certificates to believe instead of the system's.
    pub authority: Option<PathBuf>,
    /// Whether all mailboxes are read after the run; if nothing is said, where mail is sent and can be read.
    pub check_deliveries: Option<bool>,
    /// Users of the run.
    pub users: usize,
    /// The most recipients that a message has.
    pub recipients: usize,
    /// How long messages may be on their way after the run.
    pub delivery_wait: Duration,
}

#[derive(Clone)]
enum Documents {
    Http(Box<HttpDriver>),
    Postgres(PostgresDriver),
    None,
}

/// The servers of a run.
#[derive(Clone)]
pub struct Targets {
    documents: Documents,
    sending: Option<(Dialect, Arc<Endpoint>)>,
    imap: Option<Arc<Endpoint>>,
    pop3: Option<Arc<Endpoint>>,
    calendars: Option<CalendarTarget>,
    mail: Arc<MailOptions>,
    http: Arc<HttpOptions>,
    ledger: Option<(Ability, Arc<Ledger>)>,
}

impl Targets {
    /// The servers that these addresses name. Nothing is sent yet.
    ///
    /// # Errors
    /// What is wrong with an address, or that two are of the same ability.
    pub fn new(options: &TargetOptions) -> Result<Self, String> {
        let mail = MailOptions {
            time_out: options.http.time_out,
            domain: options.domain.clone(),
            login_name: options.login_name.clone(),
        };
        let mut targets = Self {
            documents: Documents::None,
            sending: None,
            imap: None,
            pop3: None,
            calendars: None,
            mail: Arc::new(mail),
            http: Arc::new(options.http.clone()),
            ledger: None,
        };
        let mut tls: Option<Arc<Tls>> = None;
        let mut encryption = || match &tls {
            Some(tls) => Ok(Arc::clone(tls)),
            None => {
                let made = Arc::new(Tls::new(options.authority.as_ref())?);
                tls = Some(Arc::clone(&made));
                Ok(made)
            }
        };
        for target in &options.targets {
            targets.add(target, &options.http, &mut encryption)?;
        }
        targets.ledger = targets.whose_deliveries(options)?.map(|ability| {
            let (users, recipients) = (options.users, options.recipients);
            (ability, Arc::new(Ledger::new(rand::random(), users, recipients, options.delivery_wait)))
        });
        if let (Some((Ability::Documents, _)), Documents::Http(driver)) =
            (&targets.ledger, &mut targets.documents)
        {
            driver.remember_messages();
        }
        Ok(targets)
    }

    /// Adds the server that an address names.
    fn add(
        &mut self,
        target: &str,
        http: &HttpOptions,
        encryption: &mut dyn FnMut() -> Result<Arc<Tls>, String>,
    ) -> Result<(), String> {
        let (protocol, ability) = protocol_of(target).ok_or_else(|| {
            format!("{target} is no address of a server: it begins with http, postgres, smtp, lmtp, imap, pop3 or caldav and ://; an s (imaps://) or +starttls behind the name of a protocol of mail encrypts it")
        })?;
        let twice = match ability {
            Ability::Documents => !matches!(self.documents, Documents::None),
            Ability::SendMail => self.sending.is_some(),
            Ability::Imap => self.imap.is_some(),
            Ability::Pop3 => self.pop3.is_some(),
            Ability::Calendar => self.calendars.is_some(),
        };
        if twice {
            return Err(format!("{target}: there is a target for {} already", ability.name()));
        }
        match protocol {
            "http" => {
                let http = HttpOptions { target: target.to_owned(), ..http.clone() };
                self.documents = Documents::Http(Box::new(HttpDriver::new(http)?));
            }
            "postgres" => {
                self.documents = Documents::Postgres(PostgresDriver::new(target, http.time_out)?);
            }
            "smtp" => {
                let endpoint = Endpoint::parse(target, "smtp", (25, 465), encryption)?;
                self.sending = Some((Dialect::Smtp, Arc::new(endpoint)));
            }
            "lmtp" => {
                let endpoint = Endpoint::parse(target, "lmtp", (24, 24), encryption)?;
                self.sending = Some((Dialect::Lmtp, Arc::new(endpoint)));
            }
            "imap" => {
                self.imap = Some(Arc::new(Endpoint::parse(target, "imap", (143, 993), encryption)?));
            }
            "pop3" => {
                self.pop3 = Some(Arc::new(Endpoint::parse(target, "pop3", (110, 995), encryption)?));
            }
            _ => self.calendars = Some(CalendarTarget::parse(target)?),
        }
        Ok(())
    }

    /// The run whose messages are noted, or not one of this process's.
    pub(crate) fn note(&mut self, run: Option<u32>) {
        self.ledger = match (self.ledger.take(), run) {
            (Some((ability, ledger)), Some(run)) => Some((ability, Arc::new(ledger.of_run(run)))),
            _ => None,
        };
    }

    /// Whose deliveries are checked: those of messages sent as documents, or as mail.
    fn whose_deliveries(&self, options: &TargetOptions) -> Result<Option<Ability>, String> {
        let mail = self.sending.is_some() && (self.imap.is_some() || self.pop3.is_some());
        match options.check_deliveries {
            Some(false) => Ok(None),
            _ if mail => Ok(Some(Ability::SendMail)),
            // A store of documents that delivers in the same transaction has nothing on its way.
            Some(true) if matches!(self.documents, Documents::Http(_)) => Ok(Some(Ability::Documents)),
            Some(true) => Err("deliveries cannot be checked: name a server that reads the mailboxes, imap://HOST:PORT or pop3://HOST:PORT".to_owned()),
            None => Ok(None),
        }
    }

    /// Hosts and ports of all servers.
    #[must_use]
    pub fn hosts_and_ports(&self) -> Vec<(String, u16)> {
        let documents = match &self.documents {
            Documents::Http(driver) => Some(driver.host_and_port()),
            Documents::Postgres(driver) => Some(driver.host_and_port()),
            Documents::None => None,
        };
        let sending = self.sending.as_ref().map(|(_, endpoint)| endpoint);
        let mail = [sending, self.imap.as_ref(), self.pop3.as_ref()];
        documents
            .map(|(host, port)| (host.to_owned(), port))
            .into_iter()
            .chain(mail.into_iter().flatten().map(|endpoint| (endpoint.host.clone(), endpoint.port)))
            .chain(self.calendars.iter().map(|calendars| {
                let address = &calendars.address;
                (address.host.clone(), address.port)
            }))
            .collect()
    }

    fn account(&self, person: &str) -> Account {
        let login = self.mail.login_name.replace("{user}", person).replace("{domain}", &self.mail.domain);
        Account { login, password: self.http.user_password.clone() }
    }

    fn protocols(&self, person: &Person) -> Protocols {
        let account = || self.account(&person.name);
        let options = || Arc::clone(&self.mail);
        Protocols {
            sender: self.sending.as_ref().map(|(dialect, endpoint)| {
                SmtpSender::new(Arc::clone(endpoint), *dialect, options(), account())
            }),
            imap: self.imap(person),
            pop3: self.pop3(person),
            calendar: self.calendar(person),
        }
    }

    fn imap(&self, person: &Person) -> Option<Box<ImapSession>> {
        let endpoint = Arc::clone(self.imap.as_ref()?);
        Some(Box::new(ImapSession::new(endpoint, Arc::clone(&self.mail), self.account(&person.name))))
    }

    fn pop3(&self, person: &Person) -> Option<Box<Pop3Session>> {
        let endpoint = Arc::clone(self.pop3.as_ref()?);
        Some(Box::new(Pop3Session::new(endpoint, Arc::clone(&self.mail), self.account(&person.name))))
    }

    fn calendar(&self, person: &Person) -> Option<Box<CalendarSession>> {
        let target = self.calendars.as_ref()?;
        let account = self.account(&person.name);
        let connection = Connection::new(
            Arc::clone(&target.address),
            basic(&account.login, &account.password),
            self.http.time_out,
        );
        Some(Box::new(CalendarSession::new(target, connection, &person.name, &self.mail.domain)))
    }

    async fn describe_mail(&self) -> Result<Vec<ServerDescription>, Failure> {
        // A greeting comes before anybody has logged in.
        let name = "lab".to_owned();
        let person = Person { number: 0, full_name: name.clone(), mail_database: name.clone(), name };
        let mut found = Vec::new();
        if let Some(sender) = self.protocols(&person).sender {
            found.push(named_in(&sender.greeting().await?));
        }
        if let Some(imap) = self.imap(&person) {
            found.push(match imap.describe().await? {
                (_, Some((name, version))) => ServerDescription { name, version },
                (greeting, None) => named_in(&greeting),
            });
        }
        if let Some(pop3) = self.pop3(&person) {
            found.push(named_in(&pop3.greeting().await?));
        }
        if let Some(mut calendar) = self.calendar(&person) {
            found.push(ServerDescription { name: calendar.name_of_server().await?, version: String::new() });
        }
        Ok(found)
    }

    /// Fills the inbox up to the number of messages that it is to have.
    async fn fill_inbox(
        &self,
        person: &Person,
        senders: &[String],
        filling: Filling,
    ) -> Result<u64, Failure> {
        let Some(mut imap) = self.imap(person) else { return Ok(0) };
        imap.log_in().await?;
        let missing = filling.documents.saturating_sub(imap.select("INBOX").await?);
        let mut writer = Writer::new(person, filling.seed, rand::random());
        for index in 0..missing {
            let posted = jiff::Timestamp::now().as_second();
            let (body, attachment) = writer.sizes(&filling.size);
            let mut message = writer.write(Form::Memo, body, attachment, vec![person.name.clone()], posted);
            let sender =
                usize::try_from(index).ok().and_then(|index| senders.get(index % senders.len().max(1)));
            if let Some(sender) = sender {
                message.from.clone_from(sender);
            }
            imap.append(&Letter::of(&message, &self.mail.domain)).await?;
        }
        Ok(missing)
    }

    async fn read_imap(
        &self,
        person: &Person,
        since: &str,
        visit: &mut (dyn FnMut(FoundMessage) + Send),
    ) -> Result<(), Failure> {
        let Some(mut imap) = self.imap(person) else { return Err(nothing_to_read()) };
        imap.log_in().await?;
        imap.select("INBOX").await?;
        imap.see(since.parse().unwrap_or(0));
        for uid in imap.new_messages().await? {
            let scan = imap.peek(uid).await?;
            if let Some(found) = FoundMessage::of(&scan, &person.name) {
                visit(found);
            }
        }
        Ok(())
    }

    async fn read_pop3(
        &self,
        person: &Person,
        visit: &mut (dyn FnMut(FoundMessage) + Send),
    ) -> Result<(), Failure> {
        let Some(mut pop3) = self.pop3(person) else { return Err(nothing_to_read()) };
        pop3.log_in().await?;
        for entry in pop3.list().await? {
            let scan = pop3.read(entry).await?;
            if let Some(found) = FoundMessage::of(&scan, &person.name) {
                visit(found);
            }
        }
        pop3.quit().await
    }
}

/// Whether users stay logged in on a connection to this address, so that it is not closed where it is idle.
pub(crate) fn stay_logged_in(target: &str) -> bool {
    protocol_of(target).is_some_and(|(protocol, _)| !matches!(protocol, "http" | "caldav"))
}

/// The protocol of an address's scheme, and what it is for.
fn protocol_of(target: &str) -> Option<(&'static str, Ability)> {
    let scheme = target.split("://").next().unwrap_or_default();
    let known = [
        ("http", Ability::Documents),
        ("smtp", Ability::SendMail),
        ("lmtp", Ability::SendMail),
        ("imap", Ability::Imap),
        ("pop3", Ability::Pop3),
    ];
    match scheme {
        "postgres" | "postgresql" => return Some(("postgres", Ability::Documents)),
        "caldav" => return Some(("caldav", Ability::Calendar)),
        _ => {}
    }
    let plain = scheme.strip_suffix("+starttls").unwrap_or(scheme);
    known.into_iter().find(|(name, _)| plain.strip_suffix('s').unwrap_or(plain) == *name || plain == *name)
}

/// The product in a greeting: of `mail.example ESMTP Postfix (Debian)` it is Postfix.
fn named_in(greeting: &str) -> ServerDescription {
    const PRODUCTS: &[&str] = &[
        "Scrinium",
        "Postfix",
        "Dovecot",
        "Exim",
        "Sendmail",
        "Cyrus",
        "Stalwart",
        "Courier",
        "OpenSMTPD",
        "Domino",
        "Exchange",
    ];
    let lower = greeting.to_ascii_lowercase();
    let product = PRODUCTS.iter().find(|product| lower.contains(&product.to_ascii_lowercase()));
    let name = product.map_or_else(|| greeting.chars().take(60).collect(), |product| (*product).to_owned());
    ServerDescription { name, version: String::new() }
}

impl Driver for Targets {
    type Session = TargetsSession;

    fn session(&self, person: &Person) -> TargetsSession {
        let documents = match &self.documents {
            Documents::Http(driver) => DocumentsSession::Http(Box::new(driver.session(person))),
            Documents::Postgres(driver) => DocumentsSession::Postgres(Box::new(driver.session(person))),
            Documents::None => DocumentsSession::None,
        };
        TargetsSession { documents, ledger: self.ledger.clone(), protocols: self.protocols(person) }
    }

    fn has(&self, ability: Ability) -> bool {
        match ability {
            Ability::Documents => !matches!(self.documents, Documents::None),
            Ability::SendMail => self.sending.is_some(),
            Ability::Imap => self.imap.is_some(),
            Ability::Pop3 => self.pop3.is_some(),
            Ability::Calendar => self.calendars.is_some(),
        }
    }

    fn ledger(&self) -> Option<(Ability, Arc<Ledger>)> {
        self.ledger.clone()
    }

    fn processes(&self) -> Vec<u32> {
        let ports = self.hosts_and_ports();
        let mut found: Vec<u32> =
            ports.iter().filter_map(|(host, port)| process_listening(host, *port)).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    async fn describe(&self) -> Result<ServerDescription, Failure> {
        let documents = match &self.documents {
            Documents::Http(driver) => Some(driver.describe().await?),
            Documents::Postgres(driver) => Some(driver.describe().await?),
            Documents::None => None,
        };
        let mut all: Vec<ServerDescription> = documents.into_iter().collect();
        for found in self.describe_mail().await? {
            if all.iter().all(|known| known.name != found.name) {
                all.push(found);
            }
        }
        let join = |of: fn(&ServerDescription) -> &str| {
            let words: Vec<&str> = all.iter().map(of).filter(|word| !word.is_empty()).collect();
            words.join(" + ")
        };
        Ok(ServerDescription { name: join(|one| &one.name), version: join(|one| &one.version) })
    }

    async fn prepare_server(&self) -> Result<(), Failure> {
        match &self.documents {
            Documents::Http(driver) => driver.prepare_server().await,
            Documents::Postgres(driver) => driver.prepare_server().await,
            Documents::None => Ok(()),
        }
    }

    async fn prepare_user(
        &self,
        person: &Person,
        senders: &[String],
        filling: Filling,
    ) -> Result<Prepared, Failure> {
        let mut prepared = match &self.documents {
            Documents::Http(driver) => driver.prepare_user(person, senders, filling.clone()).await?,
            Documents::Postgres(driver) => driver.prepare_user(person, senders, filling.clone()).await?,
            Documents::None => Prepared::default(),
        };
        prepared.documents_added += self.fill_inbox(person, senders, filling).await?;
        if let Some(mut calendar) = self.calendar(person) {
            prepared.created |= calendar.prepare().await?;
        }
        Ok(prepared)
    }

    async fn prepare_surroundings(&self, needs: &Needs, people: &[Person]) -> Result<(), Failure> {
        match &self.documents {
            Documents::Http(driver) => driver.prepare_surroundings(needs, people).await,
            Documents::Postgres(driver) => driver.prepare_surroundings(needs, people).await,
            Documents::None => Ok(()),
        }
    }

    async fn prepare_mail_surroundings(&self, needs: &Needs, person: &Person) -> Result<(), Failure> {
        match &self.documents {
            Documents::Http(driver) => driver.prepare_mail_surroundings(needs, person).await,
            Documents::Postgres(driver) => driver.prepare_mail_surroundings(needs, person).await,
            Documents::None => Ok(()),
        }
    }

    async fn counts(&self) -> Option<ServerCounts> {
        match &self.documents {
            Documents::Http(driver) => driver.counts().await,
            Documents::Postgres(_) | Documents::None => None,
        }
    }

    async fn mark_mailbox(&self, person: &Person) -> Result<String, Failure> {
        if let Some(mut imap) = self.imap(person) {
            imap.log_in().await?;
            imap.select("INBOX").await?;
            return Ok(imap.last_seen().to_string());
        }
        match &self.documents {
            // POP3 has no numbers that last: all messages are looked at.
            _ if self.pop3.is_some() => Ok(String::new()),
            Documents::Http(driver) => driver.mark_mailbox(person).await,
            Documents::Postgres(_) | Documents::None => Err(nothing_to_read()),
        }
    }

    async fn read_mailbox(
        &self,
        person: &Person,
        since: &str,
        visit: &mut (dyn FnMut(FoundMessage) + Send),
    ) -> Result<(), Failure> {
        if self.imap.is_some() {
            return self.read_imap(person, since, visit).await;
        }
        match &self.documents {
            _ if self.pop3.is_some() => self.read_pop3(person, visit).await,
            Documents::Http(driver) => driver.read_mailbox(person, since, visit).await,
            Documents::Postgres(_) | Documents::None => Err(nothing_to_read()),
        }
    }
}
