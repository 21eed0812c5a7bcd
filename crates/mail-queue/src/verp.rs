//! A sender's address that names the recipient: whatever a foreign server writes into its bounce, the address that the
//! bounce comes to says whom it is about.

use scrinium_smtp_wire::{Domain, Mailbox};

/// `list@example.org` for `bob@example.net` becomes `list+bob=example.net@example.org`. `None` if that would be longer than a
/// local part may be (RFC 5321, section 4.5.3.1.1), or the recipient's domain is an address of a host.
#[must_use]
pub fn verp_encode(sender: &Mailbox, recipient: &Mailbox) -> Option<Mailbox> {
    let Domain::Name(domain) = recipient.domain() else { return None };
    let local = format!("{}+{}={domain}", sender.local(), recipient.local());
    // Others enforce the length of the RFC, which is shorter than ours.
    let is_short = local.len() <= 64;
    if is_short { Mailbox::new(&local, sender.domain().clone()).ok() } else { None }
}

/// The recipient that an address names which [`verp_encode`] made for `sender`.
#[must_use]
pub fn verp_decode(address: &Mailbox, sender: &Mailbox) -> Option<Mailbox> {
    let same_domain =
        crate::message::domain_name(address.domain()) == crate::message::domain_name(sender.domain());
    let named = address.local().strip_prefix(sender.local())?.strip_prefix('+')?;
    // A domain has no `=`; a local part may have.
    let (local, domain) = named.rsplit_once('=')?;
    let domain = Domain::parse(domain.as_bytes()).ok().filter(|domain| matches!(domain, Domain::Name(_)))?;
    if same_domain { Mailbox::new(local, domain).ok() } else { None }
}
