#!/usr/bin/env python3
"""Runs the libFuzzer targets one after another, each from a corpus made of the tests' files, and tells what each did.

A target's corpus stays in build/fuzz/<target> between runs; an input that breaks it is kept beside it and named on the last lines.
An input that took too long on a busy machine counts when it does so alone.
Usage: fuzz.py [--seconds N] [TARGET...]   (build first: cmake --preset clang && cmake --build --preset clang)
"""
import argparse
import glob
import hashlib
import json
import os
import re
import resource
import struct
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
BUILD, WORK = os.path.join(ROOT, "build/clang"), os.path.join(ROOT, "build/fuzz")
OPTIONS = ["-rss_limit_mb=2048", "-timeout=10", "-print_final_stats=1"]


def read(path):
    with open(os.path.join(ROOT, path), "rb") as file:
        return file.read()


def goldens(pattern):
    return [read(path) for path in sorted(glob.glob(os.path.join(ROOT, "src", pattern), recursive=True))]


def gguf(entries, tensors):  # entries: (key, packed type and value); tensors: (name, dims, type, bytes)
    def text(s):
        return struct.pack("<Q", len(s)) + s.encode()
    out, at, data = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(entries)), 0, b""
    for key, value in entries:
        out += text(key) + value
    for name, dims, kind, size in tensors:
        out += text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, at)
        at += -(-size // 32) * 32
    return out + b"\0" * (-len(out) % 32 + at)


def gguf_seeds():
    def text(s):
        return struct.pack("<IQ", 8, len(s)) + s.encode()
    def texts(items):
        return struct.pack("<IIQ", 9, 8, len(items)) + b"".join(struct.pack("<Q", len(i.encode())) + i.encode() for i in items)
    tokens = ["<s>", "a", "b", "ab", "Ġ", "Ġa"]
    vocabulary = [("tokenizer.ggml.model", text("gpt2")), ("tokenizer.ggml.pre", text("smollm")), ("tokenizer.ggml.tokens", texts(tokens)),
                  ("tokenizer.ggml.token_type", struct.pack("<IIQ6i", 9, 5, 6, 3, 1, 1, 1, 1, 1)), ("tokenizer.ggml.merges", texts(["a b", "Ġ a"])),
                  ("tokenizer.ggml.bos_token_id", struct.pack("<II", 4, 0)), ("tokenizer.ggml.add_bos_token", struct.pack("<IB", 7, 1))]
    config = [("general.architecture", text("llama")), ("llama.block_count", struct.pack("<II", 4, 2)), ("llama.rope.freq_base", struct.pack("<If", 6, 1e4))]
    blocks = {0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 8: (32, 34), 12: (256, 144), 14: (256, 210), 30: (1, 2)}
    every_type = [(f"t{kind}", [256, 2], kind, 512 // per * size) for kind, (per, size) in blocks.items()]
    numbers = [(f"n{kind}", struct.pack("<I", kind) + b"\1" * size) for kind, size in enumerate([1, 1, 2, 2, 4, 4, 4, 1]) if size] + [
        ("n10", struct.pack("<IQ", 10, 1)), ("n11", struct.pack("<Iq", 11, -1)), ("n12", struct.pack("<Id", 12, 0.5))]
    return [gguf([], []), gguf(config + vocabulary, []), gguf(numbers, every_type), gguf(config, [("a", [8, 2], 0, 64), ("b", [4], 1, 8)])]


def json_seeds():
    texts = goldens("io/goldens/*.json") + goldens("model/goldens/**/*.json") + [b'[1, -0.0, 1e308, "\\ud83d\\ude00", null, {"a": [true]}]']
    return [rules + text for text in texts for rules in (b"\0", b"\1")]


def safetensors_seeds():
    files = goldens("model/goldens/**/*.safetensors")
    kinds = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "U8": 1, "BOOL": 1}
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for kind, size in kinds.items():
        header[kind.lower()] = {"dtype": kind, "shape": [2, 2], "data_offsets": [at, at + 4 * size]}
        at += 4 * size
    text = json.dumps(header).encode() + b"\0" * at
    return [text, struct.pack("<Q", len(text) - at) + text, *files]


def tokenizer_seeds():
    corpus = read("src/io/goldens/tokenizer_corpus.bin")
    small = {"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}, "added_tokens": [{"id": 3, "content": "<s>", "special": True}],
             "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False}, "decoder": {"type": "ByteLevel"}}
    patterns = [rb"\s+(?!\S)|\s+", rb"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*", rb"(?i:'s|'t|'re)|[^\r\n\p{L}\p{N}]?\p{L}+"]
    files = goldens("io/goldens/tokenizer_[!g]*.json") + [json.dumps(small).encode()]
    return ([b"j" + f + b"\xffab <s> text" for f in files] + [b"r" + p + b"\xff" + corpus[:200] for p in patterns]
            + [b"t" + corpus[i:i + 400] for i in range(0, len(corpus), 400)])


def jinja_seeds():
    cases = json.loads(read("src/io/goldens/jinja.json"))
    return [t.encode() for t in [*cases["templates"].values(), *(snippet[0] for snippet in cases["snippets"])]]


SEEDS = {"gguf": gguf_seeds, "json": json_seeds, "safetensors": safetensors_seeds, "tokenizer": tokenizer_seeds, "jinja": jinja_seeds}


def used():  # processor seconds of what ran so far
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def breaks(target, path):
    limit = lambda: resource.setrlimit(resource.RLIMIT_CPU, (10, 10))
    return subprocess.run([f"{BUILD}/{target}_fuzz", path], preexec_fn=limit, capture_output=True).returncode != 0


# In processor time: where others work too, ten minutes may pass without a run, and an input "takes" ten seconds that needs none.
def fuzz(target, seconds):
    corpus = os.path.join(WORK, target)
    os.makedirs(corpus, exist_ok=True)
    seeds = SEEDS[target]()
    for seed in seeds:
        with open(os.path.join(corpus, hashlib.sha1(seed).hexdigest()), "wb") as file:
            file.write(seed)
    longest = max(8192, *map(len, seeds)) if target == "tokenizer" else 8192  # a whole tokenizer.json has to fit
    runs, coverage, found, end = 0, ("?",) * 3, "", used() + seconds
    while not found and used() < end - 1:
        with open(f"{corpus}.log", "w") as log:
            code = subprocess.run([f"{BUILD}/{target}_fuzz", *OPTIONS, f"-max_len={longest}", f"-max_total_time={int(end - used())}",
                                   f"-artifact_prefix={WORK}/{target}-", corpus], stdout=log, stderr=subprocess.STDOUT).returncode
        with open(f"{corpus}.log", errors="replace") as log:
            text = log.read()
        runs += sum(map(int, re.findall(r"number_of_executed_units: (\d+)", text)))
        coverage = (re.findall(r"cov: (\d+) ft: (\d+) corp: (\d+)", text) or [coverage])[-1]
        written = re.findall(r"Test unit written to (\S+)", text)
        if code and not written:
            found = f"see {corpus}.log"
        elif code and breaks(target, written[-1]):
            found = written[-1]
        elif code:
            os.unlink(written[-1])
    print(f"{target:<12} {runs:>10} runs  {coverage[0]:>6} edges  {coverage[1]:>6} features  {coverage[2]:>5} inputs  "
          f"{'BROKEN by ' + found if found else 'nothing found'}", flush=True)
    return not found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=600, help="of processor time, for each target (600)")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(SEEDS)}; none: all")
    asked = parser.parse_args()
    unknown = [t for t in asked.targets if t not in SEEDS or not os.path.exists(f"{BUILD}/{t}_fuzz")]
    if unknown:
        parser.error(f"{unknown[0]} is no built target: build them with the clang preset")
    return 0 if all([fuzz(t, asked.seconds) for t in asked.targets or SEEDS]) else 1


if __name__ == "__main__":
    sys.exit(main())
