//! From a path to the route that answers it, and what its parameters stand for.
//!
//! CouchDB's addresses are not those of a router: a path is cut at its slashes before its segments are decoded, so that
//! `mail%2Fuser` is one database; an attachment's name may hold slashes; empty segments do not count; and
//! `_design%2Fx` is the same as `_design/x`.

use std::borrow::Cow;
use std::sync::LazyLock;

use crate::address::Address;
use crate::encoding::decode;
use crate::error::{HttpError, Result};
use crate::route_table::routes;
use crate::routes::{Route, accepts};

/// A part of a pattern.
enum Segment {
    Literal(&'static str),
    One(&'static str),
    Rest(&'static str),
}

struct Pattern {
    route: &'static Route,
    segments: Vec<Segment>,
}

/// The patterns that a path with this number of segments may match, in the order of the table. The last ones are for all that are
/// longer.
static PATTERNS: LazyLock<Vec<Vec<&'static Pattern>>> = LazyLock::new(|| {
    let segment = |text: &'static str| match text.strip_prefix('{').and_then(|text| text.strip_suffix('}')) {
        None => Segment::Literal(text),
        Some(name) => name.strip_suffix("...").map_or(Segment::One(name), Segment::Rest),
    };
    let cut = |route: &'static Route| Pattern {
        route,
        segments: route.path.split('/').filter(|text| !text.is_empty()).map(segment).collect(),
    };
    // They live as long as the program.
    let patterns: &'static [Pattern] = Vec::leak(routes().iter().map(cut).collect());
    let longest = patterns.iter().map(|pattern| pattern.segments.len()).max().unwrap_or_default();
    let of_length = |length: usize| patterns.iter().filter(|pattern| pattern.may_have(length)).collect();
    (0..=longest + 1).map(of_length).collect()
});

/// Finds the route of a path. Empty segments do not count, as in CouchDB.
///
/// # Errors
/// 400 where a segment is not UTF-8 once decoded.
pub(crate) fn parse(path: &str) -> Result<Address> {
    let cut = path.split('/').filter(|segment| !segment.is_empty());
    let mut segments = cut.map(decode).collect::<Result<Vec<_>>>()?;
    split_prefix(&mut segments);
    let patterns = PATTERNS.get(segments.len()).or_else(|| PATTERNS.last()).map(Vec::as_slice);
    let found = patterns.unwrap_or_default().iter().find_map(|pattern| pattern.matches(&segments));
    // The last patterns of the table leave nothing out.
    let mut address = found.ok_or_else(|| HttpError::not_found("missing"))?;
    address.is_folder = path.ends_with('/');
    Ok(address)
}

/// `_design%2Fx` means `_design/x`, and so does `_local%2Fx` where nothing follows.
fn split_prefix(segments: &mut Vec<Cow<'_, str>>) {
    let Some((prefix, name)) = segments.get(1).and_then(|second| second.split_once('/')) else { return };
    let parts = match prefix {
        "_design" => ("_design", name.to_owned()),
        "_local" if segments.len() == 2 => ("_local", name.to_owned()),
        _ => return,
    };
    segments.splice(1..2, [Cow::Borrowed(parts.0), Cow::Owned(parts.1)]);
}

impl Pattern {
    fn may_have(&self, segments: usize) -> bool {
        let own = self.segments.len();
        match self.segments.last() {
            Some(Segment::Rest(_)) => segments >= own,
            _ => segments == own,
        }
    }

    /// Of segments that are as many as it may have.
    fn matches(&self, segments: &[Cow<'_, str>]) -> Option<Address> {
        let fits = self.segments.iter().zip(segments).all(|(own, given)| match own {
            Segment::Literal(text) => given == text,
            Segment::One(name) | Segment::Rest(name) => accepts(name, given),
        });
        fits.then(|| Address::new(self.route, self.values(segments)))
    }

    fn values(&self, segments: &[Cow<'_, str>]) -> Vec<(&'static str, String)> {
        let mut values = Vec::with_capacity(4);
        for (position, own) in self.segments.iter().enumerate() {
            let rest = segments.get(position..).unwrap_or_default();
            match own {
                Segment::Literal(_) => {}
                Segment::One(name) => {
                    values.push((*name, rest.first().map(ToString::to_string).unwrap_or_default()));
                }
                Segment::Rest(name) => values.push((*name, rest.join("/"))),
            }
        }
        values
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use http::Method;

    use super::*;

    /// Pattern and values.
    fn shown(path: &str) -> String {
        let address = parse(path).unwrap();
        let values: Vec<String> =
            address.values().iter().map(|(name, value)| format!("{name}={value}")).collect();
        format!("{} {}", address.route.path, values.join(" "))
    }

    #[test]
    fn names_are_decoded_after_the_path_is_cut() {
        for (path, expected) in [
            ("/", "/ "),
            ("", "/ "),
            ("/mail%2Fuser/a%2Fb", "/{db}/{docid} db=mail/user docid=a/b"),
            (
                "//db/id/folder/picture%20one.png",
                "/{db}/{docid}/{attname...} db=db docid=id attname=folder/picture one.png",
            ),
            ("/db/_design%2Fx", "/{db}/_design/{ddoc} db=db ddoc=x"),
            ("/db/_design/x/", "/{db}/_design/{ddoc} db=db ddoc=x"),
            ("/db/_design%2Fa%2Fb/_view/v", "/{db}/_design/{ddoc}/_view/{view} db=db ddoc=a/b view=v"),
            ("/db/_design/x/a/b%2Fc", "/{db}/_design/{ddoc}/{attname...} db=db ddoc=x attname=a/b/c"),
            ("/db/_design/x/_show/a", "/{db}/_design/{ddoc}/{function...} db=db ddoc=x function=_show/a"),
            ("/db/_design/x/_view", "/{db}/_design/{ddoc}/{function...} db=db ddoc=x function=_view"),
            ("/db/_design", "/{db}/{special...} db=db special=_design"),
            ("/db/_local/a", "/{db}/_local/{localid} db=db localid=a"),
            ("/db/_local/a%2Fb", "/{db}/_local/{localid} db=db localid=a/b"),
            ("/db/_local/a/b", "/{db}/{special...} db=db special=_local/a/b"),
            ("/db/_local/", "/{db}/{special...} db=db special=_local"),
            ("/db/_local%2Fa%2Fb", "/{db}/_local/{localid} db=db localid=a/b"),
            ("/db/_local%2Fa/b", "/{db}/{special...} db=db special=_local/a/b"),
            ("/../x", "/{db}/{docid} db=.. docid=x"),
            ("/_nothing", "/{db} db=_nothing"),
            ("/_utils", "/_utils "),
            ("/_utils/", "/_utils "),
            ("/_utils/a.js", "/_utils/{file...} file=a.js"),
            ("/_utils/a/%2e%2e/b", "/_utils/{file...} file=a/../b"),
            ("/metrics/x", "/{db}/{docid} db=metrics docid=x"),
            ("/_node/a/_stats", "/_node/{node}/_stats node=a"),
            ("/db/id/_all", "/{db}/{docid}/{attname...} db=db docid=id attname=_all"),
            ("/db/_all_docs/queries", "/{db}/_all_docs/queries db=db"),
            ("/db/_all_docs/other", "/{db}/{special...} db=db special=_all_docs/other"),
            ("/db/_index/_design/json/n", "/{db}/{special...} db=db special=_index/_design/json/n"),
            ("/db/_index/_bulk_delete", "/{db}/_index/_bulk_delete db=db"),
        ] {
            assert_eq!(shown(path), expected, "{path}");
        }
        let index = "/{db}/_index/{index_ddoc}/{type}/{name} db=db index_ddoc=";
        assert_eq!(shown("/db/_index/x/json/n%2Fm"), format!("{index}x type=json name=n/m"));
        assert_eq!(shown("/db/_index/_design%2Fx/json/n"), format!("{index}_design/x type=json name=n"));
        assert_eq!(
            shown("/db/_index/_design/x/json/n"),
            "/{db}/_index/_design/{index_ddoc}/{type}/{name} db=db index_ddoc=x type=json name=n"
        );
        assert!(parse("/db/%ff").is_err());
        assert_eq!(parse("/db/_design%2Fa%2Fb/x").unwrap().document_id().unwrap(), "_design/a/b");
        assert_eq!(parse("/db/_local/a%2Fb").unwrap().document_id().unwrap(), "_local/a/b");
    }

    #[test]
    fn every_route_is_reached_by_its_own_pattern_and_has_each_method_once() {
        let mut seen = BTreeSet::new();
        for route in routes() {
            assert!(seen.insert(route.path), "{} stands twice", route.path);
            let example = route.path.replace("{special...}", "_x").replace("{function...}", "_x");
            assert_eq!(parse(&example.replace("...", "")).unwrap().route.path, route.path);
            let methods: BTreeSet<&str> = route.methods.iter().map(|entry| entry.method).collect();
            assert_eq!(methods.len(), route.methods.len(), "{}", route.path);
            assert!(!methods.is_empty() && !methods.contains("HEAD"), "{}", route.path);
            assert_eq!(
                route.method(&Method::HEAD).is_some(),
                methods.contains("GET") || methods.contains("*")
            );
        }
    }
}
