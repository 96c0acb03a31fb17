#!/usr/bin/env python3
"""Ridgeline beside llama.cpp (llama-cpp-python) on one GGUF file: prefill and decode, interleaved round by round in one call.

Both count model evaluations only (no tokenisation, no sampling), on the same number of threads; llama.cpp is measured with flash
attention on and off and its better median counts. Prints a Markdown table; --ledger also writes rows to that file.
Needs a Python with llama-cpp-python built for this machine (CMAKE_ARGS=-DGGML_NATIVE=ON).

usage: beside_llama_cpp.py build/cpu/ridgeline MODEL.gguf [-p 512] [-n 128] [-d 0] [-r 5] [-t 2] [--ledger FILE]
"""
import argparse
import datetime
import importlib.metadata
import json
import os
import statistics
import subprocess
import time

import llama_cpp


def rival(model, threads, flash, context):
    return llama_cpp.Llama(model, n_ctx=context, n_batch=512, n_threads=threads, n_threads_batch=threads, flash_attn=flash, verbose=False)


def rival_rates(llm, prompt, tokens, depth):
    ids = [(i * 7919) % 40000 + 100 for i in range(depth + prompt)]
    llm.reset()
    if depth:
        llm.eval(ids[:depth])
    start = time.perf_counter()
    llm.eval(ids[depth:])
    prefill = prompt / (time.perf_counter() - start)
    llm.reset()
    if depth:
        llm.eval(ids[:depth])
    start = time.perf_counter()
    for i in range(tokens):
        llm.eval([ids[i]])
    return prefill, tokens / (time.perf_counter() - start)


def our_rates(binary, model, threads, prompt, tokens, depth):
    out = subprocess.run([binary, "bench", model, "-p", str(prompt), "-n", str(tokens), "-d", str(depth), "-r", "1", "-t", str(threads), "--json"],
                         check=True, stdout=subprocess.PIPE)
    doc = json.loads(out.stdout)
    return doc["machine"], doc["rows"]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("binary")
    p.add_argument("model")
    p.add_argument("-p", type=int, default=512)
    p.add_argument("-n", type=int, default=128)
    p.add_argument("-d", type=int, default=0)
    p.add_argument("-r", type=int, default=5)
    p.add_argument("-t", type=int, default=len(os.sched_getaffinity(0)))
    p.add_argument("--ledger")
    a = p.parse_args()
    rivals = {flash: rival(a.model, a.t, flash, a.p + a.n + a.d + 8) for flash in (False, True)}
    ours, theirs, machine = {}, {}, ""
    for round in range(a.r + 1):                               # the first is a warm-up
        machine, rows = our_rates(a.binary, a.model, a.t, a.p, a.n, a.d)
        rates = {flash: rival_rates(llm, a.p, a.n, a.d) for flash, llm in rivals.items()}
        if round == 0:
            continue
        for i, row in enumerate(rows):
            ours.setdefault(row["test"], []).append(row)
            for flash, pair in rates.items():
                theirs.setdefault((row["test"], flash), []).append(pair[i])
    version = importlib.metadata.version("llama_cpp_python")
    print(f"{machine}, {a.t} threads, llama.cpp: llama-cpp-python {version}; medians of {a.r} interleaved rounds (min - max)\n")
    print("| test | Ridgeline tok/s | of the bound | llama.cpp tok/s | ratio |\n|---|---|---|---|---|")
    lines = []
    for test, rows in ours.items():
        mine = [r["tok_s"]["median"] for r in rows]
        best = max((theirs[test, flash] for flash in rivals), key=statistics.median)
        m, t, bound = statistics.median(mine), statistics.median(best), rows[0]["bound_tok_s"]
        print(f"| {test} | {m:.1f} ({min(mine):.1f} - {max(mine):.1f}) | {m / bound:.0%} | {t:.1f} ({min(best):.1f} - {max(best):.1f}) | {m / t:.2f} |")
        count = int(test[2:].split("@")[0])
        lines.append({"test": test, "case": rows[0]["model"], "row": "model", "device": "cpu", "dtype": rows[0]["model"].split()[-1],
                      "time_s": count / m, "bound_s": count / bound, "bound_by": "memory" if test.startswith("tg") else "arithmetic",
                      "fraction": m / bound, "rival": f"llama-cpp-python {version}", "rival_time_s": count / t, "ratio": m / t, "machine": machine,
                      "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                      "commit": subprocess.run(["git", "describe", "--always", "--dirty", "--abbrev=10"], capture_output=True, text=True).stdout.strip(),
                      "sources": subprocess.run("git ls-files -s src | sha256sum | cut -c1-12", shell=True, capture_output=True, text=True).stdout.strip()})
    if a.ledger:
        kept = []
        if os.path.exists(a.ledger):
            new = {(l["test"], l["case"], l["row"], l["device"]) for l in lines}
            kept = [l for l in map(json.loads, open(a.ledger)) if (l.get("test"), l["case"], l["row"], l["device"]) not in new]
        with open(a.ledger + ".part", "w") as f:
            f.writelines(json.dumps(l) + "\n" for l in kept + lines)
        os.replace(a.ledger + ".part", a.ledger)


if __name__ == "__main__":
    main()
