import base64
import http.server
import json
import os
import ssl
import threading
import unittest

from support import FakeClock, FolderTest, patient

from crucible_runner.documents import dump
from crucible_runner.tracking import Place, Tracking
from crucible_runner.tracking.mlflow import NoAnswer, runs_of, server_of, tagged_context
from crucible_runner.tracking.wandb import WandbRuns

JOB = "job-7k2m9q4x1c"
SAVED = b"wandb: Run data is saved locally in /x/work/wandb/run-20261126_101500-%s"


class MlflowServer:
    """The part of a tracking server that the runner uses, with its paging. `runs` are (experiment, id, tags)."""

    def __init__(self, test, experiments=("0",), runs=()):
        self.experiments, self.runs, self.requests, self.status = list(experiments), list(runs), [], 200
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.requests.append((self.path, self.headers, asked))
                answer = json.dumps(outer.answer(self.path, asked)).encode()
                self.send_response(outer.status)
                if outer.status == 302:
                    self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        test.addCleanup(server.server_close)
        test.addCleanup(server.shutdown)
        self.port = server.server_address[1]
        self.url = "http://127.0.0.1:%d" % self.port

    def answer(self, path, asked):
        token = int(asked.get("page_token", 0))
        if path == "/api/2.0/mlflow/experiments/search":
            return self.page("experiments", [{"experiment_id": each} for each in self.experiments], token)
        wanted = asked["filter"].split("'")[1]
        assert asked["filter"] == "tags.`crucible.job` = '%s'" % wanted
        found = [
            {
                "info": {"run_id": run_id, "experiment_id": experiment, "start_time": at},
                "data": {"tags": [{"key": key, "value": value} for key, value in tags.items()]},
            }
            for at, (experiment, run_id, tags) in enumerate(self.runs)
            if experiment in asked["experiment_ids"] and tags.get("crucible.job") == wanted
        ]
        return self.page("runs", found, token)

    def page(self, what, items, at):
        answer = {what: items[at : at + 2]}
        return answer if at + 2 >= len(items) else dict(answer, next_page_token=str(at + 2))


def tags(**more):
    return dict({"crucible.job": JOB}, **more)


class ServerTest(FolderTest):
    def test_finds_the_runs_of_the_job_in_all_experiments_and_pages(self):
        runs = [("4", "b", tags()), ("0", "a", {"crucible.job": "job-other"}), ("2", "c", tags())]
        runs += [("2", "d", tags(**{"mlflow.parentRunId": "c"})), ("1", "e", {}), ("1", "f", tags())]
        server = MlflowServer(self, ["0", "1", "2", "3", "4"], runs)
        found = runs_of(server_of({"MLFLOW_TRACKING_URI": server.url + "/"}, self.folder), JOB)
        self.assertEqual([run.run_id for run in found], ["b", "c", "f"])
        self.assertEqual(found[1].url, server.url + "/#/experiments/2/runs/c")

    def test_logs_in_as_mlflow_does_and_shows_no_login(self):
        server = MlflowServer(self, ["0"], [("0", "a", tags())])
        pair = lambda text: "Basic " + base64.b64encode(text).decode()  # noqa: E731
        names = {"MLFLOW_TRACKING_USERNAME": "ann", "MLFLOW_TRACKING_PASSWORD": "pw"}
        inside = {"MLFLOW_TRACKING_URI": "http://bob:p%%40ss@127.0.0.1:%d?x=1" % server.port}
        plain = {"MLFLOW_TRACKING_URI": server.url}
        for own, wanted in [
            (plain, None),
            (dict(plain, **names), pair(b"ann:pw")),
            (dict(plain, MLFLOW_TRACKING_TOKEN="t0k", **names), pair(b"ann:pw")),
            (dict(plain, MLFLOW_TRACKING_TOKEN="t0k"), "Bearer t0k"),
            (inside, pair(b"bob:p@ss")),
        ]:
            found = runs_of(server_of(own, self.folder), JOB)
            self.assertEqual(server.requests[-1][1]["Authorization"], wanted)
            self.assertEqual(found[0].url, server.url + "/#/experiments/0/runs/a")

    def test_says_why_a_server_cannot_be_asked(self):
        for uri, more, words in [
            ("file:///tmp/mlruns", {}, "lost with it"),
            ("mlruns", {}, "lost with it"),
            ("databricks", {}, "Databricks"),
            ("https://x", {"MLFLOW_TRACKING_AWS_SIGV4": "true"}, "MLFLOW_TRACKING_AWS_SIGV4"),
            ("http://[x", {}, "not an address"),
            ("https://x", {"MLFLOW_TRACKING_SERVER_CERT_PATH": "missing.pem"}, "CERT_PATH cannot be read: No such file"),
        ]:
            with self.assertRaisesRegex(NoAnswer, words):
                server_of(dict(more, MLFLOW_TRACKING_URI=uri), self.folder)
        self.assertIsNone(server_of({}, self.folder))

    def test_checks_certificates_unless_the_job_says_otherwise(self):
        own = {"MLFLOW_TRACKING_URI": "https://x"}
        self.assertEqual(server_of(own, self.folder).context.verify_mode, ssl.CERT_REQUIRED)
        context = server_of(dict(own, MLFLOW_TRACKING_INSECURE_TLS="true"), self.folder).context
        self.assertEqual((context.verify_mode, context.check_hostname), (ssl.CERT_NONE, False))

    def test_never_quotes_a_login(self):
        server = MlflowServer(self)
        for own in (
            {"MLFLOW_TRACKING_URI": "http://bob:s3cret"},
            {"MLFLOW_TRACKING_URI": "http://bob:s3cret\u2100@host"},
            {"MLFLOW_TRACKING_URI": server.url, "MLFLOW_TRACKING_TOKEN": "s3cret\nx"},
            {"MLFLOW_TRACKING_URI": server.url, "MLFLOW_TRACKING_TOKEN": "s3cret\u2100"},
        ):
            with self.assertRaises(NoAnswer) as refused:
                runs_of(server_of(own, self.folder), JOB)
            self.assertNotIn("s3cret", str(refused.exception))

    def test_says_what_a_server_answers_and_follows_it_nowhere(self):
        server = MlflowServer(self)
        at = server_of({"MLFLOW_TRACKING_URI": server.url}, self.folder)
        for status in (401, 302, 500):
            server.status = status
            with self.assertRaisesRegex(NoAnswer, str(status)):
                runs_of(at, JOB)
        self.assertEqual({path for path, _, _ in server.requests}, {"/api/2.0/mlflow/experiments/search"})
        server.status = 200
        for nonsense in ([], {"experiments": [{}]}, {"experiments": [{"experiment_id": "0"}], "runs": [{"info": {}}]}):
            server.answer = lambda *_: nonsense  # noqa: B023
            with self.assertRaisesRegex(NoAnswer, "not that of an MLflow server"):
                runs_of(at, JOB)

    def test_adds_its_tags_to_those_of_the_job(self):
        own = {"MLFLOW_RUN_CONTEXT": '{"team": "a"}'}
        added = json.loads(tagged_context(own, JOB, 3)["MLFLOW_RUN_CONTEXT"])
        self.assertEqual(added, {"team": "a", "crucible.job": JOB, "crucible.attempt": "3"})
        for odd in ("[1]", "{"):
            self.assertEqual(tagged_context({"MLFLOW_RUN_CONTEXT": odd}, JOB, 1), {})


class WandbTest(FolderTest):
    def runs(self, *lines):
        runs = WandbRuns(())
        runs.see(lines)
        return [(run.run_id, run.url) for run in runs.document()]

    def test_learns_ids_and_addresses_from_what_is_printed(self):
        url = b"wandb: View run at https://wandb.ai/lab/char-lm/runs/abc-1?apiKey=s3cret"
        self.assertEqual(self.runs(SAVED % b"abc-1", url), [("abc-1", "https://wandb.ai/lab/char-lm/runs/abc-1")])
        offline = b"\x1b[34m\x1b[1mwandb\x1b[0m: Run data is saved locally in \x1b[35mwandb/offline-run-20261126_101500-x1\x1b[0m"
        self.assertEqual(self.runs(offline), [("x1", None)])

    def test_learns_nothing_from_other_lines(self):
        for line in (
            b"run-20261126_101500-abc",
            b"wandb: found run-20261126_101500-abc",
            b"wandb: https://wandb.ai/lab/x/runs/abc",
            SAVED % b"",
        ):
            self.assertEqual(self.runs(line), [])
        other = b"wandb: View run at https://user:pw@wandb.ai/lab/x/runs/abc and https://wandb.ai/lab/x/runs/abcd"
        self.assertEqual(self.runs(SAVED % b"abc", other), [("abc", None)])

    def test_finds_runs_of_silent_programs_but_none_that_came_with_the_code(self):
        os.makedirs(self.at("wandb", "run-20250101_000000-old"))
        runs = WandbRuns(())
        runs.begin(self.at("wandb"), lambda _: True)
        os.makedirs(self.at("wandb", "offline-run-20261126_101500-new"))
        os.symlink("run-20250101_000000-old", self.at("wandb", "latest-run"))
        runs.look()
        self.assertEqual([run.run_id for run in runs.document()], ["new"])
        walled = WandbRuns(())
        walled.begin(self.at("wandb"), lambda _: False)
        walled.look()
        self.assertEqual(walled.document(), [])

    def test_continues_the_only_run_unless_the_job_decides(self):
        runs = WandbRuns(())
        self.assertEqual(runs.environment({}), {})
        runs.see([SAVED % b"abc"])
        self.assertEqual(runs.environment({}), {"WANDB_RUN_ID": "abc", "WANDB_RESUME": "allow"})
        for name in ("WANDB_RUN_ID", "WANDB_RESUME", "WANDB_SWEEP_ID"):
            self.assertEqual(runs.environment({name: "never"}), {})
        runs.see([SAVED % b"def"])
        self.assertEqual(runs.environment({}), {})


class TrackingTest(FolderTest):
    def setUp(self):
        super().setUp()
        self.remarks = []
        self.news = threading.Event()

    def tracking(self, attempt, *beats):
        tracking = Tracking(JOB, attempt, FakeClock(), self.remarks.append, self.news.set)
        tracking.recall(None if each is None else dump(each) for each in beats)
        self.addCleanup(tracking.end)
        return tracking

    def begin(self, tracking, **own):
        return tracking.begin(own, Place(self.folder, lambda _: True))

    def beat(self, **more):
        beat = {"attemptId": "a", "seq": 1, "phase": "running", "progress": None, "gpus": [], "checkpoint": None}
        beat.update(restoredFrom=None, limitsSeq=0, leaseSeq=0, logLines=0, clockMs=0, uptimeMs=0)
        return dict(beat, **more)

    def test_tags_the_first_attempt_and_continues_the_run_in_the_next(self):
        server = MlflowServer(self)
        first = self.tracking(1, None)
        added = self.begin(first, MLFLOW_TRACKING_URI=server.url)
        self.assertEqual(list(added), ["MLFLOW_RUN_CONTEXT"])
        self.assertEqual(server.requests, [])
        self.assertEqual(first.facts(), {})
        server.runs.append(("0", "abc", tags()))
        # It looks after some seconds; this test does not wait for them.
        second = self.begin(self.tracking(2, None), MLFLOW_TRACKING_URI=server.url)
        self.assertEqual(second["MLFLOW_RUN_ID"], "abc")
        again = first.begin({"MLFLOW_TRACKING_URI": server.url}, Place(self.folder, lambda _: True))
        self.assertEqual(again["MLFLOW_RUN_ID"], "abc")
        self.assertEqual(first.facts()["trackers"][0]["runId"], "abc")

    def test_leaves_the_choice_to_the_job(self):
        server = MlflowServer(self, ["0"], [("0", "abc", tags())])
        own = {"MLFLOW_TRACKING_URI": server.url, "MLFLOW_RUN_ID": "hers"}
        self.assertNotIn("MLFLOW_RUN_ID", self.begin(self.tracking(2, None), **own))
        server.runs.append(("0", "def", tags()))
        self.assertNotIn("MLFLOW_RUN_ID", self.begin(self.tracking(2, None), MLFLOW_TRACKING_URI=server.url))

    def test_keeps_to_new_runs_while_the_server_does_not_answer(self):
        server = MlflowServer(self, ["0"], [("0", "abc", tags())])
        server.status = 503
        known = {"kind": "mlflow", "runId": "abc"}
        tracking = self.tracking(3, None, self.beat(trackers=[known]))
        added = self.begin(tracking, MLFLOW_TRACKING_URI=server.url, MLFLOW_TRACKING_PASSWORD="s3cret")
        self.assertNotIn("MLFLOW_RUN_ID", added)
        self.assertEqual(tracking.facts(), {"trackers": [known]})
        self.assertIn("answers 503", "\n".join(self.remarks))
        self.assertNotIn("s3cret", "\n".join(self.remarks))

    def test_recalls_the_newest_beat_that_knows_runs(self):
        run = {"kind": "wandb", "runId": "abc", "url": "https://wandb.ai/lab/x/runs/abc"}
        old = {"kind": "wandb", "runId": "old"}
        beats = (None, self.beat(), {"attemptId": "no beat"}, self.beat(trackers=[run]), self.beat(trackers=[old]))
        tracking = self.tracking(5, *beats)
        self.assertEqual(tracking.facts(), {"trackers": [run]})
        self.assertEqual(self.begin(tracking)["WANDB_RUN_ID"], "abc")

    def test_reports_a_new_run_at_once_and_does_not_repeat_itself(self):
        tracking = self.tracking(1, None)
        self.begin(tracking)
        tracking.see([b"step 1", SAVED % b"abc"])
        self.assertTrue(self.news.is_set())
        self.news.clear()
        tracking.see([SAVED % b"abc"])
        self.assertFalse(self.news.is_set())

    def test_gives_up_a_run_that_the_program_cannot_continue(self):
        tracking = self.tracking(2, self.beat(trackers=[{"kind": "wandb", "runId": "abc"}]))
        self.begin(tracking)
        tracking.see([b"ValueError: no data", b"wandb: View run abc"])
        self.assertFalse(tracking.refuses())
        tracking.see([b"CommError: run lab/x/abc was previously created and deleted"] + [b"more words"] * 30)
        tracking.see([b"more words"])
        self.assertTrue(tracking.refuses())
        self.assertNotIn("WANDB_RUN_ID", self.begin(tracking))
        tracking.see([b"CommError: run lab/x/abc was previously created and deleted"])
        self.assertFalse(tracking.refuses())

    def test_reports_each_run_that_appears_on_the_server(self):
        server = MlflowServer(self)
        tracking = self.tracking(1, None)
        # The pause before the first look is the only time in this test.
        from crucible_runner.tracking import tracking as module

        pause = module._FIRST_LOOK_SECONDS
        self.addCleanup(setattr, module, "_FIRST_LOOK_SECONDS", pause)
        module._FIRST_LOOK_SECONDS = 0.01
        self.begin(tracking, MLFLOW_TRACKING_URI=server.url)
        server.runs.append(("0", "abc", tags()))
        for run_id in ("abc", "def"):
            self.assertTrue(self.news.wait(patient(10)))
            self.news.clear()
            self.assertEqual(tracking.facts()["trackers"][-1]["runId"], run_id)
            server.runs.append(("0", "def", tags()))


if __name__ == "__main__":
    unittest.main()
