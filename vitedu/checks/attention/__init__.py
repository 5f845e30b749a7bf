"""Checkers of notebook 02: softmax, attention, heads, cost."""

from vitedu.checks.attention import (
    attention_macs,
    merge_heads,
    multi_head_attention,
    scaled_dot_product_attention,
    softmax,
    split_heads,
    values,
)

IN_ORDER = (
    softmax,
    scaled_dot_product_attention,
    split_heads,
    merge_heads,
    multi_head_attention,
    attention_macs,
)
CHECKERS = {module.CHECKER.exercise: module.CHECKER for module in IN_ORDER} | values.CHECKERS
