import base64
import html
import json
import os
import re
import shlex
import struct
import time
import unittest
from unittest import mock
from urllib.parse import quote, quote_plus

from support import FakeClock, FolderTest

from crucible_runner.store.file_store import FileStore
from crucible_runner.keys import Keys
from crucible_runner.logs.lines import LINE_BYTES_MAX, REWRITE_MS, LineSplitter
from crucible_runner.logs.book import CHUNK_BYTES, LogBook
from crucible_runner.logs.redact import Redactor
from crucible_runner.logs.shipper import MERGE_COUNT, Shipper
from crucible_runner.store.base import StoreError


class RedactorTest(unittest.TestCase):
    def test_replaces_values_in_all_their_forms(self):
        redactor = Redactor(['pa"ss/wörd', "two\nlines-of-it", "abc"])
        said = 'a pa"ss/wörd, %s, pa%%22ss%%2Fw%%C3%%B6rd, lines-of-it, abc' % json.dumps('pa"ss/wörd')
        self.assertEqual(redactor.clean_text(said), 'a ***, "***", ***, ***, abc')

    def test_the_longest_value_wins(self):
        self.assertEqual(Redactor(["secret", "secret-and-more"]).clean(b"secret-and-more"), b"***")

    def test_without_secrets_nothing_changes(self):
        self.assertEqual(Redactor([]).clean(b"text"), b"text")

    def test_hides_a_secret_in_base64_and_in_urls(self):
        secret = "s3cr3t/with+more?"
        redactor = Redactor([secret])
        for before in ("", "u", "us", "user:"):
            for encode in (base64.b64encode, base64.urlsafe_b64encode):
                encoded = encode((before + secret + "!").encode("utf-8"))
                cleaned = redactor.clean(b"Authorization: Basic " + encoded)
                self.assertIn(b"***", cleaned)
                # What is left around the mask must not be enough to read the secret.
                self.assertLess(len(cleaned) - len(b"Authorization: Basic ***"), len(before) * 4 // 3 + 8)
        for encoded in (quote(secret), quote(secret, safe=""), quote_plus(secret)):
            self.assertEqual(redactor.clean(("?key=%s&x" % encoded).encode()), b"?key=***&x")

    def test_hides_a_secret_however_a_program_escapes_it(self):
        secret = "s3cr3t/w\"ith'<more>&\\ü+😀 x"
        raw = secret.encode("utf-8")
        redactor = Redactor([secret])
        forms = {
            "hex": raw.hex(),
            "upper hex": raw.hex().upper(),
            "base16": base64.b16encode(b"ab" + raw).decode(),
            "bytes of Python": repr(raw),
            "text of Python": repr(secret),
            "ascii": ascii(secret),
            "unicode_escape": secret.encode("unicode_escape").decode(),
            "JSON": json.dumps({"a": secret}),
            "JSON with slashes": json.dumps(secret).replace("/", "\\/"),
            "JSON in JSON": json.dumps(json.dumps({"a": json.dumps(secret)})),
            "JSON, all escaped": "".join("\\u%04X" % unit for unit in struct.unpack("<%dH" % (len(secret.encode("utf-16-le")) // 2), secret.encode("utf-16-le"))),
            "URL": quote(secret),
            "URL in a URL": quote(quote(secret, safe=""), safe=""),
            "URL, lower": quote(secret, safe="").lower(),
            "URL, all escaped": "".join("%%%02x" % byte for byte in raw),
            "a form": quote_plus(secret),
            "HTML": html.escape(secret),
            "HTML without quotes": html.escape(secret, quote=False),
            "XML": secret.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("'", "&apos;").replace('"', "&quot;"),
            "HTML, all decimal": "".join("&#%d;" % ord(one) for one in secret),
            "HTML, all hex": "".join("&#x%X;" % ord(one) for one in secret),
            "HTML by names": secret.replace("&", "&amp;").replace("/", "&sol;").replace("+", "&plus;"),
            "shell": shlex.quote(secret),
            "shell, backslashes": re.sub(r"([^\w])", r"\\\1", secret),
            "shell, octal": "".join("\\%03o" % byte for byte in raw),
            "C": "".join("\\x%02X" % byte for byte in raw),
            "JSON of HTML": json.dumps(html.escape(secret)),
        }
        for before in range(5):
            forms["base32 %d" % before] = base64.b32encode(b"u" * before + raw + b"!").decode()
            forms["lower base32 %d" % before] = forms["base32 %d" % before].lower().rstrip("=")
        for name, form in forms.items():
            with self.subTest(name):
                cleaned = redactor.clean_text("before %s, after" % form)
                self.assertRegex(cleaned, r"^before .{0,24}\*\*\*.{0,16}, after$")
                self.assertNotIn("more", cleaned)

    def test_what_is_no_secret_stays_as_it_is(self):
        text = 'a %41 &amp; &nothing; \\u0041 \\n C:\\dir "\\\\" %zz &#65; 100% \\ '
        self.assertEqual(Redactor(["secret"]).clean_text(text), text)
        self.assertEqual(Redactor(["secret"]).clean_text(text + "%73ecret&#65;"), text + "***&#65;")
        data = bytes(range(256)) * 3
        self.assertEqual(Redactor(["secret"]).clean(data), data)

    def test_a_long_line_of_escapes_takes_no_longer_than_its_length(self):
        redactor = Redactor(["\\" * 40 + "x", "&" * 40, "%" * 40])
        for unit in (b"\\", b"&#38;", b"%25", b"&amp;", b"%2525", b"\\u005c"):
            began = time.process_time()
            redactor.clean(unit * (LINE_BYTES_MAX // len(unit)))
            self.assertLess(time.process_time() - began, 1, unit)


class LineSplitterTest(unittest.TestCase):
    def split(self, data, size, secrets=()):
        splitter = LineSplitter(lambda: Redactor(secrets))
        lines = []
        for at in range(0, len(data), size):
            lines += splitter.feed(data[at : at + size], 0)
        return lines + splitter.end()

    def test_gives_the_same_lines_however_the_data_arrive(self):
        data = "a\n\nb\r\n10%\r20%\r\n\rc\nünïcode\r".encode() + b"x" * 40_000 + b"\nend"
        for size in (1, 2, 3, 7, 4096, len(data)):
            lines = self.split(data, size)
            self.assertEqual(lines[:5], [b"a", b"", b"b", b"20%", b"c"], size)
            self.assertEqual(b"".join(lines[5:-1]), b"x" * 40_000)
            self.assertEqual(lines[-1], b"end")
            self.assertLessEqual(max(map(len, lines)), LINE_BYTES_MAX)

    def test_a_secret_is_found_wherever_a_long_line_is_split(self):
        for offset in range(12):
            data = b"z" * (LINE_BYTES_MAX - offset) + b"the-secret" + b"z" * 100
            for size in (5, 4096, len(data)):
                self.assertNotIn(b"secret", b"".join(self.split(data, size, ["the-secret"])))
        escaped = "".join("&#x%04X;" % ord(one) for one in "the-secret").encode()
        for offset in range(0, len(escaped), 7):
            data = b"z" * (LINE_BYTES_MAX - offset) + escaped + b"z" * 100
            lines = self.split(data, 4096, ["the-secret"])
            self.assertEqual(b"z" * (LINE_BYTES_MAX - offset) + b"***" + b"z" * 100, b"".join(lines), offset)

    def test_a_bar_that_never_ends_takes_no_memory(self):
        splitter = LineSplitter(lambda: Redactor([]))
        for step in range(10_000):
            self.assertEqual(splitter.feed(b"\r%d/10000 [%s" % (step, b"=" * 100), 0), [])
        self.assertLess(len(splitter.unfinished), 200)
        self.assertTrue(splitter.unfinished.startswith(b"9999/"))


    def test_lines_that_almost_are_bars_take_no_time(self):
        hostile = (
            b"|" * 700 + b"1/" * 600 + b" " * 60 + b"x]",
            b"|" * 1000 + b"|1/2 [" + b"|" * 900 + b"]",
            b"1" * 2000 + b"it a]",
            b"| /" * 676 + b" a]",
            b"\x1b[A" * 5_000 + b"a]",
            b"a" + b"\x1b[A" * 5_000,
        )
        for line in hostile:
            splitter = LineSplitter(lambda: Redactor([]))
            began = time.process_time()
            for _ in range(8):
                splitter.feed(b"\r" + line + b"\r" + line + b"\n", 0)
            self.assertLess(time.process_time() - began, 1, line[:20])

    def lines_over(self, texts, every_ms):
        splitter = LineSplitter(lambda: Redactor([]))
        lines = []
        for at, text in enumerate(texts):
            lines += splitter.feed(text, at * every_ms)
        return lines + splitter.end()

    def test_a_bar_is_shown_now_and_then_and_at_its_end(self):
        bar = b"\r%3d%%|####  | %d/100 [00:01<00:03, 11.9it/s]"
        texts = [bar % (at, at) for at in range(101)] + [b"\n", b"done\n"]
        lines = self.lines_over(texts, REWRITE_MS // 20)
        self.assertEqual([line.split(b"| ")[-1].split(b"/")[0] for line in lines[:-1]], [b"20", b"40", b"60", b"80", b"100"])
        self.assertEqual(lines[-1], b"done")
        self.assertEqual(len(self.lines_over(texts, 1)), 2)

    def test_a_bar_that_stands_still_is_shown_once(self):
        splitter = LineSplitter(lambda: Redactor([]))
        self.assertEqual(splitter.feed(b"\r 1%|  | 1/100 [00:01<00:03, 11.9it/s]", 0), [])
        self.assertTrue(splitter.is_waiting)
        self.assertEqual(splitter.tick(REWRITE_MS - 1), [])
        self.assertEqual(splitter.tick(REWRITE_MS), [b" 1%|  | 1/100 [00:01<00:03, 11.9it/s]"])
        self.assertEqual(splitter.tick(REWRITE_MS * 3), [])
        self.assertEqual(splitter.feed(b"\n", REWRITE_MS * 4), [])

    def test_an_unfinished_line_without_rewriting_is_not_cut(self):
        splitter = LineSplitter(lambda: Redactor([]))
        self.assertEqual(splitter.feed(b"loading ... ", 0) + splitter.tick(REWRITE_MS * 9), [])
        self.assertFalse(splitter.is_waiting)
        self.assertEqual(splitter.feed(b"ok\n", REWRITE_MS * 10), [b"loading ... ok"])

    def test_nested_bars_do_not_flood(self):
        outer = b"\rEpoch: %d%%|#  | %d/50 [00:00<00:00,  9.2it/s]\n"
        inner = b"\rBatch: %d%%|## | %d/5 [00:00<00:00, 88.0it/s]\x1b[A\n"
        texts = []
        for epoch in range(50):
            texts += [outer % (epoch, epoch)] + [inner % (batch * 20, batch) for batch in range(5)]
            texts += [b"\r                         \x1b[A"]
        texts += [b"\rEpoch: 100%|###| 50/50 [00:00<00:00,  9.2it/s]\n", b"done\n"]
        lines = self.lines_over(texts, REWRITE_MS // 70)
        self.assertLess(len(lines), 10)
        self.assertEqual(lines[-2:], [b"Epoch: 100%|###| 50/50 [00:00<00:00,  9.2it/s]", b"done"])

    def test_what_is_printed_amid_a_bar_is_never_dropped(self):
        texts = [b"\r 10%|#  | 1/10 [00:01<00:03, 11.9it/s]step 1: loss 0.5\n", b"\r 20%|#  | 2/10 [00:01<00:03, 1it/s]\nplain\n"]
        self.assertEqual(
            self.lines_over(texts, 1),
            [
                b" 10%|#  | 1/10 [00:01<00:03, 11.9it/s]step 1: loss 0.5",
                b" 20%|#  | 2/10 [00:01<00:03, 1it/s]",
                b"plain",
            ],
        )


class LogBookTest(FolderTest):
    def setUp(self):
        super().setUp()
        self.clock = FakeClock()

    def book(self, **options):
        book = LogBook(self.folder, self.clock, **options)
        book.begin_after(0)
        return book

    def lines_of(self, chunks):
        return [json.loads(line) for chunk in chunks for line in chunk.read().splitlines()]

    def test_numbers_lines_and_closes_chunks_by_size_and_age(self):
        book = self.book()
        book.add("out", [b"x" * 1000] * 300)
        self.assertEqual(len(book.take(100)), 1)
        book.close_chunk(lambda age_ms: age_ms >= 2_000)
        self.assertEqual(len(book.take(100)), 1)
        self.clock.advance(2_000)
        book.close_chunk(lambda age_ms: age_ms >= 2_000)
        lines = self.lines_of(book.take(100))
        self.assertEqual([line["n"] for line in lines], list(range(1, 301)))

    def test_what_waits_is_on_disk(self):
        book = self.book()
        book.add("err", [b"x" * 1000] * 300)
        (name,) = os.listdir(self.folder)
        self.assertRegex(name, r"^000000000001-\d{12}\.ndjson$")
        again = LogBook(self.folder, self.clock)
        again.remark("said before the numbers were known")
        again.begin_after(0)
        (chunk,) = again.take(10)
        self.assertEqual(again.lines, chunk.last + 1)

    def test_a_chunk_cut_by_the_end_of_the_runner_is_none(self):
        book = self.book()
        book.add("out", [b"x"])
        with mock.patch("os.replace", side_effect=KeyboardInterrupt), self.assertRaises(KeyboardInterrupt):
            book.close_chunk(lambda _: True)
        self.assertEqual(len(os.listdir(self.folder)), 1)
        again = LogBook(self.folder, FakeClock())
        again.begin_after(0)
        self.assertEqual((again.take(9), os.listdir(self.folder)), ([], []))

    def test_drops_the_oldest_and_says_how_many_without_a_hole_in_the_numbers(self):
        book = self.book(waiting_bytes_max=4 * CHUNK_BYTES)
        for _ in range(40):
            book.add("out", [b"x" * 1000] * 300)
        book.close_chunk(lambda _: True)
        chunks = book.take(1000)
        self.assertLessEqual(sum(chunk.size for chunk in chunks), 5 * CHUNK_BYTES)
        lines = self.lines_of(chunks)
        gap = lines[0]
        self.assertEqual((gap["s"], gap["n"]), ("gap", gap["lost"]))
        self.assertEqual([line["n"] for line in lines[1:]], list(range(gap["n"] + 1, 40 * 300 + 1)))
        self.assertEqual(len(os.listdir(self.folder)), len(chunks) - 1)

    def test_never_drops_what_is_on_its_way(self):
        book = self.book(waiting_bytes_max=2 * CHUNK_BYTES)
        book.add("out", [b"x" * 1000] * 300)
        (first,) = book.take(1)
        for _ in range(10):
            book.add("out", [b"x" * 1000] * 300)
        self.assertTrue(os.path.exists(first.path))
        book.sent()
        self.assertEqual(book.take(1)[0].first, first.last + 1)

    def test_a_full_disk_keeps_lines_in_memory_within_bounds(self):
        book = self.book()
        with mock.patch("builtins.open", side_effect=OSError(28, "No space left on device")):
            for _ in range(100):
                book.add("out", [b"x" * 1000] * 300)
        chunks = book.take(1000)
        self.assertLess(sum(len(chunk.body) for chunk in chunks), 5 * 1024 * 1024)
        lines = self.lines_of(chunks)
        self.assertEqual(lines[0]["s"], "gap")
        self.assertEqual(lines[1]["n"], lines[0]["lost"] + 1)

    def test_remarks_are_redacted(self):
        book = self.book()
        book.redact(["the-secret"])
        book.remark("it is the-secret\nreally")
        book.close_chunk(lambda _: True)
        lines = self.lines_of(book.take(1))
        self.assertEqual(
            [(line["s"], line["m"]) for line in lines], [("runner", "it is ***"), ("runner", "really")]
        )


class QuietTrouble:
    def __init__(self):
        self.happenings = 0

    def happened(self, error):
        self.happenings += 1

    def passed(self):
        pass


class ShipperTest(FolderTest):
    def setUp(self):
        super().setUp()
        os.mkdir(self.at("waiting"))
        os.mkdir(self.at("store"))
        self.book = LogBook(self.at("waiting"), FakeClock())
        self.book.begin_after(0)
        self.store = FileStore(self.at("store"))
        self.keys = Keys("job-a", 1)
        self.trouble = QuietTrouble()
        self.shipper = Shipper(self.book, self.store, self.keys, self.trouble)

    def send_one(self, text=b"x"):
        self.book.add("out", [text])
        self.book.close_chunk(lambda _: True)
        self.shipper._send(self.book.take(1))

    def stored(self):
        return [key[len(self.keys.logs) :] for key in self.store.list(self.keys.logs)]

    def test_merges_so_many_chunks_into_one(self):
        for _ in range(MERGE_COUNT - 1):
            self.send_one()
        self.assertEqual(len(self.stored()), MERGE_COUNT - 1)
        self.send_one()
        self.assertEqual(self.stored(), ["000000000001-%012d.ndjson" % MERGE_COUNT])
        body = self.store.get(self.keys.log_chunk(1, MERGE_COUNT))
        self.assertEqual(
            [json.loads(line)["n"] for line in body.splitlines()], list(range(1, MERGE_COUNT + 1))
        )
        self.assertEqual(os.listdir(self.at("waiting")), [])

    def test_a_merge_that_fails_leaves_the_small_files(self):
        for _ in range(MERGE_COUNT - 1):
            self.send_one()
        put = self.store.put
        calls = []

        def failing(key, body):
            calls.append(key)
            if len(calls) == 2:
                raise StoreError("away")
            put(key, body)

        self.store.put = failing
        self.assertRaises(StoreError, self.send_one)
        self.assertEqual(len(self.stored()), MERGE_COUNT)
        self.send_one()
        self.assertEqual(len(self.stored()), MERGE_COUNT + 1)

    def test_what_cannot_be_read_again_becomes_a_gap(self):
        self.book.add("out", [b"one", b"two"])
        self.book.close_chunk(lambda _: True)
        (chunk,) = self.book.take(1)
        os.unlink(chunk.path)
        self.shipper._send([chunk])
        self.shipper._send(self.book.take(1))
        (line,) = self.store.get(self.keys.log_chunk(1, 2)).splitlines()
        self.assertEqual((json.loads(line)["s"], json.loads(line)["lost"]), ("gap", 2))

    def test_sends_again_whatever_went_wrong(self):
        put, trouble = self.store.put, []
        self.trouble.happened = trouble.append

        def unwilling(key, body):
            if not trouble:
                raise ValueError("something stands there")
            put(key, body)

        self.store.put = unwilling
        self.book.add("out", [b"x"])
        self.shipper.start()
        with mock.patch("crucible_runner.store.retry._FIRST_PAUSE_SECONDS", 0):
            self.shipper.finish(lambda: False)
        self.assertEqual([str(error) for error in trouble], ["something stands there"])
        self.assertEqual(self.stored(), ["000000000001-000000000001.ndjson"])

    def test_sends_again_what_the_store_did_not_take(self):
        put, failures = self.store.put, [StoreError("away"), StoreError("away")]

        def failing(key, body):
            if failures:
                raise failures.pop()
            put(key, body)

        self.store.put = failing
        self.shipper.start()
        self.book.add("out", [b"one"])
        self.shipper.finish(lambda: False)
        self.assertEqual(self.trouble.happenings, 2)
        self.assertEqual(self.stored(), ["000000000001-000000000001.ndjson"])
