//! The files of the web console and of the client: which there are, in which encodings, and the headers that go with them.
//!
//! `web/` is built by Node into a folder of files, compressed beforehand, and a list of them. The folder that
//! `SCRINIUM_WEB` names when this crate is compiled is built into the server. Without it there is one page, which says so.
//! A debug build takes the files from the folder that `SCRINIUM_WEB` names when it is started instead, so that people
//! who work on them compile no server.

mod encoding;
#[cfg(debug_assertions)]
mod listing;

use std::sync::LazyLock;

/// One file.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// Its address below the console's.
    pub path: &'static str,
    /// With its character set.
    pub media_type: &'static str,
    /// Without quotes; another one for other contents.
    pub etag: &'static str,
    /// Its name changes with its contents, so that it may be kept for ever.
    pub immutable: bool,
    plain: &'static [u8],
    brotli: Option<&'static [u8]>,
    gzip: Option<&'static [u8]>,
}

/// What a page may do in a browser: run its own files and talk to this server. There is no inline script or style, no
/// other site, no frame around it, and no text that becomes markup (Trusted Types without a policy).
macro_rules! content_security {
    ($more:literal) => {
        concat!(
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
             font-src 'self'; connect-src 'self'; worker-src 'self'; manifest-src 'self'; form-action 'none'; \
             base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
            $more
        )
    };
}

const CONTENT_SECURITY: &str = content_security!("");
/// Messages lie in frames, whose pages have a policy of their own.
const CLIENT_CONTENT_SECURITY: &str = content_security!("; frame-src 'self'");

const PERMISSIONS: &str =
    "camera=(), display-capture=(), geolocation=(), microphone=(), midi=(), payment=(), usb=()";

/// A program that is opened in a browser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// For administrators and developers.
    Console,
    /// For people: mail.
    Client,
}

impl Program {
    /// The page that opens it.
    const fn first(self) -> &'static str {
        match self {
            Self::Console => "index.html",
            Self::Client => "app.html",
        }
    }

    /// Headers of every page, in lower case; `nosniff` is in every answer of the server.
    #[must_use]
    pub const fn security_headers(self) -> [(&'static str, &'static str); 5] {
        let content_security = match self {
            Self::Console => CONTENT_SECURITY,
            Self::Client => CLIENT_CONTENT_SECURITY,
        };
        [
            ("content-security-policy", content_security),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
            ("referrer-policy", "no-referrer"),
            ("permissions-policy", PERMISSIONS),
        ]
    }
}

static BUILT_IN: &[Page] = include!(concat!(env!("OUT_DIR"), "/table.rs"));

/// What both programs show that were not built in.
const fn absent(path: &'static str) -> Page {
    Page {
        path,
        media_type: "text/html; charset=utf-8",
        etag: "absent",
        immutable: false,
        plain: include_bytes!("absent.html"),
        brotli: None,
        gzip: None,
    }
}

static ABSENT: &[Page] = &[absent(Program::Console.first()), absent(Program::Client.first())];

static PAGES: LazyLock<&'static [Page]> = LazyLock::new(|| {
    let built = on_disk().unwrap_or(BUILT_IN);
    if built.is_empty() { ABSENT } else { built }
});

/// All files.
#[must_use]
pub fn pages() -> &'static [Page] {
    *PAGES
}

/// The file at an address below a program's; the empty one is that of its first page.
#[must_use]
pub fn find(program: Program, path: &str) -> Option<&'static Page> {
    let wanted = if path.is_empty() { program.first() } else { path };
    pages().iter().find(|page| page.path == wanted)
}

impl Page {
    /// Its bytes in the best encoding that `Accept-Encoding` takes (RFC 9110 §12.5.3), and the encoding's name.
    #[must_use]
    pub fn encoded(&self, accepted: Option<&str>) -> (Option<&'static str>, &'static [u8]) {
        let accepted = accepted.unwrap_or_default();
        for (name, bytes) in [("br", self.brotli), ("gzip", self.gzip)] {
            if let Some(bytes) = bytes.filter(|_| encoding::takes(accepted, name)) {
                return (Some(name), bytes);
            }
        }
        (None, self.plain)
    }

    /// What `Cache-Control` says of it.
    #[must_use]
    pub const fn cache_control(&self) -> &'static str {
        if self.immutable { "max-age=31536000, immutable" } else { "no-cache" }
    }
}

/// The files of the folder that `SCRINIUM_WEB` names, in debug builds alone.
#[cfg(debug_assertions)]
fn on_disk() -> Option<&'static [Page]> {
    let folder = std::path::PathBuf::from(std::env::var_os("SCRINIUM_WEB")?);
    let leaked = |path: &std::path::Path| std::fs::read(path).ok().map(|bytes| &*Vec::leak(bytes));
    let text = std::str::from_utf8(leaked(&folder.join(listing::FILE))?).ok()?;
    let page = |line: listing::Line<'static>| {
        let file = |suffix: &str| leaked(&folder.join(format!("{}{suffix}", line.path)));
        let listing::Line { path, media_type, etag, immutable } = line;
        Some(Page {
            path,
            media_type,
            etag,
            immutable,
            plain: file("")?,
            brotli: file(".br"),
            gzip: file(".gz"),
        })
    };
    let pages: Vec<Page> = listing::parse(text).ok()?.into_iter().filter_map(page).collect();
    Some(Vec::leak(pages))
}

#[cfg(not(debug_assertions))]
const fn on_disk() -> Option<&'static [Page]> {
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn a_page_goes_out_in_an_encoding_that_the_client_takes() {
        let page = Page { plain: b"plain", brotli: Some(b"br"), gzip: Some(b"gz"), ..ABSENT[0] };
        for (accepted, expected) in [
            (None, None),
            (Some(""), None),
            (Some("gzip, deflate, br, zstd"), Some("br")),
            (Some("gzip"), Some("gzip")),
            (Some("br;q=0, gzip;q=0.5"), Some("gzip")),
            (Some("GZIP ; Q=1"), Some("gzip")),
            (Some("*"), Some("br")),
            (Some("*;q=0"), None),
            (Some("br;q=none"), None),
            (Some("\u{1f600};;;,,=q"), None),
        ] {
            assert_eq!(page.encoded(accepted).0, expected, "{accepted:?}");
        }
        assert_eq!(ABSENT[0].encoded(Some("br")).0, None);
    }

    #[test]
    fn there_is_always_a_first_page_and_nothing_outside_the_list() {
        for program in [Program::Console, Program::Client] {
            assert_eq!(find(program, "").unwrap().path, program.first());
            for path in ["/", "../Cargo.toml", "index.html/", "INDEX.HTML", "pages.tsv", "\0"] {
                assert!(find(program, path).is_none(), "{path:?}");
            }
        }
    }

    #[test]
    fn no_inline_script_and_no_other_site_is_let_in() {
        for policy in [CONTENT_SECURITY, CLIENT_CONTENT_SECURITY] {
            for refused in ["unsafe-inline", "unsafe-eval", "http:", "https:", "*"] {
                assert!(!policy.contains(refused), "{refused}");
            }
        }
        let headers = [Program::Console, Program::Client].map(Program::security_headers);
        assert!(headers.as_flattened().iter().all(|(name, value)| name.is_ascii() && value.is_ascii()));
    }
}
