//! The list of files that the build of `web/` leaves beside them: a line for each, with its path, media type, tag, and
//! `immutable` or `changing`, separated by tabs.

/// Its name in their folder.
pub(crate) const FILE: &str = "pages.tsv";

/// One file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line<'t> {
    pub(crate) path: &'t str,
    pub(crate) media_type: &'t str,
    /// Another one for other contents; letters and digits.
    pub(crate) etag: &'t str,
    /// Its name changes with its contents.
    pub(crate) immutable: bool,
}

/// # Errors
/// Which line names no file, in words.
pub(crate) fn parse(text: &str) -> Result<Vec<Line<'_>>, String> {
    text.lines()
        .map(|line| one(line).ok_or_else(|| format!("{FILE} has no file in this line: {line}")))
        .collect()
}

fn one(line: &str) -> Option<Line<'_>> {
    let mut cells = line.split('\t');
    let (path, media_type, etag) = (cells.next()?, cells.next()?, cells.next()?);
    let immutable = match cells.next()? {
        "immutable" => true,
        "changing" => false,
        _ => return None,
    };
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let is_path = !path.is_empty() && !path.starts_with('.') && path.bytes().all(is_name);
    let is_type = media_type.contains('/') && media_type.bytes().all(|byte| (0x20..0x7f).contains(&byte));
    let is_tag = !etag.is_empty() && etag.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (cells.next().is_none() && is_path && is_type && is_tag).then_some(Line {
        path,
        media_type,
        etag,
        immutable,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn a_line_is_a_file_or_the_list_is_refused() {
        let line = "console-A1.js\ttext/javascript; charset=utf-8\tA1\timmutable";
        let read = parse(line).unwrap();
        let expected = Line {
            path: "console-A1.js",
            media_type: "text/javascript; charset=utf-8",
            etag: "A1",
            immutable: true,
        };
        assert_eq!(read, [expected]);
        for bad in [
            "x",
            "../x\ttext/html\tA\tchanging",
            "a/b\ttext/html\tA\tchanging",
            ".x\ttext/html\tA\tchanging",
            "x\thtml\tA\tchanging",
            "x\ttext/html\ta\"b\tchanging",
            "x\ttext/html\tA\tperhaps",
            "x\ttext/html\tA\tchanging\tmore",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
