"""Plays dialogues of IMAP: what a client says, and what a server answers, in the form of Apache James's protocol tests.

Arguments: the folder of the scripts, the address of the server, the password of its administrator, and the port of IMAP. One line a
script on standard output: its name, and where it failed, if it did.

What a server may choose is not held against it: the texts behind codes, the order of untagged responses to one command and of flags,
the separator of levels, `\\Recent` and what goes with it, which RFC 9051 does not have, and mailboxes that everybody has.
"""

import base64
import concurrent.futures
import json
import os
import re
import socket
import sys
import urllib.request

FOLDER, ADDRESS, ADMINISTRATOR, PORT = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
USUAL = ("Drafts", "Sent", "Trash", "Junk", "Archive")
# Commands whose arguments are names of mailboxes.
NAMING = re.compile(
    r"^\S+ (CREATE|DELETE|RENAME|SELECT|EXAMINE|STATUS|LIST|LSUB|XLIST|SUBSCRIBE|UNSUBSCRIBE|COPY|MOVE|UID COPY|UID MOVE|APPEND"
    r"|GETACL|SETACL|DELETEACL|MYRIGHTS|LISTRIGHTS|GETMETADATA|SETMETADATA|GETQUOTAROOT|REPLACE|UID REPLACE)\b", re.I)
# Scripts that begin before somebody has logged in, and those that greet by themselves.
UNKNOWN = {"Authenticate", "AuthenticatePlain", "Login", "ValidAuthenticated", "ValidSelected"}
GREETING = {"BadTag", "BogusCommand", "IllegalTag", "JustTag", "LoginThreeStrikes", "NoCommand", "NoTag", "SharedMailbox", "Welcome"}
# Those that work with a mailbox of four messages.
SELECTED = {
    "Copy", "AppendToSelected", "ExpungeBasics", "FetchBodyNoSection", "FetchEnvelope", "FetchInternalDate", "FetchSaveDate",
    "FetchNILSaveDate", "FetchText", "FetchMultipartAlternative", "FetchMultipartMixed", "FetchMultipartMixedComplex",
    "FetchMultipartBodyStructure", "FetchSimpleBodyStructure", "FetchStructureComplex", "FetchStructureEmbedded", "FetchHeaderFields",
    "FetchHeaderFieldsNot", "Metadata", "MetadataWithBinaryData", "MetadataWithLimitation", "CreateErrorWithLongName", "Move",
    "MoveNoMSG", "ObjectId", "BodyPartialFetch", "HeaderPartialFetch", "MimePartialFetch", "TextPartialFetch", "Quota", "Rename",
    "RenameHierarchy", "RenameSelected", "Check", "Expunge", "FetchMultipleMessages", "FetchPeek", "FetchSingleMessage", "Namespace",
    "Replace", "Search", "SearchSaveDate", "Store", "Uid", "FetchRFC822", "FetchRFC822Header", "FetchRFC822Text",
}


class Failed(Exception):
    pass


def put(path, value):
    token = base64.b64encode(f"admin:{ADMINISTRATOR}".encode()).decode()
    request = urllib.request.Request(f"http://{ADDRESS}{path}", json.dumps(value).encode(), method="PUT")
    request.add_header("Authorization", f"Basic {token}")
    request.add_header("Content-Type", "application/json")
    urllib.request.urlopen(request).close()


class Client:
    """A connection. What it hears is kept until it is asked for."""

    def __init__(self):
        self.stream = socket.create_connection(("127.0.0.1", PORT), 20)
        self.file = self.stream.makefile("rb")

    def line(self):
        """A line with its literals; nothing at the end."""
        whole = b""
        while True:
            line = self.file.readline()
            whole += line
            literal = re.search(rb"\{(\d+)\}\r\n$", line)
            if not literal:
                return whole.decode("latin-1").rstrip("\r\n")
            whole += self.file.read(int(literal[1]))

    def send(self, text):
        self.stream.sendall(text.encode("latin-1"))


def sorted_flags(found):
    """A list of flags in one order, without those that a server need not have; of a line or of a pattern."""
    flags = [flag for flag in found[2].split() if not flag.lower().endswith("recent")]
    return found[1] + " ".join(sorted(flags, key=str.lower)) + found[3]


def fetched(line, end):
    """A response to FETCH with flags and UID first; `end` is how it ends."""
    for item in (r"FLAGS \\?\([^()]*\)", r"UID \d+"):
        found = re.match(rf"(?s)(.* FETCH \\?\()(.*?)(?:(?<= )|(?<=\())({item}) ?(.*)$", line)
        if found and not found[4].startswith("BODY[") or found and found[2]:
            before = found[2].rstrip(" ")
            rest = " ".join(part for part in (before, found[4]) if part and part != end)
            tail = end if found[4] == end else ""
            line = f"{found[1]}{found[3]} {rest}{tail}" if rest else f"{found[1]}{found[3]}{end}"
    return line


def canonical(line):
    line = fetched(line, ")") if " FETCH " in line else line
    line = re.sub(r"((?<!PERMANENT)FLAGS \()([^)]*)(\))", sorted_flags, line)
    line = re.sub(r'(MYRIGHTS .* "?)(\w+)("?)$', lambda found: found[1] + "".join(sorted(found[2])) + found[3], line)
    status = re.match(r"(\* STATUS .* \()(.*)(\))$", line)
    if status:
        words = status[2].split()
        pairs = sorted(pair for pair in zip(words[::2], words[1::2]) if pair[0] != "RECENT")
        return status[1] + " ".join(" ".join(pair) for pair in pairs) + status[3]
    return line


def canonical_pattern(pattern):
    pattern = fetched(pattern, "\\)") if " FETCH " in pattern else pattern
    pattern = re.sub(r"((?<!PERMANENT)FLAGS \\\()((?:[^)\\]|\\\\)*)(\\\))", sorted_flags, pattern)
    pattern = re.sub(r'(MYRIGHTS .* \\?"?)(\w+)(\\?"?)$', lambda found: found[1] + "".join(sorted(found[2])) + found[3], pattern)
    status = re.match(r"(\\\* STATUS .* \\\()(.*)(\\\))$", pattern)
    if status:
        words = status[2].split()
        pairs = sorted(pair for pair in zip(words[::2], words[1::2]) if pair[0] != "RECENT")
        return status[1] + " ".join(" ".join(pair) for pair in pairs) + status[3]
    return pattern


def ours(command):
    """A command with names of mailboxes that have our separator."""
    tag, rest = command.split(" ", 1)
    return tag + " " + re.sub(r"(?<=[\w%*\"])\.(?=[\w%*])|(?<=\w)\.$", "/", rest)


def left_of(gone):
    """What is left of some messages after these were told to be gone, each by its number at that moment."""
    messages = list(range(1000))
    for number in gone:
        if number <= len(messages):
            messages.pop(number - 1)
    return messages


def is_ignored(line):
    if re.match(r"\* \d+ RECENT$|\* OK \[(UNSEEN|URLMECH|MAILBOXID|HIGHESTMODSEQ|UIDNEXT|NOMODSEQ|CLOSED|PERMANENTFLAGS|COPYUID)", line):
        return True
    listed = re.match(r"\* (?:(?:LIST|LSUB|XLIST) \([^)]*\) \"?.\"?|STATUS) \"?(\w*)\"?", line)
    return bool(listed and listed[1] in USUAL) or "\\Noselect" in line


def same(pattern, line):
    """Whether a line is as a script wants it."""
    tagged = re.match(r"(\S+) (OK|NO|BAD)\b", pattern)
    if tagged and not pattern.startswith("\\*"):
        # A server may refuse by either word.
        wanted = "OK" if tagged[2] == "OK" else "(NO|BAD)"
        return re.match(rf"{re.escape(tagged[1])} {wanted}\b", line) is not None
    if pattern.startswith("\\* ID"):
        return line.startswith("* ID")
    pattern = re.sub(r"(?<= )\{(\d+)\\?\}", r"\\{\1\\}", pattern)
    status = re.match(r"\\\* (OK|NO|BAD|BYE|PREAUTH)", pattern)
    if status:
        code = re.match(r"\\\* \w+ \\\[([A-Z-]+)", pattern)
        return line.startswith(f"* {status[1]} [{code[1]}" if code else f"* {status[1]}")
    pattern, line = canonical_pattern(pattern.replace("\\{0\\}\r\n", '""')), canonical(line)
    if re.match(r"\\\* (LIST|LSUB|XLIST|STATUS|ACL|MYRIGHTS)", pattern):
        pattern = pattern.replace('"\\.\\"', '"/"').replace('"\\."', '"/"').replace('\\"\\.\\"', '"/"').replace("\\.", "/")
    bare = lambda text: re.sub(r'\\?"([\w/&%+. -]+?)\\?"', r"\1", text)
    told = line if "UID" in pattern else re.sub(r"(FETCH \()UID \d+ ", r"\1", line)
    for one in (pattern, bare(pattern)):
        for other in (line, bare(line), told):
            try:
                if re.fullmatch(one, other, re.S | re.I):
                    return True
            except re.error:
                if one == other:
                    return True
    return False


def turns(text):
    """The steps of a script: (kind, what)."""
    found, in_group = [], False
    for line in text.split("\n"):
        line = line.rstrip("\r")
        if line.startswith("#"):
            continue
        kind, said = line[:2], line[2:].removeprefix(" ")
        if kind == "C:":
            found.append(("C", said))
        elif kind == "S:":
            found.append(("S", said))
        elif line.startswith("SESSION:"):
            found.append(("SESSION", line[8:].strip()))
    return found


class Player:
    def __init__(self, person):
        self.person, self.clients, self.session = person, {}, "0"

    def client(self, greets=True):
        if self.session not in self.clients:
            client = self.clients[self.session] = Client()
            if greets:
                client.line()
        return self.clients[self.session]

    def localised(self, text):
        for word in re.findall(r"(?:[A-Za-z0-9+/]{4}){3,}(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?", text):
            known = base64.b64decode(word)
            if b"imapuser" in known:
                text = text.replace(word, base64.b64encode(known.replace(b"imapuser", self.person.encode())).decode())
        return text.replace("imapuser", self.person).replace("user.Boby", "Users/bob").replace("#private." + self.person + ".", "")

    def log_in(self):
        self.client().send(f"in LOGIN {self.person} password\r\n")
        line = self.client().line()
        if not line.startswith("in OK"):
            raise Failed(line)

    def play(self, steps):
        """Each command with what is wanted of it."""
        place, literal, names = 0, 0, False
        while place < len(steps):
            kind, said = steps[place]
            place += 1
            if kind == "SESSION":
                self.session = said
                if said not in self.clients:
                    self.log_in()
                continue
            if kind == "S":
                place -= 1
                place = self.hear(steps, place)
                literal = 0
                continue
            said = self.localised(said)
            if literal <= 0:
                command = said
                if NAMING.match(said):
                    said = ours(said)
            found = re.search(r"\{(\d+)(\+?)\}$", said) if literal <= 0 else None
            bytes_ahead = int(found[1]) if found else literal - len(said) - 2
            if found:
                # Some of the scripts count one byte more than they say.
                said_ahead = sum(len(what) + 2 for what in self.said_ahead(steps, place)) - 2
                if said_ahead == bytes_ahead - 1:
                    bytes_ahead -= 1
                    said = said[:found.start()] + f"{{{bytes_ahead}{found[2]}}}"
            self.client().send(said + "\r\n")
            literal = bytes_ahead

    def said_ahead(self, steps, place):
        """What the client says before it is answered, behind one continuation."""
        while place < len(steps) and (steps[place][0] == "C" or steps[place][1].startswith("\\+")):
            if steps[place][0] == "C":
                yield self.localised(steps[place][1])
            place += 1

    def hear(self, steps, place):
        """What comes up to a tagged line, or one that asks to go on, is compared as a whole."""
        wanted = []
        while place < len(steps) and steps[place][0] == "S":
            pattern = self.localised(steps[place][1])
            place += 1
            # A line that belongs to the one before: a literal's.
            if not re.match(r"\\\*|\\\+|\S+ (OK|NO|BAD)|\\\(", pattern) and wanted:
                wanted[-1] += "\r\n" + pattern
                continue
            wanted.append(pattern)
            if re.match(r"\\\+|(?!\\\*)\S+ (OK|NO|BAD)\b", pattern):
                break
        last = wanted[-1] if wanted else ""
        heard = []
        while True:
            line = self.client(greets=False).line()
            if not line:
                break
            heard.append(line)
            if line.startswith("+") or re.match(r"(?!\*)\S+ (OK|NO|BAD)\b", line):
                break
            if re.match(r"\\\* (BYE|OK IMAP)", last) and len(heard) >= len(wanted):
                break
        left = list(heard)
        gone = [int(found[1]) for found in (re.match(r"\\\* (\d+) EXPUNGE$", one) for one in wanted) if found]
        if gone:
            told = [int(found[1]) for found in (re.match(r"\* (\d+) EXPUNGE$", one) for one in heard) if found]
            if left_of(gone) != left_of(told):
                raise Failed(f"wanted {wanted!r}, heard {heard!r}")
            wanted = [one for one in wanted if not re.match(r"\\\* \d+ EXPUNGE$", one)]
            left = [one for one in left if not re.match(r"\* \d+ EXPUNGE$", one)]
        for pattern in wanted:
            if re.match(r"\\\* (\\d\+|\d+) RECENT|\\\* OK \\\[(UNSEEN|URLMECH|MAILBOXID|HIGHESTMODSEQ|UIDNEXT|PERMANENTFLAGS|COPYUID)", pattern):
                continue
            if pattern.startswith("\\+"):
                match = next((line for line in left if line.startswith("+")), None)
            else:
                match = next((line for line in left if same(pattern, line)), None)
            if match is None:
                raise Failed(f"wanted {pattern!r}, heard {heard!r}")
            left.remove(match)
        # News of flags may always come.
        left = [line for line in left if not is_ignored(line) and not re.fullmatch(r"\* \d+ FETCH \((UID \d+ )?(MODSEQ \(\d+\) )?FLAGS \([^)]*\)\)", line)]
        if left:
            raise Failed(f"heard more: {left!r}, wanted {wanted!r}")
        return place


def run(path, number):
    name = os.path.splitext(os.path.basename(path))[0]
    person = f"j{os.getpid()}x{number}"
    put(f"/directory/person:{person}", {
        "_id": f"person:{person}", "Form": "Person", "ShortName": person, "FullName": [person], "password": "password"})
    player = Player(person)
    try:
        greets = name in GREETING or "aclIntegration" in path
        if greets:
            player.client(greets=False)
        elif name not in UNKNOWN:
            if "SESSION:" not in open(path).read():
                player.log_in()
        if name in SELECTED:
            player.play(turns(open(os.path.join(FOLDER, "SelectedStateSetup.test")).read()))
        player.play(turns(open(path, encoding="latin-1").read()))
        return ""
    except (Failed, OSError) as error:
        return str(error) or type(error).__name__


def main():
    paths = []
    for root, _, files in os.walk(FOLDER):
        paths += [os.path.join(root, file) for file in files if file.endswith(".test")]
    only = set(sys.argv[5:])
    # Guesses make an address wait, so that scripts with many of them come last.
    numbered = enumerate(sorted(paths, key=lambda path: ("Strikes" in path, path)))
    chosen = [(path, number) for number, path in numbered if not only or os.path.basename(path)[:-5] in only]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        results = pool.map(lambda one: run(*one), [one for one in chosen if "Strikes" not in one[0]])
        for (path, _), result in zip(chosen, results):
            print(os.path.basename(path)[:-5], " ".join(result.split()), sep="\t", flush=True)
    for path, number in chosen:
        if "Strikes" in path:
            print(os.path.basename(path)[:-5], run(path, number), sep="\t", flush=True)


main()
