#!/usr/bin/env python3
"""Looks into the objects compiled once per ISA: everything they define must lie in ridge::<isa>.

A weak symbol elsewhere (an inline function of a shared header, a std:: template) exists in the object of every ISA; the linker keeps one
copy, maybe the AVX-512 one, for every machine.  Usage: check_symbols.py BUILD_FOLDER
"""
import glob
import os
import re
import subprocess
import sys

ISAS = ["portable", "avx2", "avx512", "vnni", "amx"]
# Weak by the compiler's own doing, the same data in every object.
HARMLESS = {"DW.ref.__gxx_personality_v0"}
DEFINED = set("TDBRSGVWuiC")  # nm's letters for global definitions; lower case w and v are weak references


def errors_of(path, isa):
    listing = subprocess.run(["nm", "-C", path], capture_output=True, text=True, check=True).stdout
    inside = re.compile(rf"^(?:(?:guard variable|typeinfo|typeinfo name|vtable|VTT) for )?(?:[\w:<>*& ]+ )?ridge::{isa}::")
    for line in listing.splitlines():
        match = re.match(r"^[0-9a-f]+ (\S) (.*)$", line)
        if match and match[1] in DEFINED and match[2] not in HARMLESS and not inside.match(match[2]):
            kind = "weak" if match[1] in "VWu" else "global"
            yield f"{path}: {kind} symbol {match[2]} lies outside ridge::{isa}: give it internal linkage or write it in tile/cpu."


def main():
    if len(sys.argv) != 2:
        print(__doc__.strip().splitlines()[-1], file=sys.stderr)
        return 2
    count, errors = 0, []
    for isa in ISAS:
        for folder in glob.glob(os.path.join(sys.argv[1], "CMakeFiles", f"ridge_*_{isa}.dir")):
            for path in sorted(glob.glob(os.path.join(folder, "**", "*.o"), recursive=True)):
                count += 1
                errors += errors_of(path, isa)
    if not count:
        errors.append(f"{sys.argv[1]} has no objects of ISA files: build first, `cmake --preset cpu && cmake --build --preset cpu`.")
    print("\n".join(errors) or f"symbols: {count} ISA objects define nothing outside their namespaces")
    return bool(errors)


if __name__ == "__main__":
    sys.exit(main())
