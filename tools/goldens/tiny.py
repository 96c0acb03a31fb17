#!/usr/bin/env python3
"""Makes src/model/goldens/tiny_*: three tiny random models as HF folders in float64, odd sizes on purpose, with what PyTorch
computes from them over a packed batch: logits, loss, the gradient of every parameter, and the losses of 20 AdamW steps.

transformers computes norms and rotary angles in float32 whatever the model's type; here both are replaced by the same formulas in
float64, and the frequencies are checked against transformers' own to float32's precision.

Each folder: config.json, model.safetensors (f64), expected.safetensors. Needs torch, transformers, safetensors.
"""
import json
import math
import pathlib

import torch
from safetensors.torch import save_file
from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM

HERE = pathlib.Path(__file__).resolve().parents[2] / "src/model/goldens"
LENGTHS = [9, 5, 1, 12]
STEPS, ADAMW = 20, dict(lr=1e-2, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)

MODELS = {
    "tiny_llama3": (LlamaForCausalLM, LlamaConfig(
        vocab_size=61, hidden_size=40, intermediate_size=37, num_hidden_layers=2, num_attention_heads=5, num_key_value_heads=1,
        max_position_embeddings=128, rms_norm_eps=1e-5, tie_word_embeddings=False,
        rope_parameters=dict(rope_type="llama3", rope_theta=500000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                             original_max_position_embeddings=16))),
    "tiny_qwen3": (Qwen3ForCausalLM, Qwen3Config(
        vocab_size=67, hidden_size=24, intermediate_size=50, num_hidden_layers=2, num_attention_heads=6, num_key_value_heads=2, head_dim=16,
        max_position_embeddings=64, rms_norm_eps=1e-6, tie_word_embeddings=True, rope_parameters=dict(rope_type="default", rope_theta=1e6))),
    "tiny_qwen2": (Qwen2ForCausalLM, Qwen2Config(
        vocab_size=53, hidden_size=32, intermediate_size=44, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        max_position_embeddings=64, rms_norm_eps=1e-6, tie_word_embeddings=False, use_sliding_window=False,
        rope_parameters=dict(rope_type="yarn", rope_theta=1e6, factor=4.0, original_max_position_embeddings=16))),
}


def frequencies(config):
    p, d = config.rope_parameters, getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    base = p["rope_theta"] ** -(torch.arange(0, d, 2) / d)
    if p["rope_type"] == "llama3":
        turns = p["original_max_position_embeddings"] * base / (2 * math.pi)
        low, high = p["low_freq_factor"], p["high_freq_factor"]
        smooth = ((turns - low) / (high - low)).clamp(0, 1)
        return base * (smooth + (1 - smooth) / p["factor"]), 1.0
    if p["rope_type"] == "yarn":
        edge = lambda turns: d * math.log(p["original_max_position_embeddings"] / (turns * 2 * math.pi)) / (2 * math.log(p["rope_theta"]))
        low, high = max(math.floor(edge(32)), 0), min(math.ceil(edge(1)), d - 1)
        ramp = ((torch.arange(d // 2) - low) / max(high - low, 0.001)).clamp(0, 1)
        return base * (1 - ramp) + base / p["factor"] * ramp, 0.1 * math.log(p["factor"]) + 1
    return base, 1.0


def in_double(model):
    inv_freq, factor = frequencies(model.config)
    rotary = model.model.rotary_emb
    torch.testing.assert_close(inv_freq, rotary.inv_freq.double(), rtol=1e-6, atol=0)
    assert abs(factor - rotary.attention_scaling) < 1e-6

    def angles(x, position_ids):
        a = position_ids[..., None].double() * inv_freq
        a = torch.cat((a, a), -1)
        return a.cos() * factor, a.sin() * factor

    rotary.forward = angles
    for m in model.modules():
        if type(m).__name__.endswith("RMSNorm"):
            m.forward = lambda x, m=m: m.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + m.variance_epsilon)


def batch(vocab):
    g = torch.Generator().manual_seed(11)
    ids = torch.randint(0, vocab, (sum(LENGTHS),), generator=g)
    targets = torch.randint(0, vocab, (sum(LENGTHS),), generator=g)
    targets[[3, 8, 13]] = -1                                   # no loss there
    weights = torch.rand(sum(LENGTHS), generator=g, dtype=torch.float64)
    weights[targets < 0] = 0
    return ids, targets, weights / weights.sum()


def run(model, ids, targets, weights):
    logits = torch.cat([model(part[None]).logits[0] for part in ids.split(LENGTHS)])
    keep = targets >= 0
    loss = (torch.nn.functional.cross_entropy(logits[keep], targets[keep], reduction="none") * weights[keep]).sum()
    return logits, loss


def main():
    torch.set_default_dtype(torch.float64)
    for name, (cls, config) in MODELS.items():
        torch.manual_seed(5)
        config._attn_implementation = "sdpa"                     # the eager form takes its softmax in float32
        model = cls(config).double().eval()
        with torch.no_grad():
            for key, p in model.named_parameters():
                p.add_(0.25 * torch.randn_like(p) if p.ndim == 1 else 2 * p)   # norms and biases that matter, weights that are not tiny
        in_double(model)
        folder = HERE / name
        folder.mkdir(exist_ok=True)
        (folder / "config.json").write_text(json.dumps({**config.to_diff_dict(), "architectures": [cls.__name__],
            "tie_word_embeddings": config.tie_word_embeddings, "dtype": "float64"}, indent=1) + "\n")
        params = dict(model.named_parameters())
        save_file({k: p.detach().clone() for k, p in params.items()}, str(folder / "model.safetensors"))
        ids, targets, weights = batch(config.vocab_size)
        logits, loss = run(model, ids, targets, weights)
        loss.backward()
        expected = {"ids": ids.int(), "targets": targets.int(), "weights": weights, "lengths": torch.tensor(LENGTHS, dtype=torch.int32),
                    "logits": logits.detach().clone(), "loss": loss.detach()[None].clone()}
        expected |= {"grad." + k: p.grad.clone() for k, p in params.items()}
        optimizer = torch.optim.AdamW(params.values(), **ADAMW)
        losses = []
        for _ in range(STEPS):
            optimizer.zero_grad()
            _, loss = run(model, ids, targets, weights)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        expected["losses"] = torch.tensor(losses)
        save_file(expected, str(folder / "expected.safetensors"))
        print(name, sum(p.numel() for p in params.values()), losses[0], losses[-1])


if __name__ == "__main__":
    main()
