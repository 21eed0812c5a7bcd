//! Who asks: a session as CouchDB's replicator begins one, or name and password with each request where there are none.

use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue, SET_COOKIE};
use reqwest::{Client, Url};

use super::RemoteEnd;
use super::ask::Proof;
use crate::error::{ReplicationError, Result};
use crate::name::digest_of;

/// A session is begun again before it is this old; CouchDB's last ten minutes.
const SESSION_AGE: Duration = Duration::from_mins(8);

/// Name and password.
pub(crate) struct Login {
    pub(crate) name: String,
    password: String,
    pub(crate) basic: HeaderValue,
}

impl Login {
    /// What tells it from others at a server.
    pub(crate) fn key(&self, base: &Url) -> String {
        let server =
            base.path_segments().map(|segments| segments.rev().skip(1).collect::<Vec<_>>().join("/"));
        let origin = base.origin().ascii_serialization();
        digest_of(&[&origin, &server.unwrap_or_default(), &self.name, &self.password])
    }

    pub(crate) fn new(name: &str, password: &str) -> Result<Self> {
        let credentials = STANDARD.encode(format!("{name}:{password}"));
        let basic = HeaderValue::try_from(format!("Basic {credentials}"));
        let mut basic = basic.map_err(|_| ReplicationError::order("The name cannot be sent."))?;
        basic.set_sensitive(true);
        Ok(Self { name: name.to_owned(), password: password.to_owned(), basic })
    }
}

/// The name and the password in a URL.
pub(crate) fn of_url(url: &Url) -> Option<(String, String)> {
    let decoded = |text: &str| percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned();
    let name = decoded(url.username());
    (!name.is_empty()).then(|| (name, decoded(url.password().unwrap_or_default())))
}

/// What is known of a session at an end.
#[derive(Default)]
pub(crate) enum Session {
    /// Nobody asked.
    #[default]
    Unknown,
    /// The end has none.
    Absent,
    /// Its cookie, and since when.
    Open(HeaderValue, Instant),
}

/// A session of all ends of one server with one login.
pub(crate) type SharedSession = Arc<tokio::sync::Mutex<Session>>;

impl RemoteEnd {
    /// The cookie of a session; `None` where the end has no sessions, or gives none for this.
    pub(crate) async fn session(&self, client: &Client, login: &Login) -> Result<Option<HeaderValue>> {
        let mut session = self.session.lock().await;
        match &*session {
            Session::Absent => return Ok(None),
            Session::Open(cookie, since) if since.elapsed() < SESSION_AGE => return Ok(Some(cookie.clone())),
            Session::Open(..) | Session::Unknown => {}
        }
        let cookie = self.begin_session(client, login).await?;
        *session = match &cookie {
            Some(cookie) => Session::Open(cookie.clone(), Instant::now()),
            None => Session::Absent,
        };
        Ok(cookie)
    }

    async fn begin_session(&self, client: &Client, login: &Login) -> Result<Option<HeaderValue>> {
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop().push("_session");
        }
        let body = serde_json::json!({"name": login.name, "password": login.password});
        let request = client
            .post(url)
            .headers(self.headers.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json")
            .body(body.to_string());
        let response = request.send().await.map_err(|error| self.unreachable(&error))?;
        if response.status().is_server_error() || response.status().as_u16() == 429 {
            return Err(self.refused(response).await);
        }
        if !response.status().is_success() {
            return Ok(None);
        }
        let cookies = response.headers().get_all(SET_COOKIE).iter().filter_map(|value| value.to_str().ok());
        let named = cookies.filter_map(|cookie| cookie.split(';').next()).map(str::trim);
        let mut session = named.filter(|cookie| cookie.starts_with("AuthSession="));
        let cookie = session.find(|cookie| cookie.len() > "AuthSession=".len());
        Ok(cookie.and_then(|cookie| HeaderValue::try_from(cookie).ok()).map(|mut cookie| {
            cookie.set_sensitive(true);
            cookie
        }))
    }

    /// Forgets a session that the end does not believe, unless there is another one already; whether there was one.
    pub(crate) async fn session_is_over(&self, proof: Option<&Proof>) -> bool {
        let Some(Proof::Cookie(used)) = proof else { return false };
        let mut session = self.session.lock().await;
        if matches!(&*session, Session::Open(cookie, _) if cookie == used) {
            *session = Session::Unknown;
        }
        true
    }
}
