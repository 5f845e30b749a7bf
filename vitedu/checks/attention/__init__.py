"""Checkers of notebook 02: softmax, attention, heads, cost."""

# kernels that compute attention in one call
FUSED_NAMES = frozenset(
    """
    scaled_dot_product_attention _scaled_dot_product_attention_math
    aten.scaled_dot_product_attention aten._scaled_dot_product_attention_math
    aten._scaled_dot_product_attention_math_for_mps aten._scaled_dot_product_flash_attention
    aten._scaled_dot_product_flash_attention_for_cpu aten._scaled_dot_product_efficient_attention
    aten._scaled_dot_product_cudnn_attention aten._scaled_dot_product_fused_attention_overrideable
    aten._flash_attention_forward aten._efficient_attention_forward aten._cudnn_attention_forward
    multi_head_attention_forward aten._native_multi_head_attention
    aten._transformer_encoder_layer_fwd
    """.split()
)
