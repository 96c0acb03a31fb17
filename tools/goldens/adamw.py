#!/usr/bin/env python3
"""Twelve steps of torch.optim.AdamW in float64, as the C++ arrays of src/ops/adamw/adamw_golden.h.

Usage: adamw.py > src/ops/adamw/adamw_golden.h    (needs torch; CPU is enough)
Numbers are drawn by a small linear congruential generator, so that the test can draw the same ones and only results are stored.
"""
import torch

N, STEPS = 5, 12
BETAS, EPS, DECAY = (0.9, 0.95), 1e-8, 0.1


class Draw:
    """x -> 6364136223846793005 x + 1442695040888963407 mod 2^64; the top 53 bits over 2^53, in [-1, 1)."""

    def __init__(self):
        self.x = 1

    def __call__(self):
        self.x = (self.x * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.x >> 11) / 2**52 - 1


def main():
    draw = Draw()
    p = torch.tensor([draw() for _ in range(N)], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.AdamW([p], lr=1.0, betas=BETAS, eps=EPS, weight_decay=DECAY, foreach=False, fused=False)
    rows = []
    for step in range(STEPS):
        optimizer.param_groups[0]["lr"] = 0.01 * (step + 1)
        p.grad = torch.tensor([draw() * 10.0 ** (2 - step % 5) for _ in range(N)], dtype=torch.float64)
        optimizer.step()
        rows.append([float(x) for x in p.detach()])
    state = optimizer.state[p]
    print("// Made by tools/goldens/adamw.py with torch %s: p after each step of AdamW, then m and v after the last." % torch.__version__.split("+")[0])
    print("#pragma once")
    print("\nnamespace ridge {\n")
    print("constexpr int kAdamWElements = %d, kAdamWSteps = %d;" % (N, STEPS))
    print("constexpr double kAdamWP[kAdamWSteps][kAdamWElements] = {")
    for row in rows:
        print("    {%s}," % ", ".join(repr(x) for x in row))
    print("};")
    for name, values in (("M", state["exp_avg"]), ("V", state["exp_avg_sq"])):
        print("constexpr double kAdamW%s[kAdamWElements] = {%s};" % (name, ", ".join(repr(float(x)) for x in values)))
    print("\n}  // namespace ridge")


if __name__ == "__main__":
    main()
