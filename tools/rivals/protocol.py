"""What the scripts of all rivals share: their conversation with `ridgeline bench --rival`, one JSON object a line on stdin and stdout.

  <- {"model": "m.gguf", "threads": 2, "context": 4232, "vocab": 49152}    once, at the start
  -> {"version": "llama-cpp-python 0.3.36"}                                the model is loaded
  <- {"prompt": 512, "tokens": 0, "depth": 0}                              one test, one repeat: prefill 512, or generate `tokens`
  -> {"seconds": {"flash attention": 0.91, "no flash attention": 0.93}}    one time for each setting of the rival; the best one counts
  -> {"error": "a sentence"}                                               instead of any answer; the script ends then

Only the prompt or the tokens asked for are timed; the `depth` tokens before them are not. Between questions the script waits in read()
and must leave the cores alone. The end of the input ends it. A new rival is one file rival_NAME.py that calls serve().
"""
import ctypes
import json
import os
import signal
import sys


def ids(vocab, count, salt):
    """Token ids of a prompt; another salt, another prompt from its first token on."""
    first, usable = min(100, vocab // 2), vocab - min(100, vocab // 2)
    return [first + (i * 7919 + salt * 104729) % usable for i in range(count)]


def serve(package, load):
    """load(start) -> (version, {setting: time(prompt, tokens, depth) -> seconds}); `package` is what pip calls it."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: whoever kills the bench in a long prompt kills us with it
    lines, out = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the rival itself prints is no answer

    def answer(message):
        out.write(json.dumps(message) + "\n")
        out.flush()

    try:
        start = json.loads(lines.readline())
        if not os.path.isfile(start["model"]):
            raise RuntimeError(f"{start['model']} is no file; it reads GGUF files only")
        version, settings = load(start)
        answer({"version": version})
        for line in lines:
            test = json.loads(line)
            answer({"seconds": {name: time(test["prompt"], test["tokens"], test["depth"]) for name, time in settings.items()}})
    except ModuleNotFoundError as e:
        answer({"error": f"{sys.executable} has no module {e.name}; install {package} there, or name another Python with --rival-python"})
    except Exception as e:  # whatever it was, the other side shows it as one sentence
        answer({"error": " ".join(str(e).split()) or type(e).__name__})
