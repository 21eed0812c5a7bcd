//! HTML of strangers does nothing once it was made harmless, and people still read what it says.

use proptest::prelude::*;
use scrinium_mailbox::{MapBuilder, SafeHtml, SafeOptions, html_of_text, safe_html};

fn safe(html: &str) -> SafeHtml {
    let mut picture = |id: &str| (id == "logo").then(|| "data:image/png;base64,AAAA".to_owned());
    safe_html(html, SafeOptions { remote_pictures: false, inline_picture: &mut picture })
}

fn written(html: &str) -> String {
    safe(html).html
}

/// What holes in other programs were made of, each in a form of our own.
const HOSTILE: [&str; 42] = [
    "<script>harm()</script>",
    "<SCRIPT SRC=https://evil.example/x.js></SCRIPT>",
    "<img src=x onerror=harm()>",
    "<img src=\"https://evil.example/track.gif\">",
    "<img srcset='https://evil.example/a 2x'>",
    "<svg onload=harm()><animate onbegin=harm() attributeName=x dur=1s></svg>",
    "<svg><a xlink:href=\"javascript:harm()\"><text>x</text></a></svg>",
    "<svg><style><!--</style><img src=x onerror=harm()>--></svg>",
    "<math><mtext><table><mglyph><style><img src=x onerror=harm()></style></mglyph></table></mtext></math>",
    "<math href=\"javascript:harm()\">x</math>",
    "<a href=\"javascript:harm()\">x</a>",
    "<a href=\"java\tscript:harm()\">x</a>",
    "<a href=\" &#106;avascript:harm()\">x</a>",
    "<a href='data:text/html,<script>harm()</script>'>x</a>",
    "<a href=\"vbscript:harm()\">x</a>",
    "<iframe src=https://evil.example></iframe>",
    "<iframe srcdoc=\"<script>harm()</script>\"></iframe>",
    "<object data=https://evil.example></object><embed src=https://evil.example>",
    "<base href=https://evil.example/>",
    "<meta http-equiv=refresh content='0;url=https://evil.example'>",
    "<link rel=stylesheet href=https://evil.example/x.css><link rel=dns-prefetch href=//evil.example>",
    "<link rel=preconnect href=https://evil.example>",
    "<style>@import url(https://evil.example/x.css);body{background:url(https://evil.example/y)}</style>",
    "<p style=\"background:url(https://evil.example/y)\">x</p>",
    "<p style=\"background:u\\72l(https://evil.example/y)\">x</p>",
    "<p style=\"background-image:image-set('https://evil.example/y' 1x)\">x</p>",
    "<p style=\"--x:url(https://evil.example);background:var(--x)\">x</p>",
    "<p style=\"position:fixed;top:0;left:0;width:100%;height:100%\">x</p>",
    "<p style=\"width:expression(harm())\">x</p>",
    "<body background=https://evil.example/b.gif onload=harm()>x</body>",
    "<table background=https://evil.example/b.gif><tr><td background=https://evil.example/c.gif>x</table>",
    "<form action=https://evil.example><input name=password type=password><button formaction=javascript:harm()>x</button></form>",
    "<video poster=https://evil.example/p><source src=https://evil.example/v></video><audio src=https://evil.example/a>",
    "<noscript><p title=\"</noscript><img src=x onerror=harm()>\"></noscript>",
    "<textarea><img src=x onerror=harm()></textarea><title><img src=x onerror=harm()></title>",
    "<xmp><img src=x onerror=harm()></xmp><noembed><img src=x onerror=harm()></noembed>",
    "<template><img src=x onerror=harm()></template>",
    "<!--><img src=x onerror=harm()>--><!--[if IE]><script>harm()</script><![endif]-->",
    "<p title='\"><script>harm()</script>'>x</p>",
    "<p title=\"`><img src=x onerror=harm()>\">x</p>",
    "<a id=documentElement name=cookie class=shell href=https://ok.example>x</a>",
    "<details open ontoggle=harm()>x</details><marquee onstart=harm()>x</marquee>",
];

/// The tags of what was written: their names, and their attributes with their values.
fn tags(html: &str) -> Vec<(&str, Vec<(&str, &str)>)> {
    let mut found = Vec::new();
    let mut rest = html;
    while let Some((_, tag)) = rest.split_once('<') {
        // No value holds an angle bracket: they are all escaped.
        let (tag, after) = tag.split_once('>').expect("a tag ends");
        rest = after;
        let (name, mut left) = tag.split_once(' ').unwrap_or((tag, ""));
        let mut attributes = Vec::new();
        while let Some((attribute, value)) = left.split_once("=\"") {
            let (value, after) = value.split_once('"').expect("a value ends");
            attributes.push((attribute.trim(), value));
            left = after;
        }
        assert!(left.trim().is_empty(), "{left} is no attribute with a value: {html}");
        found.push((name.trim_start_matches('/'), attributes));
    }
    found
}

fn check_harmless(html: &str) {
    const FORBIDDEN: [&str; 24] = [
        "script", "style", "svg", "math", "iframe", "object", "embed", "base", "meta", "link", "form",
        "input", "button", "video", "audio", "source", "template", "noscript", "textarea", "title", "xmp",
        "body", "html", "frameset",
    ];
    const PLAIN: [&str; 29] = [
        "align",
        "alt",
        "bgcolor",
        "border",
        "cellpadding",
        "cellspacing",
        "color",
        "colspan",
        "dir",
        "face",
        "height",
        "hspace",
        "lang",
        "nowrap",
        "reversed",
        "rowspan",
        "rules",
        "size",
        "span",
        "start",
        "title",
        "type",
        "valign",
        "vspace",
        "width",
        "target",
        "rel",
        "referrerpolicy",
        "value",
    ];
    let out = written(html);
    for (name, attributes) in tags(&out) {
        assert!(!FORBIDDEN.contains(&name), "<{name}> came through: {html} → {out}");
        for (attribute, value) in attributes {
            let lower = value.to_ascii_lowercase();
            let is_fine = match attribute {
                "href" => {
                    ["https://", "http://", "mailto:", "tel:"].iter().any(|scheme| lower.starts_with(scheme))
                }
                "src" => lower.starts_with("data:image/"),
                "style" => ["url(", "image", "var(", "expression", "position", "\\", "@"]
                    .iter()
                    .all(|loads| !lower.contains(loads)),
                other => PLAIN.contains(&other),
            };
            assert!(is_fine, "{attribute}={value} came through: {html} → {out}");
        }
    }
}

#[test]
fn what_harms_in_other_programs_does_not_come_through() {
    for html in HOSTILE {
        check_harmless(html);
        // Within what is fine, and one inside of the other.
        check_harmless(&format!("<div><p title=\"{html}\">{html}</p><table><td>{html}"));
    }
    check_harmless(&HOSTILE.concat());
}

#[test]
fn what_a_message_says_is_still_read() {
    assert_eq!(
        written("<p style='color:#a00; font-size:14px' class=x>Dear <b>Ada</b>,<br>1 &lt; 2</p>"),
        "<p style=\"color:#a00;font-size:14px;\">Dear <b>Ada</b>,<br>1 &lt; 2</p>"
    );
    assert_eq!(written("<center><font color=red>x"), "<center><font color=\"red\">x</font></center>");
    assert_eq!(written("a</b></div><i>b</i></p>"), "a<i>b</i>");
    let inline = written("<img src='cid:logo' width=20 alt=Logo><img src='cid:other' alt=Other>");
    assert_eq!(
        inline,
        "<img width=\"20\" alt=\"Logo\" src=\"data:image/png;base64,AAAA\" referrerpolicy=\"no-referrer\">[Other]"
    );
    assert_eq!(html_of_text("a <b> & \"c\""), "<pre>a &lt;b&gt; &amp; &quot;c&quot;</pre>");
}

#[test]
fn pictures_of_other_servers_are_counted_and_come_only_when_asked_for() {
    let html = "<img src='https://a.example/1.png' alt=One><img src='http://a.example/2.png'><img src='//a.example/3'>";
    let left_out = safe(html);
    assert_eq!((left_out.html.as_str(), left_out.remote_pictures), ("[One]", 3));
    let mut none = |_: &str| None;
    let shown = safe_html(html, SafeOptions { remote_pictures: true, inline_picture: &mut none });
    assert_eq!(
        shown.html, "<img alt=\"One\" src=\"https://a.example/1.png\" referrerpolicy=\"no-referrer\">",
        "only what comes encrypted"
    );
}

#[test]
fn a_link_whose_text_names_another_host_says_where_it_leads() {
    let link = |href: &str, text: &str| written(&format!("<a href=\"{href}\">{text}</a>"));
    assert!(
        link("https://evil.example/", "https://bank.example/login").ends_with("</a> <b>[evil.example]</b>")
    );
    assert!(
        link("https://bank.example@evil.example/", "www.bank.example").ends_with("<b>[evil.example]</b>")
    );
    assert!(link("https://www.bank.example/x", "bank.example").ends_with("</a>"));
    assert!(link("https://www.bank.example/x", "https://bank.example").ends_with("</a>"));
}

#[test]
fn depth_length_and_numbers_are_bounded() {
    let deep = "<div>".repeat(100_000);
    assert!(written(&deep).len() < 2_000);
    let long = safe(&"<p>word</p>".repeat(600_000));
    assert!(long.is_cut && long.html.len() < (4 << 20) + 100, "{}", long.html.len());
    let many = written(&"<img src=cid:logo>".repeat(5_000));
    assert!(many.matches("<img").count() <= 500);
    let attributes = format!("<p {}>x</p>", "title=x align=left ".repeat(100_000));
    assert_eq!(written(&attributes), "<p title=\"x\" align=\"left\">x</p>");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whatever stands there, and in whatever order its pieces come.
    #[test]
    fn any_html_is_harmless(pieces in prop::collection::vec(prop_oneof![
        prop::sample::select(HOSTILE.to_vec()).prop_map(str::to_owned),
        "[<>\"'=/a-z !`&;:-]{0,12}",
        prop::sample::select(vec!["<div ", "style=\"", "title='", "href=", "</", "<!--", "-->", "<![CDATA[", "]]>", "<svg>", "</svg>", "<style>", "</style>", "\0", "\u{202e}"])
            .prop_map(str::to_owned),
    ], 0..12)) {
        let html = pieces.concat();
        check_harmless(&html);
        // What is harmless stays so, and means the same.
        let once = written(&html);
        check_harmless(&once);
    }
}

const MESSAGE: &str = "From: a@x.test\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: multipart/related; boundary=r\r\n\r\n--r\r\nContent-Type: multipart/alternative; boundary=a\r\n\r\n--a\r\n\r\nplain\r\n--a\r\nContent-Type: text/html; charset=iso-8859-1\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n<p>=E4</p>\r\n--a--\r\n--r\r\nContent-Type: image/png\r\nContent-ID: <logo@x.test>\r\nContent-Transfer-Encoding: base64\r\n\r\niVBORw0KGgo=\r\n--r--\r\n--b\r\n\r\nfooter\r\n--b\r\nContent-Type: text/plain; name=x\r\nContent-Disposition: attachment; filename*=UTF-8''Zahlen%20f%C3%BCr%0D%0AAda.csv\r\n\r\n1,2\r\n--b\r\nContent-Type: message/rfc822\r\n\r\nSubject: inner\r\nContent-Type: text/html\r\n\r\n<script>1</script>\r\n--b--\r\n";

#[test]
fn a_message_is_taken_apart_as_people_read_it() {
    let map = MapBuilder::map(MESSAGE.as_bytes());
    let bytes = |start: u64, end: u64| {
        &MESSAGE.as_bytes()[usize::try_from(start).unwrap()..usize::try_from(end).unwrap()]
    };
    let texts: Vec<(bool, String)> = map
        .shown_texts()
        .iter()
        .map(|text| (text.is_html, text.decode(bytes(text.body.start, text.body.end))))
        .collect();
    // Of alternatives the HTML, and what stands behind them; nothing of the message within.
    assert_eq!(texts, [(true, "<p>ä</p>".to_owned()), (false, "footer".to_owned())]);
    let files = map.shown_files();
    let told: Vec<_> =
        files.iter().map(|file| (file.name.as_str(), file.media_type.as_str(), file.decoded_bytes)).collect();
    assert_eq!(
        told,
        [
            ("", "image/png", 8),
            ("Zahlen fürAda.csv", "text/plain", 3),
            ("", "message/rfc822", files[2].decoded_bytes)
        ]
    );
    assert_eq!(files[0].content_id.as_deref(), Some("logo@x.test"));
}
