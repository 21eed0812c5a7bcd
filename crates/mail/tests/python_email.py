"""Reads messages with Python's `email`, for the test `python_email`, which compares them with memos.

Each line of standard input is a JSON object: `path` of a message, and `set`, the character set in which the memo was read
where the message declares none (Python guesses none), or null. Each line of standard output is one for the same message:

    subject, from, to, cc   what the header says: a text, lists of addresses
    date                    seconds since 1970, or null
    body                    the text that a reader shows; html: whether HTML is in it; flowed: whether text of RFC 3676 is
    first                   what `get_body` chooses, where that is plain text
    files                   lists of name and size, null where Python does not tell it
    raw                     header fields as they stand, by their names, a character for each byte
    codes                   whether a text declares a character set that Python does not know

The policy is `email.policy.default`: its parser follows RFC 5322 with the obsolete forms. Only where Python leaves a
question to its caller it is answered here: which parts are shown, what HTML says, and character sets by the names that
the Encoding Standard gives them, as browsers and mail programs read them (ISO-8859-1 is Windows-1252 there, and so on).
"""

import binascii
import codecs
import datetime
import email
import email.policy
import html.parser
import json
import re
import sys
import warnings

warnings.simplefilter("ignore")

POLICY = email.policy.default

# Labels of the Encoding Standard, and the codecs of Python that are nearest.
STANDARD = {
    "iso-8859-1": "cp1252", "latin-1": "cp1252", "latin1": "cp1252", "l1": "cp1252", "iso8859-1": "cp1252",
    "iso_8859-1": "cp1252", "iso-8859-9": "cp1254", "iso-8859-11": "cp874", "tis-620": "cp874",
    "gb2312": "gb18030", "gbk": "gb18030", "x-gbk": "gb18030", "gb_2312-80": "gb18030", "chinese": "gb18030",
    "ks_c_5601-1987": "cp949", "ks_c_5601": "cp949", "euc-kr": "cp949", "shift_jis": "cp932", "x-sjis": "cp932",
    "shift-jis": "cp932", "sjis": "cp932", "big5": "big5hkscs", "x-euc-jp": "euc_jp", "x-mac-cyrillic": "mac_cyrillic",
    "iso-2022-jp": "iso2022_jp_ext", "csiso2022jp": "iso2022_jp_ext", "iso-8859-8-i": "iso8859_8",
    "windows-874": "cp874", "chinesebig5": "big5hkscs", "iso-8859-1-windows-3.1-latin-1": "cp1252", "unicode-1-1-utf-7": "utf-7", "x-unicode-2-0-utf-7": "utf-7",
}  # fmt: skip
# They say nothing of bytes from 128 on.
UNDECLARED = {
    "", "us-ascii", "ascii", "7bit", "8bit", "unknown-8bit", "x-unknown", "unknown", "default", "default_charset", "none",
    "iso-ir-6", "binary", "ansi_x3.4-1968",
}  # fmt: skip
HIDDEN = {"style", "script", "title", "textarea", "iframe", "noembed", "noframes"}
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}


def attempt(read, instead=None):
    """What Python gives, or `instead` where it fails: whatever it stumbles over, it has no answer then."""
    try:
        return read()
    except Exception:  # noqa: BLE001
        return instead


def codec_of(label):
    label = (label or "").strip().strip("\"'").lower()
    if label in UNDECLARED:
        return None
    name = STANDARD.get(label, label)
    return attempt(lambda: codecs.lookup(name).name, "unknown")


class Text(html.parser.HTMLParser):
    """The words of HTML that a reader sees, and the numbers of lists."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.words, self.raw, self.hidden, self.depth, self.lists = [], None, None, 0, []

    def handle_starttag(self, tag, attributes):
        if self.raw or tag in HIDDEN:
            self.raw = self.raw or tag
            return
        if self.hidden:
            self.depth += tag == self.hidden
            return
        attributes = dict(attributes)
        style = "".join((attributes.get("style") or "").lower().split())
        if ("hidden" in attributes or "display:none" in style) and tag not in VOID:
            self.hidden, self.depth = tag, 1
            return
        if tag in ("img", "area"):
            self.words.append(" " + (attributes.get("alt") or "") + " ")
        if tag in ("ul", "ol", "menu", "dir"):
            first = attempt(lambda: int(attributes.get("start", "1")), 1)
            self.lists.append(first if tag == "ol" else None)
        if tag == "li" and self.lists and self.lists[-1] is not None:
            self.words.append(f" {self.lists[-1]} ")
            self.lists[-1] += 1

    def handle_endtag(self, tag):
        if self.raw:
            self.raw = None if tag == self.raw else self.raw
        elif self.hidden:
            self.depth -= tag == self.hidden
            self.hidden = self.hidden if self.depth else None
        elif tag in ("ul", "ol", "menu", "dir") and self.lists:
            self.lists.pop()

    def handle_data(self, data):
        if not self.raw and not self.hidden:
            self.words.append(data)


def shown_html(text):
    parser = Text()
    attempt(lambda: parser.feed(text))
    attempt(parser.close)
    return "".join(parser.words)


def without_files(text):
    """A text without the files that uuencode has put into it, and their names and sizes."""
    kept, files, waiting = [], [], text.split(b"\n")
    place = 0
    while place < len(waiting):
        begin = re.match(rb"begin [0-7]{3,4} +(\S.*?)\s*$", waiting[place])
        end = place + 1
        size = 0 if begin else None
        while size is not None and end < len(waiting) and waiting[end].rstrip() != b"end":
            line = waiting[end].rstrip(b"\r")
            decoded = attempt(lambda: binascii.a2b_uu(line))  # noqa: B023
            size = None if decoded is None else size + len(decoded)
            end += 1
        if size is None or end == len(waiting):
            kept.append(waiting[place])
            place += 1
        else:
            files.append([begin[1].decode("latin-1"), size])
            place = end + 1
    return b"\n".join(kept), files


class Reader:
    def __init__(self, source, guessed):
        self.message = email.message_from_bytes(source, policy=POLICY)
        self.guessed = codec_of(guessed)
        if self.guessed == "unknown":
            raise ValueError(f"no codec of Python is known here for {guessed}")
        self.found = {"html": False, "flowed": False, "codes": False, "files": []}
        declared = [codec_of(attempt(lambda: part.get_content_charset())) for part in self.message.walk()]  # noqa: B023
        declared = [codec for codec in declared if codec not in (None, "unknown", "utf-8")]
        self.of_header = declared[0] if declared else None

    def decoded(self, octets, label, header=False):
        codec = codec_of(label)
        if codec == "unknown":
            self.found["codes"] = True
        if codec in (None, "unknown"):
            text = attempt(lambda: octets.decode("utf-8"))
            if text is not None:
                return text
            codec = (self.of_header if header else None) or self.guessed or "utf-8"
        return octets.decode(codec, "replace")

    def fields(self, name):
        for key, raw in self.message.raw_items():
            if key.lower() == name:
                octets = raw.encode("utf-8", "surrogateescape")
                yield POLICY.header_factory(name, self.decoded(octets, "", header=True).replace("\r", "").replace("\n", ""))

    def subject(self):
        return attempt(lambda: str(next(self.fields("subject"), "")), "")

    def addresses(self, name):
        fields = attempt(lambda: list(self.fields(name)), [])
        found = [address.addr_spec for field in fields for address in attempt(lambda: field.addresses, ())]  # noqa: B023
        return [address for address in found if "@" in address]

    def date(self):
        moment = attempt(lambda: next(self.fields("date")).datetime)
        if moment is None:
            return None
        return attempt(lambda: int(moment.replace(tzinfo=moment.tzinfo or datetime.timezone.utc).timestamp()))

    def name_of(self, part):
        name = attempt(part.get_filename)
        if name and any("\udc80" <= character <= "\udcff" or character == "\ufffd" for character in name):
            octets = name.encode("utf-8", "surrogateescape")
            return self.decoded(octets, "", header=True)
        return name

    def text_of(self, part):
        octets = attempt(lambda: part.get_payload(decode=True), b"") or b""
        label = attempt(part.get_content_charset)
        if part.get_content_subtype() == "html":
            self.found["html"] = True
            if codec_of(label) is None:
                meta = re.search(rb"(?i)charset=[\"']?([-\w.:]+)", octets[:1024])
                label = meta[1].decode("ascii") if meta else label
            return shown_html(self.decoded(octets, label))
        self.found["flowed"] |= attempt(lambda: part.get_param("format", "").lower()) == "flowed"
        octets, files = without_files(octets)
        self.found["files"] += files
        return self.decoded(octets, label)

    def texts(self, part, within="message"):
        """The plain text and the HTML text of a part, either of which may be None."""
        kind = part.get_content_type()
        if part.get_content_maintype() == "multipart" and part.is_multipart():
            inner = "alternative" if kind == "multipart/alternative" else "mixed"
            found = [self.texts(child, inner) for child in part.get_payload()]
            if inner == "alternative":
                plain = next((plain for plain, _ in found if plain is not None), None)
                return plain, next((web for _, web in found if web is not None), None)
            texts = [shown(*pair) for pair in found if pair != (None, None)]
            return ("\n".join(texts) if texts else None), None
        disposition = attempt(part.get_content_disposition)
        name = self.name_of(part)
        is_text = kind in ("text/plain", "text/html") or (part.get_content_maintype() == "text" and within == "message")
        is_multipart = part.get_content_maintype() == "multipart"
        is_file = disposition == "attachment" or (disposition is None and within == "mixed" and name)
        is_shown = is_multipart or (is_text and not is_file)
        if not is_shown or (name and not is_multipart):
            size = None
            if not part.is_multipart():
                size = len(attempt(lambda: part.get_payload(decode=True), b"") or b"")
            self.found["files"].append([name or "", size])
        if is_shown:
            text = self.text_of(part)
            return (None, text) if kind == "text/html" else (text, None)
        is_report = kind in ("message/delivery-status", "message/disposition-notification")
        if "alone" not in self.found and (is_text or is_report) and disposition != "attachment":
            self.found["alone"] = part
        return None, None

    def body(self):
        text = shown(*self.texts(self.message))
        alone = self.found.pop("alone", None)
        if not text.strip() and alone is not None:
            if alone.is_multipart():
                return "\n".join(attempt(child.as_string, "") for child in alone.get_payload())
            text = self.text_of(alone)
        return text

    def first(self):
        part = attempt(lambda: self.message.get_body(("plain",)))
        octets = attempt(lambda: part.get_payload(decode=True)) if part else None
        if octets is None:
            return None
        return self.decoded(without_files(octets)[0], attempt(part.get_content_charset))

    def result(self):
        body = attempt(self.body, "")
        raw = {}
        for key, value in self.message.raw_items():
            octets = value.encode("utf-8", "surrogateescape")
            raw.setdefault(key.lower(), octets.decode("latin-1"))
        return {
            "subject": self.subject(),
            "from": self.addresses("from")[:1],
            "to": self.addresses("to"),
            "cc": self.addresses("cc"),
            "date": self.date(),
            "body": body,
            "first": self.first(),
            "raw": raw,
            **self.found,
        }


def shown(plain, web):
    if plain is not None and (plain.strip() or web is None):
        return plain
    return web or ""


def whole(value):
    """A value whose texts hold no halves of surrogate pairs, which no JSON may hold."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {key: whole(one) for key, one in value.items()}
    return [whole(one) for one in value] if isinstance(value, list) else value


def main():
    for line in sys.stdin:
        wanted = json.loads(line)
        with open(wanted["path"], "rb") as file:
            source = file.read()
        found = Reader(source, wanted["set"]).result()
        print(json.dumps(whole(found)))


if __name__ == "__main__":
    main()
