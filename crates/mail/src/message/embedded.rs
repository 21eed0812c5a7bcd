//! Files inside of text, as they were sent before MIME and next to it: uuencode, its form in base64, and yEnc.

use std::borrow::Cow;

use super::decode::base64_value;

/// A file that stands in a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct EmbeddedFile {
    pub(super) name: Vec<u8>,
    /// Decoded.
    pub(super) bytes: usize,
}

/// A file and the length of what it takes of the text.
type Block = (EmbeddedFile, usize);

/// The text without the files in it, and at most `limit` files. What begins like a file and has no end stays.
pub(super) fn take_out(text: &[u8], limit: usize) -> (Cow<'_, [u8]>, Vec<EmbeddedFile>) {
    let mut files = Vec::new();
    let mut kept: Vec<u8> = Vec::new();
    let (mut copied, mut position) = (0, 0);
    let mut has_open_yenc = false;
    while let Some(rest) = text.get(position..).filter(|rest| !rest.is_empty()) {
        let block = match rest.first() {
            Some(b'b') => uuencoded(rest),
            Some(b'=') if !has_open_yenc && rest.starts_with(b"=ybegin ") => {
                let block = yenc(rest);
                has_open_yenc = block.is_none();
                block
            }
            _ => None,
        };
        match block {
            Some((file, length)) if files.len() < limit => {
                kept.extend_from_slice(text.get(copied..position).unwrap_or_default());
                position += length;
                copied = position;
                files.push(file);
            }
            _ => position += line_length(rest),
        }
    }
    if files.is_empty() {
        return (Cow::Borrowed(text), files);
    }
    kept.extend_from_slice(text.get(copied..).unwrap_or_default());
    (Cow::Owned(kept), files)
}

/// The bytes of a file that is the whole of a part; `None` where it is not that.
pub(super) fn uuencoded_length(part: &[u8]) -> Option<usize> {
    let files = take_out(part, 1).1;
    files.first().map(|file| file.bytes)
}

fn line_length(bytes: &[u8]) -> usize {
    bytes.iter().position(|&byte| byte == b'\n').map_or(bytes.len(), |end| end + 1)
}

/// The lines of `bytes` without their ends, and where each one ends.
fn lines(bytes: &[u8]) -> impl Iterator<Item = (&[u8], usize)> {
    let mut position = 0;
    bytes.split_inclusive(|&byte| byte == b'\n').map(move |line| {
        position += line.len();
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        (line.strip_suffix(b"\r").unwrap_or(line), position)
    })
}

/// `begin 644 name`, lines that begin with their length, `end` (POSIX, uuencode).
fn uuencoded(bytes: &[u8]) -> Option<Block> {
    let mut lines = lines(bytes);
    let (first, _) = lines.next()?;
    let (rest, is_base64) = match first.strip_prefix(b"begin ") {
        Some(rest) => (rest, false),
        None => (first.strip_prefix(b"begin-base64 ")?, true),
    };
    let blank = rest.iter().position(|&byte| byte == b' ')?;
    let (mode, name) = rest.split_at_checked(blank)?;
    let name = name.trim_ascii();
    if !(3..=4).contains(&mode.len())
        || !mode.iter().all(|digit| (b'0'..=b'7').contains(digit))
        || name.is_empty()
    {
        return None;
    }
    let mut length = 0;
    for (line, end) in lines {
        let is_end =
            if is_base64 { line.trim_ascii_end() == b"====" } else { line.trim_ascii_end() == b"end" };
        if is_end {
            return Some((EmbeddedFile { name: name.to_vec(), bytes: length }, end));
        }
        length += if is_base64 { base64_line(line)? } else { line_of_uuencode(line)? };
    }
    None
}

/// How many bytes a line stands for; `None` for one that is no line of it.
fn line_of_uuencode(line: &[u8]) -> Option<usize> {
    let Some((&first, encoded)) = line.split_first() else { return Some(0) };
    if line.iter().any(|byte| !(b' '..=b'`').contains(byte)) {
        return None;
    }
    let bytes = usize::from((first - b' ') & 63);
    // Blanks at the end may be lost, and some put a sum behind.
    let most = bytes.div_ceil(3) * 4 + 2;
    (encoded.len() <= most).then_some(bytes)
}

fn base64_line(line: &[u8]) -> Option<usize> {
    let line = line.trim_ascii_end();
    let characters = line.iter().take_while(|&&byte| base64_value(byte).is_some()).count();
    let padding = line.get(characters..)?;
    padding.iter().all(|&byte| byte == b'=').then_some(characters * 3 / 4)
}

/// `=ybegin line=128 size=3 name=x`, bytes, `=yend size=3` (yEnc 1.3).
fn yenc(bytes: &[u8]) -> Option<Block> {
    const NAME: &[u8] = b" name=";
    let mut lines = lines(bytes);
    let (first, _) = lines.next()?;
    let name = first.windows(NAME.len()).position(|window| window == NAME)?;
    let name = first.get(name + NAME.len()..)?.trim_ascii();
    let mut length = 0;
    for (line, end) in lines {
        if line.starts_with(b"=yend") {
            return Some((EmbeddedFile { name: name.to_vec(), bytes: length }, end));
        }
        if !line.starts_with(b"=ypart ") {
            length += line.len() - escapes(line);
        }
    }
    None
}

/// How many bytes of a line only say that the next one is escaped.
fn escapes(line: &[u8]) -> usize {
    let (mut count, mut escaped) = (0, false);
    for &byte in line {
        escaped = !escaped && byte == b'=';
        count += usize::from(escaped);
    }
    count
}

#[cfg(test)]
mod tests {
    use super::take_out;

    fn check(text: &[u8], rest: &[u8], files: &[(&str, usize)]) {
        let (kept, found) = take_out(text, 10);
        assert_eq!(String::from_utf8_lossy(&kept), String::from_utf8_lossy(rest));
        let found: Vec<_> =
            found.iter().map(|file| (String::from_utf8_lossy(&file.name), file.bytes)).collect();
        let found: Vec<_> = found.iter().map(|(name, bytes)| (name.as_ref(), *bytes)).collect();
        assert_eq!(found, files);
    }

    #[test]
    fn files_in_text_are_found_and_taken_out() {
        check(
            b"Before\n\nbegin 644 hello.txt\n+:&5L;&\\@=V]R;&0*\n`\nend\nAfter\n",
            b"Before\n\nAfter\n",
            &[("hello.txt", 11)],
        );
        check(
            b"begin 0600 a b.txt \r\n#0V%T\r\n \r\nend\r\n\r\nbegin 644 c\r\n\r\nend",
            b"\r\n",
            &[("a b.txt", 3), ("c", 0)],
        );
        check(b"begin-base64 644 x.bin\nSGVsbG8=\n====\nafter", b"after", &[("x.bin", 5)]);
        check(
            b"text\n=ybegin line=128 size=4 name=a b.bin\r\nk=\x8e==\x00\r\n=yend size=4\r\nrest",
            b"text\nrest",
            &[("a b.bin", 4)],
        );
    }

    #[test]
    fn text_that_only_begins_like_a_file_stays() {
        for text in [
            &b"begin 644 x\n#0V%T\n`\n"[..],
            b"begin 644 x\nWe begin here\nend\n",
            b"begin quickly\nend\n",
            b"begin 999 x\nend\n",
            b"begin 644\nend\n",
            b"=ybegin line=128 size=4 name=x\nabc\n",
            b"=ybegin what\n=yend\n",
            b"the end\n",
        ] {
            check(text, text, &[]);
        }
    }
}
