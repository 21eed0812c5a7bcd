//! Parts of messages as senders and programs on the way make them: which are shown, which are files, where they end, and
//! in which character set they are.

use encoding_rs::Encoding;
use scrinium_mail::{LONGEST_BODY, MessageOptions, memo_of_message};
use serde_json::{Map, Value};

fn memo(source: impl AsRef<[u8]>) -> Map<String, Value> {
    memo_of_message(source.as_ref(), &MessageOptions::default())
}

fn body(source: impl AsRef<[u8]>) -> String {
    memo(source)["Body"].as_str().unwrap().trim().to_owned()
}

/// Names and sizes of the files of a message.
fn files(source: impl AsRef<[u8]>) -> Vec<(String, u64)> {
    let memo = memo(source);
    let list = |name: &str| memo.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    let names = list("$FileNames").into_iter().map(|name| name.as_str().unwrap().to_owned());
    names.zip(list("$FileSizes").into_iter().map(|size| size.as_u64().unwrap())).collect()
}

fn named(list: &[(&str, u64)]) -> Vec<(String, u64)> {
    list.iter().map(|(name, size)| ((*name).to_owned(), *size)).collect()
}

#[test]
fn what_names_no_type_is_plain_text() {
    for kind in ["text", "plain", "/", "text/plain/x", "; charset=utf-8", "\"\"", "=?utf-8?Q?text?="] {
        let source = format!("Content-Type: {kind}\n\nHello\n");
        assert_eq!((body(&source), files(&source)), ("Hello".to_owned(), named(&[])), "{kind}");
    }
    assert_eq!(body("Content-Type: multipart; boundary=b\n\n--b\n\nHello\n--b--\n"), "Hello");
}

#[test]
fn text_with_a_name_is_shown_unless_it_is_attached() {
    let part = |header: &str, text: &str| format!("--b\nContent-Type: text/plain{header}\n\n{text}\n");
    let whole = |parts: &str| format!("Content-Type: multipart/mixed; boundary=b\n\n{parts}--b--\n");

    let alone = "Content-Type: text/plain; name=note.txt\n\nthe note\n";
    assert_eq!((body(alone), files(alone)), ("the note".to_owned(), named(&[("note.txt", 9)])));
    let inline = part("\nContent-Disposition: inline; filename=in.txt", "inner");
    let parts = whole(&[part("", "hello"), inline, part("; name=kept.txt", "away")].concat());
    assert_eq!(
        (body(&parts), files(&parts)),
        ("hello\ninner".to_owned(), named(&[("in.txt", 5), ("kept.txt", 4)]))
    );
    let only = whole(&part("; name=only.txt", "only"));
    assert_eq!((body(&only), files(&only)), ("only".to_owned(), named(&[("only.txt", 4)])));
    let attached = whole(&part("\nContent-Disposition: attachment", "away"));
    assert_eq!((body(&attached), files(&attached)), (String::new(), named(&[("", 4)])));
    let odd = whole(&part("\nContent-Disposition: no-such; filename=x.txt", "shown"));
    assert_eq!((body(&odd), files(&odd)), ("shown".to_owned(), named(&[("x.txt", 5)])));
}

#[test]
fn a_report_says_what_happened_and_holds_what_it_is_of() {
    let details = "Reporting-MTA: dns; a.example\n\nFinal-Recipient: rfc822; ben@b.example\nStatus: 5.1.1\n";
    let status = format!("--r\nContent-Type: message/delivery-status\n\n{details}");
    let rest = format!("{status}--r\nContent-Type: message/rfc822\n\nSubject: hi\n\nhi\n--r--\n");
    let header = "Content-Type: multipart/report; report-type=delivery-status; boundary=r\n\n";
    let told = format!("{header}--r\n\nBen cannot be reached.\n{rest}");
    assert_eq!(body(&told), "Ben cannot be reached.");
    let sizes = named(&[("", u64::try_from(details.len()).unwrap() - 1), ("", 15)]);
    assert_eq!(files(&told), sizes);
    // Without words for people the details are what there is to read.
    assert_eq!(body(format!("{header}{rest}")), details.trim());
}

#[test]
fn a_message_in_a_message_is_a_file() {
    let inner =
        "From: ben@b.example\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\ninner text\n--b--\n";
    let of = |kind: &str, header: &str, encoded: &str| {
        format!(
            "Content-Type: multipart/{kind}; boundary=x\n\n--x\n\n{encoded}\n--x\n{header}\n\n{encoded}\n--x--\n"
        )
    };
    let mixed = of("mixed", "Content-Type: message/rfc822; name=old.eml", inner);
    assert_eq!(files(&mixed), named(&[("old.eml", u64::try_from(inner.len()).unwrap())]));
    let memo = memo(&mixed);
    assert!(
        memo["Subject"] == "" && memo["From"] == "",
        "the fields of the inner message are not this one's: {memo:?}"
    );
    // In a digest every part is a message that does not say otherwise (RFC 2046 §5.1.5).
    assert_eq!(body(of("digest", "", inner)), "");
    assert_eq!(files(of("digest", "", inner)).len(), 2);
}

#[test]
fn parts_end_where_their_own_boundary_says() {
    let header = "Content-Type: multipart/mixed; boundary=b\n\n";
    for (parts, text) in [
        ("a preamble\n--b\n\none\n--b\n\ntwo\n--b--\nan epilogue\n--b\n\nthree\n", "one\ntwo"),
        ("--b\n\none\n--b\n\ntwo, and no end\n", "one\ntwo, and no end"),
        ("--b\n\none\n--b--x\n--bb\n--b-\n--b\n\ntwo\n--b--", "one\n--b--x\n--bb\n--b-\ntwo"),
        ("--b  \t\n\none\r\n--b-- \r\n", "one"),
        ("--b\n--b\n\none\n--b--\n", "one"),
        ("no boundary at all\n", "no boundary at all"),
        ("--b\n\n --b\n\n>--b--\n--b--\n", "--b\n\n>--b--"),
    ] {
        assert_eq!(body(format!("{header}{parts}")), text, "{parts}");
    }
    for (outer, inner) in [("b", "bb"), ("bb", "b"), ("=_x", "=_x=_y"), ("=_x=_y", "=_x")] {
        let source = format!(
            "Content-Type: multipart/mixed; boundary=\"{outer}\"\n\n--{outer}\nContent-Type: multipart/alternative; \
             boundary=\"{inner}\"\n\n--{inner}\n\nplain\n--{inner}\nContent-Type: text/html\n\n<p>html\n--{inner}--\n\
             --{outer}\n\nlast\n--{outer}--\n"
        );
        assert_eq!(body(&source), "plain\nlast", "{outer} around {inner}");
    }
    let followed = "Content-Type: multipart/mixed; boundary=\"b\" X-Next: field\n\n--b\n\nfound\n--b--\n";
    assert_eq!(body(followed), "found");
    let unclosed = "Content-Type: multipart/mixed; boundary=o\n\n--o\nContent-Type: multipart/mixed; boundary=i\n\n--i\n\n\
                    inner\n--o\n\nouter\n--o--\n";
    assert_eq!(body(unclosed), "inner\nouter");
}

#[test]
fn long_texts_are_cut_between_characters() {
    let limit = 4 * LONGEST_BODY;
    for shift in 0..3 {
        let text = format!("{}{}", "a".repeat(shift), "\u{20ac}".repeat(limit / 3 + 10));
        let body = body(format!("Content-Type: text/plain; charset=utf-8\n\n{text}"));
        assert!(text.starts_with(&body) && body.len() > LONGEST_BODY - 3, "{shift}");
        // Nearly all of it is tags, so that the cut lies within what is shown.
        let filler = "<i></i>".repeat((limit - 40) / 7);
        let start = format!("Content-Type: text/html; charset=utf-8\n\n{filler}");
        let begun = start.len() - "Content-Type: text/html; charset=utf-8\n\n".len();
        for piece in ["&eacute;", "&#8364;", "\u{20ac}"] {
            let tail = format!("{}{}", "x".repeat(limit - begun - 4 - shift), piece.repeat(20));
            let shown = self::body(format!("{start}{tail}"));
            let broken = shown.contains(['&', '#', '\u{fffd}', ';']);
            assert!(shown.starts_with('x') && !broken, "{piece} {shift}: {shown}");
        }
    }
}

#[test]
fn text_of_no_declared_set_is_read_in_the_likely_one() {
    let header = |domain: &str| format!("From: Ann <ann@mail.example.{domain}>\nMessage-ID: <1@a>\n");
    for (label, domain, subject, text) in [
        ("Big5", "tw", "會議記錄", "請查收附件中的會議記錄，如有問題請與我聯絡。"),
        ("GBK", "cn", "会议记录", "请查收附件中的会议记录，如有问题请与我联系。"),
        ("Shift_JIS", "jp", "会議の議事録", "会議の議事録をお送りします。よろしくお願いいたします。"),
        ("EUC-KR", "kr", "회의록", "회의록을 보내 드립니다. 확인해 주시기 바랍니다."),
        ("KOI8-U", "ru", "Протокол собрания", "Высылаю протокол собрания, посмотрите его, пожалуйста."),
        ("windows-1251", "ru", "Протокол собрания", "Высылаю протокол собрания, посмотрите его, пожалуйста."),
        (
            "windows-1250",
            "pl",
            "Protokół zebrania",
            "Przesyłam protokół zebrania, proszę go przejrzeć jeszcze dziś. Są w nim zmiany.",
        ),
        ("windows-1252", "de", "Grüße", "Das Protokoll der Sitzung für übermorgen schicke ich später."),
        ("windows-1253", "gr", "Πρακτικά", "Σας στέλνω τα πρακτικά της συνεδρίασης… Άννα, ευχαριστώ."),
        (
            "windows-1254",
            "tr",
            "Toplantı tutanağı",
            "Toplantı tutanağını gönderiyorum, lütfen inceleyiniz. Teşekkürler.",
        ),
        ("windows-1255", "il", "פרוטוקול הישיבה", "אני שולח את פרוטוקול הישיבה, אנא עיינו בו."),
        ("windows-1256", "com", "محضر الاجتماع", "أرسل لكم محضر الاجتماع، يرجى الاطلاع عليه."),
    ] {
        let encode = |text: &str| Encoding::for_label(label.as_bytes()).unwrap().encode(text).0.into_owned();
        let top = header(domain);
        for kind in ["", "Content-Type: text/html\n", "Content-Type: text/plain; charset=unknown-8bit\n"] {
            let source = [
                top.as_bytes(),
                b"Subject: ",
                &encode(subject),
                b"\n",
                kind.as_bytes(),
                b"\n",
                &encode(text),
            ];
            let memo = memo(source.concat());
            assert_eq!(
                (memo["Subject"].as_str(), memo["Body"].as_str()),
                (Some(subject), Some(text)),
                "{label} {kind}"
            );
            assert!(memo["$ParseNotes"].to_string().contains(&format!("read as {label}")), "{memo:?}");
        }
        // Where a part declares the set, the header's characters are of it, and so are names of files.
        let part =
            format!("--b\nContent-Type: text/plain; charset={label}\n\nok\n--b\nContent-Type: a/b; name=\"");
        let source = [
            &b"Content-Type: multipart/mixed; boundary=b\nSubject: "[..],
            &encode(subject),
            b"\n\n",
            part.as_bytes(),
            &encode(subject),
            b".doc\"\n\n\n--b--\n",
        ];
        let memo = memo(source.concat());
        assert_eq!(memo["Subject"], subject, "{label}");
        assert_eq!(memo["$FileNames"][0], format!("{subject}.doc"), "{label}");
    }
}
