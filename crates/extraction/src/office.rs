//! Words of office documents: archives of XML files (ECMA-376, ISO/IEC 26300). Only in a process that has nothing else.

use std::io::{BufReader, Cursor, Read};

use quick_xml::Reader;
use quick_xml::events::Event;
use zip::ZipArchive;

/// Files of an archive that are looked at, and how long they may be once unpacked.
const FILES_MAX: usize = 2000;
const FILE_BYTES_MAX: u64 = 64 << 20;

/// The words of a document, until there are so many bytes of them; `None` if it is none.
pub(crate) fn text(file: &[u8], text_bytes: usize) -> Option<String> {
    let mut archive = ZipArchive::new(Cursor::new(file)).ok()?;
    let names = archive.file_names().filter(|name| has_words(name)).map(str::to_owned);
    let mut names: Vec<String> = names.take(FILES_MAX).collect();
    if names.is_empty() {
        return None;
    }
    // Pages in the order of their numbers.
    names.sort_by(|one, other| one.len().cmp(&other.len()).then_with(|| one.cmp(other)));
    let mut words = String::new();
    for name in names {
        let Ok(entry) = archive.by_name(&name) else { continue };
        words_of_xml(BufReader::new(entry.take(FILE_BYTES_MAX)), &mut words, text_bytes);
        if words.len() >= text_bytes {
            break;
        }
    }
    Some(words)
}

/// The parts of a document that people read.
fn has_words(name: &str) -> bool {
    let is_in = |folder: &str, beginnings: &[&str]| {
        let file = name.strip_prefix(folder).and_then(|name| name.strip_suffix(".xml"));
        file.is_some_and(|file| beginnings.iter().any(|beginning| file.starts_with(beginning)))
    };
    name == "content.xml"
        || is_in("word/", &["document", "header", "footer", "footnotes", "endnotes", "comments"])
        || is_in("xl/", &["sharedStrings", "worksheets/sheet", "comments"])
        || is_in("ppt/", &["slides/slide", "notesSlides/notesSlide", "comments/"])
}

/// Adds the text between the tags; what begins a paragraph, a cell or a line begins a line here.
fn words_of_xml(xml: impl std::io::BufRead, words: &mut String, text_bytes: usize) {
    let mut reader = Reader::from_reader(xml);
    let mut buffer = Vec::new();
    // Numbers of cells are places among the shared strings as often as numbers that somebody wrote.
    let mut is_value = false;
    while words.len() < text_bytes {
        buffer.clear();
        match reader.read_event_into(&mut buffer) {
            Ok(Event::Start(tag)) => {
                let name = tag.local_name();
                is_value = matches!(name.as_ref(), b"v" | b"f");
            }
            Ok(Event::Empty(tag))
                if matches!(tag.local_name().as_ref(), b"tab" | b"br" | b"cr" | b"s" | b"line-break") =>
            {
                words.push(' ');
            }
            Ok(Event::End(tag)) => {
                is_value = false;
                if matches!(
                    tag.local_name().as_ref(),
                    b"p" | b"h" | b"si" | b"tc" | b"tr" | b"row" | b"table-cell"
                ) {
                    words.push('\n');
                }
            }
            Ok(Event::Text(text)) if !is_value => {
                if let Ok(text) = text.decode() {
                    words.push_str(&text);
                }
            }
            Ok(Event::GeneralRef(reference)) => words.push(character_of(&reference)),
            Ok(Event::Eof) | Err(_) => return,
            Ok(_) => {}
        }
    }
}

/// What an entity stands for; a blank for one that nobody knows.
fn character_of(reference: &quick_xml::events::BytesRef<'_>) -> char {
    if let Ok(Some(character)) = reference.resolve_char_ref() {
        return character;
    }
    match &**reference {
        b"amp" => '&',
        b"lt" => '<',
        b"gt" => '>',
        b"quot" => '"',
        b"apos" => '\'',
        _ => ' ',
    }
}
