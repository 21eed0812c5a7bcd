//! Files inside of text, as they were sent before MIME and alongside it: uuencode, its form in base64, and yEnc.

use super::decode::base64_value;
use super::leaf::push_some;
use super::structure::split_end;

/// A file that stands in a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct EmbeddedFile {
    pub(super) name: Vec<u8>,
    /// Decoded.
    pub(super) bytes: usize,
}

/// Text that comes line by line, of which files are taken out. What begins like a file and has no end stays.
pub(super) struct TextScanner {
    most_files: usize,
    most_bytes: usize,
    files: Vec<EmbeddedFile>,
    /// The beginning of the text without the files.
    kept: Vec<u8>,
    open: Option<OpenFile>,
    /// Whether something began like a file of yEnc and was none: nothing else is looked for as one.
    has_open_yenc: bool,
    is_line_start: bool,
    line: LineBelongs,
}

/// Where the line belongs that came last.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LineBelongs {
    Text,
    OpenFile,
    ClosedFile,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FileForm {
    Uuencode,
    Base64,
    Yenc,
}

/// What may be a file.
struct OpenFile {
    form: FileForm,
    file: EmbeddedFile,
    /// What it is as text, as far as that would be kept.
    text: Vec<u8>,
}

enum LineOfFile {
    Stands(usize),
    Ends,
    IsNone,
}

impl TextScanner {
    /// Finds at most `most_files`, and keeps `most_bytes` of the text.
    pub(super) fn new(most_files: usize, most_bytes: usize) -> Self {
        Self {
            most_files,
            most_bytes,
            files: Vec::new(),
            kept: Vec::new(),
            open: None,
            has_open_yenc: false,
            is_line_start: true,
            line: LineBelongs::Text,
        }
    }

    /// Takes a line without its end, or a piece of a long one.
    pub(super) fn text(&mut self, text: &[u8]) {
        if std::mem::take(&mut self.is_line_start) {
            self.line_start(text);
        } else {
            self.continuation(text);
        }
    }

    /// Takes the end of a line.
    pub(super) fn line_end(&mut self, end: &[u8]) {
        self.is_line_start = true;
        match (self.line, &mut self.open) {
            (LineBelongs::OpenFile, Some(open)) => push_some(&mut open.text, end, self.most_bytes),
            (LineBelongs::ClosedFile, _) => {}
            _ => push_some(&mut self.kept, end, self.most_bytes),
        }
    }

    fn lines(&mut self, text: &[u8]) {
        for line in text.split_inclusive(|&byte| byte == b'\n') {
            let (text, end) = split_end(line);
            self.text(text);
            if !end.is_empty() {
                self.line_end(end);
            }
        }
    }

    fn line_start(&mut self, line: &[u8]) {
        let found = self.open.as_ref().map(|open| open.form.line(line));
        match found {
            Some(LineOfFile::Stands(bytes)) => return self.take_up(line, bytes),
            Some(LineOfFile::Ends) => {
                self.files.extend(self.open.take().map(|open| open.file));
                self.line = LineBelongs::ClosedFile;
                return;
            }
            Some(LineOfFile::IsNone) => self.give_up(),
            None => {}
        }
        if self.files.len() < self.most_files
            && let Some(open) = self.begun(line)
        {
            self.open = Some(open);
            return self.take_up(line, 0);
        }
        self.line = LineBelongs::Text;
        push_some(&mut self.kept, line, self.most_bytes);
    }

    fn continuation(&mut self, piece: &[u8]) {
        if self.line == LineBelongs::ClosedFile {
            return;
        }
        match self.open.as_ref().map(|open| open.form.piece(piece)) {
            Some(Some(bytes)) => self.take_up(piece, bytes),
            Some(None) => {
                self.give_up();
                push_some(&mut self.kept, piece, self.most_bytes);
            }
            None => push_some(&mut self.kept, piece, self.most_bytes),
        }
    }

    /// A line, or a piece of it, is the open file's, and stands for this number of bytes.
    fn take_up(&mut self, text: &[u8], bytes: usize) {
        if let Some(open) = &mut self.open {
            open.file.bytes += bytes;
            push_some(&mut open.text, text, self.most_bytes);
            self.line = LineBelongs::OpenFile;
        }
    }

    /// What was open is no file but text. No line of it can begin another file.
    fn give_up(&mut self) {
        if let Some(open) = self.open.take() {
            push_some(&mut self.kept, &open.text, self.most_bytes);
            self.line = LineBelongs::Text;
        }
    }

    /// The file that a line begins.
    fn begun(&mut self, line: &[u8]) -> Option<OpenFile> {
        let (form, name) = match line.first() {
            Some(b'b') => begins_uuencode(line)?,
            Some(b'=') if !self.has_open_yenc && line.starts_with(b"=ybegin ") => {
                let name = name_of_yenc(line);
                self.has_open_yenc = name.is_none();
                (FileForm::Yenc, name?)
            }
            _ => return None,
        };
        let file = EmbeddedFile { name: name.to_vec(), bytes: 0 };
        Some(OpenFile { form, file, text: Vec::new() })
    }

    /// The beginning of the text, and the files.
    pub(super) fn finish(mut self) -> (Vec<u8>, Vec<EmbeddedFile>) {
        match self.open.take() {
            // What has the form of yEnc may be any text, with other files in it.
            Some(open) if open.form == FileForm::Yenc => {
                self.has_open_yenc = true;
                self.is_line_start = true;
                self.lines(&open.text);
                self.give_up();
            }
            open => {
                self.open = open;
                self.give_up();
            }
        }
        (self.kept, self.files)
    }
}

/// The text without the files in it, and at most `limit` files.
pub(super) fn take_out(text: &[u8], limit: usize) -> (Vec<u8>, Vec<EmbeddedFile>) {
    let mut scanner = TextScanner::new(limit, usize::MAX);
    scanner.lines(text);
    scanner.finish()
}

impl FileForm {
    fn line(self, line: &[u8]) -> LineOfFile {
        let is_end = match self {
            Self::Uuencode => line.trim_ascii_end() == b"end",
            Self::Base64 => line.trim_ascii_end() == b"====",
            Self::Yenc => line.starts_with(b"=yend"),
        };
        if is_end {
            return LineOfFile::Ends;
        }
        let bytes = match self {
            Self::Uuencode => line_of_uuencode(line),
            Self::Base64 => base64_line(line),
            Self::Yenc if line.starts_with(b"=ypart ") => Some(0),
            Self::Yenc => Some(line.len() - escapes(line)),
        };
        bytes.map_or(LineOfFile::IsNone, LineOfFile::Stands)
    }

    /// What a further piece of a long line stands for; `None` where no line can be that long.
    fn piece(self, piece: &[u8]) -> Option<usize> {
        match self {
            Self::Uuencode => None,
            Self::Base64 => base64_line(piece),
            Self::Yenc => Some(piece.len() - escapes(piece)),
        }
    }
}

/// `begin 644 name`, which lines follow that begin with their length, and `end` (POSIX, uuencode).
fn begins_uuencode(line: &[u8]) -> Option<(FileForm, &[u8])> {
    let (rest, form) = match line.strip_prefix(b"begin ") {
        Some(rest) => (rest, FileForm::Uuencode),
        None => (line.strip_prefix(b"begin-base64 ")?, FileForm::Base64),
    };
    let blank = rest.iter().position(|&byte| byte == b' ')?;
    let (mode, name) = rest.split_at_checked(blank)?;
    let name = name.trim_ascii();
    let is_mode = (3..=4).contains(&mode.len()) && mode.iter().all(|digit| (b'0'..=b'7').contains(digit));
    (is_mode && !name.is_empty()).then_some((form, name))
}

/// The name in `=ybegin line=128 size=3 name=x`, which bytes follow, and `=yend size=3` (yEnc 1.3).
fn name_of_yenc(line: &[u8]) -> Option<&[u8]> {
    const NAME: &[u8] = b" name=";
    let name = line.windows(NAME.len()).position(|window| window == NAME)?;
    Some(line.get(name + NAME.len()..)?.trim_ascii())
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
