//! Addresses of notifications (RFC 6068; RFC 5436, section 2.2).

use percent_encoding::percent_decode_str;

use crate::action::one_line;
use crate::address::single;

/// Recipients of one notification.
const RECIPIENTS_MAX: usize = 8;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mailto {
    pub(crate) to: Vec<String>,
    pub(crate) cc: Vec<String>,
    pub(crate) subject: Option<String>,
    pub(crate) body: Option<String>,
}

impl Mailto {
    /// Reads `mailto:ada@example.org?subject=..`. Fields that a notification has of its own, or that could harm, are
    /// passed over (RFC 5436, section 2.3).
    pub(crate) fn parse(uri: &str) -> Option<Self> {
        let (scheme, rest) = uri.split_once(':')?;
        if !scheme.eq_ignore_ascii_case("mailto") {
            return None;
        }
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut found = Self::default();
        addresses(path, &mut found.to)?;
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=')?;
            match decoded(name)?.to_ascii_lowercase().as_str() {
                "to" => addresses(value, &mut found.to)?,
                "cc" => addresses(value, &mut found.cc)?,
                "subject" => found.subject = Some(one_line(&decoded(value)?)),
                "body" => found.body = Some(decoded(value)?),
                _ => {}
            }
        }
        let count = found.to.len() + found.cc.len();
        (!found.to.is_empty() && count <= RECIPIENTS_MAX).then_some(found)
    }
}

fn decoded(text: &str) -> Option<String> {
    percent_decode_str(text).decode_utf8().ok().map(std::borrow::Cow::into_owned)
}

fn addresses(list: &str, found: &mut Vec<String>) -> Option<()> {
    for address in list.split(',').filter(|address| !address.is_empty()).take(RECIPIENTS_MAX + 1) {
        found.push(single(&decoded(address)?)?);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_notifications() {
        let found = Mailto::parse("MAILTO:ada@a.example,bob%40b.example?Subject=New%0D%0Amail&cc=c@c.example&From=x@x.example&body=a%0Ab").unwrap();
        assert_eq!(found.to, ["ada@a.example", "bob@b.example"]);
        assert_eq!(found.cc, ["c@c.example"]);
        assert_eq!((found.subject.as_deref(), found.body.as_deref()), (Some("New mail"), Some("a\nb")));
        for wrong in [
            "",
            "mailto:",
            "xmpp:ada@a.example",
            "mailto:ada",
            "mailto:a@a.example?x",
            "mailto:a%0Ab@c.d",
            "mailto:%ff@a.example",
        ] {
            assert_eq!(Mailto::parse(wrong), None, "{wrong}");
        }
    }
}
