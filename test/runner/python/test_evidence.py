import json
import os
import unittest
from types import SimpleNamespace
from unittest import mock

from support import FolderTest

from crucible_runner.checkpoint.evidence import COMPLETE, QUIET, SETTLED, Circumstances, Contents, Evidence, Formats, Judge
from crucible_runner.checkpoint.generations import Generation, Generations, shape_of
from crucible_runner.checkpoint.scan import FileStamp, Selection, scan, select

QUIET_MS = 1_000
NOTHING = Contents(None, False, None, None, None)
PROOF = NOTHING._replace(proof="model.pt ends with its zip directory")
FOLDER = PROOF._replace(proof="trainer_state.json is there", is_folder_proof=True)


def stamp(size, version=1):
    return FileStamp(size, version, 1, 1, 0o600)


class JudgeTest(unittest.TestCase):
    def standing(self, contents=NOTHING, quiet_ms=QUIET_MS, **facts):
        """What a save of 100 bytes in model.pt counts as; earlier complete ones were of `before` bytes."""
        sizes = facts.get("sizes", {"model.pt": 100})
        files = {path: stamp(size) for path, size in sizes.items()}
        selection = Selection(facts.get("all_files", files), {}, ".", None, None, frozenset(files.items()), files)
        generation = Generation(1, files, 0, facts.get("saved_step"))
        generation.is_doubtful = facts.get("is_doubtful", False)
        generation.is_superseded = facts.get("is_superseded", False)
        shapes = [shape_of(each if isinstance(each, dict) else {"model.pt": each}) for each in facts.get("before", ())]
        saves = Generations((), shapes, QUIET_MS)
        saves.pause_ms = facts.get("pause_ms", 0)
        saves.closed.extend(facts.get("closed", ()))
        judge = Judge("", QUIET_MS, facts.get("markers", ()))
        judge.formats = SimpleNamespace(judge=lambda selection, files: contents)
        self.asked_of_open_files = mock.Mock(return_value=facts.get("open_file"))
        now = Circumstances(quiet_ms, facts.get("step"), self.asked_of_open_files, facts.get("ended_well"))
        return judge.judge(selection, generation, saves, now)

    def assert_counts(self, expected, *args, **facts):
        """Expected is a state and a kind of evidence, or words of a hindrance."""
        evidence, hindrance = self.standing(*args, **facts)
        got = hindrance if evidence is None else (evidence.state, evidence.kind)
        self.assertEqual(got, expected)

    def test_quiet_alone_is_only_provisional(self):
        self.assert_counts("", quiet_ms=999)
        self.assert_counts((QUIET, "quiet"), quiet_ms=1_000)
        self.assertEqual(self.standing(quiet_ms=1_000)[0].text, "nothing changed for 1 s")
        self.assert_counts((QUIET, "quiet"), quiet_ms=5_999)
        self.assert_counts((SETTLED, "quiet"), quiet_ms=6_000)
        # Where a save paused for 5 s once, one and a half of that may be a pause, too.
        self.assert_counts((QUIET, "quiet"), quiet_ms=7_499, pause_ms=5_000)
        self.assert_counts((SETTLED, "quiet"), quiet_ms=7_500, pause_ms=5_000)

    def test_a_program_that_trains_on_is_not_in_the_midst_of_saving(self):
        for step, saved_step, expected in (
            (11, 10, (QUIET, "quiet")),
            (12, 10, (SETTLED, "went-on")),
            (None, 10, (QUIET, "quiet")),
            (12, None, (QUIET, "quiet")),
        ):
            self.assert_counts(expected, step=step, saved_step=saved_step)
        self.assertEqual(self.standing(step=15, saved_step=10)[0].text, "the program trained on for 5 steps")

    def test_what_a_format_proves(self):
        for name, contents, quiet_ms, before, expected in (
            ("a file, the first of its kind", PROOF, 1_000, (), (QUIET, "format")),
            ("the same, long after", PROOF, 6_000, (), (COMPLETE, "format")),
            ("a file, like an earlier complete one", PROOF, 500, (100,), (COMPLETE, "format")),
            ("the same, too early", PROOF, 499, (100,), ""),
            ("a file, less than the earlier ones", PROOF, 1_000, (120,), (QUIET, "format")),
            ("the same, long after", PROOF, 6_000, (120,), (SETTLED, "quiet")),
            ("a folder, the first of its kind", FOLDER, 500, (), (COMPLETE, "format")),
            ("a folder, less than the earlier ones", FOLDER, 500, (120,), (COMPLETE, "format")),
            ("a folder, too early", FOLDER, 499, (), ""),
        ):
            with self.subTest(name):
                self.assert_counts(expected, contents, quiet_ms, before=before)

    def test_a_document_that_may_be_settings_is_not_complete_before_another_save_is_like_it(self):
        settings = PROOF._replace(may_be_settings=True)
        self.assert_counts((SETTLED, "quiet"), settings, 60_000)
        self.assert_counts((SETTLED, "went-on"), settings, step=12, saved_step=10)
        self.assert_counts((COMPLETE, "format"), settings, before=(100,))
        self.assert_counts((COMPLETE, "next"), settings, is_superseded=True)

    def test_a_member_that_lacks_what_its_neighbours_have_is_not_proven(self):
        names = ["10/model", "10/done", "20/model", "20/done", "30/model"]
        all_files = {name: stamp(50, version) for version, name in enumerate(names)}
        self.assert_counts((QUIET, "quiet"), PROOF, before=(100,), all_files=all_files)
        self.assertEqual(
            self.standing(PROOF, before=(100,), all_files=all_files)[0].text, "20/done has no matching file yet"
        )
        all_files["30/done"] = stamp(0, 9)
        self.assert_counts((COMPLETE, "format"), PROOF, before=(100,), all_files=all_files)

    def test_a_torn_file_is_never_one(self):
        torn = NOTHING._replace(torn="model.pt lacks the directory at the end of a zip")
        for facts in (
            {"quiet_ms": 60_000},
            {"ended_well": True},
            {"is_superseded": True},
            {"step": 12, "saved_step": 10},
        ):
            self.assert_counts(torn.torn, torn, **facts)
            self.assert_counts("the disk was full when it was written", is_doubtful=True, **facts)

    def test_what_is_missing_by_its_format_only_delays(self):
        missing = NOTHING._replace(missing="trainer_state.json does not exist yet")
        self.assert_counts(missing.missing, missing, 999)
        self.assertEqual(self.standing(missing)[0], Evidence(QUIET, "quiet", missing.missing))
        self.assert_counts((SETTLED, "quiet"), missing, 6_000)

    def test_far_less_than_before_is_no_checkpoint_of_its_own(self):
        for facts in {"quiet_ms": 60_000}, {"ended_well": True}, {"is_superseded": True}:
            self.assert_counts("", before=(1_000,), sizes={"config.json": 100}, **facts)

    def test_the_end_of_a_program_vouches_for_what_it_saved(self):
        self.assert_counts((COMPLETE, "end"), quiet_ms=0, ended_well=True)
        self.assert_counts("", quiet_ms=0, ended_well=False)
        self.assert_counts((QUIET, "quiet"), ended_well=False)
        written = PROOF._replace(is_one_written=True)
        self.assert_counts((QUIET, "format"), written, quiet_ms=0, ended_well=False)
        for facts in ({}, {"ended_well": False, "before": (100,)}, {"ended_well": False, "before": (120,)}):
            self.assert_counts("", written, quiet_ms=0, **facts)
        self.assert_counts("", PROOF, quiet_ms=0, ended_well=False)

    def test_a_file_that_is_held_open_is_waited_for_while_the_program_runs(self):
        held = "model.pt is held open for writing by pid 7"
        self.assert_counts(held, open_file=held, quiet_ms=60_000)
        self.assert_counts(held, PROOF, open_file=held, before=(100,))
        self.assert_counts((QUIET, "quiet"), open_file=held, ended_well=False)
        # Asking costs time: not before all is quiet.
        self.standing(quiet_ms=999)
        self.assertEqual(self.asked_of_open_files.call_count, 0)

    def test_a_log_of_results_is_trusted_once_it_is_quiet(self):
        held = {"open_file": "results.jsonl is held open for writing by pid 7", "sizes": {"results.jsonl": 5}}
        self.assert_counts((SETTLED, "quiet"), **held)
        self.assertEqual(self.standing(**held)[0].text, "it only grows, and nothing changed for 1 s")
        self.assert_counts("", quiet_ms=999, **held)

    def test_what_the_next_save_proves(self):
        before = [{"model.pt": 100, "optimizer.pt": 100}]
        small = Generation(1, {"model.pt": stamp(100)}, 0, None)
        both = {"model.pt": stamp(100), "optimizer.pt": stamp(100)}
        far_less = "it is much smaller than earlier checkpoints"
        for name, facts, expected in (
            ("the first", {}, (COMPLETE, "next")),
            ("one like the earlier ones", {"before": [{"model.pt": 100}]}, (COMPLETE, "next")),
            ("one that holds less", {"before": before}, far_less),
            ("with files that it has not written anew", {"before": before, "all_files": both}, (COMPLETE, "next")),
            ("one as small as the two before", {"before": before, "closed": [small, small]}, (COMPLETE, "next")),
            ("one as small as only the one before", {"before": before, "closed": [small]}, far_less),
        ):
            with self.subTest(name):
                self.assert_counts(expected, quiet_ms=0, is_superseded=True, **facts)

    def test_where_the_job_names_markers_nothing_else_counts(self):
        markers = {"markers": ["DONE", "*.json"]}
        both = {"sizes": {"7/model.pt": 9, "7/DONE": 1, "7/a.json": 1}, "all_files": {}}
        self.assert_counts((COMPLETE, "marker"), quiet_ms=0, **markers, **both)
        self.assertEqual(self.standing(**markers, **both)[0].text, "DONE is there")
        one = {"sizes": {"7/model.pt": 9, "7/DONE": 1}}
        self.assert_counts("*.json is not there", FOLDER, 999, **markers, **one)
        self.assert_counts((QUIET, "quiet"), FOLDER, 60_000, **markers, **one)
        self.assertEqual(self.standing(FOLDER, **markers, **one)[0].text, "*.json is not there")
        self.assert_counts("*.json is not there", FOLDER, is_superseded=True, **markers, **one)
        self.assert_counts((QUIET, "quiet"), FOLDER, ended_well=True, **markers, **one)
        held = "7/model.pt is held open for writing by pid 7"
        self.assert_counts(held, open_file=held, **markers, **one)
        self.assert_counts((QUIET, "quiet"), open_file=held, ended_well=True, **markers, **one)
        self.assert_counts("the disk was full when it was written", is_doubtful=True, **markers, **both)

    def test_trust_goes_from_quiet_to_complete(self):
        trusts = [Evidence(state, "", "").trust for state in (QUIET, SETTLED, COMPLETE)]
        self.assertEqual(trusts, [0, 1, 2])
        document = {"state": COMPLETE, "evidence": {"kind": "end", "text": "it ended"}}
        self.assertEqual(Evidence(COMPLETE, "end", "it ended").document(), document)


class FormatsTest(FolderTest):
    def judged(self, **files):
        for path, body in files.items():
            self.write("ck/" + path, body, "w" if isinstance(body, str) else "wb")
        selection = select(scan(self.at("ck")), frozenset())[0]
        return Formats(self.at("ck")).judge(selection, selection.changed)

    def npy(self, size):
        """A whole array of so many bytes in all."""
        header = b"{'descr': '|u1', 'fortran_order': False, 'shape': (%d,), }" % (size - 128)
        return b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little") + header.ljust(117) + b"\n" + bytes(size - 128)

    def test_files_that_prove_themselves_must_be_nearly_all(self):
        for unknown, is_proven in (10, True), (100, True), (101, False):
            self.setUp()
            contents = self.judged(**{"model.npy": self.npy(900), "other.bin": b"\x01" * unknown})
            self.assertEqual(contents.proof is not None, is_proven, unknown)

    def test_one_torn_file_spoils_all(self):
        contents = self.judged(**{"model.npy": self.npy(9_000), "other.npy": self.npy(900)[:-1]})
        self.assertIsNone(contents.proof)
        self.assertTrue(contents.torn.startswith("other.npy "))

    def test_the_heaviest_file_is_told(self):
        contents = self.judged(**{"a.npy": self.npy(300), "b.npy": self.npy(900), "c.npy": self.npy(400)})
        self.assertTrue(contents.proof.startswith("b.npy "))
        self.assertFalse(contents.is_folder_proof)

    def test_a_folder_vouches_for_files_that_cannot_prove_themselves(self):
        state = json.dumps({"global_step": 500})
        folder = "checkpoint-500/"
        contents = self.judged(**{folder + "model.bin": b"\x01" * 900, folder + "trainer_state.json": state})
        self.assertEqual(
            (contents.proof, contents.is_folder_proof, contents.step, contents.may_be_settings),
            ("checkpoint-500/trainer_state.json is there", True, 500, False),
        )

    def test_a_folder_that_lacks_something_proves_nothing(self):
        contents = self.judged(**{"__0_0.distcp": self.npy(900), "x.npy": self.npy(900)})
        self.assertEqual((contents.proof, contents.missing), (None, ".metadata does not exist yet"))

    def test_a_folder_of_an_earlier_save_says_nothing_of_this_one(self):
        self.judged(**{"old/__0_0.distcp": b"\x01"})
        selection = select(scan(self.at("ck")), frozenset())[0]
        self.write("ck/new/model.bin", "content")
        newer = select(scan(self.at("ck")), frozenset())[0]
        ours = {path: stamp for path, stamp in newer.changed.items() if path not in selection.files}
        self.assertIsNone(Formats(self.at("ck")).judge(newer, ours).missing)

    def test_only_documents_may_be_settings(self):
        self.assertTrue(self.judged(**{"config.json": "{}"}).may_be_settings)
        self.assertFalse(self.judged(**{"model.npy": self.npy(900)}).may_be_settings)

    def test_a_file_is_read_again_when_it_has_changed(self):
        path = self.write("ck/state.json", "{")
        formats = Formats(self.at("ck"))
        selection = select(scan(self.at("ck")), frozenset())[0]
        self.assertIsNotNone(formats.judge(selection, selection.changed).torn)
        self.write("ck/state.json", "{}")
        os.utime(path, ns=(1, 1))
        selection = select(scan(self.at("ck")), frozenset())[0]
        self.assertIsNone(formats.judge(selection, selection.changed).torn)
        with mock.patch("crucible_runner.checkpoint.evidence.check_file", side_effect=AssertionError("read again")):
            formats.judge(selection, selection.changed)
