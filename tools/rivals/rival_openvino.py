#!/usr/bin/env python3
"""OpenVINO GenAI reading a GGUF file, for `ridgeline bench --rival openvino`; protocol.py says how they talk.

A prompt's time is the time to its first token; generation counts the time between tokens, sampling greedily.
NOTE: the pipeline keeps the keys and values of prompts that it has seen: a prompt measured twice is "20 times faster" the second time.
So every prompt is new from its first token on, but for the depth before it, which is the same each time and therefore computed once.
"""
import importlib.metadata

from protocol import ids, serve

# The first is the fastest at prompts and at depth where there is AMX, the second at short generations. On two cores of such a Xeon these
# were never faster: the defaults (an 8-bit cache: 2/3 of the rate at depth 4,096), a bf16 cache, dynamic quantisation in groups of 0, 32
# or 128, f16 activations, the SDPA backend.
SETTINGS = {"f16 cache": {"KV_CACHE_PRECISION": "f16"},
            "f32 throughout": {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32"}}


class Setting:
    salt = 0

    def __init__(self, genai, tensor, start, properties):
        self.genai, self.tensor, self.vocab = genai, tensor, start["vocab"]
        self.pipeline = genai.LLMPipeline(start["model"], "CPU", INFERENCE_NUM_THREADS=start["threads"], **properties)
        self.before = ids(self.vocab, start["context"], 0)

    def generate(self, prompt, tokens):
        config = self.genai.GenerationConfig(max_new_tokens=tokens, min_new_tokens=tokens, ignore_eos=True, do_sample=False, apply_chat_template=False)
        one = self.tensor([[1] * len(prompt)])
        metrics = self.pipeline.generate(self.genai.TokenizedInputs(self.tensor([prompt]), one), config).perf_metrics
        if metrics.get_num_generated_tokens() != tokens:
            raise RuntimeError(f"it generated {metrics.get_num_generated_tokens()} tokens instead of {tokens}")
        return metrics

    def __call__(self, prompt, tokens, depth):
        if prompt:
            Setting.salt += 1
            return self.generate(self.before[:depth] + ids(self.vocab, prompt, Setting.salt), 1).get_ttft().mean / 1e3
        times = self.generate(self.before[:max(depth, 1)], tokens + 1).get_tpot()  # the first token is the prompt's
        return times.mean * tokens / 1e3


def load(start):
    import numpy
    import openvino
    import openvino_genai

    def tensor(rows):
        return openvino.Tensor(numpy.array(rows, dtype=numpy.int64))

    settings = {name: Setting(openvino_genai, tensor, start, properties) for name, properties in SETTINGS.items()}
    return "openvino-genai " + importlib.metadata.version("openvino_genai"), settings


if __name__ == "__main__":
    serve("openvino-genai", load)
