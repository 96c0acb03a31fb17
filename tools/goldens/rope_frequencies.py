"""Prints the rope frequencies that transformers computes: the numbers in src/ops/rope/rope_test.cc. Needs torch and transformers."""
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

CONFIGS = [
    dict(rope_type="llama3", rope_theta=500000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=8192),
    dict(rope_type="yarn", rope_theta=1000000.0, factor=4.0, original_max_position_embeddings=32768),
    dict(rope_type="yarn", rope_theta=10000.0, factor=40.0, mscale=0.707, mscale_all_dim=1.0, original_max_position_embeddings=4096),
    dict(rope_type="yarn", rope_theta=10000.0, factor=16.0, truncate=False, original_max_position_embeddings=4096),
]
for parameters in CONFIGS:
    config = LlamaConfig(hidden_size=512, num_attention_heads=4, head_dim=128, max_position_embeddings=131072, rope_parameters=dict(parameters))
    frequencies, attention_factor = ROPE_INIT_FUNCTIONS[parameters["rope_type"]](config, "cpu")
    print(parameters)
    print({i: f"{frequencies[i].item():.8e}" for i in (0, 1, 15, 20, 25, 28, 31, 36, 40, 45, 63)}, attention_factor)
