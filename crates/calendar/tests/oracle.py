"""Answers questions about recurrence by other programs' words: a line of JSON in, one out.

Arguments: the folder of scripts/calendar-oracles, and what to ask: dateutil, libical or recurring.
"""

import ctypes
import datetime
import glob
import json
import os
import select
import signal
import sys

folder, oracle = sys.argv[1:3]
sys.path.insert(0, os.path.join(folder, "python"))
FORM = "%Y%m%dT%H%M%S"
SECONDS_EACH = 1
EPOCH = datetime.datetime(1970, 1, 1)


def by_dateutil(question):
    from dateutil.rrule import rrulestr

    start = datetime.datetime.strptime(question["start"], FORM)
    horizon = datetime.datetime.strptime(question["horizon"], FORM)
    found = []
    for time in rrulestr(question["rule"], dtstart=start):
        if time >= horizon or len(found) >= question["most"]:
            break
        found.append(time.strftime(FORM))
    return found


def by_libical(question):
    name = glob.glob(os.path.join(folder, "debian/usr/lib/*/libical.so.3"))[0]
    expand = ctypes.CDLL(name).icalrecur_expand_recurrence
    expand.argtypes = [ctypes.c_char_p, ctypes.c_long, ctypes.c_int, ctypes.POINTER(ctypes.c_long)]
    start = datetime.datetime.strptime(question["start"], FORM)
    times = (ctypes.c_long * question["most"])()
    rule = question["rule"] + ";UNTIL=" + question["horizon"]
    if not expand(rule.encode(), int((start - EPOCH).total_seconds()), question["most"], times):
        return "refused"
    return [(EPOCH + datetime.timedelta(seconds=time)).strftime(FORM) for time in times if time]


def by_recurring(question):
    import icalendar
    import recurring_ical_events

    calendar = icalendar.Calendar.from_ical(question["calendar"])
    instant = lambda text: datetime.datetime.strptime(text, FORM).replace(tzinfo=datetime.timezone.utc)
    found = recurring_ical_events.of(calendar).between(instant(question["from"]), instant(question["to"]))
    times = [event["DTSTART"].dt for event in found]
    return sorted(time.astimezone(datetime.timezone.utc).strftime(FORM) for time in times)


def answer(question):
    """In a process of its own, which is ended when it takes too long: libical cannot be interrupted."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            text = json.dumps({"dateutil": by_dateutil, "libical": by_libical, "recurring": by_recurring}[oracle](question))
        except BaseException as error:
            text = json.dumps("failed: " + repr(error)[:200])
        os.write(writer, text.encode())
        os._exit(0)
    os.close(writer)
    parts = []
    while select.select([reader], [], [], SECONDS_EACH)[0]:
        part = os.read(reader, 65536)
        if not part:
            break
        parts.append(part)
    else:
        os.kill(child, signal.SIGKILL)
        parts = [b'"took too long"']
    os.close(reader)
    os.waitpid(child, 0)
    return b"".join(parts).decode() or '"ended"'


if oracle == "dateutil":
    import dateutil.rrule  # noqa: F401, once for all children
if oracle == "recurring":
    import icalendar  # noqa: F401
    import recurring_ical_events  # noqa: F401
for line in sys.stdin:
    print(answer(json.loads(line)), flush=True)
