#!/usr/bin/env python3
"""Files stay readable: none of ours is longer than 600 lines (they aim at 300), and each source says at its top what it is.

Usage: check_sizes.py [ROOT]
"""
import os
import sys

LIMIT = 600
SOURCES = (".cc", ".h", ".cu", ".cuh", ".py", ".sh", ".js")
FOLDERS = ("src", "tools", "web", "include", "python")


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    errors, count, lines = [], 0, 0
    for top in FOLDERS:
        for folder, _, names in sorted(os.walk(os.path.join(root, top))):
            for name in sorted(names):
                if not name.endswith(SOURCES):
                    continue
                path = os.path.join(folder, name)
                with open(path, encoding="utf-8") as file:
                    text = file.read().splitlines()
                count, lines = count + 1, lines + len(text)
                shown = os.path.relpath(path, root)
                if len(text) > LIMIT:
                    errors.append(f"{shown}: {len(text)} lines, and {LIMIT} is the limit: split it by what its parts are for.")
                head = [line for line in text[:2] if not line.startswith("#!")]
                if not name.endswith("_test.cc") and not (head and head[0].startswith(("//", "#", '"""', "/*"))) or head[:1] == ["#pragma once"]:
                    errors.append(f"{shown}: the first lines must say what the file is.")
    print("\n".join(errors) or f"sizes: {count} files, {lines} lines, none above {LIMIT}")
    return bool(errors)


if __name__ == "__main__":
    sys.exit(main())
