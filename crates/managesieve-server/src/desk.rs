//! What is done for somebody who has logged in, and what is said.

use std::sync::Arc;

use scrinium_accounting::{Account, Holder, Resource};
use scrinium_credentials::Protocol;
use scrinium_credentials::sasl::SaslMechanism;
use scrinium_directory::{Login, LoginError, Person, SaslError};
use scrinium_mail::{ScriptBook, ScriptsError, script_limits};
use scrinium_managesieve_wire::{
    Capability, Command, ListedScript, Mechanism, ResponseCode, ScriptName, Status, write_text,
};
use scrinium_port::Link;
use scrinium_sieve::{Extension, NOTIFY_METHODS, Script};

use crate::protocol::ManageSieveOptions;

/// Answers commands, each in the account of the one who asks.
pub(crate) struct Desk {
    pub(crate) shared: Arc<ManageSieveOptions>,
    pub(crate) link: Arc<Link>,
    pub(crate) login: Option<Login>,
}

impl Desk {
    /// The account of who has logged in, or of the network.
    pub(crate) fn account(&self) -> Account {
        let accounts = &self.shared.accounts;
        let holder = match &self.login {
            Some(login) => login.person.holder(),
            None => Holder::Network(accounts.network(self.link.peer.address)),
        };
        self.link.account(&holder, accounts)
    }

    /// What is sent before the status, and the status.
    pub(crate) async fn answer(self, command: Command) -> (Vec<u8>, Status) {
        let logins = &self.shared.logins;
        let person = self.login.as_ref().and_then(|login| logins.still_in(login, Protocol::ManageSieve));
        let Some(person) = person else {
            return (Vec::new(), Status::bye(None, "Your log-in does not hold any more; log in again."));
        };
        let account = self.account();
        let Ok(request) = account.claim(Resource::Requests, 1) else {
            return (Vec::new(), busy());
        };
        let thread = account.thread().await;
        let book = self.shared.scripts.clone();
        let work = move || {
            let (_thread, _request) = (thread, request);
            let mut data = Vec::new();
            let status = match carry_out(&book, &person, command, &mut data) {
                Ok(status) => status,
                Err(error) => {
                    data.clear();
                    status_of(&error)
                }
            };
            (data, status)
        };
        self.shared.workers.run(work).await.unwrap_or_else(|_| (Vec::new(), busy()))
    }
}

fn busy() -> Status {
    Status::no(Some(ResponseCode::TryLater), "The server is busy; try again in a moment.")
}

fn carry_out(
    book: &ScriptBook,
    person: &Person,
    command: Command,
    data: &mut Vec<u8>,
) -> Result<Status, ScriptsError> {
    match command {
        Command::HaveSpace(name, bytes) => book.has_room(person, name.as_str(), bytes.into())?,
        Command::PutScript(name, text) => match std::str::from_utf8(&text) {
            Ok(text) => book.put(person, name.as_str(), text)?,
            Err(_) => return Ok(no_text()),
        },
        Command::CheckScript(text) => {
            Script::compile(&text, &script_limits())?;
        }
        Command::ListScripts => {
            let kept = book.kept(person)?;
            for name in kept.scripts.keys() {
                // One that was written into the document may have a name that cannot be said here.
                let Some(listed) = ScriptName::new(name) else { continue };
                ListedScript { name: listed, is_active: *name == kept.active }.write(data);
            }
        }
        Command::GetScript(name) => {
            let kept = book.kept(person)?;
            let text = kept.scripts.get(name.as_str()).ok_or(ScriptsError::Missing)?;
            write_text(text.as_bytes(), data);
        }
        Command::SetActive(name) => {
            book.set_active(person, name.as_ref().map_or("", ScriptName::as_str))?;
        }
        Command::DeleteScript(name) => book.delete(person, name.as_str())?,
        Command::RenameScript(from, to) => book.rename(person, from.as_str(), to.as_str())?,
        // The connection itself answers these.
        Command::Authenticate(..)
        | Command::StartTls
        | Command::Logout
        | Command::Capability
        | Command::Noop(_)
        | Command::Unauthenticate => return Ok(Status::no(None, "This cannot be done here.")),
    }
    Ok(Status::ok("Done."))
}

fn no_text() -> Status {
    Status::no(None, "The script is not UTF-8.")
}

/// What a client hears (RFC 5804 §1.3).
fn status_of(error: &ScriptsError) -> Status {
    let code = match error {
        ScriptsError::Missing => Some(ResponseCode::NonExistent),
        ScriptsError::Exists => Some(ResponseCode::AlreadyExists),
        ScriptsError::Active => Some(ResponseCode::Active),
        ScriptsError::TooMany => Some(ResponseCode::QuotaMaxScripts),
        ScriptsError::TooLarge => Some(ResponseCode::QuotaMaxSize),
        ScriptsError::Script(_) | ScriptsError::Name => None,
        ScriptsError::Database(error) => {
            tracing::warn!(%error, "scripts cannot be read or written");
            return Status::no(Some(ResponseCode::TryLater), "The scripts cannot be read or written now.");
        }
    };
    Status::no(code, &format!("{error}."))
}

/// What a client hears of a log-in that let nobody in.
pub(crate) fn refused(error: &SaslError, is_last: bool) -> Status {
    let text = match error {
        SaslError::Exchange(_) => "The exchange does not follow its mechanism.",
        SaslError::Login(LoginError::Denied(denial, protocol)) => denial.text(*protocol),
        SaslError::Login(LoginError::Locked { .. }) => "There were too many attempts. Try again later.",
        SaslError::Login(LoginError::Busy { .. }) => {
            "Too many log-ins are being checked; try again in a moment."
        }
        // No second step can be asked for here.
        SaslError::Login(LoginError::Refused | LoginError::SecondStep(_)) => {
            "The name or the password is not right. An account with two-step sign-in needs an app password here."
        }
    };
    if is_last { Status::bye(None, text) } else { Status::no(None, text) }
}

/// RFC 5804 §1.7
pub(crate) fn capabilities(
    version: &str,
    mechanisms: &[SaslMechanism],
    (is_protected, login): (bool, Option<&Login>),
) -> Vec<u8> {
    let limits = script_limits();
    let offered = Extension::all().into_iter().filter(|extension| !limits.hidden.contains(extension));
    let names = mechanisms.iter().filter_map(|mechanism| Mechanism::parse(mechanism.name().as_bytes()).ok());
    let mut all = vec![
        Capability::Implementation(format!("Scrinium {version}")),
        Capability::Version("1.0".to_owned()),
        Capability::Sasl(names.collect()),
        Capability::Sieve(offered.map(|extension| extension.name().to_owned()).collect()),
        Capability::Notify(NOTIFY_METHODS.iter().map(|method| (*method).to_owned()).collect()),
        Capability::MaxRedirects(u32::try_from(limits.redirects).unwrap_or(u32::MAX)),
        Capability::Unauthenticate,
    ];
    if !is_protected {
        all.push(Capability::StartTls);
    }
    if let Some(login) = login {
        all.push(Capability::Owner(login.person.short_name.clone()));
    }
    let mut out = Vec::new();
    all.iter().for_each(|capability| capability.write(&mut out));
    out
}
