#!/usr/bin/env python3
"""The scripts in tools/rivals against packages that are none: what they time, what they say when a package is missing."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

RIVALS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "rivals")

LLAMA = """
class Llama:
    def __init__(self, model, **options):
        print("loading", model)  # must not be taken for an answer
        self.n_tokens, self.name = 0, "flash" if options["flash_attn"] else "plain"
        assert options["n_threads"] == options["n_threads_batch"] == 3 and options["n_ctx"] == 100

    def eval(self, tokens):
        open("seen", "a").write(f"{self.name} {len(tokens)} at {self.n_tokens}\\n")
        self.n_tokens += len(tokens)
"""

OPENVINO_GENAI = """
import types

class GenerationConfig:
    def __init__(self, **options):
        assert options["ignore_eos"]
        self.tokens = options["max_new_tokens"]

def TokenizedInputs(ids, mask):
    assert len(ids[0]) == len(mask[0])
    return ids

class LLMPipeline:
    def __init__(self, model, device, **options):
        assert device == "CPU" and options["INFERENCE_NUM_THREADS"] == 3

    def generate(self, rows, config):
        open("seen", "a").write(f"{config.tokens} after {rows[0]}\\n")
        mean = lambda ms: lambda: types.SimpleNamespace(mean=ms)
        return types.SimpleNamespace(perf_metrics=types.SimpleNamespace(
            get_num_generated_tokens=lambda: config.tokens, get_ttft=mean(250.0), get_tpot=mean(10.0)))
"""


class Rivals(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.put("m.gguf", "")

    def put(self, path, text):
        path = os.path.join(self.folder, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)

    def package(self, name, text, version):
        self.put(name + ".py", text)
        self.put(f"{version}.dist-info/METADATA", "Metadata-Version: 2.1\nName: {}\nVersion: {}\n".format(*version.split("-")))

    def talk(self, script, *tests, model="m.gguf"):
        start = {"model": os.path.join(self.folder, model), "threads": 3, "context": 100, "vocab": 300}
        questions = "".join(json.dumps(q) + "\n" for q in (start, *({"prompt": p, "tokens": n, "depth": d} for p, n, d in tests)))
        result = subprocess.run([sys.executable, "-S", os.path.join(RIVALS, script)], input=questions, capture_output=True, text=True,
                                cwd=self.folder, env={**os.environ, "PYTHONPATH": self.folder}, timeout=60)
        self.assertEqual(result.returncode, 0, result.stderr)
        return [json.loads(line) for line in result.stdout.splitlines()]

    def seen(self):
        with open(os.path.join(self.folder, "seen")) as file:
            return file.read().splitlines()

    def test_llama_computes_a_depth_once(self):
        self.package("llama_cpp", LLAMA, "llama_cpp_python-0.1")
        answers = self.talk("rival_llama_cpp.py", (16, 0, 32), (16, 0, 32), (0, 2, 32), (8, 0, 0))
        self.assertEqual(answers[0], {"version": "llama-cpp-python 0.1"})
        self.assertEqual(len(answers), 5)
        for answer in answers[1:]:
            self.assertEqual(list(answer["seconds"]), ["flash attention", "no flash attention"])
        ours = [line for line in self.seen() if line.startswith("flash")]
        self.assertEqual(ours, ["flash 32 at 0", "flash 16 at 32", "flash 16 at 32", "flash 1 at 32", "flash 1 at 33", "flash 8 at 0"])
        self.assertEqual(ours, [line.replace("plain", "flash") for line in self.seen() if line.startswith("plain")])

    def test_openvino_never_sees_a_prompt_twice(self):
        self.package("openvino_genai", OPENVINO_GENAI, "openvino_genai-0.2")
        self.put("openvino.py", "Tensor = lambda rows: rows\n")
        self.put("numpy.py", "int64 = None\narray = lambda rows, dtype: rows\n")
        answers = self.talk("rival_openvino.py", (16, 0, 0), (16, 0, 0), (16, 0, 20), (0, 5, 20), (0, 5, 0))
        self.assertEqual(answers[0], {"version": "openvino-genai 0.2"})
        for answer, seconds in zip(answers[1:], (0.25, 0.25, 0.25, 0.05, 0.05)):
            for time in answer["seconds"].values():
                self.assertAlmostEqual(time, seconds)
        prompts = [json.loads(line.split(" after ")[1]) for line in self.seen() if line.startswith("1 after")]
        shallow, deep = [p for p in prompts if len(p) == 16], [p for p in prompts if len(p) == 36]
        self.assertEqual(len({p[0] for p in shallow}), len(shallow))
        self.assertEqual(len({p[20] for p in deep}), len(deep))
        self.assertEqual(len({tuple(p[:20]) for p in deep}), 1)
        self.assertEqual({line.split(" after ")[0] for line in self.seen()}, {"1", "6"})

    def test_what_is_missing_is_named(self):
        for script, module, package in (("rival_llama_cpp.py", "llama_cpp", "llama-cpp-python"), ("rival_openvino.py", "numpy", "openvino-genai")):
            error, = self.talk(script)
            self.assertIn(f"no module {module}; install {package}", error["error"])
            self.assertIn(sys.executable, error["error"])

    def test_a_folder_is_no_file_for_a_rival(self):
        error, = self.talk("rival_llama_cpp.py", model="")
        self.assertIn("GGUF", error["error"])

    def test_a_failure_is_one_sentence(self):
        self.package("llama_cpp", "class Llama:\n    def __init__(self, *a, **b):\n        raise ValueError('two\\nlines')\n", "llama_cpp_python-0.1")
        self.assertEqual(self.talk("rival_llama_cpp.py"), [{"error": "two lines"}])


if __name__ == "__main__":
    unittest.main()
