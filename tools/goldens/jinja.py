#!/usr/bin/python3
"""Writes src/io/goldens/jinja.json: chat templates x conversations, and small snippets, with what python3-jinja2 makes of them.

The environment is the one Hugging Face's apply_chat_template builds. Run: /usr/bin/python3 tools/goldens/jinja.py
(Debian's python3-jinja2 3.1.2). With arguments FILE..., renders those templates and prints the cases instead, for checks by hand.
"""
import datetime
import json
import pathlib
import sys

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from jinja_cases import CONVERSATIONS, EXPRESSIONS, GLOBALS, SNIPPETS, TOOLS  # noqa: E402
from jinja_templates import TEMPLATES  # noqa: E402

NOW = datetime.datetime(2024, 7, 26, 12, 30, 5)


class Generation(jinja2.ext.Extension):
    """{% generation %} marks what an assistant said; for the text it is only a scope."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_same"), [], [], body).set_lineno(line)

    def _same(self, caller):
        return caller()


def environment():
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = NOW.strftime
    return env


def outcome(source, variables):
    """["ok", text], or ["error", message]; the message is only kept where the template itself raised it."""
    try:
        return ["ok", environment().from_string(source).render(**variables)]
    except jinja2.exceptions.TemplateError as e:
        own = type(e) is jinja2.exceptions.TemplateError
        return ["error", str(e) if own else ""]
    except Exception:
        return ["error", ""]


def chat_cases(templates):
    cases = []
    for name, source in templates.items():
        for label, conversation in CONVERSATIONS.items():
            variables = {"messages": conversation["messages"], "tools": TOOLS if conversation.get("tools") else None, "documents": None,
                         "add_generation_prompt": conversation.get("prompt", True), "bos_token": "<s>", "eos_token": "</s>"}
            variables.update(conversation.get("variables", {}))
            cases.append([name, label, *outcome(source, variables)])
    return cases


def main():
    if len(sys.argv) > 1:
        templates = {p: pathlib.Path(p).read_text() for p in sys.argv[1:]}
        json.dump({"templates": templates, "conversations": CONVERSATIONS, "tools": TOOLS, "globals": GLOBALS, "chats": chat_cases(templates),
                   "snippets": []}, sys.stdout, ensure_ascii=False)
        return
    snippets = [*SNIPPETS, *("{{ " + e + " }}" for e in EXPRESSIONS)]
    result = {"templates": TEMPLATES, "conversations": CONVERSATIONS, "tools": TOOLS, "globals": GLOBALS, "chats": chat_cases(TEMPLATES),
              "snippets": [[s, *outcome(s, GLOBALS)] for s in snippets]}
    text = json.dumps(result, ensure_ascii=False, separators=(",", ":"))
    path = pathlib.Path(__file__).parents[2] / "src/io/goldens/jinja.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text + "\n")
    errors = sum(c[-2] == "error" for c in result["chats"] + result["snippets"])
    print(f"{len(result['chats'])} chats, {len(snippets)} snippets, {errors} of them errors, {len(text.encode())} bytes")


if __name__ == "__main__":
    main()
