// What a call must do at least: useful arithmetic and bytes that have to move. Never padded work.
#pragma once

namespace ridge {

struct Cost {
  double matmul_flops = 0;  // multiply-adds counted as 2; what a matrix unit can do
  double vector_flops = 0;  // everything else: exponentials, norms, rotations
  double bytes_read = 0;
  double bytes_written = 0;
  double weight_bytes = 0;  // the part of bytes_read that is weights

  double flops() const { return matmul_flops + vector_flops; }
  double bytes() const { return bytes_read + bytes_written; }
  Cost& operator+=(const Cost& c) {
    matmul_flops += c.matmul_flops;
    vector_flops += c.vector_flops;
    bytes_read += c.bytes_read;
    bytes_written += c.bytes_written;
    weight_bytes += c.weight_bytes;
    return *this;
  }
};

}  // namespace ridge
