#!/usr/bin/env python3
"""Writes a GGUF file of the shape of Llama-3.2-1B with random weights, for timing: Q4_K_M's mix of types, or one type for all matrices.

The tokenizer is taken from another GGUF file and filled up with unused tokens. Needs the Python packages gguf and numpy.

usage: random_llama.py TOKENIZER.gguf OUT.gguf [--type Q4_K_M|Q8_0|Q4_0|Q4_1|F16|BF16] [--layers 16]
"""
import argparse

import gguf
import numpy as np

HIDDEN, HEADS, KV_HEADS, HEAD_DIM, FFN, VOCAB = 2048, 32, 8, 64, 8192, 128256
T = gguf.GGMLQuantizationType


def blocks(rng, kind, rows, cols):
    """Random bytes of codes under scales that make weights of about 0.02."""
    size, width = gguf.GGML_QUANT_SIZES[kind]
    n = rows * cols // size
    if kind in (T.F16, T.BF16):
        x = rng.standard_normal(rows * cols, dtype=np.float32) * 0.02
        return (x.astype(np.float16).view(np.uint16) if kind == T.F16 else (x.view(np.uint32) >> 16).astype(np.uint16)).view(np.uint8)
    b = rng.integers(0, 256, (n, width), dtype=np.uint8)
    def f16(at, value):
        b[:, at:at + 2] = np.full(n, value, np.float16).view(np.uint8).reshape(n, 2)
    if kind == T.Q4_0:
        f16(0, 0.005)
    elif kind == T.Q4_1:
        f16(0, 0.005), f16(2, -0.0375)
    elif kind == T.Q8_0:
        f16(0, 0.0003)
    elif kind == T.Q4_K:
        f16(0, 0.0001), f16(2, 0.0007)
    elif kind == T.Q6_K:
        f16(208, 0.00002)
    else:
        raise SystemExit(f"{kind.name} is no type this script makes")
    return b.reshape(-1)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("tokenizer")
    p.add_argument("out")
    p.add_argument("--type", default="Q4_K_M")
    p.add_argument("--layers", type=int, default=16)
    a = p.parse_args()
    rng = np.random.default_rng(7)
    w = gguf.GGUFWriter(a.out, "llama")
    w.add_name(f"random Llama-3.2-1B shape {a.type}")
    w.add_context_length(131072), w.add_embedding_length(HIDDEN), w.add_block_count(a.layers), w.add_feed_forward_length(FFN)
    w.add_head_count(HEADS), w.add_head_count_kv(KV_HEADS), w.add_rope_dimension_count(HEAD_DIM), w.add_rope_freq_base(500000.0)
    w.add_layer_norm_rms_eps(1e-5), w.add_vocab_size(VOCAB)
    source = gguf.GGUFReader(a.tokenizer)
    def field(name):
        return source.fields[name].contents() if name in source.fields else None
    tokens = field("tokenizer.ggml.tokens")
    w.add_tokenizer_model(field("tokenizer.ggml.model"))
    w.add_tokenizer_pre(field("tokenizer.ggml.pre") or "default")
    w.add_token_list(tokens + [f"<unused_{i}>" for i in range(VOCAB - len(tokens))])
    w.add_token_types((field("tokenizer.ggml.token_type") or [1] * len(tokens)) + [5] * (VOCAB - len(tokens)))
    w.add_token_merges(field("tokenizer.ggml.merges"))
    w.add_bos_token_id(field("tokenizer.ggml.bos_token_id")), w.add_eos_token_id(field("tokenizer.ggml.eos_token_id"))

    mixed = a.type == "Q4_K_M"
    def matrix(name, rows, cols, more=False):
        kind = (T.Q6_K if more else T.Q4_K) if mixed else T[a.type]
        size, width = gguf.GGML_QUANT_SIZES[kind]
        w.add_tensor(name, blocks(rng, kind, rows, cols).reshape(rows, cols // size * width), raw_dtype=kind)
    def vector(name, n):
        w.add_tensor(name, (1 + 0.1 * rng.standard_normal(n)).astype(np.float32))
    matrix("token_embd.weight", VOCAB, HIDDEN, more=True)
    vector("output_norm.weight", HIDDEN)
    for i in range(a.layers):
        more = i < a.layers // 8 or i >= 7 * a.layers // 8 or (i - a.layers // 8) % 3 == 2  # as llama.cpp mixes Q4_K_M
        vector(f"blk.{i}.attn_norm.weight", HIDDEN)
        matrix(f"blk.{i}.attn_q.weight", HEADS * HEAD_DIM, HIDDEN)
        matrix(f"blk.{i}.attn_k.weight", KV_HEADS * HEAD_DIM, HIDDEN)
        matrix(f"blk.{i}.attn_v.weight", KV_HEADS * HEAD_DIM, HIDDEN, more)
        matrix(f"blk.{i}.attn_output.weight", HIDDEN, HEADS * HEAD_DIM)
        vector(f"blk.{i}.ffn_norm.weight", HIDDEN)
        matrix(f"blk.{i}.ffn_gate.weight", FFN, HIDDEN)
        matrix(f"blk.{i}.ffn_up.weight", FFN, HIDDEN)
        matrix(f"blk.{i}.ffn_down.weight", HIDDEN, FFN, more)
    w.write_header_to_file(), w.write_kv_data_to_file(), w.write_tensors_to_file(), w.close()


if __name__ == "__main__":
    main()
