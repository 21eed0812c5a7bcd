"""What Python's own client does with a server: every answer is looked at."""

import imaplib
import sys
import threading
import time

PORT = int(sys.argv[1])


def connect():
    client = imaplib.IMAP4("127.0.0.1", PORT)
    client.login("ada", "secret")
    return client


def ok(answer):
    status, data = answer
    assert status == "OK", answer
    return data


def main():
    client = connect()
    assert "IDLE" in client.capabilities, client.capabilities
    ok(client.create('"Gr&APw-n"'))
    message = b"Subject: one\r\nFrom: a@x.test\r\n\r\n" + b"x" * 100_000 + b"\r\n"
    ok(client.append("INBOX", "(\\Seen)", None, message))
    ok(client.append("INBOX", None, None, b"Subject: two\r\n\r\nsecond\r\n"))
    assert ok(client.select("INBOX")) == [b"2"]
    assert ok(client.search(None, "UNSEEN")) == [b"2"]
    data = ok(client.fetch("1:2", "(UID RFC822.SIZE BODY.PEEK[])"))
    bodies = [part[1] for part in data if isinstance(part, tuple)]
    assert bodies[0] == message and len(bodies) == 2
    assert ok(client.store("2", "+FLAGS", "(\\Deleted)"))[0].startswith(b"2 (FLAGS (\\Deleted))")
    assert ok(client.copy("1", '"Gr&APw-n"'))
    assert ok(client.expunge()) == [b"2"]
    assert b"MESSAGES 1" in ok(client.status('"Gr&APw-n"', "(MESSAGES UIDNEXT)"))[0]
    assert len(ok(client.list())) == 6
    assert ok(client.sort("(REVERSE DATE)", "UTF-8", "ALL")) == [b"1"]
    assert ok(client.thread("REFERENCES", "UTF-8", "ALL")) == [b"(1)"]
    other = connect()
    ok(other.enable("UTF8=ACCEPT"))
    ok(other.append("INBOX", None, None, "Subject: gr\u00fcn\r\n\r\n".encode()))
    other.logout()
    assert ok(client.namespace())[0].startswith(b'(("" "/"))')
    assert ok(client.getquotaroot("INBOX"))
    assert client.status("nowhere", "(MESSAGES)")[0] == "NO"
    ok(client.noop())
    ok(client.unselect())
    client.logout()
    several = [threading.Thread(target=cycle) for _ in range(4)]
    for one in several:
        one.start()
    for one in several:
        one.join()
    print("done")


def cycle():
    client = connect()
    ok(client.select("Trash"))
    for _ in range(10):
        ok(client.append("Trash", None, None, b"Subject: x\r\n\r\n"))
        found = ok(client.uid("SEARCH", None, "ALL"))[0].split()
        if found:
            client.uid("STORE", found[0], "+FLAGS", "(\\Deleted)")
            ok(client.uid("EXPUNGE", found[0]))
        time.sleep(0.001)
    client.logout()


main()
