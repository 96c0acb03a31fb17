// For tests of files: a folder of its own for each test, removed at the end.
#pragma once
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

namespace ridge {

class Files : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "ridge_files_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { ASSERT_EQ(system(("chmod -R u+w '" + folder_ + "' && rm -rf '" + folder_ + "'").c_str()), 0); }
  std::string at(const std::string& name) const { return folder_ + "/" + name; }
  std::string put(const std::string& name, std::string_view bytes) const {
    std::ofstream(at(name), std::ios::binary).write(bytes.data(), std::streamsize(bytes.size()));
    return at(name);
  }
  int count_files() const {
    FILE* p = popen(("ls -A '" + folder_ + "' | wc -l").c_str(), "r");
    int n = -1;
    EXPECT_EQ(fscanf(p, "%d", &n), 1);
    pclose(p);
    return n;
  }
  std::string folder_;
};

// Appends a number as a file holds it.
template <class T>
void append(std::string& out, T x) {
  out.append(reinterpret_cast<const char*>(&x), sizeof x);
}

}  // namespace ridge
