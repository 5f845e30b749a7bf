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

CHECKERS = {
    checker.exercise: checker
    for checker in (
        softmax.CHECKER,
        scaled_dot_product_attention.CHECKER,
        split_heads.CHECKER,
        merge_heads.CHECKER,
        multi_head_attention.CHECKER,
        attention_macs.CHECKER,
    )
} | values.CHECKERS
