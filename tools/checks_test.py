#!/usr/bin/env python3
"""check_layers.py, check_sizes.py and check_symbols.py find what is planted, and nothing in clean trees."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

TOOLS = os.path.dirname(os.path.abspath(__file__))


class Checks(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.root)
        self.put("src/base/view.h", "// Views.\n#pragma once\n#include <vector>\ninline int f() { return 1; }\n")
        self.put("src/device/isa.h", '// Levels.\n#pragma once\n#include <string>\n#include "base/view.h"\n')
        self.put("src/io/json.h", '// JSON.\n#include "base/view.h"\n')
        self.put("src/tile/cpu/vec.h", '// Vectors.\n#pragma once\n#include <cstdint>\n#include "device/isa.h"\n')
        self.put("src/ops/glu/glu_cpu.h", "// Plain.\n#pragma once\n#include <cstdint>\nstruct Glu { void (*rows)(const float*, int64_t); };\n")
        self.put("src/ops/glu/glu_cpu.cc", '// Rows.\n#include "ops/glu/glu_cpu.h"\n#include <immintrin.h>\n#include "tile/cpu/vec.h"\n')
        self.put("src/check/drivers.h", '// Drivers.\n#include "ops/glu/glu_cpu.h"\n')
        self.put("src/ops/glu/glu_test.cc", '// Uses the driver.\n#include "check/drivers.h"\n')

    def put(self, path, text):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)

    def check(self, script, *arguments):
        result = subprocess.run([sys.executable, os.path.join(TOOLS, script), *(arguments or [self.root])], capture_output=True, text=True)
        return result.returncode, result.stdout + result.stderr

    def expect(self, script, *words, arguments=()):
        code, text = self.check(script, *arguments)
        self.assertEqual(code, 1, text)
        for word in words:
            self.assertIn(word, text)
        self.assertEqual(text.count("\n"), 1, text)  # that, and nothing else

    def test_clean_tree(self):
        self.assertEqual(self.check("check_layers.py")[0], 0, self.check("check_layers.py")[1])
        self.assertEqual(self.check("check_sizes.py")[0], 0, self.check("check_sizes.py")[1])

    def test_higher_layer(self):
        self.put("src/base/bad.cc", '// x\n#include "ops/glu/glu_cpu.h"\n')
        self.expect("check_layers.py", "src/base/bad.cc", "a higher layer")

    def test_same_layer(self):
        self.put("src/device/bad.cc", '// x\n#include "io/json.h"\n')
        self.expect("check_layers.py", "src/device/bad.cc", "the same layer")

    def test_only_tests_from_ops_up_use_check(self):
        self.put("src/ops/glu/glu.cc", '// x\n#include "check/drivers.h"\n')
        self.expect("check_layers.py", "src/ops/glu/glu.cc")
        os.unlink(os.path.join(self.root, "src/ops/glu/glu.cc"))
        self.put("src/base/base_test.cc", '// x\n#include "check/drivers.h"\n')
        self.expect("check_layers.py", "src/base/base_test.cc")

    def test_include_that_is_not_from_src(self):
        self.put("src/base/bad.cc", '// x\n#include "view.h"\n')
        self.expect("check_layers.py", '"view.h" is not written from src/')

    def test_folder_that_is_no_layer(self):
        self.put("src/misc/bad.cc", "// x\n")
        self.expect("check_layers.py", "src/misc is no layer")

    def test_commented_include_counts_for_nothing(self):
        self.put("src/base/fine.cc", '// #include "ops/glu/glu_cpu.h"\n/*\n#include "app/x.h"\n*/\n')
        self.assertEqual(self.check("check_layers.py")[0], 0)

    def test_isa_file_with_a_std_header(self):
        self.put("src/ops/glu/glu_cpu.cc", "// x\n#include <algorithm>\n")
        self.expect("check_layers.py", "glu_cpu.cc", "<algorithm>")

    def test_amx_file_with_a_std_header(self):
        self.put("src/ops/gemm/gemm_amx.cc", "// x\n#include <utility>\n#include <vector>\n")
        self.expect("check_layers.py", "gemm_amx.cc", "<vector>")

    def test_isa_file_with_code_two_headers_away(self):
        self.put("src/ops/glu/glu_cpu.h", '// x\n#include "base/view.h"\n')
        self.expect("check_layers.py", "glu_cpu.cc", "base/view.h", "through ops/glu/glu_cpu.h")

    def test_isa_code_in_a_header_of_its_own_namespace(self):
        self.put("src/ops/glu/glu_vec.h", "// x\n#include <cstdint>\nnamespace ridge::RIDGE_ISA { namespace { inline int f() { return 1; } } }\n")
        self.put("src/ops/glu/glu_cpu.cc", '// x\n#include "ops/glu/glu_vec.h"\n')
        self.assertEqual(self.check("check_layers.py")[0], 0)
        self.put("src/ops/glu/glu_vec.h", "// x\n#include <vector>\nnamespace ridge::RIDGE_ISA { namespace { inline int f() { return 1; } } }\n")
        self.expect("check_layers.py", "glu_cpu.cc", "<vector>")

    def test_long_file_and_file_without_a_head(self):
        self.put("src/base/long.cc", "// x\n" * 601)
        self.expect("check_sizes.py", "601 lines")
        self.put("src/base/long.cc", "// x\n" * 600)
        self.put("src/base/bare.h", "#pragma once\n// late\n")
        self.expect("check_sizes.py", "bare.h")

    def objects(self, code):
        folder = os.path.join(self.root, "build/CMakeFiles/ridge_ops_avx2.dir/src")
        os.makedirs(folder, exist_ok=True)
        subprocess.run(["c++", "-std=c++20", "-O1", "-x", "c++", "-c", "-", "-o", os.path.join(folder, "x_cpu.cc.o")], input=code, text=True, check=True)

    def symbols(self, code):
        self.objects(code)
        return [os.path.join(self.root, "build")]

    def test_symbols_inside_the_namespace(self):
        code = ("namespace ridge::avx2 { inline int twice(int x) { static int calls = 0; return calls += x; } template <class T> T id(T t) { return t; }"
                "struct V { virtual ~V() {} }; V v; extern const int table; const int table = 7;"
                "namespace { template <class T> int local(T x) { return x; } } int f(int x) { return twice(x) + id(x) + local(x); } }")
        code_, text = self.check("check_symbols.py", *self.symbols(code))
        self.assertEqual(code_, 0, text)

    def test_weak_symbol_of_a_shared_header(self):
        code = "namespace ridge { inline int twice(int x) { static int calls = 0; return calls += x; } namespace avx2 { int (*f)(int) = twice; } }"
        code_, text = self.check("check_symbols.py", *self.symbols(code))
        self.assertEqual(code_, 1)
        self.assertIn("weak symbol ridge::twice(int)", text)
        self.assertIn("x_cpu.cc.o", text)

    def test_weak_symbol_of_the_standard_library(self):
        code = "#include <map>\nnamespace ridge::avx2 { void f(std::map<int, int>& m) { m[1] = 2; m[2] = 3; m.erase(4); } }"
        self.assertIn("weak symbol std::", self.check("check_symbols.py", *self.symbols(code))[1])

    def test_the_namespace_of_another_isa_is_outside(self):
        self.expect("check_symbols.py", "global symbol ridge::avx512::f()", arguments=self.symbols("namespace ridge::avx512 { int f() { return 1; } }"))

    def test_a_template_over_an_isa_type_is_outside_too(self):
        code = "template <class T> [[gnu::noinline]] int of(T) { return 1; } namespace ridge::avx2 { struct S {}; int f() { return of(S{}); } }"
        self.assertEqual(self.check("check_symbols.py", *self.symbols(code))[0], 1)

    def test_no_objects_is_no_success(self):
        self.expect("check_symbols.py", "has no objects", arguments=[self.root])


if __name__ == "__main__":
    unittest.main()
