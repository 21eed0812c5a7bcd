//! Files that are made here, whose words are known.

use std::io::{Cursor, Write};

use scrinium_extraction::{Extractor, Kind};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

/// An archive of these files.
pub(crate) fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in files {
        writer.start_file(*name, SimpleFileOptions::default()).unwrap();
        writer.write_all(content.as_bytes()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// A PDF of one page with one line (ISO 32000-1 annex H.2).
pub(crate) fn pdf(line: &str) -> Vec<u8> {
    let content = format!("BT /F1 24 Tf 72 700 Td ({line}) Tj ET");
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>".to_owned(),
        format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_owned(),
    ];
    let mut file = b"%PDF-1.4\n".to_vec();
    let mut places = Vec::new();
    for (number, object) in objects.iter().enumerate() {
        places.push(file.len());
        write!(file, "{} 0 obj\n{object}\nendobj\n", number + 1).unwrap();
    }
    let table = file.len();
    write!(file, "xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1).unwrap();
    for place in places {
        writeln!(file, "{place:010} 00000 n ").unwrap();
    }
    write!(file, "trailer\n<< /Size {} /Root 1 0 R >>\nstartxref\n{table}\n%%EOF\n", objects.len() + 1)
        .unwrap();
    file
}

#[test]
fn words_of_each_kind_of_file_are_found() {
    let extractor = Extractor::default();
    let words = |kind, bytes: &[u8]| extractor.text(kind, bytes).unwrap();
    let document = "<w:document xmlns:w=\"w\"><w:p><w:r><w:t>Offer &amp; terms</w:t></w:r></w:p><w:p><w:t>second</w:t></w:p></w:document>";
    assert_eq!(words(Kind::Office, &archive(&[("word/document.xml", document)])), "Offer & terms\nsecond\n");
    let table = "<sst><si><t>quarter</t></si><si><t>revenue</t></si></sst>";
    let sheet = "<worksheet><row><c t=\"s\"><v>17</v></c></row></worksheet>";
    let sheets = archive(&[("xl/worksheets/sheet1.xml", sheet), ("xl/sharedStrings.xml", table)]);
    assert_eq!(words(Kind::Office, &sheets).split_whitespace().collect::<Vec<_>>(), ["quarter", "revenue"]);
    let slides = archive(&[
        ("ppt/slides/slide10.xml", "<p><a:t xmlns:a=\"a\">tenth</a:t></p>"),
        ("ppt/slides/slide2.xml", "<p><a:t xmlns:a=\"a\">other</a:t></p>"),
    ]);
    assert_eq!(words(Kind::Office, &slides), "other\ntenth\n");
    let open = "<office><text:h xmlns:text=\"t\">Title</text:h><text:p>one<text:s/>two</text:p></office>";
    assert_eq!(words(Kind::Office, &archive(&[("content.xml", open)])), "Title\none two\n");
    assert_eq!(words(Kind::Pdf, &pdf("Quarterly figures")).trim(), "Quarterly figures");
    assert_eq!(words(Kind::Html(None), b"<html><script>no</script><p>yes").trim(), "yes");
    assert_eq!(words(Kind::Text(None), b"Gr\xfc\xdfe"), "Grüße");
}
