//! One order: an account, proofs for each name, the certificate.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use instant_acme::{
    Account, AccountCredentials, AuthorizationStatus, ChallengeType, Identifier, KeyAuthorization,
    NewAccount, NewOrder, OrderStatus, RetryPolicy,
};
use rcgen::{CertificateParams, CustomExtension, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use scrinium_http::AcmeAnswers;
use tokio::process::Command;

use crate::files;
use crate::tls::{CertificateKeeper, TlsError};

/// How long an authority may take to look.
const PATIENCE: RetryPolicy =
    RetryPolicy::new().initial_delay(Duration::from_millis(500)).timeout(Duration::from_secs(180));

/// How long the hook for DNS may take.
const HOOK_TIMEOUT: Duration = Duration::from_secs(120);

/// An account's file is no longer.
const ACCOUNT_BYTES_MAX: u64 = 64 << 10;

const BAD_NONCE: &str = "urn:ietf:params:acme:error:badNonce";

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OrderError {
    #[error("the authority says: {0}")]
    Authority(#[from] instant_acme::Error),
    #[error("the authority offers no {0}")]
    NotOffered(&'static str),
    #[error(
        "the authority did not find the proof, and must be able to reach this server by each name: {why}"
    )]
    NotProven { why: String },
    #[error("it took too long")]
    Time,
    #[error("the hook {} {what}", hook.display())]
    Hook { hook: PathBuf, what: String },
    #[error("a proof cannot be made: {0}")]
    Proof(#[from] rcgen::Error),
    #[error("files of acme cannot be read or written: {0}")]
    Files(io::Error),
    #[error(transparent)]
    Certificate(TlsError),
}

impl OrderError {
    /// Whether the authority refused a nonce that it had given, or that was used before (RFC 8555 §6.5).
    pub(crate) fn is_bad_nonce(&self) -> bool {
        matches!(self, Self::Authority(instant_acme::Error::Api(problem)) if problem.r#type.as_deref() == Some(BAD_NONCE))
    }
}

/// How it is shown who has a name.
pub(crate) enum Way {
    /// At the encrypted port 443 (RFC 8737).
    Tls(Arc<CertificateKeeper>),
    /// At port 80 (RFC 8555 §8.3).
    Http(AcmeAnswers),
    /// In DNS, by a program that writes there (§8.4).
    Dns { hook: PathBuf, wait: Duration },
}

impl Way {
    fn kind(&self) -> (ChallengeType, &'static str) {
        match self {
            Self::Tls(_) => (ChallengeType::TlsAlpn01, "tls-alpn-01"),
            Self::Http(_) => (ChallengeType::Http01, "http-01"),
            Self::Dns { .. } => (ChallengeType::Dns01, "dns-01"),
        }
    }

    async fn show(&self, name: &str, token: &str, proof: &KeyAuthorization) -> Result<(), OrderError> {
        match self {
            Self::Tls(keeper) => {
                // RFC 8737 §3: a certificate for this name alone, with the proof in it.
                let key = KeyPair::generate()?;
                let mut parameters = CertificateParams::new(vec![name.to_owned()])?;
                let extension = CustomExtension::new_acme_identifier(proof.digest().as_ref());
                parameters.custom_extensions = vec![extension];
                let certificate = parameters.self_signed(&key)?;
                let private = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
                keeper.answer(name, certificate.der().clone(), &private).map_err(OrderError::Certificate)
            }
            Self::Http(answers) => {
                answers.show(token, proof.as_str());
                Ok(())
            }
            Self::Dns { hook, .. } => run(hook, "set", name, &proof.dns_value()).await,
        }
    }

    /// Takes away what was shown.
    pub(crate) async fn hide(&self, shown: &[(String, String)]) {
        match self {
            Self::Tls(keeper) => keeper.forget_answers(),
            Self::Http(answers) => answers.forget(),
            Self::Dns { hook, .. } => {
                for (name, value) in shown {
                    if let Err(error) = run(hook, "clear", name, value).await {
                        tracing::warn!(%error, name, "a proof may still be in DNS");
                    }
                }
            }
        }
    }
}

/// `HOOK set NAME VALUE`: NAME should have a TXT record with VALUE; and `HOOK clear NAME VALUE`.
async fn run(hook: &Path, what: &str, name: &str, value: &str) -> Result<(), OrderError> {
    let failed = |what: String| OrderError::Hook { hook: hook.to_owned(), what };
    let record = format!("_acme-challenge.{name}");
    let mut command = Command::new(hook);
    command.args([what, &record, value]).stdin(Stdio::null()).stdout(Stdio::null()).kill_on_drop(true);
    let ended = tokio::time::timeout(HOOK_TIMEOUT, command.status()).await;
    match ended {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(status)) => Err(failed(format!("ended with {status}"))),
        Ok(Err(error)) => Err(failed(format!("cannot be run: {error}"))),
        Err(_) => Err(failed("took too long".to_owned())),
    }
}

/// What is ordered.
pub(crate) struct Order<'o> {
    pub(crate) directory: &'o str,
    pub(crate) names: &'o [String],
    pub(crate) contact: Option<&'o str>,
    /// Authorities to trust in place of the system's, for the connection to the directory.
    pub(crate) ca_file: Option<&'o Path>,
    pub(crate) account: PathBuf,
    pub(crate) way: &'o Way,
}

/// What an authority gave, both PEM.
pub(crate) struct Issued {
    /// The certificate with those that lead to its issuer.
    pub(crate) chain: String,
    pub(crate) key: String,
}

impl Order<'_> {
    /// Orders, and notes what is `shown` meanwhile and is to be hidden after that, whatever became of it.
    pub(crate) async fn place(&self, shown: &mut Vec<(String, String)>) -> Result<Issued, OrderError> {
        let account = self.account().await?;
        let names: Vec<Identifier> = self.names.iter().cloned().map(Identifier::Dns).collect();
        let mut order = match account.new_order(&NewOrder::new(&names)).await {
            Err(error) => return Err(self.after_refusal(error).await),
            Ok(order) => order,
        };
        self.prove(&mut order, shown).await?;
        if order.poll_ready(&PATIENCE).await? != OrderStatus::Ready {
            return Err(OrderError::NotProven { why: reason(&mut order).await });
        }
        let key = order.finalize().await?;
        Ok(Issued { chain: order.poll_certificate(&PATIENCE).await?, key })
    }

    /// Shows a proof for each name, and then says so.
    async fn prove(
        &self,
        order: &mut instant_acme::Order,
        shown: &mut Vec<(String, String)>,
    ) -> Result<(), OrderError> {
        let (kind, called) = self.way.kind();
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = authorization?;
            if authorization.status == AuthorizationStatus::Valid {
                continue;
            }
            let challenge = authorization.challenge(kind.clone()).ok_or(OrderError::NotOffered(called))?;
            let name = challenge.identifier().to_string();
            // A wildcard is proven by its domain (RFC 8555 §7.1.3).
            let name = name.strip_prefix("*.").unwrap_or(&name).to_owned();
            let proof = challenge.key_authorization();
            shown.push((name.clone(), proof.dns_value()));
            self.way.show(&name, &challenge.token, &proof).await?;
        }
        if let (Way::Dns { wait, .. }, false) = (self.way, shown.is_empty()) {
            tokio::time::sleep(*wait).await;
        }
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = authorization?;
            if authorization.status == AuthorizationStatus::Valid {
                continue;
            }
            let challenge = authorization.challenge(kind.clone());
            challenge.ok_or(OrderError::NotOffered(called))?.set_ready().await?;
        }
        Ok(())
    }

    /// An authority that has forgotten the account gets another one with the next order.
    async fn after_refusal(&self, error: instant_acme::Error) -> OrderError {
        let is_unknown = matches!(&error, instant_acme::Error::Api(problem)
            if problem.r#type.as_deref() == Some("urn:ietf:params:acme:error:accountDoesNotExist"));
        if is_unknown && let Err(error) = tokio::fs::remove_file(&self.account).await {
            return OrderError::Files(error);
        }
        OrderError::Authority(error)
    }

    /// The account that was made before, or a new one. It is kept before it is used.
    async fn account(&self) -> Result<Account, OrderError> {
        let builder = || match self.ca_file {
            Some(file) => Account::builder_with_root(file),
            None => Account::builder(),
        };
        if let Some(kept) = self.kept_account().await? {
            return Ok(builder()?.from_credentials(kept).await?);
        }
        let contact: Vec<&str> = self.contact.into_iter().collect();
        let asked =
            NewAccount { contact: &contact, terms_of_service_agreed: true, only_return_existing: false };
        let (account, credentials) = builder()?.create(&asked, self.directory.to_owned(), None).await?;
        let text = serde_json::json!({"directory": self.directory, "credentials": credentials}).to_string();
        let path = self.account.clone();
        let written = tokio::task::spawn_blocking(move || {
            path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
            files::write_private(&path, text.as_bytes())
        });
        written
            .await
            .map_err(|error| OrderError::Files(io::Error::other(error)))?
            .map_err(OrderError::Files)?;
        Ok(account)
    }

    /// The account at this directory, if there is one. One that cannot be read is made again.
    async fn kept_account(&self) -> Result<Option<AccountCredentials>, OrderError> {
        let path = self.account.clone();
        let read = move || match std::fs::metadata(&path) {
            Ok(file) if file.len() <= ACCOUNT_BYTES_MAX => std::fs::read(&path).map(Some),
            Ok(_) => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        };
        let read = tokio::task::spawn_blocking(read).await;
        let text =
            read.map_err(|error| OrderError::Files(io::Error::other(error)))?.map_err(OrderError::Files)?;
        let kept: Option<serde_json::Value> = text.and_then(|text| serde_json::from_slice(&text).ok());
        let Some(mut kept) = kept.filter(|kept| kept.get("directory") == Some(&self.directory.into())) else {
            return Ok(None);
        };
        Ok(kept.get_mut("credentials").and_then(|value| serde_json::from_value(value.take()).ok()))
    }
}

/// What the authority says of the proofs that it did not find.
async fn reason(order: &mut instant_acme::Order) -> String {
    let mut reasons = Vec::new();
    let mut authorizations = order.authorizations();
    while let Some(Ok(mut authorization)) = authorizations.next().await {
        let Ok(state) = authorization.refresh().await else { continue };
        let found = state.challenges.iter().filter_map(|challenge| challenge.error.as_ref());
        reasons.extend(found.map(ToString::to_string));
    }
    if reasons.is_empty() { "it does not say more".to_owned() } else { reasons.join("; ") }
}
