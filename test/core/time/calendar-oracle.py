"""Writes calendar-cases.json: rules drawn at random, with their dates by dateutil and zoneinfo, which share no code with core/time/calendar.ts.

python3 calendar-oracle.py COUNT SEED > calendar-cases.json
"""

import datetime
import json
import random
import sys
from zoneinfo import ZoneInfo

from dateutil import rrule

ZONES = """UTC Europe/Berlin Europe/London Europe/Dublin America/New_York America/Los_Angeles America/Sao_Paulo America/St_Johns
America/Santiago Asia/Kolkata Asia/Kathmandu Asia/Tokyo Australia/Sydney Australia/Lord_Howe Pacific/Auckland Pacific/Chatham
Pacific/Kiritimati Pacific/Honolulu Africa/Johannesburg America/Phoenix""".split()
DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
FIRST, LAST = datetime.date(2026, 1, 1), datetime.date(2030, 12, 31)


def draw(rng):
    months = sorted(rng.sample(range(1, 13), rng.choice([1, 2, 4, 4, 12])))
    if rng.random() < 0.5:
        day = {"kind": "date", "day": rng.choice([1, 2, 15, 28, 29, 30, 31, "last"])}
    else:
        day = {"kind": "weekday", "weekday": rng.choice(DAYS), "nth": rng.choice([1, 2, 3, 4, "last"])}
    # Hours in which clocks are changed are drawn more often.
    hour, minute = rng.choice([rng.randrange(24), 0, 1, 2, 3, 23]), rng.choice([0, 0, 15, 30, 59])
    return {"months": months, "day": day, "hour": hour, "minute": minute, "zone": rng.choice(ZONES)}


def days_of(rule):
    day = rule["day"]
    options = {"bymonth": rule["months"], "dtstart": datetime.datetime(FIRST.year, 1, 1)}
    if day["kind"] == "weekday":
        nth = -1 if day["nth"] == "last" else day["nth"]
        options["byweekday"] = getattr(rrule, day["weekday"][:2].upper())(nth)
    elif day["day"] == "last":
        options["bymonthday"] = -1
    elif day["day"] > 28:
        options.update(bymonthday=list(range(28, day["day"] + 1)), bysetpos=-1)
    else:
        options["bymonthday"] = day["day"]
    return rrule.rrule(rrule.MONTHLY, until=datetime.datetime(LAST.year, 12, 31), **options)


def instant(day, rule):
    # fold=0: the first of two, and the offset before a gap (PEP 495).
    local = day.replace(hour=rule["hour"], minute=rule["minute"], tzinfo=ZoneInfo(rule["zone"]), fold=0)
    return int(local.timestamp() * 1000)


def main():
    rng = random.Random(int(sys.argv[2]))
    cases = []
    for _ in range(int(sys.argv[1])):
        rule = draw(rng)
        cases.append({"rule": rule, "opensAtMs": [instant(day, rule) for day in days_of(rule)]})
    json.dump(cases, sys.stdout, separators=(",", ":"))


main()
