#!/usr/bin/env python3
"""Holds the includes of src/ to the order of the house, and ISA files to plain headers.

A folder includes itself and lower layers; two folders of one layer never include each other. An ISA file (`*_cpu.cc`, compiled once per
ISA, or `*_amx.cc`) may include tile/cpu, compiler headers and plain-data headers only: those without function bodies, or with bodies in
namespace ridge::RIDGE_ISA, whose own includes are plain too. (What slips through here, tools/check_symbols.py sees in the objects.)
Usage: check_layers.py [ROOT]
"""
import os
import re
import sys

LAYERS = [["base"], ["device", "io"], ["tile", "meter"], ["ops"], ["model"], ["serve", "train", "check"], ["app"]]
LEVEL = {folder: level for level, folders in enumerate(LAYERS) for folder in folders}
# check/ drives what lies below it, so tests from here up may use it.
CHECKED_FROM = LEVEL["ops"]
ISA_FILES = ("_cpu.cc", "_amx.cc")
# type_traits and utility for types and index sequences: what is computed while compiling leaves no symbol.
PLAIN_STD = {"cstdint", "cstddef", "stdint.h", "stddef.h", "immintrin.h", "arm_neon.h", "type_traits", "utility"}
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.M)
# A function body after a parameter list, or a template: code that would be compiled into every ISA's object.
CODE = re.compile(r"\)\s*(?:const\s*)?(?:noexcept\s*)?\{|\btemplate\s*<")


def without_comments(text):
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def sources(src):
    for folder, _, names in sorted(os.walk(src)):
        for name in sorted(names):
            if name.endswith((".cc", ".h", ".cu", ".cuh")):
                yield os.path.relpath(os.path.join(folder, name), src)


def layer_errors(src):
    for path in sources(src):
        own = path.split(os.sep)[0]
        if own not in LEVEL:
            yield f"src/{path}: src/{own} is no layer of the house: put it into one of {', '.join(LEVEL)}."
            continue
        for kind, included in INCLUDE.findall(without_comments(read(os.path.join(src, path)))):
            other = included.split("/")[0]
            if kind == "<" or other == own:
                continue
            if "/" not in included or not os.path.exists(os.path.join(src, included)):
                yield f'src/{path}: "{included}" is not written from src/.'
            elif other not in LEVEL:
                yield f'src/{path}: "{included}" is in no layer.'
            elif path.endswith("_test.cc") and other == "check" and LEVEL[own] >= CHECKED_FROM:
                continue
            elif LEVEL[other] >= LEVEL[own]:
                where = "the same layer" if LEVEL[other] == LEVEL[own] else "a higher layer"
                yield f'src/{path}: {own} includes "{included}" of {where}.'


def isa_errors(src):
    for path in sources(src):
        if not path.endswith(ISA_FILES):
            continue
        seen, queue = set(), [(path, [])]
        while queue:
            file, way = queue.pop()
            if file in seen:
                continue
            seen.add(file)
            text = without_comments(read(os.path.join(src, file)))
            through = f" (through {' > '.join(way)})" if way else ""
            if file != path and CODE.search(text) and "namespace ridge::RIDGE_ISA" not in text:
                yield f"src/{path}: {file}{through} has code, and an ISA file includes tile/cpu and plain data only."
                continue
            for kind, included in INCLUDE.findall(text):
                if kind == "<":
                    if included not in PLAIN_STD:
                        yield f"src/{path}: <{included}>{through or ''} is no plain header: ISA files take {', '.join(sorted(PLAIN_STD))}."
                elif not included.startswith("tile/cpu/") and os.path.exists(os.path.join(src, included)):
                    queue.append((included, way + [file] if file != path else way))


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    src = os.path.join(root, "src")
    errors = [*layer_errors(src), *isa_errors(src)]
    print("\n".join(errors) or f"layers: {sum(1 for _ in sources(src))} files keep the order of the house")
    return bool(errors)


if __name__ == "__main__":
    sys.exit(main())
