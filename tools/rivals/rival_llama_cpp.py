#!/usr/bin/env python3
"""llama.cpp through llama-cpp-python, for `ridgeline bench --rival llama.cpp`; protocol.py says how they talk.

Times model evaluations only (no tokenisation, no sampling), with flash attention and without. Build the package for the machine at
hand, or the comparison is not one: CMAKE_ARGS=-DGGML_NATIVE=ON pip install --no-binary llama-cpp-python llama-cpp-python
"""
import importlib.metadata
import time

from protocol import ids, serve


class Setting:
    def __init__(self, llama, start, flash):
        self.llm = llama(start["model"], n_ctx=start["context"], n_batch=512, n_ubatch=512, n_threads=start["threads"],
                         n_threads_batch=start["threads"], n_gpu_layers=0, flash_attn=flash, verbose=False)
        self.ids = ids(start["vocab"], start["context"], 0)

    def __call__(self, prompt, tokens, depth):
        if self.llm.n_tokens < depth:
            self.llm.eval(self.ids[self.llm.n_tokens:depth])
        self.llm.n_tokens = depth  # eval() cuts its cache down to this, so the depth is computed once
        start = time.perf_counter()
        if prompt:
            self.llm.eval(self.ids[depth:depth + prompt])
        for token in self.ids[depth:depth + tokens]:
            self.llm.eval([token])
        return time.perf_counter() - start


def load(start):
    import llama_cpp
    settings = {name: Setting(llama_cpp.Llama, start, flash) for name, flash in (("flash attention", True), ("no flash attention", False))}
    return "llama-cpp-python " + importlib.metadata.version("llama_cpp_python"), settings


if __name__ == "__main__":
    serve("llama-cpp-python", load)
