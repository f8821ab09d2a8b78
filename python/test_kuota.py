# SPDX-License-Identifier: Apache-2.0
"""Tests of kuota.py that need no console."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import stat
import tempfile
import threading
import unittest
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from unittest import mock

import kuota

TASK = {"namespace": "hyperpod-ns-vision", "kind": "Job", "name": "train"}


class Console:
    """A console on this machine, which answers from a list and keeps the requests."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)  # (status, body[, headers]), or None to break the connection
        self.requests: list[tuple[str, str, dict[str, str], str]] = []
        console = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
                console.requests.append((self.command, self.path, dict(self.headers.items()), body))
                sent = console.answers.pop(0)
                if sent is None:
                    self.connection.close()
                    return
                status, value, *headers = sent
                text = value.encode() if isinstance(value, str) else json.dumps(value).encode()
                self.send_response(status)
                for name, header in (headers[0] if headers else {}).items():
                    self.send_header(name, header)
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_POST = do_DELETE = answer

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


class Tests(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.credentials = Path(folder.name) / "kuota" / "credentials.json"
        environment = {name: value for name, value in os.environ.items() if not name.startswith("KUOTA_")}
        patch = mock.patch.dict(os.environ, {**environment, "XDG_CONFIG_HOME": folder.name}, clear=True)
        patch.start()
        self.addCleanup(patch.stop)
        sleep = mock.patch("kuota.time.sleep")
        sleep.start()
        self.addCleanup(sleep.stop)

    def console(self, *answers: Any) -> Console:
        console = Console(*answers)
        self.addCleanup(console.close)
        return console

    def client(self, *answers: Any) -> tuple[kuota.Client, Console]:
        console = self.console(*answers)
        return kuota.Client(console.address, "s3cret"), console

    def job(self, *answers: Any) -> tuple[kuota.Job, Console]:
        client, console = self.client(*answers)
        return kuota.Job(client, TASK["namespace"], TASK["kind"], TASK["name"], "u1"), console

    @contextlib.contextmanager
    def fails(self, status: int, text: str) -> Iterator[None]:
        with self.assertRaises(kuota.KuotaError) as caught:
            yield
        self.assertEqual(caught.exception.status, status)
        self.assertIn(text, str(caught.exception))
        self.assertNotIn("s3cret", str(caught.exception) + repr(caught.exception))

    def test_addresses(self) -> None:
        for good in ("https://kuota.example.com", "https://example.com/apps/kuota/", "http://localhost:8080", "http://127.0.0.1:1", "http://[::1]:80"):
            self.assertEqual(kuota.Client(good).server, good.rstrip("/"))
        for bad in ("http://kuota.example.com", "http://127.0.0.1.example.com", "http://10.0.0.1", "http://localhost.example.com"):
            with self.fails(0, "has no encryption"):
                kuota.Client(bad)
        for bad in ("", "kuota.example.com", "ftp://localhost", "file:///etc/passwd", "https://", "https://ada:x@example.com", "https://example.com?a=b", "https://a:b"):
            with self.fails(0, "is no address of a console"):
                kuota.Client(bad)

    def test_token_is_not_shown(self) -> None:
        client = kuota.Client("https://kuota.example.com", "s3cret")
        queue = kuota.Queue("vision", share="lowpri", client=client)
        job = kuota.Job(client, "hyperpod-ns-vision", "Job", "train", last_status="Running")
        self.assertEqual(repr(client), "Client('https://kuota.example.com')")
        self.assertEqual(repr(queue), "Queue('vision', share='lowpri')")
        self.assertEqual(repr(job), "<Job hyperpod-ns-vision/job/train Running>")
        for bad in ("s3cret\nX-Header: 1", "s3cret \N{SNOWMAN}"):
            with self.fails(0, "the token has"):
                kuota.Client("https://kuota.example.com", bad)

    def test_errors(self) -> None:
        problem = {"type": "about:blank", "title": "x", "status": 422, "detail": "Some values are not valid.", "errors": [{"field": "task.gpus", "message": "is odd"}, {"message": "why"}]}
        client, _ = self.client((422, problem), (500, "<html>"), (200, "<html>"), (401, {"detail": "It ended."}), (404, {"error": "No."}), (400, [1]))
        with self.fails(422, "Some values are not valid.\n  task.gpus: is odd\n  why"):
            client.call("POST", "/teams/vision/tasks", body={})
        for status, text in ((500, "the console answered 500"), (200, "no JSON"), (401, "It ended. Sign in with kuota login"), (404, "No."), (400, "answered 400")):
            with self.fails(status, text):
                client.call("GET", "/teams")
        error = kuota.KuotaError(422, "No.", [("a", "b")])
        self.assertEqual((error.status, error.detail, error.fields), (422, "No.", (("a", "b"),)))

    def test_no_redirects(self) -> None:
        other = self.console()
        for status in (301, 302, 303, 307, 308):
            client, console = self.client((status, "", {"Location": other.address}))
            with self.fails(status, f"the console answered {status}"):
                client.call("GET", "/teams")
            self.assertEqual(console.requests[0][2]["Authorization"], "Bearer s3cret")
        self.assertEqual(other.requests, [])

    def test_no_proxy_reads_the_token(self) -> None:
        proxy = self.console()
        client, _ = self.client((200, {"ok": True}))
        with mock.patch.dict(os.environ, {"http_proxy": proxy.address}):
            self.assertEqual(client.call("GET", "/teams"), {"ok": True})
        self.assertEqual(proxy.requests, [])

    def test_submit(self) -> None:
        client, console = self.client(None, (201, {"tasks": [{**TASK, "path": "/x", "created": True}]}), (404, {"detail": "No."}), (200, {"status": "Pending"}))
        queue = kuota.Queue("vision", share="lowpri", client=client)
        job = queue.submit(
            ["python", "train.py", "--name", "it's $HOME"], name="train", gpus=0, cpu=0.5, priority_class="low", image="x:1",
            env={"A": 1}, time_limit=timedelta(hours=1), tries=2, after=["prep:any", kuota.Job(client, "ns", "RayJob", "load")], priority=7,
        )
        self.assertEqual((job.name, job.last_status, job.info["created"]), ("train", "Pending", True))
        broken, again = console.requests[:2]
        self.assertEqual(again[1], "/api/v1/teams/vision/tasks")
        self.assertEqual(json.loads(again[3])["task"], {
            "name": "train", "command": "python train.py --name 'it'\"'\"'s $HOME'", "accelerators": 0, "pods": 1, "vcpu": "0.5",
            "image": "x:1", "class": "low", "share": "lowpri", "env": {"A": "1"}, "timeLimit": "3600s", "tries": 2,
        })
        self.assertEqual(json.loads(again[3])["after"], ["prep:any", "rayjob/load"])
        self.assertEqual(json.loads(again[3])["priority"], 7)
        self.assertEqual(broken[2]["Idempotency-Key"], again[2]["Idempotency-Key"])
        self.assertGreaterEqual(len(again[2]["Idempotency-Key"]), 32)

    def test_sent_once(self) -> None:
        job, console = self.job(None)
        with self.fails(0, "does not answer"):
            job.stop()
        client, console = self.client(None, None)
        with self.fails(0, "does not answer"):
            kuota.Queue("vision", client=client).submit("true", image="x")
        self.assertEqual(len(console.requests), 2)

    def test_names(self) -> None:
        for command, want in ((["python", "/a/My_Train.py", "x"], "my-train-"), (["/bin/true"], "true-"), ("sh run.sh", "run-"), ([], "task-"), ("7z", "task-"), ("...", "task-")):
            self.assertRegex(kuota._name_of(command), f"^{want}[0-9a-f]{{6}}$")

    def test_check(self) -> None:
        verdict = {"outcome": "Waits", "headline": "It would wait.", "notes": ["A note."], "simulated": True, "later": 1}
        client, console = self.client((200, {"tasks": [{**TASK, "verdict": verdict, "manifest": "kind: Job"}]}))
        checked = kuota.Queue("vision", client=client).check("true", gpus=1)
        self.assertEqual((checked.outcome, checked.preempted, checked.manifest, str(checked)), ("Waits", [], "kind: Job", "It would wait. A note."))
        self.assertTrue(console.requests[0][1].endswith("/tasks?dryRun=true"))

    def test_jobs(self) -> None:
        rows = [{**TASK, "name": name, "uid": name, "status": "Running"} for name in ("a", "b", "c")]
        client, console = self.client((200, {"pages": 2, "tasks": rows[:2]}), (200, {"pages": 2, "tasks": rows[1:]}))
        jobs = kuota.Queue("vision", client=client).jobs("Running", mine=True)
        self.assertEqual([job.name for job in jobs], ["a", "b", "c"])
        self.assertEqual(console.requests[1][1], "/api/v1/tasks?team=vision&status=Running&mine=true&page=2")

    def test_snapshot(self) -> None:
        row = {**TASK, "name": "<b>", "position": 1, "priorityClass": "high", "requests": {"nvidia.com/gpu": 1, "cpu": 0.5, "memory": 16, "x": None}, "waitedSeconds": 61.5, "reason": "a & \x1b[31m\nb"}
        client, _ = self.client((200, {"waiting": 7, "pages": 3, "tasks": [row, {**row, "name": "c"}]}))
        snapshot = kuota.Queue("<vision>", client=client).snapshot(limit=1)
        self.assertEqual([row.name for row in snapshot], ["<b>"])
        self.assertEqual(str(snapshot).splitlines(), [
            "7 waiting in <vision>",
            "#  task  class  requests                 waits    reason",
            "1  <b>   high   1 gpu, 0.5 vCPU, 16 GiB  0:01:01  a &  [31m b",
        ])
        page = snapshot._repr_html_()
        for want in ("7 waiting in &lt;vision&gt;", "<td>&lt;b&gt;</td>", "a &amp;  [31m b", "<td>0:01:01</td>"):
            self.assertIn(want, page)
        self.assertNotIn("<b>", page)

    def test_why(self) -> None:
        computing = {"status": "Pending", "why": {"headline": "h", "text": "t", "checked": {"state": "computing"}}}
        why = {"headline": "It waits.", "text": "For quota.", "changes": [{"title": "Stop x.", "text": "It ends", "tasks": [{"name": "a"}, {"name": "b"}], "after": "first."}], "checked": {"state": "verified"}}
        job, _ = self.job((200, computing), (200, {"status": "Pending", "position": "2nd of 3", "why": why, "estimate": {"state": "range", "in": "in 1 h"}}), (200, {"status": "Running"}))
        self.assertEqual(str(job.why()), "Pending, 2nd of 3\nIt waits.\nFor quota.\n  Stop x. It ends a, b first.\nin 1 h")
        self.assertEqual(str(job.why()), "Running")

    def test_progress(self) -> None:
        progress = {"at": "2026-11-30T12:00:00Z", "step": 7, "loss": 0.5}
        job, console = self.job((200, {**TASK, "status": "Running", "progress": progress}), (200, {**TASK, "status": "Pending"}))
        self.assertEqual((job.progress(), job.last_status), (progress, "Running"))
        self.assertEqual((job.progress(), job.last_status), (None, "Pending"))
        self.assertEqual(console.requests[0][1], "/api/v1/tasks/hyperpod-ns-vision/job/train?uid=u1")

    def test_wait(self) -> None:
        job, console = self.job((200, {"status": "Pending"}), (503, {}), None, None, (200, {"status": "Succeeded"}))
        self.assertEqual(job.wait(until="Running"), "Succeeded")
        self.assertEqual(console.requests[0][1], "/api/v1/tasks/hyperpod-ns-vision/job/train/why?uid=u1")
        job, _ = self.job(*[(200, {"status": "Pending"})] * 2)
        with self.assertRaisesRegex(TimeoutError, "train is Pending after 0 s, not Running"):
            job.wait(timeout=0, until="Running")
        with self.assertRaisesRegex(ValueError, "no such status: running"):
            job.wait(until="running")
        job, _ = self.job((404, {"detail": "No."}))
        with self.fails(404, "No."):
            job.wait()

    def test_logs(self) -> None:
        job, console = self.job((200, "1 a\n2 b c\n3 \n"))
        self.assertEqual(list(job.logs()), ["a", "b c", ""])
        self.assertNotIn("follow", console.requests[0][1])
        job, console = self.job((200, "1 a\n2 b\n"), (200, {"status": "Running"}), (200, "1 a\n2 b\n3 c\n"), (200, {"status": "Succeeded"}))
        self.assertEqual(list(job.logs(follow=True)), ["a", "b", "c"])
        self.assertIn("follow=true", console.requests[0][1])
        job, _ = self.job((404, {"detail": "The task has no pods now."}))
        with self.fails(404, "no pods"):
            list(job.logs(follow=True))

    def test_actions(self) -> None:
        dry = {"task": TASK, "choices": ["high-priority", "low"]}
        done = {"task": {**TASK, "uid": "u1"}}
        job, console = self.job((200, done), (200, dry), (200, done), (200, dry), (200, {"task": {**TASK, "name": "train-2"}}), (404, {}), (200, {"status": "Pending"}), (200, {}), (200, {**dry, "obstacle": "It ended."}))
        job.uid = ""
        job.stop()
        job.set_class("high")
        with self.assertRaisesRegex(ValueError, "want one of high, low"):
            job.set_class("none")
        again = job.again()
        self.assertEqual((again.name, again.last_status), ("train-2", "Pending"))
        job.delete()
        with self.fails(409, "It ended."):
            job.set_class("high")
        sent = [(method, path.removeprefix("/api/v1/tasks/hyperpod-ns-vision/job/train"), body and json.loads(body)) for method, path, _, body in console.requests if "/train-2/" not in path]
        self.assertEqual(sent, [
            ("POST", "/stop", {}), ("POST", "/class?dryRun=true", {"uid": "u1"}), ("POST", "/class", {"uid": "u1", "class": "high-priority"}),
            ("POST", "/class?dryRun=true", {"uid": "u1"}), ("POST", "/again", {"uid": "u1", "name": ""}), ("DELETE", "?uid=u1", ""), ("POST", "/class?dryRun=true", {"uid": "u1"}),
        ])

    def store(self, server: str, **values: Any) -> None:
        self.credentials.parent.mkdir()
        self.credentials.write_text(json.dumps({server: {"issuer": "", "clientID": "cli", "idToken": "old", "refreshToken": "r1", "expires": "2020-01-01T00:00:00.123456789Z", **values}, "other": {"idToken": "x"}}))

    def test_stored_token(self) -> None:
        console = self.console((200, {}), (200, {}))
        kuota.Client(console.address).call("GET", "/teams")
        self.assertNotIn("Authorization", console.requests[0][2])
        self.store(console.address, expires=(datetime.now(timezone.utc) + timedelta(hours=1)).isoformat())
        kuota.Client(console.address).call("GET", "/teams")
        self.assertEqual(console.requests[1][2]["Authorization"], "Bearer old")
        self.credentials.write_text("{")
        with self.fails(0, "cannot be read"):
            kuota.Client(console.address).call("GET", "/teams")

    def test_refresh(self) -> None:
        issuer = self.console()
        payload = base64.urlsafe_b64encode(json.dumps({"iss": issuer.address, "aud": "cli", "exp": 4102444800}).encode()).decode().rstrip("=")
        issuer.answers += [(200, {"issuer": issuer.address, "token_endpoint": issuer.address + "/token"}), (200, {"id_token": f"h.{payload}.s", "refresh_token": "r2"})]
        console = self.console((200, {}), (200, {}))
        self.store(console.address, issuer=issuer.address)
        client = kuota.Client(console.address)
        for _ in range(2):
            client.call("GET", "/teams")
        self.assertEqual([request[2]["Authorization"] for request in console.requests], [f"Bearer h.{payload}.s"] * 2)
        self.assertEqual(issuer.requests[0][1], "/.well-known/openid-configuration")
        self.assertEqual(issuer.requests[1][3], "grant_type=refresh_token&refresh_token=r1&client_id=cli")
        self.assertNotIn("Authorization", issuer.requests[1][2])
        stored = json.loads(self.credentials.read_text())
        self.assertEqual(stored[console.address], {"issuer": issuer.address, "clientID": "cli", "idToken": f"h.{payload}.s", "refreshToken": "r2", "expires": "2100-01-01T00:00:00+00:00"})
        self.assertEqual(stored["other"], {"idToken": "x"})
        self.assertEqual(stat.S_IMODE(self.credentials.stat().st_mode), 0o600)
        self.assertEqual(os.listdir(self.credentials.parent), ["credentials.json"])

    def test_refresh_fails(self) -> None:
        console = self.console()
        for name, answers, values, text in (
            ("ended", [(400, {"error": "invalid_grant"})], {}, "your sign-in ended. Sign in with kuota login: invalid_grant"),
            ("no token", [(200, {})], {}, "no ID token"),
            ("no JSON", [(200, "x")], {}, "no JSON"),
            ("no refresh token", [], {"refreshToken": ""}, "you are signed out"),
            ("plain http", [], {"issuer": "http://issuer.example.com"}, "has no encryption"),
            ("another issuer", [], {"issuer": "other"}, "is no address"),
        ):
            with self.subTest(name):
                issuer = self.console()
                issuer.answers += [(200, {"issuer": issuer.address, "token_endpoint": issuer.address + "/token"}), *answers]
                self.store(console.address, **{"issuer": issuer.address, **values})
                before = self.credentials.read_text()
                with self.assertRaises(kuota.KuotaError) as caught:
                    kuota.Client(console.address).call("GET", "/teams")
                self.assertIn(text, str(caught.exception))
                self.assertNotIn("r1", str(caught.exception))
                self.assertEqual(self.credentials.read_text(), before)
                self.credentials.unlink()
                self.credentials.parent.rmdir()
        self.assertEqual(console.requests, [])


if __name__ == "__main__":
    unittest.main()
