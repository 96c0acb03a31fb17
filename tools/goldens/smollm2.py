#!/usr/bin/env python3
"""Makes src/model/goldens/smollm2.safetensors: what SmolLM2-135M-Instruct says over the 16 texts beside it, in fp32.

The weights are the GGUF's own, dequantised; the model is transformers' LlamaForCausalLM. Kept per position: the log-sum-exp, the
16 largest logits and 8 logits at fixed places of the vocabulary, so that a test can bound the error of logits and the divergence
(the rest of the distribution counts as one outcome). Needs torch, transformers, gguf, safetensors.

usage: smollm2.py MODEL.gguf [--full OUT.safetensors]     (--full also writes every logit, for looking closer by hand)
"""
import argparse
import pathlib

import gguf
import numpy as np
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM

HERE = pathlib.Path(__file__).resolve().parents[2] / "src/model/goldens"
LONGEST, TOP, PROBES = 160, 16, 8


def field(reader, name):
    f = reader.fields[name]
    return f.contents()


def load(path):
    reader = gguf.GGUFReader(path)
    k = lambda name: field(reader, "llama." + name)
    heads, kv = k("attention.head_count"), k("attention.head_count_kv")
    config = LlamaConfig(
        vocab_size=len(field(reader, "tokenizer.ggml.tokens")), hidden_size=k("embedding_length"), intermediate_size=k("feed_forward_length"),
        num_hidden_layers=k("block_count"), num_attention_heads=heads, num_key_value_heads=kv,
        max_position_embeddings=k("context_length"), rms_norm_eps=k("attention.layer_norm_rms_epsilon"), tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": k("rope.freq_base")})
    tensors = {t.name: torch.from_numpy(np.array(gguf.dequantize(t.data, t.tensor_type), dtype=np.float32)) for t in reader.tensors}

    def half_split(w, n):  # GGUF keeps a rotated pair in adjacent rows, transformers in the two halves of a head
        return w.reshape(n, w.shape[0] // n // 2, 2, w.shape[1]).transpose(1, 2).reshape(w.shape)

    state = {"model.embed_tokens.weight": tensors["token_embd.weight"], "lm_head.weight": tensors["token_embd.weight"],
             "model.norm.weight": tensors["output_norm.weight"]}
    names = {"attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
             "attn_output": "self_attn.o_proj", "ffn_norm": "post_attention_layernorm", "ffn_gate": "mlp.gate_proj",
             "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
    for i in range(config.num_hidden_layers):
        for theirs, ours in names.items():
            w = tensors[f"blk.{i}.{theirs}.weight"]
            w = half_split(w, heads) if theirs == "attn_q" else half_split(w, kv) if theirs == "attn_k" else w
            state[f"model.layers.{i}.{ours}.weight"] = w
    model = LlamaForCausalLM(config).float().eval()
    model.load_state_dict(state)
    return reader, model


def tokenizer(reader):
    tokens, merges = field(reader, "tokenizer.ggml.tokens"), field(reader, "tokenizer.ggml.merges")
    types = field(reader, "tokenizer.ggml.token_type")
    t = Tokenizer(models.BPE(vocab={s: i for i, s in enumerate(tokens)}, merges=[tuple(m.split(" ", 1)) for m in merges]))
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    t.decoder = decoders.ByteLevel()
    t.add_special_tokens([s for s, kind in zip(tokens, types) if kind == 3])
    return t


def main():
    p = argparse.ArgumentParser()
    p.add_argument("model")
    p.add_argument("--full")
    args = p.parse_args()
    reader, model = load(args.model)
    texts = (HERE / "texts.txt").read_text().split("\n====\n")
    encode = tokenizer(reader)
    rows = [torch.tensor(encode.encode(text).ids[:LONGEST], dtype=torch.int32) for text in texts]
    ids = torch.cat(rows)                                      # flat, like the engine's own batches
    with torch.no_grad():
        logits = torch.cat([model(row[None].long()).logits[0] for row in rows])
    top = logits.topk(TOP, dim=-1)
    probes = torch.arange(PROBES) * (logits.shape[-1] // PROBES) + 17
    save_file({"ids": ids, "lengths": torch.tensor([len(r) for r in rows], dtype=torch.int32), "lse": logits.logsumexp(-1), "top_ids": top.indices.to(torch.int32).contiguous(),
               "top_logits": top.values.contiguous(), "probe_ids": probes.to(torch.int32), "probe_logits": logits[..., probes].contiguous()},
              str(HERE / "smollm2.safetensors"))
    if args.full:
        save_file({"ids": ids, "logits": logits}, args.full)


if __name__ == "__main__":
    main()
