//! What mail programs and other servers ask of a mail domain before they know anybody: where its ports are, and how mail to it is to be
//! encrypted.
//!
//! Everybody may ask, so that an answer says what it says of each address of a domain, whether somebody has it or not.

use http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, HOST, HeaderName, HeaderValue};
use http::uri::Authority;
use http::{Response, StatusCode};
use scrinium_mail_discovery::sts::StsPolicy;
use scrinium_mail_discovery::{
    MailService, autoconfig, autodiscover_json, autodiscover_xml, profile, read_autodiscover,
};
use scrinium_sender_authentication::DomainName;

use crate::body::RequestBody;
use crate::context::Context;
use crate::error::{HttpError, Result};
use crate::response::{self, Body};

const XML: HeaderValue = HeaderValue::from_static("text/xml; charset=utf-8");
const PLAIN: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
/// What iOS and macOS install.
const PROFILE: HeaderValue = HeaderValue::from_static("application/x-apple-aspen-config; charset=utf-8");

/// Hosts of a domain that are its web server and have a name of their own: a request for one of them is about the domain.
const HOSTS: [&str; 3] = ["autoconfig.", "autodiscover.", "mta-sts."];

/// Knows how a domain's mail is reached. It answers from memory.
pub trait MailSetup: Send + Sync + 'static {
    /// The ports of a domain; `None` if its mail is not for this server, or cannot be both read and sent here.
    fn service(&self, domain: &DomainName) -> Option<MailService>;

    /// How mail to a domain is to be encrypted, if the domain says so.
    fn sts_policy(&self, domain: &DomainName) -> Option<StsPolicy>;
}

/// `GET /.well-known/autoconfig/mail/config-v1.1.xml`, and `/mail/config-v1.1.xml`.
pub(crate) fn automatic_configuration(context: &Context) -> Result<Response<Body>> {
    let address = context.query.get("emailaddress").filter(|address| !address.is_empty());
    let service = service(context, address)?;
    Ok(answer(StatusCode::OK, XML, autoconfig(&service, address)))
}

/// `GET /_mail_setup/profile.mobileconfig?emailaddress=`.
pub(crate) fn mobile_profile(context: &Context) -> Result<Response<Body>> {
    let address = context.query.get("emailaddress").unwrap_or_default();
    let service = service(context, Some(address))?;
    let text = profile(&service, address, None).ok_or_else(nothing_known)?;
    let mut response = answer(StatusCode::OK, PROFILE, text);
    let name = HeaderValue::from_static("attachment; filename=\"mail.mobileconfig\"");
    response.headers_mut().insert(CONTENT_DISPOSITION, name);
    Ok(response)
}

/// `POST /autodiscover/autodiscover.xml`. Other errors than those of HTTP stand in the answer.
pub(crate) async fn autodiscover(context: &Context, body: &mut RequestBody) -> Result<Response<Body>> {
    let bytes = body.collect().await?;
    let address = read_autodiscover(&bytes).map_err(|error| HttpError::bad_request(error.to_string()))?;
    let service = service(context, Some(&address))?;
    let answered = autodiscover_xml(&service, &address);
    Ok(answer(status(answered.status), XML, answered.body))
}

/// `GET /autodiscover/autodiscover.json?Protocol=`, with the address behind it or as a parameter.
pub(crate) fn autodiscover_place(context: &Context) -> Result<Response<Body>> {
    let parameter = |name: &str| context.query.get(name).or_else(|| context.query.get(&name.to_lowercase()));
    let address = context.address.get("email").or_else(|| parameter("Email"));
    let service = service(context, address)?;
    let answered = autodiscover_json(&service, parameter("Protocol").unwrap_or_default());
    Ok(answer(status(answered.status), response::JSON, answered.body))
}

/// `GET /.well-known/mta-sts.txt` (RFC 8461 §3.3), of `mta-sts.DOMAIN` alone.
pub(crate) fn sts_policy(context: &Context) -> Result<Response<Body>> {
    let host = host(context).ok_or_else(nothing_known)?;
    let domain =
        host.as_str().strip_prefix("mta-sts.").and_then(DomainName::parse).ok_or_else(nothing_known)?;
    let setup = context.state.mail_setup().ok_or_else(nothing_known)?;
    let policy = setup.sts_policy(&domain).ok_or_else(nothing_known)?;
    Ok(answer(StatusCode::OK, PLAIN, policy.text()))
}

/// The ports of the domain that a request is about: that of the address, or else that of the host that was asked.
fn service(context: &Context, address: Option<&str>) -> Result<MailService> {
    let setup = context.state.mail_setup().ok_or_else(nothing_known)?;
    let domain = match address {
        Some(address) => address.trim().rsplit_once('@').and_then(|(_, domain)| DomainName::parse(domain)),
        None => host(context).as_ref().map(domain_of),
    };
    domain.and_then(|domain| setup.service(&domain)).ok_or_else(nothing_known)
}

/// The host that was asked, as the client or a trusted proxy says.
fn host(context: &Context) -> Option<DomainName> {
    let own = context.target.authority().cloned();
    let named = || context.header(&HOST).and_then(|host| host.parse::<Authority>().ok());
    let forwarded = context.forwarded_host.as_ref().and_then(|host| host.parse::<Authority>().ok());
    DomainName::parse(forwarded.or(own).or_else(named)?.host())
}

/// The domain that a host is the web server of.
fn domain_of(host: &DomainName) -> DomainName {
    let parent = || HOSTS.iter().find_map(|prefix| host.as_str().strip_prefix(prefix));
    parent().and_then(DomainName::parse).unwrap_or_else(|| host.clone())
}

fn answer(status: StatusCode, kind: HeaderValue, text: String) -> Response<Body> {
    let mut response = Response::new(Body::whole(text.into_bytes()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, kind);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // Some of it repeats what was asked: it is for no page to show.
    headers.insert(
        HeaderName::from_static("content-security-policy"),
        HeaderValue::from_static("default-src 'none'; sandbox"),
    );
    response
}

fn status(code: u16) -> StatusCode {
    StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// The same for a domain that is not here and for one about which nothing is set.
fn nothing_known() -> HttpError {
    HttpError::not_found("missing")
}
